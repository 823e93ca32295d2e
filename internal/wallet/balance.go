package wallet

import (
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
)

// Balance is one token of a wallet as the wire shows it: the EntryToken's fields, whose "volume" is
// here what the player can spend. Amount and HeldAmount are the same numbers in minor units, as text.
type Balance struct {
	Token
	Volume     Amount `json:"volume"` // stands in front of the token's supply
	Amount     Units  `json:"amount,string"`
	Held       Amount `json:"held"` // stakes in rooms that have not ended
	HeldAmount Units  `json:"heldAmount,string"`
}

// Balances are all tokens that the player has or once had, by token id.
type Balances struct {
	Balances []Balance `json:"balances"`
	AsOf     time.Time `json:"asOf"`
}

// LedgerLine is one change of what a player can spend.
type LedgerLine struct {
	ID           int64     `json:"id"` // counts the player's lines from 1
	At           time.Time `json:"at"`
	TokenID      string    `json:"tokenId"`
	Delta        Amount    `json:"delta"`
	DeltaAmount  Units     `json:"deltaAmount,string"`
	BalanceAfter Amount    `json:"balanceAfter"`
	AfterAmount  Units     `json:"balanceAfterAmount,string"`
	Reason       string    `json:"reason"` // "purchase", "grant", …, or the operator's words
	Ref          string    `json:"ref"`    // what it was for: "asset:7", a room id, who credited
}

// LedgerQuery asks for a page of a player's ledger.
type LedgerQuery struct {
	TokenID string // only this token, or "" for all
	Before  int64  // only lines with a lower id, or 0: where the last page ended
	Limit   int    // 1 … 100
}

// LedgerPage is a page of lines, newest first. Next is the query's Before for the page that follows, 0 at the end.
// A page may be short, even empty, and still have a next one: a rare token is sought in bounded steps.
type LedgerPage struct {
	Lines []LedgerLine
	Next  int64
}

// ChangeResult is the outcome of a credit or debit.
type ChangeResult struct {
	Balance  Balance `json:"balance"`
	Replayed bool    `json:"-"` // the first answer to this receipt, again
}

// InsufficientFunds is the refusal with its members: what is there, what it takes, of which token.
func InsufficientFunds(tokenID string, decimals int, available, required Units) *apierror.Error {
	return apierror.InsufficientFunds.
		WithReason("%s %s are needed and %s are there", required.Decimal(decimals), tokenID, available.Decimal(decimals)).
		WithMember("tokenId", tokenID).
		WithMember("available", Amount{Units: available, Decimals: decimals}).WithMember("availableAmount", available.String()).
		WithMember("required", Amount{Units: required, Decimals: decimals}).WithMember("requiredAmount", required.String())
}
