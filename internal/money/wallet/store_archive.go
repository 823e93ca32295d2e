package wallet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// ledgerEnds are where the ledger of a game begins and ends in the store.
type ledgerEnds struct {
	gameID int64
	base   int64  // entries that left the store
	length int64  // entries in the store
	folded int64  // number of the last folded entry
	sum    string // of the last segment that left the store, "" for none
}

// readLedgerEnds returns the ends of those games that can be read, in their order.
func (s store) readLedgerEnds(ctx context.Context, gameIDs []int64) ([]ledgerEnds, error) {
	type replies struct {
		base, folded, sum, baseAfter *redis.StringCmd
		length                       *redis.IntCmd
	}
	reads := make([]replies, len(gameIDs))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range gameIDs {
			reads[i] = replies{
				p.Get(ctx, keys.LedgerBase(id)), p.HGet(ctx, keys.Totals(id), keys.TotalsFoldedField),
				p.HGet(ctx, keys.LedgerArchive(id), keys.LedgerArchiveSumField), p.Get(ctx, keys.LedgerBase(id)),
				p.LLen(ctx, keys.Ledger(id)),
			}
		}
		return nil
	})
	ends := make([]ledgerEnds, 0, len(gameIDs))
	var errs []error
	for i, read := range reads {
		base, baseErr := optionalInt(read.base)
		baseAfter, afterErr := optionalInt(read.baseAfter)
		folded, foldedErr := optionalInt(read.folded)
		if baseErr == nil && afterErr == nil && base != baseAfter { // entries were removed between the reads
			again, err := s.readLedgerEnds(ctx, gameIDs[i:i+1])
			ends, errs = append(ends, again...), append(errs, err)
			continue
		}
		sum, sumErr := read.sum.Result()
		if errors.Is(sumErr, redis.Nil) {
			sumErr = nil
		}
		if err := errors.Join(baseErr, afterErr, foldedErr, sumErr, read.length.Err()); err != nil {
			errs = append(errs, redisdb.WrapError("read the ledger of game "+strconv.FormatInt(gameIDs[i], 10), err))
			continue
		}
		ends = append(ends, ledgerEnds{gameIDs[i], base, read.length.Val(), folded, sum})
	}
	return ends, errors.Join(errs...)
}

// readFirstEntries returns the first entries in the store, when base entries have left it. Else it
// returns errStale.
func (s store) readFirstEntries(ctx context.Context, gameID, base, count int64) ([]string, error) {
	entries, err := s.readEntryTexts(ctx, gameID, base, 0, count)
	if err == nil && int64(len(entries)) != count {
		err = errStale
	}
	return entries, err
}

// readEntryTexts returns as many entries as there are, count at most, after those that are skipped,
// when base entries have left the store. Else it returns errStale.
func (s store) readEntryTexts(ctx context.Context, gameID, base, skip, count int64) ([]string, error) {
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
	found, err := optionalInt(baseReply)
	if err == nil && found != base {
		err = errStale
	}
	return page.Val(), err
}

// trimLedger removes the entries of a segment that the archive has. It returns errStale.
func (s store) trimLedger(ctx context.Context, fence *int64, before, segment archive.Segment) error {
	holder := ""
	if fence != nil {
		holder = strconv.FormatInt(*fence, 10)
	}
	id := segment.GameID
	reply, err := s.db.RunScript(ctx, scripts.LedgerTrim,
		[]string{keys.Ledger(id), keys.LedgerBase(id), keys.Totals(id), keys.LedgerArchive(id)},
		scripts.LedgerTrimArgs{
			Fence: holder, Before: before.Last, Count: len(segment.Entries),
			LastText: segment.Entries[len(segment.Entries)-1], PreviousSum: before.Sum, Sum: segment.Sum,
		}.List()...)
	if err != nil {
		return err
	}
	if reply.Status == scripts.Stale {
		return errStale
	}
	return reply.Err(scripts.LedgerTrim)
}

// lineCount is how many lines a player has.
type lineCount struct {
	userID int64
	base   int64 // lines that left the store
	length int64 // lines in the store
}

func (s store) readLineCounts(ctx context.Context, gameID int64, userIDs []int64) ([]lineCount, error) {
	type replies struct {
		base   *redis.StringCmd
		length *redis.IntCmd
	}
	reads := make([]replies, len(userIDs))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range userIDs {
			reads[i] = replies{
				p.HGet(ctx, keys.Wallet(gameID, id), keys.WalletBaseField), p.LLen(ctx, keys.WalletLines(gameID, id)),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) { // Nil: no line was removed yet
		return nil, redisdb.WrapError("count the lines of players", err)
	}
	counts := make([]lineCount, 0, len(userIDs))
	for i, id := range userIDs {
		base, err := optionalInt(reads[i].base)
		if err != nil || reads[i].length.Err() != nil {
			continue // the audit shows what is wrong with this player
		}
		counts = append(counts, lineCount{id, base, reads[i].length.Val()})
	}
	return counts, nil
}

// readFirstLines returns the first lines in the store, when base lines have left it. Else it
// returns errStale.
func (s store) readFirstLines(ctx context.Context, gameID, userID, base, count int64) ([]string, error) {
	lines, err := s.readLineTexts(ctx, gameID, lineCount{userID: userID, base: base}, 0, count)
	if err == nil && int64(len(lines)) != count {
		err = errStale
	}
	return lines, err
}

// readLineTexts is readEntryTexts for the lines of a player.
func (s store) readLineTexts(ctx context.Context, gameID int64, of lineCount, skip, count int64) ([]string, error) {
	var baseReply *redis.StringCmd
	var page *redis.StringSliceCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		baseReply = p.HGet(ctx, keys.Wallet(gameID, of.userID), keys.WalletBaseField)
		page = p.LRange(ctx, keys.WalletLines(gameID, of.userID), skip, skip+count-1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no line was removed yet
		return nil, redisdb.WrapError("read a player's lines", err)
	}
	found, err := optionalInt(baseReply)
	if err == nil && found != of.base {
		err = errStale
	}
	return page.Val(), err
}

// trimLines removes lines that the archive has. It returns errStale.
func (s store) trimLines(ctx context.Context, gameID, userID, base int64, lines []string, keep int64) error {
	wallet, list := keys.WalletWithLines(gameID, userID)
	reply, err := s.db.RunScript(ctx, scripts.LinesTrim, []string{wallet, list},
		scripts.LinesTrimArgs{
			Before: base, Count: len(lines), LastText: lines[len(lines)-1], Least: keep,
		}.List()...)
	if err != nil {
		return err
	}
	if reply.Status == scripts.Stale {
		return errStale
	}
	return reply.Err(scripts.LinesTrim)
}

// claimWalk reports whether this node shall look at every player's lines now.
func (s store) claimWalk(ctx context.Context, interval time.Duration) (bool, error) {
	return s.db.TryAcquire(ctx, keys.LinesLookedAt(), idempotency.NewNonce(), interval)
}

// readArchiveLag returns how many ledger entries should have left the store, and for how long the
// first of them should have: segments of a size leave when as many entries are kept.
func (s store) readArchiveLag(ctx context.Context, keep, size int64) (entries int64, oldest time.Duration, err error) {
	games, err := s.listGames(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	for some := range slices.Chunk(games, gamesPageSize) {
		type replies struct {
			length *redis.IntCmd
			due    *redis.StringCmd
		}
		reads := make([]replies, len(some))
		_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range some {
				reads[i] = replies{p.LLen(ctx, keys.Ledger(id)), p.LIndex(ctx, keys.Ledger(id), keep+size-1)}
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) { // Nil: nothing is due
			return 0, 0, redisdb.WrapError("read the lengths of ledgers", err)
		}
		for _, read := range reads {
			if read.due.Err() != nil || read.length.Err() != nil {
				continue
			}
			entries += (read.length.Val() - keep) / size * size
			if at := ledger.Decode(0, read.due.Val()).At; !at.IsZero() {
				oldest = max(oldest, time.Since(at))
			}
		}
	}
	return entries, oldest, nil
}

// readArchivedLines returns at most count lines of a player that are in the archive, the last of
// them with the id last; oldest first. firstID is the id of the first one.
func (s store) readArchivedLines(
	ctx context.Context, gameID, userID, last, count int64,
) (entries []string, firstID int64, err error) {
	if s.archive == nil {
		return nil, 0, errNoArchive
	}
	firstID = s.archive.FirstLineOf(last)
	name := archivedLines{gameID, userID, firstID}
	lines, ok := s.oldLines.Get(name)
	if !ok {
		if lines, err = s.archive.ReadLines(ctx, gameID, userID, firstID); err != nil {
			return nil, 0, archiveError(err)
		}
		s.oldLines.Add(name, lines)
	}
	lines = lines[:last-firstID+1]
	skipped := max(0, int64(len(lines))-count)
	return lines[skipped:], firstID + skipped, nil
}

// archivedLines names the lines of one object.
type archivedLines struct{ gameID, userID, first int64 }

const (
	maxCachedLines = 256 // objects of some 50 KB
	linesCacheTTL  = 10 * time.Minute
)

// readArchivedEntries returns the entries of a game after one number and up to another that are in
// one segment of the archive.
func (s store) readArchivedEntries(ctx context.Context, gameID, after, upTo int64) ([]ledger.Entry, error) {
	if s.archive == nil {
		return nil, errNoArchive
	}
	segment, err := s.archive.ReadSegment(ctx, gameID, s.archive.FirstOf(after+1))
	if err != nil {
		return nil, archiveError(err)
	}
	var entries []ledger.Entry
	for number := after + 1; number <= min(upTo, segment.Last); number++ {
		entries = append(entries, ledger.Decode(number, segment.Entries[number-segment.First]))
	}
	return entries, nil
}

var errNoArchive = apierror.StoreUnavailable.
	WithReason("this is in the archive of the ledger, and this node has none: set PARLOR_ARCHIVE")

// archiveError returns an error of the archive as one that a caller may see.
func archiveError(err error) error {
	return fmt.Errorf("%w (%w)", apierror.StoreUnavailable.WithReason("the archive of the ledger cannot be read"), err)
}
