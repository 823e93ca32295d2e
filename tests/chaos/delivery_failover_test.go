package chaos

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

var deliveryStore = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// TestClientsFollowAFailoverOfSentinels freezes the primary and kills it, by turns, while clients
// follow rooms. A failover may lose what the primary acknowledged last: then clients have a
// snapshot, and no event of the history that is gone.
func TestClientsFollowAFailoverOfSentinels(t *testing.T) {
	t.Parallel()
	servers := startSentinels(t, deliveryStore)
	a := newAudience(t, openStoreOf(t, servers.url()), []string{servers.url(), servers.url()})
	for round := range pick(1, 6) {
		servers.wait()
		primary := testkit.Must(servers.primary())(t)
		s := a.begin(pick(2, 10), 6)
		s.waitReceived(3)
		if round%2 == 0 {
			primary.Pause()
			s.waitReceived(2)
			s.end("Sentinel, the primary frozen", true)
			primary.Resume()
			continue
		}
		primary.Kill()
		s.waitReceived(2)
		s.end("Sentinel, the primary killed", true)
		testkit.Check(t, primary.Restart())
	}
}

// TestAfterAFailoverThatLostEventsClientsGetASnapshot cuts the replication, lets clients receive
// events that the replica does not have, and promotes the replica.
func TestAfterAFailoverThatLostEventsClientsGetASnapshot(t *testing.T) {
	t.Parallel()
	primary := redistest.StartForTest(t, deliveryStore...)
	wire := redistest.StartProxy(t, primary.Addr)
	replica := redistest.StartReplica(t, wire.Addr, deliveryStore...)
	proxy := redistest.StartProxy(t, primary.Addr)
	url := "redis://" + proxy.Addr
	a := newAudience(t, openStoreOf(t, url), []string{url, url})
	s := a.begin(2, 6)
	s.waitReceived(5)
	redistest.WaitForReplica(t, wire.Addr)
	wire.Cut()
	defer wire.Mend()
	s.waitReceived(10)
	testkit.Check(t, redistest.Dial(t, replica).ReplicaOf(t.Context(), "NO", "ONE").Err())
	primary.Pause()
	defer primary.Resume()
	proxy.Retarget(replica.Addr)
	redistest.Eventually(t, "every client has a snapshot", func() bool {
		return !slices.ContainsFunc(s.followers, func(f *follower) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.snapshots == 0
		})
	})
	s.waitReceived(3)
	s.end("a replica promoted that lacked 10 events of each room", true)
}

// TestClientsFollowTheirRoomThroughACluster moves the slot of all rooms to another primary and
// back, and kills the primary that has it.
func TestClientsFollowTheirRoomThroughACluster(t *testing.T) {
	t.Parallel()
	url, servers := startReplicatedCluster(t, deliveryStore)
	waitForCluster(t, servers)
	a := newAudience(t, openStoreOf(t, url), []string{url, url})
	cluster := a.db.Client.(*redis.ClusterClient)
	for range pick(1, 5) {
		s := a.begin(pick(2, 10), 6)
		s.waitReceived(3)
		key := s.topics()[0]
		from := testkit.Must(cluster.MasterForKey(t.Context(), key))(t)
		to := otherPrimary(t, cluster, from)
		moveSlot(t, cluster, key, from, to)
		s.waitReceived(3)
		moveSlot(t, cluster, key, to, from)
		s.waitReceived(3)
		s.end("Cluster, the slot moved and back", false)

		s = a.begin(pick(2, 10), 6)
		s.waitReceived(3)
		primary := primaryOf(t, cluster, s.topics()[0], servers)
		primary.Kill()
		s.waitReceived(3)
		s.end("Cluster, the primary killed", true)
		testkit.Check(t, primary.Restart())
		waitForCluster(t, servers)
	}
}

// topics returns the names of the lists of the rooms' events.
func (s *scene) topics() (names []string) {
	for _, w := range s.writers {
		shard, _ := keys.RoomShard(w.room)
		names = append(names, keys.RoomEvents(shard, w.room))
	}
	return names
}

// primaryOf returns the server that has a key.
func primaryOf(
	t *testing.T, cluster *redis.ClusterClient, key string, servers []*redistest.Server,
) *redistest.Server {
	t.Helper()
	master := testkit.Must(cluster.MasterForKey(t.Context(), key))(t)
	i := slices.IndexFunc(servers, func(s *redistest.Server) bool { return s.Addr == master.Options().Addr })
	if i < 0 {
		t.Fatalf("no server listens at %s", master.Options().Addr)
	}
	return servers[i]
}

// otherPrimary returns a primary that is another one.
func otherPrimary(t *testing.T, cluster *redis.ClusterClient, not *redis.Client) (other *redis.Client) {
	t.Helper()
	redistest.EachMaster(t, &redisdb.DB{Client: cluster}, func(_ context.Context, node *redis.Client) error {
		if node.Options().Addr != not.Options().Addr {
			other = node
		}
		return nil
	})
	return other
}

// moveSlot moves the slot of a key, with all its keys, while calls go on.
func moveSlot(t *testing.T, cluster *redis.ClusterClient, key string, from, to *redis.Client) {
	t.Helper()
	ctx := t.Context()
	slot := cluster.ClusterKeySlot(ctx, key).Val()
	id := func(node *redis.Client) string { return node.ClusterMyID(ctx).Val() }
	do := func(node *redis.Client, args ...any) {
		t.Helper()
		if err := node.Do(ctx, args...).Err(); err != nil && !strings.Contains(err.Error(), "NOKEY") {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	host, port, _ := strings.Cut(to.Options().Addr, ":")
	redistest.Eventually(t, "the slot is empty", func() bool {
		names := from.ClusterGetKeysInSlot(ctx, int(slot), 100).Val()
		for _, name := range names {
			do(from, "MIGRATE", host, port, name, 0, (5 * time.Second).Milliseconds())
		}
		return len(names) == 0
	})
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	_ = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		return node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(to)).Err()
	})
	cluster.ReloadState(ctx)
}
