package assets

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/wallet"
)

// Asset is one thing that a game sells.
type Asset struct {
	ID           int64           `json:"id"`
	GameID       int64           `json:"gameId"`
	Name         string          `json:"name"`
	TokenID      string          `json:"tokenId"`            // the code of the token that it costs; never changes
	Price        wallet.Amount   `json:"price"`              // of one; may be 0
	PriceAmount  wallet.Units    `json:"priceAmount,string"` // the same in minor units
	Stock        *int64          `json:"stock"`              // what is left, or null: there is no limit
	PerUserLimit *int64          `json:"perUserLimit"`       // what one player may own, or null
	Sold         int64           `json:"sold"`
	Active       bool            `json:"active"` // on sale
	Metadata     json.RawMessage `json:"metadata"`
	Version      int64           `json:"version"` // rises with every patch
	CreatedAt    time.Time       `json:"createdAt"`
}

// CreateInput is an asset to be made.
type CreateInput struct {
	Name         string
	TokenID      string
	Price        wallet.AmountInput
	Stock        *int64 // nil: no limit
	PerUserLimit *int64 // nil: no limit
	Metadata     json.RawMessage
}

// Patch changes an asset; nil leaves a part as it is.
type Patch struct {
	Name         *string
	Active       *bool
	Price        *wallet.AmountInput
	Stock        **int64 // sets what is left; the address of nil takes the limit away
	PerUserLimit **int64 // the address of nil takes the limit away
	Metadata     json.RawMessage
}

// PurchaseInput is what a buyer asks.
type PurchaseInput struct {
	Quantity      int64              // 1 … MaxQuantity
	ExpectedPrice wallet.AmountInput // the price of one that the buyer saw, or "" for any
}

// Purchase is what was sold: the wire shows it as it stands.
type Purchase struct {
	PurchaseID  int64          `json:"purchaseId"` // number of the ledger entry
	Asset       Asset          `json:"asset"`      // as it was just after the sale
	Quantity    int64          `json:"quantity"`
	Price       wallet.Amount  `json:"price"` // of one
	PriceAmount wallet.Units   `json:"priceAmount,string"`
	Total       wallet.Amount  `json:"total"`
	TotalAmount wallet.Units   `json:"totalAmount,string"`
	EntryToken  wallet.Token   `json:"entryToken"`
	Balance     wallet.Balance `json:"balance"` // after the purchase
	Owned       int64          `json:"owned"`   // after the purchase
	Replayed    bool           `json:"-"`       // the first answer to this receipt, again
}

// Owned is how many of an asset a player has.
type Owned struct {
	Asset Asset `json:"asset"`
	Owned int64 `json:"owned"`
}

// The bounds of the catalogue.
const (
	MaxQuantity      = 1_000_000         // of one purchase
	MaxStock         = 1_000_000_000_000 // of one asset, also of a per-user limit
	MaxMetadataBytes = 4096              // bytes of JSON; every receipt of a purchase holds a copy
	longestName      = 100
)

// faults is what is wrong with a request of this package.
type faults struct{ apierror.FieldErrors }

func (f *faults) name(text string) {
	if strings.TrimSpace(text) == "" {
		f.Add("name", "required", "is required")
	} else if !utf8.ValidString(text) || utf8.RuneCountInString(text) > longestName || strings.IndexFunc(text, unicode.IsControl) >= 0 {
		f.Add("name", "length", "must be at most 100 printable characters")
	}
}

func (f *faults) number(field string, n *int64, least int64) {
	if n != nil && (*n < least || *n > MaxStock) {
		f.Add(field, "range", "must be a number from "+wallet.Units(least).String()+" to "+wallet.Units(MaxStock).String()+", or null")
	}
}

// metadata checks that it is an object, or absent.
func (f *faults) metadata(text json.RawMessage) {
	if text == nil {
		return
	}
	var members map[string]json.RawMessage
	if len(text) > MaxMetadataBytes || !utf8.Valid(text) || json.Unmarshal(text, &members) != nil || members == nil {
		f.Add("metadata", "format", "must be a JSON object of at most 4096 bytes")
	}
}

func (in CreateInput) validate() error {
	var f faults
	f.name(in.Name)
	if in.TokenID == "" {
		f.Add("tokenId", "required", "is required")
	}
	if in.Price == "" {
		f.Add("price", "required", "is required")
	}
	f.number("stock", in.Stock, 0)
	f.number("perUserLimit", in.PerUserLimit, 1)
	f.metadata(in.Metadata)
	return f.Err()
}

func (p Patch) validate() error {
	var f faults
	if p.Name != nil {
		f.name(*p.Name)
	}
	if p.Stock != nil {
		f.number("stock", *p.Stock, 0)
	}
	if p.PerUserLimit != nil {
		f.number("perUserLimit", *p.PerUserLimit, 1)
	}
	f.metadata(p.Metadata)
	return f.Err()
}

func (in PurchaseInput) validate() error {
	var f faults
	if in.Quantity < 1 || in.Quantity > MaxQuantity {
		f.Add("quantity", "range", "must be a number from 1 to 1000000")
	}
	return f.Err()
}
