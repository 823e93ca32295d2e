package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// tally counts outcomes of calls that run at the same time.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *tally) add(err error, more string) {
	outcome := "ok" + more
	if e, ok := apierror.As(err); ok {
		outcome = e.Code
	} else if err != nil {
		outcome = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[outcome]++
}

// stormFixture is two nodes on one store.
type stormFixture struct {
	t       *testing.T
	nodes   [2]*node
	economy economy
}

func newStormFixture(t *testing.T) *stormFixture {
	store := redistest.StartForTest(t)
	return &stormFixture{t: t, nodes: [2]*node{openNode(t, store.URL(), nil), openNode(t, store.URL(), nil)}}
}

func (f *stormFixture) reset(players int) {
	f.t.Helper()
	f.economy = makeEconomy(f.t, f.nodes[0], players)
	f.nodes[1].forgetCaches()
}

func TestBuyersOfTheLastPieces(t *testing.T) {
	f := newStormFixture(t)
	buyers, stock, limit := pick(500, 10_000), int64(100), int64(1)
	f.reset(1)
	few := testkit.Must(f.nodes[0].assets.Create(t.Context(), server, gameID, assets.CreateInput{
		Name: "Ticket", TokenCode: tokenCode, Price: "1", Stock: &stock, PerUserLimit: &limit,
	}))(t)
	for id := range int64(buyers) {
		in := wallet.CreditInput{UserID: id + 2, TokenCode: tokenCode, Amount: "1", Reason: "start"}
		testkit.Must(f.nodes[0].wallets.Credit(t.Context(), operator, in, receiptOf("")))(t)
	}
	var outcomes tally
	var slowest atomic.Int64
	var all sync.WaitGroup
	next := make(chan int64)
	for range 200 {
		all.Go(func() {
			for id := range next {
				began := time.Now()
				_, err := f.nodes[id%2].assets.Purchase(t.Context(), player(id+2), few.ID, assets.PurchaseInput{Quantity: 1},
					receiptOf(fmt.Sprint("buyer-", id)))
				outcomes.add(err, "")
				if took := int64(time.Since(began)); took > slowest.Load() {
					slowest.Store(took)
				}
			}
		})
	}
	for id := range int64(buyers) {
		next <- id
	}
	close(next)
	all.Wait()
	b := wantLargeBooks(t, f.nodes[0].db)
	if outcomes.counts["ok"] != int(stock) || outcomes.counts["sold_out"] != buyers-int(stock) ||
		b.Assets[fmt.Sprint(few.ID)]["sold"] != fmt.Sprint(stock) {
		t.Fatalf("the buyers got %v; the asset is %v", outcomes.counts, b.Assets[fmt.Sprint(few.ID)])
	}
	report(t, "%d buyers over 200 clients and 2 nodes, stock %d: %v, slowest %v", buyers, stock, outcomes.counts,
		time.Duration(slowest.Load()).Round(time.Millisecond))
}

func TestAThousandCopiesOfOnePurchaseOverHTTP(t *testing.T) {
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
	in := newInstallation(t, store.URL(), 2, 1, nil)
	observer := openNode(t, store.URL(), nil)
	buy := fmt.Sprintf("/api/v1/user-assets/add/game-asset/%d", in.coin)
	var mu sync.Mutex
	bodies, replayed := map[string]int{}, 0
	var all sync.WaitGroup
	const copies, connections = 1000, 50
	for i := range connections {
		all.Go(func() {
			for range copies / connections {
				r, err := in.nodes[i%2].Do(t.Context(), "POST", buy, in.players[0].token, nil, "Idempotency-Key", "one-click")
				mu.Lock()
				bodies[fmt.Sprint(r.Status, " ", string(r.Raw), err)]++
				if r.Header.Get("Idempotent-Replayed") == "true" {
					replayed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	b := wantBooks(t, observer.db)
	if len(bodies) != 1 || replayed != copies-1 || b.Owned[in.players[0].id][fmt.Sprint(in.coin)] != 1 {
		t.Fatalf("%d copies got %v, %d replayed; the player owns %v", copies, bodies, replayed, b.Owned)
	}
	report(t, "%d copies over %d connections and 2 nodes: 1 effect, %d replays, all responses equal", copies, connections,
		replayed)
}

// TestRacesForTheEndOfARoom has everybody who may end a room do so at the same moment.
func TestRacesForTheEndOfARoom(t *testing.T) {
	f := newStormFixture(t)
	ctx := t.Context()
	result := func(first, next int64) []rooms.Placement {
		return []rooms.Placement{{UserID: first, Place: 1}, {UserID: next, Place: 2}}
	}
	var outcomes tally
	rounds, calls := pick(60, 1_000), 0
	for round := range rounds {
		if round%100 == 0 {
			f.reset(2)
		}
		opened := testkit.Must(f.nodes[0].rooms.Create(ctx, player(1), rooms.CreateInput{
			EntryTokenID: f.economy.tokenID, RoomEntry: "1", MaxPlayers: 2, RakeBps: new(0),
		}, receiptOf("")))(t)
		id := opened.Room.RoomID
		testkit.Must(f.nodes[0].rooms.Join(ctx, player(2), id, receiptOf("")))(t)
		racers := map[string]func(n *node) error{
			"start":      func(n *node) error { return second(n.rooms.Start(ctx, player(1), id, receiptOf(""))) },
			"leave of 1": func(n *node) error { return second(n.rooms.Leave(ctx, player(1), id, receiptOf(""))) },
			"leave of 2": func(n *node) error { return second(n.rooms.Leave(ctx, player(2), id, receiptOf(""))) },
			"cancel":     func(n *node) error { return second(n.rooms.Cancel(ctx, server, id, receiptOf(""))) },
		}
		if round%2 == 1 {
			testkit.Must(f.nodes[0].rooms.Start(ctx, player(1), id, receiptOf("")))(t)
			racers = map[string]func(n *node) error{
				"finish for 1": func(n *node) error { return second(n.rooms.Finish(ctx, server, id, result(1, 2), receiptOf(""))) },
				"finish for 2": func(n *node) error { return second(n.rooms.Finish(ctx, server, id, result(2, 1), receiptOf(""))) },
				"cancel":       func(n *node) error { return second(n.rooms.Cancel(ctx, server, id, receiptOf(""))) },
				"leave of 2":   func(n *node) error { return second(n.rooms.Leave(ctx, player(2), id, receiptOf(""))) },
			}
		}
		var winners tally
		var all sync.WaitGroup
		begin := make(chan struct{})
		for name, race := range racers {
			for i := range f.nodes {
				calls++
				all.Go(func() {
					<-begin
					err := race(f.nodes[i])
					outcomes.add(err, " "+name)
					if err == nil && (strings.HasPrefix(name, "finish") || name == "cancel") {
						winners.add(nil, " "+name)
					}
				})
			}
		}
		close(begin)
		all.Wait()
		if len(winners.counts) > 1 {
			t.Fatalf("a room ended in several ways: %v", winners.counts)
		}
		b := wantBooks(t, f.nodes[0].db)
		if round%2 == 1 && !b.Rooms[id].HasEnded() {
			t.Fatalf("the room is %s", b.Rooms[id].Status)
		}
	}
	report(t, "%d rooms, %d calls at the same moment, one end each: %v", rounds, calls, outcomes.counts)
}

// interruption is a keeper that does something before the first run of a script.
type interruption struct {
	script string
	do     func()
	done   bool
}

func (i *interruption) step(name string, do func() error) error {
	if name == i.script && !i.done {
		i.done = true
		i.do()
	}
	return do()
}

// A node that read the room before its start must not take the result that another node has
// reported meanwhile for a different one.
func TestTheSameResultIsNoConflictWhenTheRoomWasReadBeforeItsStart(t *testing.T) {
	store := redistest.StartForTest(t)
	late, other := openNode(t, store.URL(), &gate{}), openNode(t, store.URL(), nil)
	f := &crashFixture{t: t, node: other, economy: makeEconomy(t, other, 3)}
	late.forgetCaches()
	room, ctx := f.open(false, 1, 2, 3), t.Context()
	late.gate.watch(&interruption{script: "room_finish", do: func() {
		err := second(other.rooms.Start(ctx, server, room, receiptOf("")))
		if err == nil {
			err = second(other.rooms.Finish(ctx, server, room, ranking, receiptOf("")))
		}
		testkit.Report(t, err)
	}})
	r, err := late.rooms.Finish(ctx, server, room, ranking, receiptOf("late"))
	if err != nil {
		t.Errorf("the same result: %v", err)
	} else if r.Room.Status != rooms.Finished {
		t.Errorf("the same result returned %s", r.Room.Status)
	}
	different := slices.Clone(ranking)
	different[0].UserID, different[1].UserID = ranking[1].UserID, ranking[0].UserID
	if _, err := late.rooms.Finish(context.Background(), server, room, different, receiptOf("")); err == nil {
		t.Error("a different result returned no error")
	}
}

// lateResend is a keeper that loses the reply of the first run of a script and sends it again after
// something else has happened.
type lateResend struct {
	script  string
	between func()
	done    bool
}

func (r *lateResend) step(name string, do func() error) error {
	err := do()
	if name == r.script && err == nil && !r.done {
		r.done = true
		r.between()
		return do()
	}
	return err
}

func TestALateResendOfAJoinTakesNoSecondStake(t *testing.T) {
	store := redistest.StartForTest(t)
	late, other := openNode(t, store.URL(), &gate{}), openNode(t, store.URL(), nil)
	f := &crashFixture{t: t, node: other, economy: makeEconomy(t, other, 3)}
	late.forgetCaches()
	room, ctx := f.open(false, 1), t.Context()
	for _, key := range []string{"", "key"} {
		late.gate.watch(&lateResend{script: "room_join", between: func() {
			in := rooms.KickInput{RoomID: room, UserID: 2}
			testkit.Report(t, second(other.rooms.Kick(ctx, server, in, receiptOf(""))))
		}})
		testkit.Report(t, second(late.rooms.Join(ctx, player(2), room, receiptOf(key))))
		if b := wantBooks(t, other.db); b.Wallets[2].Held != 0 {
			t.Errorf("with the key %q, player 2 was kicked and has %+v", key, b.Wallets[2])
		}
	}
}
