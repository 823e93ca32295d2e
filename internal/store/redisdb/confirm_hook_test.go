package redisdb

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A connection of a Cluster may end between the reply of a script and that of the WAIT behind it.
// Then go-redis sends again what has no reply, which is nothing of the caller's.
func TestABatchOfOwnCommandsIsNotSentAgain(t *testing.T) {
	sent := 0
	hook := confirmHook{of: &replicaConfirmation{}, replicas: 1}.ProcessPipelineHook(
		func(context.Context, []redis.Cmder) error { sent++; return nil })
	for name, commands := range map[string][]redis.Cmder{
		"the write and the wait": {
			probeWrite{redis.NewCmd(t.Context(), "eval")}, waitCommand{redis.NewIntCmd(t.Context(), "wait")},
		},
		"the wait": {waitCommand{redis.NewIntCmd(t.Context(), "wait")}},
	} {
		if err := hook(t.Context(), commands); err != nil || sent != 0 {
			t.Errorf("%s: %v, sent %d times", name, err, sent)
		}
	}
}
