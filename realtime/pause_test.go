package realtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

func TestOnlyALargeTopicPauses(t *testing.T) {
	for cursors, pauses := range map[int]bool{minParallelCursors - 1: false, minParallelCursors: true} {
		h := New(redistest.Single(t), Options{})
		t.Cleanup(h.crew.stop)
		room := newTopic(h, "{r1}:room:pause:events")
		for range cursors {
			room.addCursor(&cursor{client: &Client{}, topic: room, removed: true})
		}
		room.notifyAndPause(false)
		if got := !room.pauseEnd.IsZero(); got != pauses {
			t.Errorf("a topic with %d cursors pauses: %v", cursors, got)
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
	if s := h.Stats(); s.FramesSent != 0 || !room.mustNotify {
		t.Errorf("%d frames were sent in a pause", s.FramesSent)
	}

	// One that does: the worker is not called by another event.
	room.mustNotify, room.pauseEnd = false, time.Now().Add(time.Millisecond)
	in = make(chan channelMessage, 1)
	in <- entry(4)
	end = work(in)
	client.discardFrame(t)
	end()
	if s := h.Stats(); s.FramesSent != 1 || s.EventDeliveries != 4 {
		t.Errorf("%d frames with %d events were sent, want one with 4", s.FramesSent, s.EventDeliveries)
	}
}
