package redisdb

import (
	"fmt"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/scripts"
)

// Reply is what a script returned: its status and the values after it.
type Reply struct {
	Status scripts.Status
	Values []string
}

// Err returns nil when the status is ok, and the error with that code otherwise. Stale, replay and
// unknown statuses are internal errors: a caller that expects them looks at Status first.
func (r Reply) Err(s *scripts.Script) error {
	if r.Status == scripts.OK {
		return nil
	}
	if e, ok := apierror.Lookup(r.Status); ok {
		return e
	}
	return fmt.Errorf("run %s: unexpected status %q", s.Name, r.Status)
}
