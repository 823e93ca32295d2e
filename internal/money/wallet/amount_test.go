package wallet_test

import (
	"errors"
	"io"
	"math/big"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestAmountsAreDecodedExactly(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
		want     wallet.Units
	}{
		{"2.5", 6, 2500000},
		{"2.500000000", 6, 2500000},
		{"0", 0, 0},
		{"0.0", 0, 0},
		{"1e-7", 7, 1},
		{"1E2", 0, 100},
		{"12e-1", 1, 12},
		{"9007199254740991", 0, 9007199254740991},
		{"9007199254.740991", 6, 9007199254740991},
		{"0.009007199254740991", 18, 9007199254740991},
		{"007", 0, 7},
	} {
		if got, err := wallet.AmountInput(c.text).ToUnits(c.decimals); err != nil || got != c.want {
			t.Errorf("%s with %d decimals is %d, %v; want %d", c.text, c.decimals, got, err, c.want)
		}
	}
}

func TestInvalidAmountsAreRejected(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
	}{
		{"", 2},
		{"-1", 2},
		{"-0", 2},
		{"+1", 2},
		{"1.", 2},
		{".5", 2},
		{"0x10", 2},
		{"1_000", 2},
		{"NaN", 2},
		{"Infinity", 2},
		{"1e", 2},
		{"1e99999999999", 2},
		{"1e400", 2},
		{"0.001", 2},
		{"1e-3", 2},
		{"9007199254740992", 0},
		{"90071992547409.92", 2},
		{"1 ", 2},
		{"١", 2},
		{"9223372036854775808", 0},
		{"99999999999999999999999999", 0},
	} {
		if got, err := wallet.AmountInput(c.text).ToUnits(c.decimals); !errors.Is(err, apierror.InvalidAmount) {
			t.Errorf("%q with %d decimals returned %d, %v; want invalid_amount", c.text, c.decimals, got, err)
		}
	}
}

func TestDecimalAndUnitsAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := wallet.Units(rapid.Int64Range(0, int64(wallet.MaxUnits)).Draw(t, "units"))
		decimals := rapid.IntRange(0, wallet.MaxDecimals).Draw(t, "decimals")
		text := u.Decimal(decimals)
		if got, err := wallet.AmountInput(text).ToUnits(decimals); err != nil || got != u {
			t.Fatalf("%d prints as %s and is decoded as %d, %v", u, text, got, err)
		}
		exact, _ := new(big.Rat).SetString(text)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		if exact.Mul(exact, new(big.Rat).SetInt(scale)).Cmp(new(big.Rat).SetInt64(int64(u))) != 0 {
			t.Fatalf("%d with %d decimals prints as %s", u, decimals, text)
		}
		if !wire.RawJSON(text).IsValid() {
			t.Fatalf("%s is not a JSON number", text)
		}
	})
}

func TestEncodingAnAmountAllocatesNothing(t *testing.T) {
	encoder := jsontext.NewEncoder(io.Discard)
	amount := wallet.Amount{Units: -wallet.MaxUnits, Decimals: 9}
	allocations := testing.AllocsPerRun(100, func() {
		testkit.Check(t, amount.MarshalJSONTo(encoder))
	})
	if allocations != 0 {
		t.Errorf("%v allocations, want none", allocations)
	}
	text, err := wire.Marshal(map[string]any{"a": amount, "b": &amount, "c": wallet.Amount{Decimals: 2}})
	if want := `{"a":-9007199.254740991,"b":-9007199.254740991,"c":0}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
