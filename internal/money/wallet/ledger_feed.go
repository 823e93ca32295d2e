package wallet

import (
	"context"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/ledger"
)

// StoredEntry is an entry of a game's ledger and its position in it.
type StoredEntry struct {
	Position  string // "<number>-<nonce>"
	IsOfARoom bool   // it is a stake, its refund or a payout, for which rooms have events
	Entry     Entry  // zero if IsOfARoom
}

// LastEntry returns the number of the last entry in the ledger of a server's game, 0 for none. It
// returns forbidden.
func (s *Service) LastEntry(ctx context.Context, caller principal.Caller) (int64, error) {
	if err := caller.Authorize(caller.GameID, principal.Server); err != nil {
		return 0, err
	}
	return s.store.ledgers.LastEntry(ctx, caller.GameID)
}

// ReadStoredEntries returns up to count consecutive entries in the ledger of a server's game, from
// a number on, or from the oldest one that the store has. It does not read the archive. It returns
// forbidden.
func (s *Service) ReadStoredEntries(
	ctx context.Context, caller principal.Caller, from int64, count int,
) ([]StoredEntry, error) {
	if err := caller.Authorize(caller.GameID, principal.Server); err != nil {
		return nil, err
	}
	first, texts, err := s.store.ledgers.ReadStored(ctx, caller.GameID, from, int64(count))
	if err != nil {
		return nil, err
	}
	entries, stored := make([]StoredEntry, len(texts)), make([]ledger.Entry, len(texts))
	var codes []string
	for i, text := range texts {
		number := first + int64(i)
		stored[i] = ledger.Decode(number, text)
		entries[i].Position = strconv.FormatInt(number, 10) + "-" + ledger.NonceOf(text)
		entries[i].IsOfARoom = stored[i].IsOfARoom()
		if !entries[i].IsOfARoom && !slices.Contains(codes, stored[i].Code) {
			codes = append(codes, stored[i].Code)
		}
	}
	tokens, err := s.FindDefinitions(ctx, codes...)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if e := &entries[i]; !e.IsOfARoom {
			e.Entry = viewOf(stored[i], tokens[stored[i].Code])
		}
	}
	return entries, nil
}
