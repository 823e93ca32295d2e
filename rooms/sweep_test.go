package rooms_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/redis/go-redis/v9"
)

// sweeps sweeps until a room is as it should be.
func (h *house) sweeps(r rooms.Room, until func(rooms.Room, error) bool) rooms.Room {
	h.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := h.rooms.Sweep(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		now, err := h.rooms.Get(h.t.Context(), operator, r.RoomID)
		if until(now, err) {
			return now
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the sweep leaves the room at %+v, %v", now, err)
		}
	}
}

func cancelled(r rooms.Room, err error) bool { return err == nil && r.Status == rooms.Cancelled }

func TestRoomsEndWhenTheirTimeIsOver(t *testing.T) {
	eachAndEmbedded(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c := h.player(1000), h.player(1000), h.player(1000)

		h.set.IdleTimeout = 50 * time.Millisecond
		idle := does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		if r := h.sweeps(idle, cancelled); r.Reason != "idle" || r.FinishedAt.Sub(r.CreatedAt) < h.set.IdleTimeout {
			t.Fatalf("%+v", r)
		}
		h.has(a, 1000, 0)

		h.set.IdleTimeout, h.set.MaxAge = time.Hour, 50*time.Millisecond
		old := does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		if r := h.sweeps(old, cancelled); r.Reason != "expired" {
			t.Fatalf("%+v", r)
		}

		h.set.MaxAge, h.set.MatchTimeout = time.Hour, 50*time.Millisecond
		match := does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		does(t)(h.rooms.Join(ctx, b, match.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, c, match.RoomID, noKey))
		does(t)(h.rooms.Start(ctx, a, match.RoomID, noKey))
		does(t)(h.rooms.Leave(ctx, c, match.RoomID, noKey))
		if r := h.sweeps(match, cancelled); r.Reason != "timeout" || r.Pot != 300 || r.Rake != 0 {
			t.Fatalf("%+v", r)
		}
		for _, p := range []principal.Caller{a, b, c} { // the stake of the one who forfeited comes back too
			h.has(p, 1000, 0)
		}
		if h.db.Kind() != redisdb.KindEmbedded {
			h.balanced()
		}
	})
}

func TestAChangePutsTheIdleTimeOff(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		room := does(t)(h.rooms.Create(ctx, h.player(0), rooms.CreateInput{MaxPlayers: 3}, noKey))
		home, _ := keys.RoomShard(room.RoomID)
		late := func() { // as if the last change were longer ago than the room may be idle
			h.db.Client.HIncrBy(ctx, keys.Room(home, room.RoomID), "changed", -h.set.IdleTimeout.Milliseconds()-1)
			h.db.Client.ZAdd(ctx, keys.RoomsDue(home), redis.Z{Score: 1, Member: room.RoomID})
		}
		late()
		room = does(t)(h.rooms.Join(ctx, h.player(0), room.RoomID, noKey))
		if n, err := h.rooms.Sweep(ctx); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if now, err := h.rooms.Get(ctx, operator, room.RoomID); err != nil || now.Status != rooms.Created || now.Version != room.Version {
			t.Fatalf("%+v, %v", now, err)
		}
		if score, err := h.db.Client.ZScore(ctx, keys.RoomsDue(home), room.RoomID).Result(); err != nil || time.UnixMilli(int64(score)).Before(time.Now()) {
			t.Fatalf("it is due at %v, %v", score, err)
		}
		late()
		if r := h.sweeps(room, cancelled); r.Reason != "idle" {
			t.Fatalf("%+v", r)
		}
	})
}

func TestEndedRoomsLeaveNothingBehind(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		brief := rooms.New(h.db, h.wallet, h, h, rooms.Options{Shards: homes, Retention: 50 * time.Millisecond})
		a := h.player(1000)
		for _, in := range []rooms.CreateInput{h.paid("1", 3), {MaxPlayers: 3}, {MaxPlayers: 3, Visibility: rooms.Private}} {
			room := does(t)(brief.Create(ctx, a, in, noKey))
			does(t)(brief.Cancel(ctx, a, room.RoomID, noKey))
			h.sweeps(room, func(_ rooms.Room, err error) bool { return errors.Is(err, apierror.RoomNotFound) })
			home, _ := keys.RoomShard(room.RoomID)
			left := []string{keys.Room(home, room.RoomID), keys.RoomEvents(home, room.RoomID), keys.RoomCode(home, room.Code), keys.RoomsDue(home), keys.RoomIndex(home, 0, "all")}
			for _, state := range []string{"open", "created", "started", "finished", "cancelled", "all"} {
				left = append(left, keys.RoomIndex(home, h.game, state))
			}
			for _, key := range left {
				if n, err := h.db.Client.Exists(ctx, key).Result(); err != nil || n != 0 {
					t.Errorf("%s is left, %v", key, err)
				}
			}
			refuses(t, apierror.RoomNotFound)(brief.Join(ctx, a, room.RoomID, noKey))
		}
	})
}

func TestTwoSweepersDoNotDisturbEachOther(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		h.set.IdleTimeout = 20 * time.Millisecond
		a := h.player(100_000)
		var all []rooms.Room
		for i := range 60 {
			in := h.paid("1", 2)
			if i%2 == 0 {
				in = rooms.CreateInput{MaxPlayers: 2}
			}
			all = append(all, does(t)(h.rooms.Create(ctx, a, in, noKey)))
		}
		var wg sync.WaitGroup
		for _, node := range []*rooms.Service{h.node(), h.node()} {
			wg.Go(func() {
				if err := node.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		for _, r := range all {
			h.sweeps(r, cancelled)
		}
		stop()
		wg.Wait()
		h.t = t
		h.has(a, 100_000, 0)
		h.balanced()
	})
}

func TestASweeperThatWasFollowedChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		h.set.IdleTimeout = 10 * time.Millisecond
		a := h.player(1000)
		room := does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		fence := keys.RoomsFence(keys.Economy)
		if err := h.db.Client.Set(ctx, fence, 1_000_000, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); ; {
			_, err := h.rooms.Sweep(ctx)
			if err != nil && strings.Contains(err.Error(), "another leader") {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("an old leader sweeps: %v", err)
			}
		}
		h.has(a, 900, 100)
		if err := h.db.Client.Del(ctx, fence).Err(); err != nil {
			t.Fatal(err)
		}
		h.sweeps(room, cancelled)
		if newest, err := h.db.Client.Get(ctx, fence).Result(); err != nil || newest == "0" {
			t.Fatalf("the fence is %s, %v", newest, err)
		}
	})
}

func TestADueRoomThatIsGoneIsForgotten(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		due := keys.RoomsDue(keys.FreeShard(1))
		id := keys.NewRoomID(keys.FreeShard(1), time.Now())
		if err := h.db.Client.ZAdd(t.Context(), due, redis.Z{Score: 1, Member: id}).Err(); err != nil {
			t.Fatal(err)
		}
		if n, err := h.rooms.Sweep(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := h.rooms.Sweep(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// TestNothingIsHalfDoneWhenTheStoreIsKilled kills the store under load, again and again, and counts afterwards.
func TestNothingIsHalfDoneWhenTheStoreIsKilled(t *testing.T) {
	server := redistest.StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	h := newHouse(t, db)
	players := make([]principal.Caller, 6)
	for i := range players {
		players[i] = h.player(10_000)
	}
	for round := range 3 {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		acknowledged := make([]int, len(players))
		for i, p := range players {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					in := h.paid("1", 2)
					in.AutoStart = true
					opened, err := h.rooms.Create(ctx, p, in, noKey)
					if err != nil {
						return
					}
					other := players[(i+1)%len(players)]
					if _, err := h.rooms.Join(ctx, other, opened.Room.RoomID, noKey); err != nil {
						return
					}
					results := []rooms.Placement{{UserID: p.User, Place: 1}, {UserID: other.User, Place: 1 + n%2}}
					if _, err := h.rooms.Finish(ctx, h.server(), opened.Room.RoomID, results, noKey); err != nil {
						return
					}
					acknowledged[i]++
				}
			})
		}
		finished := func() int64 {
			n, _ := db.Client.ZCard(ctx, keys.RoomIndex(keys.Economy, h.game, "finished")).Result()
			return n
		}
		for before := finished(); finished() < before+30; {
		}
		server.Kill()
		stop()
		wg.Wait()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		h.balanced()
		total := 0
		for _, n := range acknowledged {
			total += n
		}
		if kept, err := db.Client.ZCard(t.Context(), keys.RoomIndex(keys.Economy, h.game, "finished")).Result(); err != nil || kept < int64(total) {
			t.Fatalf("round %d: %d of %d finished rooms are left, %v", round, kept, total, err)
		}
	}
	// What was cut in the middle is cancelled like any other room, and everything held comes back.
	for _, status := range []rooms.Status{rooms.Created, rooms.Started} {
		page, err := h.rooms.AdminList(t.Context(), operator, rooms.ListQuery{Limit: 100, Status: status})
		if err != nil || page.NextCursor != "" {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, r := range page.Items {
			if n := len(told(t, db, "e:main", r)); int64(n) != r.Seq {
				t.Fatalf("room %s has %d events, %d were told", r.RoomID, n, r.Seq)
			}
			does(t)(h.rooms.Cancel(t.Context(), operator, r.RoomID, noKey))
		}
	}
	held := int64(0)
	for _, p := range players {
		b, err := h.wallet.Balance(t.Context(), p.User, h.token.TokenID)
		if err != nil {
			t.Fatal(err)
		}
		held += int64(b.HeldAmount)
	}
	if held != 0 {
		t.Fatalf("%d units are held by no room", held)
	}
	h.balanced()
}
