package users

import "context"

// Game returns the id of the game that a player belongs to. It returns user_not_found.
func (s *Service) Game(ctx context.Context, userID int64) (int64, error) {
	u, err := s.store.load(ctx, userID)
	return u.GameID, err
}
