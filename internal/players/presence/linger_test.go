package presence

import (
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// followed returns a service without a store that has player 1 in a room, as it is stored.
func followed(t *testing.T) (s *Service, topic string) {
	t.Helper()
	s = New(nil, Options{})
	shard := keys.FreeShard(0)
	topic = keys.RoomEvents(shard, keys.NewRoomID(shard, time.Now(), false))
	s.Subscribed(topic, 1)
	s.storeAll(t, []int64{1}, nil)
	return s, topic
}

// storeAll requires the players of the next batch, and records that they are stored.
func (s *Service) storeAll(t *testing.T, here, gone []int64) {
	t.Helper()
	var gotHere, gotGone []int64
	for _, p := range s.takeBatch() {
		gotHere, gotGone = append(gotHere, p.here...), append(gotGone, p.gone...)
		s.applyOutcome(p, map[int64]bool{1: true})
	}
	if !slices.Equal(gotHere, here) || !slices.Equal(gotGone, gone) {
		t.Fatalf("%v are stored as here and %v as gone; want %v and %v", gotHere, gotGone, here, gone)
	}
}

// expireNext lets the linger of the socket pass that was lost first.
func (s *Service) expireNext() { s.expireLingering(s.lingering[0].until) }

func TestWhoIsBackWithinTheLingerWasNeverGone(t *testing.T) {
	s, topic := followed(t)
	s.Unsubscribed(topic, 1)
	s.Subscribed(topic, 1)
	s.expireNext()
	s.storeAll(t, nil, nil)
	s.Unsubscribed(topic, 1) // the linger of the second loss begins at the second loss
	s.Subscribed(topic, 1)
	s.Unsubscribed(topic, 1)
	s.expireNext()
	s.storeAll(t, nil, nil)
	s.expireNext()
	s.storeAll(t, nil, []int64{1})
	if n := len(s.rooms); n != 0 {
		t.Errorf("%d rooms are left", n)
	}
}

func TestWhoIsBackWhileTheLossIsStoredIsStoredAgain(t *testing.T) {
	s, topic := followed(t)
	s.Unsubscribed(topic, 1)
	s.expireNext()
	batch := s.takeBatch()
	s.Subscribed(topic, 1)
	for _, p := range batch {
		s.applyOutcome(p, nil)
	}
	s.storeAll(t, []int64{1}, nil)
}

// After an outage that was longer than a lease every lease is over, and none of their nodes need
// be gone. A node ends leases only after it has renewed its own without a gap for as long as the
// others need to renew theirs.
func TestANodeEndsNoLeaseUntilItHasRenewedItsOwnForALease(t *testing.T) {
	db := redistest.Single(t)
	const lasts = time.Hour
	s, other := New(db, Options{Lease: lasts}), idempotency.NewNonce()
	testkit.Check(t, db.Client.ZAdd(t.Context(), keys.PresenceLeases(), redis.Z{Score: 1, Member: other}).Err())
	wantEnded := func(when string, want bool) {
		t.Helper()
		s.renew(t.Context())
		s.sweeps.Wait()
		if score := db.Client.ZScore(t.Context(), keys.PresenceLeases(), other).Val(); (score < 0) != want {
			t.Errorf("%s: the other lease has the score %v", when, score)
		}
	}
	wantEnded("at its start", false)
	s.renewedSince = time.Now().Add(-2 * lasts)
	s.renewedAt = time.Now().Add(-lasts)
	wantEnded("after an outage", false)
	wantEnded("right after it", false)
	s.renewedSince = time.Now().Add(-lasts)
	wantEnded("a lease later", true)
}
