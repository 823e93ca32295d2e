package tournaments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
)

// matchCall is a match whose room is open, as its players hear of it.
type matchCall struct {
	MatchID, RoomID string
	Deadline        time.Time // until which they may take their seats
	Users           []int64
}

// notifyPlayers sends user.match to the players of a match. It is called at least once after the
// room of the match is stored. A player who was notified of the match is not notified again.
func (s *store) notifyPlayers(ctx context.Context, tourID int64, m matchCall) error {
	values := fmt.Sprintf("%d|%s|%s|%d", tourID, m.MatchID, m.RoomID, m.Deadline.UnixMilli())
	var errs []error
	for _, user := range m.Users {
		reply, err := s.db.RunScript(ctx, scripts.UserMatch, []string{keys.UserEventSeq(user), keys.UserEvents(user)},
			scripts.UserMatchArgs{
				Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), EventValues: values,
			}.List()...)
		if err == nil {
			err = reply.Err(scripts.UserMatch)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
