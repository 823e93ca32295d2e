package auth

import "time"

// SetClock replaces the clock of the service, for tests of what happens later.
func (s *Service) SetClock(now func() time.Time) { s.now = now }

// VerifyAccessToken verifies a token as one of ours, whatever issuer it claims.
func (s *Service) VerifyAccessToken(bearer string) (Authentication, error) {
	return s.signer.verify(bearer, s.now())
}
