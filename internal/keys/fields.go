package keys

import "strings"

// This file names the fields inside keys that Go code reads or writes. The scripts spell the same
// names.

const (
	freePrefix = "free:"
	heldPrefix = "held:"
)

// FreeField is the field of Wallet that holds what a player can spend of a token.
func FreeField(tokenID string) string { return freePrefix + tokenID }

// HeldField is the field of Wallet that holds a player's stakes in one token.
func HeldField(tokenID string) string { return heldPrefix + tokenID }

// ParseWalletField returns the token of a FreeField or HeldField, and which of the two it is. It
// returns "" for the other fields of Wallet.
func ParseWalletField(field string) (tokenID string, isHeld bool) {
	if tokenID, ok := strings.CutPrefix(field, freePrefix); ok {
		return tokenID, false
	}
	tokenID, isHeld = strings.CutPrefix(field, heldPrefix)
	if !isHeld {
		return "", false
	}
	return tokenID, true
}

// WalletPrefix is what the name of every Wallet starts with; the user id follows.
func WalletPrefix() string { return economyPrefix + "wallet:" }

// The running totals of one token, in minor units: fields of Totals by TotalField.
const (
	TotalMinted  = "minted"
	TotalWallets = "wallets"
	TotalEscrow  = "escrow"
	TotalHouse   = "house"
)

// TotalsSequenceField is the field of Totals that holds the number of the last ledger entry.
const TotalsSequenceField = "seq"

// TotalField is the field of Totals that holds one running total of a token.
func TotalField(total, tokenID string) string { return total + ":" + tokenID }

// ParseTotalField splits a TotalField; ok is false for the other fields of Totals.
func ParseTotalField(field string) (total, tokenID string, ok bool) { return strings.Cut(field, ":") }

// The kinds of accounts in the postings of Ledger. The mint and the operator's account stand alone;
// a wallet is followed by ":" and the user id, the escrow of a room by ":" and the room id.
const (
	AccountMint   = "m" // negative: what was brought into the economy
	AccountHouse  = "h" // the operator's account
	AccountWallet = "w"
	AccountEscrow = "e"
)

// WalletAccount is the ledger account of a player's wallet, "w:7".
func WalletAccount(userID string) string { return AccountWallet + ":" + userID }

// ParseAccount splits a ledger account into its kind and its owner, "" for the kinds without one.
func ParseAccount(account string) (kind, owner string) {
	kind, owner, _ = strings.Cut(account, ":")
	return kind, owner
}

// The fields of the entries of Ledger and WalletLines.
const (
	LedgerTimeField         = "at"
	LedgerTokenField        = "tok"
	LedgerReasonField       = "why"
	LedgerRefField          = "ref"
	LedgerDeltaField        = "delta" // of WalletLines
	LedgerBalanceAfterField = "after" // of WalletLines
	LedgerPostingsField     = "post"  // of Ledger
)

// The fields of Token that change.
const (
	TokenNameField      = "name"
	TokenLogoField      = "logo"
	TokenAssetNameField = "asset"
	TokenPolicyIDField  = "policy"
)

// TokenFields are the fields of Token that make a token, in the order in which scripts return them.
var TokenFields = []string{"id", "decimals", TokenNameField, TokenLogoField, TokenAssetNameField, TokenPolicyIDField}

// TokensNextField is the field of Tokens that counts ids; every other field is an id.
const TokensNextField = "next"

// The fields of Asset that change.
const (
	AssetNameField         = "name"
	AssetActiveField       = "on"
	AssetPriceField        = "price"
	AssetStockField        = "stock"
	AssetPerUserLimitField = "limit"
	AssetMetadataField     = "meta"
)

// AssetFields are the fields of Asset that make an asset, in the order in which scripts return
// them.
var AssetFields = []string{
	"game", "token", "decimals", AssetPriceField, AssetActiveField, AssetStockField, AssetPerUserLimitField, "sold",
	"ver", AssetNameField,
	AssetMetadataField, "created",
}
