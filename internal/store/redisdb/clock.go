package redisdb

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/parlor-games/parlor/scripts"
)

// ClockReading is the time of a master, and when the node read it.
type ClockReading = storeclock.Reading

// ErrSkewed means that nothing was ended because the clocks of the store and of this node differ.
// The node's monitor reports that.
var ErrSkewed = errors.New("the clocks of the store and of this node differ")

// ReadClock returns the store's time, for timestamps. To decide that something has ended, call
// ReadClockToEnd.
func (db *DB) ReadClock(ctx context.Context) (time.Time, error) {
	now, err := db.Client.Time(ctx).Result()
	return now.UTC(), WrapError("read the store's clock", err)
}

// ReadClockToEnd returns the store's time, for decisions that a deadline has passed. It returns
// ErrSkewed when the node's clock differs from it.
func (db *DB) ReadClockToEnd(ctx context.Context) (time.Time, error) {
	if !db.Clock.AllowsEnding() {
		return time.Time{}, ErrSkewed
	}
	now, err := db.ReadClock(ctx)
	if err == nil && !db.Clock.Agrees(now) {
		db.Clock.ReportSkew()
		err = ErrSkewed
	}
	return now, err
}

// skewedReply follows stale when a script changed nothing because of the clocks.
const skewedReply = "clock"

// IsSkewed reports whether a script changed nothing because the store's time was not the one of the
// node that called it.
func (r Reply) IsSkewed() bool {
	return r.Status == scripts.Stale && slices.Equal(r.Values, []string{skewedReply})
}

// noteSkew makes the node end nothing until it has looked at the clocks again.
func (db *DB) noteSkew(r Reply) {
	if r.IsSkewed() {
		db.Clock.ReportSkew()
	}
}
