package redisdb_test

import (
	"iter"
	"maps"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestValuesAreDecodedInOrderAndTheFirstErrorIsKept(t *testing.T) {
	v := redisdb.NewValues("a wallet", []string{"GOLD", "-5", "1700000000123"})
	if text, n, at := v.NextText(), v.NextInt(), v.NextTime(); text != "GOLD" || n != -5 ||
		at != time.UnixMilli(1_700_000_000_123).UTC() ||
		v.Remaining() != 0 ||
		v.Err() != nil {
		t.Errorf("%q %d %v, %v", text, n, at, v.Err())
	}
	if v.NextText(); v.Err() == nil {
		t.Error("a value that is not there is no error")
	}
	v = redisdb.NewValues("a wallet", []string{"x", "1"})
	if v.NextInt(); v.Err() == nil || v.NextInt() != 1 ||
		v.Err().Error() != `decode a wallet: strconv.ParseInt: parsing "x": invalid syntax` {
		t.Errorf("%v", v.Err())
	}
}

func TestAbsentFieldsAreZero(t *testing.T) {
	f := redisdb.NewFields("a game", map[string]string{"ver": "7", "at": "1700000000123", "none": "", "bad": "x"})
	if f.Int("ver") != 7 || f.Time("at").UnixMilli() != 1_700_000_000_123 || f.Int("none") != 0 || f.Int("gone") != 0 ||
		!f.Time("gone").IsZero() || f.Text("gone") != "" || f.Has("gone") || !f.Has("none") || f.Err() != nil {
		t.Errorf("%v", f.Err())
	}
	if f.Int("bad"); f.Err() == nil {
		t.Error("a text was decoded as a number")
	}
}

func TestTheErrorOfAReply(t *testing.T) {
	for status, want := range map[string]error{scripts.OK: nil, "room_full": apierror.RoomFull} {
		testkit.WantError(t, (redisdb.Reply{Status: status}).Err(scripts.RoomJoin), want, "%s", status)
	}
	for _, status := range []string{scripts.Stale, "nonsense"} {
		err := (redisdb.Reply{Status: status}).Err(scripts.RoomJoin)
		if _, expected := apierror.As(err); err == nil || expected {
			t.Errorf("%s: %v", status, err)
		}
	}
}

func TestAnEmptyNumberIsOptional(t *testing.T) {
	v := redisdb.NewValuesFromHMGet("an asset", []any{"7", nil, "", "x"})
	if n := v.NextOptionalInt(); n == nil || *n != 7 {
		t.Errorf("%v", n)
	}
	if absent, empty := v.NextOptionalInt(), v.NextOptionalInt(); absent != nil || empty != nil || v.Err() != nil {
		t.Errorf("%v, %v, %v", absent, empty, v.Err())
	}
	if v.NextOptionalInt(); v.Err() == nil {
		t.Error("a text was decoded as a number")
	}
}

func TestAFieldIsFoundInAHash(t *testing.T) {
	h := redisdb.Hash{"a", "1", "b", "", "c", "3"}
	for field, want := range map[string]bool{"a": true, "b": true, "c": true, "1": false, "d": false} {
		if _, ok := h.Get(field); ok != want {
			t.Errorf("%s is there: %v", field, ok)
		}
	}
	if h.Text("c") != "3" || h.Text("d") != "" {
		t.Error(h.Text("c"), h.Text("d"))
	}
	fields := maps.Collect(iter.Seq2[string, string](h.All))
	if want := map[string]string{"a": "1", "b": "", "c": "3"}; !maps.Equal(fields, want) {
		t.Error(fields)
	}
	if got := redisdb.HashOf(fields); len(got) != len(h) || got.Text("a") != "1" {
		t.Error(got)
	}
}
