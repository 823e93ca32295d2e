package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	callsPerSecond = 5_000
	callServers    = 5 // each has a share, since a server gets at most 1,500 calls a second
)

// callShape has so many players that none of them meets the rate limit of calls.
var callShape = shape{rooms: 125, members: 2}

// measureCalls is B11: the time from a call to the answer of a server that answers at once, beside
// the time from a room.send to its delivery at the same rate.
func (r *realtimeBench) measureCalls() error {
	r.head("B11", fmt.Sprintf("room.send to its delivery, and room.call to its answer, %s a second (ratio: p50 to that "+
		"of room.send, p99 behind)", writeNumber(callsPerSecond)))
	b, err := r.newNode()
	if err != nil {
		return err
	}
	defer b.stopNode()
	other, err := r.startNode(r.options)
	if err != nil {
		return err
	}
	defer r.end(other.command)
	key, err := b.serverKey()
	if err != nil {
		return err
	}
	w, err := b.newWorld(callShape, 0)
	if err != nil {
		return err
	}
	if err := w.openSockets(b.nodeAddress); err != nil {
		return err
	}
	defer w.hangUp()
	loads := []struct {
		system, server string // the address of the node of the servers, "" for none
		message, mark  string
	}{
		{"room.send", "", `{"type":"room.send","data":{"roomId":"%s","op":"m","payload":%d}}`, `"payload":`},
		{"same node", b.nodeAddress, `{"id":"%[2]d","type":"room.call","data":{"roomId":"%[1]s","op":"m"}}`, `"replyTo":"`},
		{"other node", other.address, `{"id":"%[2]d","type":"room.call","data":{"roomId":"%[1]s","op":"m"}}`, `"replyTo":"`},
	}
	meter := &callMeter{sentAt: time.Now()}
	for _, members := range w.sockets {
		for _, s := range members {
			go func() { _ = s.eachFrame(meter.read) }()
		}
	}
	var sent result
	for _, load := range loads {
		stop, err := b.startCallServers(load.server, key)
		if err != nil {
			return err
		}
		m, err := r.measureCallLoad(w, meter, load.message, load.mark)
		stop()
		if err != nil {
			return err
		}
		m.Bench, m.System, m.Shape = "B11", load.system, callShape.String()
		if load.server == "" {
			sent = m
		} else {
			m.Ratio, m.Text = m.P50/sent.P50, fmt.Sprintf("p99 %.2f", m.P99/sent.P99)
		}
		r.add(m)
	}
	return nil
}

// serverKey makes a server key of the game.
func (b *bench) serverKey() (string, error) {
	status, body, err := b.admin.send(request{
		method: "POST", path: fmt.Sprintf("/api/v1/admin/games/%d/server-keys", b.game), accessToken: adminKey,
	})
	return textMember(body, "serverKey"), wantStatus(http.StatusCreated)(status, body, err)
}

// startCallServers connects servers that answer each call at once; none to "".
func (b *bench) startCallServers(address, key string) (stop func(), err error) {
	var servers []*socket
	stop = func() {
		for _, s := range servers {
			_ = s.conn.Close()
		}
	}
	for i := range callServers {
		if address == "" {
			break
		}
		conn, reader, err := openWebSocket(address, "/api/v1/realtime?protocol=1", "Authorization: Bearer "+key+"\r\n")
		if err != nil {
			stop()
			return nil, err
		}
		s := &socket{conn: conn, reader: reader}
		servers = append(servers, s)
		if _, err := s.ask(fmt.Sprintf(
			`{"id":"g","type":"game.subscribe","data":{"kinds":["rooms"],"share":{"of":%d,"index":%d}}}`, callServers, i)); err != nil {
			stop()
			return nil, err
		}
		go func() { _ = s.eachFrame(func(frame []byte) error { return s.answerCalls(frame) }) }()
	}
	return stop, nil
}

var callIDMark = []byte(`"callId":"`)

// answerCalls answers the calls of a frame.
func (s *socket) answerCalls(frame []byte) error {
	for {
		i := bytes.Index(frame, callIDMark)
		if i < 0 {
			return nil
		}
		frame = frame[i+len(callIDMark):]
		id := frame[:bytes.IndexByte(frame, '"')]
		answer := append(append([]byte(`{"type":"room.reply","data":{"callId":"`), id...), `","payload":1}}`...)
		if err := s.writeFrame(opText, answer); err != nil {
			return err
		}
	}
}

// callMeter measures the time of messages that have, behind a mark, when they were sent: in
// microseconds since sentAt.
type callMeter struct {
	sentAt  time.Time
	mark    atomic.Pointer[[]byte]
	times   histogram
	arrived atomic.Int64
	failed  atomic.Int64
	fault   atomic.Pointer[string] // the first error that a client got
}

var errorMark = []byte(`"ok":false`)

func (m *callMeter) read(frame []byte) error {
	mark := m.mark.Load()
	if mark == nil {
		return nil
	}
	now := time.Since(m.sentAt)
	if bytes.Contains(frame, errorMark) {
		text := string(frame)
		m.fault.CompareAndSwap(nil, &text)
		m.failed.Add(1)
		return nil
	}
	for {
		i := bytes.Index(frame, *mark)
		if i < 0 {
			return nil
		}
		frame = frame[i+len(*mark):]
		digits := frame[:len(frame)-len(bytes.TrimLeft(frame, "0123456789"))]
		if micros, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			m.times.add(now - time.Duration(micros)*time.Microsecond)
			m.arrived.Add(1)
		}
	}
}

// measureCallLoad sends a message from each socket in turn, at callsPerSecond of all together.
func (r *realtimeBench) measureCallLoad(w *world, meter *callMeter, message, mark string) (m result, err error) {
	stop := make(chan struct{})
	var senders sync.WaitGroup
	var sent atomic.Int64
	sockets := callShape.rooms * callShape.members
	interval := time.Duration(sockets) * time.Second / callsPerSecond
	for room, members := range w.sockets {
		for member, s := range members {
			senders.Go(func() {
				next := time.Now().Add(interval * time.Duration(room*callShape.members+member) / time.Duration(sockets))
				for {
					waitUntil(next)
					next = next.Add(interval)
					select {
					case <-stop:
						return
					default:
					}
					frame := fmt.Appendf(nil, message, w.rooms[room], time.Since(meter.sentAt).Microseconds())
					if s.writeFrame(opText, frame) != nil {
						return
					}
					sent.Add(1)
				}
			})
		}
	}
	text := []byte(mark)
	meter.mark.Store(&text)
	waitDuring(r.options.warm)
	meter.times.reset()
	meter.failed.Store(0)
	before, err := readUsage(w.nodePID, r.redis.Pid())
	begun, arrivedBefore := sent.Load(), meter.arrived.Load()
	if err == nil {
		waitDuring(r.options.runTime)
	}
	after, afterErr := readUsage(w.nodePID, r.redis.Pid())
	count, arrived := sent.Load()-begun, meter.arrived.Load()-arrivedBefore
	close(stop)
	senders.Wait()
	waitDuring(time.Second) // what is under way arrives
	meter.mark.Store(nil)
	if err != nil || afterErr != nil {
		return m, err
	}
	node, store, other, wall := after.since(before)
	m = result{
		PerSecond: float64(arrived) / wall.Seconds(), PerCPUSecond: float64(arrived) / node.Seconds(),
		P50: millis(meter.times.quantile(0.5)), P99: millis(meter.times.quantile(0.99)),
		StoreMicros: float64(store.Microseconds()) / float64(max(1, arrived)), OtherCores: other.Seconds() / wall.Seconds(),
		Lost: max(0, count-arrived-callsPerSecond/100) + meter.failed.Load(),
	}
	if fault := meter.fault.Load(); fault != nil {
		m.Text = *fault
	}
	return m, nil
}
