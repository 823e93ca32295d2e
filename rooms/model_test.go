package rooms_test

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/scripts"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// The model: the rules of rooms and money in plain Go, independent of how the scripts do it.

type modelSeat struct {
	user, stake int64
	state       rooms.SeatState
	ready       bool
}

type modelRoom struct {
	id, code               string
	entry, pot, rake       int64
	maxPlayers, minPlayers int
	friendsOnly, autoStart bool
	visibility             rooms.Visibility
	rakeBps                int
	payoutBps              []int
	tie                    rooms.Tie
	consensus, disputed    bool                    // disputed: it is, or was
	reports                map[int64]map[int64]int // by who reported: the place of each player
	hasWindow              bool                    // for reports
	creator, host          int64
	status                 rooms.Status
	reason                 string
	version                int64
	seats                  []modelSeat
	banned                 map[int64]bool
	places                 map[int64]int
	rematch                *modelRoom
	events                 []string
	gone                   bool
	positions              []string // positions of the events that were compared
	dropped                int      // events that the sweep has dropped
	shared                 modelState
	feeds                  bool // leaderboards
	hasFeed                bool // its events also go to the game's server
	waits                  bool // in the outbox
	delayed                bool // a consumer failed on it
}

func (r *modelRoom) seat(user int64) *modelSeat {
	for i := range r.seats {
		if r.seats[i].user == user {
			return &r.seats[i]
		}
	}
	return nil
}

func (r *modelRoom) active() (list []int64) {
	for _, s := range r.seats {
		if s.state == rooms.SeatActive {
			list = append(list, s.user)
		}
	}
	return list
}

// mine reports whether the room must be in a player's list.
func (r *modelRoom) mine(user int64) bool { return !r.gone && !r.ended() && r.seat(user) != nil }

func (r *modelRoom) takenSeats() int {
	return len(r.seats) - len(slices.DeleteFunc(slices.Clone(r.seats),
		func(s modelSeat) bool { return s.state != rooms.SeatForfeited }))
}

func (r *modelRoom) ended() bool { return r.status.Ended() }

func (r *modelRoom) addEvent(kind string) { r.events = append(r.events, kind) }

func (r *modelRoom) removeSeat(user int64) {
	r.seats = slices.DeleteFunc(r.seats, func(s modelSeat) bool { return s.user == user })
}

type model struct {
	t            *rapid.T
	ctx          context.Context
	fixture      *fixture
	service      *rooms.Service
	losesReplies *atomic.Bool
	players      []principal.Caller
	free, held   map[int64]int64
	minted       int64
	raked        int64 // rake
	rooms        []*modelRoom
	ledger       []modelEntry           // that were not compared yet
	lines        map[int64][]modelEntry // of each player, that were not compared yet
	entryCount   int64                  // ledger entries that were compared
	lineCounts   map[int64]int64        // lines of each player that were compared
	keyedCalls   []keyedCall
	keyCount     int
	limits       map[int64]*modelLimits // of each player who has set any
	consumer     modelConsumer
	fed          map[string]int  // entries of each feed that were compared
	lost         map[int64]int64 // stakes of each player less what came back
	open         map[int64]int64 // rooms of each player with a stake
}

// modelEntry is an entry of the ledger or a line of a player; text is all but the room.
type modelEntry struct {
	room *modelRoom
	text string
}

// keyedCall is a call with an idempotency key, and its first result.
type keyedCall struct {
	rc   idempotency.Receipt
	code string
	room *modelRoom
	send func(idempotency.Receipt) (rooms.ChangeResult, error)
}

// moveMoney changes a balance, of which the player gets a line.
func (m *model) moveMoney(r *modelRoom, user, delta, held int64, reason string) {
	if held == 0 {
		return // a seat without a stake
	}
	m.free[user] += delta
	m.held[user] += held
	m.lost[user] -= delta
	m.open[user]++
	if held < 0 {
		m.open[user] -= 2
	}
	m.lines[user] = append(m.lines[user],
		modelEntry{r, fmt.Sprintf("%s %d %d %d", reason, delta, m.free[user], m.held[user])})
}

// post appends to the ledger; postings are "<account>:<units>" and sorted.
func (m *model) post(r *modelRoom, reason string, postings ...string) {
	if r.entry > 0 {
		slices.Sort(postings)
		m.ledger = append(m.ledger, modelEntry{r, reason + " " + strings.Join(postings, " ")})
	}
}

func posting(account string, units int64) string { return fmt.Sprintf("%s:%d", account, units) }

func walletOf(user int64) string { return fmt.Sprintf("w%d", user) }

func (m *model) charge(r *modelRoom, user int64) {
	m.moveMoney(r, user, -r.entry, r.entry, "entry")
	m.post(r, "entry", posting(walletOf(user), -r.entry), posting("e", r.entry))
	r.pot += r.entry
}

// refund gives one stake back before the start.
func (m *model) refund(r *modelRoom, s *modelSeat) {
	if s.stake == 0 {
		return
	}
	m.moveMoney(r, s.user, s.stake, -s.stake, "refund")
	m.post(r, "refund", posting("e", -s.stake), posting(walletOf(s.user), s.stake))
	r.pot -= s.stake
}

func (m *model) addSeat(r *modelRoom, user int64) {
	r.removeSeat(user)
	r.seats = append(r.seats, modelSeat{user: user, state: rooms.SeatActive, stake: r.entry})
	m.charge(r, user)
}

func (m *model) startAutomatically(r *modelRoom) {
	if !r.autoStart || r.status != rooms.Created {
		return
	}
	ready := true
	for _, s := range r.seats {
		ready = ready && (s.state != rooms.SeatActive || s.ready)
	}
	if n := len(r.active()); n == r.maxPlayers || ready && n >= r.minPlayers {
		m.start(r)
	}
}

func (m *model) start(r *modelRoom) {
	r.status = rooms.Started
	r.seats = slices.DeleteFunc(r.seats, func(s modelSeat) bool { return s.state == rooms.SeatReserved })
	r.addEvent("room.started")
}

func (m *model) cancel(r *modelRoom, reason string) {
	postings := []string{posting("e", -r.pot)}
	for _, s := range r.seats {
		m.moveMoney(r, s.user, s.stake, -s.stake, "refund")
		if s.stake > 0 {
			postings = append(postings, posting(walletOf(s.user), s.stake))
		}
	}
	if len(postings) > 1 {
		m.post(r, "refund", postings...)
	}
	r.status, r.reason, r.waits = rooms.Cancelled, reason, r.feeds
	r.addEvent("room.cancelled")
}

// modelShares returns what each place gets, the first at 1: its exact share rounded down, and a
// unit more for those with the largest fractions, until all is given.
func modelShares(net int64, weights []int, places int) []int64 {
	shares, fractions := make([]int64, places+1), make([]*big.Rat, places+1)
	all := int64(0)
	for _, w := range weights {
		all += int64(w)
	}
	left := net
	for place := 1; place <= places; place++ {
		fractions[place] = new(big.Rat)
		if place > len(weights) || all == 0 {
			continue
		}
		exact := new(big.Rat).Mul(big.NewRat(net, all), big.NewRat(int64(weights[place-1]), 1))
		shares[place] = new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
		fractions[place].Sub(exact, big.NewRat(shares[place], 1))
		left -= shares[place]
	}
	if all == 0 {
		shares[1], left = net, 0
	}
	for ; left > 0; left-- {
		best := 1
		for place := 2; place <= places; place++ {
			if fractions[place].Cmp(fractions[best]) > 0 {
				best = place
			}
		}
		shares[best]++
		fractions[best] = big.NewRat(-1, 1)
	}
	return shares
}

// settle pays out: the places that are reached share the net pot by their weights.
func (m *model) settle(r *modelRoom, places map[int64]int) {
	r.status, r.places, r.waits = rooms.Finished, places, r.feeds
	r.addEvent("room.finished")
	part := func(u int64, bps int) int64 {
		x := new(big.Int).Mul(big.NewInt(u), big.NewInt(int64(bps)))
		return x.Div(x, big.NewInt(10_000)).Int64()
	}
	at := map[int][]int64{}
	for _, user := range r.active() {
		at[places[user]] = append(at[places[user]], user)
	}
	won := map[int64]int64{}
	defer func() {
		postings := []string{posting("e", -r.pot)}
		for _, s := range r.seats {
			reason := "lost"
			if won[s.user] > 0 {
				reason = "payout"
				postings = append(postings, posting(walletOf(s.user), won[s.user]))
			}
			m.moveMoney(r, s.user, won[s.user], -s.stake, reason)
		}
		if r.rake > 0 {
			postings = append(postings, posting("h", r.rake))
		}
		m.post(r, "payout", postings...)
	}()
	if r.tie == rooms.TieRefund && len(at[1]) > 1 {
		for _, s := range r.seats {
			won[s.user] = s.stake
		}
		return
	}
	r.rake = part(r.pot, r.rakeBps)
	m.raked += r.rake
	net := r.pot - r.rake
	shares := modelShares(net, r.payoutBps[:min(len(r.payoutBps), len(places))], len(places))
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
			won[user] = units
		}
	}
}

func (m *model) electHost(r *modelRoom) {
	if list := r.active(); len(list) > 0 && !slices.Contains(list, r.host) {
		r.host = list[0]
		r.addEvent("room.host_changed")
	}
}

func (m *model) areFriends(a, b int64) bool {
	list, _ := m.fixture.AreFriends(m.ctx, a, b)
	return list[b]
}

// The methods: each returns the code that the service must return, and changes the model as the
// service must change the store.

func (m *model) join(r *modelRoom, p principal.Caller) string {
	s := r.seat(p.UserID)
	stranger := s == nil && p.UserID != r.creator && !m.areFriends(p.UserID, r.creator)
	switch {
	case r.gone, stranger && r.visibility == rooms.Private:
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s != nil && s.state == rooms.SeatActive:
		return scripts.OK
	case r.status != rooms.Created:
		return "already_started"
	case r.banned[p.UserID]:
		return "banned"
	case stranger && r.friendsOnly:
		return "friends_only"
	case s == nil && r.takenSeats() >= r.maxPlayers:
		return "room_full"
	case m.ownLimit(p.UserID, r.entry) != "":
		return m.ownLimit(p.UserID, r.entry)
	case m.free[p.UserID] < r.entry:
		return "insufficient_funds"
	}
	m.addSeat(r, p.UserID)
	r.version++
	r.addEvent("room.joined")
	m.startAutomatically(r)
	return scripts.OK
}

func (m *model) isHidden(r *modelRoom, p principal.Caller) bool {
	return r.gone || r.visibility == rooms.Private && p.Role == principal.Player && r.seat(p.UserID) == nil
}

func (m *model) leave(r *modelRoom, p principal.Caller) string {
	s := r.seat(p.UserID)
	switch {
	case m.isHidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s == nil || s.state == rooms.SeatForfeited:
		return "not_participant"
	case r.status == rooms.Disputed:
		return "room_disputed"
	}
	r.version++
	if r.status == rooms.Started {
		s.state = rooms.SeatForfeited
	} else {
		m.refund(r, s)
		r.removeSeat(p.UserID)
	}
	r.addEvent("room.left")
	m.electHost(r)
	list := r.active()
	switch {
	case len(list) == 0:
		m.cancel(r, "empty")
	case r.status == rooms.Started && r.entry > 0 && len(list) == 1:
		m.settle(r, map[int64]int{list[0]: 1})
	case r.status == rooms.Started && len(r.reporters()) == len(list):
		m.settle(r, rankAmong(r.reports[list[0]], list))
	case r.status == rooms.Started && r.shared.turn == p.UserID:
		r.passTurn(p.UserID)
	default:
		m.startAutomatically(r)
	}
	return scripts.OK
}

func (m *model) ready(r *modelRoom, p principal.Caller, ready bool) string {
	s := r.seat(p.UserID)
	switch {
	case m.isHidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case s == nil || s.state != rooms.SeatActive:
		return "not_participant"
	case r.status != rooms.Created:
		return "already_started"
	case s.ready == ready:
		return scripts.OK
	}
	s.ready = ready
	r.version++
	r.addEvent("room.ready")
	m.startAutomatically(r)
	return scripts.OK
}

// checkHost is what only the host and the server may do.
func (m *model) checkHost(r *modelRoom, p principal.Caller) string {
	switch {
	case m.isHidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case p.Role == principal.Player && p.UserID != r.host:
		return "not_host"
	}
	return ""
}

func (m *model) kick(r *modelRoom, p principal.Caller, user int64, ban bool) string {
	if user == p.UserID {
		return "invalid_request"
	}
	if code := m.checkHost(r, p); code != "" {
		return code
	}
	s := r.seat(user)
	switch {
	case r.status != rooms.Created:
		return "already_started"
	case s == nil:
		return "not_participant"
	}
	r.version++
	m.refund(r, s)
	r.removeSeat(user)
	if ban {
		r.banned[user] = true
	}
	r.addEvent("room.left")
	m.electHost(r)
	if len(r.active()) == 0 {
		m.cancel(r, "empty")
	} else {
		m.startAutomatically(r)
	}
	return scripts.OK
}

func (m *model) transfer(r *modelRoom, p principal.Caller, user int64) string {
	if code := m.checkHost(r, p); code != "" {
		return code
	}
	isSeated := func(user int64) bool { s := r.seat(user); return s != nil && s.state == rooms.SeatActive }
	switch {
	case p.Role == principal.Player && !isSeated(p.UserID), !isSeated(user):
		return "not_participant"
	case user == r.host:
		return scripts.OK
	}
	r.version++
	r.host = user
	r.addEvent("room.host_changed")
	return scripts.OK
}

func (m *model) startByHost(r *modelRoom, p principal.Caller) string {
	if code := m.checkHost(r, p); code != "" {
		return code
	}
	switch {
	case r.status != rooms.Created:
		return "already_started"
	case len(r.active()) < r.minPlayers:
		return "not_enough_players"
	}
	r.version++
	m.start(r)
	return scripts.OK
}

func (m *model) finish(r *modelRoom, places map[int64]int, valid bool) string {
	switch {
	case r.gone:
		return "room_not_found"
	case r.status == rooms.Finished && maps.Equal(places, r.places):
		return scripts.OK
	case r.status == rooms.Finished:
		return "result_conflict"
	case r.status == rooms.Cancelled:
		return "room_closed"
	case r.status == rooms.Created:
		return "not_started"
	case r.status == rooms.Disputed:
		return "room_disputed"
	case !valid:
		return "invalid_request"
	}
	r.version++
	m.settle(r, places)
	return scripts.OK
}

// reporters returns the active players who have reported.
func (r *modelRoom) reporters() []int64 {
	return slices.DeleteFunc(r.active(), func(user int64) bool { return r.reports[user] == nil })
}

// sameOrder reports whether two reports put the players in the same order.
func sameOrder(a, b map[int64]int, players []int64) bool {
	for _, x := range players {
		for _, y := range players {
			if cmp.Compare(a[x], a[y]) != cmp.Compare(b[x], b[y]) {
				return false
			}
		}
	}
	return true
}

// rankAmong returns the places that some players have among each other.
func rankAmong(places map[int64]int, players []int64) map[int64]int {
	ranks := map[int64]int{}
	for _, x := range players {
		ranks[x] = 1
		for _, y := range players {
			if places[y] < places[x] {
				ranks[x]++
			}
		}
	}
	return ranks
}

// report is finish by a player of a room with consensus.
func (m *model) report(r *modelRoom, p principal.Caller, places map[int64]int, valid bool) string {
	s := r.seat(p.UserID)
	switch {
	case m.isHidden(r, p):
		return "room_not_found"
	case r.status == rooms.Cancelled:
		return "room_closed"
	case r.status == rooms.Created:
		return "not_started"
	case s == nil || s.state != rooms.SeatActive:
		return "not_participant"
	case r.status == rooms.Finished && valid && maps.Equal(places, r.places):
		return scripts.OK
	case r.status == rooms.Finished:
		return "result_conflict"
	case !valid:
		return "invalid_request"
	}
	active := r.active()
	if own := r.reports[p.UserID]; own != nil {
		if sameOrder(own, places, active) {
			return scripts.OK
		}
		return "result_conflict"
	}
	contradicts := slices.ContainsFunc(r.reporters(), func(user int64) bool {
		return !sameOrder(r.reports[user], places, active)
	})
	r.version++
	r.reports[p.UserID] = places
	r.addEvent("room.result")
	switch {
	case r.status == rooms.Disputed:
	case len(active) == 2 && places[p.UserID] > 1, !contradicts && len(r.reporters()) == len(active):
		m.settle(r, places)
	case contradicts:
		r.dispute()
	default:
		r.hasWindow = true
	}
	return scripts.OK
}

func (r *modelRoom) dispute() {
	r.status, r.disputed = rooms.Disputed, true
	r.addEvent("room.disputed")
}

func (m *model) resolve(r *modelRoom, refund bool, places map[int64]int, valid bool) string {
	switch {
	case !r.disputed:
		return "not_disputed"
	case r.status == rooms.Finished && !refund && maps.Equal(places, r.places), r.status == rooms.Cancelled && refund:
		return scripts.OK
	case r.status != rooms.Disputed:
		return "result_conflict"
	case !refund && !valid:
		return "invalid_request"
	}
	r.version++
	if refund {
		m.cancel(r, "dispute_refunded")
	} else {
		m.settle(r, places)
	}
	return scripts.OK
}

func (m *model) cancelByCaller(r *modelRoom, p principal.Caller) string {
	reason := map[principal.Role]string{
		principal.Player: "host", principal.Server: "server",
		principal.Operator: "operator",
	}[p.Role]
	if code := m.checkHost(r, p); code != "" {
		return code
	}
	if p.Role == principal.Player && r.status != rooms.Created {
		return "already_started"
	}
	r.version++
	m.cancel(r, reason)
	return scripts.OK
}

func (m *model) rematch(r *modelRoom, p principal.Caller) (string, *modelRoom) {
	s := r.seat(p.UserID)
	switch {
	case m.isHidden(r, p):
		return "room_not_found", nil
	case s == nil || s.state != rooms.SeatActive:
		return "not_participant", nil
	case r.status == rooms.Created:
		return "not_started", nil
	case r.status == rooms.Started || r.status == rooms.Disputed:
		return "already_started", nil
	case r.rematch != nil && r.rematch.gone:
		return "room_not_found", nil
	case r.rematch != nil:
		return scripts.OK, r.rematch
	case m.ownLimit(p.UserID, r.entry) != "":
		return m.ownLimit(p.UserID, r.entry), nil
	case m.free[p.UserID] < r.entry:
		return "insufficient_funds", nil
	}
	r.version++
	r.addEvent("room.rematch")
	n := &modelRoom{
		entry: r.entry, maxPlayers: r.maxPlayers, minPlayers: r.minPlayers, friendsOnly: r.friendsOnly,
		autoStart: r.autoStart, visibility: r.visibility, rakeBps: r.rakeBps, payoutBps: r.payoutBps, tie: r.tie,
		consensus: r.consensus, feeds: r.feeds, hasFeed: m.drawFeed(),
	}
	others := slices.DeleteFunc(r.active(), func(id int64) bool { return id == p.UserID })
	m.openRoom(n, p, others)
	r.rematch = n
	return scripts.OK, n
}

func (m *model) openRoom(n *modelRoom, p principal.Caller, reserved []int64) {
	n.creator, n.host, n.status, n.version, n.banned = p.UserID, p.UserID, rooms.Created, 1, map[int64]bool{}
	n.reports = map[int64]map[int64]int{}
	m.addSeat(n, p.UserID)
	for _, id := range reserved {
		n.seats = append(n.seats, modelSeat{user: id, state: rooms.SeatReserved})
	}
	n.addEvent("room.created")
	m.startAutomatically(n)
	m.rooms = append(m.rooms, n)
}

// call makes a call that the model has already made, and requires the same code and the same room.
func (m *model) call(what, want string, r *modelRoom, do func(idempotency.Receipt) (rooms.ChangeResult, error)) {
	m.t.Helper()
	var rc idempotency.Receipt
	if rapid.IntRange(0, 2).Draw(m.t, "keyed") == 0 {
		m.keyCount++
		rc = idempotency.Receipt{KeyDigest: fmt.Sprintf("%d-%d", m.fixture.GameID, m.keyCount), Fingerprint: what}
	}
	m.losesReplies.Store(rapid.IntRange(0, 2).Draw(m.t, "reply lost") == 0)
	a, err := do(rc)
	m.losesReplies.Store(false)
	code := domaintest.CodeOf(err)
	if code != want || a.Replayed {
		m.t.Fatalf("%s: %s, %v (replayed: %v); want %s", what, code, err, a.Replayed, want)
	}
	if code == scripts.OK {
		if r.id == "" {
			r.id, r.code = a.Room.RoomID, a.Room.Code
		}
		m.requireSame(what, r, *a.Room)
	}
	if rc.KeyDigest != "" && code != apierror.InvalidRequest.Code && code != apierror.Forbidden.Code {
		m.keyedCalls = append(m.keyedCalls, keyedCall{rc: rc, code: code, room: r, send: do})
	}
}

// requireSame requires that a room equals that of the model.
func (m *model) requireSame(what string, r *modelRoom, got rooms.Room) {
	m.t.Helper()
	seats := []modelSeat{}
	for _, s := range got.Seats {
		seats = append(seats, modelSeat{user: s.UserID, state: s.State, ready: s.Ready, stake: int64(s.Stake)})
		if s.Profile().ID != s.UserID {
			m.t.Fatalf("%s: the seat of %d shows %+v", what, s.UserID, s.Profile())
		}
	}
	for _, report := range got.Reports {
		places := map[int64]int{}
		for _, placement := range report.Placements {
			places[placement.UserID] = placement.Place
		}
		if want := r.reports[report.UserID]; !maps.Equal(places, want) {
			m.t.Fatalf("%s: %d has reported %v, want %v", what, report.UserID, places, want)
		}
	}
	next := ""
	if r.rematch != nil {
		next = r.rematch.id
	}
	if got.RoomID != r.id || got.Status != r.status || got.Version != r.version || got.Seq != int64(len(r.events)) ||
		got.HostID != r.host ||
		got.CreatorID != r.creator || int64(got.Pot) != r.pot || int64(got.Rake) != r.rake || got.CancelReason != r.reason ||
		got.RematchID != next ||
		got.StartedAt.IsZero() == slices.Contains(r.events, "room.started") || got.FinishedAt.IsZero() == r.ended() ||
		got.DisputedAt.IsZero() == r.disputed || len(got.Reports) != len(r.reports) || !slices.Equal(seats, r.seats) {
		m.t.Fatalf("%s: the room is\n%+v\nwant\n%+v", what, got, *r)
	}
	m.requireSameState(what, r, got)
}

// requireStoreAgrees compares all that the store holds with the model: events, balances, lines, the
// ledger, totals, indexes, the players' lists of rooms.
func (m *model) requireStoreAgrees() {
	m.t.Helper()
	pipe := m.fixture.db.Client.Pipeline()
	logs, heads := map[*modelRoom]*redis.StringSliceCmd{}, map[*modelRoom]*redis.SliceCmd{}
	wallets, lines := map[int64]*redis.StringCmd{}, map[int64]*redis.StringSliceCmd{}
	game, code := m.fixture.GameID, m.fixture.token.Code
	for _, r := range m.rooms {
		shard, _ := keys.RoomShard(r.id)
		logs[r] = pipe.LRange(m.ctx, keys.RoomEvents(shard, r.id), int64(len(r.positions)-r.dropped), -1)
		heads[r] = pipe.HMGet(m.ctx, keys.Room(shard, r.id), "live", "bans")
	}
	for _, p := range m.players {
		wallets[p.UserID] = pipe.HGet(m.ctx, keys.Wallet(game, p.UserID), code)
		lines[p.UserID] = pipe.LRange(m.ctx, keys.WalletLines(game, p.UserID), m.lineCounts[p.UserID], -1)
	}
	ledger := pipe.LRange(m.ctx, keys.Ledger(game), m.entryCount, -1)
	var outboxes []*redis.MapStringStringCmd
	feeds := map[string]*redis.StringSliceCmd{}
	indexes, lists := map[string][]*redis.StringSliceCmd{}, map[int64][]*redis.StringSliceCmd{}
	shards := []keys.Shard{keys.EconomyShard(game)}
	for n := range modelShards {
		shards = append(shards, keys.FreeShard(n))
	}
	for _, shard := range shards {
		for _, state := range []string{"open", "created", "started", "finished", "cancelled", "all"} {
			indexes[state] = append(indexes[state], pipe.ZRange(m.ctx, keys.RoomIndex(shard, game, state), 0, -1))
		}
		indexes["disputed"] = append(indexes["disputed"], pipe.ZRange(m.ctx, keys.DisputedRooms(shard), 0, -1))
		outboxes = append(outboxes, pipe.HGetAll(m.ctx, keys.RoomOutbox(shard)))
		list := keys.Feed(shard, game)
		feeds[list] = pipe.LRange(m.ctx, list, int64(m.fed[list]), -1)
		for _, p := range m.players {
			lists[p.UserID] = append(lists[p.UserID], pipe.ZRange(m.ctx, keys.PlayerRooms(shard, p.UserID), 0, -1))
		}
	}
	if _, err := pipe.Exec(m.ctx); err != nil && !errors.Is(err, redis.Nil) {
		m.t.Fatal(err)
	}
	known := map[*modelRoom]int{}
	for _, r := range m.rooms {
		known[r] = len(r.positions)
		m.requireRoom(r, logs[r].Val(), heads[r].Val())
	}
	m.requireFeeds(feeds, known)
	m.requireMoney(wallets, lines, ledger.Val())
	m.requireOutbox(outboxes)
	want := map[string][]string{}
	wantLists := map[int64][]string{}
	for _, r := range m.rooms {
		if r.gone {
			continue
		}
		for _, p := range m.players {
			if r.mine(p.UserID) {
				wantLists[p.UserID] = append(wantLists[p.UserID], r.id)
			}
		}
		want["all"] = append(want["all"], r.id)
		if r.status == rooms.Disputed {
			want["disputed"] = append(want["disputed"], r.id)
			continue
		}
		if r.visibility != rooms.Public {
			continue
		}
		status := strings.ToLower(string(r.status))
		want[status] = append(want[status], r.id)
		if r.status == rooms.Created && r.takenSeats() < r.maxPlayers {
			want["open"] = append(want["open"], r.id)
		}
	}
	for state, parts := range indexes {
		if state == "disputed" { // on a free shard it has rooms of other games
			for _, part := range parts {
				part.SetVal(slices.DeleteFunc(part.Val(), func(id string) bool { return !m.has(id) }))
			}
		}
		m.requireIndex("index "+state, parts, want[state])
	}
	for user, parts := range lists {
		m.requireIndex(fmt.Sprintf("the list of player %d", user), parts, wantLists[user])
	}
}

// has reports whether a room is one of the model.
func (m *model) has(id string) bool {
	return slices.ContainsFunc(m.rooms, func(r *modelRoom) bool { return r.id == id })
}

// requireIndex requires that the parts of an index have the rooms of the model together.
func (m *model) requireIndex(name string, parts []*redis.StringSliceCmd, want []string) {
	m.t.Helper()
	var got []string
	for _, part := range parts {
		got = append(got, part.Val()...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s has %v, want %v", name, got, want)
	}
}

// drawFeed sets whether the game has a feed now, for the room that is made next.
func (m *model) drawFeed() bool {
	m.fixture.Settings.Feed = rapid.Bool().Draw(m.t, "feed")
	return m.fixture.Settings.Feed
}

// requireFeeds requires that the feeds got the events since the last time of the rooms that feed,
// of the kinds that feeds have, in the order of each room, and nothing else. known is how many
// events of each room had been compared.
func (m *model) requireFeeds(feeds map[string]*redis.StringSliceCmd, known map[*modelRoom]int) {
	m.t.Helper()
	got := map[string][]string{}
	for list, read := range feeds {
		for _, text := range read.Val() {
			entry := testkit.Must(feed.Parse(text))(m.t)
			if m.fed[list]++; entry.Number != int64(m.fed[list]) || !keys.RoomFeeds(entry.ID) {
				m.t.Fatalf("entry %d of %s is %q", m.fed[list], list, text)
			}
			_, nonce, _ := strings.Cut(entry.Position, "-")
			got[entry.ID] = append(got[entry.ID], fmt.Sprintf("%s %d-%s", entry.Type, entry.Seq, nonce))
		}
	}
	for _, r := range m.rooms {
		var want []string
		for i := known[r]; i < len(r.positions) && r.hasFeed; i++ {
			if events.FeedKind(r.events[i]) != "" {
				want = append(want, r.events[i]+" "+r.positions[i])
			}
		}
		if keys.RoomFeeds(r.id) != r.hasFeed || !slices.Equal(got[r.id], want) {
			m.t.Fatalf("the feed got %v of room %s, want %v", got[r.id], r.id, want)
		}
		delete(got, r.id)
	}
	if len(got) > 0 {
		m.t.Fatalf("the feeds got %v of rooms that do not exist", got)
	}
}

// requireRoom compares what a room's hash has beside the seats, and the events since the last time.
func (m *model) requireRoom(r *modelRoom, log []string, head []any) {
	m.t.Helper()
	if r.gone {
		if len(log) > 0 || head[0] != nil {
			m.t.Fatalf("room %s is not gone", r.id)
		}
		return
	}
	known := len(r.positions)
	if types := parseEventTypes(m.t, log, known, r.id); !slices.Equal(types, r.events[known:]) {
		m.t.Fatalf("room %s has events %v, want %v", r.id, types, r.events[known:])
	}
	for _, entry := range log {
		position, _, _ := strings.Cut(entry, "|")
		r.positions = append(r.positions, position)
	}
	_, nonce, _ := strings.Cut(r.positions[len(r.positions)-1], "-")
	reserved, ready := 0, 0
	for _, s := range r.seats {
		if s.state == rooms.SeatReserved {
			reserved++
		}
		if s.ready {
			ready++
		}
	}
	want := fmt.Sprintf("%s|%d|%d|%s|%d|%d|%d|%d|%d|", r.status, r.version, len(r.events), nonce, r.pot,
		len(r.active()), reserved, ready, r.host)
	if got, _ := head[0].(string); !strings.HasPrefix(got, want) {
		m.t.Fatalf("room %s has %v, want %v", r.id, got, want)
	}
	bans := "<nil>"
	if len(r.banned) > 0 {
		bans = strconv.Itoa(len(r.banned))
	}
	if got := fmt.Sprint(head[1]); got != bans {
		m.t.Fatalf("room %s counts %s bans, want %s", r.id, got, bans)
	}
}

// requireMoney compares balances and totals, and the lines and ledger entries since the last time.
func (m *model) requireMoney(
	wallets map[int64]*redis.StringCmd, lines map[int64]*redis.StringSliceCmd, ledger []string,
) {
	m.t.Helper()
	free, held := int64(0), int64(0)
	for _, p := range m.players {
		want := fmt.Sprintf("%d|%d", m.free[p.UserID], m.held[p.UserID])
		if m.limits[p.UserID] != nil && wallets[p.UserID].Val() != "" {
			want += "|L"
		}
		if got := cmp.Or(wallets[p.UserID].Val(), "0|0"); got != want || m.held[p.UserID] < 0 {
			m.t.Fatalf("player %d has %s, want %s", p.UserID, got, want)
		}
		free, held = free+m.free[p.UserID], held+m.held[p.UserID]
		var got []string
		for i, line := range lines[p.UserID].Val() {
			v := strings.Split(line, "|") // position, type, ms, token, decimals, delta, free, held, reason, ref
			number := fmt.Sprintf("%d-", m.lineCounts[p.UserID]+int64(i)+1)
			if len(v) != 10 || !strings.HasPrefix(v[0], number) || v[1] != "user.balance" {
				m.t.Fatalf("player %d has the line %q, want number %s", p.UserID, line, number)
			}
			got = append(got, strings.Join([]string{v[8], v[5], v[6], v[7], v[9]}, " "))
		}
		m.requireEntries(fmt.Sprintf("player %d has the lines", p.UserID), got, m.lines[p.UserID])
		m.lineCounts[p.UserID] += int64(len(got))
		m.lines[p.UserID] = nil
	}
	var got []string
	for _, entry := range ledger {
		v := strings.Split(entry, "|") // ms, nonce, token, reason, ref, postings
		postings := strings.Split(v[5], ";")
		slices.Sort(postings)
		got = append(got, v[3]+" "+strings.Join(postings, " ")+" "+v[4])
	}
	m.requireEntries("the ledger has", got, m.ledger)
	m.entryCount += int64(len(got))
	m.ledger = nil
	if m.minted != free+held+m.raked {
		m.t.Fatal("the model itself makes money")
	}
	m.requireTotals(free, held)
}

// requireEntries requires that entries are those of the model, in their order.
func (m *model) requireEntries(what string, got []string, list []modelEntry) {
	m.t.Helper()
	var want []string
	for _, entry := range list {
		want = append(want, entry.text+" "+entry.room.id)
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s %q, want %q", what, got, want)
	}
}

// requireTotals compares the totals, which are folded now and then.
func (m *model) requireTotals(free, held int64) {
	m.t.Helper()
	if rapid.IntRange(0, 3).Draw(m.t, "fold") == 0 {
		testkit.Check(m.t, m.fixture.wallet.Fold(m.ctx, m.fixture.GameID))
	}
	report, err := moneytest.NewAudit(m.fixture.db, m.fixture.wallet).Audit(m.ctx, m.fixture.GameID)
	if err != nil || !report.Balanced {
		m.t.Fatalf("the books do not balance: %+v, %v", report, err)
	}
	for _, total := range report.Tokens {
		got := []int64{
			int64(total.MintedUnits), int64(total.WalletsUnits), int64(total.EscrowUnits), int64(total.HouseUnits),
		}
		if want := []int64{m.minted, free, held, m.raked}; !slices.Equal(got, want) {
			m.t.Fatalf("the totals are %d, want %d", got, want)
		}
	}
}

const (
	modelIdle  = time.Hour
	modelAge   = 24 * time.Hour
	modelMatch = 2 * time.Hour
	modelKeep  = 36 * time.Hour

	modelDispute = 72 * time.Hour

	modelShards = 2
)

// passTime lets time pass for a room until the sweep must act on it: its clock is set back.
func (m *model) passTime(r *modelRoom) {
	shard, _ := keys.RoomShard(r.id)
	back := func(field string, d time.Duration) { m.fixture.setBack(r.id, field, d+time.Minute) }
	switch {
	case r.status == rooms.Created && rapid.Bool().Draw(m.t, "idle"):
		back("changed", modelIdle)
		r.version++
		m.cancel(r, "idle")
	case r.status == rooms.Created:
		back("created", modelAge)
		r.version++
		m.cancel(r, "expired")
	case r.status == rooms.Started && r.hasWindow: // the time of the match ends nothing; nobody is connected
		back("started", modelMatch)
		m.fixture.passWindow(r.id)
		if r.hasWindow = false; len(r.reporters()) > 0 {
			r.version++
			r.dispute()
		}
	case r.status == rooms.Started:
		back("started", modelMatch)
		r.version++
		m.cancel(r, "timeout")
	case r.status == rooms.Disputed:
		back("disputed", modelDispute)
		r.version++
		m.cancel(r, "dispute_refunded")
	case rapid.Bool().Draw(m.t, "events only"):
		back("finished", 10*time.Minute)
		r.dropped = len(r.events)
	default:
		back("finished", modelKeep)
		r.gone = true
	}
	m.fixture.db.Client.ZAdd(m.ctx, keys.RoomsDue(shard), redis.Z{Score: 0, Member: r.id})
	m.applyWaiting()
	m.losesReplies.Store(rapid.Bool().Draw(m.t, "reply lost"))
	n, err := m.service.Sweep(m.ctx)
	m.losesReplies.Store(false)
	if n != 1 || err != nil {
		m.t.Fatalf("the sweep looked at %d rooms, %v", n, err)
	}
	if !r.gone {
		got := testkit.Must(m.service.Get(m.ctx, operator, r.id))(m.t)
		m.requireSame("sweep", r, got)
	}
}

func (m *model) step() {
	t := m.t
	draw := func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
	p := m.players[draw("player", len(m.players))]
	what := rapid.SampledFrom([]string{
		"create", "join", "join", "join", "join", "leave", "leave", "ready", "ready", "kick", "transfer", "start", "start",
		"finish", "finish", "cancel", "rematch", "pass", "replay", "report", "report", "report", "report", "resolve",
		"resolve", "limit", "state", "state", "state", "turn", "turn", "turn", "turn over", "turn over",
	}).Draw(t, "verb")
	if len(m.rooms) == 0 || what == "create" && len(m.rooms) < 4 {
		m.create(p)
		return
	}
	r := m.rooms[draw("room", len(m.rooms))]
	if rapid.IntRange(0, 3).Draw(t, "newest") > 0 {
		r = m.rooms[len(m.rooms)-1]
	}
	what, p = m.playOn(r, what, p)
	caller := p // of the methods that are for the host
	switch draw("caller", 4) {
	case 0, 1:
		caller = principal.Caller{Role: principal.Player, UserID: r.host, GameID: m.fixture.GameID}
	case 2:
		caller = m.fixture.Server()
	}
	other := m.players[draw("other", len(m.players))].UserID
	switch what {
	case "create", "join":
		m.call("join", m.join(r, p), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Join(m.ctx, p, r.id, rc)
		})
	case "leave":
		m.call(what, m.leave(r, p), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Leave(m.ctx, p, r.id, rc)
		})
	case "ready":
		ready := draw("unready", 4) > 0
		m.call(what, m.ready(r, p, ready), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Ready(m.ctx, p, r.id, ready, rc)
		})
	case "kick":
		in := rooms.KickInput{RoomID: r.id, UserID: other, Ban: rapid.Bool().Draw(t, "ban")}
		m.call(what, m.kick(r, caller, other, in.Ban), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Kick(m.ctx, caller, in, rc)
		})
	case "transfer":
		m.call(what, m.transfer(r, caller, other), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.TransferHost(m.ctx, caller, r.id, other, rc)
		})
	case "start":
		m.call(what, m.startByHost(r, caller), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Start(m.ctx, caller, r.id, rc)
		})
	case "finish":
		results, places, valid := m.drawPlacements(r)
		m.call(what, m.finish(r, places, valid), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Finish(m.ctx, m.fixture.Server(), r.id, results, rc)
		})
	case "report":
		if !r.consensus {
			return // TestWhichRoleMayCallWhat
		}
		results, places, valid := m.drawReport(r)
		m.call(what, m.report(r, p, places, valid), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Finish(m.ctx, p, r.id, results, rc)
		})
	case "resolve":
		if r.gone {
			return // as below
		}
		results, places, valid := m.drawPlacements(r)
		in := rooms.ResolveInput{Placements: results, Refund: draw("refund", 3) == 0}
		m.call(what, m.resolve(r, in.Refund, places, valid), r,
			func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return m.service.Resolve(m.ctx, operator, r.id, in, rc)
			})
	case "cancel":
		if draw("operator", 4) == 0 {
			caller = operator
		}
		if caller.Role == principal.Operator && r.gone {
			return // its game is not known any more; the calls of the other roles cover this
		}
		m.call(what, m.cancelByCaller(r, caller), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Cancel(m.ctx, caller, r.id, rc)
		})
	case "rematch":
		code, n := m.rematch(r, p)
		m.call(what, code, n, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.Rematch(m.ctx, p, r.id, rc)
		})
	case "pass":
		if !r.gone {
			m.passTime(r)
		}
	case "replay":
		m.replay()
	case "limit":
		m.tighten(p)
	case "state", "turn", "turn over":
		m.playState(what, r, p, caller, other)
	}
}

// playOn leads a room with consensus on to what is rare otherwise: it is filled and started, and
// its players report and leave. It may return another method and another player.
func (m *model) playOn(r *modelRoom, what string, p principal.Caller) (string, principal.Caller) {
	if !r.consensus || r.ended() || rapid.IntRange(0, 4).Draw(m.t, "play on") == 0 {
		return what, p
	}
	if r.status == rooms.Created {
		for _, other := range m.players {
			if r.seat(other.UserID) == nil && m.free[other.UserID] >= r.entry {
				p = other
			}
		}
		return rapid.SampledFrom([]string{"join", "join", "start"}).Draw(m.t, "verb of it"), p
	}
	p.UserID = rapid.SampledFrom(r.active()).Draw(m.t, "player of it")
	verbs := []string{"report", "report", "report", "report", "leave", "resolve"}
	return rapid.SampledFrom(verbs).Draw(m.t, "verb of it"), p
}

func (m *model) create(p principal.Caller) {
	t := m.t
	maxPlayers := rapid.IntRange(1, 4).Draw(t, "most")
	entry := rapid.SampledFrom([]int64{0, 0, 1, 7, 100, int64(wallet.MaxUnits) / int64(maxPlayers)}).Draw(t, "entry")
	minPlayers := rapid.IntRange(1, maxPlayers).Draw(t, "least")
	rakeBps := rapid.SampledFrom([]int{0, 1, 333, 10_000}).Draw(t, "rake")
	payoutBps := rapid.SampledFrom([][]int{{10_000}, {6000, 4000}, {3334, 3333, 3333}, {0, 9999, 1, 0}}).Draw(t, "table")
	if len(payoutBps) > maxPlayers {
		payoutBps = []int{10_000}
	}
	n := &modelRoom{
		entry: entry, maxPlayers: maxPlayers, minPlayers: minPlayers, rakeBps: rakeBps, payoutBps: payoutBps,
		friendsOnly: rapid.IntRange(0, 3).Draw(t, "friends") == 0, autoStart: rapid.IntRange(0, 3).Draw(t, "auto") == 0,
		visibility: rapid.SampledFrom([]rooms.Visibility{
			rooms.Public, rooms.Public, rooms.Public, rooms.Unlisted,
			rooms.Private,
		}).Draw(t, "visibility"),
		tie:       rapid.SampledFrom([]rooms.Tie{rooms.TieSplit, rooms.TieRefund}).Draw(t, "tie"),
		consensus: rapid.Bool().Draw(t, "consensus"), feeds: rapid.Bool().Draw(t, "feeds"), hasFeed: m.drawFeed(),
	}
	if m.fixture.Settings.Boards = nil; n.feeds {
		m.fixture.feedBoards()
	}
	in := rooms.CreateInput{
		MaxPlayers: maxPlayers, MinPlayers: &minPlayers, FriendsOnly: n.friendsOnly, AutoStart: n.autoStart,
		Visibility: n.visibility,
		RakeBps:    &rakeBps, PayoutBps: payoutBps, Tie: n.tie,
	}
	if n.consensus {
		in.SettledBy = rooms.SettledByConsensus
	}
	if entry > 0 {
		in.EntryTokenID, in.RoomEntry = m.fixture.token.ID, wallet.AmountInput(wallet.Units(entry).Decimal(2))
	}
	code := m.ownLimit(p.UserID, entry)
	switch {
	case code != "":
	case m.free[p.UserID] < entry:
		code = "insufficient_funds"
	default:
		m.openRoom(n, p, nil)
		code = scripts.OK
	}
	m.call("create", code, n, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
		return m.service.Create(m.ctx, p, in, rc)
	})
}

// drawPlacements draws a ranking of the players, or something that is none.
func (m *model) drawPlacements(r *modelRoom) (list []rooms.Placement, places map[int64]int, valid bool) {
	players := r.active()
	places, valid = map[int64]int{}, true
	if r.places != nil && rapid.Bool().Draw(m.t, "same") {
		places = r.places
	} else {
		order := rapid.Permutation(players).Draw(m.t, "order")
		for i, user := range order {
			places[user] = i + 1
			if i > 0 && rapid.Bool().Draw(m.t, "tied") {
				places[user] = places[order[i-1]]
			}
		}
		switch rapid.IntRange(0, 7).Draw(m.t, "flaw") {
		case 0:
			places[m.players[0].UserID+1_000_000] = 1
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
	return rapid.Permutation(list).Draw(m.t, "results"), places, valid
}

// drawReport is drawPlacements, mostly of what somebody else has reported.
func (m *model) drawReport(r *modelRoom) (list []rooms.Placement, places map[int64]int, valid bool) {
	reporters := r.reporters()
	if len(reporters) == 0 || r.places != nil || rapid.IntRange(0, 3).Draw(m.t, "another report") == 0 {
		return m.drawPlacements(r)
	}
	places = rankAmong(r.reports[reporters[0]], r.active())
	for user, place := range places {
		list = append(list, rooms.Placement{UserID: user, Place: place})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].UserID < list[j].UserID })
	return list, places, true
}

// replay makes an old call with a key again. It must return its first result, whatever has happened
// since, with the room as it is now, and another request with its key must fail.
func (m *model) replay() {
	if len(m.keyedCalls) == 0 {
		return
	}
	k := m.keyedCalls[rapid.IntRange(0, len(m.keyedCalls)-1).Draw(m.t, "receipt")]
	a, err := k.send(k.rc)
	want := k.code
	if want == scripts.OK && k.room.gone {
		want = apierror.RoomNotFound.Code
	}
	if code := domaintest.CodeOf(err); code != want || !a.Replayed {
		m.t.Fatalf("%s again: %s (replayed: %v), want %s, first %s", k.rc.Fingerprint, code, a.Replayed, want, k.code)
	}
	if want == scripts.OK {
		m.requireSame("replay", k.room, *a.Room)
	}
	_, err = k.send(idempotency.Receipt{KeyDigest: k.rc.KeyDigest, Fingerprint: "other"})
	if code := domaintest.CodeOf(err); code != apierror.IdempotencyKeyReused.Code {
		m.t.Fatalf("another request with the key: %s", code)
	}
}

func TestRoomsAgreeWithTheModel(t *testing.T) {
	check := func(t *testing.T, db *redisdb.DB, cases string) {
		var losesReplies atomic.Bool
		redistest.LoseReplies(db, losesReplies.Load)
		old := flag.Lookup("rapid.checks").Value.String()
		if old == "100" { // the default: the command line sets no other number
			_ = flag.Set("rapid.checks", cases)
			defer func() { _ = flag.Set("rapid.checks", old) }()
		}
		rapid.Check(t, func(rt *rapid.T) {
			f := newCase(t, db)
			f.t = rt
			f.Settings.StateKeys = modelStateKeys
			f.Settings.TurnTimeout = rapid.SampledFrom([]games.TurnTimeout{games.TurnSkips, games.TurnForfeits}).
				Draw(rt, "what ends a turn")
			f.Settings.IdleTimeout, f.Settings.MaxAge, f.Settings.MatchTimeout = modelIdle, modelAge, modelMatch
			m := &model{
				t: rt, ctx: t.Context(), fixture: f, losesReplies: &losesReplies, free: map[int64]int64{}, held: map[int64]int64{},
				lines: map[int64][]modelEntry{}, lineCounts: map[int64]int64{}, fed: map[string]int{},
				limits: map[int64]*modelLimits{}, lost: map[int64]int64{}, open: map[int64]int64{},
				service: rooms.New(db, f.wallet, f, f, rooms.Options{Shards: modelShards, Retention: modelKeep}),
			}
			for range 4 {
				units := rapid.SampledFrom([]int64{int64(wallet.MaxUnits), 1000, 5, 0}).Draw(rt, "units")
				p := f.newPlayer(units)
				m.players, m.free[p.UserID], m.minted = append(m.players, p), units, m.minted+units
				if units > 0 {
					m.entryCount++
					m.lineCounts[p.UserID]++
				}
			}
			m.service.SetBoardsConsumer(m.consume)
			f.makeFriends(m.players[0], m.players[1])
			f.makeFriends(m.players[1], m.players[2])
			for range rapid.IntRange(1, 24).Draw(rt, "steps") {
				m.step()
				m.requireStoreAgrees()
			}
			report, err := moneytest.NewAudit(f.db, f.wallet).AuditDeep(t.Context(), f.GameID)
			if err != nil || !report.Balanced || len(report.Differences) > 0 || !report.HeldCounted {
				rt.Fatalf("the books do not balance: %+v, %v", report, err)
			}
			m.requireLedgerHasStakes(db)
		})
		requireBooksBalance(t, db)
	}
	t.Run("single", func(t *testing.T) { check(t, redistest.Single(t), "1000") })
	t.Run("cluster", func(t *testing.T) { check(t, redistest.Cluster(t), "100") })
	t.Run("embedded", func(t *testing.T) { check(t, openEmbedded(t), "100") })
}

// requireLedgerHasStakes checks that the ledger alone tells what each player has staked:
// checkpoints of the archive are made from it.
func (m *model) requireLedgerHasStakes(db *redisdb.DB) {
	m.t.Helper()
	entries := testkit.Must(db.Client.LRange(m.ctx, keys.Ledger(m.fixture.GameID), 0, -1).Result())(m.t)
	replay := ledger.NewReplay()
	for i, text := range entries {
		replay.Apply(ledger.Decode(int64(i)+1, text))
	}
	held := replay.Held()
	for _, p := range m.players {
		sum := int64(0)
		for _, units := range held[p.UserID] {
			sum += units
		}
		if sum != m.held[p.UserID] {
			m.t.Fatalf("player %d has staked %d, and by the ledger %d:\n%s", p.UserID, m.held[p.UserID], sum,
				strings.Join(entries, "\n"))
		}
	}
}
