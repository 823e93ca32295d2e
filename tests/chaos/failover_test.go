package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// durability is one way to run nodes and their store, and what it promises of a failover.
type durability struct {
	name      string
	server    []string // arguments of redis-server
	mayLose   bool     // acknowledged calls may be lost with a primary; money is conserved all the same
	openNodes func(t testing.TB, url string, n int) []*node
}

func openNodes(t testing.TB, url string, n int) (nodes []*node) {
	for range n {
		nodes = append(nodes, openNode(t, url, nil))
	}
	return nodes
}

// openConfirmedNodes opens nodes in the mode replica.
func openConfirmedNodes(t testing.TB, url string, n int) []*node {
	nodes := openNodes(t, url, n)
	for _, n := range nodes {
		n.db.RequireReplicas(1)
	}
	return nodes
}

// durabilities are the modes whose failovers are tested.
var durabilities = []durability{
	{"disk", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, true, openNodes},
	{"disk, min-replicas-to-write 1", []string{
		"--appendonly", "yes", "--appendfsync", "everysec", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "1",
	}, true, openNodes},
	{"replica", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, false, openConfirmedNodes},
}

// failover is what the rounds of a test add up to.
type failover struct {
	rounds       int
	acked        int64
	lost         int
	lossy        int           // rounds in which acknowledged calls were lost; nodes noticed each of them
	noticed      int           // rounds of which nodes said that entries are missing
	missed       int64         // entries that are missing by the word of the nodes, at least
	longest, sum time.Duration // from the fault to the next response
	describe     func() string // what the servers say of each other
	waitInStep   func()        // waits until every replica has what its primary has
}

// round makes a fault under load and waits until clients have responses again. It adds up the books
// then, and counts the acknowledged calls that are gone.
func (f *failover) round(t *testing.T, d durability, observer *node, nodes []*node, fault func()) {
	t.Helper()
	f.rounds++
	flushAll(t, observer.db)
	observer.forgetCaches()
	for _, n := range nodes {
		n.forgetCaches()
	}
	e := addEconomy(t, observer, loadPlayers)
	l := startLoad(t, observer.db, nodes, e, 6, *seed+uint64(f.rounds))
	l.waitAcked(10)
	w := watchHistory(t, nodes)
	f.waitInStep() // a replica without the record of the installation would stop money
	l.waitAcked(pick(int64(60), 200))
	began := time.Now()
	fault()
	defer func() {
		if t.Failed() {
			t.Log(f.describe())
		}
	}()
	l.waitAcked(pick(int64(10), 30))
	took := time.Since(began)
	f.longest, f.sum = max(f.longest, took), f.sum+took
	calls := l.end()
	var b books.Books
	redistest.Eventually(t, "the new primary can be read", func() bool {
		var err error
		b, err = tryBooks(t.Context(), observer.db)
		return err == nil
	})
	testkit.Check(t, b.Check(), "after the failover the books are wrong:\n")
	gone := lost(calls, b)
	for _, c := range gone {
		if !d.mayLose {
			t.Errorf("%s got %v and is lost", c, c.results)
		}
	}
	if entries := w.end(observer, len(gone) > 0); entries > 0 {
		f.noticed++
		f.missed += entries
		if !d.mayLose {
			t.Logf("nodes miss %d entries, of which no client was told", entries)
		}
	}
	if len(gone) > 0 {
		f.lossy++
	}
	f.lost += len(gone)
	f.acked += l.acked.Load()
}

func (f *failover) String() string {
	mean := f.sum / time.Duration(max(1, f.rounds))
	return fmt.Sprintf("%d rounds, %d acknowledged calls, %d lost in %d rounds, nodes noticed a loss in %d rounds, of %d "+
		"entries at least, delta 0, responses again after %v on average, %v at most", f.rounds, f.acked, f.lost, f.lossy,
		f.noticed, f.missed, mean.Round(time.Millisecond), f.longest.Round(time.Millisecond))
}

var dialled sync.Map // *redistest.Server → *redis.Client

// dial returns a client of a server, one for all who ask.
func dial(t testing.TB, s *redistest.Server) *redis.Client {
	if known, ok := dialled.Load(s); ok {
		return known.(*redis.Client)
	}
	client := redistest.Dial(t, s)
	dialled.Store(s, client)
	t.Cleanup(func() { dialled.Delete(s) })
	return client
}

// flushAll empties a store of any kind.
func flushAll(t testing.TB, db *redisdb.DB) {
	t.Helper()
	redistest.Eventually(t, "the store is empty", func() bool {
		if cluster, ok := db.Client.(*redis.ClusterClient); ok {
			return cluster.ForEachMaster(t.Context(), func(ctx context.Context, server *redis.Client) error {
				return server.FlushAll(ctx).Err()
			}) == nil
		}
		return db.Client.FlushAll(t.Context()).Err() == nil
	})
}

// sentinels is a primary with replicas, and who watches them.
type sentinels struct {
	t       *testing.T
	servers []*redistest.Server
	watch   []*redistest.Server
}

const sentinelName = "parlor"

func startSentinels(t *testing.T, args []string) *sentinels {
	t.Helper()
	s := &sentinels{t: t, servers: []*redistest.Server{redistest.StartForTest(t, args...)}}
	host, port, _ := strings.Cut(s.servers[0].Addr, ":")
	for range 2 {
		s.servers = append(s.servers, redistest.StartForTest(t, append(slices.Clone(args), "--replicaof", host+" "+port)...))
	}
	for range 3 {
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		settings := fmt.Sprintf("sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %s 1000\n"+
			"sentinel failover-timeout %s 3000\n", sentinelName, host, port, sentinelName, sentinelName)
		testkit.Check(t, os.WriteFile(file, []byte(settings), 0o600))
		watcher := testkit.Must(redistest.StartSentinel(file))(t)
		t.Cleanup(watcher.Remove)
		s.watch = append(s.watch, watcher)
	}
	s.wait()
	return s
}

func (s *sentinels) url() string {
	var hosts []string
	for _, w := range s.watch {
		hosts = append(hosts, w.Addr)
	}
	return "redis-sentinel://" + strings.Join(hosts, ",") + "/" + sentinelName
}

// primary returns the server that the sentinels name.
func (s *sentinels) primary() (*redistest.Server, error) {
	list, err := dial(s.t, s.watch[0]).Do(
		s.t.Context(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName).StringSlice()
	if err != nil || len(list) != 2 {
		return nil, fmt.Errorf("the sentinel names %v, %w", list, err)
	}
	for _, server := range s.servers {
		if server.Addr == list[0]+":"+list[1] {
			return server, nil
		}
	}
	return nil, fmt.Errorf("the sentinel names %v", list)
}

// facts returns what a sentinel says of the primary, by name; nothing when it cannot be asked.
func (s *sentinels) facts(ctx context.Context, sentinel *redistest.Server) map[string]string {
	ask := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", sentinelName)
	_ = dial(s.t, sentinel).Process(ctx, ask)
	return ask.Val()
}

// describe returns what the sentinels say of the primary.
func (s *sentinels) describe() (text string) {
	for _, w := range s.watch {
		text += fmt.Sprintln(s.facts(context.Background(), w))
	}
	return text
}

// wait waits until a primary has two replicas that are in step, and every sentinel knows all.
func (s *sentinels) wait() {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Log(s.describe())
		}
	}()
	redistest.Eventually(s.t, "the primary has two replicas", func() bool {
		primary, err := s.primary()
		if err != nil {
			return false
		}
		info, err := dial(s.t, primary).Info(s.t.Context(), "replication").Result()
		if err != nil || !strings.Contains(info, "role:master") || redistest.ConfirmingReplicas(s.t, primary) != 2 {
			return false
		}
		for _, w := range s.watch {
			facts := s.facts(s.t.Context(), w)
			if facts["flags"] != "master" || facts["num-slaves"] != "2" || facts["num-other-sentinels"] != "2" {
				return false
			}
		}
		return true
	})
}

// TestBehindSentinelsAPrimaryMayDieOrStandStill kills the primary and stops it by turns. When it
// kills it first, a window for reports runs in a room of another game.
func TestBehindSentinelsAPrimaryMayDieOrStandStill(t *testing.T) {
	t.Parallel()
	for _, d := range pick(durabilities[:1], durabilities) {
		t.Run(d.name, func(t *testing.T) {
			s := startSentinels(t, d.server)
			observer, nodes := openNode(t, s.url(), nil), d.openNodes(t, s.url(), 2)
			f := failover{describe: s.describe, waitInStep: s.wait}
			for round := range pick(1, 20) {
				s.wait()
				primary, err := s.primary()
				testkit.Check(t, err)
				switch {
				case round == 0:
					room := ""
					f.round(t, d, observer, nodes, func() {
						room = reportToSilence(t, nodes[0])
						redistest.Eventually(t, "the replicas have the report", func() bool {
							return redistest.ConfirmingReplicas(t, primary) == 2
						})
						primary.Kill()
					})
					wantSilenceToAgree(t, nodes[1], room)
					err = primary.Restart()
				case round%2 == 0:
					f.round(t, d, observer, nodes, primary.Kill)
					err = primary.Restart()
				default:
					f.round(t, d, observer, nodes, primary.Pause)
					primary.Resume()
				}
				testkit.Check(t, err)
			}
			report(t, "1 primary, 2 replicas, 3 sentinels, killed and stopped by turns: %s", &f)
		})
	}
}

// otherGame has the room of reportToSilence, where no load comes.
const otherGame = gameID + 1

// reportToSilence lets two players play a room with consensus, and the winner report the result.
// The loser is connected to the room then and reports nothing.
func reportToSilence(t *testing.T, n *node) (roomID string) {
	t.Helper()
	ctx, winner, loser := t.Context(), player(userOf(otherGame, 1)), player(userOf(otherGame, 2))
	e := addGame(t, n, otherGame, 1, 2)
	created := testkit.Must(n.rooms.Create(ctx, winner, rooms.CreateInput{
		EntryTokenID: e.tokenID, RoomEntry: amount(500), MaxPlayers: 2, RakeBps: new(1000),
		SettledBy: rooms.SettledByConsensus,
	}, receiptOf("")))(t)
	room, shard := created.Room.RoomID, keys.EconomyShard(otherGame)
	_, joinErr := n.rooms.Join(ctx, loser, room, receiptOf(""))
	_, startErr := n.rooms.Start(ctx, winner, room, receiptOf(""))
	_, connectErr := n.db.RunScript(ctx, scripts.PresenceSet,
		[]string{keys.Room(shard, room), keys.RoomEvents(shard, room), keys.PresenceLease(shard, "lease000")},
		n.db.PublishCommand, idempotency.NewNonce(), "lease000", 1, room, 10_000, "0", loser.UserID, "")
	_, reportErr := n.rooms.Finish(ctx, winner, room,
		[]rooms.Placement{{UserID: winner.UserID, Place: 1}, {UserID: loser.UserID, Place: 2}}, receiptOf(""))
	testkit.Check(t, errors.Join(joinErr, startErr, connectErr, reportErr))
	return room
}

// wantSilenceToAgree requires that the window of the room of reportToSilence ends with one payout.
func wantSilenceToAgree(t *testing.T, n *node, roomID string) {
	t.Helper()
	redistest.Eventually(t, "silence has agreed", func() bool {
		_, _ = n.rooms.Sweep(t.Context())
		now, err := n.rooms.Get(t.Context(), operator, roomID)
		return err == nil && now.Status == rooms.Finished
	})
	b, err := books.Read(t, n.db, otherGame)
	if err = errors.Join(err, b.Check()); err != nil {
		t.Fatal(err)
	}
	want := map[int64]books.Balance{
		userOf(otherGame, 1): {Free: startBalance*100 + 400}, userOf(otherGame, 2): {Free: startBalance*100 - 500},
	}
	if !maps.Equal(b.Wallets, want) {
		t.Errorf("the players have %+v; want %+v", b.Wallets, want)
	}
}

// TestAReplicaThatWasCutOffIsPromoted cuts the replication in silence, lets clients go on for a
// while, and promotes the replica. What was acknowledged meanwhile is lost unless a mode waits for
// replicas, and then the nodes say so; money is conserved in any case.
func TestAReplicaThatWasCutOffIsPromoted(t *testing.T) {
	t.Parallel()
	for _, d := range durabilities {
		t.Run(d.name, func(t *testing.T) {
			if d.name == "disk, min-replicas-to-write 1" && !*long {
				t.Skip("in the long form only")
			}
			primary := redistest.StartForTest(t, d.server...)
			link := redistest.StartProxy(t, primary.Addr)
			replica := redistest.StartReplica(t, link.Addr, d.server...)
			front := redistest.StartProxy(t, primary.Addr)
			url := "redis://" + front.Addr
			observer, nodes := openNode(t, url, nil), d.openNodes(t, url, 2)
			redistest.Eventually(t, "the primary takes writes", func() bool {
				return observer.db.Client.Set(t.Context(), "{p}:try", 1, time.Second).Err() == nil
			})
			e := addEconomy(t, observer, loadPlayers)
			l := startLoad(t, observer.db, nodes, e, 8, *seed)
			l.waitAcked(50)
			w := watchHistory(t, nodes)
			redistest.WaitForReplica(t, link.Addr)
			before := l.acked.Load()
			link.Cut()
			ctx, cancel := context.WithTimeout(t.Context(), pick(time.Second, 4*time.Second))
			<-ctx.Done()
			cancel()
			dark := l.acked.Load() - before
			calls := l.end()
			primary.Kill()
			testkit.Check(t, dial(t, replica).ReplicaOf(t.Context(), "NO", "ONE").Err())
			// It has no replica of its own now.
			dial(t, replica).ConfigSet(t.Context(), "min-replicas-to-write", "0")
			front.Retarget(replica.Addr)
			b := wantBooks(t, observer.db)
			gone := len(lost(calls, b))
			if gone > 0 && !d.mayLose {
				t.Errorf("%d acknowledged calls are lost", gone)
			}
			report(t, "%d calls acknowledged, %d of them in %v without replication; %d of those that leave a trace are lost; "+
				"nodes miss %d entries at least; delta %d", l.acked.Load(), dark, pick(time.Second, 4*time.Second), gone,
				w.end(observer, gone > 0), b.Delta())
			observer.forgetCaches()
			wantEnded(t, observer)
		})
	}
}

// startReplicatedCluster starts a Cluster of three primaries with a replica each.
func startReplicatedCluster(t *testing.T, args []string) (url string, servers []*redistest.Server) {
	t.Helper()
	url, servers, err := redistest.StartCluster(append(slices.Clone(args), "--cluster-replica-validity-factor", "0")...)
	for _, s := range servers {
		t.Cleanup(s.Remove)
	}
	testkit.Check(t, err)
	host, port, _ := strings.Cut(servers[0].Addr, ":")
	for _, primary := range servers[:3] {
		replica := redistest.StartForTest(t, append(slices.Clone(args), "--cluster-enabled", "yes", "--cluster-node-timeout",
			"2000", "--cluster-replica-validity-factor", "0")...)
		servers = append(servers, replica)
		client, ctx := dial(t, replica), t.Context()
		id, err := dial(t, primary).Do(ctx, "CLUSTER", "MYID").Text()
		if err = errors.Join(err, client.ClusterMeet(ctx, host, port).Err()); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, "the replica knows its primary", func() bool {
			return client.ClusterReplicate(ctx, id).Err() == nil
		})
	}
	return url, servers
}

// waitForCluster waits until every primary of a Cluster has its replica.
func waitForCluster(t *testing.T, servers []*redistest.Server) {
	t.Helper()
	redistest.Eventually(t, "every primary has a replica", func() bool {
		primaries, ok := 0, 0
		for _, s := range servers {
			client := dial(t, s)
			info, err := client.Info(t.Context(), "replication").Result()
			state, stateErr := client.ClusterInfo(t.Context()).Result()
			if err != nil || stateErr != nil || !strings.Contains(state, "cluster_state:ok") ||
				!strings.Contains(state, "cluster_known_nodes:6") {
				return false
			}
			if strings.Contains(info, "role:master") {
				primaries++
				ok += redistest.ConfirmingReplicas(t, s)
			}
		}
		return primaries == 3 && ok == 3
	})
}

// TestInAClusterAPrimaryMayDieOrStandStill kills the primary that has the economy, and stops it, by
// turns.
func TestInAClusterAPrimaryMayDieOrStandStill(t *testing.T) {
	t.Parallel()
	for _, d := range pick(durabilities[:1], []durability{durabilities[0], durabilities[2]}) {
		t.Run(d.name, func(t *testing.T) { killClusterPrimaries(t, d) })
	}
}

func killClusterPrimaries(t *testing.T, d durability) {
	t.Helper()
	url, servers := startReplicatedCluster(t, d.server)
	waitForCluster(t, servers)
	observer, nodes := openNode(t, url, nil), d.openNodes(t, url, 2)
	f := failover{describe: func() (text string) {
		for _, s := range servers {
			text += dial(t, s).ClusterNodes(context.Background()).Val() + "\n"
		}
		return text
	}, waitInStep: func() { waitForCluster(t, servers) }}
	for round := range pick(1, 20) {
		waitForCluster(t, servers)
		primary := clusterPrimary(t, observer.db, servers)
		stop, goOn := primary.Kill, primary.Restart
		if round%2 == 1 {
			stop, goOn = primary.Pause, func() error { primary.Resume(); return nil }
		}
		if d.mayLose {
			f.round(t, d, observer, nodes, stop)
			testkit.Check(t, goOn())
			continue
		}
		f.round(t, d, observer, nodes, func() { // the new primary confirms nothing until the old one follows it
			stop()
			waitForTakeover(t, servers, primary)
			testkit.Report(t, goOn())
		})
	}
	report(t, "3 primaries, 3 replicas, the economy's one killed and stopped by turns: %s", &f)
}

// waitForTakeover waits until there are three primaries without one that is gone.
func waitForTakeover(t *testing.T, servers []*redistest.Server, gone *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, "the replica has taken over", func() bool {
		primaries := 0
		for _, s := range servers {
			if s != gone && strings.Contains(dial(t, s).Info(t.Context(), "replication").Val(), "role:master") {
				primaries++
			}
		}
		return primaries == 3
	})
}

// clusterPrimary returns the server that has the economy of the tests.
func clusterPrimary(t *testing.T, db *redisdb.DB, servers []*redistest.Server) *redistest.Server {
	t.Helper()
	cluster := db.Client.(*redis.ClusterClient)
	cluster.ReloadState(t.Context())
	var found *redistest.Server
	redistest.Eventually(t, "the economy has a primary", func() bool {
		client, err := cluster.MasterForKey(t.Context(), books.EconomyTag(gameID))
		if err != nil {
			return false
		}
		i := slices.IndexFunc(servers, func(s *redistest.Server) bool { return s.Addr == client.Options().Addr })
		if i >= 0 && strings.Contains(dial(t, servers[i]).Info(t.Context(), "replication").Val(), "role:master") {
			found = servers[i]
		}
		return found != nil
	})
	return found
}
