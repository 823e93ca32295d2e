//go:build unix

package main

import "syscall"

// openFileLimit returns how many files this process may have open, and whether the system has such
// a limit. Go has raised the soft limit to the hard one.
func openFileLimit() (limit uint64, known bool) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, false
	}
	return uint64(l.Cur), true
}
