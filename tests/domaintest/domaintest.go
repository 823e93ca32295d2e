// Package domaintest has a game, its players and its money, for tests of the domains above them. It
// is for tests only.
package domaintest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Operator may do everything.
var Operator = principal.Caller{Role: principal.Operator}

// Players are a game and its players: every id is one. They stand for packages games and users.
type Players struct {
	GameID     int64
	Settings   games.Settings
	Born       time.Time         // of every player
	Friends    map[int64][]int64 // by player
	NamePrefix string            // of a player's name, before the id
}

// NewPlayers returns a game with the default settings, whose players are an hour old. Their names
// show whether they are escaped.
func NewPlayers(gameID int64) *Players {
	return &Players{gameID, games.DefaultSettings(), time.Now().Add(-time.Hour), map[int64][]int64{}, `Q"|ü`}
}

// Server returns the server of the game as a caller.
func (p *Players) Server() principal.Caller {
	return principal.Caller{Role: principal.Server, GameID: p.GameID}
}

// Player returns a player as a caller.
func (p *Players) Player(id int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: id, GameID: p.GameID}
}

// Find returns the game, or game_not_found for another one.
func (p *Players) Find(_ context.Context, id int64) (games.Game, error) {
	if id != p.GameID {
		return games.Game{}, apierror.GameNotFound
	}
	return games.Game{ID: id, Settings: p.Settings}, nil
}

// Game returns the game of a player.
func (p *Players) Game(context.Context, int64) (int64, error) { return p.GameID, nil }

// CreatedAt returns when a player was created.
func (p *Players) CreatedAt(context.Context, int64) (time.Time, error) { return p.Born, nil }

// RecentProfile returns the profile of a player.
func (p *Players) RecentProfile(_ context.Context, id int64) (users.Profile, error) {
	return users.Profile{ID: id, Username: p.NamePrefix + strconv.FormatInt(id, 10)}, nil
}

// Profiles returns what RecentProfile returns, by player.
func (p *Players) Profiles(ctx context.Context, ids ...int64) (map[int64]users.Profile, error) {
	found := make(map[int64]users.Profile, len(ids))
	for _, id := range ids {
		found[id], _ = p.RecentProfile(ctx, id)
	}
	return found, nil
}

// ListedFriends returns the first friends of a player.
func (p *Players) ListedFriends(_ context.Context, userID int64, limit int) ([]int64, error) {
	listed := p.Friends[userID]
	return listed[:min(limit, len(listed))], nil
}

// AreFriends reports which of others are friends of a player.
func (p *Players) AreFriends(_ context.Context, userID int64, others ...int64) (map[int64]bool, error) {
	are := map[int64]bool{}
	for _, id := range others {
		are[id] = slices.Contains(p.Friends[userID], id)
	}
	return are, nil
}

// KeyedHash stands for the hash that only nodes can compute.
func KeyedHash(_ context.Context, label, text string) ([]byte, error) {
	sum := sha256.Sum256([]byte(label + "\x00" + text))
	return sum[:], nil
}

// Money is a token of two decimals in a game.
type Money struct {
	t       testkit.T
	audits  *audit.Service
	gameID  int64
	Wallets *wallet.Service
	Token   wallet.Token
}

// NewMoney creates a token, or finds that of another test on the store.
func NewMoney(t testkit.T, db *redisdb.DB, wallets *wallet.Service, gameID int64, d wallet.TokenDefinition) Money {
	t.Helper()
	d.Name, d.Metadata = cmp.Or(d.Name, "Gold"), wallet.Metadata{Decimals: "2"}
	token, err := wallets.CreateToken(t.Context(), Operator, d)
	if errors.Is(err, apierror.TokenCodeTaken) {
		token, err = wallets.FindToken(t.Context(), gameID, d.Code)
	}
	return Money{t, moneytest.NewAudit(db, wallets), gameID, wallets, testkit.Must(token, err)(t)}
}

// Credit credits players with an amount.
func (m Money) Credit(amount wallet.AmountInput, userIDs ...int64) {
	m.t.Helper()
	for _, id := range userIDs {
		in := wallet.CreditInput{UserID: id, TokenCode: m.Token.Code, Amount: amount, Reason: "test"}
		testkit.Must(m.Wallets.Credit(m.t.Context(), Operator, in, idempotency.Receipt{}))(m.t, "player %d", id)
	}
}

// Balance returns what a player has.
func (m Money) Balance(userID int64) wallet.Balance {
	m.t.Helper()
	return testkit.Must(m.Wallets.ReadBalance(m.t.Context(), m.gameID, userID, m.Token.Code))(m.t)
}

// WantBalance compares what a player can spend, and what is held.
func (m Money) WantBalance(userID int64, free, held wallet.Units) {
	m.t.Helper()
	if b := m.Balance(userID); b.SpendableUnits != free || b.HeldUnits != held {
		m.t.Fatalf("player %d has %d and holds %d; want %d and %d", userID, b.SpendableUnits, b.HeldUnits, free, held)
	}
}

// Audit requires that the books of the game balance, by the totals and by a recount, and that what
// is held is the escrow.
func (m Money) Audit() audit.DeepReport {
	m.t.Helper()
	d := testkit.Must(m.audits.AuditDeep(m.t.Context(), m.gameID))(m.t)
	if !d.Balanced || !d.HeldCounted || len(d.Differences) > 0 {
		m.t.Fatalf("the books do not balance: %+v", d)
	}
	return d
}

// CodeOf returns the code of an error, the text of an internal one, or "ok" for none.
func CodeOf(err error) string {
	if err == nil {
		return scripts.OK
	}
	if e, ok := apierror.As(err); ok {
		return e.Code
	}
	return err.Error()
}

// WantCodes makes a call as each caller and compares the codes of the errors.
func WantCodes(
	t testkit.T, name string, callers []principal.Caller, want []string, call func(principal.Caller) error,
) {
	t.Helper()
	for i, caller := range callers {
		if got := CodeOf(call(caller)); got != want[i] {
			t.Errorf("%s by %+v returned %s, want %s", name, caller, got, want[i])
		}
	}
}
