package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var (
	oldKey = []byte("an old signing key of thirty-two bytes")
	newKey = []byte("a new signing key of thirty-two bytes!")
	first  = idempotency.Response{Status: 201, Header: http.Header{"X-A": {"b"}}, Body: []byte(`{"refreshToken":"prt_very_secret"}`)}
)

func begin(t *testing.T, s *idempotency.Service, who, key, fingerprint string) *idempotency.Execution {
	t.Helper()
	run, kept, err := s.Begin(t.Context(), who, key, fingerprint)
	if err != nil || kept != nil {
		t.Fatalf("begin: %+v, %v", kept, err)
	}
	return run
}

func refused(t *testing.T, s *idempotency.Service, who, key, fingerprint string, want error) {
	t.Helper()
	if run, kept, err := s.Begin(t.Context(), who, key, fingerprint); !errors.Is(err, want) || run != nil || kept != nil {
		t.Errorf("begin: %v %+v %v, want %v", run, kept, err, want)
	}
}

func TestTheFirstAnswerIsKeptSealed(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		run := begin(t, s, "ip:2001:db8::/64", "my-key", "fp")
		refused(t, s, "ip:2001:db8::/64", "my-key", "fp", apierror.RequestInProgress)
		refused(t, s, "ip:2001:db8::/64", "my-key", "other", apierror.IdempotencyKeyReused)
		if err := run.Finish(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		rotated := idempotency.New(db, [][]byte{newKey, oldKey}, idempotency.Options{}) // another node, after a rotation
		for range 2 {
			_, kept, err := rotated.Begin(t.Context(), "ip:2001:db8::/64", "my-key", "fp")
			if err != nil || kept == nil || kept.Status != 201 || string(kept.Body) != string(first.Body) || kept.Header.Get("X-A") != "b" {
				t.Errorf("replayed %+v, %v", kept, err)
			}
		}
		refused(t, rotated, "ip:2001:db8::/64", "my-key", "other", apierror.IdempotencyKeyReused)
		refused(t, idempotency.New(db, [][]byte{newKey}, idempotency.Options{}), "ip:2001:db8::/64", "my-key", "fp", apierror.OutcomeUnknown)
		begin(t, s, "u1", "my-key", "fp") // another's key of the same name
		begin(t, s, "ip:2001:db8::/64", "my-key-2", "fp")

		text, ttl := redistest.Dump(t, db), longestLife(t, db)
		for _, secret := range []string{"very_secret", "refreshToken", "my-key"} {
			if strings.Contains(text, secret) {
				t.Errorf("the store holds %q", secret)
			}
		}
		if ttl < 24*time.Hour-time.Minute {
			t.Errorf("the answer is kept %v", ttl)
		}
	})
}

func TestOneOfManyRuns(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		var ran, replayed, waited atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				run, kept, err := s.Begin(t.Context(), "u1", "k", "fp")
				switch {
				case run != nil:
					ran.Add(1)
					if err := run.Finish(t.Context(), first); err != nil {
						t.Error(err)
					}
				case kept != nil:
					replayed.Add(1)
				case errors.Is(err, apierror.RequestInProgress):
					waited.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if ran.Load() != 1 || replayed.Load()+waited.Load() != 99 {
			t.Errorf("%d ran, %d replayed, %d waited", ran.Load(), replayed.Load(), waited.Load())
		}
	})
}

func TestAReleasedKeyIsFree(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		run := begin(t, s, "u1", "k", "fp")
		if err := run.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := begin(t, s, "u1", "k", "other")
		if err := run.Release(t.Context()); err != nil { // late: it is not this run's any more
			t.Fatal(err)
		}
		refused(t, s, "u1", "k", "other", apierror.RequestInProgress)
		if err := again.Finish(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := again.Release(t.Context()); err != nil { // what is kept is not forgotten
			t.Fatal(err)
		}
		if _, kept, err := s.Begin(t.Context(), "u1", "k", "other"); err != nil || kept == nil {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

func TestARunThatDiedIsForgottenWithItsLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{Lease: 100 * time.Millisecond})
		died := begin(t, s, "u1", "k", "fp")
		var again *idempotency.Execution
		for deadline := time.Now().Add(5 * time.Second); again == nil; {
			run, _, err := s.Begin(t.Context(), "u1", "k", "fp")
			if err != nil && !errors.Is(err, apierror.RequestInProgress) || time.Now().After(deadline) {
				t.Fatalf("the lease does not end: %v", err)
			}
			again = run
		}
		if err := again.Finish(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := died.Finish(t.Context(), idempotency.Response{Status: 500}); err == nil {
			t.Error("a run that was slower than its lease overwrote the answer")
		}
		if _, kept, err := s.Begin(t.Context(), "u1", "k", "fp"); err != nil || kept.Status != 201 {
			t.Errorf("%+v, %v", kept, err)
		}
	})
}

// go-redis sends a script again when its reply was lost.
func TestAResendOfOneBeginIsTheSameRun(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, call := range []struct{ owner, want string }{{"a", "ok"}, {"a", "ok"}, {"b", "request_in_progress"}} {
			word, _, err := db.Run(t.Context(), scripts.IdempotencyBegin, []string{"{i:u1}:answer:x"}, "fp", call.owner, 60_000)
			if err != nil || word != call.want {
				t.Errorf("%s: %s, %v", call.owner, word, err)
			}
		}
	})
}

// longestLife is the longest time that any key has to live.
func longestLife(t *testing.T, db *redisdb.DB) time.Duration {
	t.Helper()
	var longest time.Duration
	redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
		names, err := server.Keys(ctx, "*").Result()
		for _, name := range names {
			longest = max(longest, server.PTTL(ctx, name).Val())
		}
		return err
	})
	return longest
}
