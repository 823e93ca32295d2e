package parlor

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
)

// watched are the rooms of WatchRoom.
type watched struct {
	mu    sync.Mutex
	rooms map[string]bool
}

// watchedTypes are the events of a room that no feed has.
var watchedTypes = map[string]bool{
	"room.message": true, "room.state": true, "room.turn": true, "room.connected": true, "room.disconnected": true,
}

// WatchRoom lets the server hear what no feed has of a room, until the room ends: room.message of
// what players send to all, room.state, room.turn, room.connected and room.disconnected, each at
// most once. The server takes the calls of the room where no other server has them by its share. It
// waits for a connection. It returns a *[Problem] with the code room_not_found.
func (s *Server) WatchRoom(ctx context.Context, roomID string) error {
	s.watched.mu.Lock()
	s.watched.rooms[roomID] = true
	s.watched.mu.Unlock()
	_, err := s.requests.ask(ctx, outgoing{Type: "room.subscribe", Data: roomInput{roomID}}, false)
	if err != nil {
		s.watched.mu.Lock()
		delete(s.watched.rooms, roomID)
		s.watched.mu.Unlock()
	}
	return err
}

// endWatch watches a room no longer that has ended.
func (s *Server) endWatch(e Event) {
	if e.Type != "room.finished" && e.Type != "room.cancelled" {
		return
	}
	s.watched.mu.Lock()
	isWatched := s.watched.rooms[e.RoomID]
	delete(s.watched.rooms, e.RoomID)
	s.watched.mu.Unlock()
	if isWatched {
		s.requests.tell(outgoing{Type: "room.unsubscribe", Data: roomInput{e.RoomID}})
	}
}

const maxRoomsOfOneMessage = 500

// watchAgain subscribes a new connection to the rooms that are watched.
func (c *connection) watchAgain() error {
	w := &c.server.watched
	w.mu.Lock()
	rooms := make([]roomInput, 0, len(w.rooms))
	for roomID := range w.rooms {
		rooms = append(rooms, roomInput{roomID})
	}
	w.mu.Unlock()
	for part := range slices.Chunk(rooms, maxRoomsOfOneMessage) {
		err := c.send(outgoing{ID: watchID, Type: "room.subscribe", Data: map[string]any{"rooms": part}})
		if err != nil {
			return err
		}
	}
	return nil
}

// takesCalls reports whether the server takes the calls of its share.
func (s *Server) takesCalls() bool { return len(s.calls) > 0 && !s.options.OnlyWatchedCalls }

// tell sends a message without a reply, if there is a connection.
func (r *requests) tell(f outgoing) {
	r.mu.Lock()
	c := r.connection
	r.mu.Unlock()
	text, err := json.Marshal(f)
	if err == nil && c != nil {
		_ = c.write(text) // a lost connection has no subscriptions
	}
}
