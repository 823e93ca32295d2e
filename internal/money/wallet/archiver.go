package wallet

import (
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

// archiver moves what is old from the store to the archive. It is safe for concurrent use.
//
// A segment is written and read back before its entries are removed. Who does it twice writes the
// same, and the script that removes entries checks the number, the last text and the sum of the
// segment before: so it does not matter where a leader dies, or whether there are two.
type archiver struct {
	store   store
	archive *archive.Archive
	keep    Retention
	heads   *cache.Cache[int64, *archiveHead] // by game
	wanted  chan checkpointJob
	lost    aheadGames // of the goroutine of watch

	working sync.Mutex // held while a head is used

	mu      sync.Mutex
	problem error // of the last round, nil when it did all

	status atomic.Pointer[ArchiveStatus]
}

// archiveHead is the last segment of a game whose entries left the store.
type archiveHead struct {
	archive.Segment        // without its entries
	verified        int64  // the totals were the sums of the ledger up to this entry
	check           *check // that goes on in the next round, or nil
}

// check compares the totals of a game with the sums of its ledger, page by page.
type check struct {
	sums   ledger.Totals
	number int64  // of the last entry in the sums
	want   totals // at an instant
}

type checkpointJob struct{ gameID, number int64 }

// ArchiveStatus is what a node knows about the archive.
type ArchiveStatus struct {
	OK         bool
	Detail     string        // a sentence
	LagEntries int64         // ledger entries that should have left the store
	Lag        time.Duration // for how long the oldest of them has been due
}

func newArchiver(s store, keep Retention) *archiver {
	a := &archiver{
		store: s, archive: s.archive, keep: keep, wanted: make(chan checkpointJob, maxWantedAtOnce),
		heads: cache.New[int64, *archiveHead]("archive_heads", maxCachedHeads, 0),
		lost:  aheadGames{inStep: map[int64]int64{}},
	}
	a.status.Store(&ArchiveStatus{Detail: "was not reached yet"})
	return a
}

// errStale is returned when somebody else has removed entries meanwhile.
var errStale = errors.New("the ledger has changed")

// handle archives what is due of some games, as their leader. It returns the games that have more.
func (a *archiver) handle(ctx context.Context, fence int64, gameIDs []int64) (unfinished []int64, err error) {
	unfinished = []int64{} // also with an error: what cannot be archived waits for the look at every game
	for some := range slices.Chunk(gameIDs, foldedGames) {
		ends, readErr := a.store.readLedgerEnds(ctx, some)
		err = errors.Join(err, readErr)
		for _, end := range ends {
			if !a.isDue(end) {
				if end.length-a.keep.Entries >= a.archive.Sizes().Entries { // it is folded within a second
					unfinished = append(unfinished, end.gameID)
				}
				continue
			}
			more, gameErr := a.archiveGame(ctx, &fence, end)
			switch {
			case ctx.Err() != nil: // the lease is over
				more = true
			case gameErr != nil:
				err = errors.Join(err, fmt.Errorf("archive the ledger of game %d: %w", end.gameID, gameErr))
			}
			if more {
				unfinished = append(unfinished, end.gameID)
			}
		}
	}
	a.mu.Lock()
	a.problem = err
	a.mu.Unlock()
	return unfinished, err
}

// due returns how many segments should leave the store.
func (a *archiver) due(end ledgerEnds) int64 {
	return max(0, min(end.length-a.keep.Entries, end.folded-end.base)) / a.archive.Sizes().Entries
}

func (a *archiver) isDue(end ledgerEnds) bool { return a.due(end) > 0 }

// archiveGame archives some segments of a game. It reports whether there may be more. fence is nil
// outside of the leader's work.
func (a *archiver) archiveGame(ctx context.Context, fence *int64, end ledgerEnds) (more bool, err error) {
	a.working.Lock()
	defer a.working.Unlock()
	head, err := a.findHead(ctx, end)
	if err != nil {
		return false, err
	}
	segments := a.due(end)
	for range min(segments, maxSegmentsAtOnce) {
		err := a.archiveSegment(ctx, fence, end.gameID, head)
		if errors.Is(err, errStale) {
			a.heads.Remove(end.gameID)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if head.Last%a.archive.Sizes().Checkpoint == 0 {
			a.want(end.gameID, head.Last)
		}
	}
	return segments > maxSegmentsAtOnce, nil
}

// want asks for a checkpoint. It is made later, by runCheckpoints; one that is forgotten is made up
// for by the next one.
func (a *archiver) want(gameID, number int64) {
	select {
	case a.wanted <- checkpointJob{gameID, number}:
	default:
	}
}

// findHead returns the last segment that left the store. One that this node has not written is read
// and verified: the archive must be the one that the store's entries went to.
func (a *archiver) findHead(ctx context.Context, end ledgerEnds) (*archiveHead, error) {
	if head, ok := a.heads.Get(end.gameID); ok && head.Last == end.base && head.Sum == end.sum {
		return head, nil
	}
	head := &archiveHead{}
	if end.base > 0 {
		size := a.archive.Sizes().Entries
		if end.base%size != 0 {
			return nil, fmt.Errorf("%d entries were removed, which is no multiple of %d", end.base, size)
		}
		segment, err := a.archive.ReadSegment(ctx, end.gameID, end.base-size+1)
		if err != nil {
			return nil, err
		}
		if segment.Sum != end.sum {
			return nil, fmt.Errorf("the segment before entry %d: %w", end.base+1, archive.ErrConflict)
		}
		segment.Entries = nil
		head.Segment = segment
		a.want(end.gameID, end.base-end.base%a.archive.Sizes().Checkpoint)
	}
	a.heads.Add(end.gameID, head)
	return head, nil
}

// archiveSegment moves the segment that follows the head, which then is the new segment. It returns
// errStale when somebody else has moved it.
func (a *archiver) archiveSegment(ctx context.Context, fence *int64, gameID int64, head *archiveHead) error {
	size := a.archive.Sizes().Entries
	if head.verified < head.Last+size {
		if err := a.verify(ctx, gameID, head); err != nil {
			return err
		}
	}
	entries, err := a.store.readFirstEntries(ctx, gameID, head.Last, size)
	if err != nil {
		return err
	}
	segment, err := a.archive.WriteSegment(ctx, gameID, head.Segment, entries)
	if err != nil {
		return err
	}
	if err := a.archiveLines(ctx, gameID, playersIn(segment)); err != nil {
		return err
	}
	if err := a.store.trimLedger(ctx, fence, head.Segment, segment); err != nil {
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
func (a *archiver) verify(ctx context.Context, gameID int64, head *archiveHead) error {
	if head.check == nil || head.check.number < head.Last {
		all, err := a.store.readTotals(ctx, []int64{gameID})
		if err != nil {
			return err
		}
		if all[0].defect != nil {
			return all[0].defect
		}
		head.check = &check{sums: head.Totals.Clone(), number: head.Last, want: all[0]}
	}
	c := head.check
	for c.number < c.want.sequence {
		entries, err := a.store.readEntries(ctx, gameID, c.number, c.want.sequence)
		if err != nil {
			return err
		}
		if len(entries) == 0 || entries[0].Number != c.number+1 {
			return errStale
		}
		for _, e := range entries {
			c.sums.Add(e)
		}
		c.number = entries[len(entries)-1].Number
	}
	head.check = nil
	for code := range union(c.sums, c.want.tokens) {
		for name := range union(c.sums[code], c.want.tokens[code]) {
			if stored, sum := c.want.tokens[code][name], Units(c.sums[code][name]); stored != sum {
				return fmt.Errorf("%s of %s is %s, and the ledger up to entry %d has %s: nothing is removed",
					name, code, stored, c.number, sum)
			}
		}
	}
	head.verified = c.number
	return nil
}

// archiveLines moves old lines of players who have many.
func (a *archiver) archiveLines(ctx context.Context, gameID int64, userIDs []int64) error {
	for some := range slices.Chunk(userIDs, walletPageSize) {
		lists, err := a.store.readLineCounts(ctx, gameID, some)
		if err != nil {
			return err
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(linesAtOnce)
		for _, list := range lists {
			if list.length >= a.keep.Lines+a.archive.Sizes().Lines {
				group.Go(func() error { return a.archiveLinesOf(ctx, gameID, list) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (a *archiver) archiveLinesOf(ctx context.Context, gameID int64, list lineCount) error {
	size := a.archive.Sizes().Lines
	for ; list.length >= a.keep.Lines+size; list.length, list.base = list.length-size, list.base+size {
		lines, err := a.store.readFirstLines(ctx, gameID, list.userID, list.base, size)
		if errors.Is(err, errStale) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.archive.WriteLines(ctx, gameID, list.userID, list.base+1, lines); err != nil {
			return err
		}
		err = a.store.trimLines(ctx, gameID, list.userID, list.base, lines, a.keep.Lines)
		if err != nil && !errors.Is(err, errStale) {
			return err
		}
	}
	return nil
}

// archiveAll archives all that is due of a game.
func (a *archiver) archiveAll(ctx context.Context, gameID int64) error {
	for {
		ends, err := a.store.readLedgerEnds(ctx, []int64{gameID})
		if err != nil || !a.isDue(ends[0]) {
			return errors.Join(err, a.makeWanted(ctx))
		}
		if _, err := a.archiveGame(ctx, nil, ends[0]); err != nil {
			return fmt.Errorf("archive the ledger of game %d: %w", gameID, err)
		}
	}
}

// makeWanted makes the checkpoints that were asked for.
func (a *archiver) makeWanted(ctx context.Context) error {
	for {
		select {
		case job := <-a.wanted:
			if err := a.makeCheckpoint(ctx, job); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (a *archiver) makeCheckpoint(ctx context.Context, job checkpointJob) error {
	ctx, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	if err := a.archive.MakeCheckpoint(ctx, job.gameID, job.number); err != nil {
		return fmt.Errorf("make the checkpoint of game %d at entry %d: %w", job.gameID, job.number, err)
	}
	return nil
}

// runCheckpoints makes checkpoints until ctx ends. They need no leader: everybody makes the same.
func (a *archiver) runCheckpoints(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case job := <-a.wanted:
			if err := a.makeCheckpoint(ctx, job); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "a checkpoint of the ledger failed", "error", err)
			}
		}
	}
}

// watch keeps the status up to date, and once a day looks at the lines of every player: lines
// without a posting, of purchases for nothing, are found in no segment.
func (a *archiver) watch(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for rounds := 0; ; rounds++ {
		a.updateStatus(ctx, rounds%int(lagInterval/watchInterval) == 0)
		if err := a.walk(ctx); err != nil && ctx.Err() == nil {
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
func (a *archiver) walk(ctx context.Context) error {
	first, err := a.store.claimWalk(ctx, walkInterval)
	if err != nil || !first {
		return err
	}
	players, err := a.store.listWallets(ctx, 0)
	if err != nil {
		return err
	}
	for gameID, userIDs := range players {
		if err := a.archiveLines(ctx, gameID, userIDs); err != nil {
			return err
		}
	}
	return nil
}

// updateStatus looks whether the archive can be reached and, withLag, how far it is behind.
func (a *archiver) updateStatus(ctx context.Context, withLag bool) {
	before, now := *a.status.Load(), ArchiveStatus{OK: true, Detail: "takes what leaves the store"}
	now.LagEntries, now.Lag = before.LagEntries, before.Lag
	a.mu.Lock()
	problem := a.problem
	a.mu.Unlock()
	checkCtx, cancel := context.WithTimeout(ctx, archiveTimeout)
	err := a.archive.Check(checkCtx)
	cancel()
	if withLag && ctx.Err() == nil {
		if entries, lag, lagErr := a.store.readArchiveLag(ctx, a.keep.Entries, a.archive.Sizes().Entries); lagErr == nil {
			now.LagEntries, now.Lag = entries, lag
		}
	}
	if err == nil {
		a.lost.update(ctx, a.store)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		now.OK, now.Detail = false, "cannot be reached; the ledger stays in the store and grows"
	case len(a.lost.ahead) > 0:
		now.OK, now.Detail = false, a.lost.problem()
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
	a.status.Store(&now)
}
