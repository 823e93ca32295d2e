package rooms

import (
	"context"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
)

// maxTurn bounds a turn. Longer than a match it is of no use.
const maxTurn = 24 * time.Hour

// TurnInput gives a player the turn.
type TurnInput struct {
	RoomID  string `json:"roomId" required:"true"`
	UserID  *int64 `json:"userId"`  // nil: nobody has the turn, and no clock runs
	Seconds *int64 `json:"seconds"` // 1 to 86,400, from now on; required with UserID, and nil without
}

// SetTurn gives an active player of a room that has started the turn, for some seconds from now on
// by the store's clock; or it ends the turns. Only the host and the game's server may call it. The
// previous player loses the turn.
//
// At the deadline the next active player in seating order gets the turn with the same seconds, and
// so on. When nothing else has happened in the room for three times as many turns as it has active
// seats, nobody has the turn. The rooms of a host have at most one such turn a second together:
// with several rooms a turn that follows another lasts at least as many seconds as there are rooms.
//
// In a game whose setting turnTimeout is "forfeit", the player's seat is forfeited at the deadline,
// as by a leave. In a room with stakes only turns that the game's server sets end so, and only the
// server replaces them: else a host could win by giving the others a second. In a match with stakes
// whose players report the result no turn ends so. The next player gets the turn as well when the
// one who has it leaves.
//
// It returns room_not_found, room_closed, not_host, not_started, room_disputed, not_participant (of
// the player), forbidden (to a host, while a turn of the server runs that forfeits in a room with
// stakes), and invalid_request.
func (s *Service) SetTurn(
	ctx context.Context, caller principal.Caller, in TurnInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.hostCommand(caller, in.RoomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if err := in.check(); err != nil {
		return ChangeResult{}, err
	}
	timeout := games.TurnSkips
	if !c.shard.Paid() || caller.Role == principal.Server {
		game, err := s.games.Find(ctx, c.gameID)
		if err != nil {
			return ChangeResult{}, err
		}
		timeout = game.Settings.TurnTimeout
	}
	r, err := s.store.setTurn(ctx, c, in, timeout)
	return s.toChangeResult(ctx, caller, r, err)
}

func (in *TurnInput) check() error {
	var fieldErrors apierror.FieldErrors
	switch {
	case in.UserID == nil && in.Seconds != nil:
		fieldErrors.Add("seconds", "forbidden", "must be absent when nobody gets the turn")
	case in.UserID == nil:
	case in.Seconds == nil:
		fieldErrors.Add("seconds", "required", "is required")
	case *in.Seconds < 1 || *in.Seconds > int64(maxTurn/time.Second):
		fieldErrors.Add("seconds", "range", fmt.Sprintf("must be 1 to %d", int64(maxTurn/time.Second)))
	}
	if in.UserID != nil && *in.UserID < 1 {
		fieldErrors.Add("userId", "range", "must be a player, or null")
	}
	return fieldErrors.Err()
}
