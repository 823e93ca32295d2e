package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// looked is the game that the alarm looks at.
const looked = 7

// noted is a Halter that notes which games are stopped.
type noted map[int64]string

func (n noted) Check(gameID int64) error {
	if _, isStopped := n[gameID]; isStopped {
		return apierror.StoreUnavailable
	}
	return nil
}

func (n noted) Add(_ context.Context, gameID int64, _, detail string) error {
	n[gameID] = detail
	return nil
}

func (n noted) Lift(_ context.Context, gameID int64, _ string) error {
	delete(n, gameID)
	return nil
}

// An alarm that heard of missing units alone would not hear of units that somebody made.
func TestTheAlarmHearsOfTooMuchAndOfTooLittle(t *testing.T) {
	db := redistest.Single(t)
	for _, delta := range []wallet.Units{-1, 0, 1, wallet.MaxUnits} {
		stopped := noted{}
		s := NewAlarm(db, ledgerstore.New(db, nil), stopped)
		books := ledgerstore.Totals{GameID: looked, Tokens: ledger.Totals{"GOLD": {totalMinted: int64(delta)}}}
		testkit.Check(t, s.auditGame(t.Context(), books, false))
		if _, isStopped := stopped[looked]; isStopped != (delta != 0) {
			t.Errorf("a delta of %d stops money: %v", delta, isStopped)
		}
		if list := s.Deltas(); len(list) != 1 || list[0].Units != delta {
			t.Errorf("a delta of %d is shown as %+v", delta, list)
		}
	}
}

// newLine returns a line after which the player has so many units of a token.
func newLine(code string, free, held wallet.Units) string {
	return fmt.Sprintf("1-n|1|x|%s|credit||%d|%d||", code, free, held)
}

func TestAWalletDiffersFromItsLinesInEitherDirection(t *testing.T) {
	gold := func(free, held wallet.Units) map[string]wallet.StoredBalance {
		return map[string]wallet.StoredBalance{"GOLD": {Free: free, Held: held}}
	}
	for name, c := range map[string]struct {
		stored storedWallet
		want   map[string]wallet.Units
	}{
		"the same": {storedWallet{balances: gold(5, 2), lineCount: 1, newest: []string{newLine("GOLD", 5, 2)}}, nil},
		"a unit too much": {
			storedWallet{balances: gold(6, 2), lineCount: 1, newest: []string{newLine("GOLD", 5, 2)}},
			map[string]wallet.Units{"GOLD": -1},
		},
		"a unit too little": {
			storedWallet{balances: gold(4, 2), lineCount: 1, newest: []string{newLine("GOLD", 5, 2)}},
			map[string]wallet.Units{"GOLD": 1},
		},
		"a held unit too little": {
			storedWallet{balances: gold(5, 1), lineCount: 1, newest: []string{newLine("GOLD", 5, 2)}},
			map[string]wallet.Units{"GOLD": 1},
		},
		"the newest line counts": {
			storedWallet{balances: gold(6, 0), lineCount: 2, newest: []string{newLine("GOLD", 5, 0), newLine("GOLD", 6, 0)}},
			nil,
		},
		"the token is gone": {
			storedWallet{lineCount: 1, newest: []string{newLine("GOLD", 5, 2)}}, map[string]wallet.Units{"GOLD": 7},
		},
		"it was spent":     {storedWallet{lineCount: 1, newest: []string{newLine("GOLD", 0, 0)}}, nil},
		"there is no line": {storedWallet{balances: gold(5, 0)}, map[string]wallet.Units{"GOLD": -5}},
		"an older line has the token": {
			storedWallet{balances: gold(5, 0), lineCount: 2, newest: []string{newLine("GEMS", 0, 0)}}, nil,
		},
		"a line that left the store has the token": {
			storedWallet{balances: gold(5, 0), lineCount: 1, base: 1, newest: []string{newLine("GEMS", 0, 0)}}, nil,
		},
	} {
		if got := c.stored.differences(); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// Each look compares the next wallets, and after the last one the first again. A wallet that
// differed is compared in every look until it is right.
func TestTheAlarmWalksOverAllWallets(t *testing.T) {
	db := redistest.Single(t)
	s := NewAlarm(db, ledgerstore.New(db, nil), noted{})
	const last = 2*watchedWallets + 50
	testkit.Check(t, db.Client.Set(t.Context(), keys.UserIDCounter(), last, 0).Err())
	set := func(user int64, balance string) { // without a line, so that every unit is too much
		testkit.Check(t, db.Client.HSet(t.Context(), keys.Wallet(looked, user), "GOLD", balance).Err())
	}
	look := func(want ...int64) {
		t.Helper()
		defects := testkit.Must(s.compareSomeWallets(t.Context(), looked))(t)
		var got, names []string
		for _, d := range defects {
			got = append(got, d.account)
		}
		for _, user := range want {
			names = append(names, walletAccount(user))
		}
		slices.Sort(names)
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("a look finds %s; want %s", strings.Join(got, " "), strings.Join(names, " "))
		}
	}
	const first, second, third = 1, watchedWallets, watchedWallets + 1
	for _, user := range []int64{first, second, third, last} {
		set(user, "5|0")
	}
	look(first, second)
	set(second, "0|0")
	look(first, third)
	set(second, "5|0") // not compared before the walk comes to it again
	look(first, third, last)
	set(first, "0|0")
	look(second, third, last)
	look(second, third, last)
	look(second, third, last)
}
