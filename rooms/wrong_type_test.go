package rooms_test

import (
	"errors"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// overwrite replaces what a key holds with a string, as a careless SET does.
func (f *fixture) overwrite(key string) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.Set(f.t.Context(), key, "?", 0).Err())
}

func TestARoomOfAWrongTypeSpoilsItselfOnly(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx, ada := t.Context(), f.newPlayer(1000)
		f.Settings.IdleTimeout = time.Hour
		spoiled := must(t)(f.service.Create(ctx, ada, f.paidRoom("1", 2), noKey))
		sound := must(t)(f.service.Create(ctx, ada, f.paidRoom("1", 2), noKey))
		shard, _ := keys.RoomShard(spoiled.RoomID)
		f.overwrite(keys.Room(shard, spoiled.RoomID))
		testkit.Check(t, f.db.Client.ZAdd(ctx, keys.RoomIndex(shard, ada.GameID, "all"),
			redis.Z{Member: "zzz"}).Err()) // comes first in the list

		var problem *apierror.Error
		_, err := f.service.Get(ctx, ada, spoiled.RoomID)
		if !redisdb.IsWrongType(err) || errors.As(err, &problem) {
			t.Errorf("the room itself returns %v", err)
		}
		for name, q := range map[string]rooms.ListQuery{"open": {}, "mine": {Mine: true}} {
			if page, err := f.service.List(ctx, ada, q); err != nil || len(page.Items) != 1 ||
				page.Items[0].RoomID != sound.RoomID {
				t.Errorf("%s: %d rooms, %v", name, len(page.Items), err)
			}
		}
		page, err := f.service.AdminList(ctx, operator, rooms.ListQuery{GameID: ada.GameID})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("operator: %d rooms, %v", len(page.Items), err)
		}

		f.setBack(sound.RoomID, "changed", 2*time.Hour)
		for _, r := range []rooms.Room{spoiled, sound} {
			f.makeDue(r.RoomID)
		}
		if n, err := f.service.Sweep(ctx); n != 1 || !redisdb.IsWrongType(err) {
			t.Errorf("swept %d, %v", n, err)
		}
		if !isCancelled(f.service.Get(ctx, operator, sound.RoomID)) {
			t.Error("the other room is not swept")
		}
		if n, err := f.service.Sweep(ctx); n != 0 || err != nil { // it waits for its next turn
			t.Errorf("swept %d again, %v", n, err)
		}
		if due := int64(f.db.Client.ZScore(ctx, keys.RoomsDue(shard), spoiled.RoomID).Val()); due <
			time.Now().Add(30*time.Second).UnixMilli() {
			t.Errorf("it is due again at %v", due)
		}
	})
}

// A refund that stopped half-way would be given again with the next sweep.
func TestAWalletOfAWrongTypeIsNotRefundedAroundTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Settings.IdleTimeout = time.Hour
		ada, bob := f.newPlayer(1000), f.newPlayer(1000)
		spoiled := must(t)(f.service.Create(ctx, ada, f.paidRoom("1", 3), noKey))
		must(t)(f.service.Join(ctx, bob, spoiled.RoomID, noKey))
		sound := must(t)(f.service.Create(ctx, ada, f.paidRoom("1", 3), noKey))
		f.overwrite(keys.WalletLines(bob.GameID, bob.UserID))
		for _, r := range []rooms.Room{spoiled, sound} {
			f.setBack(r.RoomID, "changed", 2*time.Hour)
			f.makeDue(r.RoomID)
		}
		if n, err := f.service.Sweep(ctx); n != 1 || err == nil {
			t.Errorf("swept %d, %v", n, err)
		}
		f.requireBalance(ada, 900, 100) // the stake in the room that cannot end is still held
		f.makeDue(spoiled.RoomID)
		if n, err := f.service.Sweep(ctx); n != 0 || err == nil {
			t.Errorf("swept %d, %v", n, err)
		}
		f.requireBalance(ada, 900, 100)

		testkit.Check(t, f.db.Client.Del(ctx, keys.WalletLines(bob.GameID, bob.UserID)).Err())
		f.makeDue(spoiled.RoomID)
		if n, err := f.service.Sweep(ctx); n != 1 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		f.requireBalance(ada, 1000, 0)
		f.requireBalance(bob, 1000, 0)
	})
}

func TestADueIndexOfAWrongTypeLeavesTheOtherShards(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx, ada := t.Context(), f.newPlayer(1000)
		f.Settings.IdleTimeout = time.Millisecond
		paid := must(t)(f.service.Create(ctx, ada, f.paidRoom("1", 2), noKey))
		free := must(t)(f.service.Create(ctx, ada, rooms.CreateInput{MaxPlayers: 2}, noKey))
		shard, _ := keys.RoomShard(paid.RoomID)
		f.overwrite(keys.RoomsDue(shard))
		redistest.Eventually(t, "the room of another shard is swept", func() bool {
			if _, err := f.service.Sweep(ctx); !redisdb.IsWrongType(err) {
				t.Errorf("the sweep returns %v", err)
			}
			return isCancelled(f.service.Get(ctx, operator, free.RoomID))
		})
		index := keys.RoomIndex(shard, ada.GameID, "open")
		f.overwrite(index)
		testkit.Report(t, testkit.ErrorOf(f.service.List(ctx, ada, rooms.ListQuery{})), "the list returns")
	})
}
