package scripts_test

import (
	"fmt"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
)

// moneyExamples has calls of the scripts of tokens, wallets and assets.
var moneyExamples = []example{
	{scripts.WalletCredit, "the first units", "ok", func(f *fixture) call {
		return f.newCall(scripts.WalletCredit, nil)
	}},
	{scripts.WalletCredit, "up to the most that a player can have", "ok", func(f *fixture) call {
		f.setBalance(7, "5", "6")
		return f.newCall(scripts.WalletCredit, values{"units": 1<<53 - 1 - 11})
	}},
	{scripts.WalletCredit, "a unit more", "invalid_amount", func(f *fixture) call {
		f.setBalance(7, "5", "6")
		return f.newCall(scripts.WalletCredit, values{"units": 1<<53 - 11})
	}},
	{scripts.WalletCredit, "by a server key, up to what it may mint in a day", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, values{"units": 999_999_999_999_999}, 1<<53-1).want(scripts.OK)
		return f.newCall(scripts.WalletCredit, values{"user": 8, "units": 1<<53 - 1 - 999_999_999_999_999}, 1<<53-1)
	}},
	{scripts.WalletCredit, "by a server key, a unit more", "limit_reached", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, values{"units": 999_999_999_999_999}, 1<<53-1).want(scripts.OK)
		return f.newCall(scripts.WalletCredit, values{"user": 8, "units": 1<<53 - 999_999_999_999_999}, 1<<53-1)
	}},
	{scripts.WalletCredit, "by a server key, on the day after", "ok", func(f *fixture) call {
		f.set(keys.ServerMints(f.id), "GOLD", "1|250")
		return f.newCall(scripts.WalletCredit, nil, 250)
	}},
	{scripts.WalletDebit, "all", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newCall(scripts.WalletDebit, nil)
	}},
	{scripts.WalletDebit, "a unit short", "insufficient_funds", func(f *fixture) call {
		f.setBalance(7, "249", "1000")
		return f.newCall(scripts.WalletDebit, nil)
	}},
	{scripts.WalletGrant, "the first", "ok", func(f *fixture) call { return f.newCall(scripts.WalletGrant, nil) }},
	{scripts.WalletGrant, "granted already", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletGrant, nil).want(scripts.OK)
		return f.newCall(scripts.WalletGrant, nil)
	}},
	{scripts.WalletGrant, "more than a player can have", "invalid_amount", func(f *fixture) call {
		f.setBalance(7, "0", fmt.Sprint(1<<53-250))
		return f.newCall(scripts.WalletGrant, nil)
	}},
	{scripts.WalletGrant, "up to what grants may mint in a day", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletGrant, values{"units": 999_999_999_999_999, "limit": 1<<53 - 1}).want(scripts.OK)
		return f.newCall(scripts.WalletGrant, values{"user": 8, "units": 1<<53 - 1 - 999_999_999_999_999, "limit": 1<<53 - 1})
	}},
	{scripts.WalletGrant, "a unit more", "limit_reached", func(f *fixture) call {
		f.newCall(scripts.WalletGrant, values{"units": 999_999_999_999_999, "limit": 1<<53 - 1}).want(scripts.OK)
		return f.newCall(scripts.WalletGrant, values{"user": 8, "units": 1<<53 - 999_999_999_999_999, "limit": 1<<53 - 1})
	}},
	{scripts.WalletGrant, "on the day after", "ok", func(f *fixture) call {
		f.set(keys.GrantMints(f.id), "GOLD", "1|250")
		return f.newCall(scripts.WalletGrant, values{"limit": 250})
	}},
	{scripts.LedgerFold, "all there is", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newFold(1, 10)
	}},
	{scripts.LedgerFold, "outside of the leader's work", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newFold("", 10)
	}},
	{scripts.LedgerFold, "an older leader", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		f.newFold(10, 10).want(scripts.OK)
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newFold(9, 10)
	}},
	{scripts.LedgerFold, "entries that are folded", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		again := f.newFold(1, 10)
		f.newFold(1, 10).want(scripts.OK)
		return again
	}},
	{scripts.LedgerFold, "entries of another base", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newFold(1, 10).with(values{"base": 1})
	}},
	{scripts.LedgerFold, "entries of another store", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		read := f.newFold(1, 10)
		f.db.Client.Del(f.t.Context(), keys.Ledger(f.id))
		return read
	}},
	{scripts.TotalsRead, "entries that are not folded", "ok", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newCall(scripts.TotalsRead, values{"most_entries": 1})
	}},
	{scripts.TotalsRead, "more entries than asked for", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newCall(scripts.TotalsRead, values{"most_entries": 0})
	}},

	{scripts.LedgerTrim, "the first segment", "ok", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLedgerTrim(2, values{"fence": 1})
	}},
	{scripts.LedgerTrim, "the next one, outside of the leader's work", "ok", func(f *fixture) call {
		f.creditAndFold(3)
		f.newLedgerTrim(2, nil).want(scripts.OK)
		return f.newLedgerTrim(1, values{"before": 2, "previous_sum": "sum", "sum": "next"})
	}},
	{scripts.LedgerTrim, "an older leader", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		f.newLedgerTrim(2, values{"fence": 10}).want(scripts.OK)
		return f.newLedgerTrim(1, values{"fence": 9, "before": 2, "previous_sum": "sum", "sum": "next"})
	}},
	{scripts.LedgerTrim, "entries that are not folded", "stale", func(f *fixture) call {
		f.creditAndFold(1)
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newLedgerTrim(2, nil)
	}},
	{scripts.LedgerTrim, "entries of another base", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLedgerTrim(2, values{"before": 1})
	}},
	{scripts.LedgerTrim, "entries that left with another segment", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		f.newLedgerTrim(2, nil).want(scripts.OK)
		return f.newLedgerTrim(1, values{"count": 2, "sum": "other"})
	}},
	{scripts.LedgerTrim, "a segment that follows another one", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		f.newLedgerTrim(2, nil).want(scripts.OK)
		return f.newLedgerTrim(1, values{"before": 2, "previous_sum": "other", "sum": "next"})
	}},
	{scripts.LedgerTrim, "entries that are others", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLedgerTrim(2, values{"last_text": "other"})
	}},
	{scripts.LinesTrim, "the first lines", "ok", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLinesTrim(2, nil)
	}},
	{scripts.LinesTrim, "more lines than may go", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLinesTrim(2, values{"least": 2})
	}},
	{scripts.LinesTrim, "lines of another base", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		f.newLinesTrim(1, nil).want(scripts.OK)
		return f.newLinesTrim(2, nil)
	}},
	{scripts.LinesTrim, "lines that are others", "stale", func(f *fixture) call {
		f.creditAndFold(3)
		return f.newLinesTrim(2, values{"last_text": "other"})
	}},

	{scripts.TokenCreate, "new", "ok", func(f *fixture) call { return f.newTokenCall() }},
	{scripts.TokenCreate, "a code that is taken", "token_exists", func(f *fixture) call {
		f.newTokenCall().want(scripts.OK)
		return f.newTokenCall()
	}},
	{scripts.TokenPatch, "a name", "ok", func(f *fixture) call {
		f.newTokenCall().want(scripts.OK)
		return f.newCall(scripts.TokenPatch, values{"token": f.tokenCode()}, keys.TokenNameField, "Silver")
	}},
	{scripts.TokenPatch, "no token", "token_not_found", func(f *fixture) call {
		return f.newCall(scripts.TokenPatch, values{"token": f.tokenCode()}, keys.TokenNameField, "Silver")
	}},

	{scripts.AssetCreate, "new", "ok", func(f *fixture) call { return f.newAssetCall(nil) }},
	{scripts.AssetCreate, "one too many", "limit_reached", func(f *fixture) call {
		f.newAssetCall(values{"most": 1}).want(scripts.OK)
		return f.newAssetCall(values{"most": 1, "asset_id": 6})
	}},
	{scripts.AssetPatch, "a price and a name", "ok", func(f *fixture) call {
		f.newAssetCall(nil).want(scripts.OK)
		return f.newAssetPatch(values{"new_price": 11}, keys.AssetNameField, "Sword")
	}},
	{scripts.AssetPatch, "no asset", "asset_not_found", func(f *fixture) call {
		return f.newAssetPatch(values{"new_price": 11})
	}},
	{scripts.AssetPromise, "without a stock", "ok", func(f *fixture) call {
		f.newAssetCall(values{"stock": ""}).want(scripts.OK)
		return f.newCall(scripts.AssetPromise, values{"asset_id": 5})
	}},
	{scripts.AssetPromise, "no asset", "asset_not_found", func(f *fixture) call {
		return f.newCall(scripts.AssetPromise, values{"asset_id": 5})
	}},
	{scripts.AssetRemove, "never sold", "ok", func(f *fixture) call {
		f.newAssetCall(values{"asset_id": 6}).want(scripts.OK)
		f.newAssetCall(nil).want(scripts.OK)
		return f.newCall(scripts.AssetRemove, values{"asset_id": 5})
	}},
	{scripts.AssetRemove, "promised", "forbidden", func(f *fixture) call {
		f.newAssetCall(values{"stock": ""}).want(scripts.OK)
		f.newCall(scripts.AssetPromise, values{"asset_id": 5}).want(scripts.OK)
		return f.newCall(scripts.AssetRemove, values{"asset_id": 5})
	}},
	{scripts.AssetRemove, "sold", "forbidden", func(f *fixture) call {
		f.newPurchase(nil, nil).want(scripts.OK)
		return f.newCall(scripts.AssetRemove, values{"asset_id": 5})
	}},
	{scripts.AssetRemove, "no asset", "asset_not_found", func(f *fixture) call {
		return f.newCall(scripts.AssetRemove, values{"asset_id": 5})
	}},
	{scripts.AssetPurchase, "the last three", "ok", func(f *fixture) call { return f.newPurchase(nil, nil) }},
	{scripts.AssetPurchase, "free of charge", "ok", func(f *fixture) call {
		f.setBalance(7, "0", "0")
		return f.newPurchase(values{"price": 0, "stock": "", "limit": ""}, values{"expected_price": "0"})
	}},
	{scripts.AssetPurchase, "no asset", "asset_not_found", func(f *fixture) call {
		return f.newPurchase(nil, values{"asset_id": 6})
	}},
	{scripts.AssetPurchase, "not on sale", "asset_not_found", func(f *fixture) call {
		purchase := f.newPurchase(nil, nil)
		f.newAssetPatch(values{"new_on_sale": 0}).want(scripts.OK)
		return purchase
	}},
	{scripts.AssetPurchase, "another price", "price_changed", func(f *fixture) call {
		return f.newPurchase(nil, values{"expected_price": 99})
	}},
	{scripts.AssetPurchase, "one more than there are", "sold_out", func(f *fixture) call {
		return f.newPurchase(values{"stock": 2}, nil)
	}},
	{scripts.AssetPurchase, "one more than allowed", "already_owned", func(f *fixture) call {
		return f.newPurchase(values{"limit": 2}, nil)
	}},
	{scripts.AssetPurchase, "more than the largest amount", "invalid_amount", func(f *fixture) call {
		f.setBalance(7, "4000000000000000000", "0")
		return f.newPurchase(values{"price": 1 << 52, "stock": "", "limit": ""}, values{"quantity": 2})
	}},
	{scripts.AssetPurchase, "a unit short", "insufficient_funds", func(f *fixture) call {
		purchase := f.newPurchase(nil, nil)
		f.setBalance(7, "299", "300")
		return purchase
	}},
}

// tokenCode is the code of the fixture's own token: the tokens of all fixtures share a hash tag.
func (f *fixture) tokenCode() string { return fmt.Sprintf("TOKEN%d", f.id) }

func (f *fixture) newTokenCall() call {
	return f.newCall(scripts.TokenCreate, values{
		"token": f.tokenCode(), "code": f.tokenCode(), "name": "Gold", "logo": "", "asset": "", "policy": "",
	})
}

// newAssetCall returns the call that puts asset 5 on sale: three for 100 each, three for each
// player.
func (f *fixture) newAssetCall(given values) call {
	c := f.newCall(scripts.AssetCreate, values{
		"asset_id": 5, "price": 100, "stock": 3, "limit": 3, "name": "Shield", "metadata": "{}",
	})
	return c.with(given)
}

// newAssetPatch returns a change of asset 5, pairs are further fields with their texts.
func (f *fixture) newAssetPatch(given values, pairs ...any) call {
	c := f.newCall(scripts.AssetPatch, values{
		"asset_id": 5, "new_on_sale": "=", "new_price": "=", "new_stock": "=", "new_limit": "=",
	}, pairs...)
	return c.with(given)
}

// newPurchase puts an asset on sale and returns the purchase of three by player 7, who has 1000
// units unless the player has a balance already.
func (f *fixture) newPurchase(asset, given values) call {
	f.t.Helper()
	f.newAssetCall(asset).want(scripts.OK)
	if f.field(keys.Wallet(f.id, 7), "GOLD") == "" {
		f.setBalance(7, "1000", "0")
	}
	return f.newCall(scripts.AssetPurchase, values{"asset_id": 5, "quantity": 3, "expected_price": ""}).with(given)
}
