// Package wire is how Go values look as JSON, in requests, replies, events and the store: one library, one set of
// options, one time format.
//
// Reading is by the letter: names are case-sensitive, duplicate members and invalid UTF-8 are errors. encoding/json
// accepts both, which lets two readers of one request see different requests.
package wire

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TimeLayout is the one format of times: ISO 8601 in UTC with milliseconds, as time.Format takes it.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// RawJSON is a value that is JSON already and is carried as it is.
type RawJSON = jsontext.Value

var options = json.JoinOptions(json.Deterministic(true), json.WithMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error { return e.WriteValue(AppendTime(e.AvailableBuffer(), t)) }),
))

// Options returns the options of Marshal, for callers that add their own.
func Options() json.Options { return options }

// Marshal returns v as JSON, with the members of maps in order and times in TimeLayout.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Unmarshal decodes data into v and ignores unknown members: for what Parlor itself stored or another version sent.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// UnmarshalStrict decodes data into v and returns an error at an unknown member: for what callers send.
func UnmarshalStrict(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// FormatTime returns t in TimeLayout.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// AppendTime appends t as a JSON string in TimeLayout.
func AppendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, TimeLayout)
	return append(b, '"')
}
