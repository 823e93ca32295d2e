package rooms_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMessagesAreAuthorized(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	host, guest, forfeited, spectator := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
	room := must(t)(f.service.Create(t.Context(), host, rooms.CreateInput{MaxPlayers: 4}, noKey))
	for _, player := range []principal.Caller{guest, forfeited} {
		must(t)(f.service.Join(t.Context(), player, room.RoomID, noKey))
	}
	must(t)(f.service.Start(t.Context(), host, room.RoomID, noKey))
	must(t)(f.service.Leave(t.Context(), forfeited, room.RoomID, noKey)) // the seat stays, forfeited
	private := must(t)(f.service.Create(t.Context(), host,
		rooms.CreateInput{MaxPlayers: 2, Visibility: rooms.Private}, noKey))
	elsewhere := principal.Caller{Role: principal.Player, UserID: host.UserID, GameID: host.GameID + 1_000_000}
	topic, _ := f.service.EventTopic(room.RoomID)

	both := []int64{host.UserID, guest.UserID}
	slices.Sort(both)
	all := append([]int64{0}, both...) // and the servers of the game

	to := func(users ...int64) rooms.MessageInput { return rooms.MessageInput{To: &users} }
	op := func(bytes int) rooms.MessageInput { return rooms.MessageInput{Op: strings.Repeat("o", bytes)} }

	for name, c := range map[string]struct {
		caller     principal.Caller
		in         rooms.MessageInput
		recipients []int64
		err        *apierror.Error
		field      string
	}{
		"to all":        {caller: host, recipients: all},
		"from a guest":  {caller: guest, recipients: all},
		"to one":        {caller: host, in: to(guest.UserID), recipients: []int64{guest.UserID}},
		"to nobody":     {caller: host, in: to()},
		"to the sender": {caller: host, in: to(host.UserID)},
		"to a spectator": {
			caller: host, in: to(guest.UserID, spectator.UserID), err: apierror.NotParticipant,
			field: "to[1]",
		},
		"to servers alone": {caller: host, in: to(0), err: apierror.NotParticipant, field: "to[0]"},
		"to a forfeited":   {caller: host, in: to(forfeited.UserID), err: apierror.NotParticipant, field: "to[0]"},
		"from a spectator": {caller: spectator, err: apierror.NotParticipant},
		"from a forfeited": {caller: forfeited, err: apierror.NotParticipant},
		"the longest op":   {caller: host, in: op(64), recipients: all},
		"too long an op":   {caller: host, in: op(65), err: apierror.InvalidRequest, field: "op"},
		"an infinite number": {
			caller: host, in: rooms.MessageInput{Payload: wire.RawJSON(`{"x":1e999}`)}, err: apierror.InvalidRequest,
			field: "payload",
		},
		"the largest number": {caller: host, in: rooms.MessageInput{Payload: wire.RawJSON(`1e308`)}, recipients: all},
		"no room": {
			caller: host, in: rooms.MessageInput{RoomID: "nowhere"}, err: apierror.InvalidRequest,
			field: "roomId",
		},
		"a hidden room": {caller: spectator, in: rooms.MessageInput{RoomID: private.RoomID}, err: apierror.RoomNotFound},
		"another game":  {caller: elsewhere, err: apierror.RoomNotFound},
		"from a server": {
			caller: principal.Caller{Role: principal.Server, GameID: host.GameID}, recipients: both,
		},
		"from a server to one": {
			caller: principal.Caller{Role: principal.Server, GameID: host.GameID}, in: to(guest.UserID),
			recipients: []int64{guest.UserID},
		},
		"from a server of another game": {
			caller: principal.Caller{Role: principal.Server, GameID: elsewhere.GameID}, err: apierror.RoomNotFound,
		},
		"from the operator": {caller: operator, err: apierror.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if c.in.RoomID == "" {
				c.in.RoomID = room.RoomID
			}
			if c.in.To == nil { // a call goes to the server, so it is allowed like a message to all
				want := c.err
				if c.caller.Role == principal.Server {
					want = apierror.Forbidden
				}
				err := f.service.AuthorizeCall(t.Context(), c.caller, c.in, noSeats{})
				if apiErr, _ := apierror.As(err); (err == nil) != (want == nil) || want != nil && !apiErr.Is(want) {
					t.Errorf("a call gets %v, want %v", err, want)
				}
			}
			m, err := f.service.AuthorizeMessage(t.Context(), c.caller, c.in, noSeats{})
			if c.err == nil {
				if err != nil || m.Topic != topic || !slices.Equal(m.Recipients, c.recipients) {
					t.Errorf("got topic %q, recipients %v, error %v; want %q, %v",
						m.Topic, m.Recipients, err, topic, c.recipients)
				}
				return
			}
			apiErr, ok := apierror.As(err)
			if !ok || apiErr.Code != c.err.Code {
				t.Fatalf("got %v, want %s", err, c.err.Code)
			}
			var fields []string
			for _, e := range apiErr.FieldErrors {
				fields = append(fields, e.Field)
			}
			if got := strings.Join(fields, " "); got != c.field {
				t.Errorf("the field errors are of %q, want %q", got, c.field)
			}
		})
	}
}

// noSeats keeps nothing.
type noSeats struct{}

func (noSeats) CachedState(string) any         { return nil }
func (noSeats) CacheState(string, string, any) {}

// keptSeats keeps one value, whatever happens in the room.
type keptSeats struct {
	value    any
	position string
}

func (k *keptSeats) CachedState(string) any                   { return k.value }
func (k *keptSeats) CacheState(_, position string, value any) { k.position, k.value = position, value }

// What is kept spares the store; what it does not allow, the store decides.
func TestKeptSeatsAllowMessagesAndNeverRefuseThem(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	host, guest, late := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
	room := must(t)(f.service.Create(t.Context(), host, rooms.CreateInput{MaxPlayers: 3}, noKey))
	room = must(t)(f.service.Join(t.Context(), guest, room.RoomID, noKey))
	in, cache := rooms.MessageInput{RoomID: room.RoomID, Op: "move"}, &keptSeats{}
	send := func(caller principal.Caller) error {
		_, err := f.service.AuthorizeMessage(t.Context(), caller, in, cache)
		return err
	}
	if err := send(host); err != nil || cache.position != room.Position {
		t.Fatalf("the seats were kept at %q with error %v, want %q", cache.position, err, room.Position)
	}
	must(t)(f.service.Join(t.Context(), late, room.RoomID, noKey))
	testkit.Report(t, send(late), "who sat down since cannot send")
	testkit.WantError(t, send(f.newPlayer(0)), apierror.NotParticipant, "a spectator gets")
	shard, _ := keys.RoomShard(room.RoomID)
	roomKey, _ := keys.RoomWithEvents(shard, room.RoomID)
	f.db.Client.Del(t.Context(), roomKey)
	testkit.Report(t, send(guest), "a message of a kept seat asked the store")
}

func TestAMessageIsAnEvent(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	host := f.newPlayer(0)
	room := must(t)(f.service.Create(t.Context(), host, rooms.CreateInput{MaxPlayers: 2}, noKey))
	for payload, want := range map[string]string{"": "null", `{"x":1}`: `{"x":1}`, `"hi"`: `"hi"`} {
		in := rooms.MessageInput{RoomID: strings.ToUpper(room.RoomID), Op: "move"}
		if payload != "" {
			in.Payload = wire.RawJSON(payload)
		}
		m := testkit.Must(f.service.AuthorizeMessage(t.Context(), host, in, noSeats{}))(t)
		var event struct {
			Type   string       `json:"type"`
			RoomID string       `json:"roomId"`
			At     string       `json:"at"`
			Data   wire.RawJSON `json:"data"`
		}
		if err := wire.UnmarshalStrict(m.Event, &event); err != nil {
			t.Fatalf("%v: %s", err, m.Event)
		}
		data := testkit.Must(
			wire.Marshal(map[string]any{"from": host.UserID, "op": "move", "payload": wire.RawJSON(want)}),
		)(t)
		if event.Type != "room.message" || event.RoomID != room.RoomID || string(event.Data) != string(data) {
			t.Errorf("the event is %s, want data %s", m.Event, data)
		}
	}
}

func TestEventsThatMayUnseat(t *testing.T) {
	for eventType, want := range map[string]bool{
		"room.left": true, "room.started": true,
		"room.joined": false, "room.ready": false, "room.cancelled": false, "": false,
	} {
		if got := rooms.MayUnseat(eventType); got != want {
			t.Errorf("MayUnseat(%q) is %v, want %v", eventType, got, want)
		}
	}
}
