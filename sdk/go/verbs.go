package parlor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

type keyOfContext struct{}

// WithKey gives the next change of a room an Idempotency-Key, 1 to 128 characters of ASCII without
// spaces at most. Two changes with the same key are one: the second returns what the first did.
// Without it each call has a key of its own. Give one for what is done once in a room, such as
// "finish-"+roomID, where the handler may be repeated after a restart.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

func keyOf(ctx context.Context) string {
	if key, _ := ctx.Value(keyOfContext{}).(string); key != "" {
		return key
	}
	return rand.Text()
}

// change sends a verb. It waits for a connection, and repeats the verb until it is answered or ctx
// ends; then it may have taken effect or not.
func (s *Server) change(ctx context.Context, verb string, data, out any) error {
	text, err := s.askUntilDone(ctx, outgoing{Type: verb, Key: keyOf(ctx), Data: data})
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

type roomInput struct {
	RoomID string `json:"roomId"`
}

// Start begins the game in a room: stakes are locked. It returns a *[Problem] with the code
// already_started, not_enough_players, room_closed or room_not_found.
func (s *Server) Start(ctx context.Context, roomID string) (room Room, err error) {
	err = s.change(ctx, "room.start", roomInput{roomID}, &room)
	return room, err
}

// Finish reports the result of a room that has started: it ends, and pays. Every player who still
// has a seat needs a result. It returns a *[Problem] with the code not_started, result_conflict,
// room_closed, room_disputed or room_not_found.
func (s *Server) Finish(ctx context.Context, roomID string, results []Result) (room Room, err error) {
	err = s.change(ctx, "room.finish", struct {
		RoomID  string   `json:"roomId"`
		Results []Result `json:"results"`
	}{roomID, results}, &room)
	return room, err
}

// Cancel ends a room without a result: every stake goes back. It returns a *[Problem] with the code
// room_closed or room_not_found.
func (s *Server) Cancel(ctx context.Context, roomID string) (room Room, err error) {
	err = s.change(ctx, "room.cancel", roomInput{roomID}, &room)
	return room, err
}

// SetState changes values of the shared state of a room, and returns its new version. It returns a
// *[Problem] with the code version_conflict, whose Current is the state, when Version is not that
// of the state any more; limit_reached above 16 KiB or 128 names; room_closed or room_not_found.
func (s *Server) SetState(ctx context.Context, roomID string, change StateChange) (version int64, err error) {
	var set struct {
		Version int64        `json:"version"`
		Shared  *SharedState `json:"shared"` // where the answer is the room, whose own version is another one
	}
	err = s.change(ctx, "room.state.set", struct {
		RoomID  string         `json:"roomId"`
		Version int64          `json:"version"`
		Patch   map[string]any `json:"patch,omitempty"`
		Delete  []string       `json:"delete,omitempty"`
	}{roomID, change.Version, change.Patch, change.Delete}, &set)
	if set.Shared != nil {
		return set.Shared.Version, err
	}
	return set.Version, err
}

// SetTurn gives a player the turn for some seconds, 1 to 86,400. With userID 0 nobody has it. It
// returns a *[Problem] with the code not_participant, not_started, room_closed or room_not_found.
func (s *Server) SetTurn(ctx context.Context, roomID string, userID int64, seconds int) error {
	turn := map[string]any{"roomId": roomID, "userId": nil}
	if userID != 0 {
		turn["userId"], turn["seconds"] = userID, seconds
	}
	var none json.RawMessage
	return s.change(ctx, "room.turn.set", turn, &none)
}

// Send sends a message to the players of a room who follow it, or to those in to only. Nobody
// stores it: it arrives at most once. It waits for a connection. It returns ErrUnanswered when the
// connection was lost before the reply, or a *[Problem].
func (s *Server) Send(ctx context.Context, roomID, op string, payload any, to ...int64) error {
	_, err := s.requests.ask(ctx, outgoing{Type: "room.send", Data: struct {
		RoomID  string  `json:"roomId"`
		Op      string  `json:"op"`
		Payload any     `json:"payload"`
		To      []int64 `json:"to,omitempty"`
	}{roomID, op, payload, to}}, true)
	return err
}

// Message sends a message to a player on all of their sockets: the event user.message. Nobody
// stores it: it arrives at most once. The payload has at most 4 KiB as JSON. It returns a
// *[Problem], such as user_not_found.
func (s *Server) Message(ctx context.Context, userID int64, op string, payload any) error {
	body, err := json.Marshal(map[string]any{"op": op, "payload": payload})
	if err != nil {
		return err
	}
	return s.request(ctx, http.MethodPost, fmt.Sprintf("/api/v1/admin/users/%d/messages", userID), body, nil)
}

// Room reads a room of the game, with its shared state. It returns a *[Problem] with the code
// room_not_found.
func (s *Server) Room(ctx context.Context, roomID string) (room Room, err error) {
	err = s.read(ctx, "/api/v1/game-session/get?roomId="+url.QueryEscape(roomID), &room)
	return room, err
}

// Rooms lists the rooms of the share in a state, private ones too. They come without their shared
// state. It returns a *[Problem].
func (s *Server) Rooms(ctx context.Context, status string) ([]Room, error) {
	var rooms []Room
	for cursor := ""; ; {
		var page struct {
			Items      []Room  `json:"items"`
			NextCursor *string `json:"nextCursor"`
		}
		query := url.Values{"status": {status}, "limit": {"100"}, "cursor": {cursor}}
		if cursor == "" {
			query.Del("cursor")
		}
		if err := s.read(ctx, "/api/v1/admin/rooms?"+query.Encode(), &page); err != nil {
			return nil, err
		}
		for _, room := range page.Items {
			if s.has(room.RoomID) {
				rooms = append(rooms, room)
			}
		}
		if page.NextCursor == nil {
			return rooms, nil
		}
		cursor = *page.NextCursor
	}
}

const maxBodyBytes = 8 << 20

// read sends a GET request, and again while the service cannot answer, up to maxRefusals times.
func (s *Server) read(ctx context.Context, path string, out any) error {
	for attempt := 1; ; attempt++ {
		err := s.request(ctx, http.MethodGet, path, nil, out)
		problem := (*Problem)(nil)
		isFinal := err == nil || errors.As(err, &problem) && !problem.Retryable
		if isFinal || attempt == maxRefusals || !sleep(ctx, s.backoff(attempt)) {
			return err
		}
	}
}

func (s *Server) request(ctx context.Context, method, path string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.options.Key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		return readProblem(response)
	}
	if out == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}
