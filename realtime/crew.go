package realtime

import (
	"sync"
	"time"
)

// crew runs short tasks on goroutines that it keeps for the next task: a new goroutine would grow
// its stack anew for every message. Whoever was idle last gets the next task, so that the others
// can end.
type crew struct {
	mu      sync.Mutex
	idle    []*crewMember // the one that was busy last is the last
	stopped bool
	group   sync.WaitGroup
}

type crewMember struct {
	tasks     chan func() // closed to end it
	idleSince time.Time   // under crew.mu
}

// crewIdleTime is after what time without a task a goroutine ends.
const crewIdleTime = 10 * time.Second

// start runs a task on a goroutine of the crew.
func (w *crew) start(task func()) {
	w.mu.Lock()
	var member *crewMember
	if last := len(w.idle) - 1; last >= 0 {
		member, w.idle[last] = w.idle[last], nil
		w.idle = w.idle[:last]
	}
	w.mu.Unlock()
	if member == nil {
		member = &crewMember{tasks: make(chan func(), 1)}
		w.group.Go(func() { w.run(member) })
	}
	member.tasks <- task
}

func (w *crew) run(member *crewMember) {
	for task := range member.tasks {
		task()
		w.mu.Lock()
		if w.stopped {
			w.mu.Unlock()
			return
		}
		member.idleSince = time.Now()
		w.idle = append(w.idle, member)
		w.mu.Unlock()
	}
}

// endIdle ends the goroutines that had no task since before.
func (w *crew) endIdle(before time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.idle) && w.idle[n].idleSince.Before(before) {
		close(w.idle[n].tasks)
		n++
	}
	clear(w.idle[copy(w.idle, w.idle[n:]):])
	w.idle = w.idle[:len(w.idle)-n]
}

// stop ends all goroutines when they have done their task. No task may be started afterwards.
func (w *crew) stop() {
	w.mu.Lock()
	w.stopped = true
	for _, member := range w.idle {
		close(member.tasks)
	}
	w.idle = nil
	w.mu.Unlock()
	w.group.Wait()
}
