package history

import (
	"context"
	"hash/maphash"
	"slices"
	"time"
)

// A look sees the ledger as it was a moment ago. Entries that were acknowledged after it, and are
// missing when the store is back, are found by the nonces of their calls. The nonces also show how
// many of the missing entries had been acknowledged.
const (
	// maxAcknowledged bounds the nonces of a game that are remembered between two looks.
	maxAcknowledged = 1 << 16
	// maxBatches bounds the looks of a game for which nonces are remembered: more than are made in
	// keepAcknowledged.
	maxBatches = 512
	// keepAcknowledged is for how long a nonce is remembered: longer than what a failover may lose.
	keepAcknowledged = maxRecentLoss + 15*time.Second
	// keepLast is how long before its newest nonce the nonces of an idle game are still
	// remembered; at most maxKeptLast are. These are enough, since a ledger loses entries from
	// its end only: when one of these is lost, all that was acknowledged after it is lost too.
	keepLast    = 10 * time.Second
	maxKeptLast = 1024
	// noticeTime is longer than it takes until a node knows that a server failed.
	noticeTime = 10 * time.Second
	// A ledger is read backwards in pages, until all nonces are found.
	entriesPerPage = 5_000
	maxEntriesRead = 200_000
)

// nonceSum is what is remembered of a nonce. Two nonces have the same sum once in 2^64.
type nonceSum uint64

var nonceSeed = maphash.MakeSeed()

func sumNonce(nonce string) nonceSum { return nonceSum(maphash.String(nonceSeed, nonce)) }

// acknowledgements are those of a game since the last look.
type acknowledgements struct {
	sums  []nonceSum
	began time.Time // of the call that began first
}

// batch is what a node acknowledged between two looks.
type batch struct {
	acknowledgements
	at time.Time // of the second look
	// after is the number of the last entry at the first look. That look ended at afterAt, so calls
	// that began later have higher numbers.
	after   int64
	afterAt time.Time
}

// Acknowledge notes that the caller will hear of an entry in the ledger of a game. nonce is that of
// the call that appended the entry; the call was sent at began or later.
func (s *Service) Acknowledge(gameID int64, nonce string, began time.Time) {
	sum := sumNonce(nonce)
	s.touchedMu.Lock()
	defer s.touchedMu.Unlock()
	list := s.acknowledged[gameID]
	if list == nil {
		list = &acknowledgements{began: began}
		s.acknowledged[gameID] = list
	}
	if began.Before(list.began) {
		list.began = began
	}
	if len(list.sums) < maxAcknowledged {
		list.sums = append(list.sums, sum)
	}
}

// takeAcknowledged moves what was acknowledged since the last look to where Run finds it.
func (s *Service) takeAcknowledged(acknowledged map[int64]*acknowledgements, now time.Time) {
	for id, list := range acknowledged {
		b := batch{acknowledgements: *list, at: now}
		if g := s.games[id]; g != nil && len(g.tips) > 0 {
			b.after, b.afterAt = g.newest().Number, g.seenAt
		}
		batches := append(s.batches[id], b)
		s.batches[id] = batches[max(0, len(batches)-maxBatches):]
	}
}

// forgetAcknowledged forgets what has been in the store for some time. Of a game in which nothing
// was acknowledged for longer it keeps the last nonces.
func (s *Service) forgetAcknowledged(now time.Time) {
	for id, batches := range s.batches {
		newest := batches[len(batches)-1].at
		oldest := now.Add(-keepAcknowledged)
		if newest.Before(oldest) {
			oldest = newest.Add(-keepLast)
		}
		if !batches[0].at.Before(oldest) {
			continue
		}
		batches = slices.DeleteFunc(batches, func(b batch) bool { return b.at.Before(oldest) })
		if oldest.Before(now.Add(-keepAcknowledged)) {
			batches = keepNewest(batches, maxKeptLast)
		}
		s.batches[id] = slices.Clip(batches)
	}
}

// keepNewest returns the batches with the newest nonces, so many at most.
func keepNewest(batches []batch, most int) []batch {
	for i := len(batches) - 1; i >= 0; i-- {
		b := &batches[i]
		if len(b.sums) >= most {
			b.sums = slices.Clone(b.sums[len(b.sums)-most:])
			return slices.Delete(batches, 0, i)
		}
		most -= len(b.sums)
	}
	return batches
}

// entryBefore returns the number of an entry that was there before a time, 0 when none is known.
func (g *gameHistory) entryBefore(at time.Time) int64 {
	for i := len(g.tips) - 1; i > 0; i-- {
		if !g.tips[i].since.After(at) {
			return g.tips[i-1].Number // it was the last one when the span of the next tip began
		}
	}
	return 0
}

// floorOf returns the number of an entry that all entries of a batch are behind.
func (g *gameHistory) floorOf(b batch) int64 {
	if !b.began.Before(b.afterAt) && !b.afterAt.IsZero() {
		return b.after
	}
	return g.entryBefore(b.began)
}

// suspectedSince returns the time since which acknowledged entries may be lost although the newest
// entry seen is still there. A server may have come back without entries, and other entries may
// have taken their numbers, before any look failed.
func (s *Service) suspectedSince() time.Time { return s.suspectedAt.Add(-noticeTime) }

// countGone counts the entries that this node acknowledged after a time: how many are missing in
// the ledger of a game, and how many are there. Up to entry number present nothing was lost. It
// does not count entries that may have been trimmed, and returns errOvertaken if some were trimmed
// during the count.
func (s *Service) countGone(
	ctx context.Context, id int64, g *gameHistory, l ledger, present int64, after time.Time,
) (gone, there int64, err error) {
	wanted := map[nonceSum]struct{}{}
	floor := l.last
	least := max(l.base, l.last-maxEntriesRead)
	for _, b := range s.batches[id] {
		from := min(g.floorOf(b), present)
		if b.at.Before(after) || from < least {
			continue
		}
		floor = min(floor, from)
		for _, sum := range b.sums {
			wanted[sum] = struct{}{}
		}
	}
	all := int64(len(wanted))
	for last := int64(0); len(wanted) > 0; {
		first := floor + 1
		if last == 0 {
			first = max(first, l.last-entriesPerPage)
		} else {
			first = max(first, last-entriesPerPage+1)
		}
		err := s.store.readNonces(ctx, id, l.base, first, last, func(nonce string) { delete(wanted, sumNonce(nonce)) })
		if err != nil {
			return 0, 0, err
		}
		if last = first - 1; last <= floor {
			break
		}
	}
	gone = int64(len(wanted))
	return gone, all - gone, nil
}
