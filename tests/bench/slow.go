package main

import (
	"fmt"
	"net"
	"time"
)

// measureSlowReaders is B8: how much later the others receive when a tenth of the sockets read a
// kilobyte a second.
func (r *realtimeBench) measureSlowReaders() error {
	r.head("B8", fmt.Sprintf("10 %% slow readers, events at %s deliveries a second: p99 of the others, to that without",
		writeNumber(r.options.rate)))
	without := 0.0
	for _, slow := range []bool{false, true} {
		t, err := r.newNodeTarget(systemEvents, shape{100, 10}, map[bool]int{true: 1}[slow])
		if err != nil {
			return err
		}
		resident, _ := residentKB(t.pid)
		m, err := r.measureLoad(t, func(stop <-chan struct{}) { t.fanout.atRate(r.options.rate, stop) })
		residentAfter, _ := residentKB(t.pid)
		t.stop()
		if err != nil {
			return err
		}
		m.Bench, m.Text = "B8", fmt.Sprintf("resident %d MB, then %d MB", resident>>10, residentAfter>>10)
		if m.System = "all fast"; slow {
			m.System = "10 % slow"
		} else {
			without = m.P99
		}
		m.Ratio = m.P99 / without
		r.add(m)
	}
	return nil
}

// readSlowly reads a kilobyte a second until the connection ends.
func (s *socket) readSlowly() {
	if tcp, ok := s.conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for buffer := make([]byte, 1<<10); ; <-tick.C {
		if _, err := s.conn.Read(buffer); err != nil {
			return
		}
	}
}
