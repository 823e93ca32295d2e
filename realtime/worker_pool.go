package realtime

import (
	"sync"
	"time"
)

// workerPool runs short tasks on goroutines that it keeps for the next task: a new goroutine would
// grow its stack anew for every message. The worker that became idle last gets the next task, so
// that the others can end.
type workerPool struct {
	mu      sync.Mutex
	idle    []*poolWorker // the one that became idle last is the last
	stopped bool
	group   sync.WaitGroup
}

type poolWorker struct {
	tasks     chan func() // closed to end it
	idleSince time.Time   // under workerPool.mu
}

// workerIdleTime is how long a worker without a task lives.
const workerIdleTime = 10 * time.Second

// start runs a task on a worker.
func (p *workerPool) start(task func()) {
	p.mu.Lock()
	var w *poolWorker
	if last := len(p.idle) - 1; last >= 0 {
		w, p.idle[last] = p.idle[last], nil
		p.idle = p.idle[:last]
	}
	p.mu.Unlock()
	if w == nil {
		w = &poolWorker{tasks: make(chan func(), 1)}
		p.group.Go(func() { p.run(w) })
	}
	w.tasks <- task
}

func (p *workerPool) run(w *poolWorker) {
	for task := range w.tasks {
		task()
		p.mu.Lock()
		if p.stopped {
			p.mu.Unlock()
			return
		}
		w.idleSince = time.Now()
		p.idle = append(p.idle, w)
		p.mu.Unlock()
	}
}

// endIdle ends the workers without a task since before.
func (p *workerPool) endIdle(before time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && p.idle[n].idleSince.Before(before) {
		close(p.idle[n].tasks)
		n++
	}
	clear(p.idle[copy(p.idle, p.idle[n:]):])
	p.idle = p.idle[:len(p.idle)-n]
}

// stop ends each worker after its task. No task may be started afterwards.
func (p *workerPool) stop() {
	p.mu.Lock()
	p.stopped = true
	for _, w := range p.idle {
		close(w.tasks)
	}
	p.idle = nil
	p.mu.Unlock()
	p.group.Wait()
}
