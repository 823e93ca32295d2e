package keys_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/keys"
	"pgregory.net/rapid"
)

func TestARoomIDTellsItsHome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		home := keys.Economy
		if rapid.Bool().Draw(t, "free") {
			home = keys.FreeShard(rapid.IntRange(0, keys.MaxShards-1).Draw(t, "home"))
		}
		id := keys.NewRoomID(home, time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "ms")))
		u, err := uuid.Parse(id)
		if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 || u.String() != id {
			t.Fatalf("%s is not a UUID of version 8: %v", id, err)
		}
		if got, ok := keys.RoomShard(id); !ok || got != home {
			t.Fatalf("%s tells %v, %v; want %v", id, got, ok, home)
		}
	})
}

func TestRoomIDsSortByAge(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 32, 26, 0, time.UTC)
	var ids []string
	for i := range 100 {
		ids = append(ids, keys.NewRoomID(keys.FreeShard(i%7), at.Add(time.Duration(i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Fatal("an older room sorts behind a younger one")
	}
}

func TestOnlyOurOwnIDsHaveAHome(t *testing.T) {
	good := keys.NewRoomID(keys.Economy, time.Now())
	for _, id := range []string{
		"", "x", strings.ToUpper(good), good + "0", good[:35], strings.ReplaceAll(good, "-", ""), "{" + good[1:], uuid.NewString(),
		"00000000-0000-8200-8000-000000000000", // kind 2
		"00000000-0000-8101-8000-000000000000", // the economy has one home
		"00000000-0000-8000-c000-000000000000", // another variant
		"0000000g-0000-8000-8000-000000000000",
	} {
		if home, ok := keys.RoomShard(id); ok {
			t.Errorf("%q has the home %v", id, home)
		}
	}
}

// What one script touches must share a tag, or it cannot run on a Cluster.
func TestKeysOfOneScriptShareATag(t *testing.T) {
	tag := func(key string) string { return key[:strings.Index(key, "}")+1] }
	for _, home := range []keys.Shard{keys.Economy, keys.FreeShard(0), keys.FreeShard(63)} {
		of := []string{
			keys.Room(home, "a"), keys.RoomEvents(home, "a"), keys.RoomReceipt(home, "u1", "k"), keys.RoomsDue(home), keys.RoomIndex(home, 1, "open"),
			keys.RoomNext(home), keys.RoomCode(home, "c"),
		}
		if home.Paid() {
			of = append(of, keys.Wallet(1), keys.WalletLines(1), keys.WalletEvents(1), keys.Totals(), keys.Ledger(), keys.Asset(1), keys.Inventory(1),
				keys.Token("GOLD"), keys.MoneyReceipt("u1", "k"))
		}
		for _, key := range of {
			if tag(key) != tag(of[0]) || tag(key) == "" {
				t.Errorf("%s is not beside %s", key, of[0])
			}
		}
	}
	if keys.Pair(3, 7) != keys.Pair(7, 3) {
		t.Error("a pair has two keys")
	}
	if keys.MoneyReceipt("u1", "k") != keys.RoomReceipt(keys.Economy, "u1", "k") {
		t.Error("a purchase and a paid room do not share receipts")
	}
}
