//go:build linux

package balancertest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// Fleet is nodes on addresses of their own with the same port, published under one name. It is safe
// for concurrent use.
type Fleet struct {
	DNS *DNS

	t        testing.TB
	redisURL string
	network  [2]byte // the nodes are at 127.x.y.1, .2, …
	port     uint16  // and the next one opens when the node is ready

	mu       sync.Mutex
	settings []string
	program  string // "" for the one of this repository
	isOlder  bool   // it has no PARLOR_READY_LISTEN, and serves at that port at once
	next     byte
	members  []*Member
}

// Member is one node of a fleet.
type Member struct {
	*nodetest.Node
	Address netip.Addr
}

// NewFleet returns a fleet without nodes, on a store. Settings are NAME=value.
func NewFleet(t testing.TB, redisURL string, settings ...string) *Fleet {
	t.Helper()
	f := &Fleet{DNS: StartDNS(t), t: t, redisURL: redisURL, settings: settings}
	for range 100 {
		f.network = [2]byte{byte(2 + rand.IntN(250)), byte(1 + rand.IntN(250))}
		f.port = uint16(10_000 + rand.IntN(20_000)) // below those that the system gives to clients
		l, err := net.Listen("tcp", netip.AddrPortFrom(f.address(1), f.port).String())
		if err == nil {
			_ = l.Close()
			return f
		}
	}
	t.Fatal("no address is free")
	return nil
}

func (f *Fleet) address(n byte) netip.Addr {
	return netip.AddrFrom4([4]byte{127, f.network[0], f.network[1], n})
}

// Set changes the settings of the nodes that are added later.
func (f *Fleet) Set(settings ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings = settings
}

// SetProgram changes the binary of the nodes that are added later, for example to another version.
func (f *Fleet) SetProgram(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.program, f.isOlder = path, false
}

// SetOlderProgram is SetProgram with a release that does not know PARLOR_READY_LISTEN: it serves
// where the balancer expects nodes, also before it is ready.
func (f *Fleet) SetOlderProgram(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.program, f.isOlder = path, true
}

// Members returns the nodes that run, in the order in which they were added.
func (f *Fleet) Members() []*Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// Size returns how many nodes run.
func (f *Fleet) Size() int { return len(f.Members()) }

// Add is AddUnready that waits until the node can serve.
func (f *Fleet) Add(more ...string) *Member {
	f.t.Helper()
	m := f.AddUnready(more...)
	m.WaitReady(200)
	return m
}

// AddUnready publishes an address and starts a node there, with settings that it alone has. It
// returns when the node listens.
func (f *Fleet) AddUnready(more ...string) *Member {
	f.t.Helper()
	return f.StartAt(f.PublishAddress(), more...)
}

// PublishAddress publishes an address at which nobody listens yet.
func (f *Fleet) PublishAddress() netip.Addr {
	a := f.ReserveAddress()
	f.DNS.Publish(a)
	return a
}

// ReserveAddress returns an address for a node, without publishing it.
func (f *Fleet) ReserveAddress() netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	return f.address(f.next)
}

// StartAt starts a node at an address, with settings that it alone has. It returns when the node
// listens.
func (f *Fleet) StartAt(a netip.Addr, more ...string) *Member {
	f.t.Helper()
	return testkit.Must(f.tryStartAt(a, more...))(f.t)
}

// tryStartAt is StartAt that returns an error when the node ends instead of listening.
func (f *Fleet) tryStartAt(a netip.Addr, more ...string) (*Member, error) {
	f.mu.Lock()
	ready := netip.AddrPortFrom(a, f.port+1).String()
	listen := []string{"PARLOR_LISTEN=" + netip.AddrPortFrom(a, f.port).String(), "PARLOR_READY_LISTEN=" + ready}
	if f.isOlder {
		listen = []string{"PARLOR_LISTEN=" + ready}
	}
	settings := slices.Concat(listen, []string{
		"PARLOR_RATE_LIMITS=off",
		"PARLOR_TRUSTED_PROXIES=127.0.0.0/8",
	}, f.settings, more)
	program := cmp.Or(f.program, nodetest.Binary(f.t))
	f.mu.Unlock()
	node, err := nodetest.StartProgram(f.t, program, f.redisURL, settings...)
	m := &Member{Address: a, Node: node}
	if err != nil {
		return m, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, m)
	return m, nil
}

// Stop drains a node by SIGTERM, waits for its end, withdraws its address, and returns the exit
// status.
func (f *Fleet) Stop(m *Member) int {
	status := m.Terminate()
	f.remove(m)
	return status
}

// Kill ends a node at once and withdraws its address.
func (f *Fleet) Kill(m *Member) {
	m.Node.Kill()
	f.remove(m)
}

func (f *Fleet) remove(m *Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.DNS.Withdraw(m.Address)
	f.members = slices.DeleteFunc(f.members, func(other *Member) bool { return m == other })
}

// StartOnDisk starts a store that writes to disk before it replies.
func StartOnDisk(t testing.TB) *redistest.Server {
	t.Helper()
	return redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
}

func (m *Member) String() string { return fmt.Sprintf("node at %s", m.Address) }
