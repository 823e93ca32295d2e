package redisdb

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// batchQueue sends commands to one server, or to one master of a Cluster. One batch is under way at
// a time; commands queued meanwhile form the next one. Measured side by side with the
// auto-pipeliner of go-redis, whose queue wakes a goroutine for each command and sets a timer for
// each batch: a cycle of requests cost the node a tenth less CPU
// (docs/decisions/0008-automatic-pipelining.md).
type batchQueue struct {
	client   redis.UniversalClient
	pipeline redis.Pipeliner // of the client, for all batches; owned by send

	mu      sync.Mutex
	batches []*batch      // not sent yet; only the last one may grow
	queued  int           // commands in batches
	sending bool          // run sends, or is about to
	wakeup  chan struct{} // for run; nil: it does not run
	closed  bool
}

// batch is a list of commands that are sent in one write.
type batch struct {
	commands     []redis.Cmder
	done         chan struct{}  // closed when each command has its reply or its error
	publications []*Publication // among the commands, in their order
}

// maxBatchCommands bounds a batch, so that the commands queued during an outage are not all sent
// together.
const maxBatchCommands = 1_000

// Submit queues a command. It has redis.ErrAutoPipelineQueueFull as its result when
// maxQueuedCommands wait already.
func (q *batchQueue) Submit(_ context.Context, command redis.Cmder) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.lastBatch(1)
	if b == nil {
		command.SetErr(redis.ErrAutoPipelineQueueFull)
		return sentBatch
	}
	b.commands = append(b.commands, command)
	q.start()
	return b
}

// SubmitTwo queues two commands in one batch.
func (q *batchQueue) SubmitTwo(_ context.Context, first, second redis.Cmder) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.lastBatch(2)
	if b == nil {
		first.SetErr(redis.ErrAutoPipelineQueueFull)
		second.SetErr(redis.ErrAutoPipelineQueueFull)
		return sentBatch
	}
	b.commands = append(b.commands, first, second)
	q.start()
	return b
}

// SubmitPublication queues a message. Its Done is called when there is a reply.
func (q *batchQueue) SubmitPublication(_ context.Context, p *Publication) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.lastBatch(1)
	if b == nil {
		return redis.ErrAutoPipelineQueueFull
	}
	b.commands, b.publications = append(b.commands, p.command), append(b.publications, p)
	q.start()
	return nil
}

// lastBatch returns the batch for some more commands, which it counts; nil when the queue is full.
func (q *batchQueue) lastBatch(commands int) *batch {
	if q.queued+commands > maxQueuedCommands {
		return nil
	}
	q.queued += commands
	if last := len(q.batches) - 1; last >= 0 && len(q.batches[last].commands)+commands <= maxBatchCommands {
		return q.batches[last]
	}
	b := &batch{done: make(chan struct{})}
	q.batches = append(q.batches, b)
	return b
}

// start makes run send. batchQueue.mu must be held.
func (q *batchQueue) start() {
	switch {
	case q.sending:
		return
	case q.closed:
		go q.send() // the client says that it is closed
	case q.wakeup == nil:
		q.wakeup = make(chan struct{}, 1)
		go q.run(q.wakeup)
		fallthrough
	default:
		q.wakeup <- struct{}{} // there is room: run takes it before sending is false again
	}
	q.sending = true
}

// run sends the queued commands until the queue is closed. A goroutine for each burst of commands
// would grow its stack each time, and while garbage is collected each would first mark 64 KiB for
// what it allocates.
func (q *batchQueue) run(wakeup <-chan struct{}) {
	for range wakeup {
		q.send()
	}
}

// close ends run when it has sent what is queued.
func (q *batchQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && q.wakeup != nil {
		close(q.wakeup)
	}
	q.closed = true
}

// send sends batches until none is left. It has no context, because a queued command may be sent
// after its caller gave up. timeLimit ends each batch.
func (q *batchQueue) send() {
	ctx := context.Background()
	if q.pipeline == nil {
		q.pipeline = q.client.Pipeline()
	}
	for b := q.take(); b != nil; b = q.take() {
		_ = q.pipeline.BatchProcess(ctx, b.commands...) // queues them
		_, _ = q.pipeline.Exec(ctx)                     // each command has its own error
		close(b.done)
		for _, p := range b.publications {
			p.Done(p.command.Err())
		}
	}
}

// take returns the next batch, nil when there is none: send ends then.
func (q *batchQueue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		q.sending = false
		return nil
	}
	b := q.batches[0]
	q.batches = slices.Delete(q.batches, 0, 1)
	q.queued -= len(b.commands)
	return b
}

// WaitContext returns nil when the batch was sent and read, or the context's error.
func (b *batch) WaitContext(ctx context.Context) error {
	select {
	case <-b.done: // costs a fraction of a select of two channels
		return nil
	default:
	}
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sentBatch is the batch of commands that are not sent.
var sentBatch = func() *batch {
	b := &batch{done: make(chan struct{})}
	close(b.done)
	return b
}()
