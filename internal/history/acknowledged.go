package history

import (
	"context"
	"slices"
	"time"
)

// A look sees the ledger as it was a moment ago. What was acknowledged since then, and is gone when
// the store is back, is found by the nonces of its calls.
const (
	maxAcknowledged = 32 // nonces of a game that are remembered between two looks: the newest ones
	maxBatches      = 64 // of a game
	// keepAcknowledged is for how long a nonce is remembered after a look: by then it is known that a
	// server failed.
	keepAcknowledged = 10 * time.Second
	// slowestReply is longer than any call waits for its reply: its entry may be as old.
	slowestReply = 10 * time.Second
	// maxEntriesRead bounds what is read of a ledger for it.
	maxEntriesRead = 50_000
)

// batch is what a node acknowledged between two looks.
type batch struct {
	nonces []string
	at     time.Time // of the look
}

// Acknowledge is called with a game and the nonce of a call that has added an entry to its ledger,
// when the caller is about to be told so.
func (s *Service) Acknowledge(gameID int64, nonce string) {
	s.touchedMu.Lock()
	defer s.touchedMu.Unlock()
	list := s.acknowledged[gameID]
	if len(list) == 2*maxAcknowledged { // so that it is seldom moved
		list = list[:copy(list, list[maxAcknowledged:])]
	}
	s.acknowledged[gameID] = append(list, nonce)
}

// takeAcknowledged moves what was acknowledged since the last look to where Run finds it.
func (s *Service) takeAcknowledged(acknowledged map[int64][]string, now time.Time) {
	for id, nonces := range acknowledged {
		batches := append(s.batches[id], batch{nonces[max(0, len(nonces)-maxAcknowledged):], now})
		s.batches[id] = batches[max(0, len(batches)-maxBatches):]
	}
}

// forgetAcknowledged forgets what a look has seen some time ago.
func (s *Service) forgetAcknowledged(now time.Time) {
	for id, batches := range s.batches {
		batches = slices.DeleteFunc(batches, func(b batch) bool { return now.Sub(b.at) > keepAcknowledged })
		if s.batches[id] = batches; len(batches) == 0 {
			delete(s.batches, id)
		}
	}
}

// entryBefore returns the number of an entry that was there before a time, 0 when none is known.
func (g *gameHistory) entryBefore(at time.Time) int64 {
	for i := len(g.slots) - 1; i > 0; i-- {
		if !g.slots[i].since.After(at) {
			return g.slots[i-1].Number // it was the last one when the span of the next slot began
		}
	}
	return 0
}

// countGone returns how many of the remembered nonces are not in the ledger of a game. It returns
// errOvertaken when entries left the ledger meanwhile.
func (s *Service) countGone(ctx context.Context, id int64, g *gameHistory, l ledger) (gone int64, err error) {
	batches := s.batches[id]
	if len(batches) == 0 {
		return 0, nil
	}
	after := max(g.entryBefore(batches[0].at.Add(-slowestReply)), 0)
	if after < l.base || l.last-after > maxEntriesRead {
		return 0, nil // the archive may have them
	}
	there, err := s.store.readNonces(ctx, id, l.base, after)
	if err != nil {
		return 0, err
	}
	for _, b := range batches {
		for _, nonce := range b.nonces {
			if _, ok := there[nonce]; !ok {
				gone++
			}
		}
	}
	return gone, nil
}
