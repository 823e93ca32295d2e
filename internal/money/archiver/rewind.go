package archiver

import (
	"context"
	"slices"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
)

// Rewind sets aside, in every game, the objects of the archive from a history that the store has
// lost: entries and lines that the store has not removed by itself. It must be called while no node
// runs. label names their folder.
func Rewind(ctx context.Context, ledgers *ledgerstore.Store, label string) (archive.Rewound, error) {
	var all archive.Rewound
	if ledgers.Archive() == nil {
		return all, ledgerstore.ErrNoArchive
	}
	games, err := ledgers.Games(ctx, 0)
	if err != nil {
		return all, err
	}
	for _, id := range games {
		ends, err := ledgers.ReadEnds(ctx, []int64{id})
		if err != nil {
			return all, err
		}
		bases := func(userIDs []int64) (map[int64]int64, error) {
			found := make(map[int64]int64, len(userIDs))
			for some := range slices.Chunk(userIDs, ledgerstore.PlayersAtOnce) {
				counts, err := ledgers.CountLines(ctx, id, some)
				if err != nil {
					return nil, err
				}
				for _, of := range counts {
					found[of.UserID] = of.Base
				}
			}
			return found, nil
		}
		moved, err := ledgers.Archive().Rewind(ctx, id, ends[0].Base, bases, label)
		all.Segments += moved.Segments
		all.Checkpoints += moved.Checkpoints
		all.Lines += moved.Lines
		if err != nil {
			return all, ledgerstore.WrapArchiveError(err)
		}
	}
	return all, nil
}
