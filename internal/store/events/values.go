package events

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// builder appends the members of an event's data, from the values of its entry. It keeps the first
// error.
type builder struct {
	json  []byte    // the event, as far as it is built
	at    time.Time // of the entry
	rest  string    // the values that were not read yet
	ended bool      // the last value was read
	err   error

	balance balanceChange // of the user.balance before another event of the same entry
}

// balanceChange is what a user.balance says, for the event behind it.
type balanceChange struct{ token, decimals, delta, ref string }

func (b *builder) keepError(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) fail(reason string) { b.keepError(errors.New(reason)) }

// next returns the next value.
func (b *builder) next() string {
	if b.ended {
		b.fail("a value is missing")
	}
	value, rest, more := strings.Cut(b.rest, "|")
	b.rest, b.ended = rest, !more
	return value
}

// nextIfGiven returns the next value, "" when builds that wrote the entry had no more.
func (b *builder) nextIfGiven() string {
	if b.ended {
		return ""
	}
	return b.next()
}

// last returns everything that is left: the last value may contain "|".
func (b *builder) last() string {
	if b.ended {
		b.fail("the last value is missing")
	}
	value := b.rest
	b.rest, b.ended = "", true
	return value
}

// readTime reads the time of the entry.
func (b *builder) readTime() { b.at = b.parseTime(b.next()) }

// parseTime returns the time of a value in ms since 1970.
func (b *builder) parseTime(value string) time.Time {
	const lastMS = 253402300799999 // of the year 9999
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms < 0 || ms > lastMS {
		b.fail("a time is not a number of milliseconds")
	}
	return time.UnixMilli(ms)
}

// name appends the name of a member. Its value must follow.
func (b *builder) name(name string) { b.json = appendName(b.json, name) }

// literal appends a member whose value is JSON.
func (b *builder) literal(name, value string) {
	b.name(name)
	b.json = append(b.json, value...)
}

func (b *builder) text(name, value string) {
	b.name(name)
	b.json = wire.AppendString(b.json, value)
}

// integer appends a member whose value is a number without a sign.
func (b *builder) integer(name, value string) {
	if !isInteger(value) {
		b.keepError(fmt.Errorf("%s is not an integer", name))
	}
	b.literal(name, value)
}

// document appends a member whose value is stored as JSON.
func (b *builder) document(name, value string) {
	b.literal(name, value)
	if stored := b.json[len(b.json)-len(value):]; !wire.RawJSON(stored).IsValid() {
		b.keepError(fmt.Errorf("%s is not JSON", name))
	}
}

func (b *builder) amount(name, unitsName, units, decimals string) {
	var err error
	b.json, err = appendAmount(b.json, name, unitsName, units, decimals)
	b.keepError(err)
}

// appendAmount appends an amount as two members: a number of the token, exact, and its minor units
// as a string.
func appendAmount(b []byte, name, unitsName, units, decimals string) ([]byte, error) {
	n, err := strconv.ParseInt(units, 10, 64)
	if err != nil || !isInteger(strings.TrimPrefix(units, "-")) || units == "-0" {
		return b, fmt.Errorf("%s is not an amount", name)
	}
	places, err := strconv.Atoi(decimals)
	if err != nil || places < 0 || places > maxDecimals {
		return b, fmt.Errorf("the decimals of %s are not a number from 0 to %d", name, maxDecimals)
	}
	b = wire.AppendDecimal(appendName(b, name), n, places)
	b = append(appendName(b, unitsName), '"')
	return append(append(b, units...), '"'), nil
}

// maxDecimals is how many decimals a token can have.
const maxDecimals = 18

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), `":`...)
}

// appendComma appends what separates the next element of an array from the one before it.
func appendComma(b []byte) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// isInteger reports whether a text is an integer of JSON without a sign, of at most 19 digits.
func isInteger(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text == "0" || text != "" && text[0] != '0' && len(text) <= 19
}

// splitList returns the elements of a list whose elements are each followed by ";". The last one
// may lack it.
func splitList(list string) iter.Seq[string] {
	list = strings.TrimSuffix(list, ";")
	if list == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(list, ";")
}

// splitPlacement returns user, place, units and score of one placement.
func splitPlacement(placement string) (parts [4]string, err error) {
	rest, more := placement, true
	for i := range parts {
		if !more {
			return parts, fmt.Errorf("a placement of %d bytes has too few parts", len(placement))
		}
		parts[i], rest, more = strings.Cut(rest, ":")
	}
	score := wire.RawJSON(parts[3])
	isScore := len(score) == 0 || score.Kind() == '0' && score.IsValid()
	if more || !isInteger(parts[0]) || !isInteger(parts[1]) || !isScore {
		return parts, fmt.Errorf("a placement of %d bytes has an invalid part", len(placement))
	}
	return parts, nil
}

var (
	escaper   = strings.NewReplacer("%", "%25", "|", "%7C", ";", "%3B", "\x1f", "%1F")
	unescaper = strings.NewReplacer("%25", "%", "%7C", "|", "%3B", ";", "%1F", "\x1f")
)

// Escape makes any text fit into an entry or a packed field: what separates their parts is replaced
// by its percent code, as in a URL.
func Escape(text string) string { return escaper.Replace(text) }

// Unescape returns the text that Escape was given.
func Unescape(text string) string { return unescaper.Replace(text) }
