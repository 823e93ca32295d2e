package realtime

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// Events and ephemeral messages share a channel.
func TestAnEventIsNotTakenForAnEphemeralMessage(t *testing.T) {
	for seq := uint64(1); seq < math.MaxInt64/12; seq *= 11 {
		pos := position{seq, 7}
		payload := pos.String() + "|room.left|1795195946123|1|7|left|1|0|0"
		want := entry{first: seq, pos: pos, text: payload}
		if got, ok := parseEntry(payload); !ok || got != want || isEphemeral(payload) {
			t.Errorf("%s is parsed as %+v, %v; ephemeral: %v", payload, got, ok, isEphemeral(payload))
		}
	}
	for _, payload := range []string{
		"", "1-00000002", "1-00000002|room.left", "0-00000002|room.left|1", "0-0|room.left|1", "1|room.left|1",
		"-|room.left|1", "1-00000000|room.left|1", "1-2|room.left|1", "1-00000002|user.asset|1",
	} {
		if e, ok := parseEntry(payload); ok {
			t.Errorf("%q is parsed as %+v", payload, e)
		}
	}
	m := EphemeralMessage{senderID: "abc", seq: 3, Recipients: []int64{7, 8}, Text: []byte(`{}`)}
	payload := string(m.appendPayload(nil))
	if !isEphemeral(payload) {
		t.Errorf("%s is no ephemeral message", payload)
	}
	if e, ok := parseEntry(payload); ok {
		t.Errorf("the ephemeral message is parsed as the event %+v", e)
	}
}

func FuzzParsePayload(f *testing.F) {
	f.Add("1-00000002|room.left|1|")
	f.Add("2-00000002|user.asset|1|")
	f.Add("!a.1|7,8|{}")
	f.Add("!a.1.l.move|-7,7,8|{}")
	f.Add("!a.1.bl.3.7.1795195946123|-7,7,8|\x00|")
	f.Add("|")
	f.Fuzz(func(t *testing.T, payload string) {
		if payload == "" {
			return
		}
		if isEphemeral(payload) {
			if m, ok := parseWhole(payload); ok {
				again, ok := parseWhole(string(m.appendPayload(nil)))
				if !ok || !reflect.DeepEqual(again, m) {
					t.Fatalf("%q became %q", payload, m.appendPayload(nil))
				}
			}
			return
		}
		e, ok := parseEntry(payload)
		if ok && (e.first == 0 || e.first > e.pos.seq || !strings.HasPrefix(payload, e.pos.String()+"|")) {
			t.Fatalf("%q is parsed as %+v", payload, e)
		}
	})
}
