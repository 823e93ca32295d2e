package presence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
)

// A repetition says that everybody whom it does not name is gone, so it must name everybody.
func TestARepetitionNamesThePlayersHoweverManySpectatorsCome(t *testing.T) {
	const players = 2
	shard := keys.FreeShard(0)
	topic := keys.RoomEvents(shard, keys.NewRoomID(shard, time.Now(), false))
	for _, spectators := range []int{0, 1, maxUsers - players, maxUsers - players + 1, maxUsers, 2 * maxUsers, 700} {
		t.Run(fmt.Sprint(spectators), func(t *testing.T) {
			s := New(nil, Options{})
			for id := range int64(players) {
				s.Subscribed(topic, 1+id)
			}
			for _, p := range s.takeBatch() {
				s.applyOutcome(p, map[int64]bool{1: true, 2: true})
			}
			for id := range int64(spectators) {
				s.Subscribed(topic, 100+id)
			}
			s.EventAdded(topic, events.RoomFinished.Name, nil)
			isRepeated := false
			for {
				batch := s.takeBatch()
				if len(batch) == 0 {
					break
				}
				for _, p := range batch {
					if len(p.here) > maxUsers || len(p.gone) > 0 {
						t.Errorf("a call names %d members here, %d gone", len(p.here), len(p.gone))
					}
					if p.allOthers {
						isRepeated = true
						if !slices.Contains(p.here, 1) || !slices.Contains(p.here, 2) {
							t.Errorf("the repetition names %v", p.here)
						}
					}
					s.applyOutcome(p, map[int64]bool{1: true, 2: true})
				}
			}
			if !isRepeated {
				t.Error("the room was not repeated")
			}
		})
	}
}
