package redisdb_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/redisdb"
)

var point = redisdb.PackedLayout{Name: "a point", Separator: '|', Names: []string{"x", "at", "label"}}

func TestPackedValuesAreReadByNameAndTheLastMayContainTheSeparator(t *testing.T) {
	text := point.Join(
		redisdb.PackedInt("x", -3), redisdb.PackedText("label", "a|b"), redisdb.PackedInt("at", 1_700_000_000_123))
	if text != "-3|1700000000123|a|b" {
		t.Fatal(text)
	}
	r := point.Split(text)
	if r.Text("label") != "a|b" || r.Int("x") != -3 || r.Time("at").UnixMilli() != 1_700_000_000_123 || r.Err() != nil {
		t.Errorf("%+v", r)
	}
}

func TestPackedTextsThatDoNotFitTheLayoutHaveAnError(t *testing.T) {
	for _, text := range []string{"", "1", "1|2", "x|2|c"} {
		r := point.Split(text)
		r.Int("x")
		if r.Err() == nil {
			t.Errorf("%q has no error", text)
		}
	}
}
