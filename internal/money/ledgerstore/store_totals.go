package ledgerstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// Totals are the totals of a game at one instant.
type Totals struct {
	GameID   int64
	Sequence int64         // number of the last ledger entry
	Folded   int64         // number of the last entry that was folded
	Tokens   ledger.Totals // with the entries that were not folded yet
	Defect   error         // why the game's money cannot be read; nil when it can
}

const (
	foldPageSize = 1000 // ledger entries that one script folds
	maxTailSize  = 2000 // entries that are not folded yet in one read; more are folded first
)

// foldPage is a page of ledger entries that follow the folded ones.
type foldPage struct {
	gameID  int64
	folded  int64 // number of the entry before them
	base    int64 // of the ledger
	entries []string
}

// Unfolded is what a fold of some games has left.
type Unfolded struct {
	More  []int64 // games that may have more entries
	Stale []int64 // games that someone else folded meanwhile, and those whose server was not reached
}

// FoldPages folds a page of the ledger of each game, all games in the same round trips. With an
// error it has folded the other games. fence is nil outside of a leader's work; a leader that was
// followed by another one folds nothing.
func (s *Store) FoldPages(ctx context.Context, fence *int64, gameIDs []int64) (Unfolded, error) {
	holder := ""
	if fence != nil {
		holder = strconv.FormatInt(*fence, 10)
	}
	var left Unfolded
	var errs []error
	fail := func(gameID int64, err error) {
		errs = append(errs, fmt.Errorf("fold the ledger of game %d: %w", gameID, err))
		if errors.Is(err, apierror.StoreUnavailable) {
			left.Stale = append(left.Stale, gameID)
		}
	}
	for some := range slices.Chunk(gameIDs, GamesAtOnce) {
		pages := s.readFoldPages(ctx, some, fail)
		calls := make([]redisdb.ScriptCall, len(pages))
		for i, page := range pages {
			calls[i].Keys = []string{
				keys.Totals(page.gameID), keys.LedgerBase(page.gameID), keys.TotalsFence(page.gameID), keys.Ledger(page.gameID),
			}
			calls[i].Args = page.args(holder)
		}
		for i, result := range s.db.RunScriptPipelined(ctx, scripts.LedgerFold, calls) {
			err := result.Failure
			if err == nil && result.Status == scripts.Stale {
				left.Stale = append(left.Stale, pages[i].gameID)
				continue
			}
			if err == nil {
				err = result.Err(scripts.LedgerFold)
			}
			if err != nil {
				fail(pages[i].gameID, err)
				continue
			}
			s.moved.add(pages[i].entries)
			if len(pages[i].entries) == foldPageSize {
				left.More = append(left.More, pages[i].gameID)
			}
		}
	}
	return left, errors.Join(errs...)
}

// readFoldPages returns a page for each game that has entries to fold. It calls fail for games that
// cannot be read.
func (s *Store) readFoldPages(ctx context.Context, gameIDs []int64, fail func(int64, error)) []foldPage {
	type reads struct{ base, folded *redis.StringCmd }
	starts := make([]reads, len(gameIDs))
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range gameIDs {
			// The base first: others may fold and remove entries between the two reads.
			starts[i] = reads{p.Get(ctx, keys.LedgerBase(id)), p.HGet(ctx, keys.Totals(id), keys.TotalsFoldedField)}
		}
		return nil
	})
	var pages []foldPage
	var lists []*redis.StringSliceCmd
	_, _ = s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range gameIDs {
			folded, foldedErr := redisdb.OptionalInt(starts[i].folded)
			base, baseErr := redisdb.OptionalInt(starts[i].base)
			err := errors.Join(foldedErr, baseErr)
			if err == nil && folded < base {
				err = errors.New("entries left the ledger before they were folded")
			}
			if err != nil {
				fail(id, err)
				continue
			}
			pages = append(pages, foldPage{gameID: id, folded: folded, base: base})
			lists = append(lists, p.LRange(ctx, keys.Ledger(id), folded-base, folded-base+foldPageSize-1))
		}
		return nil
	})
	for i := range pages {
		pages[i].entries = lists[i].Val()
		if err := lists[i].Err(); err != nil {
			fail(pages[i].gameID, redisdb.WrapError("read the ledger", err))
		}
	}
	return slices.DeleteFunc(pages, func(p foldPage) bool { return len(p.entries) == 0 })
}

// args returns the arguments of scripts.LedgerFold.
func (page foldPage) args(holder string) []any {
	sums := ledger.Totals{}
	for _, text := range page.entries {
		sums.AddFolded(ledger.Decode(0, text))
	}
	count := len(page.entries)
	var changes []any
	for code, of := range sums {
		for total, units := range of {
			if units != 0 {
				changes = append(changes, keys.TotalField(total, code), strconv.FormatInt(units, 10))
			}
		}
	}
	return scripts.LedgerFoldArgs{
		Fence: holder, Before: page.folded, Base: page.base, After: page.folded + int64(count),
		LastText: page.entries[count-1],
	}.List(changes...)
}

// Fold folds all entries of a game that are there now.
func (s *Store) Fold(ctx context.Context, gameID int64) error {
	for games := []int64{gameID}; len(games) > 0; {
		left, err := s.FoldPages(ctx, nil, games)
		if err != nil {
			return err
		}
		games = slices.Concat(left.More, left.Stale)
	}
	return nil
}

// ReadTotals returns the totals of games, each at one instant. A game whose ledger has grown much
// since it was folded is folded first.
func (s *Store) ReadTotals(ctx context.Context, gameIDs []int64) ([]Totals, error) {
	all := make([]Totals, 0, len(gameIDs))
	for some := range slices.Chunk(gameIDs, GamesAtOnce) {
		calls := make([]redisdb.ScriptCall, len(some))
		for i, id := range some {
			calls[i].Keys = []string{keys.Totals(id), keys.Ledger(id), keys.LedgerBase(id)}
			calls[i].Args = scripts.TotalsReadArgs{MostEntries: maxTailSize}.List()
		}
		for i, result := range s.db.RunScriptPipelined(ctx, scripts.TotalsRead, calls) {
			reply, err := result.Reply, result.Failure
			for err == nil && reply.Status == scripts.Stale {
				if err = s.Fold(ctx, some[i]); err == nil {
					reply, err = s.db.RunScript(ctx, scripts.TotalsRead, calls[i].Keys, calls[i].Args...)
				}
			}
			var t Totals
			if err == nil {
				t, err = decodeTotals(some[i], reply)
			}
			if redisdb.IsWrongType(err) { // the other games are reported
				t, err = Totals{GameID: some[i], Defect: err}, nil
			}
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// decodeTotals decodes a reply of scripts.TotalsRead.
func decodeTotals(gameID int64, reply redisdb.Reply) (Totals, error) {
	if err := reply.Err(scripts.TotalsRead); err != nil {
		return Totals{}, err
	}
	v := redisdb.NewValues("the totals of game "+strconv.FormatInt(gameID, 10), reply.Values)
	t := Totals{GameID: gameID, Sequence: v.NextInt(), Tokens: ledger.Totals{}}
	for range v.NextInt() {
		field := v.NextText()
		if field == keys.TotalsFoldedField {
			t.Folded = v.NextInt()
		} else if total, code, ok := keys.ParseTotalField(field); ok {
			t.Tokens.Set(code, total, v.NextInt())
		} else {
			v.NextText()
		}
	}
	for v.Remaining() > 0 {
		t.Tokens.AddFolded(ledger.Decode(0, v.NextText()))
	}
	return t, v.Err()
}
