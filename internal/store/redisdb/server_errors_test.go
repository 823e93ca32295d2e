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
			if got := redisdb.WrapError("x", err); !errors.Is(got, want) {
				t.Errorf("%v is %v, want %v", err, got, want.Code)
			}
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
	server := redistest.StartFor(t)
	admin := redistest.Dial(t, server)
	if err := admin.ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	db, err := redisdb.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for count := range 20 {
		args := slices.Repeat([]any{"1"}, count)
		_, err := db.RunScript(context.WithoutCancel(t.Context()), scripts.TotalsRead, []string{"{e:1}:a"}, args...)
		if !errors.Is(err, apierror.StoreUnavailable) {
			t.Errorf("a script with %d arguments returns %v", count, err)
		}
	}
}
