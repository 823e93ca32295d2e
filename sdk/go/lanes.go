package parlor

import (
	"context"
	"sync"
	"time"
)

// lanes run tasks: those of one key one after the other, those of several keys side by side.
type lanes struct {
	ctx   context.Context // of Run; when it ends, what waits is dropped
	slots chan struct{}   // one for each task that runs
	group sync.WaitGroup

	mu      sync.Mutex
	queues  map[string][]func() // of keys with a goroutine
	waiting int                 // tasks in queues
	onLow   func()              // called when waiting falls to half of maxWaitingTasks
}

// maxWaitingTasks bounds the events in memory. Beyond it, events are left to the service and read
// again later.
const maxWaitingTasks = 8192

func newLanes(ctx context.Context, parallel int, onLow func()) *lanes {
	return &lanes{ctx: ctx, slots: make(chan struct{}, parallel), queues: map[string][]func(){}, onLow: onLow}
}

// add queues a task behind those of its key.
func (l *lanes) add(key string, task func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue, isRunning := l.queues[key]
	l.queues[key] = append(queue, task)
	l.waiting++
	if !isRunning {
		l.group.Go(func() { l.run(key) })
	}
}

// isFull reports whether as many tasks wait as may.
func (l *lanes) isFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting >= maxWaitingTasks
}

// isLow reports whether events should come again.
func (l *lanes) isLow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting <= maxWaitingTasks/2
}

func (l *lanes) run(key string) {
	for {
		task := l.next(key)
		if task == nil {
			return
		}
		if l.takeSlot() {
			task()
			l.giveSlot()
		}
	}
}

func (l *lanes) next(key string) (task func()) {
	l.mu.Lock()
	queue := l.queues[key]
	if len(queue) == 0 {
		delete(l.queues, key)
		l.mu.Unlock()
		return nil
	}
	task, l.queues[key] = queue[0], queue[1:]
	l.waiting--
	isLow := l.waiting == maxWaitingTasks/2
	l.mu.Unlock()
	if isLow {
		l.onLow()
	}
	return task
}

// takeSlot reports whether the task may run.
func (l *lanes) takeSlot() bool {
	select {
	case <-l.ctx.Done():
		return false
	case l.slots <- struct{}{}:
	}
	if l.ctx.Err() != nil {
		l.giveSlot()
		return false
	}
	return true
}

func (l *lanes) giveSlot() { <-l.slots }

// pause lets other tasks run for a while. It reports whether the task may go on; when it may not,
// the slot is still the task's, for run gives it back.
func (l *lanes) pause(d time.Duration) bool {
	l.giveSlot()
	isDone := !sleep(l.ctx, d)
	l.slots <- struct{}{}
	return !isDone
}

func (l *lanes) wait() { l.group.Wait() }

// sleep waits. It reports false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
