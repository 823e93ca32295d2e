package chaos

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// The history of one room, its players' wallets and an asset of which there are a few, as several
// clients of two nodes see it, must be one that a single thread could have made.

const (
	linearPlayers = 6
	linearSeats   = 4   // of the room
	linearEntry   = 100 // units
	linearPrice   = 300 // units
	linearLimit   = 2   // pieces that a player may own
)

// linearState is what the room, the wallets and the asset are. It is a value: states are compared.
type linearState struct {
	status    string
	seats     [linearPlayers]byte // 'a' active, 'f' forfeited, 0 for none
	free      [linearPlayers]int64
	owned     [linearPlayers]int64
	stock     int64
	placement string // of a finished room
}

// linearInput is a call.
type linearInput struct {
	verb    string
	player  int   // from 0
	ranking []int // players by place, of a finish
}

// unknown is the outcome of a call without a response: it may have happened at any later time.
const unknown = "unknown"

func (s linearState) active() (list []int) {
	for i, seat := range s.seats {
		if seat == 'a' {
			list = append(list, i)
		}
	}
	return list
}

func (s linearState) pot() int64 {
	n := int64(0)
	for _, seat := range s.seats {
		if seat != 0 {
			n += linearEntry
		}
	}
	return n
}

func (s linearState) ended() bool { return s.status == "FINISHED" || s.status == "CANCELLED" }

func (s linearState) cancelled() linearState {
	for i, seat := range s.seats {
		if seat != 0 {
			s.free[i] += linearEntry
		}
	}
	s.status = "CANCELLED"
	return s
}

// won pays the pot to a player. The room takes no rake.
func (s linearState) won(ranking []int) linearState {
	s.free[ranking[0]] += s.pot()
	s.status, s.placement = "FINISHED", fmt.Sprint(ranking)
	return s
}

// apply returns what a call must return, and the state after it.
func (s linearState) apply(in linearInput) (string, linearState) {
	p := in.player
	switch in.verb {
	case "join":
		switch {
		case s.ended():
			return "room_closed", s
		case s.seats[p] == 'a':
			return "ok", s
		case s.status == "STARTED":
			return "already_started", s
		case len(s.active()) == linearSeats:
			return "room_full", s
		case s.free[p] < linearEntry:
			return "insufficient_funds", s
		}
		s.seats[p] = 'a'
		s.free[p] -= linearEntry
		return "ok", s
	case "leave":
		switch {
		case s.ended():
			return "room_closed", s
		case s.seats[p] != 'a':
			return "not_participant", s
		case s.status == "STARTED":
			s.seats[p] = 'f'
			if left := s.active(); len(left) == 1 {
				return "ok", s.won(left)
			}
			return "ok", s
		}
		s.seats[p] = 0
		s.free[p] += linearEntry
		if len(s.active()) == 0 {
			s.status = "CANCELLED"
		}
		return "ok", s
	case "start":
		switch {
		case s.ended():
			return "room_closed", s
		case s.status == "STARTED":
			return "already_started", s
		case len(s.active()) < 2:
			return "not_enough_players", s
		}
		s.status = "STARTED"
		return "ok", s
	case "finish":
		ranked := slices.Sorted(slices.Values(in.ranking))
		switch {
		case s.status == "FINISHED" && s.placement == fmt.Sprint(in.ranking):
			return "ok", s
		case s.status == "FINISHED":
			return "result_conflict", s
		case s.status == "CANCELLED":
			return "room_closed", s
		case s.status == "CREATED":
			return "not_started", s
		case !slices.Equal(ranked, s.active()):
			return "invalid_request", s
		}
		return "ok", s.won(in.ranking)
	case "cancel":
		if s.ended() {
			return "room_closed", s
		}
		return "ok", s.cancelled()
	case "buy":
		switch {
		case s.stock == 0:
			return "sold_out", s
		case s.owned[p] == linearLimit:
			return "already_owned", s
		case s.free[p] < linearPrice:
			return "insufficient_funds", s
		}
		s.stock--
		s.owned[p]++
		s.free[p] -= linearPrice
		return fmt.Sprintf("ok free %d owned %d", s.free[p], s.owned[p]), s
	case "balance":
		held := int64(0)
		if s.seats[p] != 0 && !s.ended() {
			held = linearEntry
		}
		return fmt.Sprintf("ok %d held %d", s.free[p], held), s
	default: // get
		return fmt.Sprintf("ok %s %d active %v", s.status, s.pot(), s.active()), s
	}
}

// linearModel returns the model of a history that begins in a state.
func linearModel(first linearState) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			want, next := state.(linearState).apply(input.(linearInput))
			return output == unknown || output == want, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " ", output) },
	}
}

// linearWorld is one room and its players.
type linearWorld struct {
	t       *testing.T
	nodes   []*node
	economy economy
	room    string
	begin   time.Time

	mu      sync.Mutex
	history []porcupine.Operation

	fault *linearFault // nil for none
}

// linearFault is a failover in the middle of a history.
type linearFault struct {
	over     chan struct{} // closed when another primary serves
	from, to int64         // the time, as in the history, in which replication or the primary was away
	opened   atomic.Int64  // calls without a response
}

// do makes a call on a node and returns its outcome in the words of the model.
func (w *linearWorld) do(ctx context.Context, n *node, in linearInput, rc idempotency.Receipt) string {
	who, err, text := player(int64(in.player+1)), error(nil), ""
	switch in.verb {
	case "join":
		_, err = n.rooms.Join(ctx, who, w.room, rc)
	case "leave":
		_, err = n.rooms.Leave(ctx, who, w.room, rc)
	case "start":
		_, err = n.rooms.Start(ctx, server, w.room, rc)
	case "cancel":
		_, err = n.rooms.Cancel(ctx, server, w.room, rc)
	case "finish":
		var results []rooms.Placement
		for i, p := range in.ranking {
			results = append(results, rooms.Placement{UserID: int64(p + 1), Place: i + 1})
		}
		_, err = n.rooms.Finish(ctx, server, w.room, results, rc)
	case "buy":
		var p assets.PurchaseResult
		p, err = n.assets.Purchase(ctx, who, w.economy.assets[1], assets.PurchaseInput{Quantity: 1}, rc)
		text = fmt.Sprintf(" free %d owned %d", p.Balance.SpendableUnits, p.OwnedAfter)
	case "balance":
		var b wallet.Balance
		b, err = n.wallets.ReadBalance(ctx, gameID, who.UserID, tokenCode)
		text = fmt.Sprintf(" %d held %d", b.SpendableUnits, b.HeldUnits)
	case "get":
		var r rooms.Room
		r, err = n.rooms.Get(ctx, operator, w.room)
		var active []int
		for _, user := range r.ActivePlayers() {
			active = append(active, int(user-1))
		}
		slices.Sort(active)
		text = fmt.Sprintf(" %s %d active %v", r.Status, r.Pot, active)
	}
	if err == nil {
		return "ok" + text
	}
	if e, ok := apierror.As(err); ok && isFinal(e.Code) {
		return e.Code
	}
	return unknown
}

// play makes calls as one client and records them. Some are sent to both nodes at the same time,
// with one key: the effect must lie between the first call and the first response.
func (w *linearWorld) play(ctx context.Context, client, calls int) {
	rng := newRNG(uint64(client) + 1000*uint64(time.Now().UnixNano()))
	for i := range calls {
		in := linearInput{verb: linearVerbs[rng.IntN(len(linearVerbs))], player: rng.IntN(linearPlayers)}
		if slices.Contains([]string{"cancel", "start"}, in.verb) && rng.IntN(6) > 0 {
			in.verb = "join" // or else few rooms would live for long
		}
		if in.verb == "finish" {
			in.ranking = rng.Perm(linearPlayers)[:2+rng.IntN(3)]
			if r, err := w.nodes[0].rooms.Get(ctx, operator, w.room); err == nil && rng.IntN(4) > 0 {
				in.ranking = nil
				for _, user := range r.ActivePlayers() {
					in.ranking = append(in.ranking, int(user-1))
				}
				if len(in.ranking) == 0 {
					continue
				}
			}
		}
		var rc idempotency.Receipt
		copies := 1
		if !slices.Contains([]string{"balance", "get"}, in.verb) && rng.IntN(2) == 0 {
			rc, copies = receiptOf(fmt.Sprintf("c%d-%d", client, i)), 1+rng.IntN(2)
		}
		outputs, ends := make([]string, copies), make([]int64, copies)
		called := time.Since(w.begin).Nanoseconds()
		var both sync.WaitGroup
		for j := range copies {
			both.Go(func() {
				outputs[j] = w.do(ctx, w.nodes[(client+i+j)%len(w.nodes)], in, rc)
				if w.fault != nil && outputs[j] == unknown {
					w.fault.opened.Add(1)
					<-w.fault.over
					if client%2 == 0 && rc.KeyDigest != "" { // these clients repeat what has a key
						redistest.Eventually(w.t, "a repeated call has a response", func() bool {
							outputs[j] = w.do(ctx, w.nodes[(client+i+j)%len(w.nodes)], in, rc)
							return outputs[j] != unknown
						})
					}
				}
				ends[j] = time.Since(w.begin).Nanoseconds()
			})
		}
		both.Wait()
		// A finish that is not valid is refused before its key counts.
		if copies == 2 && outputs[0] != outputs[1] && in.verb != "finish" {
			if outputs[0] != unknown && outputs[1] != unknown {
				w.t.Errorf("two copies of %v returned %v", in, outputs)
			}
		}
		op := porcupine.Operation{ClientId: client, Input: in, Output: outputs[0], Call: called, Return: ends[0]}
		if copies == 2 && (outputs[0] == unknown || ends[1] < ends[0] && outputs[1] != unknown) {
			op.Output, op.Return = outputs[1], ends[1]
		}
		if op.Output == unknown {
			op.Return = math.MaxInt64
		}
		w.mu.Lock()
		w.history = append(w.history, op)
		if in.verb == "finish" && copies == 2 && outputs[0] != outputs[1] {
			later := op
			later.ClientId, later.Output, later.Return = client+100, outputs[0], ends[0]
			if op.Output == outputs[0] {
				later.Output, later.Return = outputs[1], ends[1]
			}
			w.history = append(w.history, later)
		}
		w.mu.Unlock()
	}
}

var linearVerbs = strings.Fields("join join join join leave leave start finish finish cancel buy buy buy balance " +
	"balance balance get get")

// prepare makes the economy and the room, with the first player in it, and returns the first state.
func (w *linearWorld) prepare() linearState {
	ctx, n := w.t.Context(), w.nodes[0]
	w.economy = makeEconomy(w.t, n, linearPlayers)
	for _, other := range w.nodes {
		other.forgetCaches()
	}
	s := linearState{status: "CREATED", stock: 5}
	for i := range s.free {
		s.free[i] = startBalance * 100
		if i%2 == 1 { // some can pay little
			in := wallet.DebitInput{
				UserID: int64(i + 1), TokenCode: tokenCode, Amount: amount(startBalance*100 - 350), Reason: "poor",
			}
			testkit.Must(n.wallets.Debit(ctx, principal.Caller{Role: principal.Operator}, in, receiptOf("")))(w.t)
			s.free[i] = 350
		}
	}
	r := testkit.Must(n.rooms.Create(ctx, player(1), rooms.CreateInput{
		EntryTokenID: w.economy.tokenID, RoomEntry: amount(linearEntry), MaxPlayers: linearSeats, RakeBps: new(0),
	}, receiptOf("")))(w.t)
	w.room, w.begin, w.history = r.Room.RoomID, time.Now(), nil
	s.seats[0] = 'a'
	s.free[0] -= linearEntry
	return s
}

// wantLinear requires that a history could have been made by one thread.
func wantLinear(t *testing.T, first linearState, history []porcupine.Operation) {
	t.Helper()
	if result := porcupine.CheckOperationsTimeout(linearModel(first), history, time.Minute); result != porcupine.Ok {
		var text strings.Builder
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, op := range history {
			fmt.Fprintf(&text, "%d %d..%d %v %v\n", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
		t.Fatalf("the history is %s:\n%s", result, text.String())
	}
}

// failOver waits until clients are at work, takes the primary away and lets the replica follow it.
// In a silent fault the replica is cut off before.
func (w *linearWorld) failOver(silent bool, primary, replica *redistest.Server, link, front *redistest.Proxy) {
	w.t.Helper()
	redistest.Eventually(w.t, "the history has begun", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.history) >= 60
	})
	w.fault.from = time.Since(w.begin).Nanoseconds()
	if silent {
		link.Cut()
		redistest.Eventually(w.t, "a call is not confirmed", func() bool { return w.fault.opened.Load() > 0 })
	}
	primary.Kill()
	testkit.Report(w.t, dial(w.t, replica).ReplicaOf(w.t.Context(), "NO", "ONE").Err())
	front.Retarget(replica.Addr)
	redistest.Eventually(w.t, "the other primary serves, and has a replica", func() bool {
		for _, n := range w.nodes {
			if n.db.Client.Ping(w.t.Context()).Err() != nil {
				return false
			}
		}
		conn := dial(w.t, replica).Conn()
		defer func() { _ = conn.Close() }()
		_ = conn.Set(w.t.Context(), "{p}:try", 1, time.Second).Err()
		confirmed, err := conn.Wait(w.t.Context(), 1, 200*time.Millisecond).Result()
		return err == nil && confirmed == 1
	})
	w.fault.to = time.Since(w.begin).Nanoseconds()
	close(w.fault.over)
}

// certain returns the history as it binds the store. What a replica has not confirmed can be read,
// and a failover may take it back: so a read proves nothing while replication was away, nor does a
// call that a node refused by what it read.
func (w *linearWorld) certain() (history []porcupine.Operation, open int) {
	for _, op := range w.history {
		text, _ := op.Output.(string)
		verb, meanwhile := op.Input.(linearInput).verb, op.Call < w.fault.to && op.Return > w.fault.from
		if (verb == "balance" || verb == "get") && (meanwhile || text == unknown) {
			continue
		}
		if meanwhile && !strings.HasPrefix(text, "ok") {
			op.Output, op.Return = unknown, math.MaxInt64
		}
		if op.Output == unknown {
			open++
		}
		history = append(history, op)
	}
	return history, open
}

// TestHistoriesAcrossAFailoverAreLinear takes the primary away in the middle of each history. In
// the mode replica nothing that was acknowledged may vanish; what got no response may have happened
// or not.
func TestHistoriesAcrossAFailoverAreLinear(t *testing.T) {
	t.Parallel()
	histories, calls, opened, began := pick(2, 20), 0, 0, time.Now()
	for number := range histories {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			primary := redistest.StartForTest(t, "--repl-diskless-sync-delay", "0")
			link, front := redistest.StartProxy(t, primary.Addr), redistest.StartProxy(t, primary.Addr)
			replica := redistest.StartReplica(t, link.Addr, "--repl-diskless-sync-delay", "0")
			redistest.StartForTest(t, redistest.ReplicaOf(replica.Addr)...)
			redistest.Eventually(t, "the replica has one of its own", func() bool {
				return strings.Contains(dial(t, replica).Info(t.Context(), "replication").Val(), "state=online")
			})
			w := &linearWorld{
				t: t, nodes: openConfirmedNodes(t, "redis://"+front.Addr, 2), fault: &linearFault{over: make(chan struct{})},
			}
			first := w.prepare()
			var clients sync.WaitGroup
			for client := range linearPlayers {
				clients.Go(func() { w.play(t.Context(), client, 40) })
			}
			w.failOver(number%2 == 0, primary, replica, link, front)
			clients.Wait()
			history, open := w.certain()
			wantLinear(t, first, history)
			calls, opened = calls+len(history), opened+open
			wantBooks(t, w.nodes[0].db)
		})
	}
	if t.Failed() {
		return
	}
	report(t, "%d histories of %d clients on 2 nodes in the mode replica, with a failover in each, %d calls, %d of them "+
		"without a known outcome, all linear; %v", histories, linearPlayers, calls, opened,
		time.Since(began).Round(time.Second))
}

func TestHistoriesOfRoomsAndPurchasesAreLinear(t *testing.T) {
	store := redistest.StartForTest(t)
	w := &linearWorld{t: t, nodes: []*node{openNode(t, store.URL(), nil), openNode(t, store.URL(), nil)}}
	calls, histories, began := 0, pick(6, 100), time.Now()
	succeeded := map[string]int{}
	for range histories {
		first := w.prepare()
		var clients sync.WaitGroup
		for client := range linearPlayers {
			clients.Go(func() { w.play(t.Context(), client, 40) })
		}
		clients.Wait()
		wantLinear(t, first, w.history)
		calls += len(w.history)
		for _, op := range w.history {
			if text, _ := op.Output.(string); strings.HasPrefix(text, "ok") {
				succeeded[op.Input.(linearInput).verb]++
			}
		}
		wantBooks(t, w.nodes[0].db)
		if broken := breakHistory(w.history); broken != nil &&
			porcupine.CheckOperationsTimeout(linearModel(first), broken, time.Minute) == porcupine.Ok {
			t.Fatal("a history with a balance that is wrong by one unit passes too")
		}
	}
	report(t, "%d histories of %d clients on 2 nodes, %d calls, all linear, each illegal when one balance is off by a "+
		"unit; succeeded: %v; %v", histories, linearPlayers, calls, succeeded, time.Since(began).Round(time.Second))
}

// breakHistory returns a history in which one balance that was read is wrong by a unit; nil when
// none was read.
func breakHistory(history []porcupine.Operation) []porcupine.Operation {
	broken := slices.Clone(history)
	for i := len(broken) - 1; i >= 0; i-- {
		var free, held int64
		text, _ := broken[i].Output.(string)
		if n, _ := fmt.Sscanf(text, "ok %d held %d", &free, &held); n == 2 {
			broken[i].Output = fmt.Sprintf("ok %d held %d", free+1, held)
			return broken
		}
	}
	return nil
}
