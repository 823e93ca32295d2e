package main

import (
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestNodesThatStartAtOnceMakeOneFirstGame(t *testing.T) {
	const origin = "http://localhost:5173"
	for name, key := range map[string]string{"with a key": games.NewFirstServerKey(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			store := redistest.StartForTest(t, "--appendonly", "yes")
			t.Setenv("PARLOR_FIRST_GAME", "Stones")
			t.Setenv("PARLOR_FIRST_GAME_ORIGINS", origin+", https://game.example")
			t.Setenv("PARLOR_FIRST_GAME_KEY", key)
			nodes := make([]*node, 4)
			for i := range nodes {
				nodes[i] = newServingNode(t, store)
			}
			createInstallation(t, nodes[0].db)
			start := func() {
				var all sync.WaitGroup
				for _, n := range nodes {
					all.Go(func() { testkit.Check(t, n.makeFirstGame(t.Context())) })
				}
				all.Wait()
			}
			start()
			list, _, err := nodes[0].games.List(t.Context(), operator, 0, 10)
			testkit.Check(t, err)
			if len(list) != 1 || list[0].ID != games.FirstID || list[0].Name != "Stones" {
				t.Fatalf("the games are %+v", list)
			}
			game := list[0]
			if !game.AllowsOrigin(origin) || !game.AllowsOrigin("https://game.example") || len(game.ServerKeys()) != 1 {
				t.Errorf("the game is %+v", game)
			}
			if key != "" {
				if found := testkit.Must(nodes[1].games.FindByServerKey(t.Context(), key))(t); found.ID != game.ID {
					t.Errorf("the key is of game %d", found.ID)
				}
			}

			// A later start changes nothing, whatever was changed meanwhile.
			patch := games.PatchInput{Name: new("Pebbles"), Origins: &[]string{}}
			testkit.Must(nodes[0].games.Patch(t.Context(), operator, game.ID, patch))(t)
			start()
			list, _, err = nodes[0].games.List(t.Context(), operator, 0, 10)
			testkit.Check(t, err)
			if len(list) != 1 || list[0].Name != "Pebbles" || len(list[0].Origins) != 0 || len(list[0].ServerKeys()) != 1 {
				t.Errorf("after another start the games are %+v", list)
			}
			second, _, err := nodes[0].games.Create(t.Context(), operator, games.Definition{Name: "Second"})
			if err != nil || second.ID <= game.ID {
				t.Errorf("the next game is %d: %v", second.ID, err)
			}
		})
	}
}

func TestAStoreWithAGameGetsNoFirstGameAndNoToken(t *testing.T) {
	t.Setenv("PARLOR_FIRST_GAME", "Stones")
	n := newServingNode(t, redistest.StartForTest(t, "--appendonly", "yes"))
	createInstallation(t, n.db)
	game, _, err := n.games.Create(t.Context(), operator, games.Definition{Name: "Mine"})
	testkit.Check(t, err)
	testkit.Check(t, n.makeFirstGame(t.Context()))
	list, _, err := n.games.List(t.Context(), operator, 0, 10)
	if err != nil || len(list) != 1 {
		t.Errorf("the games are %+v: %v", list, err)
	}
	if token, err := n.wallet.FindToken(t.Context(), game.ID, seededTokens[0].Code); err == nil {
		t.Errorf("there is the token %+v", token)
	}
}

func TestAFirstServerKeyIsLongAndOfTheFirstGame(t *testing.T) {
	for key, valid := range map[string]bool{
		games.NewFirstServerKey(): true, "psk_1_short": false, "psk_2_" + games.NewFirstServerKey()[6:]: false, "key": false,
	} {
		if err := games.CheckFirstServerKey(key); (err == nil) != valid {
			t.Errorf("%s: %v", key, err)
		}
	}
}
