package logs

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

const (
	releaseInterval = time.Minute // between two lines of StoreErrors
	maxHeld         = 256         // lines; the others are counted
)

// StoreErrors holds back the lines about a failed call to the store. Its owner knows whether the
// store is down and releases or drops them. A nil StoreErrors does nothing. It is safe for
// concurrent use.
type StoreErrors struct {
	next slog.Handler

	mu         sync.Mutex
	owned      bool
	held       []heldLine // oldest first
	more       int        // lines beyond maxHeld
	releasedAt time.Time
}

type heldLine struct {
	at      time.Time
	message string
	err     error
}

// NewStoreErrors returns a handler that writes to next, and its StoreErrors. The handler holds back
// no line before Own is called.
func NewStoreErrors(next slog.Handler) (slog.Handler, *StoreErrors) {
	s := &StoreErrors{next: next}
	return holdingHandler{next, s}, s
}

// Own is called when somebody will decide about held lines from now on. The function that it
// returns must be called when nobody does any more.
func (s *StoreErrors) Own() (disown func()) {
	if s == nil {
		return func() {}
	}
	s.setOwned(true)
	return func() {
		s.Release(time.Now())
		s.setOwned(false)
	}
}

func (s *StoreErrors) setOwned(owned bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = owned
}

// Discard drops the held lines: the outage that they are about has its own lines.
func (s *StoreErrors) Discard() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.more = nil, 0
}

// Release writes one line that sums up all lines held back before an instant. The caller knows that
// the store served at that instant. Release keeps the lines if it wrote such a sum less than a
// minute ago.
func (s *StoreErrors) Release(before time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.held) && s.held[n].at.Before(before) {
		n++
	}
	if n == 0 || before.Sub(s.releasedAt) < releaseInterval {
		return
	}
	first := s.held[0]
	line := slog.NewRecord(time.Now(), slog.LevelWarn, "calls failed although the store serves", 0)
	line.AddAttrs(slog.Int("lines", n+s.more), slog.Time("since", first.at), slog.String("first", first.message),
		slog.Any("error", first.err))
	s.held, s.more, s.releasedAt = slices.Clone(s.held[n:]), 0, before
	if ctx := context.Background(); s.next.Enabled(ctx, line.Level) {
		_ = s.next.Handle(ctx, line)
	}
}

// hold keeps a line. It returns false when nobody will decide about it.
func (s *StoreErrors) hold(line heldLine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.owned:
		return false
	case len(s.held) < maxHeld:
		s.held = append(s.held, line)
	default:
		s.more++
	}
	return true
}

// holdingHandler is a handler that gives some lines to a StoreErrors.
type holdingHandler struct {
	slog.Handler
	errors *StoreErrors
}

// Handle writes a held line at once too, at the level debug.
func (h holdingHandler) Handle(ctx context.Context, line slog.Record) error {
	if err := storeErrorOf(line); err != nil && h.errors.hold(heldLine{line.Time, line.Message, err}) {
		if line.Level = slog.LevelDebug; !h.Enabled(ctx, line.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, line)
}

func (h holdingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return holdingHandler{h.Handler.WithAttrs(attrs), h.errors}
}

func (h holdingHandler) WithGroup(name string) slog.Handler {
	return holdingHandler{h.Handler.WithGroup(name), h.errors}
}

// storeErrorOf returns the store error of a line, or nil if the line is about anything else as
// well.
func storeErrorOf(line slog.Record) (found error) {
	line.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && isOfStore(err) {
			found = err
		}
		return found == nil
	})
	return found
}

// isOfStore reports whether the store caused the whole error. One of several joined errors is not
// enough.
func isOfStore(err error) bool {
	if apiErr, ok := err.(*apierror.Error); ok { //nolint:errorlint // its own tree is walked here
		return apiErr.Is(apierror.StoreUnavailable) || apiErr.Is(apierror.OutcomeUnknown)
	}
	switch wrapped := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return isOfStore(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		list := wrapped.Unwrap()
		// redisdb wraps the code together with its cause; errors.Join has several of the first kind.
		if len(list) > 0 && isCode(list[0]) {
			return isOfStore(list[0])
		}
		return len(list) > 0 && !slices.ContainsFunc(list, func(e error) bool { return !isOfStore(e) })
	default:
		return false
	}
}

func isCode(err error) bool {
	_, ok := err.(*apierror.Error) //nolint:errorlint // not what it wraps
	return ok
}
