package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// sharedLog is a log that several nodes write.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// watchedNode is a node whose background work runs.
type watchedNode struct {
	*wallet.Service
	*audit.Alarm
	halts *moneyhalt.Service
}

func runNode(t *testing.T, db *redisdb.DB, log *sharedLog) watchedNode {
	t.Helper()
	n := watchedNode{halts: moneyhalt.New(db, slog.New(slog.NewTextHandler(log, nil)))}
	ledgers := ledgerstore.New(db, nil)
	n.Alarm = audit.NewAlarm(db, ledgers, n.halts)
	n.Service = wallet.New(db, moneytest.Players{strangerID: otherGame}, wallet.Options{
		Ledgers: ledgers, Halter: n.halts, AfterFold: n.AuditGames,
	})
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- n.Run(ctx) }()
	go func() { ended <- n.halts.Run(ctx) }()
	t.Cleanup(func() {
		end()
		testkit.Report(t, errors.Join(<-ended, <-ended))
	})
	return n
}

// tryCredit returns the error of a credit of 1 GOLD.
func (n watchedNode) tryCredit(t *testing.T, user int64) error {
	t.Helper()
	in := wallet.CreditInput{UserID: user, TokenCode: "GOLD", Amount: "1", Reason: "test"}
	_, err := n.Credit(t.Context(), moneytest.Operator, in, idempotency.Receipt{})
	return err
}

// TestMoneyThatIsNotConservedStopsItsGame breaks a wallet, and then the totals, behind the back of
// two nodes.
func TestMoneyThatIsNotConservedStopsItsGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		moneytest.MakeGames(db)
		db.Client.Set(t.Context(), keys.UserIDCounter(), max(userID, strangerID)+1, 0)
		moneytest.CreateToken(t, newService(db).Service, "GOLD", 0)
		log := &sharedLog{}
		nodes := []watchedNode{runNode(t, db, log), runNode(t, db, log)}
		for _, user := range []int64{userID, strangerID} {
			testkit.Check(t, nodes[0].tryCredit(t, user))
		}
		delta := func(want bool) func() bool {
			return func() bool {
				for _, n := range nodes {
					for _, d := range n.Deltas() {
						if d.GameID == game && d.TokenCode == "GOLD" && (d.Units != 0) == want {
							return true
						}
					}
				}
				return false
			}
		}
		redistest.Eventually(t, "the leader has audited sound books", delta(false))

		wantStopped := func() {
			t.Helper()
			for i, n := range nodes {
				redistest.Eventually(t, fmt.Sprintf("node %d stops the money", i), func() bool {
					err := n.tryCredit(t, userID)
					return errors.Is(err, apierror.StoreUnavailable)
				})
				testkit.Report(t, testkit.ErrorOf(n.ReadBalances(t.Context(), game, userID)), "node %d cannot read", i)
				testkit.Report(t, n.tryCredit(t, strangerID), "the money of another game, by node %d", i)
			}
		}
		wantGoing := func(want string) {
			t.Helper()
			accepted, err := nodes[1].Accept(t.Context(), moneytest.Operator, game, "counted by hand")
			if err != nil || len(accepted) != 1 || accepted[0].Account != want {
				t.Fatalf("accepted was %v, %v; want %s", accepted, err, want)
			}
			for i, n := range nodes {
				redistest.Eventually(t, fmt.Sprintf("money goes on by node %d", i), func() bool {
					return n.tryCredit(t, userID) == nil
				})
			}
			for range 2 { // it stays so after further audits
				redistest.Eventually(t, "the delta is 0 again", delta(false))
			}
			if n := len(nodes[0].halts.List()) + len(nodes[1].halts.List()); n != 0 {
				t.Fatalf("%d stops are left", n)
			}
		}
		// wantAudit looks at the audit on another node than the one that stopped the game.
		wantAudit := func(gameID int64, balanced, sumsAgree bool, stoppedGames ...int64) {
			t.Helper()
			s := newService(db)
			quick := testkit.Must(s.Audit(t.Context(), gameID))(t)
			deep := testkit.Must(s.AuditDeep(t.Context(), gameID))(t)
			for name, r := range map[string]audit.Report{"quick": quick, "deep": deep.Report} {
				var found []int64
				for _, stopped := range r.Stopped {
					found = append(found, stopped.GameID)
					if stopped.Cause != "conservation" || stopped.Reason == "" || stopped.At.IsZero() {
						t.Errorf("the %s audit of game %d has the stop %+v", name, gameID, stopped)
					}
				}
				if name == "quick" && (r.Balanced != balanced || r.SumsAgree != sumsAgree) || !slices.Equal(found, stoppedGames) ||
					r.Stopped == nil || len(found) > 0 && r.Balanced {
					t.Errorf("the %s audit of game %d is %+v", name, gameID, r)
				}
			}
		}
		wantAudit(game, true, true)
		other := int64(5) // who does nothing meanwhile
		testkit.Check(t, nodes[0].tryCredit(t, other))
		db.Client.Set(t.Context(), keys.UserIDCounter(), max(userID, strangerID, other), 0)
		db.Client.HSet(t.Context(), keys.Wallet(game, other), "GOLD", "1000000|0")
		if err := nodes[0].tryCredit(t, userID); err != nil && !errors.Is(err, apierror.StoreUnavailable) {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the gauge shows it", delta(true))
		wantStopped()
		wantAudit(game, false, true, game) // the sums alone do not show the wallet
		wantAudit(0, false, true, game)
		wantAudit(otherGame, true, true)
		log.mu.Lock()
		if n := bytes.Count(log.text.Bytes(), []byte("the money of a game is stopped")); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
		log.mu.Unlock()
		wantGoing(fmt.Sprintf("w%d", other))
		wantAudit(game, true, true)

		db.Client.HIncrBy(t.Context(), keys.Totals(game), keys.TotalField(keys.TotalMinted, "GOLD"), 1)
		_ = nodes[1].tryCredit(t, userID)
		wantStopped()
		wantAudit(game, false, false, game)
		wantGoing("total")
	})
}

func TestOnlyAnOperatorAcceptsAnAuditAndSaysWhy(t *testing.T) {
	db := redistest.Single(t)
	s := audit.NewAlarm(db, ledgerstore.New(db, nil), moneyhalt.New(db, slog.Default()))
	system := principal.Caller{Role: principal.System}
	testkit.Fails(s.Accept(t.Context(), system, game, "x"))(t, apierror.Forbidden, "the system")
	testkit.Fails(s.Accept(t.Context(), moneytest.Operator, game, ""))(t, apierror.InvalidRequest, "without a reason")
}
