package keys_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"pgregory.net/rapid"
)

func TestAMigratedRoomHasItsTimeAndAnotherID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "ms"))
		isPaid := rapid.Bool().Draw(t, "paid")
		index := rapid.IntRange(0, keys.MaxShards-1).Draw(t, "shard")
		if isPaid || rapid.Bool().Draw(t, "first shard") {
			index = 0
		}
		to, kind := keys.FreeShard(index), 0
		if isPaid {
			to, kind = keys.EconomyShard(rapid.Int64Range(1, keys.MaxGameID).Draw(t, "game")), 1
		}
		random := rapid.Uint64Range(0, 1<<56-1).Draw(t, "random")
		if rapid.Bool().Draw(t, "first bits are 0") { // what the new id has there for the free shard 0
			random &= 1<<49 - 1
		}
		ms := fmt.Sprintf("%012x", at.UnixMilli())
		tail := fmt.Sprintf("%014x", random)
		old := fmt.Sprintf("%s-%s-8%d%02x-%02x%s-%s", ms[:8], ms[8:], kind, index>>6, 0x80|index&0x3f, tail[:2], tail[2:])
		migrated, ok := keys.MigrateRoomID(old, to)
		if !ok || migrated == old {
			t.Fatalf("%s becomes %q, %v", old, migrated, ok)
		}
		if again, _ := keys.MigrateRoomID(old, to); again != migrated {
			t.Fatalf("%s becomes %s and %s", old, migrated, again)
		}
		if shard, ok := keys.RoomShard(migrated); !ok || shard != to || migrated[:13] != old[:13] {
			t.Fatalf("%s becomes %s on %v, want one on %v of the same time", old, migrated, shard, to)
		}
	})
}
