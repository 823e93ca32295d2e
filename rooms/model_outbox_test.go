package rooms_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/rooms"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// modelConsumer is what the consumer of the model does with the rooms that come.
type modelConsumer struct {
	err  error // what it returns
	came map[string]int
}

// applyWaiting draws what the consumer does when the sweep looks at the outboxes, and changes the
// model as the sweep must change the store. The room that the sweep itself ends comes with them.
func (m *model) applyWaiting() {
	m.consumer = modelConsumer{came: map[string]int{}, err: rapid.SampledFrom([]error{
		nil, nil, apierror.BoardNotFound, errors.New("a failure that may pass"),
	}).Draw(m.t, "consumer returns")}
	for _, r := range m.rooms {
		if !r.waits || r.delayed {
			continue
		}
		r.waits = m.consumer.err != nil && !apierror.IsFinal(m.consumer.err)
		r.delayed = r.waits
		m.consumer.came[r.id] = 1
	}
}

// consume is the consumer of the model.
func (m *model) consume(_ context.Context, e rooms.Ended) error {
	i := slices.IndexFunc(m.rooms, func(r *modelRoom) bool { return r.id == e.RoomID })
	if i < 0 {
		return nil // left by another case
	}
	r := m.rooms[i]
	places := map[int64]int{}
	for _, p := range e.Places {
		if p.Place > 0 {
			places[p.UserID] = p.Place
		}
	}
	want := map[int64]int{}
	if r.status == rooms.Finished {
		want = r.places
	}
	settledBy := rooms.SettledByServer
	if r.consensus {
		settledBy = rooms.SettledByConsensus
	}
	if e.GameID != m.fixture.GameID || e.Consumer != rooms.BoardsConsumer || e.Status != r.status ||
		e.Reason != r.reason || e.SettledBy != settledBy ||
		e.StartedAt.IsZero() == slices.Contains(r.events, "room.started") || !maps.Equal(places, want) {
		m.t.Errorf("the room %+v came as %+v", *r, e)
	}
	if m.consumer.came[r.id]--; m.consumer.came[r.id] < 0 {
		m.t.Errorf("the room %s came, of which nothing waits", r.id)
	}
	return m.consumer.err
}

// requireOutbox compares the outboxes of all shards with the rooms that wait.
func (m *model) requireOutbox(outboxes []*redis.MapStringStringCmd) {
	m.t.Helper()
	var got, want []string
	for _, outbox := range outboxes {
		for id, entry := range outbox.Val() {
			if m.has(id) { // on a free shard it has rooms of other cases
				got = append(got, id+" "+strings.SplitN(entry, "|", 5)[3])
			}
		}
	}
	for _, r := range m.rooms {
		if r.waits {
			want = append(want, r.id+" "+string(r.status))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.t.Fatalf("the outboxes have %v, want %v", got, want)
	}
	for id, left := range m.consumer.came {
		if left != 0 {
			m.t.Fatalf("the room %s did not come", id)
		}
	}
	m.consumer.came = nil
}
