//go:build linux

package balancertest

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// Gate is a way to a store that is closed at first: connections are accepted and hear nothing until
// it is opened.
type Gate struct {
	URL string // of the store, through the gate

	opened chan struct{}
	once   sync.Once
}

// NewGate returns a closed gate in front of a store of redistest.
func NewGate(t testing.TB, redisURL string) *Gate {
	t.Helper()
	dir := testkit.Must(os.MkdirTemp("", "gate-"))(t) // short: the path of a socket has few bytes
	socket := filepath.Join(dir, "s")
	l := testkit.Must(net.Listen("unix", socket))(t)
	g := &Gate{URL: "unix://" + socket, opened: make(chan struct{})}
	ended := make(chan struct{})
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { g.carry(client, strings.TrimPrefix(redisURL, "unix://"), ended) })
		}
	})
	t.Cleanup(func() { close(ended); _ = l.Close(); connections.Wait(); _ = os.RemoveAll(dir) })
	return g
}

// Open lets everything through.
func (g *Gate) Open() { g.once.Do(func() { close(g.opened) }) }

func (g *Gate) carry(client net.Conn, socket string, ended <-chan struct{}) {
	defer func() { _ = client.Close() }()
	select {
	case <-g.opened:
	case <-ended:
		return
	}
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() { _, _ = io.Copy(way[0], way[1]); done <- struct{}{} }()
	}
	select {
	case <-done:
	case <-ended:
	}
}
