package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/books"
)

// call is one intent of a client. It may be sent several times, to several nodes; with a key all of
// these are the same request.
type call struct {
	kind, about string
	user        int64  // who is about it; 0 for nobody
	room        string // that it is about, "" for none
	key         string // "" for none
	reason      string // of a credit or debit, its own
	do          func(ctx context.Context, n *node, rc idempotency.Receipt) (result string, err error)

	fault   error          // the last one
	results map[string]int // what those got that lived to hear it: how often
}

// send makes the call on a node and returns what a client hears: "ok" with what must be the same in
// every response, or the code of the error.
func (c *call) send(ctx context.Context, n *node) string {
	result, err := c.do(ctx, n, receiptOf(c.key))
	if err == nil {
		return "ok " + result
	}
	c.fault = err
	if e, ok := apierror.As(err); ok {
		return e.Code
	}
	return "internal: " + err.Error()
}

func (c *call) String() string { return c.kind + " " + c.about + " key=" + c.key }

// caller makes up calls on an economy.
type caller struct {
	rng     *rand.Rand
	economy economy
	players int64
	foreign []string // rooms of another game, which a player tries to get into now and then
	name    string   // of this caller: its keys and reasons start with it
	keyed   bool     // every request that may have one has a key
	number  int
}

func (m *caller) chance(percent int) bool { return m.rng.IntN(100) < percent }

// kinds are the calls of players, game servers, operators and nodes, and how often each is made.
var kinds = []string{
	"create", "create", "create", "join", "join", "join", "join", "join", "leave", "leave", "leave", "kick", "kick",
	"ready",
	"start", "start", "start", "finish", "finish", "finish", "finish", "cancel", "rematch", "transfer",
	"sweep", "sweep", "fold", "purchase", "purchase", "purchase", "credit", "credit", "debit",
}

// next makes up a call that may succeed with the books as they are.
func (m *caller) next(b books.Books) *call { return m.make(kinds[m.rng.IntN(len(kinds))], b) }

// make makes up a call of a kind.
func (m *caller) make(kind string, b books.Books) *call {
	m.number++
	c := &call{kind: kind, reason: fmt.Sprintf("%s-%s%d", kind, m.name, m.number), results: map[string]int{}}
	if m.keyed || m.chance(60) {
		c.key = fmt.Sprintf("k%s%d", m.name, m.number)
	}
	live := b.LiveRooms()
	roomID := "01234567-89ab-8cde-8f01-000000000001"
	if len(live) > 0 {
		roomID = live[m.rng.IntN(len(live))]
	} else if kind == "join" || kind == "leave" || kind == "start" || kind == "finish" || kind == "cancel" {
		kind = "create"
		c.kind = kind
	}
	room := b.Rooms[roomID]
	backend := backendOf(m.economy.game)
	who := player(userOf(m.economy.game, 1+m.rng.Int64N(m.players)))
	if slices.Contains([]string{"leave", "ready", "kick", "transfer"}, kind) && len(room.Active) > 0 && m.chance(80) {
		who = player(room.Active[m.rng.IntN(len(room.Active))])
	}
	if len(m.foreign) > 0 && m.chance(3) {
		roomID = m.foreign[m.rng.IntN(len(m.foreign))]
	}
	c.about, c.room, c.user = fmt.Sprintf("%s by %d", roomID, who.UserID), roomID, who.UserID
	changed := func(r rooms.ChangeResult, err error) (string, error) {
		if r.Room == nil {
			return "", err
		}
		return r.Room.RoomID, err
	}
	switch kind {
	case "create":
		in := rooms.CreateInput{
			EntryTokenID: m.economy.tokenID, RoomEntry: amount(1 + m.rng.Int64N(4000)), MaxPlayers: 2 + m.rng.IntN(3),
			MinPlayers: new(1 + m.rng.IntN(2)), AutoStart: m.chance(30), RakeBps: new(m.rng.IntN(1000)),
		}
		if m.chance(30) {
			in.PayoutBps = []int{6000, 4000}
		}
		if m.chance(20) {
			in.Tie = rooms.TieRefund
		}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Create(ctx, who, in, rc))
		}
	case "join":
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Join(ctx, who, roomID, rc))
		}
	case "leave":
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Leave(ctx, who, roomID, rc))
		}
	case "kick":
		in := rooms.KickInput{RoomID: roomID, UserID: who.UserID, Ban: m.chance(20)}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Kick(ctx, backend, in, rc))
		}
	case "ready":
		ready := m.chance(80)
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Ready(ctx, who, roomID, ready, rc))
		}
	case "start":
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Start(ctx, backend, roomID, rc))
		}
	case "transfer":
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.TransferHost(ctx, backend, roomID, who.UserID, rc))
		}
	case "finish":
		results := m.placements(room.Active)
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Finish(ctx, backend, roomID, results, rc))
		}
	case "cancel":
		by := backend
		if m.chance(30) {
			by = operator
		}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Cancel(ctx, by, roomID, rc))
		}
	case "rematch":
		var ended []string
		for id, r := range b.Rooms {
			if r.HasEnded() && len(r.Active) > 0 {
				ended = append(ended, id)
			}
		}
		if slices.Sort(ended); len(ended) > 0 {
			roomID = ended[m.rng.IntN(len(ended))]
			who = player(b.Rooms[roomID].Active[0])
		}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			return changed(n.rooms.Rematch(ctx, who, roomID, rc))
		}
	case "sweep":
		c.key = ""
		c.do = func(ctx context.Context, n *node, _ idempotency.Receipt) (string, error) {
			_, err := n.rooms.Sweep(ctx)
			return "", err
		}
	case "fold":
		c.key = ""
		c.do = func(ctx context.Context, n *node, _ idempotency.Receipt) (string, error) {
			return "", n.wallets.Fold(ctx, m.economy.game)
		}
	case "archive":
		c.key = ""
		c.do = func(ctx context.Context, n *node, _ idempotency.Receipt) (string, error) {
			return "", n.archiver.Archive(ctx, m.economy.game)
		}
	case "purchase":
		asset := m.economy.assets[m.rng.IntN(len(m.economy.assets))]
		c.about = fmt.Sprintf("asset %d by %d", asset, who.UserID)
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			p, err := n.assets.Purchase(ctx, who, asset, assets.PurchaseInput{Quantity: 1}, rc)
			return fmt.Sprint(p.PurchaseID), err
		}
	case "credit":
		in := wallet.CreditInput{
			UserID: who.UserID, TokenCode: tokenCode, Amount: amount(1 + m.rng.Int64N(500)), Reason: c.reason,
		}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			_, err := n.wallets.Credit(ctx, operator, in, rc)
			return "", err
		}
	case "debit":
		in := wallet.DebitInput{
			UserID: who.UserID, TokenCode: tokenCode, Amount: amount(1 + m.rng.Int64N(500)), Reason: c.reason,
		}
		c.do = func(ctx context.Context, n *node, rc idempotency.Receipt) (string, error) {
			_, err := n.wallets.Debit(ctx, operator, in, rc)
			return "", err
		}
	}
	return c
}

// lost returns the calls that got ok and have left nothing: money that a client was promised.
func lost(calls []*call, b books.Books) (list []*call) {
	number, reasons, refs := map[string]books.Entry{}, map[string]bool{}, map[string]bool{}
	for i, e := range b.Entries {
		number[fmt.Sprint(b.Dropped+int64(i)+1)] = e
		reasons[e.Reason] = true
		refs[e.Ref] = true
		if e.Reason == "entry" {
			for account := range e.Postings {
				refs[account+" in "+e.Ref] = true
			}
		}
	}
	bought := map[string]bool{}
	for _, c := range calls {
		for result := range c.results {
			rest, ok := cutOK(result)
			if !ok {
				continue
			}
			wallet := keys.WalletAccount(strconv.FormatInt(c.user, 10))
			switch c.kind {
			case "purchase":
				e := number[rest]
				_, paid := e.Postings[wallet]
				ok = e.Reason == "purchase" && paid && !bought[rest] // else another one is in its place
				bought[rest] = true
			case "credit", "debit":
				ok = reasons[c.reason]
			case "create", "rematch":
				ok = refs[rest]
			case "join":
				ok = refs[wallet+" in "+c.room]
			}
			if !ok {
				list = append(list, c)
			}
		}
	}
	return list
}

// placements makes up a result for players.
func (m *caller) placements(users []int64) []rooms.Placement {
	order := slices.Clone(users)
	m.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var list []rooms.Placement
	for i, user := range order {
		place := i + 1
		if i > 0 && m.chance(25) {
			place = list[i-1].Place
		}
		list = append(list, rooms.Placement{UserID: user, Place: place})
	}
	return list
}

// checkOnce returns what is wrong when calls that were sent several times had more than one effect,
// or when a client was promised one that there is not.
func checkOnce(calls []*call, b books.Books) error {
	times, number := map[string]int{}, map[string]books.Entry{}
	for i, e := range b.Entries {
		times[e.Reason]++
		number[fmt.Sprint(b.Dropped+int64(i)+1)] = e
	}
	bought := map[string]*call{}
	for _, c := range calls {
		promised := false
		var codes []string
		for result, n := range c.results {
			if n == 0 {
				continue
			}
			codes = append(codes, result)
			if rest, ok := cutOK(result); ok {
				promised = true
				if c.kind != "purchase" {
					continue
				}
				e := number[rest]
				if e.Reason != "purchase" {
					return fmt.Errorf("%s was purchase %s, but that entry is %v", c, rest, e)
				}
				if other := bought[rest]; other != nil && other != c {
					return fmt.Errorf("%s and %s are both purchase %s", c, other, rest)
				}
				bought[rest] = c
			}
		}
		if c.kind == "credit" || c.kind == "debit" {
			if n := times[c.reason]; n > 1 || promised && n != 1 {
				return fmt.Errorf("%s, which got %v, is %d times in the ledger", c, codes, n)
			}
		}
		if c.key != "" && c.kind != "finish" && len(codes) > 1 {
			return fmt.Errorf("%s got different responses: %v", c, codes)
		}
	}
	return b.CheckBought()
}

// cutOK returns what follows ok in a result.
func cutOK(result string) (rest string, ok bool) {
	if len(result) < 3 || result[:3] != "ok " {
		return "", false
	}
	return result[3:], true
}
