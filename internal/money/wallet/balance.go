package wallet

import (
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// Balance is one token of a wallet as on the wire: the fields of the token, in which "volume" is
// the player's available balance instead of the supply. Amount and HeldAmount are the available and
// the held balance in minor units, as text.
type Balance struct {
	Token
	Spendable      Amount `json:"volume"`            // what the player can spend
	SpendableUnits Units  `json:"amount,string"`     // Spendable in minor units
	Held           Amount `json:"held"`              // stakes in rooms and fees in tournaments that have not ended
	HeldUnits      Units  `json:"heldAmount,string"` // Held in minor units
}

// Balances are all tokens that the player has or once had, by token id.
type Balances struct {
	Balances []Balance `json:"balances"`
	AsOf     time.Time `json:"asOf"` // UTC
}

// CreditInput describes an amount to mint into a player's wallet.
type CreditInput struct {
	UserID    int64
	TokenCode string      // code of the token
	Amount    AmountInput // more than zero
	Reason    string      // 1 … 200 characters, shown in the player's ledger
}

// DebitInput describes an amount to burn from what a player can spend.
type DebitInput struct {
	UserID    int64
	TokenCode string      // code of the token
	Amount    AmountInput // more than zero
	Reason    string      // 1 … 200 characters, shown in the player's ledger
}

// GrantInput describes a sign-up grant of a game.
type GrantInput struct {
	UserID    int64  // a player of the game
	GameID    int64  // the game that grants
	TokenCode string // code of the token
	Units     Units  // minor units, 0 … MaxUnits
	// LimitPerDay is how much the grants of the game may mint in a day (UTC). "" stands for as
	// much as the server keys of the game may mint; if they may mint nothing, for the sum of
	// DefaultGrantsPerDay grants like this one.
	LimitPerDay AmountInput
}

// DefaultGrantsPerDay is how many grants a game gives in a day when nothing else limits them.
const DefaultGrantsPerDay = 10_000

// maxGrantLimit is as much as may exist of a token, in minor units.
const maxGrantLimit Units = 4e18

// dayLimit returns how much the grants of the game may mint in a day. It returns invalid_amount if
// the limit is not an amount of the token.
func (in GrantInput) dayLimit(t Token) (Units, error) {
	if in.LimitPerDay != "" {
		return in.LimitPerDay.ToUnits(t.Decimals)
	}
	if limit, _ := t.DayLimit(in.GameID); limit > 0 {
		return limit, nil
	}
	if in.Units > maxGrantLimit/DefaultGrantsPerDay {
		return maxGrantLimit, nil
	}
	return in.Units * DefaultGrantsPerDay, nil
}

// ChangeResult is the result of a credit or debit.
type ChangeResult struct {
	Balance  Balance `json:"balance"` // after the change
	Replayed bool    `json:"-"`       // the first result under this receipt, returned again
}

// LedgerLine is one change of a player's balance. Delta is 0 when only the held stakes changed, as
// when a room is lost, and for an asset that is free or was won.
type LedgerLine struct {
	ID                int64     `json:"id"`                        // number of the player's line, from 1
	At                time.Time `json:"at"`                        // UTC
	TokenCode         string    `json:"tokenId"`                   // code of the token
	Delta             Amount    `json:"delta"`                     // negative when the player paid
	DeltaUnits        Units     `json:"deltaAmount,string"`        // Delta in minor units
	BalanceAfter      Amount    `json:"balanceAfter"`              // what the player could spend then
	BalanceAfterUnits Units     `json:"balanceAfterAmount,string"` // BalanceAfter in minor units
	// "entry", "prize", "purchase", …, or the reason of a credit or debit
	Reason string `json:"reason"`
	// "asset:7", a room id, "tour:12", "board:<key>:<season>", or the caller of a credit or debit
	Ref string `json:"ref"`
}

// LedgerQuery selects a page of a player's ledger.
type LedgerQuery struct {
	TokenCode  string // only this token, or "" for all
	BeforeLine int64  // only lines with a lower id: NextBefore of the page before, or 0 for the newest
	Limit      int    // lines, 1 … 100
}

// LedgerPage is a page of lines, newest first. A page may be short, even empty, and still have a
// next one, since a rare token is searched for in bounded steps.
type LedgerPage struct {
	Lines      []LedgerLine
	NextBefore int64 // BeforeLine of the next page, 0 at the end
}

// InsufficientFunds returns the error with its members: the available amount, the required amount
// and the token.
func InsufficientFunds(tokenID string, decimals int, available, required Units) *apierror.Error {
	return apierror.InsufficientFunds.
		WithReason("%s %s are needed and %s are there", required.Decimal(decimals), tokenID, available.Decimal(decimals)).
		WithMember("tokenId", tokenID).
		WithMember("available", Amount{Units: available, Decimals: decimals}).
		WithMember("availableAmount", available.String()).
		WithMember("required", Amount{Units: required, Decimals: decimals}).
		WithMember("requiredAmount", required.String())
}
