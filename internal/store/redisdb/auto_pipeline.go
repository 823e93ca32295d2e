package redisdb

import (
	"context"
	"errors"
	"sync"

	"github.com/parlor-games/parlor/internal/base/storecost"
	"github.com/redis/go-redis/v9"
)

// AutoPipeline sends a command in one round trip with those of other requests that wait at the same
// moment. It is safe for concurrent use. A context that ends, ends the wait for the reply; the
// command may be executed all the same.
type AutoPipeline struct{ queue commandQueue }

// commandQueue sends commands in batches, in the order of their goroutine.
type commandQueue interface {
	Submit(ctx context.Context, command redis.Cmder) *batch
	// SubmitTwo is Submit of two commands of one hash tag, which are sent in one round trip.
	SubmitTwo(ctx context.Context, first, second redis.Cmder) *batch
	// SubmitPublication queues a message that nobody waits for. It returns an error if it does not.
	SubmitPublication(ctx context.Context, p *Publication) error
	close()
}

// maxQueuedCommands bounds the commands that wait for a store that hangs. Their callers would have
// given up before the commands are sent.
const maxQueuedCommands = 20_000

func newPipeline(client redis.UniversalClient) AutoPipeline {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return AutoPipeline{&clusterQueue{cluster: cluster, queues: map[string]*batchQueue{}}}
	}
	return AutoPipeline{&batchQueue{client: client}}
}

// clusterQueue has a queue for each master: one that hangs delays nobody but its own.
type clusterQueue struct {
	cluster *redis.ClusterClient

	mu     sync.Mutex
	queues map[string]*batchQueue // by the master's address; of one that has gone, too
	closed bool
}

func (q *clusterQueue) Submit(ctx context.Context, command redis.Cmder) *batch {
	return q.queueOf(ctx, command).Submit(ctx, command)
}

func (q *clusterQueue) SubmitTwo(ctx context.Context, first, second redis.Cmder) *batch {
	return q.queueOf(ctx, first).SubmitTwo(ctx, first, second)
}

func (q *clusterQueue) SubmitPublication(ctx context.Context, p *Publication) error {
	return q.queueOf(ctx, p.command).SubmitPublication(ctx, p)
}

func (q *clusterQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, queue := range q.queues {
		queue.close()
	}
}

// queueOf returns the queue of a command's master. It only keeps apart what waits for different
// masters: clusterPipelines finds the master again when the batch is sent.
func (q *clusterQueue) queueOf(ctx context.Context, command redis.Cmder) *batchQueue {
	address := "" // of a Cluster whose slots cannot be read
	if master, err := q.cluster.MasterForKey(ctx, firstKey(command)); err == nil {
		address = master.Options().Addr
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.queues[address]
	if queue == nil {
		queue = &batchQueue{client: q.cluster, closed: q.closed}
		q.queues[address] = queue
	}
	return queue
}

// EvalSha queues a run of a script that the server knows. The keys must not be changed afterwards.
func (p AutoPipeline) EvalSha(ctx context.Context, sha string, keys []string, args []any) Pending[any] {
	return p.queueScript(ctx, "evalsha", sha, keys, args)
}

// Eval queues a run of a script. The keys must not be changed afterwards.
func (p AutoPipeline) Eval(ctx context.Context, source string, keys []string, args []any) Pending[any] {
	return p.queueScript(ctx, "eval", source, keys, args)
}

func (p AutoPipeline) queueScript(
	ctx context.Context, name, script string, keys []string, args []any,
) Pending[any] {
	command := newScriptCommand(ctx, name, script, keys, args)
	storecost.Of(ctx).Add(storecost.ScriptCommands, 0)
	return Pending[any]{ctx, command, p.queue.Submit(ctx, command)}
}

// EvalShaThenHGetAll is EvalSha and HGetAll in one round trip.
func (p AutoPipeline) EvalShaThenHGetAll(
	ctx context.Context, sha string, keys []string, args []any, hash string,
) (Pending[any], Pending[[]string]) {
	return p.queueScriptThenHGetAll(ctx, newScriptCommand(ctx, "evalsha", sha, keys, args), hash)
}

// EvalThenHGetAll is Eval and HGetAll in one round trip.
func (p AutoPipeline) EvalThenHGetAll(
	ctx context.Context, source string, keys []string, args []any, hash string,
) (Pending[any], Pending[[]string]) {
	return p.queueScriptThenHGetAll(ctx, newScriptCommand(ctx, "eval", source, keys, args), hash)
}

func (p AutoPipeline) queueScriptThenHGetAll(
	ctx context.Context, run *redis.Cmd, hash string,
) (Pending[any], Pending[[]string]) {
	read := newHGetAll(ctx, hash)
	storecost.Of(ctx).Add(storecost.ScriptCommands+1, 0)
	sent := p.queue.SubmitTwo(ctx, run, read)
	return Pending[any]{ctx, run, sent}, Pending[[]string]{ctx, read, sent}
}

func newScriptCommand(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	const beforeKeys = 3
	line := make([]any, beforeKeys, beforeKeys+len(keys)+len(args))
	line[0], line[1], line[2] = name, script, len(keys)
	for i := range keys {
		line = append(line, &keys[i]) // a pointer is no allocation, as the text in an interface is
	}
	command := redis.NewCmd(ctx, append(line, args...)...)
	if len(keys) > 0 {
		command.SetFirstKeyPos(beforeKeys)
	}
	return command
}

// HGetAll queues the reading of a whole hash; the result is a Hash.
func (p AutoPipeline) HGetAll(ctx context.Context, key string) Pending[[]string] {
	command := newHGetAll(ctx, key)
	storecost.Of(ctx).Add(1, 0)
	return Pending[[]string]{ctx, command, p.queue.Submit(ctx, command)}
}

// HGet queues the reading of one field of a hash.
func (p AutoPipeline) HGet(ctx context.Context, key, field string) Pending[string] {
	command := redis.NewStringCmd(ctx, "hget", key, field)
	storecost.Of(ctx).Add(1, 0)
	return Pending[string]{ctx, command, p.queue.Submit(ctx, command)}
}

// HMGet queues the reading of some fields of a hash.
func (p AutoPipeline) HMGet(ctx context.Context, key string, fields ...string) Pending[[]any] {
	line := make([]any, 2, 2+len(fields))
	line[0], line[1] = "hmget", key
	for _, field := range fields {
		line = append(line, field)
	}
	command := redis.NewSliceCmd(ctx, line...)
	storecost.Of(ctx).Add(1, 0)
	return Pending[[]any]{ctx, command, p.queue.Submit(ctx, command)}
}

// Publication is a message on its way to a channel, which nobody waits for. It may be published
// again when Done was called without an error. After an error its memory must not be changed: it
// may still be sent.
type Publication struct {
	Channel string
	Message []byte
	// Done is called once with the error of the command, nil when the server has the message. The
	// commands behind it wait meanwhile, so it must not.
	Done func(error)

	command *redis.IntCmd // its result is the number of subscribers on the server
	line    [3]any
}

// MarshalBinary returns the message. go-redis calls it when it writes the command.
func (p *Publication) MarshalBinary() ([]byte, error) { return p.Message, nil }

// Receivers returns how many connections were subscribed to the channel. It may be called when Done
// was called without an error.
func (p *Publication) Receivers() int64 { return p.command.Val() }

// Publish queues a message to a channel. It shares a round trip with other queued commands. If
// Publish returns an error, the message is not queued and Done is not called.
func (db *DB) Publish(ctx context.Context, p *Publication) error {
	p.line = [...]any{db.PublishCommand, &p.Channel, p} // pointers are no allocations, as their values are
	// A command is not used again: on a Cluster it keeps the slot of its first channel.
	p.command = redis.NewIntCmd(context.Background(), p.line[:]...)
	p.command.SetFirstKeyPos(1) // a sharded command is routed by its channel
	return db.AutoPipelined.queue.SubmitPublication(ctx, p)
}

// Pending is a command that was queued. The zero value is not usable.
type Pending[T any] struct {
	ctx     context.Context // of the caller that queued it: it ends the wait
	command interface{ Result() (T, error) }
	batch   *batch
}

// Result waits for the reply and returns it. It returns the context's error when that ends first.
func (p Pending[T]) Result() (T, error) {
	if err := p.batch.WaitContext(p.ctx); err != nil {
		if ended := p.ctx.Err(); ended != nil && errors.Is(err, ended) {
			var none T
			return none, ended // the reply may be on its way: nothing of the command may be read
		}
	}
	value, err := p.command.Result()
	if u := storecost.Of(p.ctx); u != nil {
		u.Add(0, bytesOf(value))
	}
	return value, err
}
