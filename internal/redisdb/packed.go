package redisdb

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PackedLayout is the layout of a text that holds several values in a fixed order, 24 at most. Only
// the last value may contain the separator. To read a field of a hash costs the store more than to
// read a longer text.
type PackedLayout struct {
	Name      string // what is packed, for errors: "the settings of a room"
	Separator byte
	Names     []string // of the values, in their order
	// LastMayLack means that a text may end before the separator of the last value, which is ""
	// then. Join writes texts so.
	LastMayLack bool
}

const maxPackedValues = 24

// Join returns the values as one text. It panics when a name of the layout has no value, and when a
// value has no name.
func (p *PackedLayout) Join(values ...PackedValue) string {
	var buffer [512]byte // a room is made with two such texts
	b := buffer[:0]
	for i, name := range p.Names {
		at := i // its place when the values come in the order of the layout
		if at >= len(values) || values[at].name != name {
			at = slices.IndexFunc(values, func(v PackedValue) bool { return v.name == name })
		}
		if at < 0 || len(values) != len(p.Names) {
			panic("redisdb: " + p.Name + " lack the value " + name + ", or have others")
		}
		value := &values[at]
		if p.LastMayLack && i == len(p.Names)-1 && !value.isNumber && value.text == "" {
			break
		}
		if i > 0 {
			b = append(b, p.Separator)
		}
		if value.isNumber {
			b = strconv.AppendInt(b, value.number, 10)
		} else {
			b = append(b, value.text...)
		}
	}
	return string(b)
}

// PackedValue is a value of a layout with its name.
type PackedValue struct {
	name, text string
	number     int64
	isNumber   bool
}

// PackedText returns a value that is a text.
func PackedText(name, text string) PackedValue { return PackedValue{name: name, text: text} }

// PackedInt returns a value that is an integer.
func PackedInt(name string, n int64) PackedValue {
	return PackedValue{name: name, number: n, isNumber: true}
}

// Split returns the values of a text. When their number is wrong, the record has an error.
func (p *PackedLayout) Split(text string) PackedRecord {
	r := PackedRecord{decoding: decoding{name: p.Name}, packed: p}
	last := len(p.Names) - 1
	for i := range last {
		end := strings.IndexByte(text, p.Separator)
		if end < 0 && p.LastMayLack && i == last-1 {
			r.values[i] = text
			return r
		}
		if end < 0 {
			r.fail(fmt.Errorf("%d values, want %d", i+1, len(p.Names)))
			return r
		}
		r.values[i], text = text[:end], text[end+1:]
	}
	r.values[last] = text
	return r
}

// PackedRecord decodes the values of a packed text by their names. It has no map, because a room
// has a record for each seat: a value is found at once when it is read after the one that is before
// it in the layout, and else by a search.
type PackedRecord struct {
	decoding
	packed *PackedLayout
	next   int // place of the value after the one that was read last
	values [maxPackedValues]string
}

// Text returns a value. It panics when the layout has no such name.
func (r *PackedRecord) Text(name string) string {
	i := r.next
	if i >= len(r.packed.Names) || r.packed.Names[i] != name {
		if i = slices.Index(r.packed.Names, name); i < 0 {
			panic("redisdb: " + r.packed.Name + " have no value " + name)
		}
	}
	r.next = i + 1
	return r.values[i]
}

// Int returns a value as an integer.
func (r *PackedRecord) Int(name string) int64 {
	return r.parseInt("value", name, r.Text(name))
}

// Bool reports whether a value is "1".
func (r *PackedRecord) Bool(name string) bool { return r.Text(name) == "1" }

// Time returns a value, in milliseconds since 1970.
func (r *PackedRecord) Time(name string) time.Time { return time.UnixMilli(r.Int(name)).UTC() }
