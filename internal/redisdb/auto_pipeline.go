package redisdb

import (
	"context"
	"errors"
	"sync"

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
}

// maxQueuedCommands bounds what waits for a store that hangs. Those who queued it have gone by the
// time it would be sent.
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
	queues map[string]*batchQueue // by the master's address
}

func (q *clusterQueue) Submit(ctx context.Context, command redis.Cmder) *batch {
	return q.queueOf(ctx, command).Submit(ctx, command)
}

func (q *clusterQueue) SubmitTwo(ctx context.Context, first, second redis.Cmder) *batch {
	return q.queueOf(ctx, first).SubmitTwo(ctx, first, second)
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
		queue = &batchQueue{client: q.cluster}
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
	return Pending[[]string]{ctx, command, p.queue.Submit(ctx, command)}
}

// HGet queues the reading of one field of a hash.
func (p AutoPipeline) HGet(ctx context.Context, key, field string) Pending[string] {
	command := redis.NewStringCmd(ctx, "hget", key, field)
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
	return Pending[[]any]{ctx, command, p.queue.Submit(ctx, command)}
}

// publish queues a message to a channel. A sharded command is routed by its channel.
func (p AutoPipeline) publish(ctx context.Context, name, channel string, message []byte) Pending[int64] {
	command := redis.NewIntCmd(ctx, name, channel, message)
	command.SetFirstKeyPos(1)
	return Pending[int64]{ctx, command, p.queue.Submit(ctx, command)}
}

// Publish queues a message to a channel, for one round trip with what others have queued. The
// result is the number of subscribers on the server that got it. The message must not be changed
// before there is a result, and not after an error either: it may be sent later.
func (db *DB) Publish(ctx context.Context, channel string, message []byte) Pending[int64] {
	return db.AutoPipelined.publish(ctx, db.PublishCommand, channel, message)
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
	return p.command.Result()
}
