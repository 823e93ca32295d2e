package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/wire"
)

// values reads the values of an entry in order and keeps the first error.
type values struct {
	rest string
	at   int64 // ms since 1970, of the entry
	err  error
}

func (v *values) next() string {
	value, rest, _ := strings.Cut(v.rest, "|")
	v.rest = rest
	return value
}

// tail returns what is left: the last value may hold any character.
func (v *values) tail() string {
	rest := v.rest
	v.rest = ""
	if rest == "" {
		v.keep(errors.New("the last value is missing"))
	}
	return rest
}

func (v *values) int() int64 {
	n, err := strconv.ParseInt(v.next(), 10, 64)
	v.keep(err)
	v.at = n
	return n
}

func (v *values) amounts(b []byte, name, unitsName, units, decimals string) []byte {
	b, err := appendAmounts(b, name, unitsName, units, decimals)
	v.keep(err)
	return b
}

func (v *values) keep(err error) {
	if v.err == nil {
		v.err = err
	}
}

func msTime(ms int64) time.Time { return time.UnixMilli(ms) }

func member(b []byte, name, value string) []byte {
	if len(b) > 0 && b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), name...), `":`...)
	return append(b, value...)
}

func quote(text string) string { return string(wire.AppendString(nil, text)) }

// appendAmounts appends an amount as a number of the token and as a string of minor units.
func appendAmounts(b []byte, name, unitsName, units, decimals string) ([]byte, error) {
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil {
		return b, fmt.Errorf("the amount %q: %w", units, err)
	}
	places, err := strconv.Atoi(decimals)
	if err != nil {
		return b, fmt.Errorf("the decimals %q: %w", decimals, err)
	}
	b = member(b, name, string(wire.AppendDecimal(nil, n, places)))
	return member(b, unitsName, `"`+units+`"`), nil
}

var (
	escaper   = strings.NewReplacer("%", "%25", "|", "%7C", ";", "%3B", "\x1f", "%1F")
	unescaper = strings.NewReplacer("%25", "%", "%7C", "|", "%3B", ";", "%1F", "\x1f")
)

// Escape makes any text fit into an entry or a packed field.
func Escape(text string) string { return escaper.Replace(text) }

// Unescape returns the text that Escape was given.
func Unescape(text string) string { return unescaper.Replace(text) }
