// Package testkit shortens the checks that every test repeats. It is for tests only.
package testkit

import (
	"context"
	"errors"
	"fmt"
)

// T is what fixtures and checks need of *testing.T, of *testing.B and of *rapid.T.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// Check ends the test if err is not nil. The report begins with doing: a format and its values.
func Check(t T, err error, doing ...any) {
	if err != nil {
		t.Helper()
		t.Fatalf("%s%v", prefix(doing), err)
	}
}

// Report is Check for a test that goes on. Any goroutine may call it.
func Report(t T, err error, doing ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%s%v", prefix(doing), err)
	}
}

// WantError reports an error that is not the one wanted. Any goroutine may call it.
func WantError(t T, err, want error, doing ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Errorf("%s%v; want %v", prefix(doing), err, want)
	}
}

// Fails is called as Fails(f())(t, want). It is WantError for a function that has a value, too.
func Fails[V any](_ V, err error) func(t T, want error, doing ...any) {
	return func(t T, want error, doing ...any) {
		t.Helper()
		WantError(t, err, want, doing...)
	}
}

// ErrorOf drops the value of a function that returns an error, too.
func ErrorOf[V any](_ V, err error) error { return err }

// Must is called as Must(f())(t). It returns the value of f, and ends the test if f failed.
func Must[V any](value V, err error) func(t T, doing ...any) V {
	return func(t T, doing ...any) V {
		t.Helper()
		Check(t, err, doing...)
		return value
	}
}

// Must2 is Must for a function with two values.
func Must2[V, W any](one V, other W, err error) func(t T, doing ...any) (V, W) {
	return func(t T, doing ...any) (V, W) {
		t.Helper()
		Check(t, err, doing...)
		return one, other
	}
}

func prefix(doing []any) string {
	if len(doing) == 0 {
		return ""
	}
	return fmt.Sprintf(doing[0].(string), doing[1:]...) + ": "
}
