package keys_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/keys"
)

func TestWalletFieldsAreParsed(t *testing.T) {
	for _, c := range []struct {
		field, tokenID string
		isHeld         bool
	}{
		{keys.FreeField("GOLD"), "GOLD", false},
		{keys.HeldField("GOLD"), "GOLD", true},
		{"free:GOLD", "GOLD", false},
		{"held:GOLD", "GOLD", true},
		{"grant:1", "", false},
		{"line", "", false},
		{"seq", "", false},
	} {
		if tokenID, isHeld := keys.ParseWalletField(c.field); tokenID != c.tokenID || isHeld != c.isHeld {
			t.Errorf("%s: %q, held %v", c.field, tokenID, isHeld)
		}
	}
}

func TestTotalFieldsAreParsed(t *testing.T) {
	total, tokenID, ok := keys.ParseTotalField(keys.TotalField(keys.TotalMinted, "GOLD"))
	if !ok || total != "minted" || tokenID != "GOLD" {
		t.Errorf("%s of %s, %v", total, tokenID, ok)
	}
	if _, _, ok := keys.ParseTotalField(keys.TotalsSequenceField); ok {
		t.Error("the number of the last entry is taken for a total")
	}
}

func TestAccountsAreParsed(t *testing.T) {
	for account, want := range map[string][2]string{
		keys.WalletAccount("7"): {keys.AccountWallet, "7"},
		"e:some-room":           {keys.AccountEscrow, "some-room"},
		"m":                     {keys.AccountMint, ""},
		"h":                     {keys.AccountHouse, ""},
	} {
		if kind, owner := keys.ParseAccount(account); kind != want[0] || owner != want[1] {
			t.Errorf("%s: %q of %q", account, kind, owner)
		}
	}
}

func TestEveryWalletStartsWithTheWalletPrefix(t *testing.T) {
	if rest, ok := strings.CutPrefix(keys.Wallet(42), keys.WalletPrefix()); !ok || rest != "42" {
		t.Errorf("%s after %s", keys.Wallet(42), keys.WalletPrefix())
	}
}
