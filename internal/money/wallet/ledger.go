package wallet

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/ledger"
)

// Entry is one entry of a game's ledger: a double entry, whose postings sum to zero.
type Entry struct {
	ID        int64     `json:"id"` // number of the entry, from 1
	At        time.Time `json:"at"` // UTC
	TokenCode string    `json:"tokenId"`
	Reason    string    `json:"reason"` // "join", "payout", "purchase", …, or the reason of a credit or debit
	Ref       string    `json:"ref"`    // "asset:7", a room id, or the caller of a credit or debit
	Postings  []Posting `json:"postings"`
}

// Posting moves an amount into an account, or out of it when the amount is negative.
type Posting struct {
	Account string `json:"account"` // "wallet", "escrow", "prizes", "house" or "minted"
	UserID  *int64 `json:"userId"`  // the player of a wallet, else null
	Delta   Amount `json:"delta"`
	Units   Units  `json:"deltaAmount,string"` // Delta in minor units
}

// ExportedEntry is an entry outside of its game: a line of parlor ledger export.
type ExportedEntry struct {
	GameID int64 `json:"gameId"`
	Entry
}

// EntryQuery selects a page of a game's ledger.
type EntryQuery struct {
	Before int64 // only entries with a lower number: Next of the page before, or 0 for the newest
	Limit  int   // entries, 1 … 100
}

// EntryPage is a page of a game's ledger, newest first. A page may be short and still have a next
// one: it is read from one place, the store or an object of the archive.
type EntryPage struct {
	Entries    []Entry
	NextBefore int64 // 0: nothing older can be read
}

// GameLedger returns a page of the ledger of a game, which must exist. On a node without an archive
// it ends with the oldest entry in the store. It is for the operator. It returns forbidden.
func (s *Service) GameLedger(
	ctx context.Context, caller principal.Caller, gameID int64, q EntryQuery,
) (EntryPage, error) {
	if caller.Role != principal.Operator {
		return EntryPage{}, apierror.Forbidden
	}
	stored, next, err := s.store.ledgers.ReadNewest(ctx, gameID, q.Before, int64(q.Limit))
	if err != nil {
		return EntryPage{}, err
	}
	codes := make([]string, len(stored))
	for i, e := range stored {
		codes[i] = e.Code
	}
	tokens, err := s.FindDefinitions(ctx, codes...)
	if err != nil {
		return EntryPage{}, err
	}
	page := EntryPage{Entries: make([]Entry, len(stored)), NextBefore: next}
	for i, e := range stored {
		page.Entries[i] = viewOf(e, tokens[e.Code])
	}
	return page, nil
}

// viewOf returns an entry of a token as the operator sees it.
func viewOf(e ledger.Entry, t Token) Entry {
	view := Entry{
		ID: e.Number, At: e.At, TokenCode: e.Code, Reason: e.Reason, Ref: e.Ref,
		Postings: make([]Posting, len(e.Postings)),
	}
	for i, p := range e.Postings {
		units := Units(p.Units)
		view.Postings[i] = Posting{Account: accountNames[p.Kind], Delta: t.AmountOf(units), Units: units}
		if userID, ok := p.UserID(); ok {
			view.Postings[i].UserID = &userID
		}
	}
	return view
}

// EachEntry calls visit with the entries of a game, from one number to another, both included, in
// their order. It reads the archive where they have left the store.
func (s *Service) EachEntry(ctx context.Context, gameID, from, to int64, visit func(Entry) error) error {
	tokens := map[string]Token{}
	for e, err := range s.store.ledgers.Entries(ctx, gameID, from-1, to) {
		if err != nil {
			return err
		}
		if _, known := tokens[e.Code]; !known {
			found, err := s.FindDefinitions(ctx, e.Code)
			if err != nil {
				return err
			}
			tokens[e.Code] = found[e.Code]
		}
		if err := visit(viewOf(e, tokens[e.Code])); err != nil {
			return err
		}
	}
	return nil
}
