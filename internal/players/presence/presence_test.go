package presence_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/presence"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// shortLease is the lease of tests in which one ends.
const shortLease = 800 * time.Millisecond

// fixture is free rooms on a store.
type fixture struct {
	*domaintest.Players
	t     testing.TB
	db    *redisdb.DB
	rooms *rooms.Service
}

var lastUser atomic.Int64 // players of all tests are different

func newFixture(t testing.TB, db *redisdb.DB) *fixture {
	t.Helper()
	f := &fixture{Players: domaintest.NewPlayers(1), t: t, db: db}
	f.rooms = rooms.New(db, f, f, f, rooms.Options{Shards: 3})
	return f
}

func (f *fixture) TokenByID(context.Context, int64, int64) (wallet.Token, error) {
	panic("rooms without a stake have no token")
}

func (f *fixture) LedgerChanged(int64) {}

func newPlayer() principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: lastUser.Add(1), GameID: 1}
}

// room is a room with its players.
type room struct {
	*fixture
	id      string
	topic   string
	players []principal.Caller // the first one is the host
}

// newRoom opens a room and seats players in it.
func (f *fixture) newRoom(players int) *room {
	f.t.Helper()
	r := &room{fixture: f}
	for range players {
		r.players = append(r.players, newPlayer())
	}
	created := testkit.Must(
		f.rooms.Create(f.t.Context(), r.players[0], rooms.CreateInput{MaxPlayers: 8}, idempotency.Receipt{}),
	)(f.t)
	r.id = created.Room.RoomID
	r.topic = testkit.Must(f.rooms.EventTopic(r.id))(f.t)
	for _, p := range r.players[1:] {
		r.join(p)
	}
	return r
}

// key returns the key of the room's hash.
func (r *room) key() string { return strings.TrimSuffix(r.topic, ":events") }

func (r *room) join(p principal.Caller) {
	r.t.Helper()
	r.do(r.rooms.Join(r.t.Context(), p, r.id, idempotency.Receipt{}))
}

func (r *room) leave(p principal.Caller) {
	r.t.Helper()
	r.do(r.rooms.Leave(r.t.Context(), p, r.id, idempotency.Receipt{}))
}

func (r *room) do(_ rooms.ChangeResult, err error) {
	r.t.Helper()
	testkit.Check(r.t, err)
}

// told returns the presence events of the room, "+0" for a player who is connected, "-0" for one
// who is disconnected, by place in players.
func (r *room) told() string {
	r.t.Helper()
	entries := testkit.Must(r.db.Client.LRange(r.t.Context(), r.topic, 0, -1).Result())(r.t)
	var told []string
	for i, entry := range entries {
		h, ok := events.ParseHeader(entry)
		if !ok || h.Seq != int64(i+1) {
			r.t.Fatalf("event %d is %s", i+1, entry)
		}
		sign := map[string]string{events.RoomConnected.Name: "+", events.RoomDisconnected.Name: "-"}[h.Type]
		if sign == "" {
			continue
		}
		user := strings.Split(entry, "|")[3]
		of := slices.IndexFunc(r.players, func(p principal.Caller) bool { return fmt.Sprint(p.UserID) == user })
		told = append(told, fmt.Sprint(sign, of))
	}
	return strings.Join(told, " ")
}

// wantTold waits until the presence events are these.
func (r *room) wantTold(want ...string) {
	r.t.Helper()
	got := ""
	err := redistest.Poll(15*time.Second, func() error {
		if got = r.told(); !slices.Contains(want, got) {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	if err != nil {
		r.t.Fatalf("told %q; want %q", got, want)
	}
}

// presence reads who is connected: "+" for a player who is, "-" for one who was, "." for one who
// never was.
func (r *room) presence() string {
	r.t.Helper()
	now := testkit.Must(r.rooms.Get(r.t.Context(), principal.Caller{Role: principal.Operator}, r.id))(r.t)
	text := ""
	for _, p := range now.Presence {
		switch {
		case p.Connected && p.GraceUntil.IsZero():
			text += "+"
		case !p.Connected && !p.GraceUntil.IsZero():
			text += "-"
		case !p.Connected:
			text += "."
		default:
			text += "?"
		}
	}
	return text
}

// node is a node with its own connection to the store.
type node struct {
	*presence.Service
	t    testing.TB
	stop func()
}

// startNode runs a node with times that a test can wait for.
func (f *fixture) startNode(o presence.Options) *node {
	return startNodeOn(f.t, f.db, o)
}

func openAt(t testing.TB, url string) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(url))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func startNodeOn(t testing.TB, db *redisdb.DB, o presence.Options) *node {
	t.Helper()
	if o.Linger == 0 {
		o.Linger = 20 * time.Millisecond
	}
	n := &node{Service: presence.New(db, o), t: t}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		testkit.Report(t, <-ended)
	})
	t.Cleanup(n.stop)
	return n
}

func (n *node) open(r *room, player int)  { n.Subscribed(r.topic, r.players[player].UserID) }
func (n *node) close(r *room, player int) { n.Unsubscribed(r.topic, r.players[player].UserID) }

// joined is what the hub calls for the event of a join.
func (n *node) joined(r *room, player int) {
	n.EventAdded(r.topic, events.RoomJoined.Name,
		fmt.Appendf(nil, `{"type":"room.joined","data":{"user":{"id":%d}}}`, r.players[player].UserID))
}

// settle waits until the node has made the calls for everything that happened so far.
func (n *node) settle(r *room) {
	n.t.Helper()
	other := r.newRoom(1)
	n.open(other, 0)
	other.wantTold("+0")
}

func TestSeveralSocketsOfAPlayerCountAsOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		a, b := f.startNode(presence.Options{}), f.startNode(presence.Options{})
		r := f.newRoom(2)
		if got := r.presence(); got != "" {
			t.Errorf("presence of a room that nobody follows: %q", got)
		}
		a.open(r, 0)
		r.wantTold("+0")
		a.open(r, 0) // a second tab
		b.open(r, 0) // and one on another node
		b.open(r, 1)
		r.wantTold("+0 +1")
		if got := r.presence(); got != "++" {
			t.Errorf("presence %q", got)
		}
		if a.Connected() != 1 || b.Connected() != 2 {
			t.Errorf("the nodes have %d and %d players", a.Connected(), b.Connected())
		}
		a.close(r, 0)
		a.close(r, 0)
		redistest.Eventually(t, "the first node has no player any more", func() bool { return a.Connected() == 0 })
		r.wantTold("+0 +1")
		b.close(r, 0)
		r.wantTold("+0 +1 -0")
		if got := r.presence(); got != "-+" {
			t.Errorf("presence %q", got)
		}
		a.open(r, 0)
		r.wantTold("+0 +1 -0 +0")
		if got := r.presence(); got != "++" {
			t.Errorf("presence %q", got)
		}
	})
}

// A reload closes the socket and opens another one, on any node.
func TestAReloadIsNotAnnounced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		a, b := f.startNode(presence.Options{Linger: time.Second}), f.startNode(presence.Options{Linger: time.Second})
		r := f.newRoom(1)
		a.open(r, 0)
		r.wantTold("+0")
		a.close(r, 0)
		a.open(r, 0)
		a.close(r, 0)
		b.open(r, 0)
		redistest.Eventually(t, "the first node has no player any more", func() bool { return a.Connected() == 0 })
		if told := r.told(); told != "+0" {
			t.Errorf("told %q", told)
		}
	})
}

func TestOnlyWhoHasASeatIsAnnounced(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		n := f.startNode(presence.Options{})
		r := f.newRoom(1)
		r.players = append(r.players, newPlayer())
		n.open(r, 1) // before the join
		n.settle(r)
		if told := r.told(); told != "" {
			t.Errorf("told %q", told)
		}
		r.join(r.players[1])
		n.joined(r, 1)
		r.wantTold("+1")
		r.leave(r.players[1])
		if got := r.presence(); got != "." {
			t.Errorf("presence %q", got)
		}
		r.join(r.players[1]) // the same sockets, another seat
		n.joined(r, 1)
		r.wantTold("+1 +1")
		r.leave(r.players[1])
		n.close(r, 1) // without a seat
		redistest.Eventually(t, "the record is gone", func() bool {
			return !db.Client.HExists(t.Context(), r.key(), fmt.Sprint("p", r.players[1].UserID)).Val()
		})
		r.wantTold("+1 +1")
	})
}

func TestPresenceTakesNoSeatAndEndsWithTheRoom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		n := f.startNode(presence.Options{Grace: time.Millisecond})
		r := f.newRoom(2)
		n.open(r, 0)
		n.open(r, 1)
		r.wantTold("+0 +1")
		n.close(r, 1)
		r.wantTold("+0 +1 -1")
		before, err := f.rooms.Get(t.Context(), r.players[0], r.id)
		if err != nil || len(before.ActivePlayers()) != 2 {
			t.Fatalf("the seats are %v, %v", before.Seats, err)
		}
		if seat := before.Version; seat != 2 {
			t.Errorf("presence made version %d", seat)
		}
		r.do(f.rooms.Cancel(t.Context(), r.players[0], r.id, idempotency.Receipt{}))
		n.EventAdded(r.topic, events.RoomCancelled.Name, nil)
		n.close(r, 0)
		n.settle(r)
		r.wantTold("+0 +1 -1")
		if got := r.presence(); got != "" {
			t.Errorf("presence after the end: %q", got)
		}
		redistest.Eventually(t, "no lease has the room", func() bool { return len(leasesOf(t, db, r)) == 0 })
	})
}

// leasesOf returns the keys of the leases that have a room.
func leasesOf(t *testing.T, db *redisdb.DB, r *room) (found []string) {
	t.Helper()
	for _, lease := range db.Client.ZRange(t.Context(), keys.PresenceLeases(), 0, -1).Val() {
		for _, name := range db.Client.SMembers(t.Context(), keys.PresenceShards(lease)).Val() {
			shard, _ := keys.ParseShard(name)
			key := keys.PresenceLease(shard, lease)
			if db.Client.HExists(t.Context(), key, r.id).Val() {
				found = append(found, key)
			}
		}
	}
	return found
}

// A node that stops without a word is what a killed one looks like to the others.
func TestThePlayersOfADeadNodeAreAnnouncedOnceByWhoeverIsLeft(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		dead := f.startNode(presence.Options{Lease: shortLease})
		o := presence.Options{Lease: shortLease}
		survivors := []*node{f.startNode(o), f.startNode(o)}
		var list []*room
		for range 20 {
			r := f.newRoom(3)
			for player := range r.players {
				dead.open(r, player)
			}
			r.wantTold("+0 +1 +2")
			survivors[0].open(r, 1)
			survivors[0].settle(r)
			list = append(list, r)
		}
		dead.stop()
		for _, r := range list {
			r.wantTold("+0 +1 +2 -0 -2")
			if got := r.presence(); got != "-+-" {
				t.Errorf("presence %q", got)
			}
		}
		survivors[1].open(list[0], 0)
		list[0].wantTold("+0 +1 +2 -0 -2 +0")
		redistest.Eventually(t, "two leases are left", func() bool {
			return db.Client.ZCount(t.Context(), keys.PresenceLeases(), "0", "+inf").Val() == 2
		})
		for _, r := range list[1:] {
			if told := r.told(); told != "+0 +1 +2 -0 -2" {
				t.Errorf("told %q", told)
			}
		}
	})
}

// What a node sends that was frozen, or cut off, until its lease was over is refused. It takes a
// new lease and announces its players again.
func TestANodeThatLostItsLeaseAnnouncesItsPlayersAgain(t *testing.T) {
	store := redistest.StartForTest(t)
	proxy := redistest.StartProxy(t, store.Addr)
	f := newFixture(t, openAt(t, store.URL()))
	cut := startNodeOn(t, openAt(t, "redis://"+proxy.Addr), presence.Options{Lease: shortLease})
	f.startNode(presence.Options{Lease: shortLease})
	r := f.newRoom(3)
	cut.open(r, 0)
	cut.open(r, 1)
	r.wantTold("+0 +1")
	proxy.Cut()
	cut.close(r, 1) // this it cannot send any more
	cut.open(r, 2)  // nor this
	r.wantTold("+0 +1 -0 -1")
	proxy.Mend()
	r.wantTold("+0 +1 -0 -1 +0 +2", "+0 +1 -0 -1 +2 +0") // a call for each player
	cut.close(r, 0)
	r.wantTold("+0 +1 -0 -1 +0 +2 -0", "+0 +1 -0 -1 +2 +0 -0")
}

// Nobody can renew a lease while the store does not answer, so none ends by that.
func TestAnOutageOfTheStoreIsNotALossOfNodes(t *testing.T) {
	store := redistest.StartForTest(t)
	f := newFixture(t, openAt(t, store.URL()))
	nodes := make([]*node, 3)
	r := f.newRoom(len(nodes))
	for i := range nodes {
		nodes[i] = startNodeOn(t, openAt(t, store.URL()), presence.Options{Lease: shortLease})
		nodes[i].open(r, i)
	}
	redistest.Eventually(t, "all are announced", func() bool { return len(r.told()) == len("+0 +1 +2") })
	before := r.told()
	store.Pause()
	wait(2 * shortLease)
	store.Resume()
	// Who is lost in the outage is announced after it.
	nodes[0].close(r, 0)
	r.wantTold(before + " -0")
	leases := f.db.Client.ZRangeWithScores(t.Context(), keys.PresenceLeases(), 0, -1).Val()
	if len(leases) != len(nodes) || leases[0].Score == 0 {
		t.Errorf("the leases are %v", leases)
	}
}

// wait lets a lease end.
func wait(d time.Duration) { <-time.After(d) }

// A failover may lose what was written last.
func TestWhatTheStoreLostIsStoredAgain(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	o := presence.Options{Lease: shortLease, RepeatAfter: 50 * time.Millisecond}
	n := f.startNode(o)
	r := f.newRoom(2)
	n.open(r, 0)
	n.open(r, 1)
	redistest.Eventually(t, "both are announced", func() bool { return r.presence() == "++" })
	lost := leasesOf(t, db, r)
	lease := db.Client.ZRange(t.Context(), keys.PresenceLeases(), 0, -1).Val()[0]
	for _, err := range []error{
		db.Client.HDel(t.Context(), r.key(), fmt.Sprint("p", r.players[1].UserID)).Err(),
		db.Client.Del(t.Context(), append(lost, keys.PresenceLeases(), keys.PresenceShards(lease))...).Err(),
	} {
		testkit.Check(t, err)
	}
	redistest.Eventually(t, "the record is there again", func() bool { return r.presence() == "++" })
	redistest.Eventually(t, "the lease has the room again", func() bool { return len(leasesOf(t, db, r)) == 1 })
	n.stop()
	f.startNode(o)
	redistest.Eventually(t, "both are announced as gone", func() bool { return r.presence() == "--" })
}

// What nothing changes is repeated without a write.
func TestARepetitionWritesNothing(t *testing.T) {
	store := redistest.StartForTest(t)
	db := openAt(t, store.URL())
	f := newFixture(t, db)
	n := f.startNode(presence.Options{Lease: time.Hour, RepeatAfter: time.Hour})
	r := f.newRoom(2)
	n.open(r, 0)
	n.open(r, 1)
	r.wantTold("+0 +1")
	tag := r.topic[:strings.Index(r.topic, "}")+1] + ":"
	before := redistest.TakeSnapshot(t, db, tag)
	n.EventAdded(r.topic, events.RoomFinished.Name, nil) // it asks the store, where the room goes on
	n.settle(r)
	after := redistest.TakeSnapshot(t, db, tag)
	for _, key := range before.Changed(after) {
		if strings.Contains(key, r.id) {
			t.Errorf("the repetition changed %s: %v, %v", key, before[key], after[key])
		}
	}
}

func TestTheGoroutinesOfANodeEndWithIt(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.startNode(presence.Options{}).stop() // the connections to the store have goroutines of their own
	before := goleak.IgnoreCurrent()
	f.startNode(presence.Options{}).stop()
	goleak.VerifyNone(t, before)
}
