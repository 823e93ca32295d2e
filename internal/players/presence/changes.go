package presence

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
)

// pendingChange is a change that is being stored.
type pendingChange struct {
	change
	room   *room
	repeat bool
}

// storeChanges stores what has changed, until nothing is left or a call fails. It reports whether
// something is left.
func (s *Service) storeChanges(ctx context.Context) (left bool) {
	for ctx.Err() == nil {
		if !s.isLeaseStored || time.Now().Before(s.notBefore) {
			return true
		}
		batch := s.takeBatch()
		if len(batch) == 0 {
			return false
		}
		if !s.storeBatch(ctx, batch) {
			s.notBefore = time.Now().Add(retryDelay)
			return true
		}
		// A new lease is stored before its first player, and a storm must not cost the lease.
		if !s.isLeaseStored || time.Since(s.renewedAt) > s.options.Lease/2 {
			s.renew(ctx)
		}
	}
	return true
}

// takeBatch takes the changes of some rooms.
func (s *Service) takeBatch() []pendingChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.queue[:min(maxRooms, len(s.queue))]
	s.queue = s.queue[len(taken):]
	batch := make([]pendingChange, 0, len(taken))
	for _, r := range taken {
		if r.queued = false; s.rooms[r.at.list] != r {
			continue // it is forgotten; another one may have taken its place
		}
		p := pendingChange{room: r, repeat: r.repeat}
		p.at = r.at
		users := r.changed[:min(maxUsers, len(r.changed))]
		if r.changed = r.changed[len(users):]; len(r.changed) > 0 {
			s.enqueue(r)
		} else {
			r.changed = nil
		}
		for _, id := range users {
			m := r.members[id]
			if m.isChanged = false; m.isGone {
				p.gone = append(p.gone, id)
			} else {
				p.here = append(p.here, id)
			}
		}
		if len(r.changed) == 0 {
			// When no member is left, the script looks whether the lease has another player there.
			p.allOthers = len(p.gone) == len(r.members)
			if r.repeat {
				s.repeatInto(&p, len(users))
			}
		}
		if len(p.here)+len(p.gone) > 0 || p.allOthers {
			batch = append(batch, p)
		}
	}
	if len(s.queue) == 0 {
		s.queue = nil
	}
	return batch
}

// repeatInto adds the members that have not changed to a room's change, which names the changed
// ones already. If they do not fit in, the next call repeats them. A call may declare all others
// to be gone only if it names every member. Service.mu must be held.
func (s *Service) repeatInto(p *pendingChange, changed int) {
	var stored []int64
	for id, m := range p.room.members {
		if m.isStored && !m.isGone && !slices.Contains(p.here, id) {
			stored = append(stored, id)
		}
	}
	place := maxUsers - len(p.here)
	if len(stored) > place && changed > 0 {
		s.enqueue(p.room)
		return
	}
	p.room.repeat = false
	p.allOthers = len(stored) <= place
	p.here = append(p.here, stored[:min(place, len(stored))]...)
}

// storeBatch stores changes. It returns false when one of them has to be tried again.
func (s *Service) storeBatch(ctx context.Context, batch []pendingChange) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.addShards(ctx, batch); err != nil {
		for _, p := range batch {
			s.retry(p)
		}
		return false
	}
	changes := make([]change, len(batch))
	for i := range batch {
		changes[i] = batch[i].change
	}
	s.number++
	allStored, hasLease := true, true
	for i, o := range s.store.change(ctx, s.lease, s.number, changes, false) {
		switch {
		case o.err != nil:
			s.retry(batch[i])
			allStored = false
		case o.leaseEnded:
			hasLease = false
		default:
			s.applyOutcome(batch[i], o.hasSeat)
		}
	}
	if !hasLease {
		s.takeNewLease()
	}
	return allStored
}

// addShards stores the shards of rooms under the lease before the first change there: else the
// players of a node that dies would not be found.
func (s *Service) addShards(ctx context.Context, batch []pendingChange) error {
	added := shardSet{}
	for _, p := range batch {
		if _, known := s.shards[p.at.shard]; !known {
			added[p.at.shard] = struct{}{}
		}
	}
	if len(added) == 0 {
		return nil
	}
	if err := s.store.addShards(ctx, s.lease, added); err != nil {
		return err
	}
	for shard := range added {
		s.shards[shard] = struct{}{}
	}
	return nil
}

// retry has a change stored again, which may have been stored.
func (s *Service) retry(p pendingChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ids := range [][]int64{p.here, p.gone} {
		for _, id := range ids {
			if m := p.room.members[id]; m != nil {
				s.markChanged(p.room, id, m)
			}
		}
	}
	p.room.repeat = p.room.repeat || p.repeat
	s.enqueue(p.room)
}

// applyOutcome records what a change has stored.
func (s *Service) applyOutcome(p pendingChange, hasSeat map[int64]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range p.here {
		if m := p.room.members[id]; m != nil {
			s.setStored(m, hasSeat[id])
		}
	}
	for _, id := range p.gone {
		m := p.room.members[id]
		if m != nil && m.isGone && !m.isChanged {
			s.removeMember(p.room, id, m)
		} else if m != nil { // the player came back in the meantime
			s.setStored(m, false)
		}
	}
}

// takeNewLease begins anew: the lease has ended, and its players were announced as gone.
func (s *Service) takeNewLease() {
	s.lease, s.number, s.shards = idempotency.NewNonce(), 0, shardSet{}
	s.isLeaseStored, s.notBefore = false, time.Now().Add(settleDelay)
	s.mu.Lock()
	defer s.mu.Unlock()
	level := slog.LevelWarn // this node stood still, or was cut off alone
	if s.renewFails {
		level = slog.LevelDebug // the store was away, which has its own lines
	}
	s.options.Log.Log(context.Background(), level, "the lease of this node has ended; its players are announced again",
		slog.Int("rooms", len(s.rooms)))
	for _, r := range s.rooms {
		for id, m := range r.members {
			s.setStored(m, false)
			if m.isGone && !m.isChanged {
				s.removeMember(r, id, m)
			} else {
				s.markChanged(r, id, m)
			}
		}
	}
}
