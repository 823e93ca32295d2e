package redisdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// confirmTimeout is how long a batch of writes waits for its replicas.
const confirmTimeout = 500 * time.Millisecond

var errUnconfirmed = errors.New("no replica confirmed the write in time")

// replicaConfirmation sends scripts on connections of its own, each batch with a WAIT behind it.
// Reads of other requests do not wait there.
type replicaConfirmation struct {
	client    redis.UniversalClient
	pipeline  AutoPipeline
	confirmed atomic.Int64
	missed    atomic.Int64
}

// RequireReplicas makes every script that changes something return only when so many replicas have
// the change, and outcome_unknown when they do not have it in time. Call it once, before the store
// is used.
func (db *DB) RequireReplicas(count int) {
	client := db.newClient()
	addHooks(client)
	r := &replicaConfirmation{client: client}
	switch client := client.(type) {
	case *redis.ClusterClient:
		// A replica confirms what its own master wrote: each master's part of a batch gets a WAIT.
		client.OnNewNode(func(master *redis.Client) { master.AddHook(confirmHook{r, master, count}) })
	case *redis.Client:
		client.AddHook(confirmHook{r, client, count})
	}
	r.pipeline = newPipeline(client)
	db.replicas = r
}

// Confirmations returns how many batches of writes the required replicas have confirmed, and how
// many they have not, since the start.
func (db *DB) Confirmations() (confirmed, missed int64) {
	if db.replicas == nil {
		return 0, 0
	}
	return db.replicas.confirmed.Load(), db.replicas.missed.Load()
}

// needsConfirmation reports whether replicas must confirm the writes of a script. The header of a
// script that needs none says why.
func needsConfirmation(s *scripts.Script) bool {
	return s.Unconfirmed == "" && s.Writes()
}

// pipelineOf returns where a script is queued.
func (db *DB) pipelineOf(s *scripts.Script) AutoPipeline {
	if db.replicas != nil && needsConfirmation(s) {
		return db.replicas.pipeline
	}
	return db.AutoPipelined
}

// clientOf returns the client that runs pipelines of a script.
func (db *DB) clientOf(s *scripts.Script) redis.UniversalClient {
	if db.replicas != nil && needsConfirmation(s) {
		return db.replicas.client
	}
	return db.Client
}

// confirmHook appends a write and a WAIT to each pipeline to one server. WAIT covers only the
// writes of its own connection; from Redis 7.2 on, only those up to the last command that wrote
// something. A repeated request may write nothing although its result has not reached a replica
// yet. The added write comes after all commands of the batch, so WAIT covers the result too.
type confirmHook struct {
	of       *replicaConfirmation
	server   *redis.Client
	replicas int
}

func (confirmHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook makes a pipeline of a script that go-redis sends alone.
func (h confirmHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if tagOfBatch([]redis.Cmder{command}) == "" {
			return next(ctx, command)
		}
		_, _ = h.server.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Process(ctx, command) })
		return command.Err()
	}
}

func (h confirmHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		// What go-redis sends again to another master has the commands of the first try.
		commands = slices.DeleteFunc(slices.Clone(commands), isOwnCommand)
		if len(commands) == 0 { // all of them have their replies, and go-redis panics without a command
			return nil
		}
		tag := tagOfBatch(commands)
		if tag == "" {
			return next(ctx, commands)
		}
		write := probeWrite{redis.NewCmd(ctx, "eval", scripts.ProbeWrite.Source, 1, keys.Probe(tag),
			probeKeyTTL.Milliseconds())}
		write.SetFirstKeyPos(3)
		wait := waitCommand{redis.NewIntCmd(ctx, "wait", h.replicas, confirmTimeout.Milliseconds())}
		err := next(ctx, append(slices.Clip(commands), write, wait))
		if write.Err() == nil && wait.Err() == nil && wait.Val() >= int64(h.replicas) {
			h.of.confirmed.Add(1)
			return err
		}
		h.of.missed.Add(1)
		for _, command := range commands {
			if command.Err() == nil {
				command.SetErr(errUnconfirmed)
			}
		}
		return err
	}
}

// probeWrite and waitCommand are what the hook adds.
type (
	probeWrite  struct{ *redis.Cmd }
	waitCommand struct{ *redis.IntCmd }
)

func isOwnCommand(command redis.Cmder) bool {
	switch command.(type) {
	case probeWrite, waitCommand:
		return true
	}
	return false
}

// tagOfBatch returns the hash tag of the first script in a batch, "" for a batch without one.
func tagOfBatch(commands []redis.Cmder) string {
	for _, command := range commands {
		if key := firstKey(command); key != "" && strings.HasPrefix(command.Name(), "eval") {
			return hashTag(key)
		}
	}
	return ""
}
