//go:build !unix

package main

// openFileLimit reports that the system has no limit of open files.
func openFileLimit() (limit uint64, known bool) { return 0, false }
