//go:build unix

package main

import (
	"os"
	"syscall"
)

// lockFile locks a file, or returns an error when another process has locked it. The system unlocks
// the file when the process ends, even if it is killed.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
