package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// TestANodeThatStartsWhileTheLayoutRisesSeesIt raises the layout at the last moment: when the node
// is about to report, so that whoever raised it did not see the node.
func TestANodeThatStartsWhileTheLayoutRisesSeesIt(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes")
	n := newServingNode(t, server)
	client := redistest.Dial(t, server)
	raise := sync.OnceFunc(func() {
		client.HSet(t.Context(), keys.Meta(), keys.MetaLayoutField, redisdb.NewestLayout()+1)
	})
	redistest.ObserveCommands(n.db, func(commands []redis.Cmder) {
		if first := commands[0]; first.Name() == "hset" && first.Args()[1] == keys.Nodes() {
			raise()
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var unmet redisdb.RequirementError
	if err := n.monitor.Run(ctx); !errors.As(err, &unmet) || !strings.Contains(err.Error(), "the release that raised it") {
		t.Errorf("the node ends with %v", err)
	}
	if reports := client.HLen(t.Context(), keys.Nodes()).Val(); reports != 0 {
		t.Errorf("a node that did not start left %d reports", reports)
	}
}

func TestAnUpgradeIsCheckedAndFinishedByCommands(t *testing.T) {
	n := startSeeded(t)
	player := n.player(t, "1")
	db := testkit.Must(redisdb.Open(n.store))(t)
	t.Cleanup(func() { _ = db.Close() })
	set := func(key, field, value string) {
		t.Helper()
		testkit.Check(t, db.Client.HSet(t.Context(), key, field, value).Err())
	}
	newest := redisdb.NewestLayout()
	wantTool := func(status int, want string, args ...string) {
		t.Helper()
		if got, out := n.tool(t, args...); got != status || !strings.Contains(out, want) {
			t.Errorf("%v exits %d:\n%swant %d and %q", args, got, out, status, want)
		}
	}
	wantTool(0, "reads up to layout "+strconv.Itoa(newest), "upgrade", "check")
	wantTool(0, "there is nothing to finish", "upgrade", "check")
	wantTool(0, `"storeLayout"`, "upgrade", "check", "--json")
	wantTool(1, "there is nothing to finish", "upgrade", "finish")

	// A node of the next release has raised it: this one stops, and says so.
	set(keys.Meta(), keys.MetaLayoutField, strconv.Itoa(newest+1))
	n.WaitReady(http.StatusServiceUnavailable)
	rename := map[string]any{"username": "grace"}
	if r, err := n.Do(t.Context(), "PATCH", "/api/v1/me", player, rename); err != nil || r.Code() != "store_unavailable" {
		t.Errorf("a request that writes gets %v, %v", r, err)
	}
	redistest.Eventually(t, "the check has a sentence", func() bool {
		r, err := n.Do(t.Context(), "GET", "/readyz", "", nil)
		return err == nil && strings.Contains(string(r.Raw), "run the release that raised it")
	})
	wantTool(1, "run the release that raised it", "upgrade", "check")
	wantTool(1, "run the release that raised it", "upgrade", "finish")

	set(keys.Meta(), keys.MetaLayoutField, strconv.Itoa(newest))
	n.WaitReady(http.StatusOK)
	n.Must(t, http.StatusOK, "PATCH", "/api/v1/me", player, rename)
	old := `{"id":"old","host":"a","version":"v0.9.0","at":"` + time.Now().UTC().Format(time.RFC3339) + `"}`
	set(keys.Nodes(), "old", old)
	wantTool(0, "v0.9.0 on a (old) reads up to layout 3", "upgrade", "check")
}
