package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

func newLockValue() string { return strconv.FormatUint(rand.Uint64(), 36) }

// passState is what one pass over the old keys knows and adds up.
type passState struct {
	store  *store
	sink   sink
	report func(counts)

	counts   counts
	seen     map[string]struct{} // names of keys that are counted once though a scan may name them twice
	problems []string
	gameIDs  []int64
	tokens   map[string]token   // by code
	games    map[int64]int64    // by user id
	created  map[int64]int64    // in ms, by user id
	assetsOf map[int64]int64    // game by asset id
	wallets  map[int64]balances // by game
	pots     map[int64]balances // stakes in rooms that have not ended, as free; by game
	ledgers  map[int64]*gameLedger
	old      map[string]string // the old totals
	entries  int64             // of the old ledger
}

type token struct {
	decimals string
}

// balances are minor units by code of the token.
type balances map[string]struct{ free, held int64 }

func (b balances) add(code string, free, held int64) {
	sum := b[code]
	sum.free += free
	sum.held += held
	b[code] = sum
}

// gameLedger is the written part of one game's ledger.
type gameLedger struct {
	count  int
	totals ledger.Totals
}

func newPassState(s *store, to sink, report func(counts)) *passState {
	return &passState{
		store: s, sink: to, report: report, counts: counts{}, seen: map[string]struct{}{}, tokens: map[string]token{},
		games: map[int64]int64{}, created: map[int64]int64{}, assetsOf: map[int64]int64{},
		wallets: map[int64]balances{}, pots: map[int64]balances{}, ledgers: map[int64]*gameLedger{},
	}
}

// maxProblems bounds the problems that an error lists.
const maxProblems = 20

func (p *passState) problem(format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
	}
}

// isFirst counts a key and reports whether the pass meets it for the first time.
func (p *passState) isFirst(k oldKey, name string) bool {
	if _, again := p.seen[k.Name]; again {
		return false
	}
	p.seen[k.Name] = struct{}{}
	p.counts[name]++
	return true
}

// loadTokens reads what every conversion needs: the tokens, the games and the assets' games.
func (p *passState) loadTokens(ctx context.Context) error {
	client := p.store.db.Client
	last, err := client.Get(ctx, keys.GameIDCounter()).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return redisdb.WrapError("count the games", err)
	}
	for id := range last {
		p.gameIDs = append(p.gameIDs, id+1)
	}
	p.counts[countGames] = last
	var read error
	err = p.store.eachOldKey(ctx, func(ctx context.Context, page []oldKey) error {
		for _, k := range page {
			switch k.Kind {
			case keys.OldToken:
				decimals, err := client.HGet(ctx, k.Name, "decimals").Result()
				if err != nil {
					read = cmp.Or(read, redisdb.WrapError("read a token", err))
				}
				p.tokens[k.Text] = token{decimals}
			case keys.OldAsset:
				game, err := client.HGet(ctx, k.Name, "game").Int64()
				if err != nil {
					read = cmp.Or(read, redisdb.WrapError("read an asset", err))
				}
				p.assetsOf[k.ID] = game
			case keys.OldUnknown:
				p.problem("%s is no key of layout 1", k.Name)
			case keys.OldSweepLock:
				p.problem("a node of the older release sweeps its rooms (%s): stop all nodes, and wait 10 s", k.Name)
			}
		}
		return nil
	})
	p.old, read = p.readOldTotals(ctx, cmp.Or(err, read))
	return read
}

func (p *passState) readOldTotals(ctx context.Context, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	old, err := p.store.db.Client.HGetAll(ctx, keys.OldTotalsKey()).Result()
	return old, redisdb.WrapError("read the old totals", err)
}

// convertPage converts some old keys.
func (p *passState) convertPage(ctx context.Context, page []oldKey) error {
	raw, err := p.read(ctx, page)
	if err != nil {
		return err
	}
	if err := p.loadUsers(ctx, page); err != nil {
		return err
	}
	var records []record
	for i, k := range page {
		if err := p.store.renew(ctx); err != nil {
			return err
		}
		some, err := p.convert(ctx, k, raw[i])
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, apierror.StoreUnavailable) || errors.Is(err, errLeaseLost) {
				return err
			}
			p.problem("%s: %v", k.Name, err)
		}
		records = append(records, some...)
	}
	p.report(p.counts)
	return p.sink.put(ctx, records)
}

// rawKey is the content of a key.
type rawKey struct {
	text        string
	hash        map[string]string
	expiresAtMS int64
	due         string // of a room: its score, "" for none
	exists      bool
}

// The kinds that are read as a hash, and those that are read as a string.
var (
	readAsHash = map[keys.OldKind]bool{
		keys.OldWallet: true, keys.OldToken: true, keys.OldTokens: true, keys.OldAsset: true, keys.OldInventory: true,
		keys.OldRoom: true, keys.OldUser: true, keys.OldPair: true, keys.OldRefresh: true, keys.OldSaves: true,
	}
	readAsText = map[keys.OldKind]bool{
		keys.OldAssetCounter: true, keys.OldReceipt: true, keys.OldRoomCounter: true, keys.OldIdentity: true,
	}
)

// read reads the keys of a page in one round trip.
func (p *passState) read(ctx context.Context, page []oldKey) ([]rawKey, error) {
	hashes := make([]*redis.MapStringStringCmd, len(page))
	texts := make([]*redis.StringCmd, len(page))
	expiries := make([]*redis.Cmd, len(page))
	scores := make([]*redis.Cmd, len(page))
	_, err := p.store.db.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, k := range page {
			switch {
			case readAsHash[k.Kind]:
				hashes[i] = pipe.HGetAll(ctx, k.Name)
			case readAsText[k.Kind]:
				texts[i] = pipe.Get(ctx, k.Name)
			}
			if k.Kind == keys.OldReceipt || k.Kind == keys.OldRefresh {
				expiries[i] = pipe.Do(ctx, "PEXPIRETIME", k.Name)
			}
			if k.Kind == keys.OldRoom {
				scores[i] = pipe.Do(ctx, "ZSCORE", k.DueKey(), k.Text)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.WrapError("read the old keys", err)
	}
	raw := make([]rawKey, len(page))
	for i := range page {
		if hashes[i] != nil {
			raw[i].hash, raw[i].exists = hashes[i].Val(), len(hashes[i].Val()) > 0
		}
		if texts[i] != nil {
			raw[i].text, raw[i].exists = texts[i].Val(), texts[i].Err() == nil
		}
		if expiries[i] != nil {
			raw[i].expiresAtMS, _ = expiries[i].Int64()
		}
		if scores[i] != nil {
			raw[i].due, _ = scores[i].Text()
		}
	}
	return raw, nil
}

// loadUsers reads the games of the players that a page names.
func (p *passState) loadUsers(ctx context.Context, page []oldKey) error {
	var ids []int64
	for _, k := range page {
		switch k.Kind {
		case keys.OldWallet, keys.OldInventory, keys.OldRefresh:
			ids = append(ids, k.ID)
		case keys.OldReceipt:
			if user := receiptUser(k); user > 0 {
				ids = append(ids, user)
			}
		}
	}
	return p.loadUserIDs(ctx, ids)
}

func (p *passState) loadUserIDs(ctx context.Context, ids []int64) error {
	var wanted []int64
	for _, id := range ids {
		if _, known := p.games[id]; !known {
			wanted = append(wanted, id)
			p.games[id] = 0
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	fields := []string{"game", "created"}
	users := make([]*redis.SliceCmd, len(wanted))
	_, err := p.store.db.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range wanted {
			users[i] = pipe.HMGet(ctx, keys.User(id), fields...)
		}
		return nil
	})
	if err != nil {
		return redisdb.WrapError("read players", err)
	}
	for i, id := range wanted {
		values := redisdb.NewFieldsFromHMGet("a player", fields, users[i].Val())
		p.games[id], p.created[id] = values.Int("game"), values.Int("created")
		if err := values.Err(); err != nil {
			return err
		}
	}
	return nil
}

// gameOf returns the game of a player.
func (p *passState) gameOf(userID int64) (int64, error) {
	if game := p.games[userID]; game > 0 && game <= keys.MaxGameID {
		return game, nil
	}
	return 0, fmt.Errorf("player %d belongs to no game", userID)
}

// convert returns the records that one key becomes.
func (p *passState) convert(ctx context.Context, k oldKey, raw rawKey) ([]record, error) {
	if (readAsHash[k.Kind] || readAsText[k.Kind]) && !raw.exists { // it expired meanwhile
		return nil, nil
	}
	switch k.Kind {
	case keys.OldWallet:
		return p.convertWallet(ctx, k, raw.hash)
	case keys.OldToken:
		return p.convertToken(k, raw.hash), nil
	case keys.OldTokens:
		return []record{hashRecord(keys.Tokens(), raw.hash)}, nil
	case keys.OldAsset:
		return p.convertAsset(k, raw.hash)
	case keys.OldAssetCounter:
		return []record{{key: keys.AssetIDCounter(), kind: kindString, values: []string{raw.text}}}, nil
	case keys.OldInventory:
		return p.convertInventory(k, raw.hash)
	case keys.OldReceipt:
		return p.convertReceipt(k, raw), nil
	case keys.OldRoom:
		return p.convertRoom(k, raw)
	case keys.OldRoomCounter:
		return p.convertRoomCounter(k, raw.text), nil
	case keys.OldUser:
		p.isFirst(k, countUsers)
		return nil, nil
	case keys.OldIdentity:
		return p.convertIdentity(k, raw.text)
	case keys.OldPair:
		return p.convertPair(k, raw.hash), nil
	case keys.OldRefresh:
		return p.convertRefresh(k, raw), nil
	case keys.OldSaves:
		return p.convertSaves(ctx, k, raw.hash)
	}
	return nil, nil
}

// finish writes the totals of every game.
func (p *passState) finish(ctx context.Context) error {
	var records []record
	for _, game := range slices.Sorted(maps.Keys(p.ledgers)) {
		of := p.ledgers[game]
		fields := map[string]string{keys.TotalsFoldedField: strconv.Itoa(of.count)}
		for code, totals := range of.totals {
			for total, units := range totals {
				fields[keys.TotalField(total, code)] = strconv.FormatInt(units, 10)
			}
		}
		records = append(records, hashRecord(keys.Totals(game), fields),
			record{key: keys.Ledger(game), kind: kindList, before: of.count, isWhole: true})
	}
	return p.sink.put(ctx, records)
}
