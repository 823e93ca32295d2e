package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	stormShape  = 500 // rooms of ten
	stormAtOnce = 64  // connections that are opened at the same time
)

// measureStorm is B5: 5,000 clients lose their connections at once, and come back with their tokens
// and positions. With -against it measures that build too, each time before this one, and the ratio
// to it. A storm takes a second, in which anything disturbs it: there are as many as passes.
func (r *realtimeBench) measureStorm() error {
	r.head("B5", "5,000 clients dropped at once: until all are back (ms), each with token check and resume")
	builds := []string{""}
	if r.options.against != "" {
		builds = []string{r.options.against, ""}
	}
	times := make([][]float64, len(builds))
	var ratios []float64
	for range r.options.passes {
		for i, build := range builds {
			m, err := r.stormOf(build)
			if err != nil {
				return err
			}
			times[i] = append(times[i], m.P99)
			if m.Ratio = 1; i > 0 {
				m.Ratio = m.P99 / times[0][len(times[0])-1]
				ratios = append(ratios, m.Ratio)
			}
			r.add(m)
		}
	}
	if len(ratios) > 0 {
		own, other := median(times[1]), median(times[0])
		r.add(result{
			Bench: "B5", System: "median", P99: own, Ratio: own / other,
			Text: fmt.Sprintf("ratios of the passes %.2f to %.2f", slices.Min(ratios), slices.Max(ratios)),
		})
	}
	return nil
}

func (r *realtimeBench) stormOf(build string) (result, error) {
	own := *r
	system := "storm"
	if build != "" {
		own.options.binary, system = build, "storm, other"
	}
	b, err := own.newNode()
	if err != nil {
		return result{}, err
	}
	defer b.stopNode()
	w, err := b.newWorld(shape{stormShape, 10}, 0)
	if err != nil {
		return result{}, err
	}
	if err := w.openSockets(b.nodeAddress); err != nil {
		return result{}, err
	}
	defer w.hangUp()
	positions := make([]string, len(w.rooms))
	for room := range w.rooms {
		reply, err := w.sockets[room][0].ask(`{"id":"s","type":"room.subscribe","data":{"roomId":"` + w.rooms[room] + `"}}`)
		if err != nil {
			return result{}, err
		}
		positions[room] = textMember(reply, "position")
	}
	waitDuring(r.options.warm)
	resident, err := residentKB(b.nodePID)
	if err != nil {
		return result{}, err
	}
	before, err := readUsage(b.nodePID, r.redis.Pid())
	if err != nil {
		return result{}, err
	}
	w.hangUp()
	var failed atomic.Int64
	begin := time.Now()
	err = inParallel(stormShape*10, stormAtOnce, func(i int) error {
		room, member := i%stormShape, i/stormShape
		s, err := openMember(b.nodeAddress, w.players[room][member], w.rooms[room], positions[room])
		if err != nil {
			failed.Add(1)
			return err
		}
		w.sockets[room][member] = s
		return nil
	})
	took := time.Since(begin)
	if err != nil {
		return result{}, fmt.Errorf("%d clients did not come back: %w", failed.Load(), err)
	}
	after, err := readUsage(b.nodePID, r.redis.Pid())
	if err != nil {
		return result{}, err
	}
	waitDuring(r.options.warm)
	residentAfter, err := residentKB(b.nodePID)
	if err != nil {
		return result{}, err
	}
	node, store, other, wall := after.since(before)
	clients := float64(stormShape * 10)
	return result{
		Bench: "B5", System: system, Shape: w.shape.String(), PerCPUSecond: clients / node.Seconds(),
		PerSecond: clients / took.Seconds(), P99: millis(took), NodeCores: node.Seconds() / wall.Seconds(),
		StoreMicros: float64(store.Microseconds()) / clients, OtherCores: other.Seconds() / wall.Seconds(),
		Text: fmt.Sprintf("resident %d MB before, %d MB after: %.2f", resident>>10, residentAfter>>10,
			float64(residentAfter)/float64(resident)),
	}, nil
}
