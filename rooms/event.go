package rooms

import (
	"context"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
)

// MayUnseat reports whether an event of this type may take a seat from a player, so that the player
// may no longer see a private room. room.started is one: the reserved seats end at the start.
func MayUnseat(eventType string) bool {
	return eventType == events.RoomLeft.Name || eventType == events.RoomStarted.Name
}

// EventList is the events of a room that are kept, oldest first.
type EventList struct {
	Events []wire.RawJSON `json:"items"` // as subscribers get them
	// Complete reports whether no event is missing between AfterSeq and the first one.
	Complete bool `json:"complete"`
}

// ListEvents returns the events of a room after a number, 0 for all that are kept: the newest 256
// or more, until some minutes after the room's end. It is for the server of the room's game and the
// operator. It returns forbidden, invalid_request and room_not_found.
func (s *Service) ListEvents(
	ctx context.Context, caller principal.Caller, roomID string, afterSeq int64,
) (EventList, error) {
	if !caller.HasRole(principal.Server, principal.Operator) {
		return EventList{}, apierror.Forbidden
	}
	room, err := s.Get(ctx, caller, roomID)
	if err != nil {
		return EventList{}, err
	}
	entries, err := s.store.listEvents(ctx, room.RoomID)
	if err != nil {
		return EventList{}, err
	}
	list := EventList{Events: []wire.RawJSON{}, Complete: afterSeq >= room.Seq}
	for _, entry := range entries {
		header, ok := events.ParseHeader(entry)
		if ok && len(list.Events) == 0 && header.Seq <= afterSeq+1 {
			list.Complete = true
		}
		if ok && header.Seq <= afterSeq {
			continue
		}
		rendered, err := events.Render(entry, room.RoomID)
		if err != nil {
			list.Complete = false // a newer node wrote it
			continue
		}
		for _, event := range rendered {
			list.Events = append(list.Events, event.JSON)
		}
	}
	return list, nil
}
