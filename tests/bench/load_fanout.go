package main

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
)

// delivery is one message to the sockets of a room.
type delivery struct {
	room    int // index
	payload []byte
}

// sender sends messages. For one room, it is called from one goroutine at a time.
type sender interface {
	send(batch []delivery) error
}

// fanout is a load of messages to rooms, and what arrived.
type fanout struct {
	shape      shape
	receivers  int                                 // sockets that get each message
	sender     sender                              // of all rooms
	payload    func(room int, at time.Time) []byte // the payload of a message that is sent at a time
	mayBeLost  bool                                // messages are delivered at most once
	published  []atomic.Int64                      // messages by room
	delivered  []atomic.Int64                      // deliveries by room
	writtenOff []atomic.Int64                      // deliveries by room that will not come
	frames     atomic.Int64
	latency    histogram
	readers    sync.WaitGroup
	fault      atomic.Pointer[error] // of a sender
}

func newFanout(s shape, receivers int) *fanout {
	return &fanout{
		shape: s, receivers: receivers, published: make([]atomic.Int64, s.rooms), delivered: make([]atomic.Int64, s.rooms),
		writtenOff: make([]atomic.Int64, s.rooms),
	}
}

// timeMark is once in each message of the load, before the time at which it was sent, in
// nanoseconds. A frame may have other events of the room, too.
var timeMark = []byte(`"t":`)

const timeDigits = 19

// read counts what the sockets receive, until they are closed.
func (f *fanout) read(sockets [][]*socket) {
	for _, members := range sockets {
		for _, s := range members {
			f.readers.Go(func() {
				_ = s.eachFrame(func(frame []byte) error {
					f.count(s, frame)
					return nil
				})
			})
		}
	}
}

func (f *fanout) count(s *socket, frame []byte) {
	n := int64(1)
	if frame[0] == '[' {
		n = int64(bytes.Count(frame, timeMark))
	}
	// The first of several has waited longest.
	if i := bytes.Index(frame, timeMark); i >= 0 {
		digits := frame[i+len(timeMark):][:timeDigits]
		if nanos, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			f.latency.add(time.Duration(time.Now().UnixNano() - nanos))
			f.frames.Add(1)
			f.delivered[s.room].Add(n)
		}
	}
}

func (f *fanout) total() (deliveries, frames int64) {
	for i := range f.delivered {
		deliveries += f.delivered[i].Load()
	}
	return deliveries, f.frames.Load()
}

func (f *fanout) publishedTotal() (messages int64) {
	for i := range f.published {
		messages += f.published[i].Load()
	}
	return messages
}

// missing returns how many deliveries of a room are under way.
func (f *fanout) missing(room int) int64 {
	return f.published[room].Load()*int64(f.receivers) - f.delivered[room].Load() - f.writtenOff[room].Load()
}

const (
	senderGoroutines = 4
	maxSendBatch     = 128
)

// saturate keeps at most so many messages under way in each room until stop is closed.
func (f *fanout) saturate(underway int, stop <-chan struct{}) {
	var senders sync.WaitGroup
	for first := range min(senderGoroutines, f.shape.rooms) {
		senders.Go(func() {
			pause := time.NewTicker(200 * time.Microsecond)
			defer pause.Stop()
			var batch []delivery
			for isOpen(stop) {
				batch = batch[:0]
				now := time.Now()
				for room := first; room < f.shape.rooms; room += senderGoroutines {
					for len(batch) < maxSendBatch && f.missing(room) < int64(underway*f.receivers) {
						f.published[room].Add(1)
						batch = append(batch, delivery{room, f.payload(room, now)})
					}
					if len(batch) == maxSendBatch {
						f.flush(&batch)
						now = time.Now()
					}
				}
				if len(batch) == 0 {
					<-pause.C
					continue
				}
				f.flush(&batch)
			}
		})
	}
	if f.mayBeLost {
		f.writeOffLost(stop)
	}
	senders.Wait()
}

func (f *fanout) flush(batch *[]delivery) {
	if err := f.sender.send(*batch); err != nil {
		f.fault.CompareAndSwap(nil, &err)
	}
	*batch = (*batch)[:0]
}

// atRate sends to the rooms in turn, so that so many deliveries a second are made, until stop is
// closed.
func (f *fanout) atRate(deliveriesPerSecond float64, stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	begin, sent := time.Now(), 0
	for batch := []delivery(nil); isOpen(stop); <-tick.C {
		now := time.Now()
		due := int(now.Sub(begin).Seconds() * deliveriesPerSecond / float64(f.receivers))
		for ; sent < due; sent++ {
			room := sent % f.shape.rooms
			f.published[room].Add(1)
			batch = append(batch, delivery{room, f.payload(room, now)})
			if len(batch) == maxSendBatch {
				f.flush(&batch)
			}
		}
		if len(batch) > 0 {
			f.flush(&batch)
		}
	}
}

// writeOffLost gives up deliveries of rooms in which nothing arrives any more.
func (f *fanout) writeOffLost(stop <-chan struct{}) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	before := make([]int64, f.shape.rooms)
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			for room := range before {
				now := f.delivered[room].Load()
				if missing := f.missing(room); missing > 0 && now == before[room] {
					f.writtenOff[room].Add(missing)
				}
				before[room] = now
			}
		}
	}
}

// settleLimit is how long a system may take for what waits: a naive one has minutes of it.
const settleLimit = 15 * time.Second

// settle waits until everything has arrived, or nothing more does, and returns how many deliveries
// are missing.
func (f *fanout) settle() (lost int64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, same := int64(-1), 0
	for begin := time.Now(); same < 20 && time.Since(begin) < settleLimit; {
		<-tick.C
		lost = 0
		for room := range f.shape.rooms {
			lost += f.published[room].Load()*int64(f.receivers) - f.delivered[room].Load()
		}
		if lost == 0 {
			return 0
		}
		if now, _ := f.total(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return lost
}

func isOpen(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}

// documentOf returns a JSON object of so many bytes with the time in it.
func documentOf(at time.Time, size int) []byte {
	b := append(make([]byte, 0, size), `{"id":7,"t":`...)
	b = strconv.AppendInt(b, at.UnixNano(), 10)
	b = append(b, `,"pad":"`...)
	return append(append(b, strings.Repeat("x", max(0, size-len(b)-2))...), `"}`...)
}

// frameOf returns the JSON of an event with a document, as a node renders it. The floors deliver
// this.
func frameOf(document []byte) ([]byte, error) {
	rendered, err := events.Render("123456-"+eventNonce+"|room.joined|1795195946123|123456|2|0|0|"+string(document),
		"00000000-0000-8000-8000-000000000000")
	if err != nil {
		return nil, err
	}
	if len(rendered) != 1 {
		return nil, errors.New("an entry of several events")
	}
	return rendered[0].JSON, nil
}
