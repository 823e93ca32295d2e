package redisdb

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// clusterPipelines decides what of a Cluster's pipelines is sent again, for go-redis 9.23 may run a
// command twice at the same moment: a batch that has a redirection and then loses its connection
// gets the redirected command two times into its next try, and two goroutines write the reply of
// one command (docs/decisions/0008-automatic-pipelining.md).
type clusterPipelines struct{ cluster *redis.ClusterClient }

// sentOnce is a command whose batch go-redis does not send again as a whole. It follows the
// redirections of single commands.
type sentOnce struct{ redis.Cmder }

func (sentOnce) NoRetry() bool { return true }

func (clusterPipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (clusterPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook sends a pipeline once. What has lost its master then is sent again one by
// one, in its order for each hash tag.
func (p clusterPipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "multi" {
			return next(ctx, commands)
		}
		once := make([]redis.Cmder, len(commands))
		for i, command := range commands {
			once[i] = sentOnce{command}
		}
		if next(ctx, once) == nil {
			return nil
		}
		p.sendLost(ctx, commands)
		for _, command := range commands {
			if err := command.Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

func (p clusterPipelines) sendLost(ctx context.Context, commands []redis.Cmder) {
	again := map[string][]redis.Cmder{} // by hash tag
	for _, command := range commands {
		tag := hashTag(firstKey(command))
		// A read behind a script that is sent again would show the time before it.
		readBehind := command.Name() == "hgetall" && len(again[tag]) > 0
		if readBehind || isLostOrRedirected(command.Err()) {
			again[tag] = append(again[tag], command)
		}
	}
	var sending sync.WaitGroup
	for _, lost := range again {
		sending.Go(func() {
			for _, command := range lost {
				_ = p.cluster.Process(ctx, command) // each command has its own error
			}
		})
	}
	sending.Wait()
}

// redirections are the first words of a server's errors that another server, or the same one a
// moment later, would not return.
var redirections = []string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING", "MASTERDOWN"}

// isLostOrRedirected reports whether another master may serve a request that failed here. It
// returns false for a timeout, because the request would only wait again.
func isLostOrRedirected(err error) bool {
	if err == nil {
		return false
	}
	var network *net.OpError
	if errors.As(err, &network) {
		return network.Op == "dial" || !network.Timeout()
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, redis.ErrClosed) ||
		slices.Contains(redirections, serverErrorWord(err))
}

// firstKey returns the first key of a command, "" for none. A wrong one costs a redirection.
func firstKey(command redis.Cmder) string {
	const ofScript, ofOthers = 3, 1
	args := command.Args()
	at := ofOthers
	if strings.HasPrefix(command.Name(), "eval") {
		at = ofScript
	}
	if len(args) <= at {
		return ""
	}
	switch key := args[at].(type) {
	case string:
		return key
	case *string:
		return *key
	}
	return ""
}

// hashTag returns the part of a key that decides its slot: all of it when it has no tag.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
