package scripts

// Status is the first text of every script's reply: one of those below or an error code of package
// apierror.
type Status = string

// The statuses that are not error codes.
const (
	OK     Status = "ok"     // the change was made, or the very same change had been made before
	Stale  Status = "stale"  // the caller read an older version: nothing was changed, read again
	Replay Status = "replay" // the request was made before: the first reply follows
)
