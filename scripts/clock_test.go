package scripts_test

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/store/storeclock"
	"github.com/parlor-games/parlor/scripts"
)

// Every script that takes the time of the node changes nothing when the store's time is another
// one, earlier or later: with the calls of all examples in which it else does something.
func TestAScriptThatEndsByTimeChangesNothingWhileTheClocksDiffer(t *testing.T) {
	refused := map[*scripts.Script]int{}
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for i, e := range examples {
			if !(call{script: e.script}).hasArg("node_ms") || e.status != scripts.OK {
				continue
			}
			f := newFixture(t, db)
			apart := storeclock.MaxSkew + time.Second
			if i%2 == 0 {
				apart = -apart
			}
			c := e.prepare(f).with(values{"node_ms": time.Now().Add(apart).UnixMilli()})
			before := c.snapshot()
			if reply := c.run(); reply.IsSkewed() {
				refused[e.script]++
				if diff := before.Diff(c.snapshot()); diff != "" {
					t.Errorf("%s, %s, changed\n%s", e.script.Name, e.name, diff)
				}
			}
		}
	})
	for name, s := range scripts.All() {
		if (call{script: s}).hasArg("node_ms") && refused[s] == 0 {
			t.Errorf("%s takes the time of the node and does not compare it", name)
		}
	}
}

// The scripts have the same bound as the node.
func TestTheBoundOfTheScriptsIsThatOfTheNode(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for apart, isSkewed := range map[time.Duration]bool{
		storeclock.MaxSkew - time.Second: false, time.Second - storeclock.MaxSkew: false,
		storeclock.MaxSkew + time.Second: true, -time.Second - storeclock.MaxSkew: true,
	} {
		reply := f.newCall(scripts.PresenceClaim, values{
			"lease": "none", "node_ms": time.Now().Add(apart).UnixMilli(),
		}).run()
		if reply.IsSkewed() != isSkewed {
			t.Errorf("%v apart: the reply is %v", apart, reply)
		}
	}
}
