// Package wire encodes and decodes the JSON of requests, responses, events and the store: one
// library, one set of options, one time format.
//
// Decoding is strict: names are case-sensitive, and duplicate members and invalid UTF-8 are errors.
// encoding/json accepts other case and duplicate members, so two programs could read one request
// differently.
package wire

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TimeLayout is the layout of every time, for time.Format: ISO 8601 in UTC with milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// RawJSON is encoded JSON.
type RawJSON = jsontext.Value

var options = json.JoinOptions(json.Deterministic(true), json.WithMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		return e.WriteValue(AppendTime(e.AvailableBuffer(), t))
	}),
))

// Options returns the options of Marshal, for callers that add their own.
func Options() json.Options { return options }

// Marshal returns v as JSON, with the members of maps in order and times in TimeLayout.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Unmarshal decodes data into v and ignores unknown members. It is for what Parlor stored, maybe in
// another version.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// UnmarshalStrict is Unmarshal for requests: an unknown member is an error.
func UnmarshalStrict(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true))
}

// HasInfinity reports whether valid JSON has a number that is infinite as a float64, such as 1e999.
// Most languages decode it as infinity or not at all, so what one client sends would break others.
func HasInfinity(v RawJSON) bool {
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && '0' <= c && c <= '9':
			start, isLong := i, false
			for i < len(v) && strings.IndexByte("0123456789.eE+-", v[i]) >= 0 {
				isLong = isLong || v[i]|0x20 == 'e'
				i++
			}
			// The largest float64 has 309 digits.
			if isLong || i-start >= 309 {
				if f, _ := strconv.ParseFloat(string(v[start:i]), 64); math.IsInf(f, 0) {
					return true
				}
			}
			i--
		}
	}
	return false
}

// FormatTime returns t in TimeLayout.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeLayout) }

// AppendTime appends t as a JSON string in TimeLayout.
func AppendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 1000 || year > 9999 { // no time of a record; the layout has more rules for them
		return append(t.AppendFormat(append(b, '"'), TimeLayout), '"')
	}
	hour, minute, second := t.Clock()
	millisecond := t.Nanosecond() / int(time.Millisecond)
	// Digit by digit: a room has several times, and to read the layout each time costs more.
	return append(b, '"',
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(int(month)/10), digit(int(month)), '-', digit(day/10), digit(day), 'T',
		digit(hour/10), digit(hour), ':', digit(minute/10), digit(minute), ':', digit(second/10), digit(second), '.',
		digit(millisecond/100), digit(millisecond/10), digit(millisecond), 'Z', '"')
}

// digit returns the last decimal digit of n.
func digit(n int) byte { return '0' + byte(n%10) }

// AppendString appends a text as a JSON string. Invalid UTF-8 becomes the replacement character.
func AppendString(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // the error reports invalid UTF-8
	return b
}

// AppendDecimal appends units × 10^-decimals as an exact JSON number, without an exponent or
// trailing zeros: "2.5". decimals is 0 to 18.
func AppendDecimal(b []byte, units int64, decimals int) []byte {
	if decimals == 0 {
		return strconv.AppendInt(b, units, 10)
	}
	magnitude := uint64(units)
	if units < 0 {
		b = append(b, '-')
		magnitude = -magnitude
	}
	scale := uint64(1)
	for range decimals {
		scale *= 10
	}
	b = strconv.AppendUint(b, magnitude/scale, 10)
	point := len(b)
	b = strconv.AppendUint(b, magnitude%scale+scale, 10) // a 1 in front keeps the leading zeros
	b[point] = '.'
	return bytes.TrimRight(bytes.TrimRight(b, "0"), ".")
}
