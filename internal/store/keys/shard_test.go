package keys_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/store/keys"
	"pgregory.net/rapid"
)

func TestARoomIDNamesItsShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shard := keys.EconomyShard(rapid.Int64Range(1, keys.MaxGameID).Draw(t, "game"))
		if rapid.Bool().Draw(t, "free") {
			shard = keys.FreeShard(rapid.IntRange(0, keys.MaxShards-1).Draw(t, "shard"))
		}
		feeds := rapid.Bool().Draw(t, "feeds")
		id := keys.NewRoomID(shard, time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "ms")), feeds)
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 || u.String() != id {
			t.Fatalf("%s is not a UUID of version 8: %v", id, err)
		}
		if got, ok := keys.RoomShard(id); !ok || got != shard {
			t.Fatalf("%s names %v, %v; want %v", id, got, ok, shard)
		}
		if keys.RoomFeeds(id) != feeds {
			t.Fatalf("whether %s feeds is %v; want %v", id, !feeds, feeds)
		}
	})
}

func TestRoomIDsSortByAge(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 32, 26, 0, time.UTC)
	var ids []string
	for i := range 100 {
		ids = append(ids, keys.NewRoomID(keys.FreeShard(i%7), at.Add(time.Duration(i)*time.Millisecond), i%2 == 0))
	}
	if !slices.IsSorted(ids) {
		t.Fatal("an older room sorts after a newer one")
	}
}

func TestOnlyOurOwnIDsNameAShard(t *testing.T) {
	good := keys.NewRoomID(keys.EconomyShard(1), time.Now(), false)
	for _, id := range []string{
		"", "x", strings.ToUpper(good), good + "0", good[:35], strings.ReplaceAll(good, "-", ""), "{" + good[1:],
		uuid.NewString(),
		"00000000-0000-8002-8000-000000000000", // free shard 2^14
		"00000000-0000-8800-8000-000000000000", // there is no game 0
		"00000000-0000-8000-c000-000000000000", // another variant
		"0000000g-0000-8000-8000-000000000000",
		strings.Repeat("-", 36), good[:24] + "-" + good[25:], good[:35] + "-", "-" + good[1:], good[:9] + "-" + good[10:],
	} {
		if shard, ok := keys.RoomShard(id); ok {
			t.Errorf("%q names the shard %v", id, shard)
		}
	}
}

// What one script touches must share a tag, or it cannot run on a Cluster.
func TestKeysOfOneScriptShareATag(t *testing.T) {
	tag := func(key string) string { return key[:strings.Index(key, "}")+1] }
	for _, shard := range []keys.Shard{keys.EconomyShard(7), keys.FreeShard(0), keys.FreeShard(63)} {
		names := []string{
			keys.Room(shard, "a"), keys.RoomEvents(shard, "a"), keys.RoomReceipt(shard, "u1", "k"), keys.RoomsDue(shard),
			keys.RoomIndex(shard, 1, "open"), keys.PlayerRooms(shard, 1), keys.RoomsFence(shard),
			keys.RoomsMade(shard, 1), keys.Feed(shard, 7), keys.FeedHead(shard, 7),
			keys.RoomCounter(shard), keys.RoomCode(shard, "c"),
		}
		if shard.Paid() {
			names = append(names, keys.Wallet(7, 1), keys.WalletLines(7, 1), keys.Totals(7), keys.TotalsFence(7),
				keys.Ledger(7), keys.LedgerBase(7), keys.Asset(7, 1), keys.Inventory(7, 1), keys.MoneyReceipt(7, "u1", "k"))
		}
		for _, key := range names {
			if tag(key) != tag(names[0]) || tag(key) == "" {
				t.Errorf("%s has another hash tag than %s", key, names[0])
			}
		}
	}
	if keys.PlayerPair(3, 7) != keys.PlayerPair(7, 3) {
		t.Error("a pair has two keys")
	}
	if keys.MoneyReceipt(7, "u1", "k") != keys.RoomReceipt(keys.EconomyShard(7), "u1", "k") {
		t.Error("a purchase and a paid room do not share receipts")
	}
}

func TestTheRoomOfAListOfEventsIsFound(t *testing.T) {
	shard := keys.FreeShard(3)
	if id, ok := keys.ParseRoomEvents(keys.RoomEvents(shard, "a-b")); !ok || id != "a-b" {
		t.Errorf("%q, %v", id, ok)
	}
	for _, key := range []string{keys.Room(shard, "a-b"), keys.WalletLines(1, 2), keys.UserEvents(3), ""} {
		if id, ok := keys.ParseRoomEvents(key); ok {
			t.Errorf("%s has the room %q", key, id)
		}
	}
}

func TestTheShardAndTheGameOfAFeedAreFound(t *testing.T) {
	for _, shard := range []keys.Shard{keys.EconomyShard(7), keys.FreeShard(0), keys.FreeShard(63)} {
		if got, game, ok := keys.ParseFeed(keys.Feed(shard, 7)); !ok || got != shard || game != 7 {
			t.Errorf("%s is of %v, %d, %v", keys.Feed(shard, 7), got, game, ok)
		}
		for _, key := range []string{keys.FeedHead(shard, 7), keys.RoomEvents(shard, "a"), keys.RoomsDue(shard), ""} {
			if _, _, ok := keys.ParseFeed(key); ok {
				t.Errorf("%s is a feed", key)
			}
		}
	}
}
