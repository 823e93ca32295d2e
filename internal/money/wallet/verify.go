package wallet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledger"
)

// LedgerReport shows whether the ledger of a game is whole, in the archive and in the store.
type LedgerReport struct {
	GameID      int64    `json:"gameId"`
	Entries     int64    `json:"entries"` // number of the last entry
	Archived    int64    `json:"archivedEntries"`
	Segments    int64    `json:"segments"`
	Checkpoints int      `json:"checkpoints"`
	LineObjects int      `json:"lineObjects"` // objects with players' lines
	Problems    []string `json:"problems"`    // sentences; empty when it is whole
}

// Games returns the ids of all games.
func (s *Service) Games(ctx context.Context) ([]int64, error) { return s.store.listGames(ctx, 0) }

// LastEntry returns the number of the last ledger entry of a game.
func (s *Service) LastEntry(ctx context.Context, gameID int64) (int64, error) {
	ends, err := s.store.readLedgerEnds(ctx, []int64{gameID})
	if err != nil {
		return 0, err
	}
	return ends[0].base + ends[0].length, nil
}

// LastEntries returns the number of the last ledger entry of each game.
func (s *Service) LastEntries(ctx context.Context) (map[int64]int64, error) {
	games, err := s.store.listGames(ctx, 0)
	if err != nil {
		return nil, err
	}
	lasts := make(map[int64]int64, len(games))
	for some := range slices.Chunk(games, foldedGames) {
		ends, err := s.store.readLedgerEnds(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, end := range ends {
			lasts[end.gameID] = end.base + end.length
		}
	}
	return lasts, nil
}

// RewindArchive sets aside what the archive has of a history that the store has lost: what the
// store has not removed. It must be called while no node runs. label names where it goes.
func (s *Service) RewindArchive(ctx context.Context, label string) (archive.Rewound, error) {
	var all archive.Rewound
	if s.store.archive == nil {
		return all, errNoArchive
	}
	games, err := s.store.listGames(ctx, 0)
	if err != nil {
		return all, err
	}
	for _, id := range games {
		ends, err := s.store.readLedgerEnds(ctx, []int64{id})
		if err != nil {
			return all, err
		}
		bases := func(userIDs []int64) (map[int64]int64, error) {
			found := make(map[int64]int64, len(userIDs))
			for some := range slices.Chunk(userIDs, walletPageSize) {
				counts, err := s.store.readLineCounts(ctx, id, some)
				if err != nil {
					return nil, err
				}
				for _, of := range counts {
					found[of.userID] = of.base
				}
			}
			return found, nil
		}
		moved, err := s.store.archive.Rewind(ctx, id, ends[0].base, bases, label)
		all.Segments += moved.Segments
		all.Checkpoints += moved.Checkpoints
		all.Lines += moved.Lines
		if err != nil {
			return all, archiveError(err)
		}
	}
	return all, nil
}

// VerifyLedger reads the whole ledger of a game, what is in the archive and what is in the store.
// It checks that the segments are a chain which ends where the store goes on, that every entry sums
// to zero, that checkpoints are what the entries before them add up to, and that the totals are the
// sums of all entries. It also reads every archived line of the players. It calls progress after
// each segment.
func (s *Service) VerifyLedger(ctx context.Context, gameID int64, progress func(entries int64)) (LedgerReport, error) {
	v := ledgerCheck{Service: s, gameID: gameID, report: LedgerReport{GameID: gameID, Problems: []string{}}}
	ends, err := s.store.readLedgerEnds(ctx, []int64{gameID})
	if err != nil {
		return v.report, err
	}
	v.ends, v.replay = ends[0], ledger.NewReplay()
	if v.ends.base > 0 {
		if s.store.archive == nil {
			return v.report, errNoArchive
		}
		if err := v.checkArchive(ctx, progress); err != nil {
			return v.report, err
		}
	}
	if s.store.archive != nil {
		ahead, err := s.store.isArchiveAhead(ctx, gameID)
		if err = v.noteDamage(err); err != nil && !errors.Is(err, errStale) {
			return v.report, err
		}
		if ahead {
			v.note("the archive has entries or lines that the store lost: stop the nodes and run \"parlor ledger rewind\"")
		}
	}
	if v.replay.Number == v.ends.base { // else the archive has a gap, which is reported
		if err := v.checkStore(ctx); err != nil {
			return v.report, err
		}
	}
	for _, d := range v.replay.Defects {
		v.note("%s of the ledger: %s; want %s", d.Code, d.Stored, d.Wants)
	}
	progress(v.replay.Number)
	return v.report, nil
}

// maxProblems bounds a report.
const maxProblems = 100

// ledgerCheck is one run of VerifyLedger.
type ledgerCheck struct {
	*Service
	gameID int64
	ends   ledgerEnds
	replay *ledger.Replay
	report LedgerReport
}

// note adds a problem to the report. A ledger that is wrong throughout has as many as fit.
func (v *ledgerCheck) note(format string, args ...any) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
	}
}

// noteDamage notes an error about what is in the archive. It returns other errors.
func (v *ledgerCheck) noteDamage(err error) error {
	if err != nil && (errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrNotFound)) {
		v.note("%v", err)
		return nil
	}
	return err
}

func (v *ledgerCheck) checkArchive(ctx context.Context, progress func(entries int64)) error {
	a := v.store.archive
	numbers, err := a.Checkpoints(ctx, v.gameID)
	if err != nil {
		return err
	}
	checkpoints := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		checkpoints[n] = true
	}
	start := archive.Checkpoint{Replay: v.replay}
	sum, err := a.ReplayFrom(ctx, v.gameID, start, v.ends.base, func(s archive.Segment) error {
		v.report.Segments++
		v.report.Archived = s.Last
		progress(s.Last)
		if !checkpoints[s.Last] {
			return nil
		}
		v.report.Checkpoints++
		c, err := a.ReadCheckpoint(ctx, v.gameID, s.Last)
		if err == nil && (c.Sum != s.Sum || !archive.EqualsCheckpoint(c, v.replay)) {
			v.note("the checkpoint at entry %d is not what the entries add up to", s.Last)
		}
		return v.noteDamage(err)
	})
	if err := v.noteDamage(err); err != nil {
		return err
	}
	if v.replay.Number == v.ends.base && sum != v.ends.sum {
		v.note("the store goes on after another segment than the last one of the archive")
	}
	return v.checkLines(ctx)
}

// checkLines reads the archived lines of all players.
func (v *ledgerCheck) checkLines(ctx context.Context) error {
	a := v.store.archive
	return a.ListLines(ctx, v.gameID, func(userID, last int64) error {
		counts, err := v.store.readLineCounts(ctx, v.gameID, []int64{userID})
		if err != nil {
			return err
		}
		for _, of := range counts {
			if of.base > last {
				v.note("the archive lacks the lines of player %d from %d to %d", userID, last+1, of.base)
			}
			last = min(last, of.base) // what is beyond is still in the store
		}
		for first := int64(1); first <= last; first += a.Sizes().Lines {
			lines, err := a.ReadLines(ctx, v.gameID, userID, first)
			for i, line := range lines {
				if _, lineErr := decodeLine(first+int64(i), line); lineErr != nil {
					v.note("a line of player %d: %v", userID, lineErr)
				}
			}
			v.report.LineObjects++
			if err := v.noteDamage(err); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkStore adds the entries that are in the store, and compares the totals.
func (v *ledgerCheck) checkStore(ctx context.Context) error {
	all, err := v.store.readTotals(ctx, []int64{v.gameID})
	if err != nil {
		return err
	}
	t := all[0]
	if t.defect != nil {
		v.note("%v", t.defect)
		return nil
	}
	for e, err := range v.entries(ctx, v.gameID, v.replay.Number, t.sequence) {
		if err != nil {
			return err
		}
		v.replay.Apply(e)
	}
	v.report.Entries = v.replay.Number
	counted := v.replay.Totals()
	for code := range union(t.tokens, counted) {
		for name := range union(t.tokens[code], counted[code]) {
			if stored, units := t.tokens[code][name], Units(counted[code][name]); stored != units {
				v.note("%s of %s is %s, and the ledger has %s", name, code, stored, units)
			}
		}
	}
	return nil
}

// entries returns the entries of a game after one number and up to another.
func (s *Service) entries(ctx context.Context, gameID, after, upTo int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		ends, err := s.store.readLedgerEnds(ctx, []int64{gameID})
		if err != nil {
			yield(ledger.Entry{}, err)
			return
		}
		if archived := min(upTo, ends[0].base); after < archived && s.store.archive != nil {
			for segment, err := range s.store.archive.Segments(ctx, gameID, after+1, archived) {
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
			page, err := s.store.readEntries(ctx, gameID, after, upTo)
			if err == nil && len(page) == 0 {
				return // the ledger ends here
			}
			if err == nil && page[0].Number != after+1 {
				err = errNoArchive
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

// EachEntry calls visit with the entries of a game, from one number to another, both included, in
// their order. It reads the archive where they have left the store.
func (s *Service) EachEntry(ctx context.Context, gameID, from, to int64, visit func(Entry) error) error {
	tokens := map[string]Token{}
	for e, err := range s.entries(ctx, gameID, from-1, to) {
		if err != nil {
			return err
		}
		if _, known := tokens[e.Code]; !known {
			found, err := s.findDefinitions(ctx, e.Code)
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
