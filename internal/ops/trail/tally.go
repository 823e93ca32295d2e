package trail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	tallyInterval = time.Minute     // between two lines about the writes of a server key
	laterInterval = 5 * time.Second // between two attempts to append what the store did not take
	maxLater      = 1000            // records that wait for the store
)

// tally counts the writes of server keys that have no line of their own.
type tally struct {
	mu   sync.Mutex
	keys map[string]*keyTally // by actor
}

// keyTally counts the writes of one server key since the last line about it.
type keyTally struct {
	gameID  int64
	actions map[string]int // by name
	unknown int            // of them with the outcome Unknown
}

func (t *tally) add(act Act) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys == nil {
		t.keys = map[string]*keyTally{}
	}
	k := t.keys[act.Actor]
	if k == nil {
		k = &keyTally{gameID: *act.GameID, actions: map[string]int{}}
		t.keys[act.Actor] = k
	}
	k.actions[act.Action]++
	if act.Outcome == Unknown {
		k.unknown++
	}
}

func (t *tally) take() map[string]*keyTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.keys
	t.keys = nil
	return keys
}

// laterRecords are those that the store did not take, oldest first.
type laterRecords struct {
	mu   sync.Mutex
	list []record
}

// add returns false when there are too many.
func (l *laterRecords) add(r record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= maxLater {
		return false
	}
	l.list = append(l.list, r)
	return true
}

func (l *laterRecords) take() []record {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

// Run writes one line a minute for each server key whose writes are counted, and appends the
// records that the store did not accept before. When ctx ends, it logs the rest.
func (s *Service) Run(ctx context.Context) error {
	lines, attempts := time.NewTicker(tallyInterval), time.NewTicker(laterInterval)
	defer lines.Stop()
	defer attempts.Stop()
	for {
		select {
		case <-ctx.Done():
			s.logTally(ctx)
			for _, r := range s.later.take() {
				s.logUnrecorded(ctx, r.act, errors.New("the node ends without the store"))
			}
			return nil
		case <-lines.C:
			s.logTally(ctx)
		case <-attempts.C:
			s.appendLater(ctx)
		}
	}
}

// appendLater appends the records that wait, up to the first that the store does not take.
func (s *Service) appendLater(ctx context.Context) {
	list := s.later.take()
	for i, r := range list {
		if err := s.store.append(ctx, r); err != nil {
			for _, left := range list[i:] {
				if !s.later.add(left) {
					s.logUnrecorded(ctx, left.act, err)
				}
			}
			return
		}
	}
}

func (s *Service) logTally(ctx context.Context) {
	for actor, k := range s.tally.take() {
		s.log.LogAttrs(ctx, slog.LevelInfo, "writes of a server key", slog.String("actor", actor),
			slog.Int64("gameId", k.gameID), slog.Any("actions", k.actions), slog.Int("unknown", k.unknown))
	}
}
