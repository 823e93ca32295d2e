package redisdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// By default go-redis ignores the deadline of a context.
func TestACommandEndsWithItsContext(t *testing.T) {
	server := redistest.StartForTest(t)
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	testkit.Check(t, db.Client.Ping(t.Context()).Err())
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := db.Client.Ping(ctx).Err(); err == nil {
		t.Fatal("a store that stands still has replied")
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the command took %v", took)
	}
}

// Some handshakes of go-redis are for a hosted Redis alone, and its notices do not reach pub/sub
// connections.
func TestNoClientAsksForMaintenanceNotices(t *testing.T) {
	for _, url := range []string{
		redisdb.EmbeddedURL, "redis://127.0.0.1:1", "redis-cluster://127.0.0.1:1", "redis-sentinel://127.0.0.1:1/parlor",
	} {
		db := testkit.Must(redisdb.Open(url))(t)
		var config *maintnotifications.Config
		deadlines := false
		switch client := db.Client.(type) {
		case *redis.Client:
			config, deadlines = client.Options().MaintNotificationsConfig, client.Options().ContextTimeoutEnabled
		case *redis.ClusterClient:
			config, deadlines = client.Options().MaintNotificationsConfig, client.Options().ContextTimeoutEnabled
		}
		if config == nil || config.Mode != maintnotifications.ModeDisabled || !deadlines {
			t.Errorf("%s: notices %+v, deadlines of contexts %t", url, config, deadlines)
		}
		_ = db.Close()
	}
}
