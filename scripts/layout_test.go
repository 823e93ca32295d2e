package scripts_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// older is a text of a layout whose last value was added later.
const older = "1|2|3|4|5|6|7|8|9|10|11|12|13|14"

// These are texts of a build that knows more values.
const (
	newerAsset = "1|2|3||5|6|new|newer"
	newerRoom  = older + "|boards|new"

	replacedRoom = "1|2|3|4|5|77|7|8|9|10|11|12|13|14|boards|new"
)

func TestALayoutIsReadAndWrittenByTheNamesOfItsValues(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for call, want := range map[string]string{
			`return table.concat({string.match(ARGV[1], PATTERN(asset_live: version stock sold))}, ',')`: "1,,6",
			`return table.concat({string.match(ARGV[2], PATTERN(room_seat: state
  profile))}, ',')`: `active,{"a":"x|y"}`,
			`local version, on_sale, price, stock, limit, sold = '1', '2', '3', '', '5', '6'
return PACK(asset_live)`: "1|2|3||5|6",
			`local text, price = ARGV[1], '77' return REPLACE(asset_live: price in text by price)`:            "1|2|77||5|6",
			`local text, sold = ARGV[1], '77' return REPLACE(asset_live: sold in text by sold)`:               "1|2|3||5|77",
			`return table.concat({string.match(ARGV[3], PATTERN(room_settings: age_ms keep_ms feeds))}, ',')`: "13,14,",
			`return table.concat({string.match(ARGV[4], PATTERN(room_settings: entry feeds))}, ',')`:          "1,",
			`return table.concat({string.match(ARGV[5], PATTERN(room_settings: keep_ms feeds))}, ',')`:        "14,t.1.r1m1.1",
			`return table.concat({string.match(ARGV[3], PATTERN(room_settings: keep_ms))}, ',')`:              "14",
			`local text, first = ARGV[1], '77' return REPLACE(asset_live: version in text by first)`:          "77|2|3||5|6",

			// Newer texts.
			`return table.concat({string.match(ARGV[6], PATTERN(asset_live: version stock sold))}, ',')`: "1,,6",
			`return table.concat({string.match(ARGV[7], PATTERN(room_settings: keep_ms feeds))}, ',')`:   "14,boards",

			`local text, sold = ARGV[6], '77' return REPLACE(asset_live: sold in text by sold)`:       "1|2|3||5|77|new|newer",
			`local text, user = ARGV[7], '77' return REPLACE(room_settings: creator in text by user)`: replacedRoom,
		} {
			s := testkit.Must(scripts.Load(testFiles("-- test: is a test.\n"+call+"\n"), "test"))(t)
			got, err := db.Client.Eval(t.Context(), s.EmbeddedSource, []string{"k"}, "1|2|3||5|6",
				`active|1|2|3|4|{"a":"x|y"}`, older, older+"|", older+"|t.1.r1m1.1", newerAsset, newerRoom).Text()
			if err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", call, got, err, want)
			}
		}
	})
}

func TestACallOfALayoutThatCannotBeRightIsAnError(t *testing.T) {
	for call, want := range map[string]string{
		"PATTERN(asset_dead: version)":       "no layout asset_dead",
		"PATTERN(asset_live: colour)":        "no colour",
		"PATTERN(asset_live: price on_sale)": "no on_sale",
		"PACK(asset_dead)":                   "no layout asset_dead",
		"REPLACE(asset_live: a in x by y)":   "no a",

		"REPLACE(room_settings: feeds in x by y)": "no feeds that every text has",
	} {
		_, err := scripts.Load(testFiles("-- test: is a test.\nlocal x = "+call+"\n"), "test")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", call, err, want)
		}
	}
}

func TestAValueIsWrittenSinceItsLayout(t *testing.T) {
	scripts.DefineTestLayout(t, "test_card", "suit", "rank?", "wild@4", "deck@6")
	source := "-- test: is a test.\n-- FLAGS     no-writes\nlocal suit, rank, wild, deck = '1', '2', '3', '4'\n" +
		"return PACK(test_card)\n"
	s := testkit.Must(scripts.Load(testFiles(source), "test"))(t)
	db := redistest.Single(t)
	for storeLayout, want := range map[int]string{3: "1|2", 4: "1|2|3", 5: "1|2|3", 6: "1|2|3|4", 7: "1|2|3|4"} {
		text := s.TextFor(storeLayout)
		got, err := db.Client.Eval(t.Context(), text.Source, []string{"k"}).Text()
		if err != nil || got != want {
			t.Errorf("into a store with layout %d: %q, %v; want %q", storeLayout, got, err, want)
		}
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, storeLayout).Err())
		_ = db.ReadLayout(t.Context()) // a build that cannot read it writes nothing, and this one only reads
		if reply, err := db.RunScript(t.Context(), s, []string{"k"}); err != nil || reply.Status != want {
			t.Errorf("a node writes %q, %v into a store with layout %d; want %q", reply.Status, err, storeLayout, want)
		}
		if same := text == s.TextFor(storeLayout); !same {
			t.Error("a text is made anew for each call")
		}
	}
	reads := "-- test: is a test.\nreturn table.concat({string.match(ARGV[1], PATTERN(test_card: suit wild deck))}, ',')\n"
	s = testkit.Must(scripts.Load(testFiles(reads), "test"))(t)
	for text, want := range map[string]string{
		"1": "1,,", "1|2": "1,,", "1|2|3": "1,3,", "1|2|3|4": "1,3,4", "1|2|3|4|5": "1,3,4",
	} {
		got, err := db.Client.Eval(t.Context(), s.Source, []string{"k"}, text).Text()
		if err != nil || got != want {
			t.Errorf("%s is read as %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestALayoutThatCannotGrowIsNotDefined(t *testing.T) {
	for _, names := range [][]string{
		{"a", "b@4", "c"}, {"a", "b?", "c"}, {"a", "b@5", "c@4"}, {"a*", "b"}, {"a", "b@4*"}, {"a", "b@x"},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v is a layout", names)
				}
			}()
			scripts.DefineTestLayout(t, "test_wrong", names...)
		}()
	}
}
