package archiver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// trimLedger removes the entries of a segment that the archive has. It returns
// ledgerstore.ErrStale.
func (s *Service) trimLedger(ctx context.Context, fence *int64, before, segment archive.Segment) error {
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
		return ledgerstore.ErrStale
	}
	return reply.Err(scripts.LedgerTrim)
}

// trimLines removes lines that the archive has. It returns ledgerstore.ErrStale.
func (s *Service) trimLines(ctx context.Context, gameID, userID, base int64, lines []string, keep int64) error {
	wallet, list := keys.WalletWithLines(gameID, userID)
	reply, err := s.db.RunScript(ctx, scripts.LinesTrim, []string{wallet, list},
		scripts.LinesTrimArgs{Before: base, Count: len(lines), LastText: lines[len(lines)-1], Least: keep}.List()...)
	if err != nil {
		return err
	}
	if reply.Status == scripts.Stale {
		return ledgerstore.ErrStale
	}
	return reply.Err(scripts.LinesTrim)
}

// claimLinesScan reports whether this node must scan the lines of every player now: one node does
// so in each interval.
func (s *Service) claimLinesScan(ctx context.Context, interval time.Duration) (bool, error) {
	return s.db.TryAcquire(ctx, keys.LinesLookedAt(), idempotency.NewNonce(), interval)
}

// lagGamesAtOnce bounds how many games one round trip of readLag reads.
const lagGamesAtOnce = 1000

// readLag returns how many ledger entries should have left the store, and for how long the first of
// them should have: segments of a size leave when as many entries are kept.
func (s *Service) readLag(ctx context.Context, keep, size int64) (entries int64, oldest time.Duration, err error) {
	games, err := s.ledgers.Games(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	for some := range slices.Chunk(games, lagGamesAtOnce) {
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
