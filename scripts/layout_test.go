package scripts_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
)

// older is a text of a layout whose last value was added later.
const older = "1|2|3|4|5|6|7|8|9|10|11|12|13|14"

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
		} {
			s, err := scripts.Load(testFiles("-- test: is a test.\n"+call+"\n"), "test")
			if err != nil {
				t.Fatal(err)
			}
			got, err := db.Client.Eval(t.Context(), s.EmbeddedSource, []string{"k"}, "1|2|3||5|6",
				`active|1|2|3|4|{"a":"x|y"}`, older, older+"|", older+"|t.1.r1m1.1").Text()
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
