package redisdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// The layouts of the store, which package keys and the packed texts of package scripts describe,
// that this build reads. It writes the one that the store has: `parlor upgrade finish` raises that
// when every node reads the next. A change that a build of the layout before would misread, or
// destroy, makes the next number: see CONTRIBUTING.md. Three builds side by side are never needed,
// so a release that raises newestLayout may raise oldestLayout to the number before.
//
// They are variables so that a test can link the build after this one, and for nothing else:
//
//	go build -ldflags "-X github.com/parlor-games/parlor/internal/store/redisdb.newestLayout=4"
var (
	oldestLayout = "3"
	newestLayout = "3"
)

// OldestLayout returns the oldest layout of a store that this build reads.
func OldestLayout() int { return readable.oldest }

// NewestLayout returns the newest layout of a store that this build reads, which a new store gets.
func NewestLayout() int { return readable.newest }

// lastMigratedLayout is the newest layout that package migrate reads.
const lastMigratedLayout = 2

// readable are the layouts that this build reads.
var readable = mustParseLayouts(oldestLayout, newestLayout)

type layoutRange struct{ oldest, newest int }

func mustParseLayouts(oldest, newest string) layoutRange {
	from, oldErr := strconv.Atoi(oldest)
	to, newErr := strconv.Atoi(newest)
	if err := errors.Join(oldErr, newErr); err != nil || from < 1 || to < from {
		panic("redisdb: this build was linked with the layouts " + oldest + " to " + newest)
	}
	return layoutRange{from, to}
}

// String returns "layout 3", or "layouts 3 to 4".
func (r layoutRange) String() string {
	if r.oldest == r.newest {
		return fmt.Sprintf("layout %d", r.oldest)
	}
	return fmt.Sprintf("layouts %d to %d", r.oldest, r.newest)
}

// problem returns what is wrong with a store that has a layout, and what to do; "" for nothing.
func (r layoutRange) problem(layout int) string {
	switch {
	case layout > r.newest:
		return fmt.Sprintf("the store has layout %d and this release reads %v; "+
			"run the release that raised it, or a newer one", layout, r)
	case layout <= lastMigratedLayout && layout < r.oldest:
		return fmt.Sprintf("the store has layout %d and this release reads %v; "+
			"stop every node, make a backup and run: parlor upgrade migrate", layout, r)
	case layout < r.oldest:
		return fmt.Sprintf("the store has layout %d and this release reads %v; run the release between them on it "+
			"and `parlor upgrade finish` there", layout, r)
	}
	return ""
}

// Layout returns the layout in which this process writes: that of the store when it was last read,
// or the newest one before the first read.
func (db *DB) Layout() int {
	if n := db.layout.Load(); n != 0 {
		return int(n)
	}
	return readable.newest
}

// LayoutProblem returns why this build does not read the store any more, "" while it does.
func (db *DB) LayoutProblem() string {
	if unreadable := db.unreadable.Load(); unreadable != nil {
		return *unreadable
	}
	return readable.problem(db.Layout())
}

// ReadLayout reads the layout of the store, which another node or an operator may have raised. An
// empty store has none, and keeps the last. A RequirementError says what to do about a layout that
// this build does not read; from then on no script that writes is run.
func (db *DB) ReadLayout(ctx context.Context) error {
	text, err := db.Client.HGet(ctx, keys.Meta(), keys.MetaLayoutField).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil
	case err != nil:
		return WrapError("read the layout of the store", err)
	}
	return db.setLayout(text)
}

// setLayout sets the layout that the store has. It returns a RequirementError for one that this
// build does not read.
func (db *DB) setLayout(text string) error {
	number, err := parseLayout(text)
	if err != nil {
		problem := err.Error()
		db.unreadable.Store(&problem)
		return err
	}
	db.layout.Store(int32(number))
	db.unreadable.Store(nil)
	if problem := db.LayoutProblem(); problem != "" {
		return RequirementError{problem}
	}
	return nil
}

// parseLayout returns the number of a layout, or a RequirementError. While package migrate works, a
// store has the layouts of both sides, "1>3".
func parseLayout(text string) (int, error) {
	if from, _, isMigrating := strings.Cut(text, ">"); isMigrating {
		return 0, RequirementError{fmt.Sprintf("a migration of the store from layout %s has begun; "+
			"stop every node and run again: parlor upgrade migrate", from)}
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < 1 {
		return 0, RequirementError{fmt.Sprintf("the store has the layout %q, which is no number; "+
			"is it the store of another program?", text)}
	}
	return int(number), nil
}

// allowLayout returns store_unavailable for a script that would write a layout which the store does
// not have any more.
func (db *DB) allowLayout(s *scripts.Script) error {
	if s.Writes() {
		if problem := db.LayoutProblem(); problem != "" {
			return apierror.StoreUnavailable.WithReason("%s", problem)
		}
	}
	return nil
}

// RaiseLayout raises the layout of the store if its nodes are exactly those with the given ids. It
// returns false and changes nothing if another node has reported meanwhile, or if the store has a
// layout other than from and to.
func (db *DB) RaiseLayout(ctx context.Context, from, to int, nodeIDs []string) (bool, error) {
	reply, err := db.RunScript(ctx, scripts.LayoutRaise, []string{keys.Meta(), keys.Nodes()},
		scripts.LayoutRaiseArgs{FromLayout: from, ToLayout: to}.List(Args(nodeIDs)...)...)
	if err != nil {
		return false, err
	}
	if reply.Status == scripts.Stale {
		return false, nil
	}
	if err := reply.Err(scripts.LayoutRaise); err != nil {
		return false, err
	}
	return true, db.ReadLayout(ctx)
}
