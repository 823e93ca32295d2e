package tournaments

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/leaderboards"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// score returns a paid score tournament that starts soon and lasts for a second.
func (f *fixture) score(change func(in *CreateInput)) CreateInput {
	start := time.Now().Add(300 * time.Millisecond)
	in := CreateInput{
		Name: "Race", Format: FormatScore, EntryTokenID: f.token.ID, EntryFee: "2.50", MaxEntrants: 100,
		StartsAt: &start, EndsAt: new(start.Add(time.Second)), Payout: []int{7000, 3000}, Attempts: new(2),
	}
	if change != nil {
		change(&in)
	}
	return in
}

// attempt plays once for a score.
func (f *fixture) attempt(id, userID int64, score string) error {
	a, err := f.StartAttempt(f.t.Context(), f.player(userID), f.gameID, id)
	if err != nil {
		return err
	}
	_, err = f.boards.Submit(f.t.Context(), f.player(userID), f.gameID, leaderboards.TournamentBoard(id),
		leaderboards.SubmitInput{Score: leaderboards.ScoreInput(score), PlayID: a.PlayID}, idempotency.Receipt{})
	return err
}

// pollBoards leads tournaments and boards until the season of the tournament is sealed.
func (f *fixture) pollBoards(t *testing.T, id int64) {
	t.Helper()
	redistest.Eventually(t, "the season is sealed", func() bool {
		f.lead()
		if err := f.boards.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		seasons, _, err := f.boards.ListSeasons(t.Context(), operator, f.gameID, leaderboards.TournamentBoard(id), 2, 1)
		return err == nil && len(seasons) == 1 && seasons[0].Status == leaderboards.SeasonSealed
	})
}

func TestAScoreTournamentPaysTheBestScores(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.score(nil))
		f.enter(id, 1, 2, 3, 4)
		wantCode(t, f.attempt(id, 1, "5"), apierror.TournamentClosed)
		f.leadUntil(t, id, Running)
		for _, played := range []struct {
			userID int64
			score  string
		}{{1, "10"}, {2, "30"}, {1, "20"}, {3, "40"}} {
			if err := f.attempt(id, played.userID, played.score); err != nil {
				t.Fatalf("player %d: %v", played.userID, err)
			}
		}
		wantCode(t, f.attempt(id, 1, "90"), apierror.AttemptsUsedUp)
		wantCode(t, f.attempt(id, 9, "90"), apierror.NotEntrant)
		board := leaderboards.TournamentBoard(id)
		_, err := f.boards.StartPlay(t.Context(), f.player(4), f.gameID, board)
		wantCode(t, err, apierror.Forbidden)
		server := principal.Caller{Role: principal.Server, GameID: f.gameID}
		_, err = f.boards.Submit(t.Context(), server, f.gameID, board,
			leaderboards.SubmitInput{UserID: 9, Score: "99"}, idempotency.Receipt{}) // of nobody who entered
		if err == nil {
			_, err = f.Disqualify(t.Context(), operator, f.gameID, id, 3, idempotency.Receipt{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if list := f.standings(id); len(list) != 2 || list[0].User.ID != 2 || list[0].Points.Units != 30 {
			t.Errorf("%+v", list)
		}
		f.check()
		f.pollBoards(t, id)
		v := f.leadUntil(t, id, Finished)
		if v.PotUnits != 1000 || v.RakeUnits != 50 {
			t.Errorf("%+v", v)
		}
		// Player 9, who never entered, and player 3, who is disqualified, are in front of them on the
		// board. They have no place, on any page, and take none.
		var places []string
		for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
			page, next, err := f.Standings(t.Context(), operator, f.gameID, id, cursor, 1)
			if err != nil || pages > 4 {
				t.Fatal(pages, err)
			}
			for _, s := range page {
				places = append(places, fmt.Sprintf("%d: %d %s", s.Place, s.User.ID, *s.Units))
			}
			cursor = next
		}
		if want := []string{"1: 2 665", "2: 1 285"}; !slices.Equal(places, want) {
			t.Errorf("the standings are %v; want %v", places, want)
		}
		for _, cursor := range []string{"x", "-1:x", "1:x", "x:"} {
			_, _, err := f.Standings(t.Context(), operator, f.gameID, id, cursor, 1)
			wantCode(t, err, apierror.InvalidRequest)
		}
		entrants, _, err := f.Entrants(t.Context(), operator, f.gameID, id, "", 10)
		if err != nil || *entrants[0].Place != 2 || *entrants[1].Place != 1 || *entrants[1].Units != 665 ||
			entrants[2].Place != nil || *entrants[2].Units != 0 || entrants[2].Status != EntrantDisqualified {
			t.Errorf("%+v, %v", entrants, err)
		}
		f.wantBalance(2, 750+665, 0) // 70 % of 950
		f.wantBalance(1, 750+285, 0)
		f.wantBalance(3, 750, 0)
		f.check()
		wantCode(t, f.attempt(id, 4, "90"), apierror.TournamentClosed)
	})
}

func TestAScoreTournamentThatNobodyPlaysReturnsTheFees(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.score(nil))
		f.enter(id, 1, 2)
		f.leadUntil(t, id, Running)
		f.pollBoards(t, id)
		f.leadUntil(t, id, Cancelled)
		f.wantUnplayed(id, 1, 2)
	})
}
