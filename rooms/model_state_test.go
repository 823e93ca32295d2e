package rooms_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// modelStateKeys is who may write which names in the rooms of the model.
var modelStateKeys = games.StateKeys{
	"all": games.WriterAll, "all.host": games.WriterHost, "hand.": games.WriterOwner,
}

// modelState is the shared state and the turn of a room of the model.
type modelState struct {
	version  int64
	values   map[string]string // JSON, by name
	turn     int64             // user id; 0 for nobody
	forfeits bool
}

// bytes returns the size of the values as a JSON object, with a comma behind each.
func (s *modelState) bytes() int {
	n := 2
	for name, value := range s.values {
		n += len(name) + len(value) + 4
	}
	return n
}

// mayWrite is the rule of modelStateKeys, by its sentence in the documentation.
func (m *model) mayWrite(r *modelRoom, p principal.Caller, name string) string {
	id := strconv.FormatInt(p.UserID, 10)
	switch {
	case p.Role == principal.Server:
		return ""
	case strings.HasPrefix(name, "all.host"):
		if p.UserID != r.host {
			return "not_host"
		}
	case strings.HasPrefix(name, "all"):
	case name == "hand."+id, strings.HasPrefix(name, "hand."+id+"."):
	default:
		return "forbidden"
	}
	return ""
}

func (m *model) setState(r *modelRoom, p principal.Caller, in rooms.StateInput) string {
	codes := map[string]bool{}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(in.Patch)), in.Delete) {
		codes[m.mayWrite(r, p, name)] = true
	}
	s := r.seat(p.UserID)
	switch {
	case codes["forbidden"]:
		return "forbidden"
	case m.isHidden(r, p):
		return "room_not_found"
	case r.ended():
		return "room_closed"
	case p.Role == principal.Player && (s == nil || s.state != rooms.SeatActive):
		return "not_participant"
	case codes["not_host"]:
		return "not_host"
	case r.status == rooms.Disputed:
		return "room_disputed"
	case r.shared.version != in.Version:
		return "version_conflict"
	}
	next := modelState{values: maps.Clone(r.shared.values)}
	if next.values == nil {
		next.values = map[string]string{}
	}
	for name, value := range in.Patch {
		next.values[name] = string(value)
	}
	for _, name := range in.Delete {
		delete(next.values, name)
	}
	if next.bytes() > 16<<10 {
		return "limit_reached"
	}
	r.shared.values = next.values
	r.shared.version++
	r.addEvent("room.state")
	return scripts.OK
}

// giveTurn gives a player the turn.
func (r *modelRoom) giveTurn(user int64, forfeits bool) {
	r.shared.turn, r.shared.forfeits = user, forfeits
	r.addEvent("room.turn")
}

// passTurn gives the turn of a player to the next active one in seating order.
func (r *modelRoom) passTurn(user int64) {
	i := slices.IndexFunc(r.seats, func(s modelSeat) bool { return s.user == user })
	for _, s := range append(slices.Clone(r.seats[i+1:]), r.seats[:i+1]...) {
		if s.state == rooms.SeatActive {
			r.giveTurn(s.user, r.shared.forfeits)
			return
		}
	}
}

func (m *model) setTurn(r *modelRoom, p principal.Caller, user int64) string {
	if code := m.checkHost(r, p); code != "" {
		return code
	}
	s := r.seat(user)
	switch {
	case r.status == rooms.Disputed:
		return "room_disputed"
	case r.status != rooms.Started:
		return "not_started"
	case user != 0 && (s == nil || s.state != rooms.SeatActive):
		return "not_participant"
	case user == 0 && r.shared.turn == 0:
		return scripts.OK
	}
	r.version++
	forfeits := m.fixture.Settings.TurnTimeout == games.TurnForfeits
	r.giveTurn(user, forfeits && (r.entry == 0 || p.Role == principal.Server))
	return scripts.OK
}

// endTurn lets the time of a turn pass. The sweep looks at the room once.
func (m *model) endTurn(r *modelRoom) {
	if r.gone || r.shared.turn == 0 {
		return
	}
	m.fixture.setTurnBack(r.id)
	if r.status == rooms.Started {
		user := r.shared.turn
		if r.shared.forfeits {
			m.leave(r, principal.Caller{Role: principal.Player, UserID: user, GameID: m.fixture.GameID})
		} else {
			r.version++
			r.passTurn(user)
		}
	} else {
		r.shared.turn = 0 // the sweep forgets the room
	}
	m.applyWaiting()
	m.losesReplies.Store(rapid.Bool().Draw(m.t, "reply lost"))
	n, err := m.service.Sweep(m.ctx)
	m.losesReplies.Store(false)
	if n != 1 || err != nil {
		m.t.Fatalf("the sweep looked at %d rooms, %v", n, err)
	}
	for range 2 { // what another leader does then
		got := testkit.Must(m.service.Get(m.ctx, operator, r.id))(m.t)
		m.requireSame("the end of a turn", r, got)
		if n, err := m.service.Sweep(m.ctx); n != 0 || err != nil {
			m.t.Fatalf("another sweep looked at %d rooms, %v", n, err)
		}
	}
}

// setTurnBack makes the deadline of a room's turn one that is long over.
func (f *fixture) setTurnBack(roomID string) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	ctx, room := f.t.Context(), keys.Room(shard, roomID)
	values := strings.Split(f.db.Client.HGet(ctx, room, "turn").Val(), "|")
	if len(values) != len(scripts.RoomTurn.Names) {
		f.t.Fatalf("the turn of %s is %v", roomID, values)
	}
	values[slices.Index(scripts.RoomTurn.Names, "deadline")] = "1"
	testkit.Check(f.t, f.db.Client.HSet(ctx, room, "turn", strings.Join(values, "|")).Err())
	testkit.Check(f.t, f.db.Client.ZAdd(ctx, keys.RoomTurns(shard), redis.Z{Score: 1, Member: roomID}).Err())
}

// requireSameState requires that the shared state and the turn of a room are those of the model.
func (m *model) requireSameState(what string, r *modelRoom, got rooms.Room) {
	m.t.Helper()
	var version int64
	values := map[string]string{}
	if got.Shared != nil {
		version = got.Shared.Version
		var raw map[string]wire.RawJSON
		if err := wire.UnmarshalStrict(got.Shared.ValueJSON, &raw); err != nil {
			m.t.Fatalf("%s: the state is %s: %v", what, got.Shared.ValueJSON, err)
		}
		for name, value := range raw {
			values[name] = string(value)
		}
	}
	if version != r.shared.version || !maps.Equal(values, r.shared.values) {
		m.t.Fatalf("%s: the state is %d %.300v; want %d %.300v", what, version, values, r.shared.version, r.shared.values)
	}
	if r.status != rooms.Started {
		return
	}
	var user int64
	if got.Turn != nil {
		user = got.Turn.UserID
		if until := time.Until(got.Turn.Deadline); until < modelTurn-time.Minute || until > modelTurn+time.Minute {
			m.t.Fatalf("%s: the deadline is in %v", what, until)
		}
	}
	if user != r.shared.turn {
		m.t.Fatalf("%s: %d has the turn, want %d", what, user, r.shared.turn)
	}
}

// modelTurn is the length of a turn.
const modelTurn = time.Hour

// playState makes a step that is about the shared state or the turn.
func (m *model) playState(what string, r *modelRoom, p, host principal.Caller, other int64) {
	switch what {
	case "state":
		if rapid.IntRange(0, 3).Draw(m.t, "by the host or the server") == 0 {
			p = host
		}
		in := m.drawState(r)
		m.call(what, m.setState(r, p, in), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.setAndCheckConflict(r, p, in, rc)
		})
	case "turn":
		user, seconds := &other, new(int64(modelTurn/time.Second))
		if rapid.IntRange(0, 4).Draw(m.t, "nobody") == 0 {
			other, user, seconds = 0, nil, nil
		}
		in := rooms.TurnInput{RoomID: r.id, UserID: user, Seconds: seconds}
		m.call(what, m.setTurn(r, host, other), r, func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
			return m.service.SetTurn(m.ctx, host, in, rc)
		})
	default:
		m.endTurn(r)
	}
}

// setAndCheckConflict requires that a conflict has the current state.
func (m *model) setAndCheckConflict(
	r *modelRoom, p principal.Caller, in rooms.StateInput, rc idempotency.Receipt,
) (rooms.ChangeResult, error) {
	result, err := m.service.SetState(m.ctx, p, in, rc)
	if e, ok := apierror.As(err); ok && e.Code == "version_conflict" && !result.Replayed {
		text, encodeErr := wire.Marshal(e.ExtraMembers["current"])
		want := fmt.Sprintf(`{"version":%d,"value":{`, r.shared.version)
		if encodeErr != nil || !strings.HasPrefix(string(text), want) ||
			(len(r.shared.values) == 0) != strings.HasSuffix(string(text), "{}}") {
			m.t.Fatalf("a conflict has the current state %.300s, %v; want %s", text, encodeErr, want)
		}
	}
	return result, err
}

// drawState draws a change of the state, mostly of the version that it has.
func (m *model) drawState(r *modelRoom) rooms.StateInput {
	names := []string{"all", "all.x", "all.host", "all.host.map", "none"}
	for _, p := range m.players {
		names = append(names, fmt.Sprintf("hand.%d", p.UserID), fmt.Sprintf("hand.%d.x", p.UserID))
	}
	large := `"` + strings.Repeat("x", 6_000) + `"`
	in := rooms.StateInput{RoomID: r.id, Version: r.shared.version, Patch: map[string]wire.RawJSON{}}
	if rapid.IntRange(0, 4).Draw(m.t, "an old state") == 0 {
		in.Version++
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names[:4]), 1, 4, rapid.ID[string]).Draw(m.t, "names") {
		if rapid.IntRange(0, 2).Draw(m.t, "delete") == 0 {
			in.Delete = append(in.Delete, name)
			continue
		}
		values := []string{"1", "null", `{"a":[1,"|;%"]}`, large}
		in.Patch[name] = wire.RawJSON(values[rapid.IntRange(0, len(values)-1).Draw(m.t, "value")])
	}
	if rapid.IntRange(0, 3).Draw(m.t, "another's name") == 0 {
		in.Patch[rapid.SampledFrom(names[4:]).Draw(m.t, "name")] = wire.RawJSON("true")
	}
	return in
}
