package redisdb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// One master, one replica and one sentinel: the master dies, and the same DB uses the replica.
func TestBehindSentinelTheStoreSurvivesItsMaster(t *testing.T) {
	t.Parallel()
	master := redistest.StartForTest(t)
	host, port := "127.0.0.1", master.Addr[len("127.0.0.1:"):]
	replica := redistest.StartForTest(t, "--replicaof", host+" "+port)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	settings := fmt.Sprintf("sentinel monitor parlor %s %s 1\n"+
		"sentinel down-after-milliseconds parlor 500\nsentinel failover-timeout parlor 3000\n", host, port)
	testkit.Check(t, os.WriteFile(file, []byte(settings), 0o600))
	sentinel := testkit.Must(redistest.StartSentinel(file))(t)
	t.Cleanup(sentinel.Remove)

	db := testkit.Must(redisdb.Open("redis-sentinel://" + sentinel.Addr + "/parlor?db=3"))(t)
	defer func() { _ = db.Close() }()
	keys := []string{"{l:s}:lock", "{l:s}:fence"}
	takeFence := func() (string, error) {
		if err := db.Client.Set(t.Context(), keys[0], "me", 0).Err(); err != nil {
			return "", err
		}
		reply, err := db.RunScript(t.Context(), scripts.FencingTokenIssue, keys, "me")
		if err == nil {
			err = reply.Err(scripts.FencingTokenIssue)
		}
		if err != nil {
			return "", err
		}
		return reply.Values[0], nil
	}
	if number, err := takeFence(); err != nil || number != "1" {
		t.Fatalf("the first fence: %q, %v", number, err)
	}
	client := redistest.Dial(t, replica)
	redistest.Eventually(t, "the replica has the fence", func() bool {
		client.Do(t.Context(), "SELECT", 3)
		return client.Get(t.Context(), keys[1]).Val() == "1"
	})
	redistest.Eventually(t, "the sentinel knows the replica", func() bool {
		known, err := redistest.Dial(t, sentinel).Do(t.Context(), "SENTINEL", "REPLICAS", "parlor").Slice()
		return err == nil && len(known) == 1
	})
	master.Kill()
	redistest.Eventually(t, "the store can be written again", func() bool {
		number, err := takeFence()
		return err == nil && number >= "2" // more when a reply was lost on the way
	})
}
