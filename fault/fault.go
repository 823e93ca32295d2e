package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Refusal is one "no" that is safe to show: a word of the vocabulary, optionally with a
// sentence about this case, the faulty fields, and members that help the caller.
// A Refusal is immutable; the With… methods answer a copy.
type Refusal struct {
	Code      string // the stable word, snake_case
	Status    int    // HTTP status, RFC 9110
	Title     string // the same for every refusal with this word
	Retryable bool   // the same request may succeed later

	Detail  string         // a sentence about this case, or ""
	Fields  []Field        // what is wrong with which field, or nil
	Members map[string]any // further members of the problem body, or nil
}

// Field says what is wrong with one field of a request.
type Field struct {
	Field   string `json:"field"`   // path in the body or name of the query parameter: "results[0].place"
	Code    string `json:"code"`    // "required", "unknown", "type", "range", "format", …
	Message string `json:"message"` // a sentence
}

var vocabulary = map[string]*Refusal{}

func define(code string, status int, title string, retryable bool) *Refusal {
	if _, twice := vocabulary[code]; twice {
		panic("fault: the word " + code + " is defined twice")
	}
	r := &Refusal{Code: code, Status: status, Title: title, Retryable: retryable}
	vocabulary[code] = r
	return r
}

// Lookup finds a word of the vocabulary.
func Lookup(code string) (*Refusal, bool) {
	r, ok := vocabulary[code]
	return r, ok
}

// Words lists the vocabulary in alphabetical order.
func Words() []string { return slices.Sorted(maps.Keys(vocabulary)) }

// Error gives the word and, where there is one, the sentence.
func (r *Refusal) Error() string {
	if r.Detail == "" {
		return r.Code
	}
	return r.Code + ": " + r.Detail
}

// Is makes errors.Is compare words, so that a refusal with details is still that refusal.
func (r *Refusal) Is(target error) bool {
	other, ok := target.(*Refusal)
	return ok && other.Code == r.Code
}

// Because adds a sentence about this case.
func (r *Refusal) Because(format string, args ...any) *Refusal {
	c := *r
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// With adds a member to the problem body, such as "available".
func (r *Refusal) With(name string, value any) *Refusal {
	c := *r
	c.Members = maps.Clone(r.Members)
	if c.Members == nil {
		c.Members = map[string]any{}
	}
	c.Members[name] = value
	return &c
}

// At adds a faulty field; the first one's message becomes the sentence where there is none.
func (r *Refusal) At(field, code, message string) *Refusal {
	c := *r
	c.Fields = append(slices.Clone(r.Fields), Field{Field: field, Code: code, Message: message})
	if c.Detail == "" {
		c.Detail = field + ": " + message
	}
	return &c
}

// As finds the refusal in an error chain.
func As(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}

// Faults collects what is wrong with a request, so that all of it is told at once. The zero Faults is ready to use.
type Faults struct{ refusal *Refusal }

// At notes a faulty field.
func (f *Faults) At(field, code, message string) {
	if f.refusal == nil {
		f.refusal = InvalidRequest
	}
	f.refusal = f.refusal.At(field, code, message)
}

// Add notes the faulty fields of a refusal; the first refusal gives the word. Nil and other errors are left out.
func (f *Faults) Add(err error) {
	one, ok := As(err)
	switch {
	case !ok:
	case f.refusal == nil:
		f.refusal = one
	default:
		for _, at := range one.Fields {
			f.refusal = f.refusal.At(at.Field, at.Code, at.Message)
		}
	}
}

// Err is the refusal with all of them, or nil.
func (f *Faults) Err() error {
	if f.refusal == nil {
		return nil
	}
	return f.refusal
}
