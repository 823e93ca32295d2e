package wallet_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

func TestATokenIsAppendedAsItIsMarshalled(t *testing.T) {
	logo := `https://a.example/?x=<1>&y="2"`
	for _, token := range []wallet.Token{
		{},
		{ID: 1, Code: "GOLD", Name: "a|b\"\\\u2028é\n<&>", LogoURL: &logo, Games: []wallet.TokenGame{{GameID: 1}}},
		{
			ID: 1 << 50, Decimals: 6, Supply: wallet.Amount{Units: 2_500_000, Decimals: 6},
			Metadata: wallet.Metadata{AssetName: "67", PolicyID: "ab", Decimals: "6"},
		},
	} {
		want, err := wire.Marshal(token)
		if got := string(wallet.AppendToken([]byte("x"), token)); err != nil || got != "x"+string(want) {
			t.Errorf("%s; want %s, %v", got, want, err)
		}
	}
}
