package events

import "fmt"

// The kinds of events that a feed of a game has, as its server asks for them.
const (
	RoomsKind       = "rooms"       // how a room begins, goes on and ends
	SeatsKind       = "seats"       // who is in it
	TournamentsKind = "tournaments" // every event of a tournament
)

// feedKinds has the kind of each event of a room that feeds have. Turns, states and who is
// connected change too often for a server that does not follow the room itself.
var feedKinds = map[string]string{
	RoomCreated.Name: RoomsKind, RoomStarted.Name: RoomsKind, RoomResult.Name: RoomsKind,
	RoomDisputed.Name: RoomsKind, RoomFinished.Name: RoomsKind, RoomCancelled.Name: RoomsKind,
	RoomRematch.Name: RoomsKind,

	RoomJoined.Name: SeatsKind, RoomLeft.Name: SeatsKind, RoomReady.Name: SeatsKind,
	RoomHostChanged.Name: SeatsKind,
}

// FeedKind returns the kind of a type of events in the feeds of games, "" for one that no feed has.
func FeedKind(eventType string) string {
	if layouts[eventType].audience == ToTournament {
		return TournamentsKind
	}
	return feedKinds[eventType]
}

// AppendData appends the data of an event as JSON. timed is what follows the type in an entry of
// its own list: "<ms>|<values>". It returns an error for an unknown type, and when the JSON would
// not be valid; the error quotes no value.
func AppendData(b []byte, eventType, timed string) ([]byte, error) {
	l, known := layouts[eventType]
	if !known {
		return b, fmt.Errorf("render an event: unknown type %q", eventType)
	}
	of := builder{rest: timed, json: append(b, '{')}
	of.readTime()
	l.appendMembers(&of)
	if of.err != nil {
		return b, fmt.Errorf("render %s: %w", eventType, of.err)
	}
	return append(of.json, '}'), nil
}
