package redisdb

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/scripts"
)

// PackedLayout is the layout of a text that holds several values in a fixed order, 24 at most. To
// read a field of a hash costs the store more than to read a longer text.
type PackedLayout struct {
	Name      string // what is packed, for errors: "the settings of a room"
	Separator byte
	Layout    scripts.Layout
}

const maxPackedValues = 24

// Join returns the values as one text, as it is written while the store has a layout. It ends
// before the last values that older texts lack and that are "". It panics when a name of the layout
// has no value, and when a value has no name.
func (p *PackedLayout) Join(storeLayout int, values ...PackedValue) string {
	var buffer [512]byte // a room is made with two such texts
	b, end := buffer[:0], 0
	for i, name := range p.Layout.Names[:p.Layout.Written(storeLayout)] {
		at := i // its place when the values come in the order of the layout
		if at >= len(values) || values[at].name != name {
			at = slices.IndexFunc(values, func(v PackedValue) bool { return v.name == name })
		}
		if at < 0 || len(values) != len(p.Layout.Names) {
			panic("redisdb: " + p.Name + " lack the value " + name + ", or have others")
		}
		value := &values[at]
		if i > 0 {
			b = append(b, p.Separator)
		}
		if value.isNumber {
			b = strconv.AppendInt(b, value.number, 10)
		} else {
			b = append(b, value.text...)
		}
		if i < p.Layout.Required || value.isNumber || value.text != "" {
			end = len(b)
		}
	}
	return string(b[:end])
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

// Split returns the values of a text. Values that older texts lack are "", and what follows the
// last known value is ignored: a newer build wrote it. When the text has fewer values than every
// text has, the record has an error.
func (p *PackedLayout) Split(text string) PackedRecord {
	r := PackedRecord{decoding: decoding{name: p.Name}, packed: p}
	last := len(p.Layout.Names) - 1
	for i := range last {
		end := strings.IndexByte(text, p.Separator)
		if end < 0 && i+1 >= p.Layout.Required {
			r.values[i] = text
			return r
		}
		if end < 0 {
			r.fail(fmt.Errorf("%d values, want %d", i+1, p.Layout.Required))
			return r
		}
		r.values[i], text = text[:end], text[end+1:]
	}
	if end := strings.IndexByte(text, p.Separator); end >= 0 && !p.Layout.FreeText {
		text = text[:end]
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
	if names := r.packed.Layout.Names; i >= len(names) || names[i] != name {
		if i = slices.Index(names, name); i < 0 {
			panic("redisdb: " + r.packed.Name + " have no value " + name)
		}
	}
	r.next = i + 1
	return r.values[i]
}

// Int returns a value as an integer, 0 for one that the text lacks.
func (r *PackedRecord) Int(name string) int64 {
	text := r.Text(name)
	if text == "" && r.next > r.packed.Layout.Required {
		return 0
	}
	return r.parseInt("value", name, text)
}

// Bool reports whether a value is "1".
func (r *PackedRecord) Bool(name string) bool { return r.Text(name) == "1" }

// Time returns a value, in milliseconds since 1970.
func (r *PackedRecord) Time(name string) time.Time { return time.UnixMilli(r.Int(name)).UTC() }
