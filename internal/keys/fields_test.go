package keys_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/keys"
)

func TestTheBalancesOfAWalletAreToldFromItsOtherFields(t *testing.T) {
	for field, want := range map[string]bool{
		"GOLD": true, "seq": true, keys.WalletSeqField: false, keys.WalletGrantField: false,
	} {
		if keys.IsTokenField(field) != want {
			t.Errorf("%s: %v", field, !want)
		}
	}
}

func TestTotalFieldsAreParsed(t *testing.T) {
	total, tokenID, ok := keys.ParseTotalField(keys.TotalField(keys.TotalMinted, "GOLD"))
	if !ok || total != "minted" || tokenID != "GOLD" {
		t.Errorf("%s of %s, %v", total, tokenID, ok)
	}
	if _, _, ok := keys.ParseTotalField(keys.TotalsFoldedField); ok {
		t.Error("the number of the last entry is taken for a total")
	}
}

func TestAccountsAreParsed(t *testing.T) {
	for account, want := range map[string][2]string{
		keys.WalletAccount("7"): {keys.AccountWallet, "7"},
		"e":                     {keys.AccountEscrow, ""},
		"m":                     {keys.AccountMint, ""},
		"h":                     {keys.AccountHouse, ""},
		"":                      {"", ""},
	} {
		if kind, owner := keys.ParseAccount(account); kind != want[0] || owner != want[1] {
			t.Errorf("%s: %q of %q", account, kind, owner)
		}
	}
}

func TestEveryWalletStartsWithTheWalletPrefix(t *testing.T) {
	if rest, ok := strings.CutPrefix(keys.Wallet(7, 42), keys.WalletPrefix(7)); !ok || rest != "42" {
		t.Errorf("%s after %s", keys.Wallet(7, 42), keys.WalletPrefix(7))
	}
}
