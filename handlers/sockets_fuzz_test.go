package handlers_test

import (
	"encoding/json"
	"testing"

	"github.com/parlor-games/parlor/handlers"
)

// Whatever a client sends is answered with one reply that says yes or names a refusal, and never with "internal".
func FuzzFrame(f *testing.F) {
	for _, m := range socketSpec().Components.Messages {
		for _, example := range m.Examples {
			text, err := json.Marshal(example.Payload)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, frame := range []string{
		"", "null", "[]", `{"id":"1"`, `{"id":"\ud800","type":"list"}`, `{"id":"1","type":"save","data":{"slot":"a","state":{"x":1e999,"x":2}}}`, "\xff",
		`{"id":"1","type":"room.send","data":{"roomId":"x","op":"y","to":[9223372036854775808]}}`, `{"id":"1","type":"load","data":{"slot":{}}} []`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r struct {
			ReplyTo *string
			OK      *bool
			Data    json.RawMessage
			Error   *struct{ Code, Detail string }
		}
		frame := handlers.ReplyTo(raw)
		if err := json.Unmarshal(frame, &r); err != nil {
			t.Fatalf("%q is answered with no JSON: %v: %s", raw, err, frame)
		}
		switch {
		case r.OK == nil || *r.OK == (r.Error != nil):
			t.Errorf("%q is answered neither yes nor no: %s", raw, frame)
		case *r.OK && r.ReplyTo == nil:
			t.Errorf("%q is done and its reply names nobody: %s", raw, frame)
		case !*r.OK && r.Error.Code != "invalid_json" && r.Error.Code != "invalid_request":
			t.Errorf("%q is refused as %s", raw, frame)
		}
	})
}
