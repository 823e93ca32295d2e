package moneyhalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// sharedLog is the log of several nodes.
type sharedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(text))
}

// run returns the halts as a node knows them that reads them until the test ends.
func run(t *testing.T, db *redisdb.DB, log *sharedLog) *moneyhalt.Service {
	t.Helper()
	s := moneyhalt.New(db, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Report(t, <-ended)
	})
	return s
}

func do(t *testing.T, err error) {
	t.Helper()
	testkit.Check(t, err)
}

func TestEveryNodeKnowsAHaltUntilItsLastCauseIsLifted(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		log, ctx := &sharedLog{}, t.Context()
		a, b := run(t, db, log), run(t, db, log)
		want := func(s *moneyhalt.Service, game int64, cause string) {
			t.Helper()
			redistest.Eventually(t, fmt.Sprintf("game %d is stopped by %q", game, cause), func() bool {
				var e *apierror.Error
				err := s.Check(game)
				return cause == "" && err == nil ||
					errors.As(err, &e) && errors.Is(err, apierror.StoreUnavailable) && e.ExtraMembers["stopped"] == cause
			})
		}
		want(a, 1, "")
		do(t, a.Add(ctx, 1, "first", "a | b"))
		if a.Check(1) == nil {
			t.Error("the node that halts a game does not know it at once")
		}
		want(b, 1, "first")
		want(b, 2, "")
		do(t, b.Add(ctx, 1, "second", "x"))
		do(t, b.Add(ctx, 1, "first", "found again")) // changes nothing
		list := b.List()
		if len(list) != 2 || list[0].Cause != "first" || list[0].Detail != "a | b" || list[0].At.IsZero() ||
			list[1].Cause != "second" || list[0].GameID != 1 {
			t.Errorf("%+v", list)
		}
		if n := log.count("the money of a game is stopped"); n != 2 {
			t.Errorf("two halts were logged %d times", n)
		}
		do(t, a.Lift(ctx, 1, "first"))
		want(b, 1, "second")
		do(t, a.Lift(ctx, 1, "second"))
		do(t, a.Lift(ctx, 1, "second")) // again
		want(a, 1, "")
		want(b, 1, "")

		do(t, a.Add(ctx, moneyhalt.AllGames, "all", "x"))
		want(b, 1, "all")
		want(b, 2, "all")
	})
}

func TestANodeThatCannotReadKeepsWhatItKnows(t *testing.T) {
	db, log := redistest.Single(t), &sharedLog{}
	a := run(t, db, log)
	do(t, a.Add(t.Context(), 1, "first", "x"))
	do(t, db.Client.Set(t.Context(), keys.MoneyHalts(), "no hash", 0).Err())
	redistest.Eventually(t, "it is logged", func() bool { return log.count("cannot be read") == 1 })
	if a.Read(t.Context()) == nil || a.Check(1) == nil || a.Check(2) != nil {
		t.Errorf("%v, %v", a.Check(1), a.Check(2))
	}
	do(t, db.Client.Del(t.Context(), keys.MoneyHalts()).Err())
	redistest.Eventually(t, "it reads again", func() bool { return a.Check(1) == nil })
	do(t, db.Client.HSet(t.Context(), keys.MoneyHalts(), "1:first", "never|x").Err())
	if a.Read(t.Context()) == nil || a.Check(1) != nil {
		t.Error("a halt that cannot be read is no error")
	}
}

// Else a node that has just started would move the money that another one has halted.
func TestANodeKnowsTheHaltsBeforeItMovesMoney(t *testing.T) {
	db, log := redistest.Single(t), slog.New(slog.DiscardHandler)
	do(t, moneyhalt.New(db, log).Add(t.Context(), 1, "first", "x"))
	a := moneyhalt.New(db, log)
	if len(a.List()) != 0 {
		t.Errorf("it has read %v", a.List())
	}
	if err := a.Check(1); !errors.Is(err, apierror.StoreUnavailable) || a.Check(2) != nil {
		t.Errorf("%v, %v", err, a.Check(2))
	}

	// Where the halts cannot be read, nothing moves until they can.
	do(t, db.Client.HSet(t.Context(), keys.MoneyHalts(), "1:first", "never|x").Err())
	b := moneyhalt.New(db, log)
	for _, game := range []int64{1, 2} {
		testkit.WantError(t, b.Check(game), apierror.StoreUnavailable, "game %d", game)
	}
	do(t, db.Client.Del(t.Context(), keys.MoneyHalts()).Err())
	testkit.Report(t, b.Check(1))
}

// heldReply holds the reply of the first HGETALL back until it is released.
type heldReply struct {
	arrived, release chan struct{}
	holding          atomic.Bool
}

func (*heldReply) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*heldReply) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *heldReply) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "hgetall" && h.holding.CompareAndSwap(false, true) {
			close(h.arrived)
			<-h.release
		}
		return err
	}
}

// What was read before a halt was added must not replace what is known since.
func TestAnOldReadDoesNotHideANewHalt(t *testing.T) {
	db, log := redistest.Single(t), &sharedLog{}
	a := moneyhalt.New(db, slog.New(slog.NewTextHandler(log, nil)))
	h := &heldReply{arrived: make(chan struct{}), release: make(chan struct{})}
	db.Client.AddHook(h)
	read, added := make(chan error, 1), make(chan error, 1)
	go func() { read <- a.Read(t.Context()) }()
	<-h.arrived
	go func() { added <- a.Add(t.Context(), 1, "first", "x") }()
	redistest.Eventually(t, "the halt is stored", func() bool {
		return db.Client.HExists(t.Context(), keys.MoneyHalts(), "1:first").Val()
	})
	// One that does not wait for the read that is under way ends within this time.
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	select {
	case err := <-added:
		added <- err
	case <-soon.Done():
	}
	close(h.release)
	do(t, <-read)
	do(t, <-added)
	if a.Check(1) == nil {
		t.Error("the halt is not known after it was added")
	}
}
