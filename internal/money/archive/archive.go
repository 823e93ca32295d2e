package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/money/ledger"
)

// Sizes are how much an object holds. They belong to an archive for good.
type Sizes struct {
	Entries    int64 // of a segment
	Lines      int64 // of a player's object
	Checkpoint int64 // entries between two checkpoints at least; a multiple of Entries
}

// DefaultSizes are those of every archive outside of tests. A segment is some 40 KB, and so is a
// page of old lines at most.
var DefaultSizes = Sizes{Entries: 2000, Lines: 500, Checkpoint: 100_000}

// Archive reads and writes the objects of all games. It is safe for concurrent use.
type Archive struct {
	storage storage
	sizes   Sizes
}

func newArchive(s storage, sizes Sizes) *Archive { return &Archive{storage: s, sizes: sizes} }

// WithSizes returns the archive with other sizes, for tests.
func (a *Archive) WithSizes(sizes Sizes) *Archive { return newArchive(a.storage, sizes) }

// Sizes returns how much an object holds.
func (a *Archive) Sizes() Sizes { return a.sizes }

// Check reports whether the archive can be reached.
func (a *Archive) Check(ctx context.Context) error { return a.storage.check(ctx) }

// ErrConflict is returned when the archive has other contents under a name: the store has another
// history than the archive, as after a restore, or belongs to another installation.
var ErrConflict = errors.New("the archive has another history")

// write stores an object and reads it back. It is no error when the object is there already.
func (a *Archive) write(ctx context.Context, o *object) error {
	data, err := o.encode()
	if err != nil {
		return err
	}
	there, err := a.read(ctx, o.name())
	switch {
	case err == nil && there.sameAs(*o):
		return nil // a leader before this one has written it
	case err == nil:
		return fmt.Errorf("%s: %w", o.name(), ErrConflict)
	case errors.Is(err, ErrDamaged): // half an object counts as missing
	case !errors.Is(err, ErrNotFound):
		return err
	}
	if err := a.storage.put(ctx, o.name(), data); err != nil {
		return fmt.Errorf("write %s: %w", o.name(), err)
	}
	if there, err = a.read(ctx, o.name()); err != nil {
		return err
	}
	if !there.sameAs(*o) {
		return fmt.Errorf("%s: %w", o.name(), ErrConflict)
	}
	return nil
}

// read returns an object that is what its name says.
func (a *Archive) read(ctx context.Context, name string) (object, error) {
	data, err := a.storage.get(ctx, name)
	if err != nil {
		return object{}, fmt.Errorf("read %s: %w", name, err)
	}
	o, err := decode(data)
	if err == nil && o.name() != name {
		err = fmt.Errorf("%w: it is %s", ErrDamaged, o.name())
	}
	if err != nil {
		return object{}, fmt.Errorf("read %s: %w", name, err)
	}
	return o, nil
}

// Segment is a fixed number of consecutive entries of a game's ledger. It is unrelated to the
// segments of a leaderboard.
type Segment struct {
	GameID      int64
	First, Last int64         // numbers of its entries
	Previous    string        // sum of the segment before, "" for the first
	Totals      ledger.Totals // after the last entry
	Entries     []string      // texts as in keys.Ledger
	Sum         string        // SHA-256 in hexadecimal
}

// FirstOf returns the number of the first entry of the segment that has an entry.
func (a *Archive) FirstOf(number int64) int64 { return (number-1)/a.sizes.Entries*a.sizes.Entries + 1 }

// FirstLineOf returns the number of the first line of the object that has a player's line.
func (a *Archive) FirstLineOf(line int64) int64 { return (line-1)/a.sizes.Lines*a.sizes.Lines + 1 }

// ReadSegment returns the segment that starts with an entry. It returns ErrNotFound.
func (a *Archive) ReadSegment(ctx context.Context, gameID, first int64) (Segment, error) {
	o, err := a.read(ctx, nameOf(gameID, kindLedger, 0, first))
	if err != nil {
		return Segment{}, err
	}
	s := Segment{
		GameID: o.gameID, First: o.first, Last: o.last, Previous: o.previous, Entries: o.texts, Sum: o.sum,
		Totals: ledger.Totals{},
	}
	for _, text := range o.totals {
		parts := strings.Split(text, " ")
		if len(parts) != 3 {
			return Segment{}, fmt.Errorf("%s: %w: the total %q", o.name(), ErrDamaged, text)
		}
		units, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			return Segment{}, fmt.Errorf("%s: %w: the total %q", o.name(), ErrDamaged, text)
		}
		s.Totals.Set(parts[0], parts[1], units)
	}
	return s, nil
}

// WriteSegment stores the entries that follow a segment, the zero Segment for the first ones, and
// reads them back. It returns the new segment. It returns ErrConflict, and in that case the archive
// is as it was.
func (a *Archive) WriteSegment(ctx context.Context, gameID int64, after Segment, entries []string) (Segment, error) {
	if int64(len(entries)) != a.sizes.Entries || after.Last%a.sizes.Entries != 0 {
		return Segment{}, fmt.Errorf("a segment of %d entries after %d", len(entries), after.Last)
	}
	s := Segment{
		GameID: gameID, First: after.Last + 1, Last: after.Last + int64(len(entries)), Previous: after.Sum,
		Totals: after.Totals.Clone(), Entries: entries,
	}
	for i, text := range entries {
		s.Totals.Add(ledger.Decode(s.First+int64(i), text))
	}
	o := object{
		kind: kindLedger, gameID: gameID, first: s.First, last: s.Last, previous: s.Previous, totals: encodeTotals(s.Totals),
		texts: entries,
	}
	if err := a.write(ctx, &o); err != nil {
		return Segment{}, err
	}
	s.Sum = o.sum
	return s, nil
}

// encodeTotals returns the totals that are not zero, sorted.
func encodeTotals(totals ledger.Totals) []string {
	var texts []string
	for code, of := range totals {
		for total, units := range of {
			if units != 0 {
				texts = append(texts, code+" "+total+" "+strconv.FormatInt(units, 10))
			}
		}
	}
	slices.Sort(texts)
	return texts
}

// ReadLines returns the lines of a player that start with a line. It returns ErrNotFound.
func (a *Archive) ReadLines(ctx context.Context, gameID, userID, first int64) ([]string, error) {
	o, err := a.read(ctx, nameOf(gameID, kindLines, userID, first))
	return o.texts, err
}

// WriteLines stores lines of a player and reads them back. It returns ErrConflict, and in that case
// the archive is as it was.
func (a *Archive) WriteLines(ctx context.Context, gameID, userID, first int64, lines []string) error {
	if int64(len(lines)) != a.sizes.Lines || a.FirstLineOf(first) != first {
		return fmt.Errorf("%d lines from %d", len(lines), first)
	}
	return a.write(ctx, &object{
		kind: kindLines, gameID: gameID, userID: userID, first: first, last: first + int64(len(lines)) - 1, texts: lines,
	})
}

// ListLines calls visit for each player with lines in the archive, with the number of the last
// line. It reads the names of objects only.
func (a *Archive) ListLines(ctx context.Context, gameID int64, visit func(userID, last int64) error) error {
	lasts := map[int64]int64{}
	folder := folderOf(gameID, kindLines)
	err := a.storage.list(ctx, folder, func(name string) error {
		user, number, _ := strings.Cut(strings.TrimPrefix(name, folder), "/")
		userID, userErr := strconv.ParseInt(user, 10, 64)
		first, err := strconv.ParseInt(number, 10, 64)
		if err := errors.Join(userErr, err); err != nil {
			return fmt.Errorf("%s is no object of a player: %w", name, err)
		}
		lasts[userID] = max(lasts[userID], first+a.sizes.Lines-1)
		return nil
	})
	if err != nil {
		return err
	}
	for _, userID := range slices.Sorted(maps.Keys(lasts)) {
		if err := visit(userID, lasts[userID]); err != nil {
			return err
		}
	}
	return nil
}
