package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
)

// path is a request that makes several calls of the store.
type path struct {
	name string
	// prepare makes what the request needs and returns the room that it is about, "" for none.
	prepare func(f *crashFixture) string
	do      func(ctx context.Context, n *node, f *crashFixture, room string, rc idempotency.Receipt) error
	// repeats is set when the same request without a key has its effect again: it is another request.
	repeats bool
}

// crashFixture is one economy, new for each crash.
type crashFixture struct {
	t       *testing.T
	node    *node // that does not crash
	economy economy
}

// open makes a room for up to three players and seats some of them; the first is the host.
func (f *crashFixture) open(autoStart bool, users ...int64) string {
	f.t.Helper()
	in := rooms.CreateInput{
		EntryTokenID: f.economy.tokenID, RoomEntry: amount(333), MaxPlayers: 3, AutoStart: autoStart,
		RakeBps: new(1000), PayoutBps: []int{6000, 4000},
	}
	return f.seat(in, users...)
}

func (f *crashFixture) seat(in rooms.CreateInput, users ...int64) string {
	f.t.Helper()
	r, err := f.node.rooms.Create(f.t.Context(), player(users[0]), in, receiptOf(""))
	for _, user := range users[1:] {
		if err == nil {
			_, err = f.node.rooms.Join(f.t.Context(), player(user), r.Room.RoomID, receiptOf(""))
		}
	}
	testkit.Check(f.t, err)
	return r.Room.RoomID
}

func (f *crashFixture) started(users ...int64) string {
	f.t.Helper()
	room := f.open(false, users...)
	testkit.Must(f.node.rooms.Start(f.t.Context(), server, room, receiptOf("")))(f.t)
	return room
}

var ranking = []rooms.Placement{{UserID: 2, Place: 1}, {UserID: 1, Place: 2}, {UserID: 3, Place: 2}}

func second(_ rooms.ChangeResult, err error) error { return err }

var paths = []path{
	{
		"create", func(*crashFixture) string { return "" },
		func(ctx context.Context, n *node, f *crashFixture, _ string, rc idempotency.Receipt) error {
			in := rooms.CreateInput{EntryTokenID: f.economy.tokenID, RoomEntry: "1", MaxPlayers: 3}
			return second(n.rooms.Create(ctx, player(1), in, rc))
		}, true,
	},
	{
		"join", func(f *crashFixture) string { return f.open(false, 1) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Join(ctx, player(2), room, rc))
		}, false,
	},
	{
		"join that starts the room", func(f *crashFixture) string { return f.open(true, 1, 2) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Join(ctx, player(3), room, rc))
		}, false,
	},
	{"ready that starts the room", func(f *crashFixture) string {
		room := f.open(true, 1, 2)
		testkit.Check(f.t, second(f.node.rooms.Ready(f.t.Context(), player(1), room, true, receiptOf(""))))
		return room
	}, func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
		return second(n.rooms.Ready(ctx, player(2), room, true, rc))
	}, false},
	{
		"leave before the start", func(f *crashFixture) string { return f.open(false, 1, 2, 3) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Leave(ctx, player(1), room, rc))
		}, false,
	},
	{
		"leave of the last player", func(f *crashFixture) string { return f.open(false, 1) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Leave(ctx, player(1), room, rc))
		}, false,
	},
	{
		"leave that leaves one player", func(f *crashFixture) string { return f.started(1, 2) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Leave(ctx, player(1), room, rc))
		}, false,
	},
	{
		"kick", func(f *crashFixture) string { return f.open(false, 1, 2) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Kick(ctx, player(1), rooms.KickInput{RoomID: room, UserID: 2, Ban: true}, rc))
		}, false,
	},
	{
		"start", func(f *crashFixture) string { return f.open(false, 1, 2) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Start(ctx, player(1), room, rc))
		}, false,
	},
	{
		"finish", func(f *crashFixture) string { return f.started(1, 2, 3) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Finish(ctx, server, room, ranking, rc))
		}, false,
	},
	{
		"cancel", func(f *crashFixture) string { return f.started(1, 2, 3) },
		func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Cancel(ctx, server, room, rc))
		}, false,
	},
	{
		"cancel after a seat was forfeited", func(f *crashFixture) string {
			room := f.started(1, 2, 3)
			testkit.Check(f.t, second(f.node.rooms.Leave(f.t.Context(), player(3), room, receiptOf(""))))
			return room
		}, func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
			return second(n.rooms.Cancel(ctx, server, room, rc))
		}, false,
	},
	{"rematch", func(f *crashFixture) string {
		room := f.started(1, 2, 3)
		testkit.Check(f.t, second(f.node.rooms.Finish(f.t.Context(), server, room, ranking, receiptOf(""))))
		return room
	}, func(ctx context.Context, n *node, _ *crashFixture, room string, rc idempotency.Receipt) error {
		return second(n.rooms.Rematch(ctx, player(2), room, rc))
	}, false},
	{"sweep", func(f *crashFixture) string {
		f.open(false, 1, 2)
		f.started(2, 3)
		overdue(f.t, f.node.db, wantBooks(f.t, f.node.db))
		return ""
	}, func(ctx context.Context, n *node, f *crashFixture, _ string, _ idempotency.Receipt) error {
		// The one who died held the lock: the next leader comes when its lease has ended.
		_, err := n.rooms.Sweep(ctx)
		return err
	}, false},
	{
		"fold", func(f *crashFixture) string { return f.started(1, 2, 3) },
		func(ctx context.Context, n *node, _ *crashFixture, _ string, _ idempotency.Receipt) error {
			return n.wallets.Fold(ctx, gameID)
		}, false,
	},
	{
		"purchase", func(*crashFixture) string { return "" },
		func(ctx context.Context, n *node, f *crashFixture, _ string, rc idempotency.Receipt) error {
			_, err := n.assets.Purchase(ctx, player(1), f.economy.assets[1], assets.PurchaseInput{Quantity: 1}, rc)
			return err
		}, true,
	},
	{
		"credit", func(*crashFixture) string { return "" },
		func(ctx context.Context, n *node, _ *crashFixture, _ string, rc idempotency.Receipt) error {
			in := wallet.CreditInput{UserID: 1, TokenCode: tokenCode, Amount: "5", Reason: "prize"}
			_, err := n.wallets.Credit(ctx, operator, in, rc)
			return err
		}, true,
	},
	{
		"debit", func(*crashFixture) string { return "" },
		func(ctx context.Context, n *node, _ *crashFixture, _ string, rc idempotency.Receipt) error {
			in := wallet.DebitInput{UserID: 1, TokenCode: tokenCode, Amount: "5", Reason: "penalty"}
			_, err := n.wallets.Debit(ctx, operator, in, rc)
			return err
		}, true,
	},
	{
		"grant at sign-up", func(*crashFixture) string { return "" },
		func(ctx context.Context, n *node, _ *crashFixture, _ string, _ idempotency.Receipt) error {
			return n.wallets.Grant(ctx, principal.Caller{Role: principal.System}, wallet.GrantInput{
				UserID: 1, GameID: gameID, TokenCode: tokenCode, Units: 500,
			})
		}, false,
	},
}

// accident is a keeper that does something at one step, and counts the steps.
type accident struct {
	mu    sync.Mutex
	at    int // from 0; -1 for never
	what  action
	dead  bool
	names []string
}

func (a *accident) step(name string, do func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return errKilled
	}
	a.names = append(a.names, name)
	if len(a.names) != a.at+1 {
		return do()
	}
	switch a.what {
	case dieBefore:
		a.dead = true
		return errKilled
	case dieAfter:
		_ = do()
		a.dead = true
		return errKilled
	case resend:
		if err := do(); err != nil {
			return err
		}
	}
	return do()
}

// TestARequestThatDiesAtAnyStepHasItsEffectOnceWhenItIsRepeated makes each request die before and
// after each call of the store, and repeats it on another node, with its key and without. What is
// stored then must be what it is without an accident.
func TestARequestThatDiesAtAnyStepHasItsEffectOnceWhenItIsRepeated(t *testing.T) {
	store := redistest.StartForTest(t)
	first, other := openNode(t, store.URL(), &gate{}), openNode(t, store.URL(), nil)
	f := &crashFixture{t: t, node: other}
	points, runs := map[string]bool{}, 0
	// run makes a new economy, has an accident, repeats the request, and returns what is stored.
	run := func(p path, at int, what action, key string) (stored string, steps []string) {
		runs++
		f.economy = makeEconomy(t, other, 3)
		first.forgetCaches()
		room := p.prepare(f)
		before := signature(wantBooks(t, other.db))
		a := &accident{at: at, what: what}
		first.gate.watch(a)
		err := p.do(t.Context(), first, f, room, receiptOf(key))
		first.gate.watch(nil)
		after := signature(wantBooks(t, other.db))
		if !a.dead && err != nil {
			t.Fatalf("%s returned %v", p.name, err)
		}
		if a.dead {
			freeLeases(t, other)
			err := p.do(t.Context(), other, f, room, receiptOf(key))
			if e, expected := apierror.As(err); err != nil && (key != "" || !expected || e == apierror.StoreUnavailable) {
				t.Fatalf("%s, repeated after it died at step %d of %v: %v", p.name, at, a.names, err)
			}
			after = signature(wantBooks(t, other.db))
		}
		if d, err := other.audit.AuditDeep(t.Context(), gameID); err != nil || !d.Balanced || len(d.Differences) > 0 {
			t.Fatalf("%s died at step %d of %v; the deep audit returns %+v, %v", p.name, at, a.names, d, err)
		}
		if after == before && p.name != "fold" {
			t.Fatalf("%s changed nothing, also when it was repeated", p.name)
		}
		return after, a.names
	}
	for _, p := range paths {
		want, steps := run(p, -1, goOn, "")
		for at := range steps {
			for _, what := range []action{dieBefore, dieAfter, resend} {
				for _, key := range []string{"key", ""} {
					got, _ := run(p, at, what, key)
					if got != want && (key != "" || !p.repeats || what == resend) {
						t.Errorf("%s, with the key %q,%s step %d of %v, and repeated, leaves\n%s\nwant\n%s",
							p.name, key, what, at, steps, got, want)
					}
				}
				points[fmt.Sprint(p.name, at, what)] = true
			}
		}
	}
	f.economy = makeEconomy(t, other, 3)
	report(t, "%d requests, %d points of death or resend, %d runs, each with its effect once", len(paths), len(points),
		runs)
}

// freeLeases ends the leases of a node that died, as time does.
func freeLeases(t *testing.T, n *node) {
	t.Helper()
	names, err := n.db.Client.Keys(t.Context(), "{l:*}:lock").Result()
	if err == nil && len(names) > 0 {
		err = n.db.Client.Del(t.Context(), names...).Err()
	}
	testkit.Check(t, err)
}

// signature is what the books hold, without what differs between two runs: ids of rooms and nonces.
func signature(b books.Books) string {
	var text strings.Builder
	for _, user := range slices.Sorted(maps.Keys(b.Wallets)) {
		fmt.Fprintf(&text, "player %d: %+v owns %v\n", user, b.Wallets[user], b.Owned[user])
	}
	var lines []string
	for _, r := range b.Rooms {
		lines = append(lines, fmt.Sprintf("room: %s pot %d active %v stakes %v\n", r.Status, r.Pot, r.Active, r.Stakes))
	}
	for _, e := range b.Entries {
		lines = append(lines, fmt.Sprintf("entry: %s %v\n", e.Reason, e.Postings))
	}
	slices.Sort(lines)
	text.WriteString(strings.Join(lines, ""))
	return text.String()
}
