package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	at := time.Date(2026, 11, 20, 18, 32, 26, 123_456_789, time.FixedZone("", 3600))
	got, err := wire.Marshal(map[string]any{"b": at, "a": &at})
	if want := `{"a":"2026-11-20T17:32:26.123Z","b":"2026-11-20T17:32:26.123Z"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got := wire.FormatTime(at); got != "2026-11-20T17:32:26.123Z" {
		t.Error(got)
	}
}

func TestATimeIsAppendedInItsLayout(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.UnixMilli(0), time.UnixMilli(-1), time.UnixMilli(1_700_000_000_007), time.UnixMicro(1_999_999),
		time.Date(2028, 2, 29, 23, 59, 59, 999_999_999, time.FixedZone("", -3600)),
		time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, want := string(wire.AppendTime(nil, at)), `"`+wire.FormatTime(at)+`"`; got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

func TestWhichNumbersAreInfinite(t *testing.T) {
	digits := func(n int) string { return strings.Repeat("9", n) }
	for text, want := range map[string]bool{
		`1e999`: true, `-1E+999`: true, `{"a":[0,{"b":1.5e309}]}`: true, digits(309): true, "-" + digits(400) + ".5": true,
		`[1e308,2e308]`: true, `1e00000000000309`: true,
		`1e308`: false, `-1.7976931348623157e308`: false, `1e-999`: false, `0e999`: false, digits(308): false, `12`: false,
		`"1e999"`: false, `{"1e999":true}`: false, `["\"",1,"1e999"]`: false, `["\\",1e999]`: true, `"\\\"1e999"`: false,
		`null`: false, `true`: false, ``: false, `0.` + digits(1000): false,
	} {
		if got := wire.HasInfinity(wire.RawJSON(text)); got != want {
			t.Errorf("%.60s: %v", text, got)
		}
	}
}

func TestReadingIsByTheLetter(t *testing.T) {
	type request struct {
		RoomID string `json:"roomId"`
	}
	for _, test := range []struct {
		text            string
		lenient, strict bool // whether it is accepted
	}{
		{`{"roomId":"x"}`, true, true},
		{`{"roomId":"x","more":1}`, true, false},
		{`{"roomId":"x","roomId":"y"}`, false, false},
		{`{"roomid":"x"}`, true, false}, // another name, so unknown
		{"{\"roomId\":\"\xff\"}", false, false},
		{`{"roomId":"x"} `, true, true},
		{`{"roomId":"x"}x`, false, false},
	} {
		var loose, exact request
		if err := wire.Unmarshal([]byte(test.text), &loose); (err == nil) != test.lenient {
			t.Errorf("Unmarshal(%s): %v", test.text, err)
		}
		if err := wire.UnmarshalStrict([]byte(test.text), &exact); (err == nil) != test.strict {
			t.Errorf("UnmarshalStrict(%s): %v", test.text, err)
		}
	}
	var r request
	if _ = wire.Unmarshal([]byte(`{"roomid":"x"}`), &r); r.RoomID != "" {
		t.Error("a member in other case was taken for the field")
	}
}

func TestANullableTellsNullFromAbsent(t *testing.T) {
	type patch struct {
		Name wire.Nullable[string] `json:"name,omitzero"`
	}
	for text, want := range map[string]string{`{}`: "old", `{"name":null}`: "", `{"name":"new"}`: "new"} {
		var p patch
		if err := wire.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		name := new("old")
		if p.Name.SetIn(&name); name == nil {
			name = new("")
		}
		again, err := wire.Marshal(p)
		if *name != want || err != nil || string(again) != text {
			t.Errorf("%s sets %q and becomes %s, %v", text, *name, again, err)
		}
	}
}
