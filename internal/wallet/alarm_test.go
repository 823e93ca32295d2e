package wallet_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/stops"
	"github.com/parlor-games/parlor/internal/wallet"
)

// TestABrokenWalletStopsTheMoneyOfItsGame breaks a wallet behind the back of two nodes.
func TestABrokenWalletStopsTheMoneyOfItsGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const game, other = 1, 2
		log := &strings.Builder{}
		node := func() (*wallet.Service, *stops.Service) {
			known := stops.New(db, slog.New(slog.NewTextHandler(log, nil)))
			return wallet.New(db, everyone(game), wallet.Options{Stops: known}), known
		}
		first, firstStops := node()
		second, secondStops := node()
		createGold(t, first)
		elsewhere := wallet.New(db, everyone(other), wallet.Options{Stops: secondStops})
		for _, s := range []*wallet.Service{first, elsewhere} {
			mustCredit(t, s, 7)
			mustCredit(t, s, 8)
		}
		db.Client.Set(t.Context(), keys.UserIDCounter(), 8, 0)
		db.Client.Set(t.Context(), keys.GameIDCounter(), 2, 0)
		audit := func() {
			t.Helper()
			first.LedgerChanged(game)
			if err := wallet.RunOnce(first, t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := secondStops.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		audit()
		if got := first.Deltas(); len(got) == 0 || got[0] != (wallet.GameDelta{GameID: game, TokenCode: "GOLD"}) {
			t.Fatalf("the deltas of sound books are %v", got)
		}

		db.Client.HSet(t.Context(), keys.Wallet(game, 8), "GOLD", "1000000|0")
		audit()
		audit()
		if got := first.Deltas(); got[0].Units == 0 {
			t.Fatalf("the deltas of a broken wallet are %v", got)
		}
		for name, s := range map[string]*wallet.Service{"first": first, "second": second} {
			if err := credit(t, s, 7); !errors.Is(err, apierror.StoreUnavailable) {
				t.Errorf("a credit by the %s node: %v", name, err)
			}
			if _, err := s.ReadBalances(t.Context(), game, 7); err != nil {
				t.Errorf("a read by the %s node: %v", name, err)
			}
		}
		mustCredit(t, elsewhere, 7)
		if n := strings.Count(log.String(), "the money of a game is stopped"); n != 1 {
			t.Errorf("it was logged %d times:\n%s", n, log)
		}

		accepted, err := second.AcceptAudit(t.Context(), operator, game, "counted by hand")
		if err != nil || len(accepted) != 1 || accepted[0].Account != "w8" {
			t.Fatalf("accepted was %v, %v", accepted, err)
		}
		audit()
		if got := first.Deltas(); got[0].Units != 0 || len(firstStops.List()) != 0 {
			t.Fatalf("after it was accepted the deltas are %v, the stops %v", got, firstStops.List())
		}
		mustCredit(t, first, 7)
		mustCredit(t, second, 8)

		db.Client.HIncrBy(t.Context(), keys.Totals(game), keys.TotalField(keys.TotalMinted, "GOLD"), 1)
		audit()
		if err := credit(t, second, 7); !errors.Is(err, apierror.StoreUnavailable) {
			t.Fatalf("a credit after another unit was made up: %v", err)
		}
	})
}
