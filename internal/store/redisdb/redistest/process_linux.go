package redistest

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes a process that is not started yet end with the thread that starts it.
func EndWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
