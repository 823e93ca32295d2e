package keys

import (
	"strconv"
	"strings"
)

// This file names the fields inside keys that Go code reads or writes. The scripts spell the same
// names.

// The fields of Wallet that are no token: no code of a token has a colon.
const (
	WalletSeqField   = ":seq"
	WalletGrantField = ":grant"
	WalletBaseField  = ":base"
	// WalletExcludedField is there once the player has set limits.
	WalletExcludedField = ":excluded"
)

// walletLimitsPrefix starts the names of WalletLimitsField.
const walletLimitsPrefix = ":limits:"

// WalletLimitsField is the field of Wallet with the limits of a token.
func WalletLimitsField(tokenID string) string { return walletLimitsPrefix + tokenID }

// ParseWalletLimitsField returns the token of a WalletLimitsField. It returns false for other
// fields.
func ParseWalletLimitsField(field string) (tokenID string, ok bool) {
	return strings.CutPrefix(field, walletLimitsPrefix)
}

// IsTokenField reports whether a field of Wallet is the balance of a token; its name is the code.
func IsTokenField(field string) bool { return !strings.HasPrefix(field, ":") }

// ParseEconomy returns the game of a key in an economy. It returns false for other keys.
func ParseEconomy(key string) (gameID int64, ok bool) {
	number, found := strings.CutPrefix(key, "{e:")
	if !found {
		return 0, false
	}
	for i := range len(number) {
		digit := number[i]
		if digit == '}' {
			return gameID, i > 0
		}
		if digit < '0' || digit > '9' || i > 18 {
			return 0, false
		}
		gameID = gameID*10 + int64(digit-'0')
	}
	return 0, false
}

// WalletPattern is a pattern for SCAN that matches every Wallet of a game, or of all games when
// gameID is 0. It also matches other keys, which ParseWallet rejects.
func WalletPattern(gameID int64) string {
	if gameID == 0 {
		return "{e:*}:wallet:*"
	}
	return economyKey(gameID, "wallet:*")
}

// ParseWallet returns the game and the player of a Wallet. It returns false for other keys.
func ParseWallet(key string) (gameID, userID int64, ok bool) {
	game, user, found := strings.Cut(strings.TrimPrefix(key, "{e:"), "}:wallet:")
	gameID, gameErr := strconv.ParseInt(game, 10, 64)
	userID, userErr := strconv.ParseInt(user, 10, 64)
	if !found || gameErr != nil || userErr != nil || Wallet(gameID, userID) != key {
		return 0, 0, false
	}
	return gameID, userID, true
}

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

// LedgerArchiveSumField is the field of LedgerArchive that Go code reads.
const LedgerArchiveSumField = "sum"

// TotalField is the field of Totals that holds one total of a token.
func TotalField(total, tokenID string) string { return total + ":" + tokenID }

// ParseTotalField splits a TotalField; ok is false for the other fields of Totals.
func ParseTotalField(field string) (total, tokenID string, ok bool) { return strings.Cut(field, ":") }

// The prefixes of the fields of AuditDefects. "total:<token>" or "w<user>:<token>" follows.
const (
	DefectFound    = "found:"
	DefectAccepted = "accepted:"
)

// The kinds of accounts in the postings of Ledger. A wallet is followed by the user id.
const (
	AccountMint   = "m" // negative: what was brought into the economy
	AccountHouse  = "h" // the operator's account
	AccountPrizes = "p" // promised prizes; the entry's ref is their source
	AccountWallet = "w"
	AccountEscrow = "e" // stakes; the entry's ref is the room or the tournament
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
	TokenGamesField     = "games"
)

// TokenFields are the fields of Token that make a token, in the order in which it is decoded.
var TokenFields = []string{
	"id", "decimals", TokenNameField, TokenLogoField, TokenAssetNameField, TokenPolicyIDField, TokenGamesField,
}

// TokensNextField is the field of Tokens that counts ids; every other field is an id.
const TokensNextField = "next"

// AssetLiveField is the field of Asset that changes with a sale, packed as scripts.AssetLive.
const AssetLiveField = "live"

// The fields of Asset beside AssetLiveField that a patch changes.
const (
	AssetNameField     = "name"
	AssetMetadataField = "meta"
)

// The fields of Asset that never change.
const (
	AssetTokenField    = "token"
	AssetDecimalsField = "decimals"
	AssetCreatedField  = "created"
)
