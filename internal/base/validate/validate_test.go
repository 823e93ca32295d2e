package validate

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

func TestFaultyMembersHaveTheirCode(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 1<<10) + `"}`
	for want, check := range map[string]func(*apierror.FieldErrors){
		"unknown":           func(errs *apierror.FieldErrors) { Word(errs, "m", "c", "a", "b") },
		"unknown of none":   func(errs *apierror.FieldErrors) { Word(errs, "m", "", "a") },
		"unknown, required": func(errs *apierror.FieldErrors) { RequiredWord(errs, "m", "c", "a") },
		"required":          func(errs *apierror.FieldErrors) { RequiredWord(errs, "m", "", "a") },
		"range, too little": func(errs *apierror.FieldErrors) { Range(errs, "m", 0, 1, 2) },
		"range, too much":   func(errs *apierror.FieldErrors) { Range(errs, "m", int64(3), 1, 2) },
		"type, a list":      func(errs *apierror.FieldErrors) { Object(errs, "m", wire.RawJSON("[]"), 1) },
		"type, no UTF-8":    func(errs *apierror.FieldErrors) { Object(errs, "m", wire.RawJSON("{\"a\":\"\xff\"}"), 1) },
		"length":            func(errs *apierror.FieldErrors) { Object(errs, "m", wire.RawJSON(long), 1) },
		"range, infinite":   func(errs *apierror.FieldErrors) { Object(errs, "m", wire.RawJSON(`{"a":1e999}`), 1) },
	} {
		var errs apierror.FieldErrors
		check(&errs)
		code, _, _ := strings.Cut(want, ",")
		code, _, _ = strings.Cut(code, " ")
		e, ok := apierror.As(errs.Err())
		if !ok || len(e.FieldErrors) != 1 || e.FieldErrors[0].Field != "m" || e.FieldErrors[0].Code != code {
			t.Errorf("%s: %+v", want, e)
		}
	}
}

func TestSoundMembersPass(t *testing.T) {
	var errs apierror.FieldErrors
	Word(&errs, "m", "b", "a", "b")
	RequiredWord(&errs, "m", "a", "a")
	Range(&errs, "m", 1, 1, 1)
	for given, want := range map[string]string{"": "{}", "null": "{}", ` { "a" : 1 } `: `{"a":1}`} {
		if got := Object(&errs, "m", wire.RawJSON(given), 1); string(got) != want {
			t.Errorf("%q became %s", given, got)
		}
	}
	if err := errs.Err(); err != nil {
		t.Error(err)
	}
}
