package apierror

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Error is one "no" that is safe to show: a word of the vocabulary, optionally with a
// sentence about this case, the faulty fields, and members that help the caller.
// A Refusal is immutable; the With… methods answer a copy.
type Error struct {
	Code      string // the stable word, snake_case
	Status    int    // HTTP status, RFC 9110
	Title     string // the same for every refusal with this word
	Retryable bool   // the same request may succeed later

	Detail      string         // a sentence about this case, or ""
	FieldErrors []FieldError   // what is wrong with which field, or nil
	Members     map[string]any // further members of the problem body, or nil
}

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`   // path in the body or name of the query parameter: "results[0].place"
	Code    string `json:"code"`    // "required", "unknown", "type", "range", "format", …
	Message string `json:"message"` // a sentence
}

var byCode = map[string]*Error{}

func define(code string, status int, title string, retryable bool) *Error {
	if _, twice := byCode[code]; twice {
		panic("fault: the word " + code + " is defined twice")
	}
	r := &Error{Code: code, Status: status, Title: title, Retryable: retryable}
	byCode[code] = r
	return r
}

// Lookup finds a word of the vocabulary.
func Lookup(code string) (*Error, bool) {
	r, ok := byCode[code]
	return r, ok
}

// Codes lists the vocabulary in alphabetical order.
func Codes() []string { return slices.Sorted(maps.Keys(byCode)) }

// Error gives the word and, where there is one, the sentence.
func (r *Error) Error() string {
	if r.Detail == "" {
		return r.Code
	}
	return r.Code + ": " + r.Detail
}

// Is makes errors.Is compare words, so that a refusal with details is still that refusal.
func (r *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == r.Code
}

// WithReason adds a sentence about this case.
func (r *Error) WithReason(format string, args ...any) *Error {
	c := *r
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// WithMember adds a member to the problem body, such as "available".
func (r *Error) WithMember(name string, value any) *Error {
	c := *r
	c.Members = maps.Clone(r.Members)
	if c.Members == nil {
		c.Members = map[string]any{}
	}
	c.Members[name] = value
	return &c
}

// WithField adds a faulty field; the first one's message becomes the sentence where there is none.
func (r *Error) WithField(field, code, message string) *Error {
	c := *r
	c.FieldErrors = append(slices.Clone(r.FieldErrors), FieldError{Field: field, Code: code, Message: message})
	if c.Detail == "" {
		c.Detail = field + ": " + message
	}
	return &c
}

// As finds the refusal in an error chain.
func As(err error) (*Error, bool) {
	var r *Error
	ok := errors.As(err, &r)
	return r, ok
}

// FieldErrors collects what is wrong with a request, so that all of it is told at once. The zero Faults is ready to use.
type FieldErrors struct{ err *Error }

// Add notes a faulty field.
func (f *FieldErrors) Add(field, code, message string) {
	if f.err == nil {
		f.err = InvalidRequest
	}
	f.err = f.err.WithField(field, code, message)
}

// Merge notes the faulty fields of a refusal; the first refusal gives the word. Nil and other errors are left out.
func (f *FieldErrors) Merge(err error) {
	one, ok := As(err)
	switch {
	case !ok:
	case f.err == nil:
		f.err = one
	default:
		for _, at := range one.FieldErrors {
			f.err = f.err.WithField(at.Field, at.Code, at.Message)
		}
	}
}

// Err is the refusal with all of them, or nil.
func (f *FieldErrors) Err() error {
	if f.err == nil {
		return nil
	}
	return f.err
}
