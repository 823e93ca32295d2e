package apierror

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Error is an error that is safe to show to a client, optionally with a sentence about this case,
// the invalid fields, and further members of the problem body. It is immutable; the With… methods
// return a copy.
type Error struct {
	Code      string // snake_case
	Status    int    // HTTP status, RFC 9110
	Title     string // the same for every error with this code
	Retryable bool   // whether the same request may succeed later

	Detail       string         // a sentence about this case, or ""
	FieldErrors  []FieldError   // or nil
	ExtraMembers map[string]any // further members of the problem body, or nil
}

// FieldError is what is wrong with one field of a request.
type FieldError struct {
	Field   string `json:"field"`   // path in the body or name of the query parameter: "results[0].place"
	Code    string `json:"code"`    // "required", "unknown", "type", "range", "format", …
	Message string `json:"message"` // a sentence
}

var byCode = map[string]*Error{}

func define(code string, status int, title string, retryable bool) *Error {
	if _, twice := byCode[code]; twice {
		panic("apierror: the code " + code + " is defined twice")
	}
	e := &Error{Code: code, Status: status, Title: title, Retryable: retryable}
	byCode[code] = e
	return e
}

// Lookup returns the error with a code.
func Lookup(code string) (*Error, bool) {
	e, ok := byCode[code]
	return e, ok
}

// Codes returns all codes in alphabetical order.
func Codes() []string { return slices.Sorted(maps.Keys(byCode)) }

// Error returns the code and, when there is one, the sentence.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Code
	}
	return e.Code + ": " + e.Detail
}

// Is makes errors.Is compare codes, so that an error with details is still that error.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// WithReason returns the error with a sentence about this case.
func (e *Error) WithReason(format string, args ...any) *Error {
	c := *e
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// WithMember returns the error with a further member of the problem body, such as "available".
func (e *Error) WithMember(name string, value any) *Error {
	c := *e
	c.ExtraMembers = maps.Clone(e.ExtraMembers)
	if c.ExtraMembers == nil {
		c.ExtraMembers = map[string]any{}
	}
	c.ExtraMembers[name] = value
	return &c
}

// WithField returns the error with a further invalid field. The message of the first one is the
// sentence when there is none.
func (e *Error) WithField(field, code, message string) *Error {
	c := *e
	c.FieldErrors = append(slices.Clone(e.FieldErrors), FieldError{Field: field, Code: code, Message: message})
	if c.Detail == "" {
		c.Detail = field + ": " + message
	}
	return &c
}

// ReachedQuota returns limit_reached with the members limit and max, for a game that has as much of
// one kind as its quota allows.
func ReachedQuota(name string, most int64) *Error {
	return LimitReached.WithReason("the game has as much as it may: %s %d", name, most).
		WithMember("limit", name).WithMember("max", most)
}

// InField returns an Error about the value of a field with the name of the field. nil and other
// errors are returned as they are.
func InField(field string, err error) error {
	if e, ok := As(err); ok {
		return e.WithField(field, "format", e.Detail)
	}
	return err
}

// As returns the Error in an error chain.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// IsFinal reports whether an error is one that the same request gets again, however often it is
// sent: an expected one that no time and no change by others will cure by itself.
func IsFinal(err error) bool {
	e, ok := As(err)
	return ok && e.Status >= 400 && e.Status < 500 && !e.Retryable && e.Code != VersionConflict.Code
}

// FieldErrors collects the invalid fields of a request, so that all are reported at once. The zero
// value is ready to use.
type FieldErrors struct{ err *Error }

// Add adds an invalid field.
func (f *FieldErrors) Add(field, code, message string) {
	if f.err == nil {
		f.err = InvalidRequest
	}
	f.err = f.err.WithField(field, code, message)
}

// Merge adds the invalid fields of an Error. The first Error merged, before any field was added,
// gives the code. It ignores nil and other errors.
func (f *FieldErrors) Merge(err error) {
	one, ok := As(err)
	switch {
	case !ok:
	case f.err == nil:
		f.err = one
	default:
		for _, field := range one.FieldErrors {
			f.err = f.err.WithField(field.Field, field.Code, field.Message)
		}
	}
}

// Err returns the error with all invalid fields, or nil.
func (f *FieldErrors) Err() error {
	if f.err == nil {
		return nil
	}
	return f.err
}
