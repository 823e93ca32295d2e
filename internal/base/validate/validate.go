// Package validate checks members of requests that several domains have: one of some words, a
// number within bounds, a JSON object. Each check adds an error for a faulty member.
package validate

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Word adds unknown for a word that is not one of the known ones.
func Word[T ~string](errs *apierror.FieldErrors, field string, word T, known ...T) {
	addUnknown(errs, field, "unknown", word, known)
}

// RequiredWord is Word that adds required for an empty word.
func RequiredWord[T ~string](errs *apierror.FieldErrors, field string, word T, known ...T) {
	code := "unknown"
	if word == "" {
		code = "required"
	}
	addUnknown(errs, field, code, word, known)
}

func addUnknown[T ~string](errs *apierror.FieldErrors, field, code string, word T, known []T) {
	if slices.Contains(known, word) {
		return
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	errs.Add(field, code, "must be one of "+strings.Join(words, ", "))
}

// Range adds range for a number that is less than least or more than most.
func Range[T int | int64](errs *apierror.FieldErrors, field string, n, least, most T) {
	if n < least || n > most {
		errs.Add(field, "range", fmt.Sprintf("must be %d to %d", least, most))
	}
}

// Object returns a JSON object without white space, {} for an absent one. It adds type, length for
// more than maxKiB without white space, and range for a number that is infinite as a float64.
func Object(errs *apierror.FieldErrors, field string, object wire.RawJSON, maxKiB int) wire.RawJSON {
	if len(object) == 0 || string(object) == "null" {
		return wire.RawJSON("{}")
	}
	compact := object.Clone()
	switch {
	case !utf8.Valid(object) || compact.Compact() != nil || compact.Kind() != '{':
		errs.Add(field, "type", "must be a JSON object")
	case len(compact) > maxKiB<<10:
		errs.Add(field, "length", fmt.Sprintf("must be at most %d KiB", maxKiB))
	case wire.HasInfinity(compact):
		errs.Add(field, "range", "has a number that is too large for a double")
	default:
		return compact
	}
	return object
}
