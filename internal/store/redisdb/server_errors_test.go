package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// serverError is an error as go-redis makes one of a reply.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

var _ redis.Error = serverError("")

func TestEveryErrorOfAServerThatDoesNotServeIsTemporary(t *testing.T) {
	ofDriver := []string{"redis: all sentinels specified in configuration are unreachable", "redis: cluster has no nodes"}
	texts := slices.Concat(redistest.ServerErrors, redistest.ClusterErrors, ofDriver)
	for _, text := range texts {
		want := apierror.StoreUnavailable
		if strings.HasPrefix(text, "OOM") || strings.Contains(text, ": OOM ") {
			want = apierror.StoreFull
		}
		for _, err := range []error{errors.New(text), fmt.Errorf("dial: %w", serverError(text))} {
			testkit.WantError(t, redisdb.WrapError("x", err), want, "%v is", err)
		}
	}
	for _, start := range redisdb.ServerErrorStarts() {
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, start) }) {
			t.Errorf("no server is known to return %q", start)
		}
	}
	for _, text := range []string{
		"WRONGTYPE Operation against a key holding the wrong kind of value", "BUSYGROUP Consumer Group name already exists",
		"BUSYKEY Target key name already exists.", "ERR value is not an integer or out of range", "ERR syntax error",
		"CROSSSLOT Keys in request don't hash to the same slot", "ERR wrong number of arguments for 'get' command",
		"ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: 1, on @user_script:1.",
	} {
		err := redisdb.WrapError("x", serverError(text))
		if errors.Is(err, apierror.StoreUnavailable) || errors.Is(err, apierror.StoreFull) {
			t.Errorf("%s is %v, but a defect", text, err)
		}
	}
}

// A server that got a password refuses a command of more than ten arguments before it reads the
// arguments, in other words than a short one.
func TestAPasswordThatCameLaterIsStoreUnavailableToEveryScript(t *testing.T) {
	server := redistest.StartForTest(t)
	admin := redistest.Dial(t, server)
	testkit.Check(t, admin.ConfigSet(t.Context(), "requirepass", "secret").Err())
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	defer func() { _ = db.Close() }()
	for count := range 20 {
		args := slices.Repeat([]any{"1"}, count)
		testkit.Fails(db.RunScript(context.WithoutCancel(t.Context()), scripts.TotalsRead, []string{"{e:1}:a"}, args...))(
			t, apierror.StoreUnavailable, "a script with %d arguments returns", count)
	}
}
