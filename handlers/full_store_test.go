package handlers_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// maxGrowth bounds what goes on a full store may add to it in these tests, in bytes; one save alone
// would be a quarter of it.
const maxGrowth = 1 << 20

func TestOnAFullStoreWhatEndsGoesOnAndWhatIsNewIsRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		sword := f.createSword()
		ann, bob, cat := f.guest("Ann"), f.guest("Bob"), f.guest("Cat")
		started, left, cancelled, kicked := f.createRoom(ann), f.createRoom(ann), f.createRoom(ann), f.createRoom(ann)
		for _, room := range []string{started, left, cancelled, kicked} {
			f.expect(200, "POST", "/join", bob.token, roomBody(room))
		}
		f.expect(200, "POST", "/api/v1/game-session/start", ann.token, roomBody(started))
		f.expectBalance(ann, "9000+1000")
		saved := f.expect(200, "PUT", serverSavePath(ann), f.serverKey, `{"version":0,"state":{"level":1}}`)

		f.makeOverdue(f.createRoom(bob))
		bob.refresh = f.expect(200, "POST", "/api/v1/auth/refresh", "",
			fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh)).text("refreshToken")

		redistest.Fill(t, f.db)
		before := usedMemory(t, f)
		refused := func(method, path, bearer, body string, headers ...string) {
			t.Helper()
			f.expectError(503, "store_full", method, path, bearer, body, headers...)
		}
		refused("POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d}`, f.game))
		refused("POST", "/api/v1/game-session/create", cat.token, `{"maxPlayers":2}`)
		refused("POST", "/join", cat.token, roomBody(left))
		refused("POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token, "", "Idempotency-Key", "k")
		refused("POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", cat.id), f.serverKey,
			`{"tokenId":"GOLD","amount":7,"reason":"x"}`, "Idempotency-Key", "k")
		large := `{"version":` + saved.text("version") + `,"state":{"text":"` + strings.Repeat("x", 200_000) + `"}}`
		for range 20 {
			refused("PUT", serverSavePath(ann), f.serverKey, large)
		}

		result := fmt.Sprintf(`{"roomId":%q,"results":[{"userId":%d,"place":1},{"userId":%d,"place":2}]}`,
			started, ann.id, bob.id)
		f.expect(200, "POST", "/api/v1/game-session/finish", f.serverKey, result, "Idempotency-Key", "f")
		f.expect(200, "POST", "/api/v1/game-session/leave", bob.token, roomBody(left), "Idempotency-Key", "l")
		f.expect(200, "POST", "/api/v1/game-session/cancel", ann.token, roomBody(cancelled))
		f.expect(200, "POST", "/api/v1/game-session/kick", ann.token,
			fmt.Sprintf(`{"roomId":%q,"userId":%d}`, kicked, bob.id))
		f.expect(200, "POST", "/api/v1/auth/refresh", "", fmt.Sprintf(`{"refreshToken":%q}`, bob.refresh),
			"Idempotency-Key", "r")
		f.expect(204, "POST", "/api/v1/auth/logout", "", fmt.Sprintf(`{"refreshToken":%q}`, cat.refresh))
		f.expect(200, "GET", "/readyz", "", "")
		f.expectBalance(ann, "9725+500") // the pot less the rake; two rooms are open

		// The sweep elects its leader and ends what is over.
		f.expectBalance(bob, "9500+250")
		if swept, err := f.deps.Rooms.Sweep(t.Context()); err != nil || swept == 0 {
			t.Errorf("the sweep ends %d rooms, %v", swept, err)
		}
		f.expectBalance(bob, "9750+0")
		if growth := usedMemory(t, f) - before; growth > maxGrowth {
			t.Errorf("the full store grew by %d bytes", growth)
		}

		redistest.Unfill(t, f.db)
		f.expectBalancedAudit()
		f.expect(201, "POST", "/api/v1/game-session/create", bob.token, `{"maxPlayers":2}`)
	})
}

func TestAboveTheWatermarkMoneyGoesOnAndWhatIsNewIsRefused(t *testing.T) {
	f := newGameFixture(t)
	sword := f.createSword()
	ann := f.guest("Ann")
	secret := fmt.Sprintf(`{"gameId":%d,"deviceSecret":%q}`, f.game, "the secret of a device, of 32 bytes")
	f.expect(201, "POST", "/api/v1/auth/guest", "", secret)
	room := f.createRoom(ann)
	body := `{"maxPlayers":2}`
	free := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, body, "Idempotency-Key", "first")

	prober := f.db.NewProber(redisdb.Requirements{})
	redistest.Fill(t, f.db)
	f.memory.Update(prober.Probe(t.Context()))
	redistest.Unfill(t, f.db) // there is memory left; the node does not know
	f.expectError(503, "store_full", "POST", "/api/v1/auth/guest", "", fmt.Sprintf(`{"gameId":%d}`, f.game))
	f.expectError(503, "store_full", "POST", "/api/v1/game-session/create", ann.token, body)
	f.expectError(503, "store_full", "PUT", serverSavePath(ann), f.serverKey, `{"version":0,"state":{}}`)

	again := f.expect(201, "POST", "/api/v1/game-session/create", ann.token, body, "Idempotency-Key", "first")
	if again.text("roomId") != free.text("roomId") {
		t.Errorf("the same key opens %s", again.raw)
	}
	f.expect(201, "POST", "/api/v1/auth/guest", "", secret) // a player who is known
	f.expect(201, "POST", fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", sword), ann.token, "",
		"Idempotency-Key", "k")
	f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(room))
	f.expect(200, "GET", "/readyz", "", "")
	f.memory.Update(prober.Probe(t.Context()))
	f.expect(201, "POST", "/api/v1/game-session/create", ann.token, body)
}

func TestAPlayerHasABoundedNumberOfSeats(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixtureOn(t, db, func(d *handlers.Deps) {
			d.Rooms = rooms.New(db, d.Wallet, d.Users, d.Games, rooms.Options{Quotas: rooms.Quotas{Seats: 2}})
		}).createGame()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room, _ := f.createRoom(ann), f.createRoom(ann)
		body := fmt.Sprintf(`{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":4}`, f.gold)
		over := f.expectError(409, "limit_reached", "POST", "/api/v1/game-session/create", ann.token, body)
		if over.text("limit") != "seats" || over.text("max") != "2" {
			t.Errorf("beyond the quota: %s", over.raw)
		}
		f.expectError(409, "limit_reached", "POST", "/join", ann.token, roomBody(f.createRoom(bob)))
		f.expect(200, "POST", "/join", ann.token, roomBody(room)) // a seat that she has
		f.expectBalance(ann, "9500+500")
		f.expect(200, "POST", "/api/v1/game-session/leave", ann.token, roomBody(room))
		f.createRoom(ann)
	})
}

// makeOverdue has a room wait for an hour already, of which the sweep knows.
func (f *fixture) makeOverdue(roomID string) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	room := keys.Room(shard, roomID)
	values := strings.Split(f.db.Client.HGet(f.t.Context(), room, "live").Val(), "|")
	values[slices.Index(scripts.RoomLive.Names, "changed")] = strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10)
	testkit.Must(f.db.Client.Pipelined(f.t.Context(), func(p redis.Pipeliner) error {
		p.HSet(f.t.Context(), room, "live", strings.Join(values, "|"))
		p.ZAdd(f.t.Context(), keys.RoomsDue(shard), redis.Z{Score: 1, Member: roomID})
		return nil
	}))(f.t)
}

func serverSavePath(p player) string { return fmt.Sprintf("/api/v1/admin/users/%d/saves/main", p.id) }

// usedMemory returns the memory that the servers of the store use together, in bytes.
func usedMemory(t *testing.T, f *fixture) (sum int64) {
	t.Helper()
	var mu sync.Mutex
	read := func(ctx context.Context, server *redis.Client) error {
		info, err := server.InfoMap(ctx, "memory").Result()
		used, _ := strconv.ParseInt(info["Memory"]["used_memory_dataset"], 10, 64)
		mu.Lock()
		sum += used
		mu.Unlock()
		return err
	}
	var err error
	if cluster, ok := f.db.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(t.Context(), read)
	} else {
		err = read(t.Context(), f.db.Client.(*redis.Client))
	}
	testkit.Check(t, err)
	return sum
}
