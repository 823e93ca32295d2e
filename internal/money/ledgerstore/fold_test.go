package ledgerstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	game      = moneytest.Game
	otherGame = moneytest.OtherGame

	userID, strangerID = 7, 8 // players of game and of otherGame
)

type auditor = audit.Service

// node is a node that folds.
type node struct {
	*wallet.Service
	*auditor
	ledgers *ledgerstore.Store
}

func newNode(db *redisdb.DB) node {
	moneytest.MakeGames(db)
	return newNodeOf(db, moneytest.Players{strangerID: otherGame})
}

func newNodeOf(db *redisdb.DB, players moneytest.Players) node {
	ledgers := ledgerstore.New(db, nil)
	s := wallet.New(db, players, wallet.Options{Ledgers: ledgers})
	return node{s, audit.New(db, ledgers, s), ledgers}
}

// wantBalanced fails the test unless both reports are balanced.
func wantBalanced(t *testing.T, s node) {
	t.Helper()
	if r, err := s.Audit(t.Context(), game); err != nil || !r.Balanced {
		t.Fatalf("the quick report: %+v, %v", r, err)
	}
	if d, err := s.AuditDeep(t.Context(), game); err != nil || !d.Balanced {
		t.Fatalf("the deep report: %+v, %v", d, err)
	}
}

// The entries are added in Lua, page by page, and by Redis.
func TestFoldedTotalsAreTheSumsOfTheLedger(t *testing.T) {
	embedded := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	defer func() { _ = embedded.Close() }()
	for store, db := range map[string]*redisdb.DB{"real": redistest.Single(t), "embedded": embedded} {
		t.Run(store, func(t *testing.T) {
			s := newNode(db)
			rapid.Check(t, func(t *rapid.T) { checkFold(t, db, s) })
		})
	}
}

func checkFold(t *rapid.T, db *redisdb.DB, s node) {
	ctx := t.Context()
	db.Client.Del(ctx, keys.Ledger(game), keys.LedgerBase(game), keys.Totals(game))
	base := rapid.Int64Range(0, 5).Draw(t, "removed entries")
	db.Client.Set(ctx, keys.LedgerBase(game), base, 0)
	db.Client.HSet(ctx, keys.Totals(game), keys.TotalsFoldedField, base)
	kinds := map[string]string{
		"w7": "wallets", "w12": "wallets", "e": "escrow", "h": "house", "p": "prizes", "m": "minted",
	}
	units := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-int64(wallet.MaxUnits), int64(wallet.MaxUnits)),
		rapid.Int64Range(999_999_999_999_990, 1_000_000_000_000_010), rapid.Just(int64(999_999_999_999_999)),
		rapid.Just(int64(-99_999_999_999_999)), rapid.Just(int64(wallet.MaxUnits)))
	want := map[string]*big.Int{}
	var entries []any
	for range rapid.IntRange(0, 30).Draw(t, "entries") {
		code := rapid.SampledFrom([]string{"GOLD", "a.b-c_D9"}).Draw(t, "token")
		var postings []string
		for range rapid.IntRange(0, 4).Draw(t, "postings") {
			account := rapid.SampledFrom([]string{"w7", "w12", "e", "h", "p", "m"}).Draw(t, "account")
			n := units.Draw(t, "units")
			postings = append(postings, fmt.Sprintf("%s:%d", account, n))
			field := kinds[account] + ":" + code
			if want[field] == nil {
				want[field] = new(big.Int)
			}
			want[field].Add(want[field], big.NewInt(n))
		}
		entries = append(entries, "1|nonce|"+code+"|reason %7C w7:1|ref|"+strings.Join(postings, ";"))
	}
	split := rapid.IntRange(0, len(entries)).Draw(t, "folded first")
	for _, some := range [][]any{entries[:split], entries[split:]} {
		if len(some) > 0 {
			db.Client.RPush(ctx, keys.Ledger(game), some...)
		}
		testkit.Check(t, s.Fold(ctx, game))
	}
	stored, err := db.Client.HGetAll(ctx, keys.Totals(game)).Result()
	if err != nil || stored[keys.TotalsFoldedField] != fmt.Sprint(base+int64(len(entries))) {
		t.Fatalf("the totals are %v, %v", stored, err)
	}
	for field, sum := range want {
		if strings.HasPrefix(field, "minted") { // kept by the scripts that mint
			if stored[field] != "" {
				t.Fatalf("%s was folded", field)
			}
		} else if got := cmp.Or(stored[field], "0"); got != sum.String() {
			t.Fatalf("%s is %s; want %s", field, got, sum)
		}
	}
}

func TestALongLedgerIsFoldedInPages(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newNode(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		const entries = 2500 // more than the quick report reads without folding
		moneytest.Credit(t, s.Service, 1, "GOLD", "1")
		for range entries - 1 {
			moneytest.AddEntry(t, db, "GOLD", "m:-1;w1:1")
		}
		moneytest.AddUnits(t, db, keys.Totals(game), "minted:GOLD", entries-1)
		if r, err := s.Audit(t.Context(), game); err != nil || !r.Balanced || r.Tokens[0].WalletsUnits != entries {
			t.Fatalf("%+v, %v", r, err)
		}
		wantFolded(t, db, game, entries)
	})
}

func wantFolded(t *testing.T, db *redisdb.DB, gameID, want int64) {
	t.Helper()
	folded, err := db.Client.HGet(t.Context(), keys.Totals(gameID), keys.TotalsFoldedField).Int64()
	if err != nil || folded != want {
		t.Fatalf("game %d: %d entries are folded, %v; want %d", gameID, folded, err, want)
	}
}

// Every node runs the folding, and any one of them does it.
func TestTheTotalsFollowTheLedger(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		nodes := []node{newNode(db), newNode(db)}
		moneytest.CreateToken(t, nodes[0].Service, "GOLD", 0)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, len(nodes))
		for _, node := range nodes {
			go func() { ended <- node.Run(ctx) }()
		}
		moneytest.Credit(t, nodes[0].Service, userID, "GOLD", "10")
		moneytest.Credit(t, nodes[1].Service, strangerID, "GOLD", "20")
		moneytest.Debit(t, nodes[1].Service, strangerID, "GOLD", "5")
		for gameID, want := range map[int64]string{game: "10", otherGame: "15"} {
			redistest.Eventually(t, "the totals have what was minted", func() bool {
				return db.Client.HGet(t.Context(), keys.Totals(gameID), "wallets:GOLD").Val() == want
			})
		}
		stop()
		for range nodes {
			testkit.Report(t, <-ended)
		}
	})
}

// foldAs folds one credit of 1 GOLD as the leader with a fence.
func foldAs(t *testing.T, db *redisdb.DB, fence string, before, base int64) scripts.Status {
	t.Helper()
	return testkit.Must(db.RunScript(t.Context(), scripts.LedgerFold,
		[]string{keys.Totals(game), keys.LedgerBase(game), keys.TotalsFence(game), keys.Ledger(game)},
		fence, before, base, before+1, db.Client.LIndex(t.Context(), keys.Ledger(game), before-base).Val(),
		"wallets:GOLD", 1))(t).Status
}

func TestALeaderThatWasFollowedFoldsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newNode(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		for range 5 {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
		}
		folded := int64(0)
		for i, c := range []struct {
			fence        string
			before, base int64
			want         scripts.Status
		}{
			{"9", 0, 0, scripts.OK},
			{"9", 0, 0, scripts.Stale}, // the same call again
			{"10", 1, 0, scripts.OK},
			{"9", 2, 0, scripts.Stale},  // it was followed
			{"10", 3, 0, scripts.Stale}, // it skips an entry
			{"10", 2, 1, scripts.Stale}, // it has read a ledger of which entries were removed
			{"10", 2, 0, scripts.OK},
			{"", 3, 0, scripts.OK}, // no leader
			{"9", 4, 0, scripts.Stale},
		} {
			if got := foldAs(t, db, c.fence, c.before, c.base); got != c.want {
				t.Fatalf("call %d, %+v: %s", i, c, got)
			}
			if c.want == scripts.OK {
				folded++
			}
			wantFolded(t, db, game, folded)
		}
		wantBalanced(t, s)
		db.Client.RPop(t.Context(), keys.Ledger(game)) // it is in the totals
		db.Client.RPop(t.Context(), keys.Ledger(game))
		if r, err := s.Audit(t.Context(), game); err != nil || r.Balanced {
			t.Errorf("without an entry that was folded: %+v, %v", r, err)
		}
	})
}

func TestAGameAtRestIsNotWritten(t *testing.T) {
	db := redistest.Single(t)
	s := newNode(db)
	testkit.Check(t, s.Fold(t.Context(), otherGame))
	if n, err := db.Client.Exists(t.Context(), keys.Totals(otherGame)).Result(); err != nil || n != 0 {
		t.Errorf("%d keys were written, %v", n, err)
	}
}

// Two games may be on different masters.
func TestEveryGameIsAnEconomyOfItsOwn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const games = 5
		playersOf := moneytest.Players{}
		for id := range int64(games) {
			playersOf[id+1] = id + 1 // player 3 is of game 3
		}
		testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), games, 0).Err())
		s := newNodeOf(db, playersOf)
		moneytest.CreateToken(t, s.Service, "GOLD", 1)
		for id := range int64(games) {
			moneytest.Credit(t, s.Service, id+1, "GOLD", wallet.AmountInput(fmt.Sprint(id+1)))
			b, err := s.ReadBalance(t.Context(), id+1, id+1, "GOLD")
			if err != nil || b.SpendableUnits != wallet.Units(10*(id+1)) {
				t.Errorf("player %d: %+v, %v", id+1, b, err)
			}
			token, err := s.FindToken(t.Context(), id+1, "GOLD")
			if err != nil || token.Supply.Units != wallet.Units(10*(id+1)) {
				t.Errorf("in game %d there is %v, %v", id+1, token.Supply, err)
			}
			if b, err = s.ReadBalance(t.Context(), 1+(id+1)%games, id+1, "GOLD"); err != nil || b.SpendableUnits != 0 {
				t.Errorf("player %d has a balance in another game: %+v, %v", id+1, b, err)
			}
			page, err := s.Ledger(t.Context(), id+1, id+1, wallet.LedgerQuery{Limit: 10})
			if err != nil || len(page.Lines) != 1 || page.Lines[0].ID != 1 {
				t.Errorf("player %d: %+v, %v", id+1, page, err)
			}
		}
		const sum = 10 * (1 + 2 + 3 + 4 + 5)
		if token, err := s.FindToken(t.Context(), 0, "GOLD"); err != nil || token.Supply.Units != sum {
			t.Errorf("in all games there is %v, %v", token.Supply, err)
		}
		testkit.Check(t, s.Fold(t.Context(), 2))
		r, err := s.Audit(t.Context(), 0)
		if err != nil || !r.Balanced || len(r.Tokens) != 1 || r.Tokens[0].WalletsUnits != sum {
			t.Fatalf("%+v, %v", r, err)
		}
		d, err := s.AuditDeep(t.Context(), 0)
		if err != nil || !d.Balanced || !d.HeldCounted || d.Entries != games || d.Wallets != games {
			t.Fatalf("%+v, %v", d, err)
		}
		// What one game has too much does not make up for what another one lacks.
		moneytest.AddUnits(t, db, keys.Totals(2), "house:GOLD", 1)
		moneytest.AddUnits(t, db, keys.Totals(3), "house:GOLD", -1)
		if r, err = s.Audit(t.Context(), 0); err != nil || r.Balanced || r.Tokens[0].DeltaUnits != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if d, err = s.AuditDeep(t.Context(), 0); err != nil || d.Balanced || len(d.Differences) != 2 {
			t.Errorf("%+v, %v", d, err)
		}
		if r, err = s.Audit(t.Context(), 4); err != nil || !r.Balanced || r.Tokens[0].WalletsUnits != 40 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestEntriesThatLeftTheLedgerBeforeTheyWereFoldedAreAnError(t *testing.T) {
	db := redistest.Single(t)
	s := newNode(db)
	moneytest.CreateToken(t, s.Service, "GOLD", 0)
	moneytest.Credit(t, s.Service, 1, "GOLD", "1")
	db.Client.Set(t.Context(), keys.LedgerBase(game), 1, 0)
	if _, err := s.Audit(t.Context(), game); err == nil {
		t.Error("the audit returned no error")
	}
	if err := s.Fold(t.Context(), game); err == nil || errors.Is(err, apierror.StoreUnavailable) {
		t.Errorf("the fold returned %v", err)
	}
}

func TestAGameOfAWrongTypeLeavesTheOtherGames(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		ctx, s := t.Context(), newNode(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 2)
		for _, g := range []int64{game, otherGame} {
			entry := "1|nonce|GOLD|test|test|m:-5;h:5"
			testkit.Check(t, db.Client.RPush(ctx, keys.Ledger(g), entry).Err())
			moneytest.AddUnits(t, db, keys.Totals(g), "minted:GOLD", 5)
		}
		testkit.Check(t, db.Client.Set(ctx, keys.Ledger(game), "?", 0).Err())
		r, err := s.Audit(ctx, 0)
		if err != nil || r.Balanced || len(r.Tokens) != 1 || r.Tokens[0].HouseUnits != 5 {
			t.Errorf("the report is %+v, %v", r, err)
		}
		if r, err := s.Audit(ctx, otherGame); err != nil || !r.Balanced {
			t.Errorf("the report of the other game is %+v, %v", r, err)
		}
		runCtx, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- s.Run(runCtx) }()
		redistest.Eventually(t, "the other game is folded", func() bool {
			return db.Client.HGet(ctx, keys.Totals(otherGame), keys.TotalsFoldedField).Val() == "1"
		})
		stop()
		testkit.Report(t, <-ended)
	})
}

// Whichever node folds an entry counts it, once.
func TestWhatMovedIsCountedByOneNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		one, other := newNode(db), newNode(db)
		moneytest.CreateToken(t, one.Service, "GOLD", 2)
		moneytest.Credit(t, one.Service, 7, "GOLD", "2.5")
		moneytest.Credit(t, other.Service, 7, "GOLD", wallet.AmountInput("1"))
		testkit.Check(t, one.Fold(t.Context(), game))
		moneytest.Debit(t, one.Service, 7, "GOLD", "0.5")
		for _, s := range []node{other, one} {
			testkit.Check(t, s.Fold(t.Context(), game))
		}
		a, b := one.ledgers.Moved(), other.ledgers.Moved()
		if a.Entries != 2 || a.Units["GOLD"] != 350 || b.Entries != 1 || b.Units["GOLD"] != 50 {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}
