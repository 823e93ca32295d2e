package progress

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of contract 7.
const (
	MaxStateBytes = 256 << 10 // bytes of a state, without white space
	MaxDepth      = 32        // objects and arrays within each other
	MaxSlots      = 16        // slots of a player in a game
	MaxVersions   = 5         // versions of a slot
)

// SaveInput is a state to be saved.
type SaveInput struct {
	Slot      string         // 1 to 64 of A-Z a-z 0-9 _ . -
	State     jsontext.Value // a JSON object
	Version   int64          // the version last read; 0 for the first save
	MessageID string         // makes a repeated message one save; "" for none
	ByServer  bool           // the game's server saves: rules do not bind it
}

// Saved is a version that was made.
type Saved struct {
	Slot    string    `json:"slot"`
	Version int64     `json:"version"`
	SavedAt time.Time `json:"savedAt"`
	Size    int       `json:"size"` // bytes, without white space
}

// LoadedSave is a version with its state.
type LoadedSave struct {
	Slot    string         `json:"slot"`
	Version int64          `json:"version"`
	State   jsontext.Value `json:"state"`
	SavedAt time.Time      `json:"savedAt"`
	Size    int            `json:"size"`
}

// Revision is one entry of a slot's history.
type Revision struct {
	Version        int64     `json:"version"`
	SavedAt        time.Time `json:"savedAt"`
	Size           int       `json:"size"`
	SignatureValid bool      `json:"intact"` // false when it was altered in the store, so that it cannot be restored
}

// RestoreInput names the version that is to become the newest.
type RestoreInput struct {
	Slot      string
	Version   int64
	MessageID string // makes a repeated message one restore; "" for none
}

// address is where a save lives.
type address struct {
	user, game int64
	slot       string
}

// record is one version as it is stored.
type record struct {
	version   int64 // 0: there is none
	message   string
	at        int64 // ms by the clock of Redis
	size      int
	key, sign string         // id of the signing key, and the signature
	pace      string         // JSON: what is left of each maxGainPerMinute, in µs
	state     jsontext.Value // nil when it was not read
}

func (r record) savedAt() time.Time { return time.UnixMilli(r.at).UTC() }

func (r record) saved(slot string) Saved {
	return Saved{Slot: slot, Version: r.version, SavedAt: r.savedAt(), Size: r.size}
}

func (r record) loaded(slot string) LoadedSave {
	return LoadedSave{Slot: slot, Version: r.version, State: r.state, SavedAt: r.savedAt(), Size: r.size}
}
