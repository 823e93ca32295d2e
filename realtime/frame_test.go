package realtime

import (
	"math"
	"reflect"
	"testing"
)

// Events and ephemeral messages share a channel.
func TestAnEventIsNotTakenForAnEphemeralMessage(t *testing.T) {
	for seq := uint64(1); seq < math.MaxUint64/12; seq *= 11 {
		want := newEntry(position{seq, 7}, "room.message", `{"text":"a|b"}`)
		payload := want.pos.String() + "|" + want.eventType + "|" + string(want.eventJSON)
		if got, ok := parseEntry(payload); !ok || !reflect.DeepEqual(got, want) || isEphemeral(payload) {
			t.Errorf("%s is parsed as %+v, %v; ephemeral: %v", payload, got, ok, isEphemeral(payload))
		}
	}
	for _, payload := range []string{"", "1-2", "1-2|room.left", "0-2|room.left|{}", "1|room.left|{}", "-|room.left|{}"} {
		if e, ok := parseEntry(payload); ok {
			t.Errorf("%q is parsed as %+v", payload, e)
		}
	}
	m := ephemeralMessage{senderID: "abc", seq: 3, recipientUserIDs: []int64{7, 8}, frame: []byte(`{"text":"a|b"}`)}
	payload := m.encode()
	if got, ok := parseEphemeral(payload); !ok || !reflect.DeepEqual(got, m) || !isEphemeral(payload) {
		t.Errorf("%s is parsed as %+v, %v; ephemeral: %v", payload, got, ok, isEphemeral(payload))
	}
	if e, ok := parseEntry(payload); ok {
		t.Errorf("the ephemeral message is parsed as the event %+v", e)
	}
}

func FuzzParsePayload(f *testing.F) {
	f.Add("1-2|room.test|{}")
	f.Add("!a.1|7,8|{}")
	f.Add("|")
	f.Fuzz(func(t *testing.T, payload string) {
		if payload == "" {
			return
		}
		if isEphemeral(payload) {
			if m, ok := parseEphemeral(payload); ok {
				again, ok := parseEphemeral(m.encode())
				if !ok || !reflect.DeepEqual(again, m) {
					t.Fatalf("%q became %q", payload, m.encode())
				}
			}
			return
		}
		if e, ok := parseEntry(payload); ok && e.pos.seq == 0 {
			t.Fatal("an event with seq 0 is accepted")
		}
	})
}
