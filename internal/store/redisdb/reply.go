package redisdb

import (
	"errors"
	"fmt"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/scripts"
)

// ErrStale means that the store is not as the caller read it, so that nothing was changed.
var ErrStale = errors.New("the store has changed since it was read")

// RetryStale calls try until it returns something other than ErrStale, and returns that. It returns
// version_conflict when every attempt was stale.
func RetryStale[T any](attempts int, try func() (T, error)) (result T, err error) {
	for range attempts {
		if result, err = try(); !errors.Is(err, ErrStale) {
			return result, err
		}
	}
	return result, apierror.VersionConflict
}

// Reply is what a script returned: its status and the values after it.
type Reply struct {
	Status scripts.Status
	Values []string
}

// Err returns nil when the status is ok, ErrStale when it is stale, and otherwise the error with
// that code. Replay and unknown statuses are internal errors: a caller that expects them looks at
// Status first.
func (r Reply) Err(s *scripts.Script) error {
	switch r.Status {
	case scripts.OK:
		return nil
	case scripts.Stale:
		return fmt.Errorf("run %s: %w", s.Name, ErrStale)
	}
	if e, ok := apierror.Lookup(r.Status); ok {
		return e
	}
	return fmt.Errorf("run %s: unexpected status %q", s.Name, r.Status)
}

// IsFromReplacedLeader reports whether a script has changed nothing because the leader that
// called it has a successor.
func (r Reply) IsFromReplacedLeader() bool {
	return r.Status == scripts.Stale && len(r.Values) == 1 && r.Values[0] == "fence"
}
