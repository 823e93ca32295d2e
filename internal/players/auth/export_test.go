package auth

import (
	"context"
	"net"
	"time"

	"github.com/parlor-games/parlor/internal/players/users"
)

// SetClock replaces the clock of the service, for tests of what happens later.
func (s *Service) SetClock(now func() time.Time) { s.now = now }

// VerifyAccessToken verifies a token as one of ours, whatever issuer it claims.
func (s *Service) VerifyAccessToken(bearer string) (Authentication, error) {
	return s.keys.Load().signer.verify(bearer, s.now())
}

// SetKeySetTimeout sets how long a fetch of a key set may take, and a failed one takes.
func (s *Service) SetKeySetTimeout(timeout time.Duration) { s.keySets.fetcher.timeout = timeout }

// FetchKeySet fetches a key set by a dialer.
func FetchKeySet(ctx context.Context, d *net.Dialer, allowLoopback bool, timeout time.Duration, url string) error {
	f := newKeySetFetcher(d, allowLoopback)
	f.timeout = timeout
	_, err := f.fetch(ctx, url)
	return err
}

// SignInDevice signs a device in, whatever its secret.
func (s *Service) SignInDevice(ctx context.Context, gameID int64, deviceSecret string) (users.User, error) {
	user, _, err := s.signIn(ctx, gameID, users.KindDevice, deviceSecret, users.ProfileInput{})
	return user, err
}

// VerifyWatched verifies the watched tokens of outside issuers that are due.
func (s *Service) VerifyWatched(ctx context.Context) { s.verifyWatched(ctx) }
