// Package wiretest decodes JSON without rounding its numbers, so that tests can compare amounts
// exactly. It is for tests only.
package wiretest

import (
	"errors"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Number is a JSON number as it is written.
type Number string

// Int64 returns the number as an integer.
func (n Number) Int64() (int64, error) { return strconv.ParseInt(string(n), 10, 64) }

var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	number, err := d.ReadValue()
	*v = Number(number)
	return err
}))

// Unmarshal is wire.Unmarshal, but a number that is decoded into an any becomes a Number.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v, exactNumbers) }
