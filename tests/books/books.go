// Package books reads what the economy of a game holds, from the keys themselves and not through
// the code that writes them, and checks that it adds up. It is for tests only.
package books

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// Books is everything that the economy of a game holds at one instant, read from the keys
// themselves, without the code that writes them.
type Books struct {
	Game    int64
	Wallets map[int64]Balance            // by user
	Rooms   map[string]Room              // by room
	Owned   map[int64]map[string]int64   // by user and asset
	Entries []Entry                      // of the ledger, the first at 0
	Totals  map[string]int64             // fields of keys.Totals that are numbers
	Lines   map[int64][]string           // by user
	Assets  map[string]map[string]string // values of scripts.AssetLive by asset
	Dropped int64                        // entries that left the front of the ledger

	LinesDropped map[int64]int64 // lines that left the store by user
	Archived     int64           // entries of the ledger that AddArchived has added
}

// Balance is what a player has of all tokens.
type Balance struct{ Free, Held int64 }

// Room is the money of a paid room.
type Room struct {
	Status string
	Pot    int64
	Stakes map[int64]int64 // by user
	Active []int64         // users who play, sorted
}

// HasEnded reports whether the room has its result, or was cancelled.
func (r Room) HasEnded() bool { return r.Status == "FINISHED" || r.Status == "CANCELLED" }

// Entry is an entry of the ledger.
type Entry struct {
	Nonce, Token, Reason, Ref string
	Postings                  map[string]int64 // by account
	Text                      string           // without the time
}

var (
	liveLayout  = redisdb.PackedLayout{Name: "a room", Separator: '|', Layout: scripts.RoomLive}
	seatLayout  = redisdb.PackedLayout{Name: "a seat", Separator: '|', Layout: scripts.RoomSeat}
	assetLayout = redisdb.PackedLayout{Name: "an asset", Separator: '|', Layout: scripts.AssetLive}
)

// Read reads the books of a game in one step.
func Read(t redistest.TestingT, db *redisdb.DB, game int64) (Books, error) {
	t.Helper()
	return decode(game, redistest.TakeSnapshot(t, db, EconomyTag(game)))
}

// EconomyTag returns what the keys of a game's money start with.
func EconomyTag(game int64) string { return "{" + keys.EconomyShard(game).String() + "}:" }

// ReadLarge is Read for a store on which nobody works and that is too large for one step.
func ReadLarge(ctx context.Context, db *redisdb.DB, game int64) (Books, error) {
	snapshot, tag := redistest.Snapshot{}, EconomyTag(game)
	var names []string
	err := db.ScanKeys(ctx, tag+"*", func(found []string) {
		for _, name := range found {
			rest := strings.TrimPrefix(name, tag)
			if !strings.HasPrefix(rest, "receipt:") && !strings.HasPrefix(rest, "code:") && !strings.HasSuffix(rest, ":events") {
				names = append(names, name)
			}
		}
	})
	for some := range slices.Chunk(names, 500) {
		kinds := make([]*redis.StatusCmd, len(some))
		values := make([]*redis.Cmd, len(some))
		if err == nil {
			_, err = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i, name := range some {
					kinds[i] = p.Type(ctx, name)
				}
				return nil
			})
		}
		if err != nil {
			return Books{}, err
		}
		readers := map[string][]any{"string": {"GET"}, "hash": {"HGETALL"}, "list": {"LRANGE"}, "zset": {"ZCARD"}}
		_, err = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range some {
				values[i] = redis.NewCmd(ctx)
				reader, isRead := readers[kinds[i].Val()]
				if !isRead { // the key was removed after the scan
					continue
				}
				command := append(slices.Clone(reader), name)
				if kinds[i].Val() == "list" {
					command = append(command, 0, -1)
				}
				values[i] = p.Do(ctx, command...)
			}
			return nil
		})
		for i, name := range some {
			stored := redistest.StoredKey{Type: kinds[i].Val()}
			if list, listErr := values[i].StringSlice(); listErr == nil {
				stored.Values = list
			} else if text, textErr := values[i].Text(); textErr == nil {
				stored.Values = []string{text}
			}
			snapshot[name] = stored
		}
	}
	if err != nil {
		return Books{}, err
	}
	return decode(game, snapshot)
}

// decode returns the books that are stored under the keys of an economy.
func decode(game int64, snapshot redistest.Snapshot) (Books, error) {
	shard, tag := keys.EconomyShard(game), EconomyTag(game)
	b := Books{
		Game: game, Wallets: map[int64]Balance{}, Rooms: map[string]Room{}, Owned: map[int64]map[string]int64{},
		Totals: map[string]int64{}, Lines: map[int64][]string{}, Assets: map[string]map[string]string{},
		LinesDropped: map[int64]int64{},
	}
	var errs []error
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		errs = append(errs, err)
		return n
	}
	for key, stored := range snapshot {
		name := strings.TrimPrefix(key, tag)
		kind, rest, _ := strings.Cut(name, ":")
		_, user, isWallet := keys.ParseWallet(key)
		linesOf, isLines := keys.ParseWalletLines(key)
		switch {
		case isWallet:
			var sum Balance
			for _, field := range stored.Names() {
				if field == keys.WalletBaseField {
					b.LinesDropped[user] = number(stored.Field(field))
				}
				if keys.IsTokenField(field) {
					free, rest, _ := strings.Cut(stored.Field(field), "|")
					held, _, _ := strings.Cut(rest, "|") // a flag may follow
					sum.Free, sum.Held = sum.Free+number(free), sum.Held+number(held)
				}
			}
			b.Wallets[user] = sum
		case isLines:
			b.Lines[linesOf] = stored.Values
		case key == keys.Ledger(game):
			for _, text := range stored.Values {
				e, err := parseEntry(text)
				errs = append(errs, err)
				b.Entries = append(b.Entries, e)
			}
		case key == keys.LedgerBase(game):
			b.Dropped = number(stored.Text())
		case key == keys.Totals(game):
			for _, field := range stored.Names() {
				b.Totals[field] = number(stored.Field(field))
			}
		case kind == "inventory":
			owned := map[string]int64{}
			for _, asset := range stored.Names() {
				owned[asset] = number(stored.Field(asset))
			}
			b.Owned[number(rest)] = owned
		case kind == "asset":
			live := assetLayout.Split(stored.Field(keys.AssetLiveField))
			values := map[string]string{}
			for _, field := range assetLayout.Layout.Names {
				values[field] = live.Text(field)
			}
			b.Assets[rest] = values
		case key == keys.Room(shard, rest) && stored.Type == "hash":
			live := liveLayout.Split(stored.Field("live"))
			room := Room{Status: live.Text("status"), Pot: number(live.Text("pot")), Stakes: map[int64]int64{}}
			for _, field := range stored.Names() {
				if user, err := strconv.ParseInt(strings.TrimPrefix(field, "s"), 10, 64); err == nil && field[0] == 's' {
					seat := seatLayout.Split(stored.Field(field))
					room.Stakes[user] = number(seat.Text("stake"))
					if seat.Text("state") == "active" {
						room.Active = append(room.Active, user)
					}
				}
			}
			slices.Sort(room.Active)
			b.Rooms[rest] = room
		}
	}
	return b, errors.Join(errs...)
}

// AddArchived puts what has left the store before what is there, so that the ledger is whole. The
// segments must be a chain, and lines of players must be there as well.
func (b *Books) AddArchived(ctx context.Context, a *archive.Archive) error {
	var archived []Entry
	previous := ""
	for int64(len(archived)) < b.Dropped {
		s, err := a.ReadSegment(ctx, b.Game, int64(len(archived))+1)
		if err != nil {
			return err
		}
		if s.Previous != previous {
			return fmt.Errorf("the segment from entry %d follows another one", s.First)
		}
		previous = s.Sum
		for _, text := range s.Entries {
			e, err := parseEntry(text)
			if err != nil {
				return err
			}
			archived = append(archived, e)
		}
	}
	if int64(len(archived)) != b.Dropped {
		return fmt.Errorf("%d entries left the store, and the archive has %d", b.Dropped, len(archived))
	}
	b.Entries, b.Dropped, b.Archived = append(archived, b.Entries...), 0, b.Dropped
	for user, dropped := range b.LinesDropped {
		var archived []string
		for int64(len(archived)) < dropped {
			lines, err := a.ReadLines(ctx, b.Game, user, int64(len(archived))+1)
			if err != nil {
				return err
			}
			archived = append(archived, lines...)
		}
		if int64(len(archived)) != dropped {
			return fmt.Errorf("%d lines of player %d left the store, and the archive has %d", dropped, user, len(archived))
		}
		b.Lines[user] = append(archived, b.Lines[user]...)
	}
	for user, lines := range b.Lines { // their numbers rise
		last := 0
		for _, line := range lines {
			text, _, _ := strings.Cut(line, "-")
			number, err := strconv.Atoi(text)
			if err != nil || number <= last {
				return fmt.Errorf("line %s of player %d follows line %d", line, user, last)
			}
			last = number
		}
	}
	return nil
}

func parseEntry(text string) (Entry, error) {
	parts := strings.Split(text, "|")
	if len(parts) != 6 {
		return Entry{}, fmt.Errorf("the ledger has the entry %q", text)
	}
	e := Entry{
		Nonce: parts[1], Token: parts[2], Reason: parts[3], Ref: parts[4], Postings: map[string]int64{},
		Text: strings.Join(parts[1:], "|"),
	}
	sum := int64(0)
	for one := range strings.SplitSeq(parts[5], ";") {
		if one == "" {
			continue
		}
		account, units, _ := strings.Cut(one, ":")
		n, err := strconv.ParseInt(units, 10, 64)
		if err != nil {
			return Entry{}, fmt.Errorf("the ledger has the posting %q", one)
		}
		e.Postings[account] += n
		sum += n
	}
	if sum != 0 {
		return Entry{}, fmt.Errorf("the ledger entry %q sums to %d", text, sum)
	}
	return e, nil
}

// Check returns what is wrong with the books; nil when all of this holds:
//
//   - No balance is negative. What players have, what is in pots and what the house earned is what
//     was brought in.
//   - What each player holds is the sum of that player's stakes in rooms that have not ended.
//   - The pot of a room that has not ended is the sum of its stakes, and its account in the ledger.
//     An ended room has nothing in its account.
//   - Each ledger entry sums to zero, and no call has entered the same twice.
//   - A wallet is its account in the ledger, and the balance in its newest line.
//   - What a player owns was bought, each piece once.
func (b Books) Check() error {
	var wrong []string
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	accounts, escrow := map[string]int64{}, map[string]int64{}
	seen, bought := map[string]int{}, map[string]bool{}
	for number, e := range b.Entries {
		if before, ok := seen[e.Text]; ok {
			fail("the entries %d and %d are the same: %s", before, number+1, e.Text)
		}
		seen[e.Text] = number + 1
		for account, units := range e.Postings {
			accounts[account] += units
			if account == keys.AccountEscrow {
				escrow[e.Ref] += units
			}
		}
		if e.Reason == "purchase" {
			bought[e.Ref] = true
		}
	}
	minted, free, held := int64(0), int64(0), map[int64]int64{}
	for field, units := range b.Totals {
		if total, _, ok := keys.ParseTotalField(field); ok && total == keys.TotalMinted {
			minted += units
		}
	}
	pots := int64(0)
	for id, room := range b.Rooms {
		if room.HasEnded() {
			if escrow[id] != 0 {
				fail("the room %s is %s and has %d in its account", id, room.Status, escrow[id])
			}
			continue
		}
		sum := int64(0)
		for user, stake := range room.Stakes {
			sum += stake
			held[user] += stake
		}
		pots += sum
		if sum != room.Pot || b.Dropped == 0 && escrow[id] != sum {
			fail("the room %s is %s with the stakes %v, the pot %d and %d in its account",
				id, room.Status, room.Stakes, room.Pot, escrow[id])
		}
	}
	for id, units := range escrow {
		if _, known := b.Rooms[id]; !known && units != 0 && b.Dropped == 0 {
			fail("the room %s is gone and has %d in its account", id, units)
		}
	}
	for user, has := range b.Wallets {
		free += has.Free
		account := accounts[keys.WalletAccount(strconv.FormatInt(user, 10))]
		if has.Free < 0 || has.Held < 0 || b.Dropped == 0 && has.Free != account {
			fail("player %d has %+v; the ledger has %d", user, has, account)
		}
		if has.Held != held[user] {
			fail("of player %d %d are held; the stakes are %d", user, has.Held, held[user])
		}
		if lines := b.Lines[user]; len(lines) > 0 {
			last := strings.Split(lines[len(lines)-1], "|")
			if last[6] != strconv.FormatInt(has.Free, 10) || last[7] != strconv.FormatInt(has.Held, 10) {
				fail("the newest line of player %d is %v; the wallet has %+v", user, last, has)
			}
		}
	}
	if b.Dropped == 0 {
		if sum := free + pots + accounts[keys.AccountHouse] + accounts[keys.AccountPrizes]; sum != minted {
			fail("of %d minted there are %d: %d in wallets, %d in pots, %d with the house", minted, sum, free, pots,
				accounts[keys.AccountHouse])
		}
		if accounts[keys.AccountMint] != -minted {
			fail("minted are %d; the ledger has %d", minted, accounts[keys.AccountMint])
		}
		if accounts[keys.AccountEscrow] != pots {
			fail("the pots are %d; the ledger has %d", pots, accounts[keys.AccountEscrow])
		}
	}
	sold := map[string]int64{}
	for user, assets := range b.Owned {
		for asset, n := range assets {
			sold[asset] += n
			if !bought["asset:"+asset] && b.Dropped == 0 {
				fail("player %d owns %d of asset %s, which nobody bought", user, n, asset)
			}
		}
	}
	for id, live := range b.Assets {
		if text := strconv.FormatInt(sold[id], 10); live["sold"] != text {
			fail("of asset %s %s were sold and %s are owned", id, live["sold"], text)
		}
		if strings.HasPrefix(live["stock"], "-") {
			fail("asset %s has the stock %s", id, live["stock"])
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// LiveRooms returns the rooms that have not ended, sorted.
func (b Books) LiveRooms() []string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(b.Rooms)) {
		if !b.Rooms[id].HasEnded() {
			list = append(list, id)
		}
	}
	return list
}

// Delta returns what was minted, less all that is there: 0 unless money was made or lost.
func (b Books) Delta() int64 {
	minted, there := int64(0), int64(0)
	for field, units := range b.Totals {
		if total, _, ok := keys.ParseTotalField(field); ok && total == keys.TotalMinted {
			minted += units
		}
	}
	for _, has := range b.Wallets {
		there += has.Free + has.Held
	}
	for _, e := range b.Entries {
		there += e.Postings[keys.AccountHouse] + e.Postings[keys.AccountPrizes]
	}
	return minted - there
}

// CheckBought requires that each player owns what the ledger says the player bought, with purchases
// of one piece each, and returns how many that were.
func (b Books) CheckBought() error {
	bought := map[string]int64{}
	for _, e := range b.Entries {
		asset, ok := strings.CutPrefix(e.Ref, "asset:")
		if e.Reason != "purchase" || !ok {
			continue
		}
		for account := range e.Postings {
			if kind, owner := keys.ParseAccount(account); kind == keys.AccountWallet {
				bought[owner+" "+asset]++
			}
		}
	}
	for user, owned := range b.Owned {
		for asset, n := range owned {
			if id := strconv.FormatInt(user, 10) + " " + asset; bought[id] != n {
				return fmt.Errorf("player %d owns %d of asset %s; the ledger has %d purchases", user, n, asset, bought[id])
			}
		}
	}
	return nil
}
