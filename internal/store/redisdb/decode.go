package redisdb

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// decoding is what all decoders share: it keeps the first error.
type decoding struct {
	name string // what is decoded, for errors: "a wallet"
	err  error
}

// Err returns the first decoding error.
func (d *decoding) Err() error { return d.err }

func (d *decoding) fail(err error) {
	if d.err == nil {
		d.err = fmt.Errorf("decode %s: %w", d.name, err)
	}
}

// parseInt returns a text as an integer. An error names its place when it has a name: "field seq".
func (d *decoding) parseInt(kind, name, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if name != "" {
			err = fmt.Errorf("%s %s: %w", kind, name, err)
		}
		d.fail(err)
	}
	return n
}

// Values decodes texts in their order. Err returns the first one that could not be decoded.
type Values struct {
	decoding
	rest []string
}

// NewValues returns a decoder. name describes in errors what is decoded: "a wallet".
func NewValues(name string, values []string) *Values { return &Values{decoding{name: name}, values} }

// NewValuesFromHMGet returns a decoder of the reply to HMGET, in the order of its fields. An absent
// field is "".
func NewValuesFromHMGet(name string, reply []any) *Values {
	values := make([]string, len(reply))
	for i, v := range reply {
		values[i], _ = v.(string)
	}
	return NewValues(name, values)
}

// NextText returns the next value.
func (v *Values) NextText() string {
	if len(v.rest) == 0 {
		v.fail(errors.New("ends too early"))
		return ""
	}
	text := v.rest[0]
	v.rest = v.rest[1:]
	return text
}

// NextInt returns the next value as an integer.
func (v *Values) NextInt() int64 {
	return v.parseInt("", "", v.NextText())
}

// NextOptionalInt returns the next value as an integer, nil when it is empty.
func (v *Values) NextOptionalInt() *int64 {
	text := v.NextText()
	if text == "" {
		return nil
	}
	return new(v.parseInt("", "", text))
}

// NextTime returns the next value, in milliseconds since 1970.
func (v *Values) NextTime() time.Time { return time.UnixMilli(v.NextInt()).UTC() }

// Remaining returns how many values are left.
func (v *Values) Remaining() int { return len(v.rest) }

// Fields decodes the fields of a hash. Err returns the first one that could not be decoded.
type Fields struct {
	decoding
	hash Hash
}

// NewFields returns a decoder. name describes in errors what is decoded: "a wallet".
func NewFields(name string, fields map[string]string) *Fields {
	return NewFieldsOfHash(name, HashOf(fields))
}

// NewFieldsOfHash is NewFields for a Hash.
func NewFieldsOfHash(name string, hash Hash) *Fields { return &Fields{decoding{name: name}, hash} }

// NewFieldsFromHMGet returns a decoder of the reply to HMGET for the named fields.
func NewFieldsFromHMGet(name string, fields []string, reply []any) *Fields {
	hash := make(Hash, 0, 2*len(fields))
	for i, field := range fields {
		if value, ok := reply[i].(string); ok {
			hash = append(hash, field, value)
		}
	}
	return NewFieldsOfHash(name, hash)
}

// Has reports whether the field is there.
func (f *Fields) Has(field string) bool {
	_, ok := f.hash.Get(field)
	return ok
}

// Text returns a field, "" when it is absent.
func (f *Fields) Text(field string) string { return f.hash.Text(field) }

// Int returns a field as an integer, 0 when it is absent or empty.
func (f *Fields) Int(field string) int64 {
	text := f.hash.Text(field)
	if text == "" {
		return 0
	}
	return f.parseInt("field", field, text)
}

// Time returns a field that holds milliseconds since 1970, the zero time when it is absent or
// empty.
func (f *Fields) Time(field string) time.Time {
	if f.hash.Text(field) == "" {
		return time.Time{}
	}
	return time.UnixMilli(f.Int(field)).UTC()
}

// OptionalInt returns the integer in a reply, 0 when there is none.
func OptionalInt(reply *redis.StringCmd) (int64, error) {
	n, err := reply.Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, WrapError("decode a number", err)
	}
	return n, nil
}
