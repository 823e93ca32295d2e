package parlor

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is what happened to a room, to a tournament or to the money of the game.
type Event struct {
	// Type is a name such as "room.started". The node lists all of them at /docs/events. Of kind
	// "rooms": room.created, room.started, room.result, room.disputed, room.finished, room.cancelled
	// and room.rematch; of kind "seats": room.joined, room.left, room.ready and room.host_changed; of
	// kind "tournaments": tournament.*; of kind "money": ledger.entry.
	Type string `json:"type"`

	Feed         string          `json:"feed"`         // its list, such as "e" or "money"
	Position     string          `json:"position"`     // in the feed; opaque
	RoomID       string          `json:"roomId"`       // "" when it is not about a room
	TournamentID int64           `json:"tournamentId"` // 0 when it is not about a tournament
	Seq          int64           `json:"seq"`          // its number in the room or tournament, from 1
	Time         time.Time       `json:"time"`
	Data         json.RawMessage `json:"data"` // an object; its members are those of the type
}

// Decode decodes the data into v.
func (e Event) Decode(v any) error { return json.Unmarshal(e.Data, v) }

// Call is a question of a player with a seat in a room. Nobody stores it, so it comes at most once.
type Call struct {
	RoomID  string
	ID      string          // of this call
	From    int64           // user id of the player; the service has checked it
	Op      string          // the operation, as the page named it
	Payload json.RawMessage // any JSON, as the page sent it; nil without one
	At      time.Time       // when the node had it
}

// Decode decodes the payload into v.
func (c Call) Decode(v any) error { return json.Unmarshal(c.Payload, v) }

// Error is the reply to a call that fails. The page of the player gets the error game_error with
// Code as gameCode.
type Error struct {
	Code   string // 1 to 40 of a-z and "_"
	Detail string // a sentence for the player; may be ""
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Code
	}
	return e.Code + ": " + e.Detail
}

// Problem is an error of the service (RFC 9457). The node has a page for each code, at
// /docs/errors/<code>.
type Problem struct {
	Code              string          `json:"code"` // such as "room_not_found"
	Detail            string          `json:"detail"`
	Status            int             `json:"status"` // of HTTP
	Retryable         bool            `json:"retryable"`
	RetryAfterSeconds float64         `json:"retryAfterSeconds"` // of rate_limited; 0: not said
	RequestID         string          `json:"requestId"`
	Current           json.RawMessage `json:"current"` // of version_conflict: what is there by now
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// CloseError ends Run: the service does not let this server in, and coming back would not change
// that.
type CloseError struct {
	Code   int    // of the WebSocket (RFC 6455), or the status of the HTTP response that refused it
	Reason string // what the service said
	Advice string // what to do
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("parlor: refused with %d (%s): %s", e.Code, e.Reason, e.Advice)
}

// User is a player.
type User struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// Seat is a place in a room.
type Seat struct {
	UserID int64  `json:"userId"`
	State  string `json:"state"` // "active", "forfeited" or "reserved"
	Ready  bool   `json:"ready"`
}

// The states of a room.
const (
	Created   = "CREATED" // players come and go
	Started   = "STARTED"
	Disputed  = "DISPUTED" // settlement "consensus" only: the players do not agree
	Finished  = "FINISHED"
	Cancelled = "CANCELLED"
)

// Room is a game session.
type Room struct {
	RoomID       string          `json:"roomId"`
	Code         string          `json:"code"` // short, to tell other players
	Status       string          `json:"status"`
	Settlement   string          `json:"settlement"` // "server" or "consensus"
	Host         User            `json:"host"`
	Participants []User          `json:"participants"` // in seating order, without forfeited seats
	Seats        []Seat          `json:"seats"`        // in seating order, all of them
	MaxPlayers   int             `json:"maxPlayers"`
	RoomEntry    json.Number     `json:"roomEntry"`  // what each player pays: an exact decimal of the room's token
	TotalWager   json.Number     `json:"totalWager"` // the pot: an exact decimal
	Metadata     json.RawMessage `json:"metadata"`   // an object of the game
	Shared       *SharedState    `json:"shared"`     // nil: none yet, or not in this response
	CreatedAt    time.Time       `json:"createdAt"`
	StartedAt    *time.Time      `json:"startedAt"`  // nil before the start
	FinishedAt   *time.Time      `json:"finishedAt"` // nil before the end
	Version      int64           `json:"version"`    // rises by one with every change
	Seq          int64           `json:"seq"`        // of its last event
}

// StateVersion returns the version of the shared state, 0 before the first change.
func (r Room) StateVersion() int64 {
	if r.Shared == nil {
		return 0
	}
	return r.Shared.Version
}

// DecodeState decodes a value of the shared state into v, and leaves v as it is when the state
// lacks the name.
func (r Room) DecodeState(name string, v any) error {
	if r.Shared == nil || r.Shared.Value[name] == nil {
		return nil
	}
	return json.Unmarshal(r.Shared.Value[name], v)
}

// SharedState is what a room keeps for the game, and everybody who sees the room sees. At most 16
// KiB as JSON.
type SharedState struct {
	Version int64                      `json:"version"` // rises by one with every change
	Value   map[string]json.RawMessage `json:"value"`   // by name
}

// Result is the place of a player in a room.
type Result struct {
	UserID int64  `json:"userId"`
	Place  int    `json:"place"`           // from 1; equal places are a tie
	Score  *int64 `json:"score,omitempty"` // nil: none
}

// StateChange is a change of the shared state.
type StateChange struct {
	Version int64          // of the state that was read last; 0: there was none
	Patch   map[string]any // values to set, by name; what is in neither stays
	Delete  []string       // names to remove
}

// Share is a part of the rooms of a game, so that several servers divide the work. A room belongs
// to the Index that [ShareOf] returns for it.
type Share struct {
	Of    int `json:"of"`    // number of parts, 1 to 64
	Index int `json:"index"` // of this server, from 0
}
