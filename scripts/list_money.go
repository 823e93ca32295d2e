package scripts

// Money: tokens, wallets, the catalogue and purchases.
var (
	TokenCreate   = script("token_create")
	TokenPatch    = script("token_patch")
	WalletCredit  = script("wallet_credit")
	WalletDebit   = script("wallet_debit")
	WalletGrant   = script("wallet_grant")
	WalletScan    = script("wallet_scan")
	AssetCreate   = script("asset_create")
	AssetPatch    = script("asset_patch")
	AssetPurchase = script("asset_purchase")
)
