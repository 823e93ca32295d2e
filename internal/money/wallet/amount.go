package wallet

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Units is an amount in minor units of its token: 2.5 of a token with 6 decimals is 2500000 units.
type Units int64

// MaxUnits is the largest amount in a request, 2^53-1: the largest integer that a number in a
// browser holds exactly.
const MaxUnits Units = 1<<53 - 1

// MaxDecimals is the largest number of fraction digits of a token. An int64 has room for all of
// them.
const MaxDecimals = 18

// String returns the integer: "2500000".
func (u Units) String() string { return strconv.FormatInt(int64(u), 10) }

// Decimal returns the exact amount as a JSON number without exponent or trailing zeros: "2.5".
func (u Units) Decimal(decimals int) string { return string(u.AppendDecimal(nil, decimals)) }

// AppendDecimal appends what Decimal returns.
func (u Units) AppendDecimal(b []byte, decimals int) []byte {
	return wire.AppendDecimal(b, int64(u), decimals)
}

// AmountInput is an amount as a request spells it: a JSON number or a decimal string. It stays text
// until the token is known, and with it the number of decimals. "" stands for a missing amount.
type AmountInput string

// UnmarshalJSON takes a JSON number or string as it is; Units checks it. It returns invalid_amount
// for other types.
func (a *AmountInput) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		text = strings.Trim(text, `"`)
	}
	if text == "" || text == "null" || text[0] == '{' || text[0] == '[' || text == "true" || text == "false" {
		return apierror.InvalidAmount.WithReason("an amount is a number or a decimal string")
	}
	*a = AmountInput(text)
	return nil
}

// maxAmountBytes bounds the bytes of an amount. The longest sensible one is 16 digits, a point and
// 18 more.
const maxAmountBytes = 64

// ToUnits returns the exact amount in minor units of a token with the given decimals. Exponents are
// accepted, since JavaScript prints small numbers as 1e-7. It returns invalid_amount for anything
// but a decimal number, for negatives, for more fraction digits than the token has and above
// MaxUnits.
func (a AmountInput) ToUnits(decimals int) (Units, error) {
	digits, exponent, err := a.parse()
	if err != nil {
		return 0, err
	}
	zeros := exponent + decimals // units = digits × 10^zeros
	for zeros < 0 && strings.HasSuffix(digits, "0") {
		digits, zeros = digits[:len(digits)-1], zeros+1
	}
	switch {
	case digits == "":
		return 0, nil
	case zeros < 0:
		return 0, a.invalid("has more than " + strconv.Itoa(decimals) + " fraction digits")
	case len(digits)+zeros > len(MaxUnits.String()):
		return 0, a.invalid("is more than " + MaxUnits.String() + " minor units")
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || Units(n) > MaxUnits {
		return 0, a.invalid("is more than " + MaxUnits.String() + " minor units")
	}
	return Units(n), nil
}

// parse returns the amount as digits × 10^exponent, the digits without leading zeros.
func (a AmountInput) parse() (digits string, exponent int, err error) {
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(string(a)), "e")
	if hasExponent {
		exponent, err = strconv.Atoi(exponentText)
		if err != nil || exponent > maxAmountBytes || exponent < -maxAmountBytes {
			return "", 0, a.invalid("is not a decimal number")
		}
	}
	if strings.HasPrefix(mantissa, "-") {
		return "", 0, a.invalid("is negative")
	}
	integer, fraction, hasPoint := strings.Cut(mantissa, ".")
	if len(a) > maxAmountBytes || integer == "" || hasPoint && fraction == "" || !isDigits(integer+fraction) {
		return "", 0, a.invalid("is not a decimal number")
	}
	return strings.TrimLeft(integer+fraction, "0"), exponent - len(fraction), nil
}

// ToPositiveUnits is Units for amounts that must be more than zero. It returns invalid_amount.
func (a AmountInput) ToPositiveUnits(decimals int) (Units, error) {
	u, err := a.ToUnits(decimals)
	if err == nil && u == 0 {
		return 0, a.invalid("must be more than zero")
	}
	return u, err
}

func (a AmountInput) invalid(problem string) error {
	text := string(a)
	if len(text) > maxAmountBytes {
		text = text[:maxAmountBytes] + "…"
	}
	if text == "" {
		return apierror.InvalidAmount.WithReason("the amount is missing")
	}
	return apierror.InvalidAmount.WithReason("the amount %s %s", text, problem)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// Amount is an amount with the decimals of its token. In JSON it is an exact number.
type Amount struct {
	Units    Units // minor units
	Decimals int   // fraction digits of the token, 0 … MaxDecimals
}

// MarshalJSONTo writes the exact number.
func (a Amount) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(a.Units.AppendDecimal(e.AvailableBuffer(), a.Decimals))
}
