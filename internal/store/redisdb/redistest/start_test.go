package redistest

import (
	"net"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// Between the choice of a port and the start of the server others may take the port.
func TestAServerStartsThoughItsPortIsTaken(t *testing.T) {
	taken := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	s := &Server{Dir: t.TempDir(), Socket: t.TempDir() + "/redis.sock"}
	tries := 0
	testkit.Check(t, s.startOnFreePort(func(free string) []string {
		if tries++; tries == 1 {
			free = port
		}
		return []string{"--port", free, "--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", s.Dir}
	}))
	t.Cleanup(s.Remove)
	if tries != 2 || strings.HasSuffix(s.Addr, ":"+port) {
		t.Errorf("%d tries, at %s", tries, s.Addr)
	}
}
