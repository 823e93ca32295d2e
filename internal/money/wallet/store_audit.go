package wallet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// tokenTotals are the totals of one token in minor units: stored ones, or recounted ones.
type tokenTotals = map[string]Units

// The totals.
const (
	totalMinted  = keys.TotalMinted
	totalWallets = keys.TotalWallets
	totalEscrow  = keys.TotalEscrow
	totalPrizes  = keys.TotalPrizes
	totalHouse   = keys.TotalHouse
)

// totalOf is the total that the ledger folds a kind of account into. What was minted is kept by the
// scripts that mint.
var totalOf = map[string]string{
	keys.AccountWallet: totalWallets, keys.AccountEscrow: totalEscrow,
	keys.AccountPrizes: totalPrizes, keys.AccountHouse: totalHouse,
}

// totals are the totals of a game at one instant.
type totals struct {
	gameID   int64
	sequence int64                  // number of the last ledger entry
	folded   int64                  // number of the last entry that was folded
	tokens   map[string]tokenTotals // by code; with the entries that were not folded yet
	defect   error                  // why the game's money cannot be read; nil when it can
}

func (t totals) add(code, total string, units Units) {
	if t.tokens[code] == nil {
		t.tokens[code] = tokenTotals{}
	}
	t.tokens[code][total] += units
}

// addEntry adds the postings of an entry that are folded.
func (t totals) addEntry(text string) {
	e := ledger.Decode(0, text)
	for _, p := range e.Postings {
		if total, ok := totalOf[p.Kind]; ok {
			t.add(e.Code, total, Units(p.Units))
		}
	}
}

const (
	foldPageSize = 1000 // ledger entries that one script folds
	foldedGames  = 100  // games in one round trip of a fold
	maxTailSize  = 2000 // entries that are not folded yet in one read; more are folded first
)

// foldPage is a page of ledger entries that follow the folded ones.
type foldPage struct {
	gameID  int64
	folded  int64 // number of the entry before them
	base    int64 // of the ledger
	entries []string
}

// foldResult is what a fold of some games has left.
type foldResult struct {
	more  []int64 // games that may have more entries
	stale []int64 // games that someone else folded meanwhile, and those whose server was not reached
}

// foldPages folds a page of the ledger of each game, all games in the same round trips. With an
// error it has folded the other games. fence is nil outside of a leader's work; a leader that was
// followed by another one folds nothing.
func (s store) foldPages(ctx context.Context, fence *int64, gameIDs []int64) (foldResult, error) {
	holder := ""
	if fence != nil {
		holder = strconv.FormatInt(*fence, 10)
	}
	var left foldResult
	var errs []error
	fail := func(gameID int64, err error) {
		errs = append(errs, fmt.Errorf("fold the ledger of game %d: %w", gameID, err))
		if errors.Is(err, apierror.StoreUnavailable) {
			left.stale = append(left.stale, gameID)
		}
	}
	for some := range slices.Chunk(gameIDs, foldedGames) {
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
				left.stale = append(left.stale, pages[i].gameID)
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
				left.more = append(left.more, pages[i].gameID)
			}
		}
	}
	return left, errors.Join(errs...)
}

// readFoldPages returns a page for each game that has entries to fold. It calls fail for games that
// cannot be read.
func (s store) readFoldPages(ctx context.Context, gameIDs []int64, fail func(int64, error)) []foldPage {
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
			folded, foldedErr := optionalInt(starts[i].folded)
			base, baseErr := optionalInt(starts[i].base)
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
	sums := totals{tokens: map[string]tokenTotals{}}
	for _, text := range page.entries {
		sums.addEntry(text)
	}
	count := len(page.entries)
	var changes []any
	for code, of := range sums.tokens {
		for total, units := range of {
			if units != 0 {
				changes = append(changes, keys.TotalField(total, code), units.String())
			}
		}
	}
	return scripts.LedgerFoldArgs{
		Fence: holder, Before: page.folded, Base: page.base, After: page.folded + int64(count),
		LastText: page.entries[count-1],
	}.List(changes...)
}

// fold folds all entries of a game that are there now.
func (s store) fold(ctx context.Context, gameID int64) error {
	for games := []int64{gameID}; len(games) > 0; {
		left, err := s.foldPages(ctx, nil, games)
		if err != nil {
			return err
		}
		games = slices.Concat(left.more, left.stale)
	}
	return nil
}

// readTotals returns the totals of games, each at one instant. A game whose ledger has grown much
// since it was folded is folded first.
func (s store) readTotals(ctx context.Context, gameIDs []int64) ([]totals, error) {
	all := make([]totals, 0, len(gameIDs))
	for some := range slices.Chunk(gameIDs, foldedGames) {
		calls := make([]redisdb.ScriptCall, len(some))
		for i, id := range some {
			calls[i].Keys = []string{keys.Totals(id), keys.Ledger(id), keys.LedgerBase(id)}
			calls[i].Args = scripts.TotalsReadArgs{MostEntries: maxTailSize}.List()
		}
		for i, result := range s.db.RunScriptPipelined(ctx, scripts.TotalsRead, calls) {
			reply, err := result.Reply, result.Failure
			for err == nil && reply.Status == scripts.Stale {
				if err = s.fold(ctx, some[i]); err == nil {
					reply, err = s.db.RunScript(ctx, scripts.TotalsRead, calls[i].Keys, calls[i].Args...)
				}
			}
			var t totals
			if err == nil {
				t, err = decodeTotals(some[i], reply)
			}
			if redisdb.IsWrongType(err) { // the other games are reported
				t, err = totals{gameID: some[i], defect: err}, nil
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
func decodeTotals(gameID int64, reply redisdb.Reply) (totals, error) {
	if err := reply.Err(scripts.TotalsRead); err != nil {
		return totals{}, err
	}
	v := redisdb.NewValues("the totals of game "+strconv.FormatInt(gameID, 10), reply.Values)
	t := totals{gameID: gameID, sequence: v.NextInt(), tokens: map[string]tokenTotals{}}
	for range v.NextInt() {
		field := v.NextText()
		if field == keys.TotalsFoldedField {
			t.folded = v.NextInt()
		} else if total, code, ok := keys.ParseTotalField(field); ok {
			t.add(code, total, Units(v.NextInt()))
		} else {
			v.NextText()
		}
	}
	for v.Remaining() > 0 {
		t.addEntry(v.NextText())
	}
	return t, v.Err()
}

// listWallets returns the players who have a wallet, by game; of one game unless gameID is 0. A
// player may come twice.
func (s store) listWallets(ctx context.Context, gameID int64) (map[int64][]int64, error) {
	players := map[int64][]int64{}
	err := s.db.ScanKeys(ctx, keys.WalletPattern(gameID), func(names []string) {
		for _, name := range names {
			if game, user, ok := keys.ParseWallet(name); ok {
				players[game] = append(players[game], user)
			}
		}
	})
	return players, err
}

// walletPageSize bounds how many wallets are read at one instant.
const walletPageSize = 200

// newestLines is how many lines are read with a wallet. The last line of a token that is further
// back is searched for.
const newestLines = 20

// walletsRead is some wallets and the number of the last ledger entry, at one instant.
type walletsRead struct {
	sequence int64
	wallets  map[int64]storedWallet // by user id
}

// storedWallet is a wallet with the player's newest lines.
type storedWallet struct {
	balances  map[string]tokenBalance // by code
	seq       int64                   // number of the last event
	lineCount int64                   // in the list
	base      int64                   // how many lines were removed before those
	newest    []string                // oldest first
	defect    error                   // why the wallet or its lines cannot be read; nil when they can
}

func (s store) readSnapshot(ctx context.Context, gameID int64, userIDs []int64) (walletsRead, error) {
	type replies struct {
		wallet *redis.MapStringStringCmd
		count  *redis.IntCmd
		newest *redis.StringSliceCmd
	}
	reads := make([]replies, len(userIDs))
	var length *redis.IntCmd
	var base *redis.StringCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		base = p.Get(ctx, keys.LedgerBase(gameID))
		length = p.LLen(ctx, keys.Ledger(gameID))
		for i, id := range userIDs {
			lines := keys.WalletLines(gameID, id)
			reads[i] = replies{
				p.HGetAll(ctx, keys.Wallet(gameID, id)), p.LLen(ctx, lines), p.LRange(ctx, lines, -newestLines, -1),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) { // Nil: no entry was removed yet
		return walletsRead{}, redisdb.WrapError("read wallets", err)
	}
	removed, err := optionalInt(base)
	if err = errors.Join(err, length.Err()); err != nil {
		return walletsRead{}, redisdb.WrapError("read the ledger", err)
	}
	at := walletsRead{sequence: removed + length.Val(), wallets: make(map[int64]storedWallet, len(userIDs))}
	for i, id := range userIDs {
		fields := redisdb.NewFields("the wallet of "+strconv.FormatInt(id, 10), reads[i].wallet.Val())
		w := storedWallet{
			seq: fields.Int(keys.WalletSeqField), base: fields.Int(keys.WalletBaseField),
			lineCount: reads[i].count.Val(), newest: reads[i].newest.Val(),
			defect: cmp.Or(reads[i].wallet.Err(), reads[i].count.Err()),
		}
		if w.balances, err = decodeWallet(redisdb.HashOf(reads[i].wallet.Val())); err != nil || fields.Err() != nil {
			return walletsRead{}, fmt.Errorf("wallet of %d: %w", id, errors.Join(err, fields.Err()))
		}
		at.wallets[id] = w
	}
	return at, nil
}

// readLinesUpTo returns the lines before a place in the list, oldest first, a page of them at most.
func (s store) readLinesUpTo(ctx context.Context, gameID, userID, place int64) ([]string, error) {
	entries, err := s.db.Client.LRange(ctx, keys.WalletLines(gameID, userID),
		max(0, place-ledgerPageSize), place-1).Result()
	return entries, redisdb.WrapError("read a player's lines", err)
}

// lineBalance is the balance of one token after a line.
type lineBalance struct {
	seq  int64 // number of the event
	code string
	tokenBalance
}

func decodeLineBalance(entry string) (lineBalance, error) {
	parts := strings.Split(entry, "|")
	if len(parts) < lineParts {
		return lineBalance{}, fmt.Errorf("decode the line %q: %d values", entry, len(parts))
	}
	seq, _, _ := strings.Cut(parts[0], "-")
	v := redisdb.NewValues("the line "+entry, []string{seq, parts[6], parts[7]})
	b := lineBalance{code: parts[3], seq: v.NextInt()}
	b.free, b.held = Units(v.NextInt()), Units(v.NextInt())
	return b, v.Err()
}

func walletAccount(userID int64) string { return keys.WalletAccount(strconv.FormatInt(userID, 10)) }

const ledgerPageSize = 1000

// readEntries returns entries after one number and up to another, a page of them at most. With an
// archive they may be from there.
func (s store) readEntries(ctx context.Context, gameID, after, upTo int64) ([]ledger.Entry, error) {
	for base := int64(0); ; {
		if s.archive != nil && after < base {
			return s.readArchivedEntries(ctx, gameID, after, min(upTo, base))
		}
		first := max(0, after-base) // place in the list, from 0
		last := min(first+ledgerPageSize, upTo-base) - 1
		var baseReply *redis.StringCmd
		var page *redis.StringSliceCmd
		_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			baseReply = p.Get(ctx, keys.LedgerBase(gameID))
			page = p.LRange(ctx, keys.Ledger(gameID), first, last)
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // Nil: no entry was removed yet
			return nil, redisdb.WrapError("read the ledger", err)
		}
		newBase, err := optionalInt(baseReply)
		if err != nil {
			return nil, err
		}
		if newBase != base { // entries were removed: the places are others
			base = newBase
			continue
		}
		entries := make([]ledger.Entry, len(page.Val()))
		for i, text := range page.Val() {
			entries[i] = ledger.Decode(base+first+int64(i)+1, text)
		}
		return entries, nil
	}
}
