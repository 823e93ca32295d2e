package redisdb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
)

// One master, one replica and one sentinel: the master dies, and the same open store goes on with the replica.
func TestBehindSentinelTheStoreOutlivesItsMaster(t *testing.T) {
	t.Parallel()
	master := redistest.StartFor(t)
	host, port := "127.0.0.1", master.Addr[len("127.0.0.1:"):]
	replica := redistest.StartFor(t, "--replicaof", host+" "+port)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	settings := fmt.Sprintf("sentinel monitor parlor %s %s 1\nsentinel down-after-milliseconds parlor 500\nsentinel failover-timeout parlor 3000\n", host, port)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel, err := redistest.StartSentinel(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sentinel.Remove)

	db, err := redisdb.Open("redis-sentinel://" + sentinel.Addr + "/parlor?db=3")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	keys := []string{"{l:s}:lock", "{l:s}:fence"}
	take := func() (string, error) {
		if err := db.Client.Set(t.Context(), keys[0], "me", 0).Err(); err != nil {
			return "", err
		}
		word, rest, err := db.Run(t.Context(), scripts.FencingTokenIssue, keys, "me")
		if err == nil && word != "ok" {
			err = fmt.Errorf("answers %s", word)
		}
		if err != nil {
			return "", err
		}
		return rest[0], nil
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for !ok() {
			if time.Now().After(deadline) {
				t.Fatalf("never: %s", what)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	if number, err := take(); err != nil || number != "1" {
		t.Fatalf("the first: %q, %v", number, err)
	}
	follower := redistest.Dial(t, replica)
	eventually("the replica has it", func() bool {
		follower.Do(t.Context(), "SELECT", 3)
		return follower.Get(t.Context(), keys[1]).Val() == "1"
	})
	eventually("the sentinel knows the replica", func() bool {
		known, err := redistest.Dial(t, sentinel).Do(t.Context(), "SENTINEL", "REPLICAS", "parlor").Slice()
		return err == nil && len(known) == 1
	})
	master.Kill()
	eventually("the store goes on", func() bool {
		number, err := take()
		return err == nil && number >= "2" // more when a reply was lost on the way
	})
}
