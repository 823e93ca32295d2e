package moneytest

import (
	"context"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// The games that MakeGames makes.
const (
	Game      = 1
	OtherGame = 2
)

// Operator is a caller who may do everything.
var Operator = principal.Caller{Role: principal.Operator}

// Players has every player but those it names in Game; the others are unknown when their game is 0.
type Players map[int64]int64

// Game returns the game of a player, or user_not_found.
func (p Players) Game(_ context.Context, userID int64) (int64, error) {
	gameID, ok := p[userID]
	switch {
	case !ok:
		return Game, nil
	case gameID == 0:
		return 0, apierror.UserNotFound
	default:
		return gameID, nil
	}
}

// MakeGames gives the store the two games.
func MakeGames(db *redisdb.DB) {
	if err := db.Client.Set(context.Background(), keys.GameIDCounter(), OtherGame, 0).Err(); err != nil {
		panic(err)
	}
}

// CreateToken creates a token with a code and a number of decimals.
func CreateToken(t testing.TB, s *wallet.Service, code string, decimals int) wallet.Token {
	t.Helper()
	token, err := s.CreateToken(t.Context(), Operator, wallet.TokenDefinition{
		Code: code, Name: "Token " + code,
		Metadata: wallet.Metadata{AssetName: "676f", PolicyID: "AB01", Decimals: strconv.Itoa(decimals)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Credit mints an amount into a player's wallet.
func Credit(t testing.TB, s *wallet.Service, userID int64, code string, amount wallet.AmountInput) {
	t.Helper()
	in := wallet.CreditInput{UserID: userID, TokenCode: code, Amount: amount, Reason: "test"}
	if _, err := s.Credit(t.Context(), Operator, in, idempotency.Receipt{}); err != nil {
		t.Fatal(err)
	}
}

// Debit burns an amount of what a player can spend.
func Debit(t testing.TB, s *wallet.Service, userID int64, code string, amount wallet.AmountInput) {
	t.Helper()
	in := wallet.DebitInput{UserID: userID, TokenCode: code, Amount: amount, Reason: "test"}
	if _, err := s.Debit(t.Context(), Operator, in, idempotency.Receipt{}); err != nil {
		t.Fatal(err)
	}
}

// AddUnits adds units to a field of a key, past all scripts.
func AddUnits(t testing.TB, db *redisdb.DB, key, field string, units int64) {
	t.Helper()
	if err := db.Client.HIncrBy(t.Context(), key, field, units).Err(); err != nil {
		t.Fatal(err)
	}
}

// AddEntry appends an entry to the ledger of Game, past all scripts.
func AddEntry(t testing.TB, db *redisdb.DB, code, postings string) {
	t.Helper()
	entry := "1|nonce|" + code + "|test|test|" + postings
	if err := db.Client.RPush(t.Context(), keys.Ledger(Game), entry).Err(); err != nil {
		t.Fatal(err)
	}
}

// ReadLedger returns the entries of Game, of all pages with so many entries each.
func ReadLedger(t testing.TB, s *wallet.Service, limit int) (entries []wallet.Entry) {
	t.Helper()
	for q := (wallet.EntryQuery{Limit: limit}); ; {
		page, err := s.GameLedger(t.Context(), Operator, Game, q)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, page.Entries...)
		if q.Before = page.NextBefore; q.Before == 0 {
			return entries
		}
	}
}

// NewAudit returns the audit of a store without an archive.
func NewAudit(db *redisdb.DB, wallets *wallet.Service) *audit.Service {
	return audit.New(db, ledgerstore.New(db, nil), wallets)
}
