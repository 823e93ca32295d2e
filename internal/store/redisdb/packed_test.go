package redisdb_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// layout returns a layout of values of which older texts lack those behind the first required ones.
func layout(required int, freeText bool, names ...string) scripts.Layout {
	return scripts.Layout{
		Name: "test", Names: names, Since: make([]int, len(names)), Required: required, FreeText: freeText,
	}
}

var point = redisdb.PackedLayout{Name: "a point", Separator: '|', Layout: layout(3, true, "x", "at", "label")}

func TestPackedValuesAreReadByNameAndAFreeTextMayContainTheSeparator(t *testing.T) {
	text := point.Join(redisdb.NewestLayout(),
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

func TestBuildsBeforeAndAfterAValueReadEachOther(t *testing.T) {
	before := redisdb.PackedLayout{Name: "a seat", Separator: '|', Layout: layout(2, false, "state", "stake")}
	after := redisdb.PackedLayout{
		Name: "a seat", Separator: '|', Layout: layout(2, false, "state", "stake", "bonus", "team"),
	}
	after.Layout.Since[3] = 4
	text, number := redisdb.PackedText, redisdb.PackedInt
	for _, tt := range []struct {
		storeLayout int
		bonus, team string
		want        string
	}{
		{3, "", "", "active|250"},
		{3, "5", "", "active|250|5"},
		{3, "5", "red", "active|250|5"}, // who reads layout 3 only would lose the team
		{4, "5", "red", "active|250|5|red"},
		{4, "", "red", "active|250||red"},
		{4, "", "", "active|250"},
	} {
		got := after.Join(tt.storeLayout, text("state", "active"), number("stake", 250), text("bonus", tt.bonus),
			text("team", tt.team))
		if got != tt.want {
			t.Errorf("%+v is %q", tt, got)
		}
		old := before.Split(got)
		if old.Text("state") != "active" || old.Int("stake") != 250 || old.Err() != nil {
			t.Errorf("%q is read by the build before as %+v", got, old)
		}
		read := after.Split(got)
		if tt.storeLayout == 4 && read.Text("team") != tt.team || read.Text("bonus") != tt.bonus || read.Err() != nil {
			t.Errorf("%q is read as %+v", got, read)
		}
	}
	lacks := after.Split("active|250")
	if lacks.Int("bonus") != 0 || lacks.Text("team") != "" || lacks.Err() != nil {
		t.Errorf("%+v, %v", lacks, lacks.Err())
	}
	if empty := before.Split("active|"); empty.Int("stake") != 0 || empty.Err() == nil {
		t.Error("a number that every text has may be empty")
	}
}
