//go:build linux

package story

import (
	"net"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A node that systemd starts says when it serves, reads its settings again and stops, as a service
// of the type notify must.
func TestANodeNotifiesSystemd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	socket := testkit.Must(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}))(t)
	defer func() { _ = socket.Close() }()
	wantNotice := func(want string) {
		t.Helper()
		message := make([]byte, 1<<10)
		_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := socket.Read(message)
		if err != nil || !regexp.MustCompile("^"+want+"$").Match(message[:n]) {
			t.Errorf("the node says %q, %v; want %q", message[:n], err, want)
		}
	}
	store := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	node := nodetest.Start(t, store.URL(), "NOTIFY_SOCKET="+name)
	wantNotice("READY=1")
	testkit.Check(t, syscall.Kill(node.Pid(), syscall.SIGHUP))
	wantNotice(`RELOADING=1\nMONOTONIC_USEC=\d+\n`)
	wantNotice("READY=1")
	if status := node.Terminate(); status != 0 {
		t.Errorf("the terminated node exits with %d", status)
	}
	wantNotice("STOPPING=1")
}
