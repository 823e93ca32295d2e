package leaderboards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/base/wire"
)

const (
	// maxDecimals is the largest number of fraction digits of a score.
	maxDecimals = 6
	// scoreBound bounds the magnitude of a score in units: the store keeps the order of the scores
	// below it exactly.
	scoreBound = 1 << 52
	// maxScoreBytes bounds the text of a score. The longest sensible one is a sign, 16 digits and a
	// point, or an exponent instead.
	maxScoreBytes = 32
)

// Score is a score of a board: units × 10^-Decimals. In JSON it is an exact number.
type Score struct {
	Units    int64
	Decimals int
}

// MarshalJSONTo writes the exact number.
func (s Score) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(wire.AppendDecimal(e.AvailableBuffer(), s.Units, s.Decimals))
}

// ScoreInput is a score as a request spells it: a JSON number or a decimal string. It stays text
// until the board is known, and with it the number of decimals. "" stands for a missing score.
type ScoreInput string

// UnmarshalJSON takes any JSON value: toUnits checks it, so that the error names the field. Null is
// a missing score.
func (s *ScoreInput) UnmarshalJSON(b []byte) error {
	*s = ScoreInput(strings.Trim(string(b), `"`))
	if *s == "null" {
		*s = ""
	}
	return nil
}

// MarshalJSON returns the text as a JSON number when it is one, else as a string.
func (s ScoreInput) MarshalJSON() ([]byte, error) {
	if number := jsontext.Value(s); number.IsValid() && number.Kind() == '0' {
		return number, nil
	}
	return wire.AppendString(nil, string(s)), nil
}

// toUnits returns the exact score in units, and a sentence when it is not one of a board with these
// decimals. Exponents are accepted, since JavaScript prints large and small numbers with them.
func (s ScoreInput) toUnits(decimals int) (units int64, problem string) {
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(string(s)), "e")
	exponent := 0
	if hasExponent {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent > maxScoreBytes || exponent < -maxScoreBytes {
			return 0, "must be a decimal number"
		}
	}
	mantissa, isNegative := strings.CutPrefix(mantissa, "-")
	integer, fraction, hasPoint := strings.Cut(mantissa, ".")
	digits := integer + fraction
	if len(s) > maxScoreBytes || integer == "" || hasPoint && fraction == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, "must be a decimal number"
	}
	digits = strings.TrimLeft(digits, "0")
	zeros := exponent - len(fraction) + decimals // units = digits × 10^zeros
	for zeros < 0 && strings.HasSuffix(digits, "0") {
		digits, zeros = digits[:len(digits)-1], zeros+1
	}
	switch {
	case digits == "":
		return 0, ""
	case zeros < 0:
		return 0, fmt.Sprintf("must have at most %d fraction digits", decimals)
	case len(digits)+zeros > len("4503599627370496"):
		return 0, "must be less than 2^52 in its last digit's unit"
	}
	units, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || units >= scoreBound {
		return 0, "must be less than 2^52 in its last digit's unit"
	}
	if isNegative {
		units = -units
	}
	return units, ""
}

// Percent is a percentage in hundredths. In JSON it is a number.
type Percent int64

// MarshalJSONTo writes the number: 99.5.
func (p Percent) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(wire.AppendDecimal(e.AvailableBuffer(), int64(p), 2))
}

// percentBehind returns how many percent of the entries are behind a rank.
func percentBehind(rank, entries int64) Percent {
	if entries <= 0 {
		return 0
	}
	return Percent(max(0, entries-rank) * 10_000 / entries)
}
