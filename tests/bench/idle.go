package main

import (
	"fmt"
	"time"
)

// Sizes of B3: the cost of a connection is the slope between them, because a constant would decide
// it else.
const (
	idleFew  = 5_000
	idleMany = 15_000
)

// measureIdle is B3 and B4: the memory and the CPU time of players who do nothing, each with the
// two lists of its own and a room of ten.
func (r *realtimeBench) measureIdle() error {
	r.head("B3", "memory of an idle player, KB resident, as the slope between 5,000 and 15,000; B4: its CPU time")
	b, err := r.newNode()
	if err != nil {
		return err
	}
	defer b.stopNode()
	w, err := b.newWorld(shape{idleMany / 10, 10}, 0)
	if err != nil {
		return err
	}
	defer w.hangUp()
	var resident [2]int64
	for step, upTo := range []int{idleFew, idleMany} {
		if err := w.openUpTo(upTo / 10); err != nil {
			return err
		}
		waitDuring(r.options.runTime) // the collector runs, and what is no longer used goes back
		if resident[step], err = residentKB(b.nodePID); err != nil {
			return err
		}
	}
	r.add(result{
		Bench: "B3", System: "idle", Shape: w.shape.String(), Text: fmt.Sprintf(
			"%.1f KB a player; resident %d MB at %d, %d MB at %d", float64(resident[1]-resident[0])/(idleMany-idleFew),
			resident[0]>>10, idleFew, resident[1]>>10, idleMany),
		SlopeKB: float64(resident[1]-resident[0]) / (idleMany - idleFew),
	})
	before, err := readUsage(b.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	waitDuring(2 * r.options.runTime)
	after, err := readUsage(b.nodePID, r.redis.Pid())
	if err != nil {
		return err
	}
	node, store, other, wall := after.since(before)
	r.add(result{
		Bench: "B4", System: "idle", Shape: w.shape.String(), NodeCores: node.Seconds() / wall.Seconds(),
		OtherCores: other.Seconds() / wall.Seconds(), Text: fmt.Sprintf(
			"%.2f µs a second and player on the node, %.2f on the store", perPlayer(node, wall), perPlayer(store, wall)),
	})
	return nil
}

// perPlayer returns the microseconds of a second that each idle player costs.
func perPlayer(cpu, wall time.Duration) float64 {
	return float64(cpu.Microseconds()) / wall.Seconds() / idleMany
}

// openUpTo opens the sockets of the first rooms that have none yet.
func (w *world) openUpTo(rooms int) error {
	return inParallel(rooms*w.shape.members, 64, func(i int) error {
		room, member := i/w.shape.members, i%w.shape.members
		if w.sockets[room][member] != nil {
			return nil
		}
		s, err := openMember(w.nodeAddress, w.players[room][member], w.rooms[room], "")
		if err == nil {
			w.sockets[room][member] = s
			go func() { _ = s.eachFrame(func([]byte) error { return nil }) }()
		}
		return err
	})
}

func (w *world) hangUp() {
	for _, members := range w.sockets {
		for _, s := range members {
			if s != nil {
				_ = s.conn.Close()
			}
		}
	}
}
