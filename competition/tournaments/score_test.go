package tournaments

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// score returns a paid score tournament that starts soon and lasts for a second.
func (f *fixture) score(change func(in *CreateInput)) CreateInput {
	start := time.Now().Add(300 * time.Millisecond)
	in := CreateInput{
		Name: "Race", Format: FormatScore, EntryTokenID: f.token.ID, EntryFee: "2.50", MaxEntrants: 100,
		StartsAt: &start, EndsAt: new(start.Add(time.Second)), Payout: []int{7000, 3000}, Attempts: new(2),
		Board: &BoardInput{
			Writers: leaderboards.Writers{leaderboards.WriterServer, leaderboards.WriterPlayers},
			Rules:   &leaderboards.Rules{Max: new(leaderboards.ScoreInput("1000")), Play: true},
		},
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
		testkit.Check(t, f.boards.RunOnce(t.Context()))
		seasons, _, err := f.boards.ListSeasons(t.Context(), operator, f.gameID, leaderboards.TournamentBoard(id), 2, 1)
		return err == nil && len(seasons) == 1 && seasons[0].Status == leaderboards.SeasonSealed
	})
}

func TestAScoreTournamentPaysTheBestScores(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.score(nil))
		f.enter(id, 1, 2, 3, 4)
		testkit.WantError(t, f.attempt(id, 1, "5"), apierror.TournamentClosed)
		f.leadUntil(t, id, Running)
		for _, played := range []struct {
			userID int64
			score  string
		}{{1, "10"}, {2, "30"}, {1, "20"}, {3, "40"}} {
			testkit.Check(t, f.attempt(id, played.userID, played.score), "player %d", played.userID)
		}
		testkit.WantError(t, f.attempt(id, 1, "90"), apierror.AttemptsUsedUp)
		testkit.WantError(t, f.attempt(id, 9, "90"), apierror.NotEntrant)
		board := leaderboards.TournamentBoard(id)
		testkit.Fails(f.boards.StartPlay(t.Context(), f.player(4), f.gameID, board))(t, apierror.Forbidden)
		server := f.people.Server()
		_, err := f.boards.Submit(t.Context(), server, f.gameID, board,
			leaderboards.SubmitInput{UserID: 9, Score: "99"}, idempotency.Receipt{}) // of nobody who entered
		if err == nil {
			_, err = f.Disqualify(t.Context(), operator, f.gameID, id, 3, idempotency.Receipt{})
		}
		testkit.Check(t, err)
		if list := f.standings(id); len(list) != 2 || list[0].User.ID != 2 || list[0].Points.Units != 30 {
			t.Errorf("%+v", list)
		}
		f.money.Audit()
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
			testkit.WantError(t, err, apierror.InvalidRequest)
		}
		entrants, _, err := f.Entrants(t.Context(), operator, f.gameID, id, "", 10)
		if err != nil || *entrants[0].Place != 2 || *entrants[1].Place != 1 || *entrants[1].Units != 665 ||
			entrants[2].Place != nil || *entrants[2].Units != 0 || entrants[2].Status != EntrantDisqualified {
			t.Errorf("%+v, %v", entrants, err)
		}
		f.money.WantBalance(2, 750+665, 0) // 70 % of 950
		f.money.WantBalance(1, 750+285, 0)
		f.money.WantBalance(3, 750, 0)
		f.money.Audit()
		testkit.WantError(t, f.attempt(id, 4, "90"), apierror.TournamentClosed)
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

// An entrant cannot send a score, nor keep a play, where the game's server writes.
func TestOnlyTheServerSendsScoresUnlessStaffNamesPlayers(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.score(func(in *CreateInput) { in.Board, in.Attempts = nil, new(1) }))
	f.enter(id, 1, 2)
	f.leadUntil(t, id, Running)
	testkit.WantError(t, f.attempt(id, 1, "4503599627370495"), apierror.Forbidden)
	board, server := leaderboards.TournamentBoard(id), f.people.Server()
	testkit.WantError(t, f.attempt(id, 1, "5"), apierror.AttemptsUsedUp)
	testkit.Must(f.boards.Submit(t.Context(), server, f.gameID, board,
		leaderboards.SubmitInput{UserID: 2, Score: "7"}, idempotency.Receipt{}))(t)
	if list := f.standings(id); len(list) != 1 || list[0].User.ID != 2 {
		t.Errorf("%+v", list)
	}
}

// What a score of a player may be is bounded where it may win money.
func TestAScoreBeyondTheBoundOfAPaidTournamentIsRejected(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.score(nil))
	f.enter(id, 1, 2)
	f.leadUntil(t, id, Running)
	testkit.WantError(t, f.attempt(id, 1, "4503599627370495"), apierror.ScoreRejected)
	testkit.Check(t, f.attempt(id, 1, "1000"))
}

// A tournament of a build that stored no writers took scores of players: it does so on where they
// are bounded or nothing hangs on them.
func TestATournamentOfAnOlderBuildKeepsItsWritersWhereNobodyCanWinByThem(t *testing.T) {
	bounded := &leaderboards.Rules{Max: new(leaderboards.ScoreInput("9"))}
	for name, c := range map[string]struct {
		definition Definition
		want       bool
	}{
		"free":             {Definition{Board: &BoardSet{}}, true},
		"paid":             {Definition{Board: &BoardSet{}, EntryFeeUnits: 1}, false},
		"paid and bounded": {Definition{Board: &BoardSet{Rules: bounded}, EntryFeeUnits: 1}, true},
		"a bound of what is worse": {
			Definition{Board: &BoardSet{Order: leaderboards.Ascending, Rules: bounded}, EntryFeeUnits: 1}, false,
		},
	} {
		if got := c.definition.playersMayWrite(); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// A play is a key that stays: an attempt that is refused leaves none.
func TestARefusedAttemptLeavesNoPlay(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.score(nil))
	f.enter(id, 1, 2)
	f.leadUntil(t, id, Running)
	testkit.Fails(f.StartAttempt(t.Context(), f.player(9), f.gameID, id))(t, apierror.NotEntrant)
	at := keys.NewBoardShard(f.gameID, leaderboards.TournamentBoard(id), 0)
	if listed, err := f.db.Client.LLen(t.Context(), keys.BoardPlays(at, 9)).Result(); err != nil || listed != 0 {
		t.Errorf("%d plays are listed, %v", listed, err)
	}
	plays, _, err := f.db.Client.Scan(t.Context(), 0, keys.BoardPlay(at, "*"), 100_000).Result()
	if err != nil || len(plays) != 0 {
		t.Errorf("it leaves %v, %v", plays, err)
	}
	testkit.Must(f.StartAttempt(t.Context(), f.player(1), f.gameID, id))(t)
	if listed := f.db.Client.LLen(t.Context(), keys.BoardPlays(at, 1)).Val(); listed != 1 {
		t.Errorf("an entrant has %d plays", listed)
	}
}

// Who does not check in has the fee back and does not play: a score that the game's server sends of
// them all the same has no place.
func TestWhoDidNotCheckInWinsNoScoreTournament(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.score(func(in *CreateInput) {
		in.Board, in.Attempts = nil, nil
		in.CheckInOpensAt = new(time.Now().Add(50 * time.Millisecond))
	}))
	f.enter(id, 1, 2, 3)
	f.leadUntil(t, id, CheckIn)
	for _, userID := range []int64{1, 2} {
		testkit.Must(f.CheckIn(t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}))(t)
	}
	f.leadUntil(t, id, Running)
	f.lead()
	f.money.WantBalance(3, 1000, 0)
	server := f.people.Server()
	for userID, score := range map[int64]leaderboards.ScoreInput{1: "10", 2: "20", 3: "30"} {
		testkit.Must(f.boards.Submit(t.Context(), server, f.gameID, leaderboards.TournamentBoard(id),
			leaderboards.SubmitInput{UserID: userID, Score: score}, idempotency.Receipt{}))(t)
	}
	if list := f.standings(id); len(list) != 2 || list[0].User.ID != 2 {
		t.Errorf("%+v", list)
	}
	f.pollBoards(t, id)
	f.leadUntil(t, id, Finished)
	f.money.WantBalance(3, 1000, 0)
	f.money.Audit()
}

// A server key does not delete the board of a tournament, but a tournament that has ended with it.
func TestAServerKeyDeletesAScoreTournamentThatHasEnded(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.score(nil))
	f.enter(id, 1, 2)
	f.leadUntil(t, id, Running)
	server, board := f.people.Server(), leaderboards.TournamentBoard(id)
	testkit.WantError(t, f.boards.Delete(t.Context(), server, f.gameID, board), apierror.Forbidden)
	testkit.WantError(t, f.Delete(t.Context(), server, f.gameID, id), apierror.Forbidden)
	testkit.Must(f.Cancel(t.Context(), server, f.gameID, id, idempotency.Receipt{}))(t)
	f.leadUntil(t, id, Cancelled)
	testkit.Check(t, f.Delete(t.Context(), server, f.gameID, id))
	testkit.Fails(f.boards.Get(t.Context(), operator, f.gameID, board))(t, apierror.BoardNotFound)
}
