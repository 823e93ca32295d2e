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

// A checkpoint has one balance a line, sorted by account and token:
//
//	<kind>|<token>|<units>            house, prizes, minted, with the signs of postings
//	w<user>|<token>|<units>           what a player can spend
//	e|<token>|<units>|<room>          what a room has in escrow
//	s<user>|<token>|<units>|<room>    what a player has staked in it
//
// The room comes last: it is the text of a ledger entry and may contain anything.
const (
	walletMark = "w"
	escrowMark = "e"
	stakeMark  = "s"
)

// encodeBalances returns the lines of a checkpoint. Balances of zero are left out.
func encodeBalances(r *ledger.Replay) []string {
	var lines []string
	add := func(account, code string, units int64, rest string) {
		if units != 0 {
			lines = append(lines, account+"|"+code+"|"+strconv.FormatInt(units, 10)+rest)
		}
	}
	for kind, balances := range r.Others {
		if kind == escrowMark { // by room, below
			continue
		}
		for code, units := range balances {
			add(kind, code, units, "")
		}
	}
	for userID, balances := range r.Wallets {
		for code, units := range balances {
			add(walletMark+strconv.FormatInt(userID, 10), code, units, "")
		}
	}
	for room, stakes := range r.Rooms {
		add(escrowMark, room.Code, stakes.Escrow, "|"+room.RoomID)
		for userID, units := range stakes.ByUser {
			add(stakeMark+strconv.FormatInt(userID, 10), room.Code, units, "|"+room.RoomID)
		}
	}
	slices.Sort(lines)
	return lines
}

// decodeBalances returns the state that the lines of a checkpoint describe.
func decodeBalances(number int64, lines []string) (*ledger.Replay, error) {
	r := ledger.NewReplay()
	r.Number = number
	for _, line := range lines {
		parts := strings.SplitN(line, "|", 4)
		if len(parts) < 3 || parts[0] == "" {
			return nil, fmt.Errorf("%w: the balance %q", ErrDamaged, line)
		}
		units, err := strconv.ParseInt(parts[2], 10, 64)
		var userID int64
		account, code := parts[0], parts[1]
		if len(account) > 1 {
			var userErr error
			userID, userErr = strconv.ParseInt(account[1:], 10, 64)
			err = errors.Join(err, userErr)
		}
		isOfRoom := account[:1] == stakeMark || account[:1] == escrowMark
		if err != nil || isOfRoom != (len(parts) == 4) {
			return nil, fmt.Errorf("%w: the balance %q", ErrDamaged, line)
		}
		switch {
		case isOfRoom:
			room := r.Room(parts[3], code)
			if account == escrowMark {
				room.Escrow = units
				r.Add(escrowMark, code, units)
			} else {
				room.ByUser[userID] = units
			}
		case account[:1] == walletMark:
			r.AddToWallet(userID, code, units)
		default:
			r.Add(account, code, units)
		}
	}
	return r, nil
}

// CheckpointDue reports whether a checkpoint should be made after entry number, when the one before
// was made after entry last, 0 for none, and has so many balances. The more there are, the rarer
// they are written, so that the archive grows by the entries.
func (a *Archive) CheckpointDue(number, last int64, balances int) bool {
	return number-last >= max(a.sizes.Checkpoint, int64(balances)/4)
}

// Checkpoints returns the numbers of the entries with which the checkpoints of a game end, in
// order.
func (a *Archive) Checkpoints(ctx context.Context, gameID int64) (numbers []int64, err error) {
	folder := folderOf(gameID, kindCheckpoint)
	err = a.storage.list(ctx, folder, func(name string) error {
		n, err := strconv.ParseInt(strings.TrimPrefix(name, folder), 10, 64)
		if err != nil {
			return fmt.Errorf("%s is no checkpoint: %w", name, err)
		}
		numbers = append(numbers, n)
		return nil
	})
	slices.Sort(numbers)
	return numbers, err
}

// LastCheckpoint returns the number of the last entry in the newest checkpoint that contains no
// entry after upTo. It returns 0 if there is no such checkpoint.
func (a *Archive) LastCheckpoint(ctx context.Context, gameID, upTo int64) (number int64, err error) {
	numbers, err := a.Checkpoints(ctx, gameID)
	for _, n := range numbers {
		if n <= upTo {
			number = n
		}
	}
	return number, err
}

// Checkpoint is all balances of a game after an entry of its ledger.
type Checkpoint struct {
	Sum      string // of the segment that it ends with
	Balances int    // lines
	Replay   *ledger.Replay
}

// ReadCheckpoint returns a checkpoint. It returns ErrNotFound.
func (a *Archive) ReadCheckpoint(ctx context.Context, gameID, number int64) (Checkpoint, error) {
	o, err := a.read(ctx, nameOf(gameID, kindCheckpoint, 0, number))
	if err != nil {
		return Checkpoint{}, err
	}
	r, err := decodeBalances(number, o.texts)
	return Checkpoint{Sum: o.previous, Balances: len(o.texts), Replay: r}, err
}

// EqualsCheckpoint reports whether the balances of a replay are those of a checkpoint.
func EqualsCheckpoint(c Checkpoint, r *ledger.Replay) bool {
	return slices.Equal(encodeBalances(c.Replay), encodeBalances(r))
}

// MakeCheckpoint makes the checkpoint that ends with a segment, from the one before it and the
// segments in between. It reads no balance of the store. It returns nil when there is one, or none
// is due.
func (a *Archive) MakeCheckpoint(ctx context.Context, gameID, number int64) error {
	last, err := a.LastCheckpoint(ctx, gameID, number)
	if err != nil || number-last < a.sizes.Checkpoint {
		return err
	}
	from := Checkpoint{Replay: ledger.NewReplay()}
	if last > 0 {
		if from, err = a.ReadCheckpoint(ctx, gameID, last); err != nil {
			return err
		}
	}
	if !a.CheckpointDue(number, last, from.Balances) {
		return nil
	}
	end, err := a.ReplayFrom(ctx, gameID, from, number, nil)
	if err != nil {
		return err
	}
	return a.write(ctx, &object{
		kind: kindCheckpoint, gameID: gameID, last: number, previous: end, texts: encodeBalances(from.Replay),
	})
}

// ReplayFrom adds the entries of all segments after a checkpoint up to an entry, with which a
// segment must end, to the replay of the checkpoint. It checks that the segments are a chain that
// starts with the checkpoint, and that their totals are those of their entries; an error says where
// they are not. It calls visit, unless that is nil, after each segment. It returns the sum of the
// last segment.
func (a *Archive) ReplayFrom(
	ctx context.Context, gameID int64, from Checkpoint, number int64, visit func(Segment) error,
) (sum string, err error) {
	sum = from.Sum
	r := from.Replay
	totals := r.Totals()
	for s, err := range a.Segments(ctx, gameID, r.Number+1, number) {
		if err != nil {
			return sum, err
		}
		if s.First != r.Number+1 || s.Previous != sum {
			return sum, fmt.Errorf("%w: the segment of game %d from entry %d follows another one than that before it",
				ErrDamaged, gameID, s.First)
		}
		for i, text := range s.Entries {
			e := ledger.Decode(s.First+int64(i), text)
			r.Apply(e)
			totals.Add(e)
		}
		if !maps.EqualFunc(nonZero(totals), nonZero(s.Totals), maps.Equal) {
			return sum, fmt.Errorf("%w: the segment of game %d from entry %d has other totals than its entries",
				ErrDamaged, gameID, s.First)
		}
		sum = s.Sum
		if visit != nil {
			if err := visit(s); err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

// nonZero returns the totals without those of zero.
func nonZero(totals ledger.Totals) ledger.Totals {
	left := totals.Clone()
	for code, of := range left {
		maps.DeleteFunc(of, func(_ string, units int64) bool { return units == 0 })
		if len(of) == 0 {
			delete(left, code)
		}
	}
	return left
}
