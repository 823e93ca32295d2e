package leaderboards

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// maxPerson is the largest id of a player.
const maxPerson = 999_999

// people are the players of a test: every id up to maxPerson is a player of its game.
type people struct {
	*domaintest.Players
	askedAbout int // players, by AreFriends
}

func newPeople(gameID int64) *people { return &people{Players: domaintest.NewPlayers(gameID)} }

func (p *people) Game(ctx context.Context, userID int64) (int64, error) {
	if userID > maxPerson {
		return 0, apierror.UserNotFound
	}
	return p.Players.Game(ctx, userID)
}

// stranger is in everybody's list of friends, and nobody's friend.
const stranger = 99

func (p *people) ListedFriends(_ context.Context, userID int64, limit int) ([]int64, error) {
	listed := append([]int64{stranger}, p.Friends[userID]...)
	return listed[:min(limit, len(listed))], nil
}

func (p *people) AreFriends(ctx context.Context, userID int64, others ...int64) (map[int64]bool, error) {
	p.askedAbout += len(others)
	return p.Players.AreFriends(ctx, userID, others...)
}

var lastGame atomic.Int64

// fixture is a game of its own with its boards.
type fixture struct {
	t testkit.T
	*Service
	people *people
	gameID int64
	db     *redisdb.DB
}

func newFixture(t testkit.T, db *redisdb.DB) *fixture {
	p := newPeople(lastGame.Add(1))
	return &fixture{t, New(db, p, p, Options{}), p, p.GameID, db}
}

func (f *fixture) server() principal.Caller {
	return principal.Caller{Role: principal.Server, GameID: f.gameID}
}

func (f *fixture) player(id int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: id, GameID: f.gameID}
}

// create makes the board "top".
func (f *fixture) create(d Definition) Leaderboard {
	f.t.Helper()
	d.Board, d.Name = "top", "Top"
	return testkit.Must(f.Create(f.t.Context(), f.server(), f.gameID, d))(f.t)
}

// send submits a score for a player by the server.
func (f *fixture) send(userID int64, score string, more ...func(*SubmitInput)) (SubmitResult, error) {
	in := SubmitInput{UserID: userID, Score: ScoreInput(score)}
	for _, set := range more {
		set(&in)
	}
	return f.Submit(f.t.Context(), f.server(), f.gameID, "top", in, idempotency.Receipt{})
}

func (f *fixture) mustSend(userID int64, score string, more ...func(*SubmitInput)) SubmitResult {
	f.t.Helper()
	return testkit.Must(f.send(userID, score, more...))(f.t, "send %s of player %d", score, userID)
}

func (f *fixture) entries(scope Scope) []Entry {
	f.t.Helper()
	var all []Entry
	cursor := ""
	for {
		page, next := testkit.Must2(f.Entries(f.t.Context(), f.server(), f.gameID, "top", scope, cursor, 100))(f.t)
		if all = append(all, page...); next == "" {
			return all
		}
		cursor = next
	}
}

func userIDs(entries []Entry) []int64 {
	ids := []int64{}
	for _, e := range entries {
		ids = append(ids, e.User.ID)
	}
	return ids
}

func wantError(t *testing.T, err error, want *apierror.Error, field string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v; want %s", err, want.Code)
		return
	}
	e, _ := apierror.As(err)
	if field != "" && (len(e.FieldErrors) != 1 || e.FieldErrors[0].Field != field) {
		t.Errorf("%v; want the field %s", e.FieldErrors, field)
	}
}

// onEveryStore runs a test on a single server, on a Cluster and on the embedded store.
func onEveryStore(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	redistest.Each(t, test)
	t.Run("embedded", func(t *testing.T) {
		db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
		t.Cleanup(func() { _ = db.Close() })
		test(t, db)
	})
}
