package servers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// shortLease is the lease of tests in which one ends.
const shortLease = 400 * time.Millisecond

// all is the share of a server that has every room.
var all = servers.Share{Of: 1}

// node is the servers of one node.
type node struct {
	*servers.Service
	t   testing.TB
	db  *redisdb.DB
	end func()
}

func startNode(t testing.TB, db *redisdb.DB, name string) *node {
	t.Helper()
	n := &node{Service: servers.New(db, servers.Options{Channel: keys.NodeChannel(name), Lease: shortLease}), t: t, db: db}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = n.Run(ctx) }()
	n.end = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(n.end)
	return n
}

func (n *node) listen(id string, share servers.Share, rooms ...string) {
	n.t.Helper()
	n.Open(1, id)
	testkit.Check(n.t, n.Listen(n.t.Context(), id, share), "listen")
	if len(rooms) > 0 {
		testkit.Check(n.t, n.ListenToRooms(n.t.Context(), id, rooms...), "listen to rooms")
	}
}

// found returns the connection that gets the calls of a room, "none" for no_server.
func (n *node) found(gameID int64, room string) string {
	n.t.Helper()
	s, err := n.Find(n.t.Context(), gameID, room)
	if errors.Is(err, apierror.NoServer) {
		return "none"
	}
	testkit.Check(n.t, err, "find")
	return s.ConnectionID
}

func (n *node) want(room, id string) {
	n.t.Helper()
	if have := n.found(1, room); have != id {
		n.t.Errorf("%s is asked for %s, want %s", have, room, id)
	}
}

// wantSoon waits until a node knows which server gets the calls of a room.
func (n *node) wantSoon(room, id string) {
	n.t.Helper()
	redistest.Eventually(n.t, room+" is of "+id, func() bool { return n.found(1, room) == id })
}

// roomsOf returns a room of each of two shares.
func roomsOf(t testing.TB) (first, second string) {
	t.Helper()
	for i := 0; first == "" || second == ""; i++ {
		room := fmt.Sprintf("room%d", i)
		if feed.ShareOf(room, 2) == 0 {
			first = room
		} else {
			second = room
		}
	}
	return first, second
}

func TestTheFirstServerIsFoundAtOnceByEveryNode(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		a.want("room", "none")
		b.want("room", "none")
		a.listen("one", all)
		began := time.Now()
		b.wantSoon("room", "one")
		a.wantSoon("room", "one")
		if waited := time.Since(began); waited > 800*time.Millisecond {
			t.Errorf("the first server was found after %v", waited)
		}
		if a.found(2, "room") != "none" {
			t.Error("a server of another game is asked")
		}
		s := testkit.Must(b.Find(t.Context(), 1, "room"))(t)
		if s.Channel != keys.NodeChannel("a") {
			t.Errorf("the channel is %s", s.Channel)
		}
	})
}

func TestTheOldestOfSeveralListenersIsAsked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		of0, of1 := roomsOf(t)
		next := func() { redistest.Eventually(t, "a millisecond is over", later()) }
		a.listen("first", servers.Share{Of: 2, Index: 0})
		next()
		b.listen("second", servers.Share{}, of0, of1)
		next()
		b.listen("third", all)
		for _, n := range []*node{a, b} {
			n.wantSoon(of0, "first")
			n.wantSoon(of1, "third") // a share comes before a single room
			n.wantSoon("elsewhere", ownerOf("elsewhere"))
		}
		testkit.Check(t, a.Listen(t.Context(), "first", servers.Share{}), "listen to nothing")
		testkit.Check(t, a.ListenToRooms(t.Context(), "first", of0), "listen to a room")
		a.wantSoon(of0, "third")
		b.Close("third")
		for _, n := range []*node{a, b} {
			n.wantSoon(of0, "first")
			n.wantSoon(of1, "second")
			n.wantSoon("elsewhere", "none")
		}
		b.LeaveRoom("second", of1)
		a.wantSoon(of1, "none")
		a.LeaveRoom("first", of0)
		a.wantSoon(of0, "second")
		b.Close("second")
		a.wantSoon(of0, "none")
		if left := db.Client.Exists(t.Context(), keys.GameServers(1), keys.GameServerRooms(1, "second")).Val(); left != 0 {
			t.Errorf("%d keys are left", left)
		}
	})
}

// later returns a condition that holds in the next millisecond.
func later() func() bool {
	begun := time.Now().UnixMilli()
	return func() bool { return time.Now().UnixMilli() > begun+1 }
}

// ownerOf returns the server of a room that only shares have.
func ownerOf(room string) string {
	if feed.ShareOf(room, 2) == 0 {
		return "first"
	}
	return "third"
}

func TestALeaseLastsAsLongAsItIsRenewedAndIsStoredAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a, b := startNode(t, db, "a"), startNode(t, db, "b")
		a.listen("kept", servers.Share{}, "one", "two")
		// Several renewals later it is still there.
		renewed := func() string { return db.Client.HGet(t.Context(), keys.GameServers(1), "kept").Val() }
		for range 6 {
			before := renewed()
			redistest.Eventually(t, "the lease is renewed", func() bool { return renewed() != before })
			b.want("one", "kept")
		}
		// The store loses everything, or only a room.
		testkit.Must(db.Client.Del(t.Context(), keys.GameServers(1), keys.GameServerRooms(1, "kept")).Result())(t)
		redistest.Eventually(t, "the store has the rooms again", func() bool {
			return db.Client.SCard(t.Context(), keys.GameServerRooms(1, "kept")).Val() == 2
		})
		b.wantSoon("two", "kept")
		testkit.Must(db.Client.SRem(t.Context(), keys.GameServerRooms(1, "kept"), "two").Result())(t)
		redistest.Eventually(t, "the store has both rooms", func() bool {
			return db.Client.SCard(t.Context(), keys.GameServerRooms(1, "kept")).Val() == 2
		})
	})
}

func TestTheServersOfADeadNodeAreNotFound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a := startNode(t, db, "a")
		dead := servers.Server{ConnectionID: "dead"}
		lease := fmt.Sprintf("%s|1|1|0|%d|0", keys.NodeChannel("dead"), time.Now().Add(shortLease).UnixMilli())
		testkit.Must(db.Client.HSet(t.Context(), keys.GameServers(1), dead.ConnectionID, lease).Result())(t)
		a.want("room", "dead")
		a.listen("alive", all)
		// What did not get a call is passed over until it renews.
		a.Suspect(1, testkit.Must(a.Find(t.Context(), 1, "room"))(t))
		a.wantSoon("room", "alive")
		lease = fmt.Sprintf("%s|1|1|0|%d|0", keys.NodeChannel("dead"), time.Now().Add(3*time.Second).UnixMilli())
		testkit.Must(db.Client.HSet(t.Context(), keys.GameServers(1), dead.ConnectionID, lease).Result())(t)
		a.wantSoon("room", "dead")
		a.wantSoon("room", "alive") // by the time alone
	})
}

func TestAConnectionThatClosesWhileItListensLeavesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		a := startNode(t, db, "a")
		var all sync.WaitGroup
		for i := range 100 {
			id := fmt.Sprint("c", i)
			a.Open(1, id)
			all.Go(func() { _ = a.Listen(t.Context(), id, servers.Share{Of: 1}) })
			all.Go(func() { a.Close(id) })
		}
		all.Wait()
		redistest.Eventually(t, "no lease is left", func() bool {
			return db.Client.Exists(t.Context(), keys.GameServers(1)).Val() == 0
		})
		a.listen("last", servers.Share{Of: 1}, "room")
		a.end() // the node stops
		if left := db.Client.Exists(t.Context(), keys.GameServers(1), keys.GameServerRooms(1, "last")).Val(); left != 0 {
			t.Errorf("%d keys are left by a node that has stopped", left)
		}
	})
}

func TestManyCallsShareTheReads(t *testing.T) {
	db := redistest.Single(t)
	a := startNode(t, db, "a")
	commands := redistest.CountCommands(db)
	begun := time.Now()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if a.found(1, "room") != "none" {
					t.Error("there is a server")
				}
			}
		})
	}
	all.Wait()
	most := 8 + int64(time.Since(begun)/(50*time.Millisecond))
	if read := commands.Load(); read > most {
		t.Errorf("4,000 calls without a server read %d times, want at most %d", read, most)
	}
}
