package nodetest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// ReserveAddress returns an address that refuses connections until the test ends: its port is
// bound, so that no other server gets it, and nobody listens.
func ReserveAddress(t testing.TB) string {
	t.Helper()
	socket := testkit.Must(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	testkit.Check(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name := testkit.Must(syscall.Getsockname(socket))(t)
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}
