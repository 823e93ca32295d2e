package realtime

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestAFrozenRedisIsNoticedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	proxy := startProxy(t, server.Addr)
	db := openAt(t, "redis://"+proxy.listener.Addr().String())
	topic := "{r1}:room:frozen:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	direct := openAt(t, server.URL())
	emit(t, direct, topic, "1")
	c.next()
	server.Pause()
	begun := time.Now()
	waitUntil(t, "the connection is replaced", func() bool { return n.Stats().LostPubSubConns > 0 })
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("the silent connection was replaced after %v", d)
	}
	server.Resume()
	emit(t, direct, topic, "2")
	emit(t, direct, topic, "3")
	for want := uint64(2); want <= 3; want++ {
		if e := c.nextEvent(); e.Seq != want {
			t.Fatalf("got %+v, want seq %d", e, want)
		}
	}
}

func TestASubscriberOfAServerWithoutPublishersIsMovedByAProbe(t *testing.T) {
	t.Parallel()
	// As after a failover: the subscriber stays with a server to which nobody publishes any more.
	old, successor := redistest.StartForTest(t), redistest.StartForTest(t)
	proxy := startProxy(t, old.Addr)
	db := openAt(t, "redis://"+proxy.listener.Addr().String())
	topic := "{r1}:room:left:events"
	n := startNode(t, db, Options{ProbeAfter: 200 * time.Millisecond, ProbeTimeout: 300 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	waitUntil(t, "a probe has arrived", func() bool { return n.Stats().PubSubLag > 0 })
	proxy.mu.Lock()
	proxy.target = successor.Addr
	proxy.mu.Unlock()
	// The connections for commands move to the new server, the pub/sub connection does not.
	testkit.Check(t, openAt(t, old.URL()).Client.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	pos := emit(t, openAt(t, successor.URL()), topic, "1")
	if e := c.nextEvent(); e.Position != pos {
		t.Fatalf("got %+v, want position %s", e, pos)
	}
	if n.Stats().LostPubSubConns == 0 {
		t.Error("the pub/sub connection was not replaced")
	}
}

func TestASilentConnectionIsKeptWhileItsProbesArrive(t *testing.T) {
	t.Parallel()
	db := redistest.Single(t)
	n := startNode(t, db, Options{ProbeAfter: 20 * time.Millisecond, ProbeTimeout: time.Second})
	c := dial(t, n, "user=1").listen()
	c.subscribe("{r1}:room:quiet:events", "")
	begun := time.Now()
	waitUntil(t, "some probes have arrived", func() bool {
		return n.Stats().PubSubLag > 0 && time.Since(begun) > 500*time.Millisecond
	})
	if r := n.Stats().LostPubSubConns; r != 0 {
		t.Errorf("the connection was replaced %d times", r)
	}
}

func TestAProbeIsWaitedForAsLongAsItMayTake(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	n := startNode(t, openAt(t, server.URL()), Options{ProbeAfter: 50 * time.Millisecond, ProbeTimeout: 10 * time.Second})
	dial(t, n, "user=1").listen().subscribe("{r1}:room:slowprobe:events", "")
	waitUntil(t, "a probe has arrived", func() bool { return n.Stats().PubSubLag > 0 })
	server.Pause()
	begun := time.Now()
	waitUntil(t, "a probe is late", func() bool { return time.Since(begun) > time.Second })
	server.Resume()
	waitUntil(t, "the late probe has arrived", func() bool { return n.Stats().PubSubLag > 500*time.Millisecond })
	if r := n.Stats().LostPubSubConns; r != 0 {
		t.Errorf("the connection was replaced %d times", r)
	}
}

func TestAConnectionIsNotProbedBeforeItIsSilent(t *testing.T) {
	t.Parallel()
	n := startNode(t, redistest.Single(t), Options{ProbeAfter: time.Hour, ProbeTimeout: 100 * time.Millisecond})
	dial(t, n, "user=1").listen().subscribe("{r1}:room:unprobed:events", "")
	begun := time.Now()
	waitUntil(t, "it could have been probed", func() bool { return time.Since(begun) > 300*time.Millisecond })
	if lag := n.Stats().PubSubLag; lag != 0 {
		t.Errorf("a probe arrived after %v", lag)
	}
}

// go-redis reconnects a pub/sub connection of a Cluster without subscribing again, and to the same
// node only.
func TestOnAClusterTopicsOfAllMastersSurviveKilledConnections(t *testing.T) {
	db := redistest.Cluster(t)
	n := startNode(t, db, Options{TopicsPerConnection: 1000})
	c := dial(t, n, "user=1").listen()
	var topics []string
	for i := range 60 {
		topics = append(topics, fmt.Sprintf("{r%d}:room:%d:events", i/2, i))
		c.subscribe(topics[i], "")
	}
	if conns := n.Stats().PubSubConns; conns != 3 {
		t.Errorf("%d pub/sub connections, want one for each master", conns)
	}
	last := map[string]uint64{}
	for round := range 4 {
		for _, topic := range topics {
			emit(t, db, topic, "x")
		}
		kill := func(ctx context.Context, master *redis.Client) error {
			return master.ClientKillByFilter(ctx, "TYPE", "pubsub").Err()
		}
		testkit.Check(t, db.Client.(*redis.ClusterClient).ForEachMaster(t.Context(), kill))
		for range topics {
			e := c.next()
			if e.Seq != last[e.RoomID]+1 || e.Seq != uint64(round+1) {
				t.Fatalf("round %d: %+v", round, e)
			}
			last[e.RoomID] = e.Seq
		}
	}
	// The channels must be subscribed again: the lists alone would deliver the events too.
	waitUntil(t, "all channels are subscribed", func() bool {
		var total atomic.Int64
		_ = db.Client.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			for _, topic := range topics {
				total.Add(node.PubSubShardNumSub(ctx, topic).Val()[topic])
			}
			return nil
		})
		return total.Load() == int64(len(topics))
	})
}

// When a slot moves, the server unsubscribes its channels and go-redis does not subscribe at the
// new master.
func TestOnAClusterAMovedSlotIsFollowed(t *testing.T) {
	db := redistest.Cluster(t)
	topic := "{moving}:room:1:events"
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.subscribe(topic, "")
	cluster := db.Client.(*redis.ClusterClient)
	slot := cluster.ClusterKeySlot(t.Context(), topic).Val()
	from := testkit.Must(cluster.MasterForKey(t.Context(), topic))(t)
	var to *redis.Client
	for _, other := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if m, _ := cluster.MasterForKey(t.Context(), other); m.Options().Addr != from.Options().Addr {
			to = m
		}
	}
	ids := func(node *redis.Client) string { return node.ClusterMyID(t.Context()).Val() }
	do := func(node *redis.Client, args ...any) {
		t.Helper()
		if err := node.Do(t.Context(), args...).Err(); err != nil && !strings.Contains(err.Error(), "No such key") {
			t.Fatalf("%v: %v", args, err)
		}
	}
	move := func(from, to *redis.Client) {
		t.Helper()
		do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids(from))
		do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids(to))
		host, port, _ := strings.Cut(to.Options().Addr, ":")
		for _, key := range from.ClusterGetKeysInSlot(t.Context(), int(slot), 100).Val() {
			do(from, "MIGRATE", host, port, key, 0, 5000)
		}
		do(to, "CLUSTER", "SETSLOT", slot, "NODE", ids(to))
		do(from, "CLUSTER", "SETSLOT", slot, "NODE", ids(to))
		_ = cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			return node.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids(to)).Err()
		})
	}
	emit(t, db, topic, "1")
	c.next()
	move(from, to)
	defer move(to, from)
	for want := uint64(2); want < 6; want++ {
		emit(t, db, topic, "x")
		if e := c.next(); e.Seq != want {
			t.Fatalf("got %+v, want seq %d", e, want)
		}
	}
	waitUntil(t, "the new master has the subscription", func() bool {
		return to.PubSubShardNumSub(t.Context(), topic).Val()[topic] == 1
	})
}

func TestAConnectionWithoutTopicsEnds(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{TopicLinger: 100 * time.Millisecond})
	c := dial(t, n, "user=1").listen()
	c.subscribe("{r1}:room:short:events", "")
	_ = c.conn.Close()
	waitUntil(t, "the connection has ended", func() bool { s := n.Stats(); return s.PubSubConns == 0 && s.Topics == 0 })
	back := dial(t, n, "user=1").listen()
	back.subscribe("{r1}:room:short:events", "")
	if n.Stats().LostPubSubConns != 0 {
		t.Error("the end of an unused connection is counted as a reconnect")
	}
}

func TestSubscribingWithoutRedisIsRefusedInTime(t *testing.T) {
	t.Parallel()
	server := redistest.StartForTest(t)
	db := openAt(t, server.URL())
	n := startNode(t, db, Options{})
	c := dial(t, n, "user=1").listen()
	c.next()
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := n.firstClient(t).Subscribe(ctx, Subscription{Topic: "{r1}:room:down:events"}); err == nil {
		t.Fatal("subscribed while Redis was down")
	}
	testkit.Check(t, server.Restart())
	if mode, _ := c.subscribe("{r1}:room:down:events", ""); mode != "snapshot" {
		t.Fatalf("subscribed as %s", mode)
	}
}
