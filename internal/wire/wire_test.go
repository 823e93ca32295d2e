package wire_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/wire"
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
