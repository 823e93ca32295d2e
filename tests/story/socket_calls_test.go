package story

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/redis/go-redis/v9"
)

// waitCloseCode reads until the socket ends and returns the close code, 1006 when there was none.
func (c *socketClient) waitCloseCode() int {
	c.t.Helper()
	for {
		if _, err := readFrame(c.conn); err != nil {
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				return closed.Code
			}
			return websocket.CloseAbnormalClosure
		}
	}
}

// mustRequest is request for a message that must succeed.
func (c *socketClient) mustRequest(messageType string, data map[string]any) map[string]any {
	c.t.Helper()
	m := c.request(messageType, data)
	if !*m.OK {
		c.t.Fatalf("%s %v: %s", messageType, data, m.raw)
	}
	return m.Data
}

func TestASocketOutlivesItsTokenUntilTheLogout(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	f := &fixture{t: t}
	for i := range f.nodes {
		f.nodes[i] = nodetest.Start(t, store.URL(), "PARLOR_ACCESS_TTL=5s")
	}
	op := f.setUp(nil)
	signedIn := f.must(201, "POST", "/api/v1/auth/guest", "", map[string]any{"gameId": op.game, "username": "Ann"})
	ann := player{token: signedIn.Body["accessToken"].(string)}
	first := f.openSocket("/api/v1/realtime", ann) // which gets no other token
	sockets := map[string][]*socketClient{}
	for range f.nodes {
		for _, path := range []string{"/api/v1/realtime", "/api/v1/game-data/save"} {
			sockets[path] = append(sockets[path], f.openSocket(path, ann))
		}
		f.node() // the next pair is on the other node
	}
	refresh := signedIn.Body["refreshToken"]
	refreshAll := func() {
		t.Helper()
		eve := f.guest(op.game, "Eve")
		pair := f.must(200, "POST", "/api/v1/auth/refresh", "", map[string]any{"refreshToken": refresh})
		ann.token, refresh = pair.Body["accessToken"].(string), pair.Body["refreshToken"]
		for path, list := range sockets {
			for i, s := range list {
				if got := s.request("auth.refresh", map[string]any{"accessToken": eve.token}); got.Error["code"] != "forbidden" {
					t.Errorf("socket %d of %s took another player's token: %s", i, path, got.raw)
				}
				if s.mustRequest("auth.refresh", map[string]any{"accessToken": ann.token})["expiresAt"] == nil {
					t.Errorf("a reply on %s does not say until when", path)
				}
			}
		}
	}
	begin := time.Now()
	redistest.Eventually(t, "half of the first token's life is over", func() bool {
		return time.Since(begin) > 2500*time.Millisecond
	})
	refreshAll()
	second := f.openSocket("/api/v1/realtime", ann)
	if code := first.waitCloseCode(); code != 4001 {
		t.Fatalf("the socket of the first token was closed with %d", code)
	}
	refreshAll()
	if code := second.waitCloseCode(); code != 4001 {
		t.Fatalf("the socket of the second token was closed with %d", code)
	}
	for _, s := range sockets["/api/v1/realtime"] {
		s.mustRequest("user.subscribe", map[string]any{})
	}
	for i, s := range sockets["/api/v1/game-data/save"] {
		s.mustRequest("save", map[string]any{"slot": "main", "state": map[string]any{}, "version": i})
	}
	f.must(204, "POST", "/api/v1/auth/logout", "", map[string]any{"refreshToken": refresh})
	for path, list := range sockets {
		for i, s := range list {
			if code := s.waitCloseCode(); code != 4001 {
				t.Errorf("after the logout, socket %d of %s was closed with %d", i, path, code)
			}
		}
	}
}

func TestThirtyRoomsAreFollowedByOneMessage(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, _ *redisdb.DB) {
		op := f.setUp(nil)
		other := f.must(201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Other"})
		eve := f.guest(number(t, other.Body["game"].(map[string]any)["id"]), "Eve")
		create := func(p player) string {
			created := f.must(201, "POST", "/api/v1/game-session/create", p.token, map[string]any{"maxPlayers": 2})
			return created.Body["roomId"].(string)
		}
		const foreign = 11
		hosts := make([]player, 5) // a player opens eight rooms at most
		for i := range hosts {
			hosts[i] = f.guest(op.game, fmt.Sprint("Host ", i))
		}
		rooms, wanted := make([]string, 30), make([]map[string]any, 30)
		for i := range rooms {
			if rooms[i] = create(hosts[i%5]); i == foreign {
				rooms[i] = create(eve)
			}
			wanted[i] = map[string]any{"roomId": rooms[i]}
			if i%3 == 0 {
				wanted[i]["after"] = "0-0"
			}
		}
		s := f.openSocket("/api/v1/realtime", f.guest(op.game, "Bob"))
		limits := s.event().Data["limits"].(map[string]any)
		if most, _ := limits["roomsPerSubscribe"].(float64); most < 30 {
			t.Fatalf("the limits are %v", limits)
		}
		replied := s.mustRequest("room.subscribe", map[string]any{"rooms": wanted})["rooms"].([]any)
		if len(s.queue) > 0 {
			t.Errorf("before the reply came %s", s.queue[0].raw)
		}
		for i, item := range replied {
			item := item.(map[string]any)
			mode := "snapshot"
			if i%3 == 0 {
				mode = "resume"
			}
			failure, failed := item["error"].(map[string]any)
			switch {
			case item["roomId"] != rooms[i]:
				t.Errorf("item %d is %v", i, item)
			case i == foreign:
				if failure["code"] != "room_not_found" {
					t.Errorf("the room of another game is %v", item)
				}
			case failed || item["mode"] != mode:
				t.Errorf("item %d is %v, want mode %s", i, item, mode)
			}
		}
		seqs := map[string]int64{}
		for i, room := range rooms {
			if i != foreign {
				f.must(200, "POST", "/api/v1/game-session/ready", hosts[i%5].token, map[string]any{"roomId": room, "ready": true})
			}
		}
		for range 10 + 29 { // ten resume before their first event
			e := s.event()
			want := map[string]int64{"room.created": 1, "room.ready": 2}[e.Type]
			if e.Seq != want || e.Seq <= seqs[e.RoomID] {
				t.Errorf("after seq %d came %s", seqs[e.RoomID], e.raw)
			}
			seqs[e.RoomID] = e.Seq
		}
		if len(seqs) != 29 {
			t.Errorf("events came of %d rooms", len(seqs))
		}
	})
}

// A player gets every event once and in order, though connections of the client and of the nodes
// are lost again and again.
func TestAPlayersEventsSurviveLostConnections(t *testing.T) {
	each(t, func(t *testing.T, f *fixture, db *redisdb.DB) {
		op := f.setUp(nil)
		ann := f.guest(op.game, "Ann")
		path := fmt.Sprintf("/api/v1/admin/users/%d/credit", ann.id)
		const credits = 60
		var changes sync.WaitGroup
		changes.Go(func() {
			for i := range credits {
				body := map[string]any{"tokenId": "GOLD", "amount": 1, "reason": "quest"}
				key := fmt.Sprint("quest-", i)
				a, err := f.nodes[i%2].Do(t.Context(), "POST", path, nodetest.AdminKey, body, "Idempotency-Key", key)
				if err != nil || a.Status != 200 {
					t.Errorf("credit %d: %v %s", i, err, a)
					return
				}
				if i%12 == 5 {
					redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
						return server.ClientKillByFilter(ctx, "TYPE", "pubsub").Err()
					})
				}
			}
		})
		defer changes.Wait()
		after, seq := "0-0", int64(0)
		for seq < credits+1 { // the sign-up grant is the first
			s := f.openSocket("/api/v1/realtime", ann)
			s.event() // hello
			start := s.mustRequest("user.subscribe", map[string]any{"after": map[string]any{"money": after, "progress": "0-0"}})
			if start["mode"] != "resume" || start["position"].(map[string]any)["money"] != after || len(s.queue) > 0 {
				t.Fatalf("after %s it begins with %v, and before that %v", after, start, s.queue)
			}
			for range 8 {
				e := s.event()
				if e.Type != "user.balance" || e.Seq != seq+1 {
					t.Fatalf("after seq %d came %s", seq, e.raw)
				}
				if after, seq = e.Position, e.Seq; seq == credits+1 {
					break
				}
			}
			_ = s.conn.NetConn().Close()
		}
	})
}
