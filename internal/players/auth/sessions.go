package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/sessions"
	"github.com/parlor-games/parlor/internal/players/users"
)

// This file ends sessions. A session is over on this node at once, on others within two seconds:
// its access tokens and tickets are refused, and those who watch it are called.

var (
	errSessionEnded  = apierror.Unauthenticated.WithReason("the session was ended; sign in again")
	errStoreReplaced = apierror.AccessTokenExpired.WithReason("the store was replaced since; refresh the token")
)

// checkSession returns unauthenticated for a player whose session has ended, and for a server whose
// key was revoked.
func (s *Service) checkSession(ctx context.Context, a Authentication) error {
	if a.Session == (sessions.Session{}) {
		return nil
	}
	if a.Session.AcceptedEpoch < s.sessions.AcceptedEpoch() {
		return errStoreReplaced
	}
	_, ended, err := s.sessions.Ended(ctx, a.Session)
	if err == nil && ended {
		err = errSessionEnded
		if a.Role == principal.Server {
			err = apierror.Unauthenticated
		}
		if until, suspended := s.sessions.Suspended(a.Session.UserID); suspended {
			err = suspendedError(until)
		}
	}
	return err
}

func suspendedError(until time.Time) error {
	if until.IsZero() {
		return apierror.AccountSuspended
	}
	return apierror.AccountSuspended.WithMember("until", until.UTC())
}

// checkSuspension returns account_suspended for a player who is to get a token.
func (s *Service) checkSuspension(u users.User) error {
	if suspension := u.Suspended(s.now()); suspension != nil {
		return suspendedError(suspension.Until)
	}
	return nil
}

// SuspendUser refuses every token of a player until a time, the zero time for ever, and closes the
// sockets with 4403. The suspension must be stored with the player before, so that no new token is
// given. It has no Caller, as EndUserSessions.
func (s *Service) SuspendUser(ctx context.Context, user int64, until time.Time) error {
	return s.sessions.Suspend(ctx, user, until)
}

// UnsuspendUser makes SuspendUser undone: tokens that have not expired are accepted again. It has
// no Caller, as EndUserSessions.
func (s *Service) UnsuspendUser(ctx context.Context, user int64) error {
	return s.sessions.Unsuspend(ctx, user)
}

// EndSession ends one session of a player, by its family of refresh tokens. It has no Caller,
// because Logout calls it and the token itself is the permission. Repeating it changes nothing.
func (s *Service) EndSession(ctx context.Context, user int64, family string) error {
	// Ended before it is deleted, so that a repeated call completes one that failed.
	if err := s.sessions.EndFamily(ctx, user, family); err != nil {
		return err
	}
	return s.store.deleteFamilies(ctx, user, family)
}

// EndUserSessions ends every session that a player has begun, and closes the sockets with a code,
// sessions.CloseEnded or sessions.CloseForbidden. The player may sign in again. It has no Caller,
// because the packages that call it authorize the request. It returns user_not_found.
func (s *Service) EndUserSessions(ctx context.Context, user int64, code int) error {
	beganBy, err := s.store.endUserSessions(ctx, user)
	if err != nil {
		return err
	}
	return s.sessions.EndUser(ctx, user, beganBy, code)
}

// EndDeletedUserSessions ends every session of a deleted player, including sessions that begin
// later. Like EndUserSessions it has no Caller.
func (s *Service) EndDeletedUserSessions(ctx context.Context, user int64) error {
	if err := s.store.deleteAllFamilies(ctx, user); err != nil {
		return err
	}
	return s.sessions.EndUser(ctx, user, time.Time{}, sessions.CloseEnded)
}

// EndIssuerSessions ends the sessions for which an outside issuer vouched in a game. It has no
// Caller, as EndUserSessions; the issuer must be removed from the game before.
func (s *Service) EndIssuerSessions(ctx context.Context, game int64, issuer string) error {
	return s.sessions.EndIssuer(ctx, game, issuer)
}

// EndServerKeySessions ends the sessions that a server key of a game made, and those that it makes
// until it is revoked, which must follow: then its refresh tokens are refused. It has no Caller, as
// EndUserSessions.
func (s *Service) EndServerKeySessions(ctx context.Context, game int64, keyID string) error {
	return s.sessions.EndServerKey(ctx, game, keyID)
}

// externalWatch is a watched session whose token an outside issuer made.
type externalWatch struct {
	authentication Authentication
	verifiedAt     time.Time
	end            func(code int)
}

// maxExternalCheckAge is how long a watched session may go on when its token cannot be verified
// anew, as while the store is down.
const maxExternalCheckAge = 55 * time.Minute

// WatchSession calls onEnd once with a close code when the session of a player ends or the key of a
// server is revoked, or at once if it has ended already. A session of an outside issuer also ends
// when the game no longer accepts
// the issuer or the issuer has dropped the key, and any other when its signing key is removed.
// onEnd must not block. The caller must call stop.
func (s *Service) WatchSession(a Authentication, onEnd func(code int)) (stop func()) {
	var once sync.Once
	end := func(code int) { once.Do(func() { onEnd(code) }) }
	stopWatch := s.sessions.Watch(a.Session, end)
	if a.Role == principal.Server {
		return stopWatch
	}
	if a.external == nil {
		w := &ownWatch{a.signingKeyID, end}
		s.watchedMu.Lock()
		defer s.watchedMu.Unlock()
		s.watchedOwn[w] = struct{}{}
		return func() {
			stopWatch()
			s.watchedMu.Lock()
			defer s.watchedMu.Unlock()
			delete(s.watchedOwn, w)
		}
	}
	// The token was verified at most externalCacheTTL ago; a ticket may have lasted a minute.
	w := &externalWatch{a, s.now(), end}
	s.watchedMu.Lock()
	defer s.watchedMu.Unlock()
	s.watched[w] = struct{}{}
	return func() {
		stopWatch()
		s.watchedMu.Lock()
		defer s.watchedMu.Unlock()
		delete(s.watched, w)
	}
}

// Run ends sessions on this node that were ended on others, and verifies watched tokens of outside
// issuers anew, until ctx ends. There must be at most one Run of a service.
func (s *Service) Run(ctx context.Context) error {
	var ended sync.WaitGroup
	ended.Go(func() { _ = s.sessions.Run(ctx) })
	defer ended.Wait()
	tick := time.NewTicker(min(time.Minute, s.options.ExternalCheckInterval/2))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.verifyWatched(ctx)
		}
	}
}

// verifyWatched verifies the watched tokens whose last check is ExternalCheckInterval ago.
func (s *Service) verifyWatched(ctx context.Context) {
	now := s.now()
	var due []*externalWatch
	s.watchedMu.Lock()
	for w := range s.watched {
		if now.Sub(w.verifiedAt) >= s.options.ExternalCheckInterval {
			due = append(due, w)
		}
	}
	s.watchedMu.Unlock()
	for _, w := range due {
		err := s.verifyProof(ctx, w.authentication.GameID, *w.authentication.external)
		switch {
		case err == nil:
			s.watchedMu.Lock()
			w.verifiedAt = now
			s.watchedMu.Unlock()
		case errors.Is(err, apierror.Unauthenticated), now.Sub(w.verifiedAt) >= maxExternalCheckAge:
			w.end(sessions.CloseEnded)
		}
	}
}
