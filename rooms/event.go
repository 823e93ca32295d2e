package rooms

import "github.com/parlor-games/parlor/internal/events"

// MayUnseat reports whether an event of this type may take a seat from a player, so that the player
// may no longer see a private room. room.started is one: the reserved seats end at the start.
func MayUnseat(eventType string) bool {
	return eventType == events.RoomLeft.Name || eventType == events.RoomStarted.Name
}
