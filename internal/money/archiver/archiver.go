package archiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"golang.org/x/sync/errgroup"
)

// Retention is how much stays in the store at least, when there is an archive.
type Retention struct {
	Entries int64 // newest entries of a game's ledger
	Lines   int64 // newest lines of a player
}

// DefaultRetention is what every node keeps. A page of a ledger is read from the archive only when
// somebody turns back far.
var DefaultRetention = Retention{Entries: 1000, Lines: 1000}

const (
	maxSegmentsAtOnce = 20   // of a game, before the next one has its turn
	linesAtOnce       = 8    // players whose lines are written at a time
	maxCachedHeads    = 4096 // games whose last segment a node knows
	maxWantedAtOnce   = 64   // checkpoints that wait
	archiveTimeout    = 5 * time.Second
	watchInterval     = 10 * time.Second
	lagInterval       = time.Minute
	walkInterval      = 24 * time.Hour
	checkpointTimeout = 10 * time.Minute
	lateAfter         = 10 * time.Minute // the archive is late when an entry waits for longer
)

// Service archives the ledgers of games. It is safe for concurrent use.
type Service struct {
	db      *redisdb.DB
	ledgers *ledgerstore.Store
	archive *archive.Archive
	keep    Retention
	leading *leader.Work
	heads   *cache.Cache[int64, *head] // by game
	wanted  chan checkpointJob
	lost    aheadGames // of the goroutine of watch

	working sync.Mutex // held while a head is used

	mu      sync.Mutex
	problem error // of the last round, nil when it did all

	status atomic.Pointer[Status]
}

// Options are the settings of the archiver.
type Options struct {
	Keep Retention // zero is DefaultRetention
	// LostIn returns for each game that lost entries the epoch in which it lost some last: there the
	// archive is compared with the store. Nil: it is compared nowhere.
	LostIn func() map[int64]int64
}

// head is the last segment of a game whose entries left the store.
type head struct {
	archive.Segment        // without its entries
	verified        int64  // the totals were the sums of the ledger up to this entry
	check           *check // that goes on in the next round, or nil
}

// check compares the totals of a game with the sums of its ledger, page by page.
type check struct {
	sums   ledger.Totals
	number int64              // of the last entry in the sums
	want   ledgerstore.Totals // at an instant
}

type checkpointJob struct{ gameID, number int64 }

// Status is what a node knows about the archive.
type Status struct {
	OK         bool
	Detail     string        // a sentence
	LagEntries int64         // ledger entries that should have left the store
	Lag        time.Duration // for how long the oldest of them has been due
}

// New returns an archiver of ledgers on an open store, which must have an archive.
func New(db *redisdb.DB, ledgers *ledgerstore.Store, o Options) *Service {
	s := &Service{
		db: db, ledgers: ledgers, archive: ledgers.Archive(), keep: cmp.Or(o.Keep, DefaultRetention),
		wanted: make(chan checkpointJob, maxWantedAtOnce),
		heads:  cache.New[int64, *head]("archive_heads", maxCachedHeads, 0),
		lost:   aheadGames{lostIn: o.LostIn, inStep: map[int64]int64{}},
	}
	s.leading = leader.New(db, "archive", leader.EndsNothing, s.handle)
	s.status.Store(&Status{Detail: "was not reached yet"})
	return s
}

// Run moves old entries and lines to the archive, about once a minute, until ctx ends. Every node
// runs it, and an elected one does the work.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{s.leading.Run, s.runCheckpoints, s.watch} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// Archive moves all that is old in a game to the archive. It needs no leader, as a fold.
func (s *Service) Archive(ctx context.Context, gameID int64) error {
	if err := s.ledgers.Fold(ctx, gameID); err != nil {
		return err
	}
	return s.archiveAll(ctx, gameID)
}

// Status returns what this node knows about the archive, at most some seconds old.
func (s *Service) Status() Status { return *s.status.Load() }

// handle archives what is due of some games, as their leader. It returns the games that have more.
func (s *Service) handle(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error) {
	unfinished = []int64{} // also with an error: what cannot be archived waits for the look at every game
	for some := range slices.Chunk(gameIDs, ledgerstore.GamesAtOnce) {
		ends, readErr := s.ledgers.ReadEnds(ctx, some)
		err = errors.Join(err, readErr)
		for _, end := range ends {
			if !s.isDue(end) {
				if end.Length-s.keep.Entries >= s.archive.Sizes().Entries { // it is folded within a second
					unfinished = append(unfinished, end.GameID)
				}
				continue
			}
			more, gameErr := s.archiveGame(ctx, &fence, end)
			switch {
			case ctx.Err() != nil: // the lease is over
				more = true
			case gameErr != nil:
				err = errors.Join(err, fmt.Errorf("archive the ledger of game %d: %w", end.GameID, gameErr))
			}
			if more {
				unfinished = append(unfinished, end.GameID)
			}
		}
	}
	s.mu.Lock()
	s.problem = err
	s.mu.Unlock()
	return unfinished, err
}

// due returns how many segments should leave the store.
func (s *Service) due(end ledgerstore.Ends) int64 {
	return max(0, min(end.Length-s.keep.Entries, end.Folded-end.Base)) / s.archive.Sizes().Entries
}

func (s *Service) isDue(end ledgerstore.Ends) bool { return s.due(end) > 0 }

// archiveGame archives some segments of a game. It reports whether there may be more. fence is nil
// outside of the leader's work.
func (s *Service) archiveGame(ctx context.Context, fence *int64, end ledgerstore.Ends) (more bool, err error) {
	s.working.Lock()
	defer s.working.Unlock()
	head, err := s.findHead(ctx, end)
	if err != nil {
		return false, err
	}
	segments := s.due(end)
	for range min(segments, maxSegmentsAtOnce) {
		err := s.archiveSegment(ctx, fence, end.GameID, head)
		if errors.Is(err, ledgerstore.ErrStale) {
			s.heads.Remove(end.GameID)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if head.Last%s.archive.Sizes().Checkpoint == 0 {
			s.want(end.GameID, head.Last)
		}
	}
	return segments > maxSegmentsAtOnce, nil
}

// want asks runCheckpoints to make a checkpoint later. A request that does not fit into the queue
// is dropped: the next checkpoint of the game covers those segments too.
func (s *Service) want(gameID, number int64) {
	select {
	case s.wanted <- checkpointJob{gameID, number}:
	default:
	}
}

// findHead returns the last segment that left the store. If another node wrote it, findHead reads
// it from the archive and compares its sum, so that a wrong archive is noticed.
func (s *Service) findHead(ctx context.Context, end ledgerstore.Ends) (*head, error) {
	if head, ok := s.heads.Get(end.GameID); ok && head.Last == end.Base && head.Sum == end.Sum {
		return head, nil
	}
	head := &head{}
	if end.Base > 0 {
		size := s.archive.Sizes().Entries
		if end.Base%size != 0 {
			return nil, fmt.Errorf("%d entries were removed, which is no multiple of %d", end.Base, size)
		}
		segment, err := s.archive.ReadSegment(ctx, end.GameID, end.Base-size+1)
		if err != nil {
			return nil, err
		}
		if segment.Sum != end.Sum {
			return nil, fmt.Errorf("the segment before entry %d: %w", end.Base+1, archive.ErrConflict)
		}
		segment.Entries = nil
		head.Segment = segment
		s.want(end.GameID, end.Base-end.Base%s.archive.Sizes().Checkpoint)
	}
	s.heads.Add(end.GameID, head)
	return head, nil
}

// archiveSegment moves the segment that follows the head, which then is the new segment. It returns
// ledgerstore.ErrStale when somebody else has moved it.
func (s *Service) archiveSegment(ctx context.Context, fence *int64, gameID int64, head *head) error {
	size := s.archive.Sizes().Entries
	if head.verified < head.Last+size {
		if err := s.verify(ctx, gameID, head); err != nil {
			return err
		}
	}
	entries, err := s.ledgers.ReadTexts(ctx, gameID, head.Last, 0, size)
	if err == nil && int64(len(entries)) != size {
		err = ledgerstore.ErrStale
	}
	if err != nil {
		return err
	}
	segment, err := s.archive.WriteSegment(ctx, gameID, head.Segment, entries)
	if err != nil {
		return err
	}
	if err := s.archiveLines(ctx, gameID, playersIn(segment)); err != nil {
		return err
	}
	if err := s.trimLedger(ctx, fence, head.Segment, segment); err != nil {
		return err
	}
	segment.Entries = nil
	head.Segment = segment
	return nil
}

// playersIn returns the players whose wallets the entries of a segment change.
func playersIn(s archive.Segment) []int64 {
	players := map[int64]struct{}{}
	for i, text := range s.Entries {
		for _, p := range ledger.Decode(s.First+int64(i), text).Postings {
			if userID, ok := p.UserID(); ok {
				players[userID] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(players))
}

// verify compares the totals of a game with the sums of its ledger: entries that do not add up to
// them are evidence and stay where they are.
func (s *Service) verify(ctx context.Context, gameID int64, head *head) error {
	if head.check == nil || head.check.number < head.Last {
		all, err := s.ledgers.ReadTotals(ctx, []int64{gameID})
		if err != nil {
			return err
		}
		if all[0].Defect != nil {
			return all[0].Defect
		}
		head.check = &check{sums: head.Totals.Clone(), number: head.Last, want: all[0]}
	}
	c := head.check
	for c.number < c.want.Sequence {
		entries, err := s.ledgers.ReadEntries(ctx, gameID, c.number, c.want.Sequence)
		if err != nil {
			return err
		}
		if len(entries) == 0 || entries[0].Number != c.number+1 {
			return ledgerstore.ErrStale
		}
		for _, e := range entries {
			c.sums.Add(e)
		}
		c.number = entries[len(entries)-1].Number
	}
	head.check = nil
	for _, d := range c.want.Tokens.Compare(c.sums) {
		return fmt.Errorf("%s of %s is %d, and the ledger up to entry %d has %d: nothing is removed",
			d.Total, d.Code, d.Has, c.number, d.Wants)
	}
	head.verified = c.number
	return nil
}

// archiveLines moves old lines of players who have many.
func (s *Service) archiveLines(ctx context.Context, gameID int64, userIDs []int64) error {
	for some := range slices.Chunk(userIDs, ledgerstore.PlayersAtOnce) {
		lists, err := s.ledgers.CountLines(ctx, gameID, some)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(linesAtOnce)
		for _, list := range lists {
			if list.Length >= s.keep.Lines+s.archive.Sizes().Lines {
				group.Go(func() error { return s.archiveLinesOf(ctx, gameID, list) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) archiveLinesOf(ctx context.Context, gameID int64, list ledgerstore.LineCount) error {
	size := s.archive.Sizes().Lines
	for ; list.Length >= s.keep.Lines+size; list.Length, list.Base = list.Length-size, list.Base+size {
		lines, err := s.ledgers.ReadLines(ctx, gameID, list.UserID, list.Base, 0, size)
		if errors.Is(err, ledgerstore.ErrStale) || err == nil && int64(len(lines)) != size {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.archive.WriteLines(ctx, gameID, list.UserID, list.Base+1, lines); err != nil {
			return err
		}
		err = s.trimLines(ctx, gameID, list.UserID, list.Base, lines, s.keep.Lines)
		if err != nil && !errors.Is(err, ledgerstore.ErrStale) {
			return err
		}
	}
	return nil
}

// archiveAll archives all that is due of a game.
func (s *Service) archiveAll(ctx context.Context, gameID int64) error {
	for {
		ends, err := s.ledgers.ReadEnds(ctx, []int64{gameID})
		if err != nil || !s.isDue(ends[0]) {
			return errors.Join(err, s.makeWanted(ctx))
		}
		if _, err := s.archiveGame(ctx, nil, ends[0]); err != nil {
			return fmt.Errorf("archive the ledger of game %d: %w", gameID, err)
		}
	}
}

// makeWanted makes the checkpoints that were asked for.
func (s *Service) makeWanted(ctx context.Context) error {
	for {
		select {
		case job := <-s.wanted:
			if err := s.makeCheckpoint(ctx, job); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (s *Service) makeCheckpoint(ctx context.Context, job checkpointJob) error {
	ctx, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	if err := s.archive.MakeCheckpoint(ctx, job.gameID, job.number); err != nil {
		return fmt.Errorf("make the checkpoint of game %d at entry %d: %w", job.gameID, job.number, err)
	}
	return nil
}

// runCheckpoints makes checkpoints until ctx ends. They need no leader: everybody makes the same.
func (s *Service) runCheckpoints(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case job := <-s.wanted:
			if err := s.makeCheckpoint(ctx, job); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "a checkpoint of the ledger failed", "error", err)
			}
		}
	}
}

// watch keeps the status up to date, and once a day looks at the lines of every player: lines
// without a posting, of purchases for nothing, are found in no segment.
func (s *Service) watch(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for rounds := 0; ; rounds++ {
		s.updateStatus(ctx, rounds%int(lagInterval/watchInterval) == 0)
		if err := s.walk(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "looking for old lines of players failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// walk archives the old lines of every player, on one node a day.
func (s *Service) walk(ctx context.Context) error {
	first, err := s.claimLinesScan(ctx, walkInterval)
	if err != nil || !first {
		return err
	}
	players, err := s.ledgers.ListPlayers(ctx, 0)
	if err != nil {
		return err
	}
	for gameID, userIDs := range players {
		if err := s.archiveLines(ctx, gameID, userIDs); err != nil {
			return err
		}
	}
	return nil
}

// updateStatus looks whether the archive can be reached and, withLag, how far it is behind.
func (s *Service) updateStatus(ctx context.Context, withLag bool) {
	before, now := *s.status.Load(), Status{OK: true, Detail: "takes what leaves the store"}
	now.LagEntries, now.Lag = before.LagEntries, before.Lag
	s.mu.Lock()
	problem := s.problem
	s.mu.Unlock()
	checkCtx, cancel := context.WithTimeout(ctx, archiveTimeout)
	err := s.archive.Check(checkCtx)
	cancel()
	if withLag && ctx.Err() == nil {
		if entries, lag, lagErr := s.readLag(ctx, s.keep.Entries, s.archive.Sizes().Entries); lagErr == nil {
			now.LagEntries, now.Lag = entries, lag
		}
	}
	if err == nil {
		s.lost.update(ctx, s.ledgers)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		now.OK, now.Detail = false, "cannot be reached; the ledger stays in the store and grows"
	case len(s.lost.ahead) > 0:
		now.OK, now.Detail = false, s.lost.problem()
	case errors.Is(problem, archive.ErrConflict):
		now.OK = false
		now.Detail = "has another history than the store, as after a restore: stop the nodes and run \"parlor ledger rewind\""
	case now.Lag > lateAfter:
		now.OK = false
		now.Detail = fmt.Sprintf("is late: %d entries of the ledger have been due for up to %s; the log of a node says why",
			now.LagEntries, now.Lag.Round(time.Second))
	}
	if now.OK != before.OK {
		level := slog.LevelWarn
		if now.OK {
			level = slog.LevelInfo
		}
		slog.Log(ctx, level, "the archive changed its state", "ok", now.OK, "detail", now.Detail,
			"error", errors.Join(err, problem))
	}
	s.status.Store(&now)
}
