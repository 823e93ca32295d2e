package leaderboards

import (
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestTheBoundsOfARuleAreScoresThatMayBe(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{
		Writers: Writers{WriterPlayers}, Decimals: 1,
		Rules: &Rules{Min: new(ScoreInput("-1.5")), Max: new(ScoreInput("100.5"))},
	})
	for i, c := range []struct {
		score string
		want  *apierror.Error
	}{
		{"-1.6", apierror.ScoreRejected},
		{"-1.5", nil},
		{"100.5", nil},
		{"100.6", apierror.ScoreRejected},
	} {
		_, err := f.Submit(t.Context(), f.player(int64(i+1)), f.gameID, "top", SubmitInput{Score: ScoreInput(c.score)},
			idempotency.Receipt{})
		if c.want != nil {
			testkit.WantError(t, err, c.want)
		} else if err != nil {
			t.Errorf("%s: %v", c.score, err)
		}
	}
}

// Who could choose a segment would be first in one where nobody else is.
func TestPlayersDoNotChooseTheirSegments(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{Writers: Writers{WriterPlayers, WriterServer}, Segments: []string{"country"}})
	in := SubmitInput{Score: "5", Segments: map[string]string{"country": "AQ"}}
	_, err := f.Submit(t.Context(), f.player(1), f.gameID, "top", in, idempotency.Receipt{})
	wantError(t, err, apierror.InvalidRequest, "segments")
	in.Segments = map[string]string{}
	_, err = f.Submit(t.Context(), f.player(1), f.gameID, "top", in, idempotency.Receipt{})
	wantError(t, err, apierror.InvalidRequest, "segments")
	if got := f.entries(Scope{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSoManyRiseAndFallAsTheLeagueSays(t *testing.T) {
	const players = 10
	league := League{Size: players, Tiers: []string{"a", "b", "c"}, Promote: 2, Relegate: 3}
	for rank := range int64(players) {
		want := 1
		switch rank {
		case 0, 1:
			want = 2
		case 7, 8, 9:
			want = 0
		}
		if got := league.nextTier(1, rank, players); got != want {
			t.Errorf("rank %d of %d goes to tier %d; want %d", rank, players, got, want)
		}
	}
	for rank, want := range []int{2, 2, 0} { // who does both rises
		if got := league.nextTier(1, int64(rank), 3); got != want {
			t.Errorf("rank %d of 3 goes to tier %d; want %d", rank, got, want)
		}
	}
	still := League{Size: players, Tiers: league.Tiers}
	for rank := range int64(players) {
		if got := still.nextTier(1, rank, players); got != 1 {
			t.Errorf("rank %d of a league without changes goes to tier %d", rank, got)
		}
	}
}
