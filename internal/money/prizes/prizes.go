package prizes

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/parlor-games/parlor/internal/money/wallet"
)

// Funds is where the units of prizes come from, and where what is left of them returns to.
type Funds string

// All funds.
const (
	House Funds = "house" // the operator's account
	Mint  Funds = "mint"  // minted for the prizes
)

// State is how far the prizes of a source are.
type State string

// All states.
const (
	StateNone    State = "NONE"
	StateFunded  State = "FUNDED"
	StatePlanned State = "PLANNED"
	StatePaid    State = "PAID"
	StateVoid    State = "VOID"
)

// Line is one prize of a plan.
type Line struct {
	UserID   int64        // 0: the house, for a rake
	Place    int          // that the player has; 0 for the house
	Units    wallet.Units // of the source's token
	AssetID  int64        // 0: no asset
	Quantity int64        // pieces of it
}

// Prize is what a source has promised.
type Prize struct {
	Source    string
	TokenCode string // "" where nothing was funded
	PoolUnits wallet.Units
	PaidUnits wallet.Units
	State     State
	Next      int // lines that are paid
	Lines     int // of the plan
}

// encode returns the line as keys.PrizePlan has it.
func (l Line) encode() string {
	b := strconv.AppendInt(nil, l.UserID, 10)
	b = strconv.AppendInt(append(b, ':'), int64(l.Place), 10)
	b = strconv.AppendInt(append(b, ':'), int64(l.Units), 10)
	if b = append(b, ':'); l.AssetID == 0 {
		return string(append(b, ':'))
	}
	b = strconv.AppendInt(b, l.AssetID, 10)
	return string(strconv.AppendInt(append(b, ':'), l.Quantity, 10))
}

// digestOf identifies a plan by its lines.
func digestOf(lines []string) string {
	h := sha256.New()
	for _, line := range lines {
		h.Write([]byte(line))
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
