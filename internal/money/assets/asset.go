package assets

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

// Asset is one thing that a game sells.
type Asset struct {
	ID           int64         `json:"id"` // from 1
	GameID       int64         `json:"gameId"`
	Name         string        `json:"name"`               // at most 100 characters
	TokenCode    string        `json:"tokenId"`            // code of the token that it costs; never changes
	Price        wallet.Amount `json:"price"`              // of one piece; may be 0
	PriceUnits   wallet.Units  `json:"priceAmount,string"` // Price in minor units
	Stock        *int64        `json:"stock"`              // pieces left, null: no limit
	PerUserLimit *int64        `json:"perUserLimit"`       // pieces that one player may own, null: no limit
	Sold         int64         `json:"sold"`               // pieces
	Active       bool          `json:"active"`             // on sale
	Metadata     wire.RawJSON  `json:"metadata"`           // a JSON object of at most MaxMetadataBytes
	Version      int64         `json:"version"`            // from 1, one more with every patch
	CreatedAt    time.Time     `json:"createdAt"`          // UTC
}

// CreateInput describes an asset to create; the fields are bounded as those of Asset.
type CreateInput struct {
	Name         string             `json:"name"`
	TokenCode    string             `json:"tokenId"`      // code of the token
	Price        wallet.AmountInput `json:"price"`        // of one piece
	Stock        *int64             `json:"stock"`        // pieces, 0 … MaxStock; nil: no limit
	PerUserLimit *int64             `json:"perUserLimit"` // pieces, 1 … MaxStock; nil: no limit
	Metadata     wire.RawJSON       `json:"metadata"`     // a JSON object; nil: an empty one
}

// PatchInput changes an asset; an absent member stays as it is.
type PatchInput struct {
	Name         *string              `json:"name"`
	Active       *bool                `json:"active"`
	Price        *wallet.AmountInput  `json:"price"`                 // of one piece
	Stock        wire.Nullable[int64] `json:"stock,omitzero"`        // pieces left; null removes the limit
	PerUserLimit wire.Nullable[int64] `json:"perUserLimit,omitzero"` // pieces; null removes the limit
	Metadata     wire.RawJSON         `json:"metadata"`              // a JSON object
}

// ListQuery selects a page of a game's catalogue.
type ListQuery struct {
	After           int64 // only ids above this: where the page before ended, or 0
	Limit           int   // assets, 1 … 100
	IncludeInactive bool  // also assets that are off sale
}

// PurchaseInput describes a purchase.
type PurchaseInput struct {
	Quantity      int64              // pieces, 1 … MaxQuantity
	ExpectedPrice wallet.AmountInput // the price of one piece that the buyer saw, "" for any
}

// PurchaseResult is a completed purchase as the wire shows it.
type PurchaseResult struct {
	PurchaseID int64          `json:"purchaseId"`         // number of the ledger entry
	Asset      Asset          `json:"asset"`              // as it is now
	Quantity   int64          `json:"quantity"`           // pieces
	Price      wallet.Amount  `json:"price"`              // of one piece
	PriceUnits wallet.Units   `json:"priceAmount,string"` // Price in minor units
	Total      wallet.Amount  `json:"total"`              // Price × Quantity
	TotalUnits wallet.Units   `json:"totalAmount,string"` // Total in minor units
	EntryToken wallet.Token   `json:"entryToken"`         // the token that was paid with
	Balance    wallet.Balance `json:"balance"`            // after the purchase
	OwnedAfter int64          `json:"owned"`              // pieces that the player owns after the purchase
	Replayed   bool           `json:"-"`                  // the first result under this receipt, returned again
}

// OwnedAsset is an asset that a player owns.
type OwnedAsset struct {
	Asset    Asset `json:"asset"`
	Quantity int64 `json:"owned"` // pieces
}

// Bounds of the catalogue.
const (
	MaxQuantity      = 1_000_000         // pieces in one purchase
	MaxStock         = 1_000_000_000_000 // pieces in stock, also of a per-user limit
	MaxMetadataBytes = 4096              // bytes of JSON
	maxNameRunes     = 100               // characters
)

// validator collects the invalid fields of a request.
type validator struct{ apierror.FieldErrors }

func (v *validator) checkName(text string) {
	if strings.TrimSpace(text) == "" {
		v.Add("name", "required", "is required")
		return
	}
	isPrintable := utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
	if !isPrintable || utf8.RuneCountInString(text) > maxNameRunes {
		v.Add("name", "length", "must be at most 100 printable characters")
	}
}

func (v *validator) checkLimit(field string, n *int64, least int64) {
	if n != nil && (*n < least || *n > MaxStock) {
		v.Add(field, "range",
			"must be a number from "+wallet.Units(least).String()+" to "+wallet.Units(MaxStock).String()+", or null")
	}
}

// checkMetadata accepts an object, or nil.
func (v *validator) checkMetadata(text wire.RawJSON) {
	if text == nil {
		return
	}
	var members map[string]wire.RawJSON
	if len(text) > MaxMetadataBytes || wire.Unmarshal(text, &members) != nil || members == nil ||
		wire.HasInfinity(text) {
		v.Add("metadata", "format", "must be a JSON object of at most 4096 bytes")
	}
}

func (in CreateInput) validate() error {
	var v validator
	v.checkName(in.Name)
	if in.TokenCode == "" {
		v.Add("tokenId", "required", "is required")
	}
	if in.Price == "" {
		v.Add("price", "required", "is required")
	}
	v.checkLimit("stock", in.Stock, 0)
	v.checkLimit("perUserLimit", in.PerUserLimit, 1)
	v.checkMetadata(in.Metadata)
	return v.Err()
}

func (p PatchInput) validate() error {
	var v validator
	if p.Name != nil {
		v.checkName(*p.Name)
	}
	v.checkLimit("stock", p.Stock.Value, 0)
	v.checkLimit("perUserLimit", p.PerUserLimit.Value, 1)
	v.checkMetadata(p.Metadata)
	return v.Err()
}

func (in PurchaseInput) validate() error {
	var v validator
	if in.Quantity < 1 || in.Quantity > MaxQuantity {
		v.Add("quantity", "range", "must be a number from 1 to 1000000")
	}
	return v.Err()
}
