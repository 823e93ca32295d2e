//go:build linux

package balancertest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Program returns the path of HAProxy: PARLOR_TEST_HAPROXY, or the one of this machine. Debian puts
// it into a folder that is not in every PATH.
func Program() string {
	if path := os.Getenv("PARLOR_TEST_HAPROXY"); path != "" {
		return path
	}
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// deployFolder returns the folder deploy/ of the repository.
func deployFolder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../deploy")
}

// Options are what a balancer stands in front of: up to three nodes, or a fleet.
type Options struct {
	Certificate string   // file with the certificate and the key, in PEM
	Nodes       []string // URLs
	Fleet       *Fleet
	Settings    []string // NAME=value of haproxy.cfg
}

// Balancer is a running HAProxy with deploy/haproxy.cfg, as compose.yaml runs it: a master that
// takes signals, and a worker.
type Balancer struct {
	*nodetest.Node        // as if it were a node; it can be called only
	Addr, Plain    string // host:port for TLS and without
	MetricsURL     string
	Folder         string // of certificates

	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}
	log  nodetest.LogBuffer
}

// Start runs a balancer until the test ends. It returns when all nodes are known to it.
func Start(t testing.TB, o Options) *Balancer {
	t.Helper()
	metrics := nodetest.FreeAddress(t)
	b := &Balancer{
		Addr: nodetest.FreeAddress(t), Plain: nodetest.FreeAddress(t), Folder: t.TempDir(),
		MetricsURL: "http://" + metrics + "/metrics",
		t:          t, done: make(chan struct{}),
	}
	b.Node = nodetest.Remote(t, "https://"+b.Addr)
	b.UseCertificate(o.Certificate)
	b.cmd = exec.Command(Program(), "-W", "-db", "-f", filepath.Join(deployFolder(), "haproxy.cfg"))
	b.cmd.Env = append(os.Environ(),
		"PARLOR_BIND="+b.Addr, "PARLOR_BIND_PLAIN="+b.Plain, "PARLOR_BIND_METRICS="+metrics,
		"PARLOR_CERTIFICATE="+b.Folder)
	var absent []string // servers that nobody is at
	if o.Fleet != nil {
		b.cmd.Env = append(b.cmd.Env, fmt.Sprintf("PARLOR_NODES=%s:%d", Name, o.Fleet.port+1),
			"PARLOR_RESOLVER="+o.Fleet.DNS.Addr)
		if members := o.Fleet.Members(); len(members) > 0 { // the system knows no name of the fleet
			first := netip.AddrPortFrom(members[0].Address, o.Fleet.port+1)
			b.cmd.Env = append(b.cmd.Env, "PARLOR_FIRST_NODE="+first.String())
		}
	} else {
		for i := range 3 {
			addr := ""
			if i < len(o.Nodes) {
				addr = strings.TrimPrefix(o.Nodes[i], "http://")
			} else {
				addr = nodetest.ReserveAddress(t)
				absent = append(absent, fmt.Sprintf("nodes/node%d is DOWN", i+1))
			}
			b.cmd.Env = append(b.cmd.Env, fmt.Sprintf("PARLOR_NODE%d=%s", i+1, addr))
		}
	}
	b.cmd.Env = append(b.cmd.Env, o.Settings...)
	b.cmd.Stdout, b.cmd.Stderr = &b.log, &b.log
	testkit.Check(t, nodetest.StartProcess(b.cmd, b.done), "start haproxy")
	t.Cleanup(func() {
		_ = b.cmd.Process.Signal(syscall.SIGTERM) // to the master, which ends its workers
		<-b.done
		if t.Failed() {
			t.Logf("log of haproxy:\n%s", b.log.String())
		}
	})
	redistest.Eventually(t, "the balancer listens", func() bool {
		b.failIfEnded()
		conn, err := net.Dial("tcp", b.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	// Until its first check HAProxy takes an address for a node, and ends the requests that it sent
	// there when the check has failed.
	for _, line := range absent {
		redistest.Eventually(t, "the balancer has noticed where nobody is", func() bool {
			return strings.Contains(b.log.String(), line)
		})
	}
	if o.Fleet != nil {
		b.WaitServers(o.Fleet.Size())
	}
	return b
}

func (b *Balancer) failIfEnded() {
	b.t.Helper()
	select {
	case <-b.done:
		b.t.Fatalf("haproxy ended:\n%s", b.log.String())
	default:
	}
}

// Log returns what HAProxy has printed so far.
func (b *Balancer) Log() string { return b.log.String() }

// UseCertificate puts a certificate into the folder. HAProxy reads it at a reload.
func (b *Balancer) UseCertificate(file string) {
	b.t.Helper()
	pem, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.Folder, ".next"), pem, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(b.Folder, ".next"), filepath.Join(b.Folder, "tls.pem"))
	}
	testkit.Check(b.t, err)
}

// Reload makes HAProxy read its files again. It returns when a new worker has been started, or the
// files were rejected.
func (b *Balancer) Reload() {
	b.t.Helper()
	before := len(reloaded.FindAllString(b.Log(), -1))
	testkit.Check(b.t, b.cmd.Process.Signal(syscall.SIGHUP))
	redistest.Eventually(b.t, "the balancer has read its files", func() bool {
		return len(reloaded.FindAllString(b.Log(), -1)) > before
	})
}

var reloaded = regexp.MustCompile(`(?:New|Initializing new) worker \(\d+\)|Fatal errors found in configuration`)

// Servers returns how many nodes the balancer sends requests to.
func (b *Balancer) Servers() (count int) {
	for _, value := range b.metrics("haproxy_backend_active_servers{proxy=\"nodes\"") {
		count += int(value)
	}
	return count
}

// WaitServers waits until the balancer sends requests to so many nodes.
func (b *Balancer) WaitServers(count int) {
	b.t.Helper()
	redistest.Eventually(b.t, fmt.Sprintf("the balancer uses %d nodes", count), func() bool {
		b.failIfEnded()
		return b.Servers() == count
	})
}
