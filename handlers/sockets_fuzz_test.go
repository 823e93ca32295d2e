package handlers_test

import (
	"testing"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Every frame gets one reply: ok, or an error that is not "internal". The reply to a frame with an
// id has it.
func FuzzFrame(f *testing.F) {
	for _, m := range socketSpec().Components.Messages {
		for _, example := range m.Examples {
			text := testkit.Must(wire.Marshal(example.Payload))(f)
			f.Add(text)
		}
	}
	for _, frame := range []string{
		"", "null", "[]", "\xff", `{"id":"1"`, `{"id":"\ud800","type":"list"}`,
		`{"id":"1","type":"save","data":{"slot":"a","state":{"x":1e999,"x":2}}}`,
		`{"id":"1","type":"room.send","data":{"roomId":"x","op":"y","to":[9223372036854775808]}}`,
		`{"id":"1","type":"load","data":{"slot":{}}} []`,
		`{"type":"room.send","data":{"roomId":"0","op":"0"}}`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r struct {
			ReplyTo *string      `json:"replyTo"`
			OK      *bool        `json:"ok"`
			Data    wire.RawJSON `json:"data"`
			Error   *struct {
				Code string `json:"code"`
			} `json:"error"`
		}
		frame := handlers.ReplyTo(raw)
		if err := wire.Unmarshal(frame, &r); err != nil {
			t.Fatalf("the reply to %q is not JSON: %v: %s", raw, err, frame)
		}
		switch {
		case r.OK == nil || *r.OK == (r.Error != nil):
			t.Errorf("the reply to %q is neither ok nor an error: %s", raw, frame)
		case *r.OK:
			var sent struct {
				ID   string       `json:"id"`
				Type string       `json:"type"`
				Data wire.RawJSON `json:"data"`
			}
			testkit.Check(t, wire.Unmarshal(raw, &sent), "%q is no frame and is ok", raw)
			if r.ReplyTo == nil && sent.ID != "" || r.ReplyTo != nil && *r.ReplyTo != sent.ID {
				t.Errorf("the reply to %q has another id: %s", raw, frame)
			}
		case !*r.OK && r.Error.Code != "invalid_json" && r.Error.Code != "invalid_request":
			t.Errorf("the reply to %q has another error: %s", raw, frame)
		}
	})
}
