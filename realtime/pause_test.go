package realtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func TestOnlyALargeTopicWithManyEventsPauses(t *testing.T) {
	for _, c := range []struct {
		cursors, events int
		pauses          bool
	}{
		{minParallelCursors, minEventsToPause, true},
		{minParallelCursors - 1, minEventsToPause, false},
		{minParallelCursors, minEventsToPause - 1, false},
	} {
		h := New(redistest.Single(t), Options{})
		t.Cleanup(h.workers.stop)
		room := newTopic(h, "{r1}:room:pause:events")
		for range c.cursors {
			room.addCursor(&cursor{client: &Client{}, topic: room, removed: true})
		}
		room.newEvents = c.events
		room.notifyAndPause()
		if got := !room.pauseEnd.IsZero(); got != c.pauses || room.newEvents != 0 {
			t.Errorf("%+v: it pauses: %v", c, got)
		}
	}
}

func TestWhatComesInAPauseSharesAFrame(t *testing.T) {
	h := New(redistest.Single(t), Options{})
	room := newTopic(h, "{r1}:room:pause:events")
	room.buffer.merge(tail{isLong: true, isAll: true}, room.render)
	h.topics.Store(room.name, room)
	client := newDirectPairs(t, h, room, 1)[0]
	entry := func(seq int) channelMessage {
		text := fmt.Sprintf("%d-%08d|%s|%d|%s", seq, seq, testEvent, time.Now().UnixMilli(), valuesOf(testEvent, "x"))
		return channelMessage{room.name, text}
	}
	work := func(in <-chan channelMessage) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.runWorker(ctx, in) }()
		return func() { cancel(); <-done }
	}

	// A pause that does not end: each event finds the topic pausing.
	in := make(chan channelMessage)
	room.pauseEnd = time.Now().Add(time.Hour)
	end := work(in)
	for seq := 1; seq <= 3; seq++ {
		in <- entry(seq)
	}
	end()
	if s := h.Stats(); s.FramesSent != 0 || room.newEvents != 3 {
		t.Errorf("%d frames were sent in a pause, and %d events wait", s.FramesSent, room.newEvents)
	}

	// One that does: the worker is not called by another event.
	room.newEvents, room.pauseEnd = 0, time.Now().Add(time.Millisecond)
	in = make(chan channelMessage, 1)
	in <- entry(4)
	end = work(in)
	client.discardFrame(t)
	end()
	if s := h.Stats(); s.FramesSent != 1 || s.EventDeliveries != 4 {
		t.Errorf("%d frames with %d events were sent, want one with 4", s.FramesSent, s.EventDeliveries)
	}
}
