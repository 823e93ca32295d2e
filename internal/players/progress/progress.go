package progress

import (
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// The limits of saves.
const (
	MaxStateBytes = 256 << 10 // bytes of a state, without white space
	MaxStateDepth = 32        // nested objects and arrays
	MaxSlots      = 16        // slots of a player in a game
	MaxVersions   = 5         // kept versions of a slot

	// MaxTotalBytes bounds the bytes of all versions of a player's states. The newest version of each
	// slot always fits; of the others, the oldest are removed first.
	MaxTotalBytes = MaxSlots * MaxStateBytes
	// MaxGuestTotalBytes is MaxTotalBytes for a player for whom nobody vouches. A save that does
	// not fit even after all older versions are dropped is refused.
	MaxGuestTotalBytes = 1 << 20
)

// SaveInput is a state that a player saves.
type SaveInput struct {
	Slot        string       // 1 to 64 of A-Z a-z 0-9 _ . -
	State       wire.RawJSON // a JSON object of at most MaxStateBytes
	BaseVersion int64        // the version last read; 0 for the first save
	MessageID   string       // makes a repeated message one save; "" for none
}

// ReplaceInput is a state that the game's server or the operator stores for a user.
type ReplaceInput struct {
	UserID      int64        // id of the user whose save is replaced
	Slot        string       // 1 to 64 of A-Z a-z 0-9 _ . -
	State       wire.RawJSON // the whole new state: a JSON object of at most MaxStateBytes
	BaseVersion int64        // the version last read; 0 for the first save
}

// RestoreInput names the version whose state becomes the newest version.
type RestoreInput struct {
	Slot      string // 1 to 64 of A-Z a-z 0-9 _ . -
	Version   int64  // one of those that History returns
	MessageID string // makes a repeated message one restore; "" for none
}

// SaveInfo describes a stored version.
type SaveInfo struct {
	Slot      string    `json:"slot"`
	Version   int64     `json:"version"` // counts from 1 in each slot
	SavedAt   time.Time `json:"savedAt"`
	SizeBytes int       `json:"size"` // bytes of the state, without white space
}

// LoadedSave is a version with its state.
type LoadedSave struct {
	Slot      string       `json:"slot"`
	Version   int64        `json:"version"` // counts from 1 in each slot
	State     wire.RawJSON `json:"state"`   // a JSON object without white space
	SavedAt   time.Time    `json:"savedAt"`
	SizeBytes int          `json:"size"` // bytes of the state
}

// Revision is one entry of a slot's history.
type Revision struct {
	Version   int64     `json:"version"` // counts from 1 in each slot
	SavedAt   time.Time `json:"savedAt"`
	SizeBytes int       `json:"size"` // bytes of the state, without white space
}

// slotID identifies a slot.
type slotID struct {
	userID, gameID int64
	name           string
}

// record is one stored version of a slot.
type record struct {
	version         int64  // 0: there is none
	messageDigest   string // digest of the message that made the version
	savedAtMS       int64  // Unix time in ms, by the clock of Redis
	sizeBytes       int    // bytes of the state
	keyID           string // identifies the signing key
	signature       string
	gainBucketsJSON string       // rateState as JSON
	state           wire.RawJSON // nil when it was not read
}

func (r record) savedAt() time.Time { return time.UnixMilli(r.savedAtMS).UTC() }

func (r record) saved(slot string) SaveInfo {
	return SaveInfo{Slot: slot, Version: r.version, SavedAt: r.savedAt(), SizeBytes: r.sizeBytes}
}

func (r record) loaded(slot string) LoadedSave {
	return LoadedSave{Slot: slot, Version: r.version, State: r.state, SavedAt: r.savedAt(), SizeBytes: r.sizeBytes}
}
