package scripts_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// eval runs code behind libraries, as a script that includes them would.
func eval(t *rapid.T, db *redisdb.DB, includes, code string, args ...any) string {
	s := testkit.Must(scripts.Load(testFiles("-- test: is a test.\n-- INCLUDES  "+includes+"\n"+code), "test"))(t)
	return testkit.Must(db.Client.Eval(t.Context(), s.EmbeddedSource, nil, args...).Text())(t)
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
		db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
		defer func() { _ = db.Close() }()
		rapid.Check(t, func(t *rapid.T) { property(t, db) })
	})
}

func TestAmountsOfAnySizeAreComparedAddedAndSubtractedExactly(t *testing.T) {
	onBothStores(t, func(t *rapid.T, db *redisdb.DB) {
		const most = math.MaxInt64
		amount := rapid.OneOf(
			rapid.Int64Range(0, 10),
			rapid.Int64Range(0, most),
			rapid.Int64Range(999_999_990, 1_000_000_010),                 // one limb and two
			rapid.Int64Range(999_999_999_999_990, 1_000_000_000_000_010), // one number and two limbs
			rapid.Int64Range(1<<53-5, 1<<53+10),                          // where Lua's numbers end
			rapid.Map(rapid.Int64Range(0, 9_223_372_036), func(n int64) int64 { return n * 1_000_000_000 }),
		)
		a, b := amount.Draw(t, "a"), amount.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = max(0, a-rapid.Int64Range(0, 2).Draw(t, "difference"))
		}
		larger, smaller := max(a, b), min(a, b)
		sum := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		want := fmt.Sprintf("%v %d", a >= b, larger-smaller)
		code := `local text = tostring(has_at_least(ARGV[1], ARGV[2])) .. ' ' .. subtract_amounts(ARGV[3], ARGV[4])`
		if sum.IsInt64() {
			want += " " + sum.String()
			code += ` .. ' ' .. add_amounts(ARGV[1], ARGV[2])`
		}
		if got := eval(t, db, "amounts", code+" return text", a, b, larger, smaller); got != want {
			t.Fatalf("%d and %d: %s; want %s", a, b, got, want)
		}
	})
}

// A store that cannot compile a script, or knows it by another sum than ours, could not run it.
func TestEveryScriptLoadsInBothStores(t *testing.T) {
	embedded := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	defer func() { _ = embedded.Close() }()
	for store, db := range map[string]*redisdb.DB{"real": redistest.Single(t), "embedded": embedded} {
		for name, plain := range scripts.All() {
			for _, s := range []*scripts.Script{plain, plain.WithFeed()} {
				if s == nil {
					continue
				}
				source, want := s.Source, s.SHA
				if db == embedded {
					source, want = s.EmbeddedSource, s.EmbeddedSHA
				}
				sum, err := db.Client.ScriptLoad(t.Context(), source).Result()
				if err != nil || sum != want {
					t.Errorf("%s in the %s store: %q, %v; want %q", name, store, sum, err, want)
				}
			}
		}
	}
}

func TestAScriptStandsBehindTheLibrariesThatItIncludes(t *testing.T) {
	const (
		first  = "-- lib_first: is.\n-- KEYS      1 room  2 events\n-- ARGV      1 nonce  2 ids: with\n--           commas\n"
		second = "-- lib_second: is.\n-- INCLUDES  first\n-- KEYS      then wallets\n"
		third  = "-- lib_third: is not included.\n"
		body   = `-- test: is a test,
-- in two lines.
-- INCLUDES  first
--           second
-- FLAGS     allow-oom
-- KEYS      3 code
-- ARGV      3 step  4 number: one of 7 or 9
-- RETURNS   ok stale
-- INVARIANT numbers are
--           unique
-- A note, which is of no label.
return {'ok', ARGV[NEXT_ARG]}
`
	)
	files := fstest.MapFS{
		"lib_first.lua": {Data: []byte(first)}, "lib_second.lua": {Data: []byte(second)},
		"lib_third.lua": {Data: []byte(third)}, "test.lua": {Data: []byte(body)},
	}
	s := testkit.Must(scripts.Load(files, "test"))(t)
	want := "#!lua flags=allow-oom\n" +
		"local room_key, events_key, nonce, ids = KEYS[1], KEYS[2], ARGV[1], ARGV[2]\n" + first + second +
		"local code_key, step, number = KEYS[3], ARGV[3], ARGV[4]\n" + strings.ReplaceAll(body, "NEXT_ARG", "5")
	if s.Source != want {
		t.Errorf("source:\n%s\nwant:\n%s", s.Source, want)
	}
	got := fmt.Sprintf("%q %q %q %q %q %q %q", s.Keys.Names, s.Keys.Rest, s.Args.Names, s.Args.Meanings, s.Args.Rest,
		s.Statuses, s.Invariant)
	want = `["room" "events" "code"] "wallets" ["nonce" "ids" "step" "number"] ` +
		`["" "with commas" "" "one of 7 or 9"] "" ["ok" "stale"] "numbers are unique"`
	if got != want {
		t.Errorf("header: %s\nwant:   %s", got, want)
	}
}
