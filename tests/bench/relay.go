package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// relaySender sends messages of players to the others of their room, over their sockets. It stays
// below the limits: a message above them is dropped, and the load would wait for it.
type relaySender struct {
	queues []chan []byte // payloads by room
	ended  sync.WaitGroup
	fault  atomic.Pointer[error]
}

const (
	// sendInterval is a little more than a socket needs between its frames.
	sendInterval = time.Second / 50
	// relayInterval is the time of one message in a room, for a socket gets at most 32 KiB of messages
	// a second, and one of them takes some 250 bytes. Those that wait are sent at once.
	relayInterval = time.Second / 110
	maxRelayQueue = 64 // more than are under way in a room
	// maxRelayBurst is how many messages of a room are sent at once. A queue that is filled as fast as
	// it is read would never be empty, and the room speak faster than its sockets may hear.
	maxRelayBurst = 16
)

func newRelaySender(w *world) *relaySender {
	r := &relaySender{queues: make([]chan []byte, len(w.rooms))}
	for room := range r.queues {
		r.queues[room] = make(chan []byte, maxRelayQueue)
		r.ended.Go(func() {
			if err := relayIn(w.rooms[room], w.sockets[room], r.queues[room]); err != nil {
				r.fault.CompareAndSwap(nil, &err)
			}
			for range r.queues[room] { // nobody may wait for a room that failed
			}
		})
	}
	return r
}

// relayIn has the members of a room speak in turn until the queue is closed.
func relayIn(roomID string, members []*socket, queue <-chan []byte) error {
	head := `{"type":"room.send","data":{"roomId":"` + roomID + `","op":"m","payload":`
	for turn := 0; ; {
		payload, ok := <-queue
		for began, n := time.Now(), time.Duration(1); ok; n++ {
			s := members[turn%len(members)]
			turn++
			waitUntil(s.sentAt.Add(sendInterval))
			s.sentAt = time.Now()
			if err := s.writeFrame(opText, append(append([]byte(head), payload...), "}}"...)); err != nil {
				return err
			}
			if len(queue) == 0 || n == maxRelayBurst {
				waitUntil(began.Add(n * relayInterval))
				break
			}
			payload, ok = <-queue
		}
		if !ok {
			return nil
		}
	}
}

func waitUntil(t time.Time) {
	if wait := time.Until(t); wait > 0 {
		<-time.After(wait)
	}
}

func (r *relaySender) send(batch []delivery) error {
	for _, d := range batch {
		r.queues[d.room] <- d.payload
	}
	if fault := r.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// close waits for what is queued.
func (r *relaySender) close() {
	for _, queue := range r.queues {
		close(queue)
	}
	r.ended.Wait()
}
