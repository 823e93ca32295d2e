package rooms

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// The bounds of a room's shared state.
const (
	maxStateBytes     = 16 << 10 // of all names and values, as one JSON object
	maxStateNames     = 128
	maxStateNameBytes = 64
)

// SharedState is what the players of a room share, beside the room: the game's own values by name.
type SharedState struct {
	Version   int64        // from 1; each change of the state adds 1
	ValueJSON wire.RawJSON // a JSON object of at most 16 KiB
}

// Turn is whose turn it is in a room that has started.
type Turn struct {
	UserID   int64
	Deadline time.Time     // by the store's clock, to the millisecond
	Length   time.Duration // that the next player gets too when this one lets the time pass

	forfeits   bool // at the deadline the player's seat is forfeited; else the next player has the turn
	deadlineMS string
}

// StateInput is a change of a room's shared state.
type StateInput struct {
	RoomID  string                  `json:"roomId" required:"true"`
	Version int64                   `json:"version"` // of the state that the caller read; 0: there was none
	Patch   map[string]wire.RawJSON `json:"patch"`   // the values to set, by their names
	Delete  []string                `json:"delete"`  // the names to delete, also those that are not there
}

// statePatch is a valid StateInput.
type statePatch struct {
	names, values []string // that are set; values are compact JSON
	patchJSON     string   // the same as one JSON object
	deleted       []string
}

// SetState changes values of the shared state of a room that has not ended. It is a
// compare-and-set: the state must have the version that the caller read. The version of the room
// stays the same.
//
// The game's server may write every name. Players may write the names that the game's setting
// stateKeys allows: the longest of its prefixes with which a name begins decides. "host": the host
// of the room. "owner": the player whose user id follows the prefix, alone or before a "."; the
// host is no exception. "all": every player with an active seat. No prefix: the server alone.
//
// It returns room_not_found, room_closed, room_disputed, not_participant, not_host, forbidden (a
// name that the caller may not write), limit_reached (the state would have more than 16 KiB or 128
// names), version_conflict with the member current, and invalid_request with every faulty name.
func (s *Service) SetState(
	ctx context.Context, caller principal.Caller, in StateInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.hostCommand(caller, in.RoomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	patch, err := parseStatePatch(in)
	if err != nil {
		return ChangeResult{}, err
	}
	hostOnly, err := s.authorizeNames(ctx, caller, slices.Concat(patch.names, patch.deleted))
	if err != nil {
		return ChangeResult{}, err
	}
	r, err := s.store.setState(ctx, c, in.Version, patch, hostOnly)
	return s.toChangeResult(ctx, caller, r, err)
}

// parseStatePatch returns invalid_request with every faulty field.
func parseStatePatch(in StateInput) (statePatch, error) {
	var fieldErrors apierror.FieldErrors
	p := statePatch{names: slices.Sorted(maps.Keys(in.Patch)), deleted: in.Delete}
	if in.Version < 0 {
		fieldErrors.Add("version", "range", "must not be negative")
	}
	o := objectAppender{[]byte{'{'}}
	for _, name := range p.names {
		value := in.Patch[name].Clone()
		if !games.IsStateName(name) || value.Compact() != nil {
			fieldErrors.Add("patch", "format", "a name "+stateNameForm)
			break
		}
		if wire.HasInfinity(value) {
			fieldErrors.Add("patch", "range", name+" has a number that is too large for a double")
			break
		}
		p.values = append(p.values, string(value))
		o.rawMember(name, string(value))
	}
	o.closeBracket('}')
	p.patchJSON = string(o.b)
	for i, name := range p.deleted {
		field := "delete[" + strconv.Itoa(i) + "]"
		switch {
		case !games.IsStateName(name):
			fieldErrors.Add(field, "format", stateNameForm)
		case slices.Contains(p.names, name) || slices.Contains(p.deleted[:i], name):
			fieldErrors.Add(field, "duplicate", "stands in the same change twice")
		}
	}
	if len(p.names)+len(p.deleted) > maxStateNames {
		fieldErrors.Add("patch", "range", fmt.Sprintf("must change at most %d names", maxStateNames))
	}
	if len(p.names)+len(p.deleted) == 0 {
		fieldErrors.Add("patch", "required", "must have a name, or delete must")
	}
	return p, fieldErrors.Err()
}

var stateNameForm = fmt.Sprintf("must be 1 to %d letters, digits, \".\", \"_\" or \"-\"", maxStateNameBytes)

// authorizeNames returns forbidden when the caller may never write one of the names, and reports
// whether the caller must be the host to write them all.
func (s *Service) authorizeNames(
	ctx context.Context, caller principal.Caller, names []string,
) (hostOnly bool, err error) {
	if caller.Role == principal.Server {
		return false, nil
	}
	game, err := s.games.Find(ctx, caller.GameID)
	if err != nil {
		return false, err
	}
	id := strconv.FormatInt(caller.UserID, 10)
	for _, name := range names {
		writer, rest := game.Settings.StateKeys.WriterOf(name)
		owner, _, _ := strings.Cut(rest, ".")
		switch {
		case writer == games.WriterAll, writer == games.WriterOwner && owner == id:
		case writer == games.WriterHost:
			hostOnly = true
		case writer == games.WriterOwner:
			return false, apierror.Forbidden.WithReason("%q is another player's to write", name).WithMember("name", name)
		default:
			return false, apierror.Forbidden.WithReason("only the game's server may write %q", name).
				WithMember("name", name)
		}
	}
	return hostOnly, nil
}

// currentState is the member "current" of a version_conflict.
type currentState struct {
	Version   int64        `json:"version"`
	ValueJSON wire.RawJSON `json:"value"`
}

// stateConflict returns version_conflict with the state as it is now, or, for a replay, with its
// version alone: the caller may not see the room any more.
func stateConflict(r scriptResult, values *redisdb.Values) error {
	current := currentState{Version: values.NextInt(), ValueJSON: wire.RawJSON("{}")}
	if err := values.Err(); err != nil {
		return err
	}
	conflict := apierror.VersionConflict.WithReason("the state has the version %d", current.Version)
	if r.replayed || r.room == nil {
		return conflict
	}
	if shared := r.room.Shared; shared != nil {
		current = currentState{shared.Version, shared.ValueJSON}
	}
	return conflict.WithMember("current", current)
}

// clockMembers appends the shared state, the current turn and the deadline of the match. It leaves
// out those that the room does not have.
func (o *objectAppender) clockMembers(r *Room) {
	if r.Shared != nil {
		o.memberName("shared")
		o.openBracket('{')
		o.intMember("version", r.Shared.Version)
		o.rawMember("value", string(r.Shared.ValueJSON))
		o.closeBracket('}')
	}
	if r.StartedAt.IsZero() {
		o.rawMember("matchDeadline", "null")
	} else {
		o.timeMember("matchDeadline", r.StartedAt.Add(r.MatchTimeout))
	}
	if r.Status == Started && r.Turn != nil {
		o.memberName("turn")
		o.openBracket('{')
		o.intMember("userId", r.Turn.UserID)
		o.timeMember("deadline", r.Turn.Deadline)
		o.closeBracket('}')
	}
}
