package wallet_test

import (
	"math/big"
	"testing"

	"github.com/parlor-games/parlor/internal/money/wallet"
)

// FuzzAmount reads any text as an amount. What is accepted is exact, by big rationals, and reads as
// the same when it is written.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{
		"0", "1", "1.5", "0.07", "1e-2", "90071992547409.91", "90071992547409.92", "1e64", "0e999", "00.10", "+1", "-0",
		".5", "5.", "1e", "١", "0x10", "1_000", " 1", "\"1\"", "9223372036854775808",
	} {
		f.Add(text, 2)
	}
	f.Fuzz(func(t *testing.T, text string, decimals int) {
		if decimals < 0 || decimals > 18 {
			return
		}
		var in wallet.AmountInput
		if err := in.UnmarshalJSON([]byte(text)); err != nil {
			return
		}
		units, err := in.ToUnits(decimals)
		if err != nil {
			return
		}
		exact, ok := new(big.Rat).SetString(string(in))
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		if !ok || exact.Mul(exact, new(big.Rat).SetInt(scale)).Cmp(new(big.Rat).SetInt64(int64(units))) != 0 {
			t.Fatalf("%q with %d decimals is %s; exactly it is %v", text, decimals, units, exact)
		}
		if units < 0 || units > wallet.MaxUnits {
			t.Fatalf("%q with %d decimals is %s", text, decimals, units)
		}
		written := units.Decimal(decimals)
		if again, err := wallet.AmountInput(written).ToUnits(decimals); err != nil || again != units {
			t.Fatalf("%s with %d decimals is written as %q, which is %s, %v", units, decimals, written, again, err)
		}
	})
}
