package rooms

// Quotas bound what one player has in rooms at a time. They are counted where the scripts of rooms
// run: in the paid rooms of a game, and in each shard of free rooms by itself. 0 is no bound.
type Quotas struct {
	Seats     int // in rooms that have not ended
	OpenRooms int // that the player made and that have not ended
}

// DefaultQuotas returns the quotas of a node with limits: far more than a person plays at once, and
// little enough that nobody fills the store with rooms.
func DefaultQuotas() Quotas { return Quotas{Seats: 32, OpenRooms: 8} }
