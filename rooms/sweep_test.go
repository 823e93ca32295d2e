package rooms_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// sweepUntil sweeps until a room meets a condition, and returns it.
func (f *fixture) sweepUntil(r rooms.Room, done func(rooms.Room, error) bool) rooms.Room {
	f.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		testkit.Must(f.service.Sweep(f.t.Context()))(f.t)
		now, err := f.service.Get(f.t.Context(), operator, r.RoomID)
		if done(now, err) {
			return now
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the sweep leaves the room at %+v, %v", now, err)
		}
	}
}

// setBack makes a time of a room earlier: "created", "started", "finished", or "changed", which is
// packed with what changes.
func (f *fixture) setBack(roomID, field string, by time.Duration) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	room := keys.Room(shard, roomID)
	if field != "changed" {
		testkit.Check(f.t, f.db.Client.HIncrBy(f.t.Context(), room, field, -by.Milliseconds()).Err())
		return
	}
	values := strings.Split(f.db.Client.HGet(f.t.Context(), room, "live").Val(), "|")
	i := slices.Index(scripts.RoomLive.Names, field)
	ms := testkit.Must(strconv.ParseInt(values[i], 10, 64))(f.t)
	values[i] = strconv.FormatInt(ms-by.Milliseconds(), 10)
	testkit.Check(f.t, f.db.Client.HSet(f.t.Context(), room, "live", strings.Join(values, "|")).Err())
}

// makeDue has the sweep look at a room.
func (f *fixture) makeDue(roomID string) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	testkit.Check(f.t, f.db.Client.ZAdd(f.t.Context(), keys.RoomsDue(shard), redis.Z{Score: 1, Member: roomID}).Err())
}

func isCancelled(r rooms.Room, err error) bool { return err == nil && r.Status == rooms.Cancelled }

func TestRoomsEndWhenTheirTimeIsOver(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)

		f.Settings.IdleTimeout = 50 * time.Millisecond
		idle := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		if r := f.sweepUntil(idle, isCancelled); r.CancelReason != "idle" ||
			r.FinishedAt.Sub(r.CreatedAt) < f.Settings.IdleTimeout {
			t.Fatalf("%+v", r)
		}
		f.requireBalance(a, 1000, 0)

		f.Settings.IdleTimeout, f.Settings.MaxAge = time.Hour, 50*time.Millisecond
		old := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		if r := f.sweepUntil(old, isCancelled); r.CancelReason != "expired" {
			t.Fatalf("%+v", r)
		}

		f.Settings.MaxAge, f.Settings.MatchTimeout = time.Hour, 50*time.Millisecond
		match := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		must(t)(f.service.Join(ctx, b, match.RoomID, noKey))
		must(t)(f.service.Join(ctx, c, match.RoomID, noKey))
		must(t)(f.service.Start(ctx, a, match.RoomID, noKey))
		must(t)(f.service.Leave(ctx, c, match.RoomID, noKey))
		if r := f.sweepUntil(match, isCancelled); r.CancelReason != "timeout" || r.Pot != 300 || r.Rake != 0 {
			t.Fatalf("%+v", r)
		}
		for _, p := range []principal.Caller{a, b, c} { // the stake of the one who forfeited comes back too
			f.requireBalance(p, 1000, 0)
		}
		f.requireBooksBalance()
	})
}

func TestAChangeDelaysTheIdleTimeout(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		room := must(t)(f.service.Create(ctx, f.newPlayer(0), rooms.CreateInput{MaxPlayers: 3}, noKey))
		shard, _ := keys.RoomShard(room.RoomID)
		late := func() { // as if the last change were longer ago than the room may be idle
			f.setBack(room.RoomID, "changed", f.Settings.IdleTimeout+time.Millisecond)
			f.db.Client.ZAdd(ctx, keys.RoomsDue(shard), redis.Z{Score: 1, Member: room.RoomID})
		}
		late()
		room = must(t)(f.service.Join(ctx, f.newPlayer(0), room.RoomID, noKey))
		if n, err := f.service.Sweep(ctx); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if now, err := f.service.Get(ctx, operator, room.RoomID); err != nil || now.Status != rooms.Created ||
			now.Version != room.Version {
			t.Fatalf("%+v, %v", now, err)
		}
		if score, err := f.db.Client.ZScore(ctx, keys.RoomsDue(shard), room.RoomID).Result(); err != nil ||
			time.UnixMilli(int64(score)).Before(time.Now()) {
			t.Fatalf("it is due at %v, %v", score, err)
		}
		late()
		if r := f.sweepUntil(room, isCancelled); r.CancelReason != "idle" {
			t.Fatalf("%+v", r)
		}
	})
}

func TestEndedRoomsLeaveNothingBehind(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		brief := rooms.New(f.db, f.wallet, f, f, rooms.Options{Shards: shards, Retention: 50 * time.Millisecond})
		a := f.newPlayer(1000)
		for _, in := range []rooms.CreateInput{
			f.paidRoom("1", 3), {MaxPlayers: 3}, {MaxPlayers: 3, Visibility: rooms.Private},
		} {
			room := must(t)(brief.Create(ctx, a, in, noKey))
			must(t)(brief.Cancel(ctx, a, room.RoomID, noKey))
			f.sweepUntil(room, func(_ rooms.Room, err error) bool { return errors.Is(err, apierror.RoomNotFound) })
			shard, _ := keys.RoomShard(room.RoomID)
			left := []string{
				keys.Room(shard, room.RoomID), keys.RoomEvents(shard, room.RoomID), keys.RoomCode(shard, room.Code),
				keys.RoomsDue(shard), keys.FreeRooms(shard), keys.PlayerRooms(shard, a.UserID),
			}
			for _, state := range []string{"open", "created", "started", "finished", "cancelled", "all"} {
				left = append(left, keys.RoomIndex(shard, f.GameID, state))
			}
			for _, key := range left {
				if n, err := f.db.Client.Exists(ctx, key).Result(); err != nil || n != 0 {
					t.Errorf("%s is left, %v", key, err)
				}
			}
			mustFail(t, apierror.RoomNotFound)(brief.Join(ctx, a, room.RoomID, noKey))
		}
	})
}

func TestTwoNodesSweepAtTheSameTime(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		f.Settings.IdleTimeout = 20 * time.Millisecond
		a := f.newPlayer(100_000)
		var all []rooms.Room
		for i := range 60 {
			in := f.paidRoom("1", 2)
			if i%2 == 0 {
				in = rooms.CreateInput{MaxPlayers: 2}
			}
			all = append(all, must(t)(f.service.Create(ctx, a, in, noKey)))
		}
		var wg sync.WaitGroup
		for _, node := range []*rooms.Service{f.newService(), f.newService()} {
			wg.Go(func() {
				testkit.Report(t, node.Run(ctx))
			})
		}
		for _, r := range all {
			f.sweepUntil(r, isCancelled)
		}
		stop()
		wg.Wait()
		f.t = t
		f.requireBalance(a, 100_000, 0)
		f.requireBooksBalance()
	})
}

func TestAReplacedSweeperChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Settings.IdleTimeout = 10 * time.Millisecond
		a := f.newPlayer(1000)
		room := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		fence := keys.RoomsFence(keys.EconomyShard(f.GameID))
		testkit.Check(t, f.db.Client.Set(ctx, fence, 1_000_000, 0).Err())
		for deadline := time.Now().Add(5 * time.Second); ; {
			_, err := f.service.Sweep(ctx)
			if err != nil && strings.Contains(err.Error(), "another leader") {
				break
			}
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("an old leader sweeps: %v", err)
			}
		}
		f.requireBalance(a, 900, 100)
		testkit.Check(t, f.db.Client.Del(ctx, fence).Err())
		f.sweepUntil(room, isCancelled)
		if newest, err := f.db.Client.Get(ctx, fence).Result(); err != nil || newest == "0" {
			t.Fatalf("the fence is %s, %v", newest, err)
		}
	})
}

func TestADueRoomThatDoesNotExistIsRemovedFromTheIndex(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		due := keys.RoomsDue(keys.FreeShard(1))
		id := keys.NewRoomID(keys.FreeShard(1), time.Now(), false)
		testkit.Check(t, f.db.Client.ZAdd(t.Context(), due, redis.Z{Score: 1, Member: id}).Err())
		if n, err := f.service.Sweep(t.Context()); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if n, err := f.service.Sweep(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	})
}

// TestNothingIsHalfDoneWhenTheStoreIsKilled kills the store under load, again and again, and counts
// afterwards.
func TestNothingIsHalfDoneWhenTheStoreIsKilled(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	f := newFixture(t, db)
	players := make([]principal.Caller, 6)
	for i := range players {
		players[i] = f.newPlayer(10_000)
	}
	for round := range 3 {
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		acknowledged := make([]int, len(players))
		for i, p := range players {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					in := f.paidRoom("1", 2)
					in.AutoStart = true
					opened, err := f.service.Create(ctx, p, in, noKey)
					if err != nil {
						return
					}
					other := players[(i+1)%len(players)]
					if _, err := f.service.Join(ctx, other, opened.Room.RoomID, noKey); err != nil {
						return
					}
					results := []rooms.Placement{{UserID: p.UserID, Place: 1}, {UserID: other.UserID, Place: 1 + n%2}}
					if _, err := f.service.Finish(ctx, f.Server(), opened.Room.RoomID, results, noKey); err != nil {
						return
					}
					acknowledged[i]++
				}
			})
		}
		finished := func() int64 {
			n, _ := db.Client.ZCard(ctx, keys.RoomIndex(keys.EconomyShard(f.GameID), f.GameID, "finished")).Result()
			return n
		}
		for before := finished(); finished() < before+30; {
		}
		server.Kill()
		stop()
		wg.Wait()
		testkit.Check(t, server.Restart())
		f.requireBooksBalance()
		total := 0
		for _, n := range acknowledged {
			total += n
		}
		kept, err := db.Client.ZCard(t.Context(), keys.RoomIndex(keys.EconomyShard(f.GameID), f.GameID, "finished")).Result()
		if err != nil || kept < int64(total) {
			t.Fatalf("round %d: %d of %d finished rooms are left, %v", round, kept, total, err)
		}
	}
	// What was cut in the middle is cancelled like any other room, and everything held comes back.
	for _, status := range []rooms.Status{rooms.Created, rooms.Started} {
		page, err := f.service.AdminList(t.Context(), operator, rooms.ListQuery{Limit: 100, Status: status})
		if err != nil || page.NextCursor != "" {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, r := range page.Items {
			if n := len(listEventTypes(t, db, r)); int64(n) != r.Seq {
				t.Fatalf("room %s has %d events in its list and seq %d", r.RoomID, n, r.Seq)
			}
			must(t)(f.service.Cancel(t.Context(), operator, r.RoomID, noKey))
		}
	}
	held := int64(0)
	for _, p := range players {
		b := testkit.Must(f.wallet.ReadBalance(t.Context(), f.GameID, p.UserID, f.token.Code))(t)
		held += int64(b.HeldUnits)
	}
	if held != 0 {
		t.Fatalf("%d units are held for no room", held)
	}
	f.requireBooksBalance()
}

func TestALeaderSweepsTheGamesAndTheFreeRoomsThatAnyNodeChanged(t *testing.T) {
	eachStoreAtOnce(t, func(t *testing.T, f *fixture) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		f.Settings.IdleTimeout = 20 * time.Millisecond
		g := newFixture(t, f.db)
		g.Settings = f.Settings
		var wg sync.WaitGroup
		for _, node := range []*rooms.Service{f.service, g.service} {
			wg.Go(func() {
				testkit.Report(t, node.Run(ctx))
			})
		}
		for _, game := range []*fixture{f, g} {
			for _, in := range []rooms.CreateInput{game.paidRoom("1", 2), {MaxPlayers: 2}} {
				room := must(t)(game.service.Create(ctx, game.newPlayer(1000), in, noKey))
				redistest.Eventually(t, "the end of the room", func() bool {
					return isCancelled(game.service.Get(ctx, operator, room.RoomID))
				})
			}
		}
		stop()
		wg.Wait()
		f.requireBooksBalance()
	})
}

// A room that cannot be read must not hold up the others, in whatever number they are due.
func TestTheSweepGoesOnPastARoomThatItCannotRead(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	f.Settings.IdleTimeout = time.Millisecond
	p := f.newPlayer(100_000)
	var all []rooms.Room
	for range 300 {
		all = append(all, must(t)(f.service.Create(ctx, p, f.paidRoom("1", 2), noKey)))
	}
	unreadable := []int{0, 140, 299}
	for _, i := range unreadable {
		shard, _ := keys.RoomShard(all[i].RoomID)
		f.db.Client.HSet(ctx, keys.Room(shard, all[i].RoomID), "live", "?")
	}
	swept, err := f.service.Sweep(ctx)
	if swept != len(all)-len(unreadable) || err == nil || !strings.Contains(err.Error(), "decode the state of a room") {
		t.Fatalf("swept %d rooms, %v", swept, err)
	}
	for i, r := range all {
		if !slices.Contains(unreadable, i) && !isCancelled(f.service.Get(ctx, operator, r.RoomID)) {
			t.Fatalf("room %d is not swept", i)
		}
	}
	f.requireBalance(p, 100_000-100*int64(len(unreadable)), 100*int64(len(unreadable)))
}
