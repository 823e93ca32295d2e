package leader_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// recorder is a handler that keeps the games of each call.
type recorder struct {
	calls      [][]int64
	fences     []int64
	unfinished []int64
	err        error
}

func (r *recorder) handle(_ context.Context, fence int64, games []int64) ([]int64, error) {
	r.calls, r.fences = append(r.calls, slices.Clone(games)), append(r.fences, fence)
	return r.unfinished, r.err
}

func (r *recorder) want(t *testing.T, w *leader.Work, games ...int64) {
	t.Helper()
	before := len(r.calls)
	err := w.RunOnce(t.Context())
	if !errors.Is(err, r.err) {
		t.Fatalf("%v; want %v", err, r.err)
	}
	var got []int64
	if len(r.calls) > before {
		got = r.calls[before]
	}
	if !slices.Equal(got, games) {
		t.Fatalf("looked at the games %v; want %v", got, games)
	}
}

func TestTheLeaderLooksAtEveryGameOnceAndThenAtThoseThatChanged(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), 3, 0).Err())
		var here, there recorder
		first := leader.New(db, "test", leader.EndsNothing, here.handle)
		second := leader.New(db, "test", leader.EndsNothing, there.handle)
		first.Changed(2)
		here.want(t, first, 1, 2, 3)
		here.want(t, first) // nothing has changed
		second.Changed(2)
		second.Changed(1)
		there.want(t, second, 1, 2) // another node leads, without a look at every game
		second.Changed(3)
		there.unfinished = []int64{3}
		there.want(t, second, 3)
		here.want(t, first, 3) // what one leader did not finish, the next one goes on with
		here.want(t, first)
		if !slices.IsSorted(append(there.fences, here.fences[1])) {
			t.Errorf("the fences %v and %v do not grow", there.fences, here.fences)
		}
	})
}

func TestWorkThatFailedIsDoneAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		r := recorder{err: errors.New("out of order")}
		w := leader.New(db, "test", leader.EndsNothing, r.handle)
		w.Changed(7)
		r.want(t, w, 7)
		r.want(t, w, 7)
		r.err = nil
		r.want(t, w, 7)
		r.want(t, w)
	})
}

func TestTheNextLeaderGoesOnWithTheGamesOfOneThatDied(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		ctx, die := context.WithCancel(t.Context())
		first := leader.New(db, "test", leader.EndsNothing, func(context.Context, int64, []int64) ([]int64, error) {
			die()
			return nil, ctx.Err()
		})
		first.Changed(7)
		if err := first.RunOnce(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		db.Client.Del(t.Context(), keys.Lock("test")) // as its lease is over
		var r recorder
		second := leader.New(db, "test", leader.EndsNothing, r.handle)
		second.Changed(8)
		r.want(t, second, 7, 8)
		r.want(t, second)
	})
}

func TestOneNodeLeadsAtATime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		var inner recorder
		other := leader.New(db, "test", leader.EndsNothing, inner.handle)
		w := leader.New(db, "test", leader.EndsNothing, func(ctx context.Context, _ int64, _ []int64) ([]int64, error) {
			other.Changed(9)
			return nil, other.RunOnce(ctx)
		})
		w.Changed(8)
		testkit.Check(t, w.RunOnce(t.Context()))
		if len(inner.calls) > 0 {
			t.Errorf("two leaders at once: the second one looked at %v", inner.calls)
		}
		if named := db.Client.SIsMember(t.Context(), keys.GamesWithWork("test"), strconv.Itoa(9)).Val(); !named {
			t.Error("the game that was named meanwhile is lost")
		}
	})
}
