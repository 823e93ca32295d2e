package scripts_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// eval runs code behind libraries, as a script that includes them would.
func eval(t *rapid.T, db *redisdb.DB, includes, code string, args ...any) string {
	s, err := scripts.Load(testFiles("-- test: is a test.\n-- INCLUDES  "+includes+"\n"+code), "test")
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Client.Eval(t.Context(), s.Source, nil, args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// testFiles returns the package's libraries, and a script with the name test.
func testFiles(text string) fs.FS {
	files := maps.Clone(libraries())
	files["test.lua"] = &fstest.MapFile{Data: []byte(text)}
	return files
}

var libraries = sync.OnceValue(func() fstest.MapFS {
	names, err := filepath.Glob(scripts.LibraryPrefix + "*.lua")
	if err != nil {
		panic(err)
	}
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files
})

// onBothStores checks a property on a real store and on the embedded one.
func onBothStores(t *testing.T, property func(t *rapid.T, db *redisdb.DB)) {
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
	onBothStores(t, func(t *rapid.T, db *redisdb.DB) {
		ms := rapid.Int64Range(0, 4102444800000).Draw(t, "ms") // to the year 2100
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := eval(t, db, "format_time", "return format_time(tonumber(ARGV[1]))", ms); got != want {
			t.Fatalf("%d prints as %s; want %s", ms, got, want)
		}
	})
}

func TestAmountsOfAnySizeAreComparedAndPrintedExactly(t *testing.T) {
	onBothStores(t, func(t *rapid.T, db *redisdb.DB) {
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
		got := eval(t, db, "format_decimal negate is_at_least", `
return tostring(is_at_least(ARGV[1], ARGV[2])) .. ' ' .. format_decimal(negate(ARGV[2]), ARGV[3])`,
			balance, amount, decimals)
		if got != want {
			t.Fatalf("%d against %d with %d decimals: %s; want %s", balance, amount, decimals, got, want)
		}
	})
}

func TestSumsOfAmountsOfAnySizeAreExact(t *testing.T) {
	onBothStores(t, func(t *rapid.T, db *redisdb.DB) {
		amount := rapid.OneOf(
			rapid.Int64Range(-10, 10),
			rapid.Int64Range(-1<<61, 1<<61),
			rapid.Int64Range(999_999_999_999_990, 1_000_000_000_000_010),
			rapid.Int64Range(1<<53-5, 1<<53+10), // where Lua's numbers end
		)
		had, delta := amount.Draw(t, "had"), amount.Draw(t, "delta")
		got := eval(t, db, "int_to_string hincrby_many", `redis.call('HSET', 'wallet', 'a', ARGV[1], 'b', ARGV[1])
local after = hincrby_many('wallet', {'a', 'b'}, {ARGV[2], '0'})
return after[1] .. ' ' .. after[2] .. ' ' .. table.concat(redis.call('HMGET', 'wallet', 'a', 'b'), ' ')`, had, delta)
		if want := fmt.Sprintf("%d %d %[1]d %[2]d", had+delta, had); got != want {
			t.Fatalf("%d and %d is %s; want %s", had, delta, got, want)
		}
	})
}

func TestPositiveAmountsOfAnySizeAreAddedExactly(t *testing.T) {
	onBothStores(t, func(t *rapid.T, db *redisdb.DB) {
		units := rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, 1<<61),
			rapid.Int64Range(999_999_990, 1_000_000_010))
		a, b := units.Draw(t, "a"), units.Draw(t, "b")
		got := eval(t, db, "int_to_string add_exact", "return add_exact(ARGV[1], ARGV[2])", a, b)
		if want := fmt.Sprint(a + b); got != want {
			t.Fatalf("%d + %d is %s; want %s", a, b, got, want)
		}
	})
}

// A store that cannot compile a script, or knows it by another sum than ours, could not run it.
func TestEveryScriptLoadsInBothStores(t *testing.T) {
	embedded, err := redisdb.Open(redisdb.EmbeddedURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = embedded.Close() }()
	for store, db := range map[string]*redisdb.DB{"real": redistest.Single(t), "embedded": embedded} {
		for name, s := range scripts.All() {
			sum, err := db.Client.ScriptLoad(t.Context(), s.Source).Result()
			if err != nil || sum != s.SHA {
				t.Errorf("%s in the %s store: %q, %v; want %q", name, store, sum, err, s.SHA)
			}
		}
	}
}

func TestAScriptStandsBehindTheLibrariesThatItIncludes(t *testing.T) {
	const (
		first  = "-- lib_first: is.\n-- KEYS      1 room  2 events\n-- ARGV      1 nonce  2 ids,\n--           with commas\n"
		second = "-- lib_second: is.\n-- INCLUDES  first\n-- KEYS      then wallets\n"
		third  = "-- lib_third: is not included.\n"
		body   = `-- test: is a test,
-- in two lines.
-- INCLUDES  first
--           second
-- KEYS      3 code
-- ARGV      3 step  4 number: one of 7 or 9
-- RETURNS   ok stale
-- INVARIANT numbers are
--           unique
-- A note, which is of no label.
return {'ok'}
`
	)
	files := fstest.MapFS{
		"lib_first.lua": {Data: []byte(first)}, "lib_second.lua": {Data: []byte(second)},
		"lib_third.lua": {Data: []byte(third)}, "test.lua": {Data: []byte(body)},
	}
	s, err := scripts.Load(files, "test")
	if err != nil {
		t.Fatal(err)
	}
	if want := first + second + body; s.Source != want {
		t.Errorf("source:\n%s\nwant:\n%s", s.Source, want)
	}
	got := fmt.Sprintf("%q %q %q %q %q %q", s.Keys.Names, s.Keys.Rest, s.Args.Names, s.Args.Rest, s.Statuses, s.Invariant)
	want := `["room" "events" "code"] "wallets" ["nonce" "ids, with commas" "step" "number: one of 7 or 9"] "" ` +
		`["ok" "stale"] "numbers are unique"`
	if got != want {
		t.Errorf("header: %s\nwant:   %s", got, want)
	}
}
