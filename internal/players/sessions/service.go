package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// PollInterval is the time between two reads of the sessions that other nodes have ended.
const PollInterval = time.Second

const pollTimeout = 5 * time.Second

// Service knows the sessions that have ended. It is safe for concurrent use.
type Service struct {
	store store

	pollMu   sync.Mutex // one read at a time, in order
	position string     // of the last entry that was read

	mu       sync.RWMutex
	accepted int64 // last epoch of the store that an operator accepted
	loaded   bool  // everything up to position is in ends
	ends     map[subject]end
	prunedAt time.Time                       // when ends was last rid of what concerns no token
	watchers map[int64]map[*watcher]struct{} // by user id
}

// watcher waits for the end of a session.
type watcher struct {
	session Session
	onEnd   func(code int)
}

// New returns a service on a store. It reads nothing until Run or the first check.
func New(db *redisdb.DB) *Service {
	return &Service{
		store: store{db}, position: "0", ends: map[subject]end{}, watchers: map[int64]map[*watcher]struct{}{},
	}
}

// Run reads the ends of other nodes each second until ctx ends. An outage is retried: the next read
// goes on from the position that was reached.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(PollInterval)
	defer tick.Stop()
	for {
		_ = s.Poll(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Poll reads what was ended since the last call. It returns store_unavailable.
func (s *Service) Poll(ctx context.Context) error {
	s.pollMu.Lock()
	defer s.pollMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	for {
		page, position, err := s.store.readAfter(ctx, s.position)
		if err != nil {
			return err
		}
		s.apply(page)
		s.position = position
		if len(page) < pageEntries {
			break
		}
	}
	s.mu.Lock()
	s.loaded = true
	s.mu.Unlock()
	return nil
}

// EndFamily ends the session of one family of refresh tokens. Repeating it changes nothing.
func (s *Service) EndFamily(ctx context.Context, user int64, family string) error {
	return s.end(ctx, end{subject: subject{familySubject, user, family}, code: CloseEnded})
}

// EndUser ends the sessions that a player began before a time of the store's clock. The zero time
// ends all, including later ones; it is for a deleted player.
func (s *Service) EndUser(ctx context.Context, user int64, beganBy time.Time, code int) error {
	return s.end(ctx, end{subject: subject{userSubject, user, ""}, beganBy: beganBy, code: code})
}

// Suspend ends every session of a player, old or new, until a time; the zero time means forever.
// Nodes remember a suspension for a day, which is the longest life of a token, so callers must not
// issue tokens to a suspended player.
func (s *Service) Suspend(ctx context.Context, user int64, until time.Time) error {
	return s.end(ctx, end{subject: subject{suspensionSubject, user, ""}, until: until, code: CloseForbidden})
}

// Unsuspend lifts a suspension: the sessions go on.
func (s *Service) Unsuspend(ctx context.Context, user int64) error {
	return s.Suspend(ctx, user, time.UnixMilli(1))
}

// Suspended reports whether a player is suspended, and until when; zero for no end.
func (s *Service) Suspended(user int64) (until time.Time, suspended bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.ends[subject{suspensionSubject, user, ""}]
	return e.until, ok && e.holds()
}

// EndIssuer ends the sessions for which an outside issuer vouched in a game until now.
func (s *Service) EndIssuer(ctx context.Context, game int64, issuer string) error {
	return s.end(ctx, end{subject: subject{issuerSubject, game, issuer}, beganBy: time.Now(), code: CloseEnded})
}

// EndServerKey ends the sessions that a server key made, later ones too. The key must be revoked.
func (s *Service) EndServerKey(ctx context.Context, game int64, keyID string) error {
	return s.end(ctx, end{subject: subject{serverKeySubject, game, keyID}, code: CloseEnded})
}

func (s *Service) end(ctx context.Context, e end) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	s.mu.RLock()
	known, ok := s.ends[e.subject]
	s.mu.RUnlock()
	if ok && known == (end{e.subject, e.beganBy, e.code, e.until, known.recorded}) && e.subject.kind != suspensionSubject {
		return nil
	}
	e.recorded = time.Now()
	if err := s.store.add(ctx, e, e.recorded); err != nil {
		return err
	}
	s.apply([]end{e})
	return nil
}

// apply remembers ends, forgets those that concern no token any more, and tells the watchers.
func (s *Service) apply(list []end) {
	if len(list) == 0 {
		return
	}
	var told []func()
	s.mu.Lock()
	for _, e := range list {
		s.ends[e.subject] = e.orWider(s.ends[e.subject])
	}
	s.pruneLocked(list[len(list)-1].recorded)
	for _, e := range list {
		if e.subject.kind == suspensionSubject {
			e = s.ends[e.subject] // it may have been lifted meanwhile
		}
		told = append(told, s.takeWatchersLocked(e)...)
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

const pruneInterval = time.Minute

// pruneLocked forgets the ends that are too old to concern any token, now and then.
func (s *Service) pruneLocked(now time.Time) {
	if now.Sub(s.prunedAt) < pruneInterval {
		return
	}
	s.prunedAt = now
	for what, e := range s.ends {
		if now.Sub(e.recorded) > retention {
			delete(s.ends, what)
		}
	}
}

// orWider returns whichever of two ends of one subject ends more sessions, the newer one of equals.
func (e end) orWider(known end) end {
	if known.subject == (subject{}) || e.beganBy.IsZero() || e.subject.kind == suspensionSubject {
		return e
	}
	if known.beganBy.IsZero() || known.beganBy.After(e.beganBy) {
		known.recorded = e.recorded
		return known
	}
	return e
}

// takeWatchersLocked removes the watchers of the sessions that an end concerns, and returns a call
// for each.
func (s *Service) takeWatchersLocked(e end) (calls []func()) {
	take := func(user int64) {
		for w := range s.watchers[user] {
			for _, what := range w.session.subjects() {
				if what == e.subject && e.concerns(w.session) {
					s.removeLocked(w)
					calls = append(calls, func() { w.onEnd(e.code) })
					break
				}
			}
		}
	}
	switch e.subject.kind {
	case familySubject, userSubject, suspensionSubject:
		take(e.subject.number)
		return calls
	}
	for user := range s.watchers {
		take(user)
	}
	return calls
}

// SetAcceptedEpoch ends the sessions of access tokens that were made before an operator accepted
// the store as it is, in this epoch. Their players can refresh them if the store knows them.
func (s *Service) SetAcceptedEpoch(epoch int64) {
	var told []func()
	s.mu.Lock()
	s.accepted = max(s.accepted, epoch)
	for _, watchers := range s.watchers {
		for w := range watchers {
			if code, ended := s.endedLocked(w.session); ended {
				s.removeLocked(w)
				told = append(told, func() { w.onEnd(code) })
			}
		}
	}
	s.mu.Unlock()
	for _, tell := range told {
		tell()
	}
}

// AcceptedEpoch returns the last epoch of the store that an operator accepted, as far as this node
// knows, 0 for none.
func (s *Service) AcceptedEpoch() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.accepted
}

func (s *Service) removeLocked(w *watcher) {
	delete(s.watchers[w.session.UserID], w)
	if len(s.watchers[w.session.UserID]) == 0 {
		delete(s.watchers, w.session.UserID)
	}
}

// load reads all ends once. Until then nothing is known about any session.
func (s *Service) load(ctx context.Context) error {
	s.mu.RLock()
	loaded := s.loaded
	s.mu.RUnlock()
	if loaded {
		return nil
	}
	return s.Poll(ctx)
}

// Ended reports whether a session has ended, and the close code of its sockets. It waits for the
// store only in a node that has never read it. It returns store_unavailable.
func (s *Service) Ended(ctx context.Context, session Session) (code int, ended bool, err error) {
	if err := s.load(ctx); err != nil {
		return 0, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	code, ended = s.endedLocked(session)
	return code, ended, nil
}

func (s *Service) endedLocked(session Session) (code int, ended bool) {
	if session.AcceptedEpoch < s.accepted {
		return CloseEnded, true
	}
	if len(s.ends) == 0 {
		return 0, false
	}
	for _, what := range session.subjects() {
		if e, ok := s.ends[what]; ok && e.concerns(session) && e.code > code {
			code, ended = e.code, true
		}
	}
	return code, ended
}

// Watch calls onEnd once when a session ends, or at once if it has ended already. onEnd must not
// block. The returned function ends the watch; after it, onEnd may still be called by an end under
// way.
func (s *Service) Watch(session Session, onEnd func(code int)) (stop func()) {
	w := &watcher{session, onEnd}
	s.mu.Lock()
	code, ended := s.endedLocked(session)
	if !ended {
		if s.watchers[session.UserID] == nil {
			s.watchers[session.UserID] = map[*watcher]struct{}{}
		}
		s.watchers[session.UserID][w] = struct{}{}
	}
	s.mu.Unlock()
	if ended {
		onEnd(code)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removeLocked(w)
	}
}
