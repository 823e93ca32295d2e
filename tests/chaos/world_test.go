package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

var operator = principal.Caller{Role: principal.Operator}

// node is what one node has of the domains of money: its own connection, caches and services.
type node struct {
	db       *redisdb.DB
	rooms    *rooms.Service
	ledgers  *ledgerstore.Store
	wallets  *wallet.Service
	audit    *audit.Service
	assets   *assets.Service
	gate     *gate             // nil when nobody schedules the node
	archive  *archive.Archive  // nil when nothing leaves the store
	archiver *archiver.Service // as archive
}

// openNode opens a node on a store. It has the code of a real node without HTTP.
func openNode(t testing.TB, url string, g *gate) *node {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	if g != nil {
		db.Client.AddHook(g)
	}
	n := &node{db: db, gate: g}
	n.forgetCaches()
	return n
}

// forgetCaches gives the node new services, as after a restart.
func (n *node) forgetCaches() {
	n.ledgers = ledgerstore.New(n.db, n.archive)
	n.wallets = wallet.New(n.db, others{}, wallet.Options{Ledgers: n.ledgers})
	n.audit = audit.New(n.db, n.ledgers, n.wallets)
	if n.archive != nil {
		n.archiver = archiver.New(n.db, n.ledgers, archiver.Options{Keep: smallKeep})
	}
	n.assets = assets.New(n.db, n.wallets, assets.Options{})
	n.rooms = rooms.New(n.db, n.wallets, others{}, others{}, rooms.Options{Shards: 1})
}

// others stands for the domains that know no money.
type others struct{}

// gameID is the first game of every world; a world has a database of its own, or comes after
// another.
const gameID = 1

// usersPerGame is how far the ids of the players of two games are apart.
const usersPerGame = 1_000_000

// gameOf returns the game of a player.
func gameOf(user int64) int64 { return gameID + user/usersPerGame }

// userOf returns the n-th player of a game, from 1.
func userOf(game, n int64) int64 { return (game-gameID)*usersPerGame + n }

// Small objects, so that a short history fills some.
var (
	smallSizes = archive.Sizes{Entries: 4, Lines: 2, Checkpoint: 8}
	smallKeep  = archiver.Retention{Entries: 2, Lines: 2}
)

// shortTimes makes the rooms that are made from now on overdue at once, so that the sweep may
// cancel them at any moment.
var shortTimes atomic.Bool

func (others) Find(_ context.Context, id int64) (games.Game, error) {
	s := games.DefaultSettings()
	s.MaxRakeBps, s.ReportWindow = 10_000, 3*time.Second
	s.Settlements = []games.Settlement{"server", "consensus"}
	if shortTimes.Load() {
		s.IdleTimeout, s.MatchTimeout = time.Millisecond, time.Millisecond
	}
	return games.Game{ID: id, Settings: s}, nil
}

func (others) Game(_ context.Context, user int64) (int64, error) { return gameOf(user), nil }

func (others) CreatedAt(context.Context, int64) (time.Time, error) { return time.Now(), nil }

func (others) RecentProfile(_ context.Context, id int64) (users.Profile, error) {
	return users.Profile{ID: id, Username: fmt.Sprintf(`Q"|ü%d`, id)}, nil
}

func (others) AreFriends(context.Context, int64, ...int64) (map[int64]bool, error) { return nil, nil }

// player returns a player as a caller.
func player(id int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: id, GameID: gameOf(id)}
}

// backendOf returns the backend of a game as a caller.
func backendOf(game int64) principal.Caller {
	return principal.Caller{Role: principal.Server, GameID: game}
}

var server = backendOf(gameID)

// receiptOf returns the receipt of a request with a key, "" for none.
func receiptOf(key string) idempotency.Receipt {
	if key == "" {
		return idempotency.Receipt{}
	}
	return idempotency.Receipt{KeyDigest: key, Fingerprint: "f" + key}
}

const (
	tokenCode    = "GOLD"
	startBalance = 100 // in the token; it has two decimals
)

// economy is what a game has: a token, assets and players with money.
type economy struct {
	game    int64
	tokenID int64
	assets  []int64
}

// makeEconomy empties a database and makes a game with some players, an asset without limits, and
// one of which there are a few.
func makeEconomy(t testing.TB, n *node, players int) economy {
	t.Helper()
	ctx := t.Context()
	testkit.Check(t, n.db.Client.FlushDB(ctx).Err())
	n.forgetCaches()
	return addEconomy(t, n, players)
}

// addEconomy is makeEconomy on a store that is empty.
func addEconomy(t testing.TB, n *node, players int) economy {
	t.Helper()
	ctx := t.Context()
	token := testkit.Must(n.wallets.CreateToken(ctx, operator, wallet.TokenDefinition{
		Code: tokenCode, Name: "Gold", Metadata: wallet.Metadata{Decimals: "2"},
	}))(t)
	return addGame(t, n, gameID, token.ID, players)
}

// addGame makes a game with players who have money of a token.
func addGame(t testing.TB, n *node, game, tokenID int64, players int) economy {
	t.Helper()
	ctx := t.Context()
	testkit.Check(t, n.db.Client.Set(ctx, keys.GameIDCounter(), game, 0).Err())
	e := economy{game: game, tokenID: tokenID}
	for _, in := range []assets.CreateInput{
		{Name: "Coin", TokenCode: tokenCode, Price: "0.07"},
		{Name: "Crown", TokenCode: tokenCode, Price: "3", Stock: new(int64(5)), PerUserLimit: new(int64(2))},
	} {
		a := testkit.Must(n.assets.Create(ctx, backendOf(game), game, in))(t)
		e.assets = append(e.assets, a.ID)
	}
	for id := range int64(players) {
		in := wallet.CreditInput{
			UserID: userOf(game, id+1), TokenCode: tokenCode, Amount: amount(startBalance * 100), Reason: "start",
		}
		testkit.Must(n.wallets.Credit(ctx, operator, in, receiptOf("")))(t)
	}
	return e
}

// amount returns units of the token as a client writes them.
func amount(units int64) wallet.AmountInput {
	return wallet.AmountInput(wallet.Units(units).Decimal(2))
}

// overdue makes every room of a game that has not ended overdue, by setting its clock back.
func overdue(t testing.TB, db *redisdb.DB, b books.Books) {
	t.Helper()
	ctx, shard := t.Context(), keys.EconomyShard(b.Game)
	const back = 48 * time.Hour
	for _, id := range b.LiveRooms() {
		room := keys.Room(shard, id)
		for _, field := range []string{"created", "started"} {
			if db.Client.HExists(ctx, room, field).Val() {
				db.Client.HIncrBy(ctx, room, field, -back.Milliseconds())
			}
		}
		testkit.Check(t, db.Client.ZAdd(ctx, keys.RoomsDue(shard), redis.Z{Score: 0, Member: id}).Err())
	}
}

// wantEnded is wantEndedIn for the first game.
func wantEnded(t testing.TB, n *node) books.Books {
	t.Helper()
	return wantEndedIn(t, n, gameID)
}

// wantEndedIn lets the time of every room of a game pass, sweeps, and requires that all rooms have
// ended, that nobody holds anything, and that the deep audit agrees with the books.
func wantEndedIn(t testing.TB, n *node, game int64) books.Books {
	t.Helper()
	read := func() books.Books {
		b, err := books.ReadLarge(t.Context(), n.db, game)
		if err == nil && n.archive != nil {
			err = b.AddArchived(t.Context(), n.archive)
		}
		return wantSound(t, b, err)
	}
	b := read()
	overdue(t, n.db, b)
	redistest.Eventually(t, "the sweep has ended every room", func() bool {
		if _, err := n.rooms.Sweep(t.Context()); err != nil {
			return false
		}
		b = read()
		return len(b.LiveRooms()) == 0
	})
	// A failover may have lost calls, and then the report is not balanced: the tests count them.
	report, err := n.audit.AuditDeep(t.Context(), game)
	if err != nil || !report.SumsAgree || !report.HeldCounted || len(report.Differences) > 0 {
		t.Fatalf("the deep audit returns %+v, %v", report, err)
	}
	return b
}

// wantBooks returns the books of the game of the tests, which must balance.
func wantBooks(t testing.TB, db *redisdb.DB) books.Books {
	t.Helper()
	b, err := books.Read(t, db, gameID)
	return wantSound(t, b, err)
}

// wantLargeBooks is wantBooks for a store on which nobody works.
func wantLargeBooks(t testing.TB, db *redisdb.DB) books.Books {
	t.Helper()
	b, err := books.ReadLarge(t.Context(), db, gameID)
	return wantSound(t, b, err)
}

func wantSound(t testing.TB, b books.Books, err error) books.Books {
	t.Helper()
	if err == nil {
		err = b.Check()
	}
	testkit.Check(t, err, "the books:\n")
	return b
}
