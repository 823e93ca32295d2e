package keys

import "strings"

// This file names the fields inside keys that Go code reads or writes. The scripts spell the same
// names.

// The fields of Wallet that are no token: no code of a token has a colon.
const (
	WalletSeqField   = ":seq"
	WalletGrantField = ":grant"
)

// IsTokenField reports whether a field of Wallet is the balance of a token; its name is the code.
func IsTokenField(field string) bool { return !strings.HasPrefix(field, ":") }

// WalletPrefix is what the name of every Wallet of a game starts with; the user id follows.
func WalletPrefix(gameID int64) string { return economy(gameID) + "wallet:" }

// The totals of one token, in minor units: fields of Totals by TotalField.
const (
	TotalMinted  = "minted"
	TotalWallets = "wallets"
	TotalEscrow  = "escrow"
	TotalHouse   = "house"
	TotalPrizes  = "prizes"
)

// TotalsFoldedField is the field of Totals that holds the number of the last ledger entry in them.
const TotalsFoldedField = "folded"

// TotalField is the field of Totals that holds one total of a token.
func TotalField(total, tokenID string) string { return total + ":" + tokenID }

// ParseTotalField splits a TotalField; ok is false for the other fields of Totals.
func ParseTotalField(field string) (total, tokenID string, ok bool) { return strings.Cut(field, ":") }

// The kinds of accounts in the postings of Ledger. A wallet is followed by the user id.
const (
	AccountMint   = "m" // negative: what was brought into the economy
	AccountHouse  = "h" // the operator's account
	AccountPrizes = "p" // promised prizes
	AccountWallet = "w"
	AccountEscrow = "e" // stakes; the entry's ref is the room
)

// WalletAccount is the ledger account of a player's wallet, "w7".
func WalletAccount(userID string) string { return AccountWallet + userID }

// ParseAccount splits a ledger account into its kind and its owner, "" for the kinds without one.
func ParseAccount(account string) (kind, owner string) {
	if account == "" {
		return "", ""
	}
	return account[:1], account[1:]
}

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

// AssetLiveField is the field of Asset that changes with a sale, packed as scripts.AssetLive.
const AssetLiveField = "live"

// The fields of Asset beside AssetLiveField that a patch changes.
const (
	AssetNameField     = "name"
	AssetMetadataField = "meta"
)

// AssetFields are the fields of Asset that make an asset, in the order in which scripts return
// them.
var AssetFields = []string{AssetLiveField, "token", "decimals", AssetNameField, AssetMetadataField, "created"}
