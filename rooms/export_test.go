package rooms

import (
	"context"
	"time"
)

// ApplyEnded applies what the node has ended and ends, until ctx ends: the part of Run that does.
func (s *Service) ApplyEnded(ctx context.Context) { s.store.applyQueued(ctx) }

// SetBoardsConsumer replaces Options.BoardsConsumer. It must be called before Run.
func (s *Service) SetBoardsConsumer(c ResultConsumer) { s.store.boardsConsumer = c }

// SetMatchConsumer replaces Options.MatchConsumer. It must be called before Run.
func (s *Service) SetMatchConsumer(c ResultConsumer) { s.store.matchConsumer = c }

// LeastTurns returns how long the next turn of each of some rooms of a host must last, when the
// turns of all of them are over at a time.
func LeastTurns(now time.Time, host int64, seconds int64, roomIDs ...string) (least []time.Duration) {
	pace := turnPace{rooms: map[int64]map[string]time.Time{}}
	for range 2 { // the second time it knows them
		least = nil
		for _, id := range roomIDs {
			turn := &Turn{Length: time.Duration(seconds) * time.Second}
			least = append(least, pace.leastTurn(now, &Room{RoomID: id, HostID: host, Turn: turn}))
		}
	}
	return least
}
