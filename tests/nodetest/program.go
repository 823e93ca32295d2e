package nodetest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/tests/testkit"
)

// Run starts a program that is no node, such as a load balancer, and ends it with the test. Its
// output is logged if the test fails.
func Run(t testing.TB, c *exec.Cmd) *os.Process {
	t.Helper()
	output, ended := &LogBuffer{}, make(chan struct{})
	c.Stdout, c.Stderr = output, output
	testkit.Check(t, StartProcess(c, ended), "start %s", c.Path)
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // a program with processes of its own ends them
		killed := time.AfterFunc(startTimeout, func() { _ = c.Process.Kill() })
		defer killed.Stop()
		<-ended
		if t.Failed() {
			t.Logf("output of %s:\n%s", c.Path, output.String())
		}
	})
	return c.Process
}
