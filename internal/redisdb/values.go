package redisdb

import "strconv"

// HashValues returns a decoder of the reply to HMGET, in the order of the fields; an absent field
// is "".
func HashValues(name string, reply []any) *Values {
	values := make([]string, len(reply))
	for i, v := range reply {
		values[i], _ = v.(string)
	}
	return NewValues(name, values)
}

// OptionalInt returns the next value as an integer, nil when it is empty.
func (v *Values) OptionalInt() *int64 {
	text := v.Text()
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		v.fail(err.Error())
	}
	return &n
}
