package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// ErrorProxy passes commands to a server, or replies with an error to those that a test chooses.
type ErrorProxy struct {
	listener net.Listener
	injected atomic.Pointer[injectedError]
	running  sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool
}

type injectedError struct {
	text    string
	applies func(command string) bool
}

// StartErrorProxy starts a proxy of a server. It ends with the test.
func StartErrorProxy(t testing.TB, server *Server) *ErrorProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &ErrorProxy{listener: listener, conns: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(client, server.Socket) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for conn := range p.conns {
			_ = conn.Close()
		}
		p.conns = nil
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

// URL returns the address for redisdb.Open.
func (p *ErrorProxy) URL() string { return "redis://" + p.listener.Addr().String() }

// Refuse returns an error instead of the reply to each command, in lower case, for which applies
// is true. The server does not get these commands. A text of "" ends that.
func (p *ErrorProxy) Refuse(text string, applies func(command string) bool) {
	if text == "" {
		p.injected.Store(nil)
		return
	}
	p.injected.Store(&injectedError{text, applies})
}

// IsScript reports whether a command runs a script.
func IsScript(command string) bool { return strings.HasPrefix(command, "eval") }

// keep remembers a connection until it ends; false when the proxy has ended.
func (p *ErrorProxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *ErrorProxy) serve(client net.Conn, socket string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !p.keep(client) || !p.keep(server) {
		return
	}
	fromClient, fromServer := bufio.NewReader(client), bufio.NewReader(server)
	for {
		raw, command, err := readCommand(fromClient)
		if err != nil {
			return
		}
		if r := p.injected.Load(); r != nil && r.applies(command) {
			if _, err := fmt.Fprintf(client, "-%s\r\n", r.text); err != nil {
				return
			}
			continue
		}
		if _, err := server.Write(raw); err != nil {
			return
		}
		if strings.Contains(command, "subscribe") { // what follows is no longer one reply for each command
			p.running.Go(func() { _, _ = io.Copy(client, fromServer); _ = client.Close() })
			_, _ = io.Copy(server, fromClient)
			return
		}
		reply, err := readValue(fromServer)
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// readCommand returns the bytes of a command and its name in lower case.
func readCommand(r *bufio.Reader) (raw []byte, name string, err error) {
	if raw, err = readValue(r); err != nil {
		return nil, "", err
	}
	parts := bytes.SplitN(raw, []byte("\r\n"), 4) // *n, $length, name
	if len(parts) < 4 {
		return raw, "", nil
	}
	return raw, strings.ToLower(string(parts[2])), nil
}

// readValue returns the bytes of one value of RESP2.
func readValue(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	count, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch {
	case line[0] == '$' && count >= 0:
		body := make([]byte, count+2)
		_, err = io.ReadFull(r, body)
		return append(line, body...), err
	case line[0] == '*':
		for range count {
			item, err := readValue(r)
			if err != nil {
				return nil, err
			}
			line = append(line, item...)
		}
	}
	return line, nil
}
