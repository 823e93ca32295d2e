package versions

import (
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

var long = flag.Bool("long", false, "roll up and down for an hour, instead of once")

// settings are those of the nodes of a crowd.
var settings = []string{
	"PARLOR_RATE_LIMITS=off", "PARLOR_DRAIN_DELAY=0s", "PARLOR_DRAIN_TIMEOUT=10s", "PARLOR_ACCESS_TTL=1h",
}

// installation is nodes of two releases on one store.
type installation struct {
	t     *testing.T
	store string
	to    *balancer
	nodes []*nodetest.Node
}

func (in *installation) start(program string) *nodetest.Node {
	in.t.Helper()
	n := testkit.Must(nodetest.StartProgram(in.t, program, in.store, settings...))(in.t)
	n.WaitReady(200)
	return n
}

// replace puts a node of a program in the place of the oldest one, as a roll does.
func (in *installation) replace(program string) {
	in.t.Helper()
	in.nodes = append(in.nodes, in.start(program))
	in.to.set(in.nodes...)
	began := time.Now()
	old := in.nodes[0]
	in.nodes = in.nodes[1:]
	in.to.set(in.nodes...) // waits for the calls that are under way
	if status := old.Terminate(); status != 0 {
		in.t.Errorf("a node ended with %d:\n%s", status, old.Log())
	}
	in.t.Logf("a node drained within %v", time.Since(began).Round(time.Millisecond))
}

// tool runs a command of a program on the store.
func (in *installation) tool(program string, args ...string) (status int, printed string) {
	in.t.Helper()
	c := exec.Command(program, append(args, "--redis-url", in.store)...)
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		in.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func startStore(t *testing.T) string {
	t.Helper()
	return redistest.StartForTest(t, "--appendonly", "yes").URL()
}

// TestTwoReleasesShareAStoreUpAndDown rolls from the release before to this one and back, while
// players play on both at once: each call of a player is on another node.
func TestTwoReleasesShareAStoreUpAndDown(t *testing.T) {
	t.Parallel()
	older := nodetest.PreviousRelease(t)
	this := nodetest.Binary(t)
	in := &installation{t: t, store: startStore(t), to: &balancer{}}
	for range 2 {
		in.nodes = append(in.nodes, in.start(older.Program))
	}
	in.to.set(in.nodes...)
	c := startCrowd(t, in.to, older)
	began := time.Now()
	for isFirst := true; isFirst || *long && time.Since(began) < time.Hour; isFirst = false {
		for _, program := range []string{this, this, older.Program, older.Program} {
			c.play(3)
			in.replace(program)
		}
		in.replace(this) // the last word is that of a mixed installation
		c.play(3)
		in.replace(older.Program)
	}
	c.end()
	c.finishWaiting()
	c.mustBeClean()
	if status, out := in.tool(this, "audit", "--deep"); status != 0 || !strings.HasSuffix(out, "\nbalanced\n") {
		t.Errorf("audit --deep exits %d:\n%s", status, out)
	}
}

// TestTheNextReleaseSharesAStoreUntilTheUpgradeIsFinished has nodes of this release beside some
// that read one layout more.
func TestTheNextReleaseSharesAStoreUntilTheUpgradeIsFinished(t *testing.T) {
	t.Parallel()
	newest := redisdb.NewestLayout()
	this, next := nodetest.Binary(t), nodetest.NextRelease(t, newest, newest+1)
	in := &installation{t: t, store: startStore(t), to: &balancer{}}
	in.nodes = []*nodetest.Node{in.start(this), in.start(this)}
	in.to.set(in.nodes...)
	c := startCrowd(t, in.to, nodetest.Release{Version: "this release", Sources: "../.."})
	in.replace(next)
	c.play(3)
	want := func(status int, text string, args ...string) {
		t.Helper()
		if got, out := in.tool(next, args...); got != status || !strings.Contains(out, text) {
			t.Errorf("%v exits %d:\n%swant %d and %q", args, got, out, status, text)
		}
	}
	want(1, "upgrade or stop them first", "upgrade", "check")
	want(1, fmt.Sprintf("reads up to layout %d", newest), "upgrade", "check")
	want(1, "upgrade or stop them first", "upgrade", "finish")
	in.replace(next)
	c.play(3)
	want(0, fmt.Sprintf("raises the layout to %d", newest+1), "upgrade", "check")
	want(0, fmt.Sprintf("the store has layout %d, before %d", newest+1, newest), "upgrade", "finish")
	want(1, "there is nothing to finish", "upgrade", "finish")
	c.play(3) // both write the next layout now
	c.end()
	c.finishWaiting()
	c.mustBeClean()

	late, err := nodetest.StartProgram(t, this, in.store, settings...)
	if err == nil {
		if status := late.Wait(); status != config.ExitStatus {
			t.Errorf("a node of this release ends with %d", status)
		}
	}
	if late.HasEnded() && !strings.Contains(late.Log(), "run the release that raised it, or a newer one") {
		t.Errorf("a node of this release says:\n%s", late.Log())
	}
	if !late.HasEnded() || late.Wait() != config.ExitStatus {
		t.Errorf("a node of this release starts on a store of the next")
	}
	if status, out := in.tool(next, "audit", "--deep"); status != 0 || !strings.HasSuffix(out, "\nbalanced\n") {
		t.Errorf("audit --deep exits %d:\n%s", status, out)
	}
}
