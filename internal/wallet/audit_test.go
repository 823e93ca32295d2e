package wallet_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/redis/go-redis/v9"
)

// wantDifference fails the test unless a recount finds a difference of the account.
func wantDifference(t *testing.T, s *wallet.Service, account string) {
	t.Helper()
	d, err := s.AuditDeep(t.Context())
	found := slices.ContainsFunc(d.Differences, func(d wallet.Difference) bool { return d.Account == account })
	if err != nil || d.Balanced || !found {
		t.Errorf("the recount does not see the difference of %s: %+v, %v", account, d, err)
	}
}

// wantBalanced fails the test unless both reports are balanced.
func wantBalanced(t *testing.T, s *wallet.Service) {
	t.Helper()
	if r, err := s.Audit(t.Context()); err != nil || !r.Balanced {
		t.Fatalf("the quick report: %+v, %v", r, err)
	}
	if d, err := s.AuditDeep(t.Context()); err != nil || !d.Balanced {
		t.Fatalf("the deep report: %+v, %v", d, err)
	}
}

// addUnits adds units to a field, past all scripts.
func addUnits(t *testing.T, db *redisdb.DB, key, field string, units int64) {
	t.Helper()
	if err := db.Client.HIncrBy(t.Context(), key, field, units).Err(); err != nil {
		t.Fatal(err)
	}
}

// addEntry appends a ledger entry, past all scripts.
func addEntry(t *testing.T, db *redisdb.DB, code, postings string) {
	t.Helper()
	number, err := db.Client.HIncrBy(t.Context(), keys.Totals(), keys.TotalsSequenceField, 1).Result()
	if err != nil {
		t.Fatal(err)
	}
	err = db.Client.XAdd(t.Context(), &redis.XAddArgs{
		Stream: keys.Ledger(), ID: wallet.Units(number).String() + "-0",
		Values: map[string]any{keys.LedgerTokenField: code, keys.LedgerPostingsField: postings},
	}).Err()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheAuditFindsEveryUnitThatIsNotWhereTheLedgerHasIt(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		wantBalanced(t, s) // an empty store
		createToken(t, s, "GOLD", 2)
		for userID := range int64(5) {
			credit(t, s, userID+1, "GOLD", "10")
		}
		d, err := s.AuditDeep(t.Context())
		if err != nil || !d.Balanced || !d.HeldCounted || d.Entries != 5 || d.Wallets != 5 {
			t.Fatalf("%+v, %v", d, err)
		}
		wantJSON(t, d.Tokens, `[{"tokenId":"GOLD","minted":50,"mintedAmount":"5000","wallets":50,"walletsAmount":"5000",`+
			`"escrow":0,"escrowAmount":"0","house":0,"houseAmount":"0","delta":0,"deltaAmount":"0"}]`)

		for _, c := range []struct{ account, key, field string }{
			{"w:3", keys.Wallet(3), keys.FreeField("GOLD")},
			{"held", keys.Wallet(3), keys.HeldField("GOLD")},
			{"w:99", keys.Wallet(99), keys.FreeField("GOLD")},
			{"minted", keys.Totals(), "minted:GOLD"},
			{"wallets", keys.Totals(), "wallets:GOLD"},
			{"escrow", keys.Totals(), "escrow:GOLD"},
			{"house", keys.Totals(), "house:GOLD"},
			{"unknown", keys.Totals(), "unknown:GOLD"},
		} {
			addUnits(t, db, c.key, c.field, 1)
			wantDifference(t, s, c.account)
			addUnits(t, db, c.key, c.field, -1)
			wantBalanced(t, s)
		}
		addUnits(t, db, keys.Totals(), "house:GOLD", 1)
		if r, err := s.Audit(t.Context()); err != nil || r.Balanced || r.Tokens[0].Delta.Units != -1 {
			t.Fatalf("a unit that was never minted: %+v, %v", r, err)
		}
		addUnits(t, db, keys.Totals(), "house:GOLD", -1)

		lost, err := db.Client.HGetAll(t.Context(), keys.Wallet(2)).Result()
		if err != nil {
			t.Fatal(err)
		}
		db.Client.Del(t.Context(), keys.Wallet(2))
		wantDifference(t, s, "w:2")
		db.Client.HSet(t.Context(), keys.Wallet(2), lost)
		wantBalanced(t, s)
	})
}

func TestTheRecountFindsDefectsOfTheLedger(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, *redisdb.DB){
		"a lost entry":            func(t *testing.T, db *redisdb.DB) { db.Client.XDel(t.Context(), keys.Ledger(), "2-0") },
		"a lost last entry":       func(t *testing.T, db *redisdb.DB) { db.Client.XDel(t.Context(), keys.Ledger(), "3-0") },
		"postings that add up":    func(t *testing.T, db *redisdb.DB) { addEntry(t, db, "GOLD", "m:-1;w:1:2") },
		"a posting of no units":   func(t *testing.T, db *redisdb.DB) { addEntry(t, db, "GOLD", "w:1:x") },
		"a posting of no account": func(t *testing.T, db *redisdb.DB) { addEntry(t, db, "GOLD", ":1") },
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			db := redistest.Single(t)
			s := newService(db)
			createToken(t, s, "GOLD", 2)
			for range 3 {
				credit(t, s, 1, "GOLD", "10")
			}
			damage(t, db)
			wantDifference(t, s, "ledger")
		})
	}
}

// Money that is less than nothing is a defect even where all sums are right.
func TestTheAuditReportsNegativeTotals(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		createToken(t, s, "GOLD", 0)
		credit(t, s, 1, "GOLD", "10")
		move := func(from, to string, units int64) {
			t.Helper()
			addUnits(t, db, keys.Totals(), keys.TotalField(from, "GOLD"), -units)
			addUnits(t, db, keys.Totals(), keys.TotalField(to, "GOLD"), units)
		}
		for _, c := range []struct {
			negative, positive string
			units              int64
		}{
			{keys.TotalWallets, keys.TotalHouse, 11},
			{keys.TotalEscrow, keys.TotalHouse, 1},
			{keys.TotalHouse, keys.TotalEscrow, 1},
		} {
			move(c.negative, c.positive, c.units)
			if r, err := s.Audit(t.Context()); err != nil || r.Balanced || r.Tokens[0].Delta.Units != 0 {
				t.Errorf("negative %s: the quick report is %+v, %v", c.negative, r, err)
			}
			wantDifference(t, s, c.negative)
			move(c.positive, c.negative, c.units)
			wantBalanced(t, s)
		}

		// The ledger agrees that the operator paid out what it never had.
		addEntry(t, db, "GOLD", "h:-1;e:room:1")
		move(keys.TotalHouse, keys.TotalEscrow, 1)
		addUnits(t, db, keys.Wallet(1), keys.HeldField("GOLD"), 1)
		if d, err := s.AuditDeep(t.Context()); err != nil || d.Balanced || len(d.Differences) != 0 {
			t.Errorf("a negative total that the ledger has too: the deep report is %+v, %v", d, err)
		}
	})
}

func TestTheAuditReportsNegativeWallets(t *testing.T) {
	for name, overdraw := range map[string]func(*testing.T, *redisdb.DB){
		"free": func(t *testing.T, db *redisdb.DB) {
			addEntry(t, db, "GOLD", "w:1:-11;w:2:11")
			addUnits(t, db, keys.Wallet(1), keys.FreeField("GOLD"), -11)
			addUnits(t, db, keys.Wallet(2), keys.FreeField("GOLD"), 11)
		},
		"held": func(t *testing.T, db *redisdb.DB) {
			addUnits(t, db, keys.Wallet(1), keys.HeldField("GOLD"), -1)
			addUnits(t, db, keys.Wallet(2), keys.HeldField("GOLD"), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := redistest.Single(t)
			s := newService(db)
			createToken(t, s, "GOLD", 0)
			credit(t, s, 1, "GOLD", "10")
			credit(t, s, 2, "GOLD", "10")
			overdraw(t, db)
			d, err := s.AuditDeep(t.Context())
			if err != nil || d.Balanced || len(d.Differences) != 1 || d.Differences[0].Account != "w:1" {
				t.Errorf("the deep report is %+v, %v", d, err)
			}
		})
	}
	t.Run("all wallets together", func(t *testing.T) { // all that the quick report can see
		db := redistest.Single(t)
		s := newService(db)
		createToken(t, s, "GOLD", 0)
		addEntry(t, db, "GOLD", "m:1;w:1:-1")
		addUnits(t, db, keys.Wallet(1), keys.FreeField("GOLD"), -1)
		addUnits(t, db, keys.Totals(), keys.TotalField(keys.TotalMinted, "GOLD"), -1)
		addUnits(t, db, keys.Totals(), keys.TotalField(keys.TotalWallets, "GOLD"), -1)
		if r, err := s.Audit(t.Context()); err != nil || r.Balanced {
			t.Errorf("the quick report is %+v, %v", r, err)
		}
		wantDifference(t, s, "w:1")
	})
}

func TestTheRecountOfABusyStoreFindsNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := newService(db)
		createToken(t, s, "GOLD", 0)
		credit(t, s, 1, "GOLD", "1000")
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
					if _, err := s.Credit(t.Context(), operator, in, noReceipt); err != nil {
						t.Error(err)
					}
					in.Amount = "2"
					if _, err := s.Debit(t.Context(), operator, wallet.DebitInput(in), noReceipt); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 5 {
			if d, err := s.AuditDeep(t.Context()); err != nil || !d.Balanced {
				t.Errorf("%+v, %v", d, err)
			}
			if r, err := s.Audit(t.Context()); err != nil || !r.Balanced {
				t.Errorf("%+v, %v", r, err)
			}
		}
		close(stop)
		workers.Wait()
		if d, err := s.AuditDeep(t.Context()); err != nil || !d.Balanced || !d.HeldCounted {
			t.Errorf("without changes: %+v, %v", d, err)
		}
	})
}
