package scripts_test

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// eval runs parts and a body on a store, as a script that uses them would.
func eval(t *rapid.T, db *redisdb.DB, parts, body string, args ...any) string {
	var source strings.Builder
	for part := range strings.FieldsSeq(parts) {
		text, err := os.ReadFile("part_" + part + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	got, err := db.Client.Eval(t.Context(), source.String()+body, nil, args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// both plays a property on a real store and on the one that newcomers use.
func both(t *testing.T, property func(t *rapid.T, db *redisdb.DB)) {
	t.Run("real", func(t *testing.T) {
		db := redistest.Single(t)
		rapid.Check(t, func(t *rapid.T) { property(t, db) })
	})
	t.Run("embedded", func(t *testing.T) {
		db, err := redisdb.Open(redisdb.EmbeddedURL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		rapid.Check(t, func(t *rapid.T) { property(t, db) })
	})
}

func TestTimesArePrintedAsGoPrintsThem(t *testing.T) {
	both(t, func(t *rapid.T, db *redisdb.DB) {
		ms := rapid.Int64Range(0, 4102444800000).Draw(t, "ms") // to the year 2100
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := eval(t, db, "clock", "return iso(tonumber(ARGV[1]))", ms); got != want {
			t.Fatalf("%d prints as %s; want %s", ms, got, want)
		}
	})
}

func TestAmountsOfAnySizeAreComparedAndPrintedExactly(t *testing.T) {
	both(t, func(t *rapid.T, db *redisdb.DB) {
		units := rapid.Int64Range(0, 1<<62)
		balance, amount := units.Draw(t, "balance"), units.Draw(t, "amount")
		if rapid.Bool().Draw(t, "near") {
			amount = max(0, balance+rapid.Int64Range(-2, 2).Draw(t, "difference"))
		}
		decimals := rapid.IntRange(0, 18).Draw(t, "decimals")
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		exact := new(big.Rat).SetFrac(big.NewInt(-amount), scale).FloatString(decimals)
		if strings.Contains(exact, ".") {
			exact = strings.TrimRight(strings.TrimRight(exact, "0"), ".")
		}
		want := fmt.Sprintf("%v %s", balance >= amount, exact)
		got := eval(t, db, "clock event money", `return tostring(covers(ARGV[1], ARGV[2])) .. ' ' .. decimal(negated(ARGV[2]), ARGV[3])`, balance, amount, decimals)
		if got != want {
			t.Fatalf("%d against %d with %d decimals: %s; want %s", balance, amount, decimals, got, want)
		}
	})
}

func TestWhatIsAddedToAmountsOfAnySizeIsExact(t *testing.T) {
	both(t, func(t *rapid.T, db *redisdb.DB) {
		amount := rapid.OneOf(rapid.Int64Range(-10, 10), rapid.Int64Range(-1<<61, 1<<61), rapid.Int64Range(999_999_999_999_990, 1_000_000_000_000_010))
		had, delta := amount.Draw(t, "had"), amount.Draw(t, "delta")
		got := eval(t, db, "clock event money", `redis.call('HSET', 'purse', 'a', ARGV[1], 'b', ARGV[1])
local after = raise('purse', {'a', 'b'}, {ARGV[2], '0'})
return after[1] .. ' ' .. after[2] .. ' ' .. table.concat(redis.call('HMGET', 'purse', 'a', 'b'), ' ')`, had, delta)
		if want := fmt.Sprintf("%d %d %[1]d %[2]d", had+delta, had); got != want {
			t.Fatalf("%d and %d is %s; want %s", had, delta, got, want)
		}
	})
}

func TestAScriptCarriesOnlyTheFunctionsItReaches(t *testing.T) {
	source := scripts.RoomReady.Source
	for function, reached := range map[string]bool{"open_room": true, "autostart": true, "whole": true, "seat_of": true, "settle": false, "book": false, "plus": false} {
		if strings.Contains(source, "function "+function+"(") != reached {
			t.Errorf("room_ready carries %s: %v; want %v", function, !reached, reached)
		}
	}
}
