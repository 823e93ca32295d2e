package ledgerstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// Store reads ledgers. It is safe for concurrent use.
type Store struct {
	db       *redisdb.DB
	archive  *archive.Archive // nil when nothing leaves the store
	oldLines *cache.Cache[archivedLines, []string]
	moved    movedCounter
}

const (
	maxCachedLines = 256 // objects of some 50 KB
	linesCacheTTL  = 10 * time.Minute
)

// New returns the ledgers of an open store. old has what has left it, nil for nothing.
func New(db *redisdb.DB, old *archive.Archive) *Store {
	return &Store{
		db: db, archive: old,
		oldLines: cache.New[archivedLines, []string]("archived_lines", maxCachedLines, linesCacheTTL),
	}
}

// Archive returns the archive, nil for none.
func (s *Store) Archive() *archive.Archive { return s.archive }

// ErrStale is returned when entries or lines have left the store meanwhile.
var ErrStale = errors.New("the ledger has changed")

// ErrNoArchive is returned for what has left the store, when there is no archive.
var ErrNoArchive = apierror.StoreUnavailable.
	WithReason("this is in the archive of the ledger, and this node has none: set PARLOR_ARCHIVE")

// WrapArchiveError returns an error of the archive as one that a caller may see.
func WrapArchiveError(err error) error {
	return fmt.Errorf("%w (%w)", apierror.StoreUnavailable.WithReason("the archive of the ledger cannot be read"), err)
}

// How much one call should ask for.
const (
	GamesAtOnce   = 100 // games in one round trip
	PlayersAtOnce = 200 // players whose wallets or lines are read at one instant
)

// Games returns the ids of all games, or gameID alone unless it is 0.
func (s *Store) Games(ctx context.Context, gameID int64) ([]int64, error) {
	if gameID != 0 {
		return []int64{gameID}, nil
	}
	count, err := leader.CountGames(ctx, s.db)
	if err != nil {
		return nil, err
	}
	games := make([]int64, count)
	for i := range games {
		games[i] = int64(i) + 1
	}
	return games, nil
}

// Ends are where the ledger of a game begins and ends in the store.
type Ends struct {
	GameID int64
	Base   int64  // entries that left the store
	Length int64  // entries in the store
	Folded int64  // number of the last folded entry
	Sum    string // of the last segment that left the store, "" for none
}

// Last returns the number of the last entry.
func (e Ends) Last() int64 { return e.Base + e.Length }

// ReadEnds returns the ends of those games that can be read, in their order.
func (s *Store) ReadEnds(ctx context.Context, gameIDs []int64) ([]Ends, error) {
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
	ends := make([]Ends, 0, len(gameIDs))
	var errs []error
	for i, read := range reads {
		base, baseErr := redisdb.OptionalInt(read.base)
		baseAfter, afterErr := redisdb.OptionalInt(read.baseAfter)
		folded, foldedErr := redisdb.OptionalInt(read.folded)
		if baseErr == nil && afterErr == nil && base != baseAfter { // entries were removed between the reads
			again, err := s.ReadEnds(ctx, gameIDs[i:i+1])
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
		ends = append(ends, Ends{gameIDs[i], base, read.length.Val(), folded, sum})
	}
	return ends, errors.Join(errs...)
}

// LastEntry returns the number of the last ledger entry of a game.
func (s *Store) LastEntry(ctx context.Context, gameID int64) (int64, error) {
	ends, err := s.ReadEnds(ctx, []int64{gameID})
	if err != nil {
		return 0, err
	}
	return ends[0].Last(), nil
}

// LastEntries returns the number of the last ledger entry of each game.
func (s *Store) LastEntries(ctx context.Context) (map[int64]int64, error) {
	games, err := s.Games(ctx, 0)
	if err != nil {
		return nil, err
	}
	lasts := make(map[int64]int64, len(games))
	for some := range slices.Chunk(games, GamesAtOnce) {
		ends, err := s.ReadEnds(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, end := range ends {
			lasts[end.GameID] = end.Last()
		}
	}
	return lasts, nil
}
