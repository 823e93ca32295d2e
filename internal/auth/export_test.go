package auth

import "time"

// SetClock gives the service another time, for tests of what happens later.
func (s *Service) SetClock(now func() time.Time) { s.now = now }
