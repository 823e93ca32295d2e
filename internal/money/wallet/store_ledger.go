package wallet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// accountNames are the kinds of accounts as the operator reads them.
var accountNames = map[string]string{
	keys.AccountWallet: "wallet", keys.AccountEscrow: "escrow", keys.AccountPrizes: "prizes",
	keys.AccountHouse: "house", keys.AccountMint: "minted",
}

// readNewestEntries returns up to count entries below the number before, or the newest when that is
// 0; newest first. They are all from the store or all from the archive. base is the number of the
// last entry that left the store.
func (s store) readNewestEntries(
	ctx context.Context, gameID, before, count int64,
) (entries []ledger.Entry, base int64, err error) {
	for {
		first, last := -count, int64(-1) // places in the list, from 0; negative ones count from its end
		if before > 0 {
			last = before - base - 2
			first = max(0, last+1-count)
			if last < 0 {
				if before == 1 || s.archive == nil {
					return nil, base, nil
				}
				return s.readNewestArchived(ctx, gameID, before, count)
			}
		}
		var baseReply *redis.StringCmd
		var length *redis.IntCmd
		var page *redis.StringSliceCmd
		_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			baseReply = p.Get(ctx, keys.LedgerBase(gameID))
			length = p.LLen(ctx, keys.Ledger(gameID))
			page = p.LRange(ctx, keys.Ledger(gameID), first, last)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // Nil: no entry was removed yet
			return nil, 0, redisdb.WrapError("read the ledger", err)
		}
		newBase, err := optionalInt(baseReply)
		if err != nil {
			return nil, 0, err
		}
		if before > 0 && newBase != base { // entries were removed: the places are others
			base = newBase
			continue
		}
		newest := newBase + first + int64(len(page.Val()))
		if before == 0 {
			newest = newBase + length.Val()
		}
		entries = make([]ledger.Entry, 0, len(page.Val()))
		for i := len(page.Val()) - 1; i >= 0; i-- {
			entries = append(entries, ledger.Decode(newest-int64(len(entries)), page.Val()[i]))
		}
		return entries, newBase, nil
	}
}

// readNewestArchived is readNewestEntries for entries that have left the store.
func (s store) readNewestArchived(
	ctx context.Context, gameID, before, count int64,
) (entries []ledger.Entry, base int64, err error) {
	after := max(before-1-count, s.archive.FirstOf(before-1)-1)
	entries, err = s.readArchivedEntries(ctx, gameID, after, before-1)
	slices.Reverse(entries)
	return entries, 0, err
}

// movedCounter adds up what this node folds. It is safe for concurrent use.
type movedCounter struct {
	mu      sync.Mutex
	entries int64
	units   map[string]Units
}

// add counts ledger entries that this node has folded.
func (m *movedCounter) add(entries []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries += int64(len(entries))
	for _, text := range entries {
		e := ledger.Decode(0, text)
		if _, known := m.units[e.Code]; !known && len(m.units) >= maxMovedTokens {
			continue
		}
		if m.units == nil {
			m.units = map[string]Units{}
		}
		for _, p := range e.Postings {
			if p.Units > 0 {
				m.units[e.Code] = addUnits(m.units[e.Code], Units(p.Units))
			}
		}
	}
}

func (m *movedCounter) snapshot() Moved {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Moved{Entries: m.entries, Units: maps.Clone(m.units)}
}
