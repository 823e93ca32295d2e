package presence

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"
)

const (
	sweepLease = 10 * time.Second // of one sweep
	// sweepIdleFactor is how many times a batch's time the store has for others between two batches.
	sweepIdleFactor = 1
)

// renew makes the lease last, and ends those of nodes that did not renew theirs.
func (s *Service) renew(ctx context.Context) {
	r, err := s.renewOnce(ctx)
	if err != nil {
		if !s.renewFails && ctx.Err() == nil {
			s.options.Log.WarnContext(ctx, "the lease of this node cannot be renewed", slog.Any("error", err))
		}
		s.renewFails = true
		return
	}
	now := time.Now()
	if s.renewFails = false; now.Sub(s.renewedAt) > s.options.Lease*3/4 {
		s.renewedSince = now
	}
	s.renewedAt, s.isLeaseStored = now, true
	maySweep := now.Sub(s.renewedSince) >= s.options.Lease && s.store.db.Clock.AllowsEnding()
	if len(r.over) > 0 && maySweep && s.sweepRunning.CompareAndSwap(false, true) {
		s.sweeps.Go(func() {
			defer s.sweepRunning.Store(false)
			s.sweep(ctx, r.over)
		})
	}
}

// renewOnce renews the lease, or a new one when that has ended.
func (s *Service) renewOnce(ctx context.Context) (renewal, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	r, err := s.store.renew(ctx, s.lease, s.options.Lease, len(s.shards))
	if err == nil && r.ended {
		s.takeNewLease()
		r, err = s.store.renew(ctx, s.lease, s.options.Lease, 0)
	}
	if err == nil && r.shardsMissing && len(s.shards) > 0 {
		err = s.store.addShards(ctx, s.lease, s.shards)
	}
	return r, err
}

// sweep ends leases, unless another node does at this moment. What it leaves, the next one does.
func (s *Service) sweep(ctx context.Context, leases []string) {
	err := s.store.runAsLeader(ctx, sweepLease, func(ctx context.Context) error {
		var errs []error
		for _, lease := range leases {
			errs = append(errs, s.endLease(ctx, lease))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		s.options.Log.WarnContext(ctx, "the lease of a node cannot be ended yet", slog.Any("error", err))
	}
}

// endLease stores that the players of a lease have no socket by it. It may be called again after an
// error.
func (s *Service) endLease(ctx context.Context, lease string) error {
	claimed, err := s.store.endLease(ctx, lease)
	if err != nil || !claimed {
		return err
	}
	rooms, err := s.store.roomsOf(ctx, lease)
	if err != nil {
		return err
	}
	s.options.Log.InfoContext(ctx, "a node is gone", slog.String("lease", lease), slog.Int("rooms", len(rooms)))
	var errs []error
	for batch := range slices.Chunk(rooms, maxRooms) {
		begin := time.Now()
		changes := make([]change, len(batch))
		for i, at := range batch {
			changes[i] = change{at: at, allOthers: true}
		}
		for _, o := range s.store.change(ctx, lease, 0, changes, true) {
			errs = append(errs, o.err)
		}
		if len(batch) == maxRooms { // there may be more
			pause(ctx, sweepIdleFactor*time.Since(begin))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.store.finish(ctx, lease)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
