package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// DeadLetter is the result of a room that its consumer failed to apply and that waits for staff.
type DeadLetter struct {
	RoomID   string    `json:"roomId"`
	GameID   int64     `json:"gameId"`
	Consumer string    `json:"feeds"`   // as in Ended
	EndedAt  time.Time `json:"endedAt"` // moments before it became a dead letter; zero when its entry cannot be read
	Problem  string    `json:"problem"` // the error of the consumer
}

// DeadLetters returns the dead letters of all games, oldest first. Only the operator may call it.
// It returns forbidden, store_unavailable.
func (s *Service) DeadLetters(ctx context.Context, caller principal.Caller) ([]DeadLetter, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	return s.store.listDeadLetters(ctx)
}

// RetryDeadLetter gives the dead letter of a room to its consumer again, and deletes it once it is
// applied. A consumer applies a room once, so a second try at the same time does no harm. Only the
// operator may call it.
//
// It returns forbidden, invalid_request, room_not_found when the room has no dead letter,
// store_unavailable, and the error of the consumer: then the dead letter stays.
func (s *Service) RetryDeadLetter(ctx context.Context, caller principal.Caller, roomID string) (DeadLetter, error) {
	if caller.Role != principal.Operator {
		return DeadLetter{}, apierror.Forbidden
	}
	at, err := s.store.locate(roomID)
	if err != nil {
		return DeadLetter{}, err
	}
	return s.store.retryDeadLetter(ctx, at)
}
