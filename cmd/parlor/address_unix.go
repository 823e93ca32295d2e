//go:build unix

package main

import "syscall"

// errAddressTaken is the error of a listener whose address another process has.
const errAddressTaken = syscall.EADDRINUSE
