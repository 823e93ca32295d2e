package rooms

// Quotas bound the rooms that one player may have at a time. They are counted per hash tag of the
// room scripts: together for the paid rooms of a game, and separately in each shard of free rooms.
// 0 means no bound.
type Quotas struct {
	Seats     int // in rooms that have not ended
	OpenRooms int // that the player made and that have not ended
}

// DefaultQuotas returns the quotas of a node with limits: far more than a person plays at once, and
// little enough that nobody fills the store with rooms.
func DefaultQuotas() Quotas { return Quotas{Seats: 32, OpenRooms: 8} }
