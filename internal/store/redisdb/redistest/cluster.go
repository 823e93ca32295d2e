package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

const masterCount = 3

var (
	clusterOnce  sync.Once
	clusterURL   string
	clusterErr   error
	clusterInUse sync.Mutex
)

// Cluster opens the test binary's Cluster of three masters and empties it. One test at a time has
// it, since a Cluster has one database.
func Cluster(t testing.TB) *redisdb.DB {
	t.Helper()
	clusterOnce.Do(func() {
		clusterURL, _, clusterErr = StartCluster("--appendonly", "yes", "--appendfsync", "always")
	})
	if clusterErr != nil {
		t.Fatalf("start a Redis Cluster: %v", clusterErr)
	}
	clusterInUse.Lock()
	t.Cleanup(clusterInUse.Unlock)
	db := open(t, clusterURL)
	err := db.Client.(*redis.ClusterClient).ForEachMaster(
		t.Context(),
		func(ctx context.Context, node *redis.Client) error {
			return node.FlushAll(ctx).Err()
		},
	)
	if err != nil {
		t.Fatalf("empty the Cluster: %v", err)
	}
	return db
}

// StartCluster starts three masters with more arguments. It returns the servers that it started
// even with an error.
func StartCluster(args ...string) (url string, servers []*Server, err error) {
	start := func(more ...string) (*Server, error) {
		s, err := Start(append(more, args...)...)
		if err == nil {
			servers = append(servers, s)
		}
		return s, err
	}
	addrs, err := startCluster(start)
	return clusterAddress(addrs), servers, err
}

func clusterAddress(addrs []string) string { return "redis-cluster://" + strings.Join(addrs, ",") }

// StartClusterWithReplicas starts three masters with one replica each. replicas[i] follows
// masters[i]. The servers end with the test.
func StartClusterWithReplicas(t testing.TB, args ...string) (url string, masters, replicas []*Server) {
	t.Helper()
	url, masters, err := StartCluster(args...)
	for _, s := range masters {
		t.Cleanup(s.Remove)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, master := range masters {
		replica := StartForTest(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args...)...)
		client := Dial(t, replica)
		host, port, _ := strings.Cut(master.Addr, ":")
		if err := client.ClusterMeet(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
		id := Dial(t, master).Do(t.Context(), "CLUSTER", "MYID").Val().(string)
		err := Poll(startLimit, func() error { return client.ClusterReplicate(t.Context(), id).Err() })
		if err != nil {
			t.Fatalf("make a replica: %v", err)
		}
		Eventually(t, "the master has the replica in step", func() bool {
			return ConfirmingReplicas(t, master) == 1
		})
		replicas = append(replicas, replica)
	}
	for _, s := range slices.Concat(masters, replicas) {
		Eventually(t, "all servers know each other", func() bool {
			info := Dial(t, s).ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:6")
		})
	}
	return url, masters, replicas
}

// ConfirmingReplicas returns how many of a server's one or two replicas have its latest write; 0
// for a server without replicas. INFO reports "online" earlier, as soon as a replica has the first
// copy of the data. At that point the server still holds back later writes, so killing it would
// lose them on the replica.
func ConfirmingReplicas(t testing.TB, s *Server) int {
	t.Helper()
	const most, patience = 2, 50 * time.Millisecond
	pipeline := Dial(t, s).Pipeline()
	pipeline.FunctionFlush(t.Context()) // a write without a key, which every master of a Cluster takes
	confirmed := pipeline.Do(t.Context(), "WAIT", most, patience.Milliseconds())
	_, _ = pipeline.Exec(t.Context())
	n, _ := confirmed.Int()
	return n
}

// StartTLSCluster starts a Cluster that takes TLS connections only. It returns host:port of its
// masters. They are removed when the test binary ends.
func StartTLSCluster(certs Certificates, args ...string) ([]string, error) {
	return startCluster(func(more ...string) (*Server, error) { return StartTLS(certs, append(more, args...)...) })
}

// startCluster assigns the 16,384 slots to three masters and waits until each of them reports that
// the Cluster is ok. It returns host:port of each.
func startCluster(start func(args ...string) (*Server, error)) ([]string, error) {
	ctx := context.Background()
	var addrs []string
	var nodes []*redis.Client
	for i := range masterCount {
		s, err := start(
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "yes",
		)
		if err != nil {
			return nil, err
		}
		node := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket})
		defer func() { _ = node.Close() }()
		first, last := i*16384/masterCount, (i+1)*16384/masterCount-1
		if err := node.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return nil, err
		}
		if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return nil, err
		}
		addrs, nodes = append(addrs, s.Addr), append(nodes, node)
	}
	for _, addr := range addrs[1:] {
		host, port, _ := strings.Cut(addr, ":")
		if err := nodes[0].ClusterMeet(ctx, host, port).Err(); err != nil {
			return nil, err
		}
	}
	err := Poll(20*time.Second, func() error {
		for _, node := range nodes {
			info, err := node.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", masterCount)) {
				return errors.New("the nodes do not agree yet:\n" + info)
			}
		}
		return nil
	})
	return addrs, err
}
