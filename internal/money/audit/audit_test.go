package audit_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	game      = moneytest.Game
	otherGame = moneytest.OtherGame

	userID, strangerID = 1, 2 // players of game and of otherGame
)

type auditor = audit.Service

// auditedWallet is a wallet with its audit.
type auditedWallet struct {
	*wallet.Service
	*auditor
}

func newService(db *redisdb.DB) auditedWallet {
	moneytest.MakeGames(db)
	ledgers := ledgerstore.New(db, nil)
	s := wallet.New(db, moneytest.Players{}, wallet.Options{Ledgers: ledgers})
	return auditedWallet{s, audit.New(db, ledgers, s)}
}

// wantJSON compares the wire form of a value.
func wantJSON(t *testing.T, value any, want string) {
	t.Helper()
	got := testkit.Must(wire.Marshal(value))(t)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// wantDifference fails the test unless a recount finds a difference of the account.
func wantDifference(t *testing.T, s auditedWallet, account string) {
	t.Helper()
	d, err := s.AuditDeep(t.Context(), game)
	found := slices.ContainsFunc(d.Differences, func(d audit.Difference) bool { return d.Account == account })
	if err != nil || d.Balanced || !found {
		t.Errorf("the recount does not see the difference of %s: %+v, %v", account, d, err)
	}
}

// wantBalanced fails the test unless both reports are balanced.
func wantBalanced(t *testing.T, s auditedWallet) {
	t.Helper()
	if r, err := s.Audit(t.Context(), game); err != nil || !r.Balanced {
		t.Fatalf("the quick report: %+v, %v", r, err)
	}
	if d, err := s.AuditDeep(t.Context(), game); err != nil || !d.Balanced {
		t.Fatalf("the deep report: %+v, %v", d, err)
	}
}

// setBalance writes a balance of GOLD with its line, past all scripts.
func setBalance(t *testing.T, db *redisdb.DB, userID, free, held int64) {
	t.Helper()
	seq := testkit.Must(db.Client.HIncrBy(t.Context(), keys.Wallet(game, userID), keys.WalletSeqField, 1).Result())(t)
	line := fmt.Sprintf("%d-nonce|user.balance|1|GOLD|0|0|%d|%d|test|test", seq, free, held)
	testkit.Check(t, db.Client.RPush(t.Context(), keys.WalletLines(game, userID), line).Err())
	balance := fmt.Sprintf("%d|%d", free, held)
	testkit.Check(t, db.Client.HSet(t.Context(), keys.Wallet(game, userID), "GOLD", balance).Err())
}

func TestTheAuditFindsEveryUnitThatIsNotWhereTheLedgerHasIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		wantBalanced(t, s) // an empty store
		moneytest.CreateToken(t, s.Service, "GOLD", 2)
		for userID := range int64(5) {
			moneytest.Credit(t, s.Service, userID+1, "GOLD", "10")
		}
		d, err := s.AuditDeep(t.Context(), game)
		if err != nil || !d.Balanced || !d.HeldCounted || d.Entries != 5 || d.Wallets != 5 {
			t.Fatalf("%+v, %v", d, err)
		}
		wantJSON(t, d.Tokens, `[{"tokenId":"GOLD","minted":50,"mintedAmount":"5000","wallets":50,"walletsAmount":"5000",`+
			`"escrow":0,"escrowAmount":"0","prizes":0,"prizesAmount":"0","house":0,"houseAmount":"0",`+
			`"delta":0,"deltaAmount":"0"}]`)

		for range 2 { // with all entries in the tail of the ledger, and with all of them folded
			for _, total := range []string{"minted", "wallets", "escrow", "prizes", "house", "unknown"} {
				moneytest.AddUnits(t, db, keys.Totals(game), total+":GOLD", 1)
				wantDifference(t, s, total)
				moneytest.AddUnits(t, db, keys.Totals(game), total+":GOLD", -1)
				wantBalanced(t, s)
			}
			for _, c := range []struct {
				account            string
				userID, free, held int64
			}{
				{"w3", 3, 1001, 0},
				{"held", 3, 1000, 1},
				{"w99", 99, 1, 0},
			} {
				setBalance(t, db, c.userID, c.free, c.held)
				wantDifference(t, s, c.account)
				setBalance(t, db, c.userID, 1000, 0)
			}
			db.Client.Del(t.Context(), keys.Wallet(game, 99), keys.WalletLines(game, 99))
			wantBalanced(t, s)
			moneytest.AddUnits(t, db, keys.Totals(game), "house:GOLD", 1)
			if r, err := s.Audit(t.Context(), game); err != nil || r.Balanced || r.Tokens[0].Delta.Units != -1 {
				t.Fatalf("a unit that was never minted: %+v, %v", r, err)
			}
			moneytest.AddUnits(t, db, keys.Totals(game), "house:GOLD", -1)

			lost := testkit.Must(db.Client.HGetAll(t.Context(), keys.Wallet(game, 2)).Result())(t)
			db.Client.Del(t.Context(), keys.Wallet(game, 2))
			wantDifference(t, s, "w2")
			db.Client.HSet(t.Context(), keys.Wallet(game, 2), lost)
			wantBalanced(t, s)
			testkit.Check(t, s.Fold(t.Context(), game))
		}
	})
}

func TestTheRecountFindsDefectsOfTheLedger(t *testing.T) {
	type damage func(*testing.T, *redisdb.DB)
	removeEntry := func(t *testing.T, db *redisdb.DB) {
		db.Client.LSet(t.Context(), keys.Ledger(game), 1, "removed")
		db.Client.LRem(t.Context(), keys.Ledger(game), 1, "removed")
	}
	add := func(postings string) damage {
		return func(t *testing.T, db *redisdb.DB) { moneytest.AddEntry(t, db, "GOLD", postings) }
	}
	overwrite := func(key string) damage { // as a careless SET does
		return func(t *testing.T, db *redisdb.DB) { db.Client.Set(t.Context(), key, "?", 0) }
	}
	for name, c := range map[string]struct {
		account string
		damage  damage
	}{
		"a lost entry":      {"w1", removeEntry},
		"a lost last entry": {"w1", func(t *testing.T, db *redisdb.DB) { db.Client.RPop(t.Context(), keys.Ledger(game)) }},
		"a lost entry that was folded": {"ledger", func(t *testing.T, db *redisdb.DB) {
			testkit.Check(t, newService(db).Fold(t.Context(), game))
			removeEntry(t, db)
		}},
		"entries that were removed": {"ledger", func(t *testing.T, db *redisdb.DB) {
			testkit.Check(t, newService(db).Fold(t.Context(), game))
			db.Client.LPop(t.Context(), keys.Ledger(game))
			db.Client.Set(t.Context(), keys.LedgerBase(game), 1, 0)
		}},
		"postings that add up":    {"ledger", add("m:-1;w1:2")},
		"a posting of no units":   {"ledger", add("w1:x")},
		"a posting of no account": {"ledger", add(":1")},
		"a wallet of no player":   {"ledger", add("w:0")},
		"an account nobody knows": {"x", add("x:1;h:-1")},
		"a text that is no entry": {"ledger", func(t *testing.T, db *redisdb.DB) {
			db.Client.RPush(t.Context(), keys.Ledger(game), "x")
		}},
		"a ledger of a wrong type": {"ledger", overwrite(keys.Ledger(game))},
		"a wallet of a wrong type": {"w1", overwrite(keys.Wallet(game, 1))},
		"lines of a wrong type":    {"w1", overwrite(keys.WalletLines(game, 1))},
		"a number of folded entries that is too low": {"wallets", func(t *testing.T, db *redisdb.DB) {
			testkit.Check(t, newService(db).Fold(t.Context(), game))
			moneytest.AddUnits(t, db, keys.Totals(game), keys.TotalsFoldedField, -1)
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			db := redistest.Single(t)
			s := newService(db)
			moneytest.CreateToken(t, s.Service, "GOLD", 2)
			for range 3 {
				moneytest.Credit(t, s.Service, 1, "GOLD", "10")
			}
			c.damage(t, db)
			wantDifference(t, s, c.account)
		})
	}
}

func TestTheRecountComparesWalletsWithTheirLastLines(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, db *redisdb.DB){
		"another balance": func(t *testing.T, db *redisdb.DB) {
			moneytest.AddEntry(t, db, "GOLD", "h:-1;w1:1")
			db.Client.HSet(t.Context(), keys.Wallet(game, 1), "GOLD", "31|0")
			moneytest.AddEntry(t, db, "GOLD", "h:2;m:-2")
			moneytest.AddUnits(t, db, keys.Totals(game), "minted:GOLD", 2)
		},
		"another stake": func(t *testing.T, db *redisdb.DB) {
			moneytest.AddEntry(t, db, "GOLD", "m:-1;e:1")
			moneytest.AddUnits(t, db, keys.Totals(game), "minted:GOLD", 1)
			db.Client.HSet(t.Context(), keys.Wallet(game, 1), "GOLD", "30|1")
		},
		"another number": func(t *testing.T, db *redisdb.DB) {
			moneytest.AddUnits(t, db, keys.Wallet(game, 1), keys.WalletSeqField, 1)
		},
		"a lost line": func(t *testing.T, db *redisdb.DB) { db.Client.RPop(t.Context(), keys.WalletLines(game, 1)) },
		"lost lines":  func(t *testing.T, db *redisdb.DB) { db.Client.Del(t.Context(), keys.WalletLines(game, 1)) },
		"no lines": func(t *testing.T, db *redisdb.DB) {
			db.Client.HSet(t.Context(), keys.Wallet(game, 1), "LEAD", "0|0")
		},
		"a text that is no line": func(t *testing.T, db *redisdb.DB) {
			db.Client.RPush(t.Context(), keys.WalletLines(game, 1), "x")
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			db := redistest.Single(t)
			s := newService(db)
			moneytest.CreateToken(t, s.Service, "GOLD", 0)
			for range 3 {
				moneytest.Credit(t, s.Service, 1, "GOLD", "10")
			}
			wantBalanced(t, s)
			damage(t, db)
			d, err := s.AuditDeep(t.Context(), game)
			if err != nil || d.Balanced {
				t.Fatalf("%+v, %v", d, err)
			}
			for _, difference := range d.Differences {
				if difference.Account != "lines of w1" || difference.GameID != game {
					t.Errorf("%+v", difference)
				}
			}
		})
	}
}

// The last line of a token may be far back, or be removed.
func TestTheRecountSearchesForTheLastLineOfEachToken(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		moneytest.CreateToken(t, s.Service, "LEAD", 0)
		moneytest.Credit(t, s.Service, 1, "LEAD", "1")
		for range 1100 {
			moneytest.Credit(t, s.Service, 1, "GOLD", "1")
		}
		wantBalanced(t, s)
		lines := keys.WalletLines(game, 1)
		first := testkit.Must(db.Client.LIndex(t.Context(), lines, 0).Result())(t)
		db.Client.LSet(t.Context(), lines, 0, strings.Replace(first, "LEAD|0|1|1|0", "LEAD|0|1|2|0", 1))
		wantDifference(t, s, "lines of w1")
		db.Client.LTrim(t.Context(), lines, 500, -1)
		wantDifference(t, s, "lines of w1")
		db.Client.HSet(t.Context(), keys.Wallet(game, 1), keys.WalletBaseField, 500)
		wantBalanced(t, s)
	})
}

// Money that is less than nothing is a defect even where all sums are right.
func TestTheAuditReportsNegativeTotals(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		moneytest.Credit(t, s.Service, 1, "GOLD", "10")
		move := func(from, to string, units int64) {
			t.Helper()
			moneytest.AddUnits(t, db, keys.Totals(game), keys.TotalField(from, "GOLD"), -units)
			moneytest.AddUnits(t, db, keys.Totals(game), keys.TotalField(to, "GOLD"), units)
		}
		for _, c := range []struct {
			negative, positive string
			units              int64
		}{
			{keys.TotalWallets, keys.TotalHouse, 11},
			{keys.TotalEscrow, keys.TotalHouse, 1},
			{keys.TotalPrizes, keys.TotalHouse, 1},
			{keys.TotalHouse, keys.TotalEscrow, 1},
		} {
			move(c.negative, c.positive, c.units)
			for _, gameID := range []int64{game, 0} {
				r, err := s.Audit(t.Context(), gameID)
				if err != nil || r.Balanced || r.Tokens[0].Delta.Units != 0 {
					t.Errorf("negative %s: the quick report of game %d is %+v, %v", c.negative, gameID, r, err)
				}
			}
			wantDifference(t, s, c.negative)
			move(c.positive, c.negative, c.units)
			wantBalanced(t, s)
		}

		// The ledger agrees that the operator paid out what it never had.
		moneytest.AddEntry(t, db, "GOLD", "h:-1;e:1")
		setBalance(t, db, 1, 10, 1)
		for range 2 {
			if d, err := s.AuditDeep(t.Context(), game); err != nil || d.Balanced || len(d.Differences) != 0 {
				t.Errorf("a negative total that the ledger has too: the deep report is %+v, %v", d, err)
			}
			testkit.Check(t, s.Fold(t.Context(), game))
		}
	})
}

func TestTheAuditReportsNegativeWallets(t *testing.T) {
	for name, overdraw := range map[string]func(*testing.T, *redisdb.DB){
		"free": func(t *testing.T, db *redisdb.DB) {
			moneytest.AddEntry(t, db, "GOLD", "w1:-11;w2:11")
			setBalance(t, db, 1, -1, 0)
			setBalance(t, db, 2, 21, 0)
		},
		"held": func(t *testing.T, db *redisdb.DB) {
			setBalance(t, db, 1, 10, -1)
			setBalance(t, db, 2, 10, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := redistest.Single(t)
			s := newService(db)
			moneytest.CreateToken(t, s.Service, "GOLD", 0)
			moneytest.Credit(t, s.Service, 1, "GOLD", "10")
			moneytest.Credit(t, s.Service, 2, "GOLD", "10")
			overdraw(t, db)
			d, err := s.AuditDeep(t.Context(), game)
			if err != nil || d.Balanced || len(d.Differences) != 1 || d.Differences[0].Account != "w1" {
				t.Errorf("the deep report is %+v, %v", d, err)
			}
		})
	}
	t.Run("all wallets together", func(t *testing.T) { // all that the quick report can see
		db := redistest.Single(t)
		s := newService(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		moneytest.AddEntry(t, db, "GOLD", "m:1;w1:-1")
		setBalance(t, db, 1, -1, 0)
		moneytest.AddUnits(t, db, keys.Totals(game), keys.TotalField(keys.TotalMinted, "GOLD"), -1)
		if r, err := s.Audit(t.Context(), game); err != nil || r.Balanced {
			t.Errorf("the quick report is %+v, %v", r, err)
		}
		wantDifference(t, s, "w1")
	})
}

func TestTheRecountOfABusyStoreFindsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		moneytest.CreateToken(t, s.Service, "GOLD", 0)
		moneytest.Credit(t, s.Service, 1, "GOLD", "1000")
		stop := make(chan struct{})
		var workers sync.WaitGroup
		for worker := range int64(4) {
			workers.Go(func() {
				for i := worker; ; i += 4 {
					select {
					case <-stop:
						return
					default:
					}
					in := wallet.CreditInput{UserID: 1 + i%500, TokenCode: "GOLD", Amount: "3", Reason: "test"}
					testkit.Report(t, testkit.ErrorOf(s.Credit(t.Context(), moneytest.Operator, in, idempotency.Receipt{})))
					in.Amount = "2"
					if _, err := s.Debit(t.Context(), moneytest.Operator, wallet.DebitInput(in), idempotency.Receipt{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 5 {
			if d, err := s.AuditDeep(t.Context(), game); err != nil || !d.Balanced {
				t.Errorf("%+v, %v", d, err)
			}
			if r, err := s.Audit(t.Context(), game); err != nil || !r.Balanced {
				t.Errorf("%+v, %v", r, err)
			}
		}
		close(stop)
		workers.Wait()
		if d, err := s.AuditDeep(t.Context(), game); err != nil || !d.Balanced || !d.HeldCounted {
			t.Errorf("without changes: %+v, %v", d, err)
		}
	})
}

// An operator compares the time of a stop with the log of the nodes.
func TestAReportSaysWhenMoneyWasStopped(t *testing.T) {
	db := redistest.Single(t)
	moneytest.MakeGames(db)
	at := time.UnixMilli(1_700_000_000_123).UTC()
	stop := testkit.Must(wire.Marshal(history.Halt{Cause: history.Older, At: at, Node: "a"}))(t)
	loss, alarm := "9|6|1700000000456|a=3;", "1700000000789|1 accounts differ"
	for _, err := range []error{
		db.Client.HSet(t.Context(), keys.Meta(), keys.MetaStoppedField, string(stop), keys.MetaEpochField, "2").Err(),
		db.Client.HSet(t.Context(), keys.HistoryLosses(), keys.HistoryLossField(2, game), loss).Err(),
		db.Client.HSet(t.Context(), keys.MoneyHalts(), fmt.Sprint(game, ":conservation"), alarm).Err(),
	} {
		testkit.Check(t, err)
	}
	r := testkit.Must(newService(db).Audit(t.Context(), game))(t)
	got := map[string]time.Time{}
	for _, s := range r.Stopped {
		got[s.Cause] = s.At
	}
	want := map[string]time.Time{
		"older": at, "loss": time.UnixMilli(1_700_000_000_456).UTC(), "conservation": time.UnixMilli(1_700_000_000_789).UTC(),
	}
	if !maps.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("money was stopped at %v, want %v", got, want)
	}
}
