//go:build linux

package balancertest

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/net/dns/dnsmessage"
)

// Name is the name under which DNS publishes the addresses of nodes.
const Name = "node.parlor.test"

// DNS is a name server with the addresses of one name, as that of Docker has those of a service.
type DNS struct {
	Addr string // host:port, UDP

	mu        sync.Mutex
	addresses []netip.Addr
}

// StartDNS starts a name server that stops when the test ends.
func StartDNS(t testing.TB) *DNS {
	t.Helper()
	conn := testkit.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	d := &DNS{Addr: conn.LocalAddr().String()}
	var ended sync.WaitGroup
	ended.Go(func() { d.serve(conn) })
	t.Cleanup(func() { _ = conn.Close(); ended.Wait() })
	return d
}

// Publish adds an address.
func (d *DNS) Publish(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses = append(d.addresses, a)
}

// Withdraw removes an address.
func (d *DNS) Withdraw(a netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses = slices.DeleteFunc(d.addresses, func(b netip.Addr) bool { return a == b })
}

func (d *DNS) serve(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply, err := d.reply(buffer[:n]); err == nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// reply returns the addresses to a question for A, and an empty list to any other.
func (d *DNS) reply(query []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil, err
	}
	question, err := parser.Question()
	if err != nil {
		return nil, err
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired,
			RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	if question.Type == dnsmessage.TypeA {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, a := range d.addresses {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET},
				Body:   &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return reply.Pack()
}
