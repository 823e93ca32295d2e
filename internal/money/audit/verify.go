package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
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

// VerifyLedger reads the whole ledger of a game, from the archive and the store. It checks that the
// segments are a chain that ends where the store begins, that every entry sums to zero, that each
// checkpoint is the sum of the entries before it, and that the totals are the sums of all entries.
// It also reads every archived line of the players. It calls progress after each segment.
func (s *Service) VerifyLedger(ctx context.Context, gameID int64, progress func(entries int64)) (LedgerReport, error) {
	v := ledgerCheck{Service: s, gameID: gameID, report: LedgerReport{GameID: gameID, Problems: []string{}}}
	ends, err := s.ledgers.ReadEnds(ctx, []int64{gameID})
	if err != nil {
		return v.report, err
	}
	v.ends, v.replay = ends[0], ledger.NewReplay()
	if v.ends.Base > 0 {
		if s.ledgers.Archive() == nil {
			return v.report, ledgerstore.ErrNoArchive
		}
		if err := v.checkArchive(ctx, progress); err != nil {
			return v.report, err
		}
	}
	if s.ledgers.Archive() != nil {
		ahead, err := archiver.IsAhead(ctx, s.ledgers, gameID)
		if err = v.noteDamage(err); err != nil && !errors.Is(err, ledgerstore.ErrStale) {
			return v.report, err
		}
		if ahead {
			v.note("the archive has entries or lines that the store lost: stop the nodes and run \"parlor ledger rewind\"")
		}
	}
	if v.replay.Number == v.ends.Base { // else the archive has a gap, which is reported
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
	ends   ledgerstore.Ends
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
	a := v.ledgers.Archive()
	numbers, err := a.Checkpoints(ctx, v.gameID)
	if err != nil {
		return err
	}
	checkpoints := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		checkpoints[n] = true
	}
	start := archive.Checkpoint{Replay: v.replay}
	sum, err := a.ReplayFrom(ctx, v.gameID, start, v.ends.Base, func(s archive.Segment) error {
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
	if v.replay.Number == v.ends.Base && sum != v.ends.Sum {
		v.note("the store goes on after another segment than the last one of the archive")
	}
	return v.checkLines(ctx)
}

// checkLines reads the archived lines of all players.
func (v *ledgerCheck) checkLines(ctx context.Context) error {
	a := v.ledgers.Archive()
	return a.ListLines(ctx, v.gameID, func(userID, last int64) error {
		counts, err := v.ledgers.CountLines(ctx, v.gameID, []int64{userID})
		if err != nil {
			return err
		}
		for _, of := range counts {
			if of.Base > last {
				v.note("the archive lacks the lines of player %d from %d to %d", userID, last+1, of.Base)
			}
			last = min(last, of.Base) // what is beyond is still in the store
		}
		for first := int64(1); first <= last; first += a.Sizes().Lines {
			lines, err := a.ReadLines(ctx, v.gameID, userID, first)
			for i, line := range lines {
				if _, lineErr := wallet.DecodeLine(first+int64(i), line); lineErr != nil {
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
	all, err := v.ledgers.ReadTotals(ctx, []int64{v.gameID})
	if err != nil {
		return err
	}
	t := all[0]
	if t.Defect != nil {
		v.note("%v", t.Defect)
		return nil
	}
	for e, err := range v.ledgers.Entries(ctx, v.gameID, v.replay.Number, t.Sequence) {
		if err != nil {
			return err
		}
		v.replay.Apply(e)
	}
	v.report.Entries = v.replay.Number
	counted := v.replay.Totals()
	for _, d := range t.Tokens.Compare(counted) {
		v.note("%s of %s is %d, and the ledger has %d", d.Total, d.Code, d.Has, d.Wants)
	}
	return nil
}
