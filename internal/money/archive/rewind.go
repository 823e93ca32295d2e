package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Rewound is what Rewind has set aside, by kind of object.
type Rewound struct {
	Segments    int `json:"segments"`
	Checkpoints int `json:"checkpoints"`
	Lines       int `json:"lineObjects"`
}

// supersededFolder has the objects that Rewind has set aside. Nothing reads them any more.
const supersededFolder = "superseded/"

// Rewind sets aside the objects that a store restored from a copy no longer knows: segments and
// checkpoints after entry base, and lines of a player after linesBase. base is the last entry that
// had left the store. The objects belong to the lost history; they move to a folder named by label.
// Repeating it is harmless.
func (a *Archive) Rewind(
	ctx context.Context, gameID, base int64, linesBase func(userIDs []int64) (map[int64]int64, error), label string,
) (Rewound, error) {
	var moved Rewound
	for _, kind := range []string{kindLedger, kindCheckpoint} {
		folder := folderOf(gameID, kind)
		names, err := a.namesIn(ctx, folder)
		if err != nil {
			return moved, err
		}
		for _, name := range names {
			number, err := strconv.ParseInt(strings.TrimPrefix(name, folder), 10, 64)
			if err != nil {
				return moved, fmt.Errorf("%s has no number: %w", name, err)
			}
			if number <= base {
				continue
			}
			if err := a.setAside(ctx, name, label); err != nil {
				return moved, err
			}
			if kind == kindLedger {
				moved.Segments++
			} else {
				moved.Checkpoints++
			}
		}
	}
	lasts := map[int64]int64{}
	err := a.ListLines(ctx, gameID, func(userID, last int64) error {
		lasts[userID] = last
		return nil
	})
	if err != nil || len(lasts) == 0 {
		return moved, err
	}
	users := make([]int64, 0, len(lasts))
	for userID := range lasts {
		users = append(users, userID)
	}
	bases, err := linesBase(users)
	if err != nil {
		return moved, err
	}
	for userID, last := range lasts {
		for first := bases[userID] + 1; first <= last; first += a.sizes.Lines {
			if err := a.setAside(ctx, nameOf(gameID, kindLines, userID, first), label); err != nil {
				return moved, err
			}
			moved.Lines++
		}
	}
	return moved, nil
}

func (a *Archive) namesIn(ctx context.Context, folder string) (names []string, err error) {
	err = a.storage.list(ctx, folder, func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

// setAside copies an object before it removes it, so that a crash loses nothing.
func (a *Archive) setAside(ctx context.Context, name, label string) error {
	data, err := a.storage.get(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil // an earlier call did it
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := a.storage.put(ctx, supersededFolder+label+"/"+name, data); err != nil {
		return fmt.Errorf("set %s aside: %w", name, err)
	}
	return a.storage.remove(ctx, name)
}
