package games

import (
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// StateWriter is which players may write a name of a room's shared state. The game's server may
// write every name.
type StateWriter string

// The writers.
const (
	WriterHost  StateWriter = "host"  // the host of the room
	WriterOwner StateWriter = "owner" // the player whose user id follows the prefix
	WriterAll   StateWriter = "all"   // every player with an active seat
)

// StateKeys maps prefixes of names to who may write them. "" is a prefix of every name.
type StateKeys map[string]StateWriter

// TurnTimeout is the effect of the end of a turn's time.
type TurnTimeout string

// The outcomes. In both cases the next active player gets the turn.
const (
	TurnSkips    TurnTimeout = "skip"
	TurnForfeits TurnTimeout = "forfeit" // the player's seat is forfeited, as by a leave
)

// Bounds of StateKeys.
const (
	maxStateKeys      = 32
	maxStateNameBytes = 64
)

// WriterOf returns the writer for the longest prefix of a name, and the rest of the name. The
// writer is "" when no prefix matches.
func (k StateKeys) WriterOf(name string) (writer StateWriter, rest string) {
	longest := -1
	for prefix, w := range k {
		if len(prefix) > longest && strings.HasPrefix(name, prefix) {
			longest, writer, rest = len(prefix), w, name[len(prefix):]
		}
	}
	return writer, rest
}

// IsStateName reports whether a text can be a name in a room's shared state: 1 to 64 letters,
// digits, ".", "_" and "-".
func IsStateName(text string) bool { return text != "" && isStatePrefix(text) }

func isStatePrefix(text string) bool {
	return len(text) <= maxStateNameBytes && !strings.ContainsFunc(text, func(r rune) bool {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !isLetter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

func (k StateKeys) check(errs *apierror.FieldErrors) {
	if len(k) > maxStateKeys {
		errs.Add("settings.stateKeys", "range", fmt.Sprintf("must be at most %d", maxStateKeys))
		return
	}
	for prefix, writer := range k {
		switch writer {
		case WriterHost, WriterOwner, WriterAll:
		default:
			errs.Add("settings.stateKeys", "unknown", "a value must be host, owner or all")
		}
		if !isStatePrefix(prefix) {
			errs.Add("settings.stateKeys", "format",
				`a prefix must be at most 64 letters, digits, ".", "_" or "-"`)
		}
	}
}
