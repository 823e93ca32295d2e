package redisdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// AutoPipeline sends a command in one round trip with those of other requests that wait at the same
// moment. It is safe for concurrent use. A context that ends, ends the wait for the reply; the
// command may be executed all the same.
type AutoPipeline struct{ queue commandQueue }

// commandQueue sends commands in batches, in the order of their goroutine.
type commandQueue interface {
	Submit(ctx context.Context, command redis.Cmder) futureReply
	// SubmitTwo is Submit of two commands for one server, which are sent in one round trip.
	SubmitTwo(ctx context.Context, first, second redis.Cmder) (futureReply, futureReply)
}

// futureReply ends its wait without an error when the reply is there, an error of the store
// included, or when the context ends.
type futureReply interface {
	WaitContext(ctx context.Context) error
}

// maxQueuedCommands bounds what waits for a store that hangs. Those who queued it have gone by the
// time it would be sent.
const maxQueuedCommands = 20_000

func newPipeline(client redis.UniversalClient) (AutoPipeline, error) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return newClusterPipeline(cluster)
	}
	return AutoPipeline{&batchQueue{client: client}}, nil
}

// newClusterPipeline returns the auto-pipeliner of go-redis, which queues for each shard of a
// Cluster: a master that hangs delays nobody but its own.
func newClusterPipeline(client *redis.ClusterClient) (AutoPipeline, error) {
	options := redis.DefaultAutoPipelineOptions()
	options.MaxQueuedCommands = maxQueuedCommands
	pipeliner, err := client.AsyncAutoPipelineWithOptions(options)
	if err != nil {
		return AutoPipeline{}, fmt.Errorf("start the auto-pipeliner: %w", err)
	}
	return AutoPipeline{clusterQueue{pipeliner}}, nil
}

type clusterQueue struct{ *redis.AutoPipeliner }

func (q clusterQueue) Submit(ctx context.Context, command redis.Cmder) futureReply {
	return q.AutoPipeliner.Submit(ctx, command)
}

// SubmitTwo relies on the pipeliner to wait a moment for a second command.
func (q clusterQueue) SubmitTwo(ctx context.Context, first, second redis.Cmder) (futureReply, futureReply) {
	return q.Submit(ctx, first), q.Submit(ctx, second)
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
	first, second := p.queue.SubmitTwo(ctx, run, read)
	return Pending[any]{ctx, run, first}, Pending[[]string]{ctx, read, second}
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
func (p AutoPipeline) publish(ctx context.Context, name, channel, message string) Pending[int64] {
	command := redis.NewIntCmd(ctx, name, channel, message)
	command.SetFirstKeyPos(1)
	return Pending[int64]{ctx, command, p.queue.Submit(ctx, command)}
}

// Publish queues a message to a channel, for one round trip with what others have queued. The
// result is the number of subscribers on the server that got it.
func (db *DB) Publish(ctx context.Context, channel, message string) Pending[int64] {
	return db.AutoPipelined.publish(ctx, db.PublishCommand, channel, message)
}

// Pending is a command that was queued. The zero value is not usable.
type Pending[T any] struct {
	ctx     context.Context // of the caller that queued it: it ends the wait
	command interface{ Result() (T, error) }
	future  futureReply
}

// Result waits for the reply and returns it. It returns the context's error when that ends first.
func (p Pending[T]) Result() (T, error) {
	if err := p.future.WaitContext(p.ctx); err != nil {
		if ended := p.ctx.Err(); ended != nil && errors.Is(err, ended) {
			var none T
			return none, ended // the reply may be on its way: nothing of the command may be read
		}
	}
	return p.command.Result()
}
