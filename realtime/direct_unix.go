//go:build unix

package realtime

import "syscall"

// hasSocketFiles is set where a socket is a file that is written and read without waiting.
const hasSocketFiles = true

func writeFile(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }

func readFile(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
