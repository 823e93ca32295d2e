package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/secret"
)

// This file signs the operator in to the console. A link is valid once, for a minute. It becomes a
// session, which a browser keeps in a cookie. A session stands for the operator's key that made the
// link: it is over when that key leaves the setting admin-key.

const (
	// ConsoleLinkTTL is the lifetime of a link.
	ConsoleLinkTTL = time.Minute
	// ConsoleSessionTTL is the lifetime of a session, however much it is used.
	ConsoleSessionTTL = 8 * time.Hour
	// maxConsoleSessions bounds the open sessions; the oldest makes room for a new one.
	maxConsoleSessions = 100
)

var errConsoleSession = apierror.Unauthenticated.WithReason("sign in to the console by a link of parlor console")

// ConsoleLink is a one-time link to the console.
type ConsoleLink struct {
	Secret    string
	ExpiresIn time.Duration
}

// IssueConsoleLink makes a link for the operator, valid for a time, 0 for ConsoleLinkTTL. It
// returns forbidden to everybody else.
func (s *Service) IssueConsoleLink(
	ctx context.Context, caller principal.Caller, ttl time.Duration,
) (ConsoleLink, error) {
	digests := s.keys.Load().adminDigests
	if caller.Role != principal.Operator || caller.KeyID < 1 || caller.KeyID > len(digests) {
		return ConsoleLink{}, apierror.Forbidden
	}
	link := ConsoleLink{Secret: secret.New(), ExpiresIn: cmp.Or(ttl, ConsoleLinkTTL)}
	key := adminKeyFingerprint(digests[caller.KeyID-1])
	return link, s.store.saveConsoleLink(ctx, secret.Digest(link.Secret), key, link.ExpiresIn)
}

// adminKeyFingerprint identifies an operator's key regardless of its place in the settings. It is a
// digest of the key's digest, so the store never has the value that a bearer token is compared
// with.
func adminKeyFingerprint(digest [sha256.Size]byte) string {
	sum := sha256.Sum256(append([]byte("console\x00"), digest[:]...))
	return hex.EncodeToString(sum[:16])
}

// consoleCaller returns the operator with the key of a fingerprint.
func (s *Service) consoleCaller(fingerprint string) (principal.Caller, bool) {
	for i, digest := range s.keys.Load().adminDigests {
		if adminKeyFingerprint(digest) == fingerprint {
			return principal.Caller{Role: principal.Operator, KeyID: i + 1}, true
		}
	}
	return principal.Caller{}, false
}

// consoleSession is the stored record of a session.
type consoleSession struct {
	digest      string // of its secret
	startedAt   time.Time
	expiresAt   time.Time
	fingerprint string // of the operator's key
}

// OpenConsoleSession exchanges the secret of a link for a session, once, and returns the session's
// secret. It has no Caller: the link is what entitles. When the reply is lost, so is the link: the
// operator asks for another. It returns unauthenticated.
func (s *Service) OpenConsoleSession(ctx context.Context, linkSecret string) (string, Authentication, error) {
	if linkSecret == "" || len(linkSecret) > maxRefreshOrTicketBytes {
		return "", Authentication{}, apierror.Unauthenticated.WithReason("the link is not complete")
	}
	fingerprint, err := s.store.consumeConsoleLink(ctx, secret.Digest(linkSecret))
	if err != nil {
		return "", Authentication{}, err
	}
	caller, known := s.consoleCaller(fingerprint)
	if !known {
		return "", Authentication{}, errConsoleSession
	}
	sessionSecret, now := secret.New(), s.now()
	session := consoleSession{secret.Digest(sessionSecret), now, now.Add(ConsoleSessionTTL), fingerprint}
	if err := s.addConsoleSession(ctx, session); err != nil {
		return "", Authentication{}, err
	}
	return sessionSecret, Authentication{Caller: caller, ExpiresAt: session.expiresAt}, nil
}

// addConsoleSession stores a session, and removes those that are over and the oldest beyond
// maxConsoleSessions.
func (s *Service) addConsoleSession(ctx context.Context, session consoleSession) error {
	known, err := s.store.listConsoleSessions(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(known, func(a, b consoleSession) int { return b.startedAt.Compare(a.startedAt) }) // newest first
	var dropped []string
	for i, old := range known {
		if i >= maxConsoleSessions-1 || !s.now().Before(old.expiresAt) {
			dropped = append(dropped, old.digest)
		}
	}
	return s.store.saveConsoleSession(ctx, session, ConsoleSessionTTL, dropped)
}

// AuthenticateConsole returns the operator whose session has a secret. It asks the store each time,
// so that a closed session ends on every node at once. It returns unauthenticated.
func (s *Service) AuthenticateConsole(ctx context.Context, sessionSecret string) (Authentication, error) {
	if sessionSecret == "" || len(sessionSecret) > maxRefreshOrTicketBytes {
		return Authentication{}, errConsoleSession
	}
	session, found, err := s.store.readConsoleSession(ctx, secret.Digest(sessionSecret))
	if err != nil {
		return Authentication{}, err
	}
	caller, known := s.consoleCaller(session.fingerprint)
	if !found || !known || !s.now().Before(session.expiresAt) {
		return Authentication{}, errConsoleSession
	}
	return Authentication{Caller: caller, ExpiresAt: session.expiresAt}, nil
}

// CloseConsoleSession ends the session with a secret. It has no Caller: the secret is what
// entitles. Repeating it changes nothing.
func (s *Service) CloseConsoleSession(ctx context.Context, sessionSecret string) error {
	return s.store.deleteConsoleSession(ctx, secret.Digest(sessionSecret))
}

// CloseConsoleSessions ends every console session, and is for the operator. Links that were not
// used yet stay valid for their minute. It returns forbidden.
func (s *Service) CloseConsoleSessions(ctx context.Context, caller principal.Caller) error {
	if caller.Role != principal.Operator {
		return apierror.Forbidden
	}
	return s.store.deleteConsoleSessions(ctx)
}

// PlayerSession is a session of a player that can still be refreshed. It has no id: what names a
// session is a part of its refresh tokens.
type PlayerSession struct {
	StartedAt   time.Time  `json:"startedAt"`
	RefreshedAt *time.Time `json:"refreshedAt"` // null: it never was
	ExpiresAt   time.Time  `json:"expiresAt"`   // unless it is refreshed before
	ServerKeyID *string    `json:"serverKeyId"` // the server key that made it; null: the player signed in
}

// ListPlayerSessions returns the sessions of a player, at most 100, the one that expires last
// first. Players of outside issuers have none here. It is for the operator. It returns forbidden.
func (s *Service) ListPlayerSessions(
	ctx context.Context, caller principal.Caller, user int64,
) ([]PlayerSession, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	return s.store.listSessions(ctx, user)
}
