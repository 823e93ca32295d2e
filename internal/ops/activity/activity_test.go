package activity_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parlor-games/parlor/internal/ops/activity"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestSamplesSayWhatWasGoingOnInEachGameAndAreBounded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		ctx := t.Context()
		rooms := map[int64]int{1: 2}
		s := activity.New(db, activity.Games{
			List: func(_ context.Context, after int64, _ int) ([]int64, int64, error) {
				return []int64{after + 1}, (after + 1) % 2, nil // two pages
			},
			CountOpen: func(_ context.Context, id int64) (int, int, error) { return rooms[id], 2 * rooms[id], nil },
		})
		testkit.Check(t, db.Client.HSet(ctx, keys.Totals(1), "escrow:GOLD", "500", "escrow:GEM", "0", "house:GOLD", "7",
			"escrow:ADA", "9007199254740993").Err())

		testkit.Check(t, s.SampleAll(ctx))
		testkit.Check(t, db.Client.Del(ctx, keys.Totals(1)).Err())
		rooms = nil
		testkit.Check(t, s.SampleAll(ctx))

		anyTime := cmpopts.IgnoreFields(activity.Sample{}, "At")
		got := testkit.Must(s.Recent(ctx, 1))(t)
		want := []activity.Sample{
			{Rooms: 2, Players: 4, Pots: []activity.Pot{{"ADA", 9007199254740993}, {"GOLD", 500}}},
			{},
		}
		if diff := cmp.Diff(want, got, anyTime); diff != "" {
			t.Error(diff)
		}
		if time.Since(got[0].At) > time.Minute || got[1].At.Before(got[0].At) {
			t.Errorf("times %v, %v", got[0].At, got[1].At)
		}
		if n := db.Client.Exists(ctx, keys.GameActivity(2)).Val(); n != 0 {
			t.Error("a game that nobody plays has samples")
		}
		if left := db.Client.TTL(ctx, keys.GameActivity(1)).Val(); left <= 24*time.Hour || left > 25*time.Hour {
			t.Errorf("the samples are kept for %v", left)
		}

		for i := range 300 { // of an older release, or by hand: never more than a day
			testkit.Check(t, db.Client.LPush(ctx, keys.GameActivity(1), strconv.Itoa(i)+"|0|0|").Err())
		}
		testkit.Check(t, s.SampleAll(ctx))
		if n := len(testkit.Must(s.Recent(ctx, 1))(t)); n != 288 {
			t.Errorf("%d samples are kept", n)
		}
	})
}

func TestAFaultyGameHidesTheSamplesOfNoOther(t *testing.T) {
	db, ctx := redistest.Single(t), t.Context()
	fault := errors.New("cannot be counted")
	s := activity.New(db, activity.Games{
		List: func(context.Context, int64, int) ([]int64, int64, error) { return []int64{1, 2}, 0, nil },
		CountOpen: func(_ context.Context, id int64) (int, int, error) {
			if id == 1 {
				return 0, 0, fault
			}
			return 1, 2, nil
		},
	})
	if err := s.SampleAll(ctx); !errors.Is(err, fault) {
		t.Errorf("the error is %v", err)
	}
	if n := len(testkit.Must(s.Recent(ctx, 2))(t)); n != 1 {
		t.Errorf("game 2 has %d samples", n)
	}
}

func TestOneNodeTakesTheSamplesOfAnInterval(t *testing.T) {
	db, ctx, taken := redistest.Single(t), t.Context(), 0
	games := activity.Games{List: func(context.Context, int64, int) ([]int64, int64, error) {
		taken++
		return nil, 0, nil
	}}
	for range 3 { // nodes
		testkit.Check(t, activity.New(db, games).SampleInTurn(ctx))
	}
	left := db.Client.PTTL(ctx, keys.Lock("activity")).Val()
	if taken != 1 || left >= activity.Interval || left < activity.Interval*3/4 {
		t.Errorf("%d nodes took samples, and the next one may in %v", taken, left)
	}
}
