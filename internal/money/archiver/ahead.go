package archiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
)

// aheadGames finds the games for which the archive has entries or lines that the store has lost.
// Nothing of such a game is archived until an operator has set them aside.
type aheadGames struct {
	lostIn func() map[int64]int64 // epoch in which a game lost entries last, by game; nil for none
	inStep map[int64]int64        // epoch for which a game was found to be in step
	ahead  []int64                // games that are not, sorted
}

// problem says what an operator does.
func (g *aheadGames) problem() string {
	return fmt.Sprintf("has ledger entries of %d games that the store lost: stop the nodes and run "+
		"\"parlor ledger rewind\"", len(g.ahead))
}

// update looks at the games that lost entries since they were found to be in step. One that cannot
// be looked at now is looked at again.
func (g *aheadGames) update(ctx context.Context, ledgers *ledgerstore.Store) {
	if g.lostIn == nil {
		return
	}
	var ahead []int64
	for gameID, epoch := range g.lostIn() {
		if gameID == 0 || g.inStep[gameID] == epoch {
			continue
		}
		isAhead, err := IsAhead(ctx, ledgers, gameID)
		switch {
		case err != nil:
			if ctx.Err() == nil && !errors.Is(err, ledgerstore.ErrStale) {
				slog.WarnContext(ctx, "the archive cannot be compared with the store", "game", gameID, "error", err)
			}
			if slices.Contains(g.ahead, gameID) {
				ahead = append(ahead, gameID)
			}
		case isAhead:
			ahead = append(ahead, gameID)
		default:
			g.inStep[gameID] = epoch
		}
	}
	slices.Sort(ahead)
	if !slices.Equal(ahead, g.ahead) && len(ahead) > 0 {
		slog.ErrorContext(ctx, "the archive has ledger entries that the store lost; nothing more of these games is "+
			"archived until \"parlor ledger rewind\" has set them aside", "games", ahead)
	}
	g.ahead = ahead
}

// IsAhead reports whether the archive has entries or players' lines of a game that the store lacks:
// not in the list, though they have not left it. There must be an archive. It returns
// ledgerstore.ErrStale when some leave at this moment.
func IsAhead(ctx context.Context, ledgers *ledgerstore.Store, gameID int64) (bool, error) {
	ends, err := ledgers.ReadEnds(ctx, []int64{gameID})
	if err != nil {
		return false, err
	}
	old, base := ledgers.Archive(), ends[0].Base
	size := old.Sizes().Entries
	for skip := int64(0); ; skip += size {
		segment, err := old.ReadSegment(ctx, gameID, base+skip+1)
		if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) { // half an object is none
			break
		}
		if err != nil {
			return false, err
		}
		entries, err := ledgers.ReadTexts(ctx, gameID, base, skip, size)
		if err != nil {
			return false, err
		}
		if !slices.Equal(entries, segment.Entries) {
			return true, nil
		}
	}
	lasts := map[int64]int64{}
	err = old.ListLines(ctx, gameID, func(userID, last int64) error {
		lasts[userID] = last
		return nil
	})
	if err != nil {
		return false, err
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(lasts)), ledgerstore.PlayersAtOnce) {
		counts, err := ledgers.CountLines(ctx, gameID, some)
		if err != nil {
			return false, err
		}
		for _, list := range counts {
			if ahead, err := areLinesAhead(ctx, ledgers, gameID, list, lasts[list.UserID]); ahead || err != nil {
				return ahead, err
			}
		}
	}
	return false, nil
}

// areLinesAhead is IsAhead for the lines of a player. last is the number of the last one in the
// archive.
func areLinesAhead(
	ctx context.Context, ledgers *ledgerstore.Store, gameID int64, list ledgerstore.LineCount, last int64,
) (bool, error) {
	old := ledgers.Archive()
	size := old.Sizes().Lines
	for first := list.Base + 1; first <= last; first += size {
		archived, err := old.ReadLines(ctx, gameID, list.UserID, first)
		if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrDamaged) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		lines, err := ledgers.ReadLines(ctx, gameID, list.UserID, list.Base, first-list.Base-1, size)
		if err != nil {
			return false, err
		}
		if !slices.Equal(lines, archived) {
			return true, nil
		}
	}
	return false, nil
}
