package redistest

import (
	"errors"
	"os"
	"os/exec"
)

// EndWithParent does nothing: Windows ends no process with its parent.
func EndWithParent(*exec.Cmd) {}

// PauseProcess returns an error: Windows stops no process.
func PauseProcess(*os.Process) error { return errors.ErrUnsupported }

// ResumeProcess returns an error, as PauseProcess does.
func ResumeProcess(*os.Process) error { return errors.ErrUnsupported }
