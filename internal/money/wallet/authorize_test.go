package wallet_test

import (
	"context"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

const (
	userID        = 1 // a player of the first game
	strangerID    = 2 // a player of the other game
	unknownUserID = 3
)

// Who may do what, without the checks of package handlers.
func TestTheRoleOfTheCallerDecides(t *testing.T) {
	db := redistest.Single(t)
	s := wallet.New(db, moneytest.Players{strangerID: otherGame, unknownUserID: 0}, wallet.Options{})
	moneytest.CreateToken(t, s, "GOLD", 0)
	testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), max(game, otherGame), 0).Err())
	testkit.Must(s.PatchToken(t.Context(), operator, "GOLD", wallet.TokenPatch{
		Games: &[]wallet.TokenGameInput{{GameID: game, MintLimitPerDay: "5"}, {GameID: otherGame, MintLimitPerDay: "5"}},
	}))(t)
	moneytest.Credit(t, s, userID, "GOLD", "1000")
	moneytest.Credit(t, s, strangerID, "GOLD", "1000")

	creditOf := func(userID int64) func(principal.Caller) error {
		return func(c principal.Caller) error {
			in := wallet.CreditInput{UserID: userID, TokenCode: "GOLD", Amount: "1", Reason: "test"}
			_, err := s.Credit(t.Context(), c, in, noReceipt)
			return err
		}
	}
	debitOf := func(userID int64) func(principal.Caller) error {
		return func(c principal.Caller) error {
			in := wallet.DebitInput{UserID: userID, TokenCode: "GOLD", Amount: "1", Reason: "test"}
			_, err := s.Debit(t.Context(), c, in, noReceipt)
			return err
		}
	}
	tokens := 0
	columns := []principal.Caller{
		{},
		{GameID: game, UserID: userID}, // without a role
		{Role: principal.Player, UserID: userID, GameID: game},
		{Role: principal.Player, UserID: strangerID, GameID: otherGame},
		{Role: principal.Server, GameID: game},
		{Role: principal.Server, GameID: otherGame},
		{Role: principal.Server}, // of no game
		operator,
		system,
		{Role: "other"},
	}
	ok, no, user := scripts.OK, apierror.Forbidden.Code, apierror.UserNotFound.Code
	for _, c := range []struct {
		verb string
		call func(principal.Caller) error
		want []string // by column
	}{
		{"credit a player", creditOf(userID), []string{no, no, no, no, ok, user, user, ok, no, no}},
		{"credit a stranger", creditOf(strangerID), []string{no, no, no, no, user, ok, user, ok, no, no}},
		{"credit an unknown user", creditOf(unknownUserID), []string{no, no, no, no, user, user, user, user, no, no}},
		{"credit no user", creditOf(0), []string{no, no, no, no, user, user, user, user, no, no}},
		{"debit a player", debitOf(userID), []string{no, no, no, no, ok, user, user, ok, no, no}},
		{"debit a stranger", debitOf(strangerID), []string{no, no, no, no, user, ok, user, ok, no, no}},
		{"debit an unknown user", debitOf(unknownUserID), []string{no, no, no, no, user, user, user, user, no, no}},
		{"grant", func(c principal.Caller) error {
			return s.Grant(t.Context(), c, wallet.GrantInput{UserID: userID, GameID: game, TokenCode: "GOLD", Units: 1})
		}, []string{no, no, no, no, no, no, no, no, ok, no}},
		{"create a token", func(c principal.Caller) error {
			tokens++
			_, err := s.CreateToken(t.Context(), c, wallet.TokenDefinition{
				Code: "T" + wallet.Units(tokens).String(), Name: "Test", Metadata: wallet.Metadata{Decimals: "0"},
			})
			return err
		}, []string{no, no, no, no, no, no, no, ok, no, no}},
		{"patch a token", func(c principal.Caller) error {
			_, err := s.PatchToken(t.Context(), c, "GOLD", wallet.TokenPatch{Name: new("Pure gold")})
			return err
		}, []string{no, no, no, no, no, no, no, ok, no, no}},
	} {
		domaintest.WantCodes(t, c.verb, columns, c.want, c.call)
	}
	if b, err := s.ReadBalance(t.Context(), game, userID, "GOLD"); err != nil || b.SpendableUnits != 1001 {
		t.Errorf("two credits, two debits and a grant of 1 leave %s, %v", b.SpendableUnits, err)
	}
}

// A failed lookup must not be taken for an unknown player.
func TestAFailedLookupOfThePlayerIsReturned(t *testing.T) {
	s := wallet.New(redistest.Single(t), failingPlayers{}, wallet.Options{})
	in := wallet.CreditInput{UserID: userID, TokenCode: "GOLD", Amount: "1", Reason: "test"}
	testkit.Fails(s.Credit(t.Context(), operator, in, noReceipt))(t, apierror.StoreUnavailable)
}

type failingPlayers struct{}

func (failingPlayers) Game(context.Context, int64) (int64, error) {
	return 0, apierror.StoreUnavailable
}
