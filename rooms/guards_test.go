package rooms_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// scriptHook calls a function before each script that a client runs.
type scriptHook func(ctx context.Context, cmd redis.Cmder)

func (scriptHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h scriptHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.call(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (h scriptHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.call(ctx, cmd)
		}
		return next(ctx, cmds)
	}
}

func (h scriptHook) call(ctx context.Context, cmd redis.Cmder) {
	if strings.HasPrefix(cmd.Name(), "eval") {
		h(ctx, cmd)
	}
}

// The store's client resends a call whose reply was lost. Another call of the same player, on
// another connection, may come in between.
func TestAResendAfterAnotherCallOfTheSamePlayerChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var last atomic.Pointer[[]any]
		f.db.Client.AddHook(scriptHook(func(_ context.Context, cmd redis.Cmder) {
			args := cmd.Args()
			last.Store(&args)
		}))
		p := f.newPlayer(0)
		id := must(t)(f.service.Create(ctx, p, rooms.CreateInput{MaxPlayers: 2}, noKey)).RoomID
		must(t)(f.service.Ready(ctx, p, id, true, noKey))
		first := *last.Load()
		want := must(t)(f.service.Ready(ctx, p, id, false, noKey))
		testkit.Check(t, f.db.Client.Do(ctx, first...).Err())
		got, err := f.service.Get(ctx, p, id)
		if err != nil || got.Version != want.Version || got.Seats[0].Ready {
			t.Fatalf("version %d, ready %t, %v; want version %d and not ready",
				got.Version, got.Seats[0].Ready, err, want.Version)
		}
	})
}

func TestAForfeitedPlayerMayNotOpenTheRematch(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
		id := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 3}, noKey)).RoomID
		must(t)(f.service.Join(ctx, b, id, noKey))
		must(t)(f.service.Join(ctx, c, id, noKey))
		must(t)(f.service.Start(ctx, a, id, noKey))
		must(t)(f.service.Leave(ctx, c, id, noKey))
		placements := []rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}}
		must(t)(f.service.Finish(ctx, f.Server(), id, placements, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.Rematch(ctx, c, id, noKey))
		must(t)(f.service.Rematch(ctx, b, id, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.Rematch(ctx, c, id, noKey))
	})
}

func TestATakenCodeIsNotOverwritten(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var armed atomic.Bool
		var taken atomic.Pointer[string]
		f.db.Client.AddHook(scriptHook(func(ctx context.Context, cmd redis.Cmder) {
			for _, arg := range cmd.Args() {
				key, ok := arg.(*string) // as RunScript passes keys
				if !ok || !strings.Contains(*key, "}:code:") || !armed.CompareAndSwap(true, false) {
					continue
				}
				testkit.Report(t, f.db.Client.Set(ctx, *key, "another room", 0).Err())
				taken.Store(key)
			}
		}))
		requireOtherCode := func(do func() (rooms.ChangeResult, error)) rooms.Room {
			t.Helper()
			armed.Store(true)
			room := must(t)(do())
			key := *taken.Load()
			value, err := f.db.Client.Get(ctx, key).Result()
			if err != nil || value != "another room" || strings.HasSuffix(key, room.Code) {
				t.Fatalf("room %s has the code %s; %s is %q, %v", room.RoomID, room.Code, key, value, err)
			}
			return room
		}
		p := f.newPlayer(0)
		for _, in := range []rooms.CreateInput{{MaxPlayers: 2}, {MaxPlayers: 2, Visibility: rooms.Private}} {
			room := requireOtherCode(func() (rooms.ChangeResult, error) { return f.service.Create(ctx, p, in, noKey) })
			must(t)(f.service.Cancel(ctx, p, room.RoomID, noKey))
			requireOtherCode(func() (rooms.ChangeResult, error) { return f.service.Rematch(ctx, p, room.RoomID, noKey) })
		}
	})
}

func TestAReceiptKeepsItsLifetime(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		service := rooms.New(f.db, f.wallet, f, f, rooms.Options{Shards: shards, ReceiptTTL: time.Hour})
		p := f.newPlayer(0)
		rc := idempotency.Receipt{KeyDigest: "k", Fingerprint: "f"}
		id := must(t)(service.Create(ctx, p, rooms.CreateInput{MaxPlayers: 2}, noKey)).RoomID
		for _, call := range []string{"the first call", "the replay"} {
			must(t)(service.Ready(ctx, p, id, true, rc))
			shard, _ := keys.RoomShard(id)
			ttl, err := f.db.Client.PTTL(ctx, keys.RoomReceipt(shard, p.ActorID(), rc.KeyDigest)).Result()
			if err != nil || ttl <= 59*time.Minute || ttl > time.Hour {
				t.Errorf("after %s the receipt lives for %s, %v", call, ttl, err)
			}
		}
	})
}

func TestTheEventsOfARoomAreBounded(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	p := f.newPlayer(0)
	room := must(t)(f.service.Create(ctx, p, rooms.CreateInput{MaxPlayers: 2}, noKey))
	for i := range 600 {
		room = must(t)(f.service.Ready(ctx, p, room.RoomID, i%2 == 0, noKey))
	}
	topic, _ := f.service.EventTopic(room.RoomID)
	entries, err := f.db.Client.LRange(ctx, topic, 0, -1).Result()
	if n := len(entries); err != nil || room.Seq != 601 || n < 256 || n >= 256+64 {
		t.Errorf("%d of %d events are in the list, %v; want 256 to 319", n, room.Seq, err)
	}
	if !strings.HasPrefix(entries[len(entries)-1], room.Position+"|") {
		t.Errorf("the last entry is %s; want that at %s", entries[len(entries)-1], room.Position)
	}
}

func TestARoomIsDueWhenItsTimeIsOver(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		p := f.newPlayer(0)
		requireDue := func(r rooms.Room, want time.Time) {
			t.Helper()
			shard, _ := keys.RoomShard(r.RoomID)
			score, err := f.db.Client.ZScore(ctx, keys.RoomsDue(shard), r.RoomID).Result()
			if err != nil || int64(score) != want.UnixMilli() {
				t.Errorf("a room that is %s is due at %s, %v; want %s", r.Status, time.UnixMilli(int64(score)), err, want)
			}
		}
		create := func(idle, age time.Duration) rooms.Room {
			t.Helper()
			f.Settings.IdleTimeout, f.Settings.MaxAge, f.Settings.MatchTimeout = idle, age, 3*time.Hour
			return must(t)(f.service.Create(ctx, p, rooms.CreateInput{MaxPlayers: 2}, noKey))
		}
		room := create(2*time.Hour, time.Hour)
		requireDue(room, room.CreatedAt.Add(time.Hour))
		room = create(time.Hour, 2*time.Hour)
		requireDue(room, room.CreatedAt.Add(time.Hour))
		started := must(t)(f.service.Start(ctx, p, room.RoomID, noKey))
		requireDue(started, started.StartedAt.Add(3*time.Hour))
		placements := []rooms.Placement{{UserID: p.UserID, Place: 1}}
		finished := must(t)(f.service.Finish(ctx, f.Server(), room.RoomID, placements, noKey))
		requireDue(finished, finished.FinishedAt.Add(10*time.Minute)) // its events are dropped then
		cancelled := must(t)(f.service.Cancel(ctx, p, create(time.Hour, time.Hour).RoomID, noKey))
		requireDue(cancelled, cancelled.FinishedAt.Add(10*time.Minute))
	})
}

func TestABannedPlayerMayNotOpenTheRematch(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		host, banned := f.newPlayer(0), f.newPlayer(0)
		id := must(t)(f.service.Create(ctx, host, rooms.CreateInput{MaxPlayers: 3}, noKey)).RoomID
		must(t)(f.service.Join(ctx, banned, id, noKey))
		must(t)(f.service.Kick(ctx, host, rooms.KickInput{RoomID: id, UserID: banned.UserID, Ban: true}, noKey))
		must(t)(f.service.Start(ctx, host, id, noKey))
		must(t)(f.service.Cancel(ctx, f.Server(), id, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.Rematch(ctx, banned, id, noKey))
		must(t)(f.service.Rematch(ctx, host, id, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.Rematch(ctx, banned, id, noKey))
	})
}

func TestARoomHasABoundedNumberOfBans(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		host, first, second := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
		id := must(t)(f.service.Create(ctx, host, rooms.CreateInput{MaxPlayers: 3}, noKey)).RoomID
		must(t)(f.service.Join(ctx, first, id, noKey))
		must(t)(f.service.Join(ctx, second, id, noKey))
		shard, _ := keys.RoomShard(id)
		f.db.Client.HSet(ctx, keys.Room(shard, id), "bans", 255) // as if as many had been banned
		kick := func(p principal.Caller, ban bool) (rooms.ChangeResult, error) {
			return f.service.Kick(ctx, host, rooms.KickInput{RoomID: id, UserID: p.UserID, Ban: ban}, noKey)
		}
		must(t)(kick(first, true))
		apiErr := mustFail(t, apierror.LimitReached)(kick(second, true))
		members, err := wire.Marshal(apiErr.ExtraMembers)
		if want := `{"limit":"bans","max":256}`; err != nil || string(members) != want {
			t.Errorf("limit_reached has the members %s, %v; want %s", members, err, want)
		}
		if r := must(t)(kick(second, false)); len(r.Seats) != 1 {
			t.Errorf("after the kick without a ban the seats are %+v", r.Seats)
		}
		mustFail(t, apierror.Banned)(f.service.Join(ctx, first, id, noKey))
		must(t)(f.service.Join(ctx, second, id, noKey))
	})
}

// What Go computes is checked once more by the script: no unit of the pot may be made or lost.
func TestAResultThatDoesNotShareOutThePotIsRejected(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		var replacement atomic.Pointer[[2]string]
		f.db.Client.AddHook(scriptHook(func(_ context.Context, cmd redis.Cmder) {
			if pair := replacement.Load(); pair != nil {
				for i, arg := range cmd.Args() {
					if arg == pair[0] {
						cmd.Args()[i] = pair[1]
					}
				}
			}
		}))
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)
		in := f.paidRoom("1", 3)
		in.PayoutBps = []int{6000, 4000}
		id := must(t)(f.service.Create(ctx, a, in, noKey)).RoomID
		must(t)(f.service.Join(ctx, b, id, noKey))
		must(t)(f.service.Join(ctx, c, id, noKey))
		before := must(t)(f.service.Start(ctx, a, id, noKey))
		placements := []rooms.Placement{
			{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}, {UserID: c.UserID, Place: 3},
		}
		format := func(first, second, third int, users ...principal.Caller) string {
			return fmt.Sprintf("%d:1:%d:;%d:2:%d:;%d:3:%d:;",
				users[0].UserID, first, users[1].UserID, second, users[2].UserID, third)
		}
		right := format(180, 120, 0, a, b, c)
		for name, wrong := range map[string]string{
			"a unit too few":        format(179, 120, 0, a, b, c),
			"a unit too many":       format(180, 121, 0, a, b, c),
			"more than the pot":     format(301, 0, 0, a, b, c),
			"nothing":               "",
			"one of them twice":     format(180, 120, 0, a, b, b),
			"a seat is left out":    fmt.Sprintf("%d:1:180:;%d:2:120:;", a.UserID, b.UserID),
			"more than the largest": format(180, 120, 0, a, b, c) + "9:4:9007199254740993:;",
		} {
			replacement.Store(&[2]string{right, wrong})
			mustFail(t, apierror.VersionConflict)(f.service.Finish(ctx, f.Server(), id, placements, noKey))
			if now, err := f.service.Get(ctx, a, id); err != nil || now.Version != before.Version {
				t.Fatalf("%s: %+v, %v", name, now, err)
			}
		}
		replacement.Store(nil)
		must(t)(f.service.Leave(ctx, c, id, noKey))
		replacement.Store(&[2]string{
			fmt.Sprintf("%d:1:300:;%d:0:0:;%d:0:0:;", a.UserID, b.UserID, c.UserID),
			fmt.Sprintf("%d:1:299:;%d:0:0:;%d:0:0:;", a.UserID, b.UserID, c.UserID),
		})
		mustFail(t, apierror.VersionConflict)(f.service.Leave(ctx, b, id, noKey))
		f.requireBalance(a, 900, 100)
		replacement.Store(nil)
		must(t)(f.service.Leave(ctx, b, id, noKey))
		f.requireBalance(a, 1200, 0)
		f.requireBooksBalance()
	})
}

func TestTheEventsOfARoomAreDroppedTenMinutesAfterItsEnd(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(1000), f.newPlayer(1000)
		for name, end := range map[string]func(id string) rooms.Room{
			"finish": func(id string) rooms.Room {
				must(t)(f.service.Start(ctx, a, id, noKey))
				placements := []rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 1}}
				return must(t)(f.service.Finish(ctx, f.Server(), id, placements, noKey))
			},
			"cancel": func(id string) rooms.Room { return must(t)(f.service.Cancel(ctx, a, id, noKey)) },
			"leave": func(id string) rooms.Room {
				must(t)(f.service.Leave(ctx, a, id, noKey))
				return must(t)(f.service.Leave(ctx, b, id, noKey))
			},
			"win": func(id string) rooms.Room {
				must(t)(f.service.Start(ctx, a, id, noKey))
				return must(t)(f.service.Leave(ctx, b, id, noKey))
			},
			"kick": func(id string) rooms.Room {
				must(t)(f.service.Leave(ctx, b, id, noKey))
				return must(t)(f.service.Kick(ctx, f.Server(), rooms.KickInput{RoomID: id, UserID: a.UserID}, noKey))
			},
			"sweep": func(id string) rooms.Room {
				f.setBack(id, "changed", f.Settings.IdleTimeout)
				f.makeDue(id)
				return f.sweepUntil(rooms.Room{RoomID: id}, isCancelled)
			},
		} {
			id := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 2), noKey)).RoomID
			must(t)(f.service.Join(ctx, b, id, noKey))
			room := end(id)
			if !room.Status.Ended() {
				t.Fatalf("%s: the room is %s", name, room.Status)
			}
			shard, _ := keys.RoomShard(id)
			due := func() time.Duration {
				score := f.db.Client.ZScore(ctx, keys.RoomsDue(shard), id).Val()
				return time.UnixMilli(int64(score)).Sub(room.FinishedAt)
			}
			if due() != 10*time.Minute {
				t.Errorf("%s: the room is due after %s", name, due())
			}
			sweepAfter := func(passed time.Duration) []string {
				f.setBack(id, "finished", passed)
				f.makeDue(id)
				if n, err := f.service.Sweep(ctx); n != 1 || err != nil {
					t.Fatalf("%s: swept %d rooms, %v", name, n, err)
				}
				return f.db.Client.LRange(ctx, keys.RoomEvents(shard, id), 0, -1).Val()
			}
			if log := sweepAfter(9 * time.Minute); int64(len(log)) != room.Seq || due() != time.Minute {
				t.Errorf("%s: after 9 minutes there are %d of %d events, due after %s", name, len(log), room.Seq, due())
			}
			if log := sweepAfter(time.Minute); len(log) > 0 || due() != 24*time.Hour-10*time.Minute {
				t.Errorf("%s: after 10 minutes there are %d events, due after %s", name, len(log), due())
			}
			if now, err := f.service.Get(ctx, a, id); err != nil || now.Version != room.Version {
				t.Errorf("%s: the room is %+v, %v", name, now, err)
			}
		}
		f.requireBooksBalance()
	})
}
