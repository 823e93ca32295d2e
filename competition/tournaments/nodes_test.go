package tournaments

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// nodes are two nodes of which one is killed from time to time. A killed node is replaced.
type nodes struct {
	*fixture
	kills   int
	running []*fixture // oldest first
	ends    []context.CancelFunc
	all     sync.WaitGroup
}

// startNode runs the background work of a node with services of its own.
func (n *nodes) startNode() {
	ctx, cancel := context.WithCancel(context.Background())
	n.ends = append(n.ends, cancel)
	other := n.newNode()
	n.running = append(n.running, other)
	for _, run := range []func(context.Context) error{other.rooms.Run, other.Run} {
		n.all.Go(func() { _ = run(ctx) })
	}
}

// newNode returns the same game on services of its own.
func (f *fixture) newNode() *fixture {
	other := *f
	other.newRooms()
	deps := f.Deps
	deps.Rooms = other.rooms
	other.Service = New(f.db, deps, Options{})
	other.consume(other.RoomEnded)
	return &other
}

// kill ends a node in the middle of what it does, and starts another one.
func (n *nodes) kill() {
	n.ends[0]()
	n.ends, n.running = n.ends[1:], n.running[1:]
	n.kills++
	n.startNode()
}

// mostKills bounds how often a node dies: a result that it had not applied waits for up to a
// minute.
const mostKills = 8

// TestATournamentOnNodesThatAreKilledEndsAndPaysOnce plays a Swiss tournament of 64, or of
// PARLOR_TEST_PLAYERS, through rooms, their outbox and leaders, while a node dies every 2 s, at
// most mostKills times.
func TestATournamentOnNodesThatAreKilledEndsAndPaysOnce(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	players := 64
	if text := os.Getenv("PARLOR_TEST_PLAYERS"); text != "" {
		players, _ = strconv.Atoi(text)
	}
	ids := make([]int64, players)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	testkit.Check(t, f.db.Client.Set(t.Context(), keys.GameIDCounter(), f.gameID, 0).Err())
	id := f.create(f.swiss(func(in *CreateInput) { in.MaxEntrants = players }))
	f.enter(id, ids...)
	testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
	n := nodes{fixture: f}
	n.startNode()
	n.startNode()
	defer n.all.Wait()
	defer func() {
		for _, end := range n.ends {
			end()
		}
	}()
	random := rand.New(rand.NewPCG(1, 2))
	server := f.people.Server()
	lastKill := time.Now()
	testkit.Check(t, redistest.Poll(8*time.Minute, func() error { // a result of a node that died may wait for a minute
		if n.kills < mostKills && time.Since(lastKill) > 2*time.Second {
			n.kill()
			lastKill = time.Now()
		}
		for _, m := range f.currentMatches(id) {
			if m.Status != MatchReady {
				continue
			}
			if m.Players[1].UserID%5 == 0 { // never comes
				f.pass(id, m)
				continue
			}
			room, err := f.rooms.Get(t.Context(), operator, *m.RoomID)
			if err != nil || room.Status.Ended() {
				continue
			}
			f.sit(m, m.Players[0].UserID, m.Players[1].UserID)
			winner := m.Players[random.IntN(2)].UserID
			testkit.Must(n.running[len(n.running)-1].rooms.Finish(t.Context(), server, *m.RoomID, []rooms.Placement{
				{UserID: winner, Place: 1}, {UserID: m.opponentOf(winner), Place: 2},
			}, idempotency.Receipt{}))(t)
		}
		if s := f.get(id).Status; s != Finished {
			return errors.New("it is " + string(s))
		}
		return nil
	}))
	f.money.Audit()
	f.checkRooms(id)
	v := f.get(id)
	sum := v.RakeUnits
	for _, s := range f.standings(id) {
		sum += *s.Units
	}
	if sum != v.PotUnits || v.PotUnits != wallet.Units(players)*250 {
		t.Errorf("the pot is %d, payouts and rake are %d", v.PotUnits, sum)
	}
	t.Logf("%d rounds, %d nodes killed", v.Round, n.kills)
}
