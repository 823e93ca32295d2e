package rooms

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
)

// ParkedRoom is an ended room that its consumer refused for good. It waits for staff.
type ParkedRoom struct {
	RoomID  string    `json:"roomId"`
	GameID  int64     `json:"gameId"`
	Feeds   string    `json:"feeds"`   // its consumer, as in Ended
	EndedAt time.Time `json:"endedAt"` // moments before it was parked; zero when Problem says that it cannot be read
	Problem string    `json:"problem"` // why it was refused
}

// Parked returns the rooms of all games that are parked, the one that ended first in front. The
// operator may. It returns forbidden, store_unavailable.
func (s *Service) Parked(ctx context.Context, caller principal.Caller) ([]ParkedRoom, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	return s.store.listParked(ctx)
}

// RetryParked gives a parked room to its consumer again, and forgets it when that has applied it. A
// consumer applies a room once, so a second try at the same time does no harm. The operator may.
//
// It returns forbidden, invalid_request, room_not_found when the room is not parked,
// store_unavailable, and what the consumer returns: then the room stays parked.
func (s *Service) RetryParked(ctx context.Context, caller principal.Caller, roomID string) (ParkedRoom, error) {
	if caller.Role != principal.Operator {
		return ParkedRoom{}, apierror.Forbidden
	}
	at, err := s.store.locate(roomID)
	if err != nil {
		return ParkedRoom{}, err
	}
	return s.store.retryParked(ctx, at)
}
