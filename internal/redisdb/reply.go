package redisdb

import (
	"fmt"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/scripts"
)

// Reply is what a script returned: its status and the values after it.
type Reply struct {
	Status scripts.Status
	Values []string
}

// Err returns nil when the status is ok, and the error with that code otherwise. Stale, replay and
// unknown statuses are internal errors: a caller that expects them looks at Status first.
func (r Reply) Err(s *scripts.Script) error {
	if r.Status == scripts.OK {
		return nil
	}
	if e, ok := apierror.Lookup(r.Status); ok {
		return e
	}
	return fmt.Errorf("run %s: unexpected status %q", s.Name, r.Status)
}

// Values decodes texts in their order. Err returns the first one that could not be decoded.
type Values struct {
	name string
	rest []string
	err  error
}

// NewValues returns a decoder. name describes in errors what is decoded: "a wallet".
func NewValues(name string, values []string) *Values { return &Values{name: name, rest: values} }

// Text returns the next value.
func (v *Values) Text() string {
	if len(v.rest) == 0 {
		v.fail("ends too early")
		return ""
	}
	text := v.rest[0]
	v.rest = v.rest[1:]
	return text
}

// Int returns the next value as an integer.
func (v *Values) Int() int64 {
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	if err != nil {
		v.fail(err.Error())
	}
	return n
}

// Time returns the next value, in milliseconds since 1970.
func (v *Values) Time() time.Time { return time.UnixMilli(v.Int()).UTC() }

// Len returns how many values are left.
func (v *Values) Len() int { return len(v.rest) }

// Err returns the first decoding error.
func (v *Values) Err() error { return v.err }

func (v *Values) fail(problem string) {
	if v.err == nil {
		v.err = fmt.Errorf("decode %s: %s", v.name, problem)
	}
}

// Fields decodes the fields of a hash. Err returns the first one that could not be decoded.
type Fields struct {
	name string
	hash map[string]string
	err  error
}

// NewFields returns a decoder. name describes in errors what is decoded: "a wallet".
func NewFields(name string, hash map[string]string) *Fields { return &Fields{name: name, hash: hash} }

// Has reports whether the field is there.
func (f *Fields) Has(field string) bool {
	_, ok := f.hash[field]
	return ok
}

// Text returns a field, "" when it is absent.
func (f *Fields) Text(field string) string { return f.hash[field] }

// Int returns a field as an integer, 0 when it is absent or empty.
func (f *Fields) Int(field string) int64 {
	text := f.hash[field]
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("decode %s: field %s: %w", f.name, field, err)
	}
	return n
}

// Time returns a field that holds milliseconds since 1970, the zero time when it is absent or
// empty.
func (f *Fields) Time(field string) time.Time {
	if f.hash[field] == "" {
		return time.Time{}
	}
	return time.UnixMilli(f.Int(field)).UTC()
}

// Err returns the first decoding error.
func (f *Fields) Err() error { return f.err }
