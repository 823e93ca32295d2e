package realtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// On one processor, events would wait for a look at thousands of topics and clients at once. A
// pause ends the look here, because the context has ended: so only a part of them was looked at.
func TestTheJanitorPausesAmongManyTopicsAndClients(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	const many = 10 * minJanitorPart
	for i := range many {
		topic := newTopic(h, fmt.Sprint(i))
		topic.refCount = 1
		topic.batches = []cachedBatch{{}} // which the janitor drops
		h.topics.Store(topic.name, topic)
		h.counters.topics.Add(1)
		// It has read nothing for so long that the janitor closes it.
		c := &Client{hub: h, socketKind: &SocketKind{}, inFlight: 1, writeStartTick: -1000}
		h.clients[c] = struct{}{}
	}
	ended, end := context.WithCancel(context.Background())
	end()
	h.maintain(ended, time.Now())
	topics, clients := 0, 0
	h.topics.Range(func(_, v any) bool {
		if v.(*topic).batches == nil {
			topics++
		}
		return true
	})
	for c := range h.clients {
		if c.closeStarted {
			clients++
		}
	}
	if topics != minJanitorPart || clients != minJanitorPart {
		t.Errorf("%d topics and %d clients were looked at without a pause, want %d", topics, clients, minJanitorPart)
	}
}

func TestTheJanitorPausesSeldomAmongVeryManyThings(t *testing.T) {
	const things = 4 * minJanitorPart * maxJanitorPauses
	if p := newPauser(context.Background(), things); things/p.part != maxJanitorPauses {
		t.Errorf("it pauses after each %d of %d", p.part, things)
	}
}
