package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/archive"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// books is everything that the economy of a game holds at one instant, read from the keys
// themselves, without the code that writes them.
type books struct {
	game    int64
	wallets map[int64]balance            // by user
	rooms   map[string]roomBooks         // by room
	owned   map[int64]map[string]int64   // by user and asset
	entries []entry                      // of the ledger, the first at 0
	totals  map[string]int64             // fields of keys.Totals that are numbers
	lines   map[int64][]string           // by user
	assets  map[string]map[string]string // values of scripts.AssetLive by asset
	dropped int64                        // entries that left the front of the ledger

	linesDropped map[int64]int64 // lines that left the store by user
	archived     int64           // entries of the ledger that addArchived has added
}

type balance struct{ free, held int64 }

type roomBooks struct {
	status string
	pot    int64
	stakes map[int64]int64 // by user
	active []int64         // users who play, sorted
}

func (r roomBooks) ended() bool { return r.status == "FINISHED" || r.status == "CANCELLED" }

// entry is an entry of the ledger.
type entry struct {
	nonce, token, reason, ref string
	postings                  map[string]int64 // by account
	text                      string           // without the time
}

var (
	liveLayout  = redisdb.PackedLayout{Name: "a room", Separator: '|', Names: scripts.RoomLive.Names}
	seatLayout  = redisdb.PackedLayout{Name: "a seat", Separator: '|', Names: scripts.RoomSeat.Names}
	assetLayout = redisdb.PackedLayout{Name: "an asset", Separator: '|', Names: scripts.AssetLive.Names}
)

// readBooks reads the books of a game in one step.
func readBooks(t checker, db *redisdb.DB, game int64) (books, error) {
	t.Helper()
	return decodeBooks(game, redistest.TakeSnapshot(t, db, economyTag(game)))
}

func economyTag(game int64) string { return "{" + keys.EconomyShard(game).String() + "}:" }

// readLargeBooks is readBooks for a store on which nobody works and that is too large for one step.
func readLargeBooks(ctx context.Context, db *redisdb.DB, game int64) (books, error) {
	snapshot, tag := redistest.Snapshot{}, economyTag(game)
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
			return books{}, err
		}
		readers := map[string][]any{"string": {"GET"}, "hash": {"HGETALL"}, "list": {"LRANGE"}, "zset": {"ZCARD"}}
		_, err = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range some {
				command := append(slices.Clone(readers[kinds[i].Val()]), name)
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
		return books{}, err
	}
	return decodeBooks(game, snapshot)
}

// decodeBooks returns the books that are stored under the keys of an economy.
func decodeBooks(game int64, snapshot redistest.Snapshot) (books, error) {
	shard, tag := keys.EconomyShard(game), economyTag(game)
	b := books{
		game: game, wallets: map[int64]balance{}, rooms: map[string]roomBooks{}, owned: map[int64]map[string]int64{},
		totals: map[string]int64{}, lines: map[int64][]string{}, assets: map[string]map[string]string{},
		linesDropped: map[int64]int64{},
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
			var sum balance
			for _, field := range stored.Names() {
				if field == keys.WalletBaseField {
					b.linesDropped[user] = number(stored.Field(field))
				}
				if keys.IsTokenField(field) {
					free, rest, _ := strings.Cut(stored.Field(field), "|")
					held, _, _ := strings.Cut(rest, "|") // a flag may follow
					sum.free, sum.held = sum.free+number(free), sum.held+number(held)
				}
			}
			b.wallets[user] = sum
		case isLines:
			b.lines[linesOf] = stored.Values
		case key == keys.Ledger(game):
			for _, text := range stored.Values {
				e, err := parseEntry(text)
				errs = append(errs, err)
				b.entries = append(b.entries, e)
			}
		case key == keys.LedgerBase(game):
			b.dropped = number(stored.Text())
		case key == keys.Totals(game):
			for _, field := range stored.Names() {
				b.totals[field] = number(stored.Field(field))
			}
		case kind == "inventory":
			owned := map[string]int64{}
			for _, asset := range stored.Names() {
				owned[asset] = number(stored.Field(asset))
			}
			b.owned[number(rest)] = owned
		case kind == "asset":
			live := assetLayout.Split(stored.Field(keys.AssetLiveField))
			values := map[string]string{}
			for _, field := range assetLayout.Names {
				values[field] = live.Text(field)
			}
			b.assets[rest] = values
		case key == keys.Room(shard, rest) && stored.Type == "hash":
			live := liveLayout.Split(stored.Field("live"))
			room := roomBooks{status: live.Text("status"), pot: number(live.Text("pot")), stakes: map[int64]int64{}}
			for _, field := range stored.Names() {
				if user, err := strconv.ParseInt(strings.TrimPrefix(field, "s"), 10, 64); err == nil && field[0] == 's' {
					seat := seatLayout.Split(stored.Field(field))
					room.stakes[user] = number(seat.Text("stake"))
					if seat.Text("state") == "active" {
						room.active = append(room.active, user)
					}
				}
			}
			slices.Sort(room.active)
			b.rooms[rest] = room
		}
	}
	return b, errors.Join(errs...)
}

// addArchived puts what has left the store before what is there, so that the ledger is whole. The
// segments must be a chain, and lines of players must be there as well.
func (b *books) addArchived(ctx context.Context, a *archive.Archive) error {
	var archived []entry
	previous := ""
	for int64(len(archived)) < b.dropped {
		s, err := a.ReadSegment(ctx, b.game, int64(len(archived))+1)
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
	if int64(len(archived)) != b.dropped {
		return fmt.Errorf("%d entries left the store, and the archive has %d", b.dropped, len(archived))
	}
	b.entries, b.dropped, b.archived = append(archived, b.entries...), 0, b.dropped
	for user, dropped := range b.linesDropped {
		var archived []string
		for int64(len(archived)) < dropped {
			lines, err := a.ReadLines(ctx, b.game, user, int64(len(archived))+1)
			if err != nil {
				return err
			}
			archived = append(archived, lines...)
		}
		if int64(len(archived)) != dropped {
			return fmt.Errorf("%d lines of player %d left the store, and the archive has %d", dropped, user, len(archived))
		}
		b.lines[user] = append(archived, b.lines[user]...)
	}
	for user, lines := range b.lines { // their numbers rise
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

func parseEntry(text string) (entry, error) {
	parts := strings.Split(text, "|")
	if len(parts) != 6 {
		return entry{}, fmt.Errorf("the ledger has the entry %q", text)
	}
	e := entry{
		nonce: parts[1], token: parts[2], reason: parts[3], ref: parts[4], postings: map[string]int64{},
		text: strings.Join(parts[1:], "|"),
	}
	sum := int64(0)
	for one := range strings.SplitSeq(parts[5], ";") {
		if one == "" {
			continue
		}
		account, units, _ := strings.Cut(one, ":")
		n, err := strconv.ParseInt(units, 10, 64)
		if err != nil {
			return entry{}, fmt.Errorf("the ledger has the posting %q", one)
		}
		e.postings[account] += n
		sum += n
	}
	if sum != 0 {
		return entry{}, fmt.Errorf("the ledger entry %q sums to %d", text, sum)
	}
	return e, nil
}

// check returns what is wrong with the books; nil when all of this holds:
//
//   - No balance is negative. What players have, what is in pots and what the house earned is what
//     was brought in.
//   - What each player holds is the sum of that player's stakes in rooms that have not ended.
//   - The pot of a room that has not ended is the sum of its stakes, and its account in the ledger.
//     An ended room has nothing in its account.
//   - Each ledger entry sums to zero, and no call has entered the same twice.
//   - A wallet is its account in the ledger, and the balance in its newest line.
//   - What a player owns was bought, each piece once.
func (b books) check() error {
	var wrong []string
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	accounts, escrow := map[string]int64{}, map[string]int64{}
	seen, bought := map[string]int{}, map[string]bool{}
	for number, e := range b.entries {
		if before, ok := seen[e.text]; ok {
			fail("the entries %d and %d are the same: %s", before, number+1, e.text)
		}
		seen[e.text] = number + 1
		for account, units := range e.postings {
			accounts[account] += units
			if account == keys.AccountEscrow {
				escrow[e.ref] += units
			}
		}
		if e.reason == "purchase" {
			bought[e.ref] = true
		}
	}
	minted, free, held := int64(0), int64(0), map[int64]int64{}
	for field, units := range b.totals {
		if total, _, ok := keys.ParseTotalField(field); ok && total == keys.TotalMinted {
			minted += units
		}
	}
	pots := int64(0)
	for id, room := range b.rooms {
		if room.ended() {
			if escrow[id] != 0 {
				fail("the room %s is %s and has %d in its account", id, room.status, escrow[id])
			}
			continue
		}
		sum := int64(0)
		for user, stake := range room.stakes {
			sum += stake
			held[user] += stake
		}
		pots += sum
		if sum != room.pot || b.dropped == 0 && escrow[id] != sum {
			fail("the room %s is %s with the stakes %v, the pot %d and %d in its account",
				id, room.status, room.stakes, room.pot, escrow[id])
		}
	}
	for id, units := range escrow {
		if _, known := b.rooms[id]; !known && units != 0 && b.dropped == 0 {
			fail("the room %s is gone and has %d in its account", id, units)
		}
	}
	for user, has := range b.wallets {
		free += has.free
		account := accounts[keys.WalletAccount(strconv.FormatInt(user, 10))]
		if has.free < 0 || has.held < 0 || b.dropped == 0 && has.free != account {
			fail("player %d has %+v; the ledger has %d", user, has, account)
		}
		if has.held != held[user] {
			fail("of player %d %d are held; the stakes are %d", user, has.held, held[user])
		}
		if lines := b.lines[user]; len(lines) > 0 {
			last := strings.Split(lines[len(lines)-1], "|")
			if last[6] != strconv.FormatInt(has.free, 10) || last[7] != strconv.FormatInt(has.held, 10) {
				fail("the newest line of player %d is %v; the wallet has %+v", user, last, has)
			}
		}
	}
	if b.dropped == 0 {
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
	for user, assets := range b.owned {
		for asset, n := range assets {
			sold[asset] += n
			if !bought["asset:"+asset] && b.dropped == 0 {
				fail("player %d owns %d of asset %s, which nobody bought", user, n, asset)
			}
		}
	}
	for id, live := range b.assets {
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

// liveRooms returns the rooms that have not ended, sorted.
func (b books) liveRooms() []string {
	var list []string
	for _, id := range slices.Sorted(maps.Keys(b.rooms)) {
		if !b.rooms[id].ended() {
			list = append(list, id)
		}
	}
	return list
}

// delta returns what was minted, less all that is there: 0 unless money was made or lost.
func (b books) delta() int64 {
	minted, there := int64(0), int64(0)
	for field, units := range b.totals {
		if total, _, ok := keys.ParseTotalField(field); ok && total == keys.TotalMinted {
			minted += units
		}
	}
	for _, has := range b.wallets {
		there += has.free + has.held
	}
	for _, e := range b.entries {
		there += e.postings[keys.AccountHouse] + e.postings[keys.AccountPrizes]
	}
	return minted - there
}
