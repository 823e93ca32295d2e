//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// PauseProcess stops a process without ending it.
func PauseProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// ResumeProcess continues a process that PauseProcess has stopped.
func ResumeProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
