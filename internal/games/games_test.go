package games_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func create(t *testing.T, s *games.Service, d games.Definition) (games.Game, string) {
	t.Helper()
	if d.Name == "" {
		d.Name = "Chess"
	}
	g, key, err := s.Create(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return g, key
}

// fieldsOf lists the faulty fields of a refusal.
func fieldsOf(err error) string {
	refusal, ok := apierror.As(err)
	if !ok {
		return ""
	}
	var fields []string
	for _, f := range refusal.FieldErrors {
		fields = append(fields, f.Field)
	}
	return strings.Join(fields, " ")
}

func TestAGameIsReadAsItWasMade(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		made, _ := create(t, games.New(db), games.Definition{
			Name: " Chess ", Origins: []string{"HTTPS://Chess.Example.com:443/", "https://*.example.org", "null", "null"},
			WelcomeGrant: &games.Grant{TokenID: "GOLD", Units: 1<<53 - 1},
			Settings:     games.SettingsPatch{RakeBps: new(250), MatchTimeoutSeconds: new(games.Seconds(1500 * time.Millisecond))},
		})
		read, err := games.New(db).Get(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if read.Name != "Chess" || strings.Join(read.Origins, " ") != "https://chess.example.com https://*.example.org null" ||
			read.WelcomeGrant.Units != 1<<53-1 || read.Version != 1 || time.Since(read.CreatedAt) > time.Minute {
			t.Errorf("read %+v", read)
		}
		if read.Settings.RakeBps != 250 || read.Settings.MatchTimeout != 1500*time.Millisecond || read.Settings.IdleTimeout != 15*time.Minute {
			t.Errorf("settings %+v", read.Settings)
		}
		if _, err := games.New(db).Get(t.Context(), made.ID+1); !errors.Is(err, apierror.GameNotFound) {
			t.Errorf("an unknown game: %v", err)
		}
	})
}

func TestADefinitionIsRefusedWithEveryFaultyField(t *testing.T) {
	s := games.New(redistest.Single(t))
	_, _, err := s.Create(t.Context(), games.Definition{
		Name:         strings.Repeat("x", 81),
		Origins:      []string{"https://ok.example", "*", "chess.example.com", "https://*.com", "https://a/path", "https://a:99999", "https://user@a"},
		WelcomeGrant: &games.Grant{Units: 0},
		Settings: games.SettingsPatch{
			RakeBps: new(100), MinRakeBps: new(10_001), MaxAgeSeconds: new(games.Seconds(0)), MaxPlayers: new(0),
			Issuers: &[]games.Issuer{{Issuer: "parlor", Audience: ""}, {Issuer: "i", Audience: "a", JWKSURL: "http://127.0.0.1/"}, {Issuer: "i", Audience: "b", Keys: json.RawMessage(`{"keys":[]}`)}},
		},
	})
	want := "name origins[1] origins[2] origins[3] origins[4] origins[5] origins[6] welcomeGrant.tokenId welcomeGrant.amount " +
		"settings.minRakeBps settings.rakeBps settings.maxAgeSeconds settings.maxPlayers " +
		"settings.issuers[0].issuer settings.issuers[0].audience settings.issuers[0].jwksUrl settings.issuers[1].jwksUrl settings.issuers[2].keys"
	if got := fieldsOf(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARaisedMinimumRaisesTheRake(t *testing.T) {
	s := games.New(redistest.Single(t))
	g, _ := create(t, s, games.Definition{Settings: games.SettingsPatch{MinRakeBps: new(500)}})
	if g.Settings.RakeBps != 500 {
		t.Errorf("the rake is %d", g.Settings.RakeBps)
	}
}

func TestOrigins(t *testing.T) {
	dev := games.New(redistest.Single(t), games.Options{AnyOrigin: true})
	for _, test := range []struct {
		pattern string
		allowed []string
		refused []string
	}{
		{"https://a.example.com", []string{"https://a.example.com"}, []string{"http://a.example.com", "https://a.example.com:8443", "https://b.a.example.com", "https://a.example.com.evil.com", "null", ""}},
		{
			"https://*.example.com",
			[]string{"https://a.example.com", "https://b.a.example.com"},
			[]string{"https://example.com", "https://.example.com", "https://evil.com/.example.com", "https://evil.com#.example.com", "https://evilexample.com", "https://a.example.com:444", "https://x:1.example.com", "https://u@a.example.com"},
		},
		{"http://localhost:3000", []string{"http://localhost:3000"}, []string{"http://localhost", "http://localhost:30001"}},
		{"http://[0:0::1]:80", []string{"http://[::1]"}, []string{"http://[::2]"}},
		{"capacitor://localhost", []string{"capacitor://localhost"}, []string{"http://localhost"}},
		{"null", []string{"null"}, []string{"https://null", ""}},
		{"*", []string{"null", "https://any.example"}, nil},
	} {
		g, _ := create(t, dev, games.Definition{Origins: []string{test.pattern}})
		for _, origin := range test.allowed {
			if !g.AllowsOrigin(origin) {
				t.Errorf("%s refuses %q", test.pattern, origin)
			}
		}
		for _, origin := range test.refused {
			if g.AllowsOrigin(origin) {
				t.Errorf("%s allows %q", test.pattern, origin)
			}
		}
	}
}

func TestAPatchChangesWhatItNamesAndIsSeenAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := games.New(db)
		g, _ := create(t, s, games.Definition{Origins: []string{"null"}, WelcomeGrant: &games.Grant{TokenID: "GOLD", Units: 5}})
		if _, err := s.Get(t.Context(), g.ID); err != nil { // now it is remembered
			t.Fatal(err)
		}
		if _, err := s.Patch(t.Context(), g.ID, games.Patch{Version: 1, Name: new("Go"), Settings: games.SettingsPatch{MaxPlayers: new(2)}}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(t.Context(), g.ID)
		if err != nil || got.Name != "Go" || got.Settings.MaxPlayers != 2 || got.Version != 2 || len(got.Origins) != 1 || got.WelcomeGrant == nil {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Patch(t.Context(), g.ID, games.Patch{Version: 1, Name: new("Old")}); !errors.Is(err, apierror.VersionConflict) {
			t.Errorf("a change of an older version: %v", err)
		}
		got, err = s.Patch(t.Context(), g.ID, games.Patch{WelcomeGrant: new((*games.Grant)(nil))})
		if err != nil || got.WelcomeGrant != nil || got.Name != "Go" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := s.Patch(t.Context(), 99, games.Patch{}); !errors.Is(err, apierror.GameNotFound) {
			t.Errorf("an unknown game: %v", err)
		}
	})
}

func TestEditorsAtTheSameTimeLoseNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		g, _ := create(t, games.New(db), games.Definition{})
		changes := []games.Patch{
			{Name: new("Go")},
			{Origins: &[]string{"null"}},
			{WelcomeGrant: new(&games.Grant{TokenID: "GOLD", Units: 1})},
			{Settings: games.SettingsPatch{RakeBps: new(1)}},
			{Settings: games.SettingsPatch{MaxPlayers: new(3)}},
		}
		var wg sync.WaitGroup
		for _, change := range changes {
			wg.Go(func() {
				if _, err := games.New(db).Patch(t.Context(), g.ID, change); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got, err := games.New(db).Get(t.Context(), g.ID)
		if err != nil || got.Name != "Go" || len(got.Origins) != 1 || got.WelcomeGrant == nil || got.Settings.RakeBps != 1 || got.Settings.MaxPlayers != 3 || got.Version != 6 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAnotherNodeSeesAChangeWithinTwoSeconds(t *testing.T) {
	db := redistest.Single(t)
	a, b := games.New(db), games.New(db)
	g, _ := create(t, a, games.Definition{})
	if _, err := b.Get(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Patch(t.Context(), g.ID, games.Patch{Name: new("Go")}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Second); ; {
		got, err := b.Get(t.Context(), g.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Name == "Go" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the other node still has the old game")
		}
	}
}

func TestServerKeysAreHashedRotatedAndRevoked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := games.New(db)
		g, first := create(t, s, games.Definition{})
		other, otherKey := create(t, s, games.Definition{})
		if len(first) < 43 || !strings.HasPrefix(first, "psk_1_") {
			t.Errorf("the key is %q", first)
		}
		if strings.Contains(redistest.Dump(t, db), first[len("psk_1_"):]) {
			t.Error("the store holds the key")
		}
		_, second, err := s.RotateServerKey(t.Context(), g.ID)
		if err != nil {
			t.Fatal(err)
		}
		for key, id := range map[string]int64{first: g.ID, second: g.ID, otherKey: other.ID} {
			if found, err := s.FindByServerKey(t.Context(), key); err != nil || found.ID != id {
				t.Errorf("the key of %d gives %d, %v", id, found.ID, err)
			}
		}
		if _, err := s.RevokeServerKey(t.Context(), g.ID, g.ServerKeys()[0].ID); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{
			first, "", "psk_", "psk_1", "psk_1_", "psk_x_y", "psk_99_" + second[6:], "psk_2_" + second[6:], second[:len(second)-1], second + "A",
		} {
			if _, err := s.FindByServerKey(t.Context(), key); !errors.Is(err, apierror.Unauthenticated) {
				t.Errorf("%q: %v", key, err)
			}
		}
		if _, err := s.FindByServerKey(t.Context(), second); err != nil {
			t.Errorf("the second key: %v", err)
		}
		if _, err := s.RevokeServerKey(t.Context(), g.ID, "nothing"); !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("an unknown key: %v", err)
		}
		for range 7 {
			if _, _, err := s.RotateServerKey(t.Context(), g.ID); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.RotateServerKey(t.Context(), g.ID); !errors.Is(err, apierror.Forbidden) {
			t.Errorf("a ninth key: %v", err)
		}
	})
}

// A key is good on every node as soon as it is given, even where the game was just read.
func TestANewServerKeyIsGoodAtOnceOnOtherNodes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		here, there := games.New(db), games.New(db)
		g, first := create(t, here, games.Definition{})
		for range 3 {
			if _, err := there.FindByServerKey(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			_, next, err := here.RotateServerKey(t.Context(), g.ID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := there.FindByServerKey(t.Context(), next); err != nil {
				t.Errorf("the other node refuses the new key: %v", err)
			}
		}
	})
}

func TestListWalksAllGames(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := games.New(db)
		if list, next, err := s.List(t.Context(), 0, 2); err != nil || len(list) != 0 || next != 0 {
			t.Fatalf("of none: %v %d %v", list, next, err)
		}
		for range 5 {
			create(t, s, games.Definition{})
		}
		var ids []int64
		for after := int64(0); ; {
			list, next, err := s.List(t.Context(), after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range list {
				ids = append(ids, g.ID)
			}
			if next == 0 {
				break
			}
			after = next
		}
		if len(ids) != 5 || ids[0] != 1 || ids[4] != 5 {
			t.Errorf("listed %v", ids)
		}
	})
}

const ed25519Set = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

func TestAnIssuerBelongsToOneGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := games.New(db)
		issuers := []games.Issuer{{Issuer: "https://id.example", Audience: "chess", Keys: json.RawMessage(ed25519Set)}}
		with := games.SettingsPatch{Issuers: &issuers}
		a, _ := create(t, s, games.Definition{Settings: with})
		found, issuer, err := s.FindByIssuer(t.Context(), "https://id.example", "chess")
		if err != nil || found.ID != a.ID || len(issuer.Keys) == 0 {
			t.Fatalf("%d %v %v", found.ID, issuer, err)
		}
		if _, _, err := s.FindByIssuer(t.Context(), "https://id.example", "go"); !errors.Is(err, apierror.Unauthenticated) {
			t.Errorf("another audience: %v", err)
		}
		if _, _, err := s.Create(t.Context(), games.Definition{Name: "Go", Settings: with}); !errors.Is(err, apierror.InvalidRequest) {
			t.Errorf("a second game with the issuer: %v", err)
		}
		if _, err := s.Patch(t.Context(), a.ID, games.Patch{Settings: games.SettingsPatch{Issuers: &[]games.Issuer{}}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.FindByIssuer(t.Context(), "https://id.example", "chess"); !errors.Is(err, apierror.Unauthenticated) {
			t.Errorf("after it was taken away: %v", err)
		}
		b, _ := create(t, s, games.Definition{Settings: with})
		if found, _, err := s.FindByIssuer(t.Context(), "https://id.example", "chess"); err != nil || found.ID != b.ID {
			t.Errorf("after it moved: %d %v", found.ID, err)
		}
	})
}

func TestNoRulesAreAnEmptyArray(t *testing.T) {
	s := games.New(redistest.Single(t))
	for _, none := range []string{"[]", "null"} {
		g, _ := create(t, s, games.Definition{Settings: games.SettingsPatch{ProgressRules: json.RawMessage(`[{"path":"gold","max":10}]`)}})
		g, err := s.Patch(t.Context(), g.ID, games.Patch{Settings: games.SettingsPatch{ProgressRules: json.RawMessage(none)}})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(g.Settings); err != nil || !strings.Contains(string(text), `"progressRules":[]`) {
			t.Errorf("after %s: %s, %v", none, text, err)
		}
	}
}

func TestSettingsGoOverTheWireAndBack(t *testing.T) {
	s := games.DefaultSettings()
	s.MatchTimeout = 1500 * time.Millisecond
	text, err := json.Marshal(s)
	want := `{"rakeBps":0,"minRakeBps":0,"matchTimeoutSeconds":1.5,"idleTimeoutSeconds":900,"maxAgeSeconds":86400,"maxPlayers":256,"issuers":[],`
	if err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{`"1"`, "-1", "1e3", "null1", "1s", "0x1"} {
		var seconds games.Seconds
		if err := json.Unmarshal([]byte(bad), &seconds); err == nil {
			t.Errorf("%s was read as %v", bad, seconds)
		}
	}
}
