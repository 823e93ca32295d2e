package progress

import (
	"bytes"
	"errors"
	"iter"
	"math/big"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
)

var slotName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// checked answers the request with its state free of white space, or everything that is wrong with it.
func (in SaveInput) checked() (SaveInput, error) {
	// White space may not cost more than the state it surrounds: nothing larger is even parsed.
	if len(in.State) > 2*MaxStateBytes {
		return in, tooLarge
	}
	faults := checkSlot(in.Slot)
	if in.Version < 0 {
		faults = faults.WithField("version", "range", "must not be negative")
	}
	if len(in.State) == 0 {
		return in, faults.WithField("state", "required", "is required")
	}
	state := in.State.Clone()
	switch err := state.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		faults = faults.WithField("state", "duplicate", "names a member twice")
	case err != nil:
		faults = faults.WithField("state", "syntax", "is not valid JSON in UTF-8")
	case len(state) > MaxStateBytes:
		return in, tooLarge
	case state.Kind() != '{':
		faults = faults.WithField("state", "type", "must be an object")
	case depth(state) > MaxDepth:
		faults = faults.WithField("state", "depth", "may not be deeper than "+strconv.Itoa(MaxDepth)+" levels")
	}
	if len(faults.FieldErrors) > 0 {
		return in, faults
	}
	in.State = state
	return in, nil
}

var tooLarge = apierror.PayloadTooLarge.WithReason("a state may have at most %d bytes", MaxStateBytes)

// checkSlot answers an invalid_request whose fields are what is wrong with the name: none when it is right.
func checkSlot(name string) *apierror.Error {
	if slotName.MatchString(name) {
		return apierror.InvalidRequest
	}
	return apierror.InvalidRequest.WithField("slot", "format", "must be 1 to 64 letters, digits, '_', '.' or '-'")
}

// depth counts the levels of valid JSON: 1 for {}.
func depth(v jsontext.Value) int {
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

// children walks the members of an object, with their names as they are written, or the elements of an array, without names.
// The value must be valid.
func children(v jsontext.Value) iter.Seq2[jsontext.Value, jsontext.Value] {
	return func(yield func(name, value jsontext.Value) bool) {
		kind := v.Kind()
		if kind != '{' && kind != '[' {
			return
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true))
		read := func() jsontext.Value {
			value, err := d.ReadValue()
			if err != nil {
				return nil
			}
			end := int(d.InputOffset())
			return v[end-len(value) : end : end] // of v itself: the decoder's buffer moves on
		}
		if _, err := d.ReadToken(); err != nil {
			return
		}
		for {
			if next := d.PeekKind(); next == '}' || next == ']' || next == jsontext.KindInvalid {
				return
			}
			var name jsontext.Value
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

// text is a JSON string's content.
func text(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	unquoted, _ := jsontext.AppendUnquote(nil, v)
	return string(unquoted)
}

// put sets the value at a path, or removes it where value is nil. It answers false where something on the way is no object.
func put(doc jsontext.Value, path []string, value jsontext.Value) (jsontext.Value, bool) {
	if doc.Kind() != '{' {
		return doc, false
	}
	out := make(jsontext.Value, 0, len(doc)+len(value)+64)
	out = append(out, '{')
	add := func(name, member jsontext.Value) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), member...)
	}
	found := false
	for name, member := range children(doc) {
		if text(name) != path[0] {
			add(name, member)
			continue
		}
		found = true
		if len(path) > 1 {
			inner, ok := put(member, path[1:], value)
			if !ok {
				return doc, false
			}
			add(name, inner)
		} else if value != nil {
			add(name, value)
		}
	}
	if !found && value != nil {
		for i := len(path) - 1; i > 0; i-- {
			value, _ = put(jsontext.Value("{}"), path[i:i+1], value)
		}
		name, _ := jsontext.AppendQuote(nil, path[0])
		add(name, value)
	}
	return append(out, '}'), true
}

// Numbers of a state are compared exactly. Longer ones, or ones with a larger exponent, are no numbers to a rule: a few
// bytes must not become a million digits.
const (
	maxDigits   = 400
	maxExponent = 400
)

// number reads a JSON number exactly.
func number(v jsontext.Value) (*big.Rat, bool) {
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

// same tells whether two values mean the same: 1.0 is 1, and members have no order.
func same(a, b jsontext.Value) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case '0':
		x, okX := number(a)
		y, okY := number(b)
		if okX && okY {
			return x.Cmp(y) == 0
		}
		return bytes.Equal(a, b)
	case '"':
		return text(a) == text(b)
	case '[':
		next, stop := iter.Pull2(children(b))
		defer stop()
		for _, x := range children(a) {
			if _, y, ok := next(); !ok || !same(x, y) {
				return false
			}
		}
		_, _, more := next()
		return !more
	case '{':
		members := map[string]jsontext.Value{}
		for name, x := range children(a) {
			members[text(name)] = x
		}
		n := 0
		for name, y := range children(b) {
			x, ok := members[text(name)]
			if !ok || !same(x, y) {
				return false
			}
			n++
		}
		return n == len(members)
	default:
		return bytes.Equal(a, b)
	}
}

// length is the number of characters of a string or elements of an array.
func length(v jsontext.Value) (int, bool) {
	switch v.Kind() {
	case '"':
		return utf8.RuneCountInString(text(v)), true
	case '[':
		n := 0
		for range children(v) {
			n++
		}
		return n, true
	default:
		return 0, false
	}
}
