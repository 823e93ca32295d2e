package wallet

import (
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/apierror"
)

// Units is an amount in minor units of its token: 2.5 of a token with 6 decimals is 2500000 units.
type Units int64

// MaxUnits is the largest amount in a request, 2^53-1: the largest integer that a browser's number holds exactly.
const MaxUnits Units = 1<<53 - 1

// MaxDecimals bounds a token's fraction digits, so that every amount has at least one digit that counts.
const MaxDecimals = 18

// String prints the integer: "2500000".
func (u Units) String() string { return strconv.FormatInt(int64(u), 10) }

// Decimal prints the amount exactly, as a JSON number without exponent or trailing zeros: "2.5".
func (u Units) Decimal(decimals int) string { return string(u.AppendDecimal(nil, decimals)) }

// AppendDecimal appends what Decimal prints.
func (u Units) AppendDecimal(b []byte, decimals int) []byte {
	if decimals == 0 {
		return strconv.AppendInt(b, int64(u), 10)
	}
	magnitude := uint64(u)
	if u < 0 {
		b = append(b, '-')
		magnitude = -magnitude
	}
	digits := strconv.FormatUint(magnitude, 10)
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals+1-len(digits)) + digits
	}
	point := len(digits) - decimals
	b = append(b, digits[:point]...)
	if fraction := strings.TrimRight(digits[point:], "0"); fraction != "" {
		b = append(b, '.')
		b = append(b, fraction...)
	}
	return b
}

// AmountInput is an amount as a request spells it: a JSON number or a decimal string. It is kept as text
// until the token, and so the number of decimals, is known. The zero Literal means that none was given.
type AmountInput string

// UnmarshalJSON takes a JSON number or string as it stands; Units judges it.
func (l *AmountInput) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		text = strings.Trim(text, `"`)
	}
	if text == "" || text == "null" || text[0] == '{' || text[0] == '[' || text == "true" || text == "false" {
		return apierror.InvalidAmount.WithReason("an amount is a number or a decimal string")
	}
	*l = AmountInput(text)
	return nil
}

// longestLiteral bounds the text of an amount; the longest sensible one is 16 digits, a point and 18 more.
const longestLiteral = 64

// Units reads the literal exactly, for a token with the given decimals. JSON's exponents are understood, as JavaScript
// prints small numbers as 1e-7. It refuses (invalid_amount) anything else than a decimal number, negatives, more fraction
// digits than the token has, and more than MaxUnits.
func (l AmountInput) Units(decimals int) (Units, error) {
	text := string(l)
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if hasExponent {
		n, err := strconv.Atoi(exponentText)
		if err != nil || n > longestLiteral || n < -longestLiteral {
			return 0, l.refused("is not a decimal number")
		}
		exponent = n
	}
	if strings.HasPrefix(mantissa, "-") {
		return 0, l.refused("is negative")
	}
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if len(text) > longestLiteral || whole == "" || (hasPoint && fraction == "") || !isDigits(whole) || !isDigits(fraction) {
		return 0, l.refused("is not a decimal number")
	}
	// value = digits × 10^(exponent - len(fraction)); in minor units 10^decimals more.
	digits := strings.TrimLeft(whole+fraction, "0")
	shift := exponent - len(fraction) + decimals
	for shift < 0 && strings.HasSuffix(digits, "0") {
		digits, shift = digits[:len(digits)-1], shift+1
	}
	switch {
	case digits == "":
		return 0, nil
	case shift < 0:
		return 0, l.refused("has more than " + strconv.Itoa(decimals) + " fraction digits")
	case len(digits)+shift > len(MaxUnits.String()):
		return 0, l.refused("is more than " + MaxUnits.String() + " minor units")
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", shift), 10, 64)
	if err != nil || Units(n) > MaxUnits {
		return 0, l.refused("is more than " + MaxUnits.String() + " minor units")
	}
	return Units(n), nil
}

// Positive is Units for amounts that must be more than zero.
func (l AmountInput) Positive(decimals int) (Units, error) {
	u, err := l.Units(decimals)
	if err == nil && u == 0 {
		return 0, l.refused("must be more than zero")
	}
	return u, err
}

func (l AmountInput) refused(why string) error {
	text := string(l)
	if len(text) > longestLiteral {
		text = text[:longestLiteral] + "…"
	}
	if text == "" {
		return apierror.InvalidAmount.WithReason("the amount is missing")
	}
	return apierror.InvalidAmount.WithReason("the amount %s %s", text, why)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Amount is Units with their token's decimals: what the wire shows. In JSON it is an exact number.
type Amount struct {
	Units    Units
	Decimals int
}

// MarshalJSON prints the exact number.
func (a Amount) MarshalJSON() ([]byte, error) { return a.Units.AppendDecimal(nil, a.Decimals), nil }

// UnmarshalJSON is there for tests and clients in Go that read their own output; the decimals are those of the text.
func (a *Amount) UnmarshalJSON(b []byte) error {
	_, fraction, _ := strings.Cut(string(b), ".")
	u, err := AmountInput(b).Units(len(fraction))
	*a = Amount{Units: u, Decimals: len(fraction)}
	return err
}
