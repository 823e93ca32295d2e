package ledgerstore

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// entriesPageSize bounds how many entries one round trip reads.
const entriesPageSize = 1000

// ReadEntries returns entries after one number and up to another, a page of them at most. With an
// archive they may be from there.
func (s *Store) ReadEntries(ctx context.Context, gameID, after, upTo int64) ([]ledger.Entry, error) {
	for base := int64(0); ; {
		if s.archive != nil && after < base {
			return s.readArchivedEntries(ctx, gameID, after, min(upTo, base))
		}
		first := max(0, after-base) // place in the list, from 0
		last := min(first+entriesPageSize, upTo-base) - 1
		var baseReply *redis.StringCmd
		var page *redis.StringSliceCmd
		_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			baseReply = p.Get(ctx, keys.LedgerBase(gameID))
			page = p.LRange(ctx, keys.Ledger(gameID), first, last)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // Nil: no entry was removed yet
			return nil, redisdb.WrapError("read the ledger", err)
		}
		newBase, err := redisdb.OptionalInt(baseReply)
		if err != nil {
			return nil, err
		}
		if newBase != base { // entries were removed: the places are others
			base = newBase
			continue
		}
		entries := make([]ledger.Entry, len(page.Val()))
		for i, text := range page.Val() {
			entries[i] = ledger.Decode(base+first+int64(i)+1, text)
		}
		return entries, nil
	}
}

// readArchivedEntries returns the entries of a game after one number and up to another that are in
// one segment of the archive.
func (s *Store) readArchivedEntries(ctx context.Context, gameID, after, upTo int64) ([]ledger.Entry, error) {
	if s.archive == nil {
		return nil, ErrNoArchive
	}
	segment, err := s.archive.ReadSegment(ctx, gameID, s.archive.FirstOf(after+1))
	if err != nil {
		return nil, WrapArchiveError(err)
	}
	var entries []ledger.Entry
	for number := after + 1; number <= min(upTo, segment.Last); number++ {
		entries = append(entries, ledger.Decode(number, segment.Entries[number-segment.First]))
	}
	return entries, nil
}

// ReadNewest returns up to count entries below the number before, or the newest when that is 0;
// newest first. They are all from the store or all from the archive. next is the number before
// which the next page is, 0 when nothing older can be read.
func (s *Store) ReadNewest(
	ctx context.Context, gameID, before, count int64,
) (entries []ledger.Entry, next int64, err error) {
	for base := int64(0); ; {
		first, last := -count, int64(-1) // places in the list, from 0; negative ones count from its end
		if before > 0 {
			last = before - base - 2
			first = max(0, last+1-count)
			if last < 0 {
				if before == 1 || s.archive == nil {
					return nil, 0, nil
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
		newBase, err := redisdb.OptionalInt(baseReply)
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
		return entries, s.nextBefore(entries, newBase), nil
	}
}

// nextBefore returns what follows entries, newest first, when base entries have left the store.
func (s *Store) nextBefore(entries []ledger.Entry, base int64) int64 {
	if s.archive != nil {
		base = 0
	}
	if n := len(entries); n > 0 && entries[n-1].Number > base+1 {
		return entries[n-1].Number
	}
	return 0
}

// readNewestArchived is ReadNewest for entries that have left the store.
func (s *Store) readNewestArchived(
	ctx context.Context, gameID, before, count int64,
) (entries []ledger.Entry, next int64, err error) {
	after := max(before-1-count, s.archive.FirstOf(before-1)-1)
	entries, err = s.readArchivedEntries(ctx, gameID, after, before-1)
	slices.Reverse(entries)
	return entries, s.nextBefore(entries, 0), err
}

// Entries returns the entries of a game after one number and up to another, in their order. It ends
// early where the ledger does.
func (s *Store) Entries(ctx context.Context, gameID, after, upTo int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		ends, err := s.ReadEnds(ctx, []int64{gameID})
		if err != nil {
			yield(ledger.Entry{}, err)
			return
		}
		if archived := min(upTo, ends[0].Base); after < archived && s.archive != nil {
			for segment, err := range s.archive.Segments(ctx, gameID, after+1, archived) {
				if err != nil {
					yield(ledger.Entry{}, err)
					return
				}
				for ; after < min(segment.Last, upTo); after++ {
					if !yield(ledger.Decode(after+1, segment.Entries[after+1-segment.First]), nil) {
						return
					}
				}
			}
		}
		for after < upTo {
			page, err := s.ReadEntries(ctx, gameID, after, upTo)
			if err == nil && len(page) == 0 {
				return // the ledger ends here
			}
			if err == nil && page[0].Number != after+1 {
				err = ErrNoArchive
			}
			if err != nil {
				yield(ledger.Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			after = page[len(page)-1].Number
		}
	}
}

// ReadStored returns up to count texts of consecutive entries of a game, and the number of the
// first of them: from, or that of the oldest entry in the store. It does not read the archive.
func (s *Store) ReadStored(ctx context.Context, gameID, from, count int64) (first int64, texts []string, err error) {
	for base := int64(0); ; {
		first = max(from, base+1)
		texts, err = s.ReadTexts(ctx, gameID, base, first-base-1, count)
		if !errors.Is(err, ErrStale) {
			return first, texts, err
		}
		ends, err := s.ReadEnds(ctx, []int64{gameID})
		if err != nil {
			return 0, nil, err
		}
		base = ends[0].Base
	}
}

// ReadTexts returns the texts of as many entries in the store as there are, count at most, after
// those that are skipped, when base entries have left it. Else it returns ErrStale.
func (s *Store) ReadTexts(ctx context.Context, gameID, base, skip, count int64) ([]string, error) {
	var baseReply *redis.StringCmd
	var page *redis.StringSliceCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		baseReply = p.Get(ctx, keys.LedgerBase(gameID))
		page = p.LRange(ctx, keys.Ledger(gameID), skip, skip+count-1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no entry was removed yet
		return nil, redisdb.WrapError("read the ledger", err)
	}
	found, err := redisdb.OptionalInt(baseReply)
	if err == nil && found != base {
		err = ErrStale
	}
	return page.Val(), err
}
