package keys_test

import (
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
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

func TestTheGameAndThePlayerOfAWalletAreFound(t *testing.T) {
	if game, user, ok := keys.ParseWallet(keys.Wallet(7, 42)); !ok || game != 7 || user != 42 {
		t.Errorf("player %d of game %d, %v", user, game, ok)
	}
	for _, key := range []string{
		"", keys.WalletLines(7, 42), keys.Totals(7), "{e:7}:wallet:", "{e:}:wallet:1", "{e:7}:wallet:+42", "e:7}:wallet:42",
	} {
		if game, user, ok := keys.ParseWallet(key); ok {
			t.Errorf("%q is the wallet of player %d of game %d", key, user, game)
		}
	}
}
