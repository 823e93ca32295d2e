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

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

var (
	oldKey = []byte("an old signing key of thirty-two bytes")
	newKey = []byte("a new signing key of thirty-two bytes!")
	first  = idempotency.Response{
		Status: 201,
		Header: http.Header{"X-A": {"b"}, "X-None": nil},
		Body:   []byte(`{"refreshToken":"prt_very_secret"}`),
	}
)

func begin(t *testing.T, s *idempotency.Service, caller, key, fingerprint string) *idempotency.Execution {
	t.Helper()
	execution, stored, err := s.Begin(t.Context(), caller, key, fingerprint)
	if err != nil || stored != nil {
		t.Fatalf("begin: %+v, %v", stored, err)
	}
	return execution
}

func wantError(t *testing.T, s *idempotency.Service, caller, key, fingerprint string, want error) {
	t.Helper()
	execution, stored, err := s.Begin(t.Context(), caller, key, fingerprint)
	if !errors.Is(err, want) || execution != nil || stored != nil {
		t.Errorf("begin: %v %+v %v, want %v", execution, stored, err, want)
	}
}

func TestTheFirstResponseIsStoredEncrypted(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		const caller = "ip:2001:db8::/64"
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		execution := begin(t, s, caller, "my-key", "fp")
		wantError(t, s, caller, "my-key", "fp", apierror.RequestInProgress)
		wantError(t, s, caller, "my-key", "other", apierror.IdempotencyKeyReused)
		testkit.Check(t, execution.Finish(t.Context(), first))
		rotated := idempotency.New(db, [][]byte{newKey, oldKey}, idempotency.Options{}) // another node, after a rotation
		for range 2 {
			_, stored, err := rotated.Begin(t.Context(), caller, "my-key", "fp")
			if err != nil || stored == nil || stored.Status != 201 || string(stored.Body) != string(first.Body) ||
				stored.Header.Get("X-A") != "b" || stored.Header["X-None"] != nil {
				t.Errorf("replayed %+v, %v", stored, err)
			}
		}
		wantError(t, rotated, caller, "my-key", "other", apierror.IdempotencyKeyReused)
		withoutOldKey := idempotency.New(db, [][]byte{newKey}, idempotency.Options{})
		wantError(t, withoutOldKey, caller, "my-key", "fp", apierror.OutcomeUnknown)
		begin(t, s, "u1", "my-key", "fp") // the same key of another caller
		begin(t, s, caller, "my-key-2", "fp")

		text, ttl := redistest.Dump(t, db), longestTTL(t, db)
		for _, secret := range []string{"very_secret", "refreshToken", "my-key"} {
			if strings.Contains(text, secret) {
				t.Errorf("the store contains %q", secret)
			}
		}
		if ttl < 24*time.Hour-time.Minute {
			t.Errorf("the response is stored for %v", ttl)
		}
	})
}

// Who can write to the store must not get another caller's response by copying its record.
func TestAStoredResponseIsBoundToItsRequest(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		testkit.Check(t, begin(t, s, "u1", "k", "fp").Finish(t.Context(), first))
		record, err := db.Client.HGetAll(t.Context(), keys.StoredResponse("u1", secret.Digest("k"))).Result()
		if err != nil || len(record) == 0 {
			t.Fatalf("%v, %v", record, err)
		}
		for name, other := range map[string]struct{ caller, key, fingerprint string }{
			"another caller":  {"u2", "k", "fp"},
			"another key":     {"u1", "k2", "fp"},
			"another request": {"u1", "k", "fp2"},
		} {
			record["fp"] = other.fingerprint
			copied := keys.StoredResponse(other.caller, secret.Digest(other.key))
			testkit.Check(t, db.Client.HSet(t.Context(), copied, record).Err())
			execution, stored, err := s.Begin(t.Context(), other.caller, other.key, other.fingerprint)
			if !errors.Is(err, apierror.OutcomeUnknown) || execution != nil || stored != nil {
				t.Errorf("%s: %+v, %v", name, stored, err)
			}
		}
	})
}

func TestOneOfManyIsExecuted(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		var executed, replayed, inProgress atomic.Int32
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				execution, stored, err := s.Begin(t.Context(), "u1", "k", "fp")
				switch {
				case execution != nil:
					executed.Add(1)
					testkit.Report(t, execution.Finish(t.Context(), first))
				case stored != nil:
					replayed.Add(1)
				case errors.Is(err, apierror.RequestInProgress):
					inProgress.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if executed.Load() != 1 || replayed.Load()+inProgress.Load() != 99 {
			t.Errorf("%d executed, %d replayed, %d in progress", executed.Load(), replayed.Load(), inProgress.Load())
		}
	})
}

func TestAReleasedKeyCanBeUsedAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{})
		execution := begin(t, s, "u1", "k", "fp")
		testkit.Check(t, execution.Release(t.Context()))
		again := begin(t, s, "u1", "k", "other")
		testkit.Check(t, execution.Release(t.Context())) // late: another execution has the key
		wantError(t, s, "u1", "k", "other", apierror.RequestInProgress)
		testkit.Check(t, again.Finish(t.Context(), first))
		testkit.Check(t, again.Release(t.Context())) // a stored response is not forgotten
		if _, stored, err := s.Begin(t.Context(), "u1", "k", "other"); err != nil || stored == nil {
			t.Errorf("%+v, %v", stored, err)
		}
	})
}

func TestAnExecutionThatDiedIsForgottenAfterItsLease(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := idempotency.New(db, [][]byte{oldKey}, idempotency.Options{ExecutionLease: 100 * time.Millisecond})
		died := begin(t, s, "u1", "k", "fp")
		var again *idempotency.Execution
		redistest.Eventually(t, "the lease has ended", func() bool {
			execution, _, err := s.Begin(t.Context(), "u1", "k", "fp")
			if err != nil && !errors.Is(err, apierror.RequestInProgress) {
				t.Fatal(err)
			}
			again = execution
			return again != nil
		})
		testkit.Check(t, again.Finish(t.Context(), first))
		if err := died.Finish(t.Context(), idempotency.Response{Status: 500}); err == nil {
			t.Error("an execution that was slower than its lease overwrote the response")
		}
		if _, stored, err := s.Begin(t.Context(), "u1", "k", "fp"); err != nil || stored.Status != 201 {
			t.Errorf("%+v, %v", stored, err)
		}
	})
}

// go-redis sends a script again when its reply was lost.
func TestAResendOfOneBeginIsTheSameExecution(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, call := range []struct{ owner, want string }{
			{"a", scripts.OK}, {"a", scripts.OK}, {"b", apierror.RequestInProgress.Code},
		} {
			reply, err := db.RunScript(
				t.Context(),
				scripts.IdempotencyBegin,
				[]string{keys.StoredResponse("u1", "x")},
				"fp",
				call.owner,
				60_000,
			)
			if err != nil || reply.Status != call.want {
				t.Errorf("%s: %s, %v", call.owner, reply.Status, err)
			}
		}
	})
}

// longestTTL returns the longest time to live of any key.
func longestTTL(t *testing.T, db *redisdb.DB) time.Duration {
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
