package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Nullable is a member of a patch for which null and absent mean different things. Its tag must
// have omitzero.
type Nullable[T any] struct {
	IsGiven bool // the member is there, null or not
	Value   *T   // nil for null
}

// Given returns the member with a value, or null for nil.
func Given[T any](value *T) Nullable[T] { return Nullable[T]{true, value} }

// SetIn sets a field to the value of a member that is there.
func (n Nullable[T]) SetIn(field **T) {
	if n.IsGiven {
		*field = n.Value
	}
}

// UnmarshalJSONFrom is called only when the member is there.
func (n *Nullable[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n.IsGiven = true
	return json.UnmarshalDecode(d, &n.Value)
}

// MarshalJSONTo writes the value. An absent member is omitted by omitzero.
func (n Nullable[T]) MarshalJSONTo(e *jsontext.Encoder) error { return json.MarshalEncode(e, n.Value) }

// Set sets a field to the value of a member of a patch that is there; nil stands for an absent one.
func Set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}
