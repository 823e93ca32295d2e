package main

import "golang.org/x/sys/windows"

// errAddressTaken is the error of a listener whose address another process has. Windows never
// returns syscall.EADDRINUSE.
const errAddressTaken = windows.WSAEADDRINUSE
