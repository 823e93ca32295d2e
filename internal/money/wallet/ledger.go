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
	stored, base, err := s.store.readNewestEntries(ctx, gameID, q.Before, int64(q.Limit))
	if err != nil {
		return EntryPage{}, err
	}
	codes := make([]string, len(stored))
	for i, e := range stored {
		codes[i] = e.Code
	}
	tokens, err := s.findDefinitions(ctx, codes...)
	if err != nil {
		return EntryPage{}, err
	}
	page := EntryPage{Entries: make([]Entry, len(stored))}
	for i, e := range stored {
		page.Entries[i] = viewOf(e, tokens[e.Code])
	}
	if s.store.archive != nil {
		base = 0
	}
	if n := len(stored); n > 0 && stored[n-1].Number > base+1 {
		page.NextBefore = stored[n-1].Number
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

// Moved is what the ledgers of all games have grown by, as far as this node has folded them. Each
// entry is folded by one node, so the sum over the nodes is all money that moved since they
// started.
type Moved struct {
	Entries int64            // ledger entries
	Units   map[string]Units // minor units that came into an account, by code of the token; at most 2^63-1
}

// maxMovedTokens bounds Moved.Units; entries of further tokens are counted only.
const maxMovedTokens = 64

// Moved returns what this node has folded since it started.
func (s *Service) Moved() Moved { return s.store.moved.snapshot() }
