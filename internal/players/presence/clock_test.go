package presence_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/players/presence"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// Two nodes renew short leases while the store's clock jumps by an hour. The one that renews first
// finds the other's lease over and must not end it.
func TestAStoreWhoseClockIsWrongEndsNoLease(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := newFixture(t, db)
	r := f.newRoom(2)
	first, second := f.startNode(presence.Options{Lease: time.Second}), f.startNode(presence.Options{Lease: time.Second})
	first.Subscribed(r.topic, r.players[0].UserID)
	second.Subscribed(r.topic, r.players[1].UserID)
	r.wantTold("+0 +1", "+1 +0")
	told := r.told()
	clock.Move(time.Hour)
	began := time.Now()
	redistest.Eventually(t, "both nodes have renewed their leases several times", func() bool {
		return time.Since(began) > 3*time.Second
	})
	if got := r.told(); got != told {
		t.Errorf("an hour ahead: told %q; want %q", got, told)
	}
}

// The lease of a node that died while the store's clock was an hour ahead lasts for another hour by
// the right clock.
func TestThePlayersOfANodeThatDiedWhileTheClockWasAheadAreAnnounced(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := newFixture(t, db)
	r := f.newRoom(2)
	clock.Move(time.Hour)
	dead := f.startNode(presence.Options{Lease: shortLease})
	dead.open(r, 0)
	dead.open(r, 1)
	r.wantTold("+0 +1")
	dead.stop()
	clock.Move(0)
	redistest.LookAtClocks(t, db)
	f.startNode(presence.Options{Lease: shortLease})
	r.wantTold("+0 +1 -0 -1")
}
