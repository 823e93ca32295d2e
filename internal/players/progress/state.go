package progress

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

var slotNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// normalized returns the input with its state free of white space. It returns payload_too_large, or
// invalid_request with everything that is wrong.
func (in SaveInput) normalized() (SaveInput, error) {
	// White space may not cost more than the state that it surrounds: nothing larger is even parsed.
	if len(in.State) > 2*MaxStateBytes {
		return in, errStateTooLarge
	}
	var invalid apierror.FieldErrors
	checkSlotName(&invalid, in.Slot)
	if in.BaseVersion < 0 {
		invalid.Add("version", "range", "must not be negative")
	}
	if len(in.State) == 0 {
		invalid.Add("state", "required", "is required")
		return in, invalid.Err()
	}
	state := in.State.Clone()
	switch err := state.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		invalid.Add("state", "duplicate", "names a member twice")
	case err != nil:
		invalid.Add("state", "syntax", "is not valid JSON in UTF-8")
	case len(state) > MaxStateBytes:
		return in, errStateTooLarge
	case state.Kind() != '{':
		invalid.Add("state", "type", "must be an object")
	case jsonDepth(state) > MaxStateDepth:
		invalid.Add("state", "depth", "may not be deeper than "+strconv.Itoa(MaxStateDepth)+" levels")
	case wire.HasInfinity(state):
		invalid.Add("state", "range", "has a number that is too large for a double")
	}
	in.State = state
	return in, invalid.Err()
}

var errStateTooLarge = apierror.PayloadTooLarge.WithReason("a state may have at most %d bytes", MaxStateBytes)

// checkSlotName adds an error to invalid when no slot can have the name.
func checkSlotName(invalid *apierror.FieldErrors, name string) {
	if !slotNamePattern.MatchString(name) || name == "." || name == ".." { // no part of an address
		invalid.Add("slot", "format", "must be 1 to 64 letters, digits, '_', '.' or '-', and neither . nor ..")
	}
}

// jsonDepth returns the number of nested levels of valid JSON: 1 for {}.
func jsonDepth(v wire.RawJSON) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// members yields the members of an object, with their names as they are written, or the elements of
// an array, without names. The value must be valid JSON.
func members(v wire.RawJSON) iter.Seq2[wire.RawJSON, wire.RawJSON] {
	return func(yield func(name, value wire.RawJSON) bool) {
		kind := v.Kind()
		if kind != '{' && kind != '[' {
			return
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true))
		read := func() wire.RawJSON {
			value, err := d.ReadValue()
			if err != nil {
				return nil
			}
			end := int(d.InputOffset())
			return v[end-len(value) : end : end] // a slice of v: the decoder reuses its buffer
		}
		if _, err := d.ReadToken(); err != nil {
			return
		}
		for {
			if next := d.PeekKind(); next == '}' || next == ']' || next == jsontext.KindInvalid {
				return
			}
			var name wire.RawJSON
			if kind == '{' {
				name = read()
			}
			value := read()
			if value == nil || !yield(name, value) {
				return
			}
		}
	}
}

// unquote returns the content of a JSON string.
func unquote(v wire.RawJSON) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	content, _ := jsontext.AppendUnquote(nil, v)
	return string(content)
}

// replacement replaces the values at the paths of a tree in one walk, so that its cost does not
// grow with the number of paths.
type replacement struct {
	unreachable map[string]bool // paths that go on below a value that is not an object
}

// appendObject appends an object to out with the values at the paths of the tree replaced by those
// in values, or removed where values has none. A path inside another one is part of that one's
// value.
func (p *replacement) appendObject(
	out wire.RawJSON, t *pathTree, object wire.RawJSON, values map[string]wire.RawJSON,
) wire.RawJSON {
	start := len(out)
	out = append(out, '{')
	addName := func(name wire.RawJSON) {
		if len(out) > start+1 {
			out = append(out, ',')
		}
		out = append(append(out, name...), ':')
	}
	var found map[*pathTree]bool
	for name, member := range members(object) {
		child := t.children[unquote(name)]
		switch {
		case child == nil:
			addName(name)
			out = append(out, member...)
			continue
		case child.path != "":
			if value := values[child.path]; value != nil {
				addName(name)
				out = append(out, value...)
			}
		case member.Kind() == '{':
			addName(name)
			out = p.appendObject(out, child, member, values)
		default:
			child.addPaths(p.unreachable)
			addName(name)
			out = append(out, member...)
		}
		if found == nil {
			found = map[*pathTree]bool{}
		}
		found[child] = true
	}
	for _, name := range slices.Sorted(maps.Keys(t.children)) {
		child := t.children[name]
		if found[child] || !child.hasValue(values) {
			continue
		}
		quoted, _ := jsontext.AppendQuote(nil, name)
		addName(quoted)
		if child.path != "" {
			out = append(out, values[child.path]...)
		} else {
			out = p.appendObject(out, child, wire.RawJSON("{}"), values)
		}
	}
	return append(out, '}')
}

// Numbers of a state are compared exactly. Longer ones, or ones with a larger exponent, are not
// numbers to a rule: a few bytes must not become a million digits.
const (
	maxDigits   = 400
	maxExponent = 400
)

// parseNumber returns the exact value of a JSON number.
func parseNumber(v wire.RawJSON) (*big.Rat, bool) {
	if len(v) == 0 || len(v) > maxDigits || v.Kind() != '0' {
		return nil, false
	}
	if e := bytes.IndexAny(v, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(string(v[e+1:]))
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(v))
}

// equalJSON reports whether two values mean the same: 1.0 equals 1, and members have no order.
func equalJSON(a, b wire.RawJSON) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case '0':
		x, okX := parseNumber(a)
		y, okY := parseNumber(b)
		if okX && okY {
			return x.Cmp(y) == 0
		}
		return bytes.Equal(a, b)
	case '"':
		return unquote(a) == unquote(b)
	case '[':
		return equalArrays(a, b)
	case '{':
		return equalObjects(a, b)
	default:
		return bytes.Equal(a, b)
	}
}

func equalArrays(a, b wire.RawJSON) bool {
	next, stop := iter.Pull2(members(b))
	defer stop()
	for _, x := range members(a) {
		if _, y, ok := next(); !ok || !equalJSON(x, y) {
			return false
		}
	}
	_, _, more := next()
	return !more
}

func equalObjects(a, b wire.RawJSON) bool {
	values := map[string]wire.RawJSON{}
	for name, x := range members(a) {
		values[unquote(name)] = x
	}
	n := 0
	for name, y := range members(b) {
		x, ok := values[unquote(name)]
		if !ok || !equalJSON(x, y) {
			return false
		}
		n++
	}
	return n == len(values)
}

// jsonLength returns the number of characters of a string or elements of an array.
func jsonLength(v wire.RawJSON) (int, bool) {
	switch v.Kind() {
	case '"':
		return utf8.RuneCountInString(unquote(v)), true
	case '[':
		n := 0
		for range members(v) {
			n++
		}
		return n, true
	default:
		return 0, false
	}
}
