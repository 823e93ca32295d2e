package rooms_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/rooms"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The model: rooms and money as the contract tells them, in plain Go, without a thought for how the scripts do it.

type seatModel struct {
	user, stake int64
	state       rooms.SeatState
	ready       bool
}

type roomModel struct {
	id, code         string
	entry, pot, rake int64
	most, least      int
	friends, auto    bool
	vis              rooms.Visibility
	bps              int
	table            []int
	tie              rooms.Tie
	creator, host    int64
	status           rooms.Status
	reason           string
	ver              int64
	seats            []seatModel
	banned           map[int64]bool
	places           map[int64]int
	rematch          *roomModel
	events           []string
	gone             bool
	told             []string // positions of the events that were compared
}

func (r *roomModel) seat(user int64) *seatModel {
	for i := range r.seats {
		if r.seats[i].user == user {
			return &r.seats[i]
		}
	}
	return nil
}

func (r *roomModel) active() (list []int64) {
	for _, s := range r.seats {
		if s.state == rooms.Active {
			list = append(list, s.user)
		}
	}
	return list
}

func (r *roomModel) taken() int {
	return len(r.seats) - len(slices.DeleteFunc(slices.Clone(r.seats), func(s seatModel) bool { return s.state != rooms.Forfeited }))
}

func (r *roomModel) ended() bool { return r.status.Ended() }

func (r *roomModel) tell(kind string) { r.events = append(r.events, kind) }

func (r *roomModel) rise(user int64) {
	r.seats = slices.DeleteFunc(r.seats, func(s seatModel) bool { return s.user == user })
}

type world struct {
	t          *rapid.T
	ctx        context.Context
	house      *house
	rooms      *rooms.Service
	resend     *resender
	players    []principal.Caller
	free, held map[int64]int64
	minted     int64
	taken      int64 // rake
	list       []*roomModel
	receipts   []receipt
	keys       int
}

// receipt is a keyed call and its first answer.
type receipt struct {
	rc   idempotency.Receipt
	word string
	room string
	do   func(idempotency.Receipt) (rooms.Result, error)
}

// resender is a line that loses replies: while it is on, every script runs twice and only the second answer arrives.
type resender struct{ on atomic.Bool }

func (*resender) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *resender) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		scripts := slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return strings.HasPrefix(c.Name(), "eval") })
		if err != nil || !scripts || !r.on.Load() {
			return err
		}
		return next(ctx, cmds)
	}
}

func (r *resender) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err != nil || !r.on.Load() || name != "evalsha" && name != "eval" {
			return err
		}
		return next(ctx, cmd)
	}
}

func (w *world) pay(user, delta, held int64) {
	w.free[user] += delta
	w.held[user] += held
}

func (w *world) charge(r *roomModel, user int64) {
	w.pay(user, -r.entry, r.entry)
	r.pot += r.entry
}

func (w *world) sit(r *roomModel, user int64) {
	r.rise(user)
	r.seats = append(r.seats, seatModel{user: user, state: rooms.Active, stake: r.entry})
	w.charge(r, user)
}

func (w *world) autostart(r *roomModel) {
	if !r.auto || r.status != rooms.Created {
		return
	}
	ready := true
	for _, s := range r.seats {
		ready = ready && (s.state != rooms.Active || s.ready)
	}
	if n := len(r.active()); n == r.most || ready && n >= r.least {
		w.start(r)
	}
}

func (w *world) start(r *roomModel) {
	r.status = rooms.Started
	r.seats = slices.DeleteFunc(r.seats, func(s seatModel) bool { return s.state == rooms.Reserved })
	r.tell("room.started")
}

func (w *world) cancel(r *roomModel, reason string) {
	for _, s := range r.seats {
		w.pay(s.user, s.stake, -s.stake)
	}
	r.status, r.reason = rooms.Cancelled, reason
	r.tell("room.cancelled")
}

// settle pays out by exact fractions: what the table gives each place, rounded down, the first place has the rest.
func (w *world) settle(r *roomModel, places map[int64]int) {
	r.status, r.places = rooms.Finished, places
	r.tell("room.finished")
	part := func(u int64, bps int) int64 {
		x := new(big.Int).Mul(big.NewInt(u), big.NewInt(int64(bps)))
		return x.Div(x, big.NewInt(10_000)).Int64()
	}
	at := map[int][]int64{}
	for _, user := range r.active() {
		at[places[user]] = append(at[places[user]], user)
	}
	for _, s := range r.seats {
		w.pay(s.user, 0, -s.stake)
	}
	if r.tie == rooms.TieRefund && len(at[1]) > 1 {
		for _, s := range r.seats {
			w.pay(s.user, s.stake, 0)
		}
		return
	}
	r.rake = part(r.pot, r.bps)
	w.taken += r.rake
	net := r.pot - r.rake
	shares := make([]int64, len(places)+1)
	for place := 2; place <= min(len(r.table), len(places)); place++ {
		shares[place] = part(net, r.table[place-1])
	}
	shares[1] = net
	for _, s := range shares[2:] {
		shares[1] -= s
	}
	for place, tied := range at {
		sum := int64(0)
		for i := range tied {
			sum += shares[place+i]
		}
		for i, user := range tied {
			units := sum / int64(len(tied))
			if int64(i) < sum%int64(len(tied)) {
				units++
			}
			w.pay(user, units, 0)
		}
	}
}

func (w *world) rehost(r *roomModel) {
	if list := r.active(); len(list) > 0 && !slices.Contains(list, r.host) {
		r.host = list[0]
		r.tell("room.host_changed")
	}
}

func (w *world) areFriends(a, b int64) bool {
	list, _ := w.house.AreFriends(w.ctx, a, b)
	return list[b]
}

// The verbs: each answers the word that the service must answer, and does to the model what the service must have done.

func (w *world) join(r *roomModel, p principal.Caller) string {
	s := r.seat(p.User)
	stranger := s == nil && p.User != r.creator && !w.areFriends(p.User, r.creator)
	switch {
	case r.gone, stranger && r.vis == rooms.Private:
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s != nil && s.state == rooms.Active:
		return "ok"
	case r.status == rooms.Started:
		return "already_started"
	case r.banned[p.User]:
		return "banned"
	case stranger && r.friends:
		return "friends_only"
	case s == nil && r.taken() >= r.most:
		return "room_full"
	case w.free[p.User] < r.entry:
		return "insufficient_funds"
	}
	w.sit(r, p.User)
	r.ver++
	r.tell("room.joined")
	w.autostart(r)
	return "ok"
}

func (w *world) hidden(r *roomModel, p principal.Caller) bool {
	return r.gone || r.vis == rooms.Private && p.Role == principal.Player && r.seat(p.User) == nil
}

func (w *world) leave(r *roomModel, p principal.Caller) string {
	s := r.seat(p.User)
	switch {
	case w.hidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s == nil || s.state == rooms.Forfeited:
		return "not_participant"
	}
	r.ver++
	if r.status == rooms.Started {
		s.state = rooms.Forfeited
	} else {
		w.pay(p.User, s.stake, -s.stake)
		r.pot -= s.stake
		r.rise(p.User)
	}
	r.tell("room.left")
	w.rehost(r)
	list := r.active()
	switch {
	case len(list) == 0:
		w.cancel(r, "empty")
	case r.status == rooms.Started && r.entry > 0 && len(list) == 1:
		w.settle(r, map[int64]int{list[0]: 1})
	default:
		w.autostart(r)
	}
	return "ok"
}

func (w *world) ready(r *roomModel, p principal.Caller, ready bool) string {
	s := r.seat(p.User)
	switch {
	case w.hidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s == nil || s.state != rooms.Active:
		return "not_participant"
	case r.status != rooms.Created:
		return "already_started"
	case s.ready == ready:
		return "ok"
	}
	s.ready = ready
	r.ver++
	r.tell("room.ready")
	w.autostart(r)
	return "ok"
}

// rules is what only the host and the server may do.
func (w *world) rules(r *roomModel, p principal.Caller) string {
	switch {
	case w.hidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case p.Role == principal.Player && p.User != r.host:
		return "not_host"
	}
	return ""
}

func (w *world) kick(r *roomModel, p principal.Caller, user int64, ban bool) string {
	if user == p.User {
		return "invalid_request"
	}
	if word := w.rules(r, p); word != "" {
		return word
	}
	s := r.seat(user)
	switch {
	case r.status != rooms.Created:
		return "already_started"
	case s == nil:
		return "not_participant"
	}
	r.ver++
	w.pay(user, s.stake, -s.stake)
	r.pot -= s.stake
	r.rise(user)
	if ban {
		r.banned[user] = true
	}
	r.tell("room.left")
	w.rehost(r)
	if len(r.active()) == 0 {
		w.cancel(r, "empty")
	} else {
		w.autostart(r)
	}
	return "ok"
}

func (w *world) transfer(r *roomModel, p principal.Caller, user int64) string {
	if word := w.rules(r, p); word != "" {
		return word
	}
	switch s := r.seat(user); {
	case s == nil || s.state != rooms.Active:
		return "not_participant"
	case user == r.host:
		return "ok"
	}
	r.ver++
	r.host = user
	r.tell("room.host_changed")
	return "ok"
}

func (w *world) begin(r *roomModel, p principal.Caller) string {
	if word := w.rules(r, p); word != "" {
		return word
	}
	switch {
	case r.status != rooms.Created:
		return "already_started"
	case len(r.active()) < r.least:
		return "not_enough_players"
	}
	r.ver++
	w.start(r)
	return "ok"
}

func (w *world) finish(r *roomModel, places map[int64]int, valid bool) string {
	switch {
	case r.gone:
		return "room_not_found"
	case r.status == rooms.Finished && maps.Equal(places, r.places):
		return "ok"
	case r.status == rooms.Finished:
		return "result_conflict"
	case r.status == rooms.Cancelled:
		return "room_closed"
	case r.status == rooms.Created:
		return "not_started"
	case !valid:
		return "invalid_request"
	}
	r.ver++
	w.settle(r, places)
	return "ok"
}

func (w *world) void(r *roomModel, p principal.Caller) string {
	reason := map[principal.Role]string{principal.Player: "host", principal.Server: "server", principal.Operator: "operator"}[p.Role]
	if word := w.rules(r, p); word != "" {
		return word
	}
	if p.Role == principal.Player && r.status != rooms.Created {
		return "already_started"
	}
	r.ver++
	w.cancel(r, reason)
	return "ok"
}

func (w *world) again(r *roomModel, p principal.Caller) (string, *roomModel) {
	s := r.seat(p.User)
	switch {
	case w.hidden(r, p):
		return "room_not_found", nil
	case s == nil || s.state != rooms.Active:
		return "not_participant", nil
	case r.status == rooms.Created:
		return "not_started", nil
	case r.status == rooms.Started:
		return "already_started", nil
	case r.rematch != nil && r.rematch.gone:
		return "room_not_found", nil
	case r.rematch != nil:
		return "ok", r.rematch
	case w.free[p.User] < r.entry:
		return "insufficient_funds", nil
	}
	r.ver++
	r.tell("room.rematch")
	n := &roomModel{
		entry: r.entry, most: r.most, least: r.least, friends: r.friends, auto: r.auto, vis: r.vis, bps: r.bps, table: r.table, tie: r.tie,
	}
	others := slices.DeleteFunc(r.active(), func(id int64) bool { return id == p.User })
	w.open(n, p, others)
	r.rematch = n
	return "ok", n
}

func (w *world) open(n *roomModel, p principal.Caller, reserved []int64) {
	n.creator, n.host, n.status, n.ver, n.banned = p.User, p.User, rooms.Created, 1, map[int64]bool{}
	w.sit(n, p.User)
	for _, id := range reserved {
		n.seats = append(n.seats, seatModel{user: id, state: rooms.Reserved})
	}
	n.tell("room.created")
	w.autostart(n)
	w.list = append(w.list, n)
}

// try makes a call that the model has already made, and demands the same word and the same room.
func (w *world) try(what, want string, r *roomModel, do func(idempotency.Receipt) (rooms.Result, error)) {
	w.t.Helper()
	var rc idempotency.Receipt
	if rapid.IntRange(0, 2).Draw(w.t, "keyed") == 0 {
		w.keys++
		rc = idempotency.Receipt{Key: fmt.Sprintf("%d-%d", w.house.game, w.keys), Fingerprint: what}
	}
	w.resend.on.Store(rapid.IntRange(0, 2).Draw(w.t, "reply lost") == 0)
	a, err := do(rc)
	w.resend.on.Store(false)
	word, room := outcome(a, err)
	if word != want || a.Replayed {
		w.t.Fatalf("%s answers %s, %v (replayed: %v), want %s", what, word, err, a.Replayed, want)
	}
	if word == "ok" {
		if r.id == "" {
			r.id, r.code = a.Room.RoomID, a.Room.Code
		}
		w.same(what, r, a.Room)
	}
	if rc.Key != "" && word != "invalid_request" {
		w.receipts = append(w.receipts, receipt{rc: rc, word: word, room: room, do: do})
	}
}

func outcome(a rooms.Result, err error) (word, room string) {
	if err == nil {
		text, err := json.Marshal(a.Room)
		if err != nil {
			return err.Error(), ""
		}
		return "ok", string(text)
	}
	if refusal, ok := apierror.As(err); ok {
		return refusal.Code, ""
	}
	return err.Error(), ""
}

// same demands that a room is what the model says.
func (w *world) same(what string, r *roomModel, got rooms.Room) {
	w.t.Helper()
	seats := []seatModel{}
	for _, s := range got.Seats {
		seats = append(seats, seatModel{user: s.UserID, state: s.State, ready: s.Ready, stake: int64(s.Stake)})
		if s.Profile().ID != s.UserID {
			w.t.Fatalf("%s: the seat of %d shows %+v", what, s.UserID, s.Profile())
		}
	}
	next := ""
	if r.rematch != nil {
		next = r.rematch.id
	}
	if got.RoomID != r.id || got.Status != r.status || got.Version != r.ver || got.Seq != int64(len(r.events)) || got.Host != r.host ||
		got.Creator != r.creator || int64(got.Pot) != r.pot || int64(got.Rake) != r.rake || got.Reason != r.reason || got.RematchID != next ||
		got.StartedAt.IsZero() == slices.Contains(r.events, "room.started") || got.FinishedAt.IsZero() == r.ended() || !slices.Equal(seats, r.seats) {
		w.t.Fatalf("%s: the room is\n%+v\nwant\n%+v", what, got, *r)
	}
}

// check compares all that the store holds with the model: events, balances, totals, indexes.
func (w *world) check() {
	w.t.Helper()
	pipe := w.house.db.Client.Pipeline()
	streams, heads, wallets := map[*roomModel]*redis.XMessageSliceCmd{}, map[*roomModel]*redis.SliceCmd{}, map[int64]*redis.SliceCmd{}
	for _, r := range w.list {
		home, _ := keys.RoomShard(r.id)
		after := "-"
		if n := len(r.told); n > 0 {
			after = "(" + r.told[n-1]
		}
		streams[r] = pipe.XRange(w.ctx, keys.RoomEvents(home, r.id), after, "+")
		heads[r] = pipe.HMGet(w.ctx, keys.Room(home, r.id), "seq", "state")
	}
	code := w.house.token.TokenID
	for _, p := range w.players {
		wallets[p.User] = pipe.HMGet(w.ctx, keys.Wallet(p.User), "free:"+code, "held:"+code)
	}
	totals := pipe.HMGet(w.ctx, keys.Totals(), "minted:"+code, "wallets:"+code, "escrow:"+code, "house:"+code)
	indexes := map[string][]*redis.StringSliceCmd{}
	for _, home := range []keys.Shard{keys.Economy, keys.FreeShard(0)} {
		for _, state := range []string{"open", "created", "started", "finished", "cancelled", "all"} {
			indexes[state] = append(indexes[state], pipe.ZRange(w.ctx, keys.RoomIndex(home, w.house.game, state), 0, -1))
		}
	}
	if _, err := pipe.Exec(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range w.list {
		if r.gone {
			if len(streams[r].Val()) > 0 || heads[r].Val()[0] != nil {
				w.t.Fatalf("room %s is not gone", r.id)
			}
			continue
		}
		fresh := r.events[len(r.told):]
		if types := eventTypes(w.t, streams[r].Val(), len(r.told), r.id); !slices.Equal(types, fresh) {
			w.t.Fatalf("room %s told %v, want %v", r.id, types, fresh)
		}
		for _, entry := range streams[r].Val() {
			r.told = append(r.told, entry.ID)
		}
		last := r.told[len(r.told)-1]
		want := fmt.Sprintf("%d|%s|%d|%d|%s|%d|", len(r.events), r.status, r.host, r.ver, last, r.pot)
		if got := fmt.Sprintf("%s|%s", heads[r].Val()...); !strings.HasPrefix(got, want) {
			w.t.Fatalf("room %s has %v, want %v", r.id, got, want)
		}
	}
	units := func(v any) int64 {
		if v == nil {
			return 0
		}
		n, err := strconv.ParseInt(v.(string), 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		return n
	}
	free, held := int64(0), int64(0)
	for _, p := range w.players {
		got := wallets[p.User].Val()
		if units(got[0]) != w.free[p.User] || units(got[1]) != w.held[p.User] || w.held[p.User] < 0 {
			w.t.Fatalf("player %d has %v, want %d and %d", p.User, got, w.free[p.User], w.held[p.User])
		}
		free, held = free+w.free[p.User], held+w.held[p.User]
	}
	for i, want := range []int64{w.minted, free, held, w.taken} {
		if got := units(totals.Val()[i]); got != want {
			w.t.Fatalf("total %d is %d, want %d", i, got, want)
		}
	}
	if w.minted != free+held+w.taken {
		w.t.Fatal("the model itself makes money")
	}
	want := map[string][]string{}
	for _, r := range w.list {
		if r.gone {
			continue
		}
		want["all"] = append(want["all"], r.id)
		if r.vis != rooms.Public {
			continue
		}
		status := strings.ToLower(string(r.status))
		want[status] = append(want[status], r.id)
		if r.status == rooms.Created && r.taken() < r.most {
			want["open"] = append(want["open"], r.id)
		}
	}
	for state, parts := range indexes {
		var got []string
		for _, part := range parts {
			got = append(got, part.Val()...)
		}
		slices.Sort(got)
		slices.Sort(want[state])
		if !slices.Equal(got, want[state]) {
			w.t.Fatalf("index %s names %v, want %v", state, got, want[state])
		}
	}
}

const (
	modelIdle  = time.Hour
	modelAge   = 24 * time.Hour
	modelMatch = 2 * time.Hour
	modelKeep  = 36 * time.Hour
)

// pass lets time pass for a room until the sweep must act on it: its clock is set back.
func (w *world) pass(r *roomModel) {
	home, _ := keys.RoomShard(r.id)
	back := func(field string, d time.Duration) {
		w.house.db.Client.HIncrBy(w.ctx, keys.Room(home, r.id), field, -d.Milliseconds()-60_000)
	}
	switch {
	case r.status == rooms.Created && rapid.Bool().Draw(w.t, "idle"):
		back("changed", modelIdle)
		r.ver++
		w.cancel(r, "idle")
	case r.status == rooms.Created:
		back("created", modelAge)
		r.ver++
		w.cancel(r, "expired")
	case r.status == rooms.Started:
		back("started", modelMatch)
		r.ver++
		w.cancel(r, "timeout")
	default:
		back("finished", modelKeep)
		r.gone = true
	}
	w.house.db.Client.ZAdd(w.ctx, keys.RoomsDue(home), redis.Z{Score: 0, Member: r.id})
	w.resend.on.Store(rapid.Bool().Draw(w.t, "reply lost"))
	n, err := w.rooms.Sweep(w.ctx)
	w.resend.on.Store(false)
	if n != 1 || err != nil {
		w.t.Fatalf("the sweep looked at %d rooms, %v", n, err)
	}
	if !r.gone {
		got, err := w.rooms.Get(w.ctx, operator, r.id)
		if err != nil {
			w.t.Fatal(err)
		}
		w.same("sweep", r, got)
	}
}

func (w *world) step() {
	t := w.t
	draw := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	p := w.players[draw("player", len(w.players))]
	what := rapid.SampledFrom([]string{
		"create", "join", "join", "join", "join", "leave", "leave", "ready", "ready", "kick", "transfer", "start", "start", "finish", "finish", "cancel", "rematch", "pass", "replay",
	}).Draw(t, "verb")
	if len(w.list) == 0 || what == "create" && len(w.list) < 4 {
		w.create(p)
		return
	}
	r := w.list[draw("room", len(w.list))]
	if rapid.IntRange(0, 3).Draw(t, "newest") > 0 {
		r = w.list[len(w.list)-1]
	}
	master := p // the one who tries what the host may
	switch draw("master", 4) {
	case 0, 1:
		master = principal.Caller{Role: principal.Player, User: r.host, Game: w.house.game}
	case 2:
		master = w.house.server()
	}
	other := w.players[draw("other", len(w.players))].User
	switch what {
	case "create", "join":
		w.try("join", w.join(r, p), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Join(w.ctx, p, r.id, rc) })
	case "leave":
		w.try(what, w.leave(r, p), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Leave(w.ctx, p, r.id, rc) })
	case "ready":
		ready := draw("unready", 4) > 0
		w.try(what, w.ready(r, p, ready), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Ready(w.ctx, p, r.id, ready, rc) })
	case "kick":
		in := rooms.KickInput{RoomID: r.id, UserID: other, Ban: rapid.Bool().Draw(t, "ban")}
		w.try(what, w.kick(r, master, other, in.Ban), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Kick(w.ctx, master, in, rc) })
	case "transfer":
		w.try(what, w.transfer(r, master, other), r, func(rc idempotency.Receipt) (rooms.Result, error) {
			return w.rooms.TransferHost(w.ctx, master, r.id, other, rc)
		})
	case "start":
		w.try(what, w.begin(r, master), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Start(w.ctx, master, r.id, rc) })
	case "finish":
		results, places, valid := w.results(r)
		w.try(what, w.finish(r, places, valid), r, func(rc idempotency.Receipt) (rooms.Result, error) {
			return w.rooms.Finish(w.ctx, w.house.server(), r.id, results, rc)
		})
	case "cancel":
		if draw("operator", 4) == 0 {
			master = operator
		}
		if master.Role == principal.Operator && r.gone {
			return // its game is not known any more; the keyed calls of the others tell enough
		}
		w.try(what, w.void(r, master), r, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Cancel(w.ctx, master, r.id, rc) })
	case "rematch":
		word, n := w.again(r, p)
		w.try(what, word, n, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Rematch(w.ctx, p, r.id, rc) })
	case "pass":
		if !r.gone {
			w.pass(r)
		}
	case "replay":
		w.replay()
	}
}

func (w *world) create(p principal.Caller) {
	t := w.t
	most := rapid.IntRange(1, 4).Draw(t, "most")
	entry := rapid.SampledFrom([]int64{0, 0, 1, 7, 100, int64(wallet.MaxUnits) / int64(most)}).Draw(t, "entry")
	least := rapid.IntRange(1, most).Draw(t, "least")
	bps := rapid.SampledFrom([]int{0, 1, 333, 10_000}).Draw(t, "rake")
	table := rapid.SampledFrom([][]int{{10_000}, {6000, 4000}, {3334, 3333, 3333}, {0, 9999, 1, 0}}).Draw(t, "table")
	if len(table) > most {
		table = []int{10_000}
	}
	n := &roomModel{
		entry: entry, most: most, least: least, bps: bps, table: table,
		friends: rapid.IntRange(0, 3).Draw(t, "friends") == 0, auto: rapid.IntRange(0, 3).Draw(t, "auto") == 0,
		vis: rapid.SampledFrom([]rooms.Visibility{rooms.Public, rooms.Public, rooms.Public, rooms.Unlisted, rooms.Private}).Draw(t, "visibility"),
		tie: rapid.SampledFrom([]rooms.Tie{rooms.TieSplit, rooms.TieRefund}).Draw(t, "tie"),
	}
	in := rooms.CreateInput{
		MaxPlayers: most, MinPlayers: &least, FriendsOnly: n.friends, AutoStart: n.auto, Visibility: n.vis, RakeBps: &bps, Payout: table, Tie: n.tie,
	}
	if entry > 0 {
		in.EntryTokenID, in.RoomEntry = w.house.token.ID, wallet.AmountInput(wallet.Units(entry).Decimal(2))
	}
	word := "insufficient_funds"
	if w.free[p.User] >= entry {
		w.open(n, p, nil)
		word = "ok"
	}
	w.try("create", word, n, func(rc idempotency.Receipt) (rooms.Result, error) { return w.rooms.Create(w.ctx, p, in, rc) })
}

// results draws a ranking of the players, or something that is none.
func (w *world) results(r *roomModel) (list []rooms.Placement, places map[int64]int, valid bool) {
	players := r.active()
	places, valid = map[int64]int{}, true
	if r.places != nil && rapid.Bool().Draw(w.t, "same") {
		places = r.places
	} else {
		order := rapid.Permutation(players).Draw(w.t, "order")
		for i, user := range order {
			places[user] = i + 1
			if i > 0 && rapid.Bool().Draw(w.t, "tied") {
				places[user] = places[order[i-1]]
			}
		}
		switch rapid.IntRange(0, 7).Draw(w.t, "flaw") {
		case 0:
			places[w.players[0].User+1_000_000] = 1
			valid = false
		case 1:
			if len(order) > 0 {
				places[order[0]], valid = 0, false
			}
		}
	}
	for user, place := range places {
		list = append(list, rooms.Placement{UserID: user, Place: place})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].UserID < list[j].UserID })
	return rapid.Permutation(list).Draw(w.t, "results"), places, valid
}

// replay makes an old keyed call again: its first answer comes, whatever has happened since, and another request with its key is refused.
func (w *world) replay() {
	if len(w.receipts) == 0 {
		return
	}
	k := w.receipts[rapid.IntRange(0, len(w.receipts)-1).Draw(w.t, "receipt")]
	a, err := k.do(k.rc)
	if word, room := outcome(a, err); word != k.word || room != k.room || !a.Replayed {
		w.t.Fatalf("%s again answers %s %s (%v), first %s %s", k.rc.Fingerprint, word, room, a.Replayed, k.word, k.room)
	}
	a, err = k.do(idempotency.Receipt{Key: k.rc.Key, Fingerprint: "other"})
	if word, _ := outcome(a, err); word != "idempotency_key_reused" {
		w.t.Fatalf("another request with the key answers %s", word)
	}
}

func TestRoomsAgreeWithTheModel(t *testing.T) {
	check := func(t *testing.T, db *redisdb.DB, cases string) {
		line := &resender{}
		db.Client.AddHook(line)
		old := flag.Lookup("rapid.checks").Value.String()
		if old == "100" { // nobody asked for another number
			_ = flag.Set("rapid.checks", cases)
			defer func() { _ = flag.Set("rapid.checks", old) }()
		}
		rapid.Check(t, func(rt *rapid.T) {
			h := newHouse(t, db)
			h.set.IdleTimeout, h.set.MaxAge, h.set.MatchTimeout = modelIdle, modelAge, modelMatch
			w := &world{
				t: rt, ctx: t.Context(), house: h, resend: line, free: map[int64]int64{}, held: map[int64]int64{},
				rooms: rooms.New(db, h.wallet, h, gamesOf{h}, rooms.Options{Retention: modelKeep}),
			}
			for range 4 {
				units := rapid.SampledFrom([]int64{int64(wallet.MaxUnits), 1000, 5, 0}).Draw(rt, "units")
				p := h.player(units)
				w.players, w.free[p.User], w.minted = append(w.players, p), units, w.minted+units
			}
			h.befriend(w.players[0], w.players[1])
			h.befriend(w.players[1], w.players[2])
			for range rapid.IntRange(1, 24).Draw(rt, "steps") {
				w.step()
				w.check()
			}
		})
		if report, err := wallet.New(db, nil, wallet.Options{}).AuditDeep(t.Context()); err != nil || !report.Balanced || len(report.Differences) > 0 {
			t.Fatalf("the books do not balance: %v", err)
		}
	}
	t.Run("single", func(t *testing.T) { check(t, redistest.Single(t), "1000") })
	t.Run("cluster", func(t *testing.T) { check(t, redistest.Cluster(t), "100") })
}

// gamesOf answers the game of a house.
type gamesOf struct{ *house }

func (g gamesOf) Get(ctx context.Context, id int64) (games.Game, error) { return g.house.Get(ctx, id) }
