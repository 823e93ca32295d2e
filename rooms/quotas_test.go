package rooms_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
)

// TestARoomCountsForItsCreatorUntilItEnds makes a player reach the quota of open rooms, and then
// ends one of them in each way there is.
func TestARoomCountsForItsCreatorUntilItEnds(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		const most = 3
		limited := rooms.New(f.db, f.wallet, f, f, rooms.Options{
			Shards: shards, Retention: time.Millisecond, Quotas: rooms.Quotas{OpenRooms: most},
		})
		a, b := f.newPlayer(100_000), f.newPlayer(100_000)
		for _, in := range []rooms.CreateInput{f.paidRoom("1", 3), {MaxPlayers: 3}} {
			create := func() rooms.Room {
				t.Helper()
				return must(t)(limited.Create(ctx, a, in, noKey))
			}
			requireFull := func(when string) {
				t.Helper()
				reached := mustFail(t, apierror.LimitReached)(limited.Create(ctx, a, in, noKey))
				if limit, _ := reached.ExtraMembers["limit"].(string); limit != "rooms" {
					t.Fatalf("%s: %+v", when, reached.ExtraMembers)
				}
			}
			first := receiptOf(f.token.Code + string(in.RoomEntry))
			kept := must(t)(limited.Create(ctx, a, in, first))
			for range most - 2 {
				create()
			}
			room := create()
			requireFull("opened")
			if again := must(t)(limited.Create(ctx, a, in, first)); again.RoomID != kept.RoomID {
				t.Fatalf("the same key opens %s", again.RoomID)
			}
			must(t)(limited.Create(ctx, b, in, noKey)) // others have a quota of their own
			must(t)(limited.Join(ctx, b, room.RoomID, noKey))
			must(t)(limited.TransferHost(ctx, a, room.RoomID, b.UserID, noKey))
			requireFull("the host is another")
			must(t)(limited.Leave(ctx, a, room.RoomID, noKey))
			requireFull("left to others")

			must(t)(limited.Leave(ctx, b, room.RoomID, noKey)) // the last one ends it
			room = create()
			requireFull("after one was left by all")
			must(t)(limited.Cancel(ctx, f.Server(), room.RoomID, noKey))
			room = create()
			must(t)(limited.Join(ctx, b, room.RoomID, noKey))
			must(t)(limited.Start(ctx, a, room.RoomID, noKey))
			requireFull("started")
			must(t)(limited.Finish(ctx, f.Server(), room.RoomID,
				[]rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}}, receiptOf("r"+room.RoomID)))
			rematch := must(t)(limited.Rematch(ctx, a, room.RoomID, noKey))
			requireFull("after a rematch")
			must(t)(limited.Cancel(ctx, a, rematch.RoomID, noKey))
			f.Settings.IdleTimeout = 20 * time.Millisecond
			room = create()
			f.Settings.IdleTimeout = time.Hour
			f.sweepUntil(room, func(r rooms.Room, err error) bool { return err != nil || r.Status.Ended() })
			room = create()
			must(t)(limited.Cancel(ctx, a, room.RoomID, noKey))
			f.sweepUntil(room, func(_ rooms.Room, err error) bool { return err != nil }) // removed
			create()
			requireFull("in the end")
			shard, _ := keys.RoomShard(kept.RoomID)
			made := keys.RoomsMade(shard, a.UserID)
			if n := f.db.Client.ZCard(ctx, made).Val(); n != most {
				t.Errorf("the list has %d rooms", n)
			}
			if life := f.db.Client.PTTL(ctx, made).Val(); life <= 0 || life > f.Settings.MaxAge+f.Settings.MatchTimeout {
				t.Errorf("the list is kept for %s", life)
			}
		}
	})
}

func TestTheQuotaOfOpenRoomsHoldsInARace(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		limited := rooms.New(f.db, f.wallet, f, f, rooms.Options{Shards: shards, Quotas: rooms.Quotas{OpenRooms: 4}})
		a := f.newPlayer(0)
		var opened atomic.Int64
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				if _, err := limited.Create(t.Context(), a, rooms.CreateInput{MaxPlayers: 2}, noKey); err == nil {
					opened.Add(1)
				}
			})
		}
		group.Wait()
		if opened.Load() != 4 {
			t.Errorf("%d of 16 rooms were opened; want 4", opened.Load())
		}
	})
}
