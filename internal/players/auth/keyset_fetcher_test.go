package auth_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestKeySetsAreFetchedFromPublicAddressesOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "172.32.0.1": true, "192.169.0.1": true, "100.128.0.1": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001::1": true,

		"127.0.0.1": false, "127.8.8.8": false, "::1": false, // loopback
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, // link-local, with the data of clouds
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, // private
		"100.64.0.1": false, "100.127.255.255": false, // behind a provider's translation
		"fc00::1": false, "fd12:3456::1": false, "fec0::1": false, // local to a site
		"224.0.0.1": false, "239.1.1.1": false, "ff02::1": false, // multicast
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "3fff::1": false, // documents
		"0.0.0.0": false, "0.1.2.3": false, "::": false, "255.255.255.255": false, "240.0.0.1": false,
		"192.0.0.8": false, "198.18.0.1": false, "192.88.99.1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, // IPv4 as IPv6
		"::ffff:1.1.1.1":  true,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:0:1::": false, "::127.0.0.1": false, // translated
	} {
		if got := auth.IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}

// listener counts the connections that reach it.
type listener struct {
	net.Listener
	accepted atomic.Int32
}

// listen starts a listener on loopback that handles each connection.
func listen(t *testing.T, handle func(net.Conn)) *listener {
	t.Helper()
	inner := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &listener{Listener: inner}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			l.accepted.Add(1)
			go handle(conn)
		}
	}()
	return l
}

func (l *listener) port() string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// resolverTo returns a resolver for which every name has one IPv4 address.
func resolverTo(address string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerNames(server, netip.MustParseAddr(address))
		return client, nil
	}}
}

// answerNames serves the questions on a connection (RFC 1035, 4.2.2): every IPv4 address is the one
// given, and there is nothing else.
func answerNames(conn net.Conn, address netip.Addr) {
	defer func() { _ = conn.Close() }()
	const header, typeA = 12, 1
	for {
		length := make([]byte, 2)
		if _, err := io.ReadFull(conn, length); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		end := header
		for query[end] != 0 {
			end += 1 + int(query[end])
		}
		kind := binary.BigEndian.Uint16(query[end+1:])
		reply := append([]byte{}, query[:end+5]...)
		reply[2], reply[3] = 0x81, 0x80 // a response without an error
		copy(reply[6:header], make([]byte, header-6))
		if kind == typeA {
			reply[7] = 1
			reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4) // the name of the question
			reply = append(reply, address.AsSlice()...)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func TestANameThatResolvesToThisMachineIsNotConnectedTo(t *testing.T) {
	l := listen(t, func(conn net.Conn) { _ = conn.Close() })
	fetch := func(allowLoopback bool, host string) error {
		dialer := &net.Dialer{Resolver: resolverTo("127.0.0.1")}
		return auth.FetchKeySet(t.Context(), dialer, allowLoopback, 100*time.Millisecond, "https://"+host+":"+l.port()+"/")
	}
	for _, host := range []string{"keys.example", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "localhost"} {
		if err := fetch(false, host); err == nil || l.accepted.Load() != 0 {
			t.Fatalf("%s: %d connections, %v", host, l.accepted.Load(), err)
		}
	}
	_ = fetch(true, "keys.example")
	redistest.Eventually(t, "in development this machine is connected to", func() bool { return l.accepted.Load() == 1 })
}

func TestEveryFailedFetchTakesTheSameTime(t *testing.T) {
	const timeout = 400 * time.Millisecond
	closed := listen(t, func(net.Conn) {})
	_ = closed.Close()
	httpReply := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, text)
		}
	}
	for name, l := range map[string]*listener{
		"closed":   closed,
		"hangs up": listen(t, func(conn net.Conn) { _ = conn.Close() }),
		"silent":   listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }),
		"404":      listen(t, httpReply("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")),
		"no keys":  listen(t, httpReply("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")),
	} {
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				err := auth.FetchKeySet(t.Context(), &net.Dialer{}, true, timeout, scheme+"://127.0.0.1:"+l.port()+"/")
				if took := time.Since(began); err == nil || took < timeout || took > timeout+2*time.Second {
					t.Errorf("took %v: %v", took, err)
				}
			})
		}
	}
	t.Run("not public", func(t *testing.T) {
		t.Parallel()
		began := time.Now()
		err := auth.FetchKeySet(t.Context(), &net.Dialer{}, false, timeout, "https://169.254.169.254/latest/meta-data/")
		if took := time.Since(began); err == nil || took < timeout {
			t.Errorf("took %v: %v", took, err)
		}
	})
}

func TestAnIssuerOnThisMachineIsForDevelopmentOnly(t *testing.T) {
	f, p := open(t, redistest.Single(t), auth.Options{SigningKeys: [][]byte{signingKey}}), newProvider(t)
	f.SetKeySetTimeout(100 * time.Millisecond)
	p.accept(t, f, "/keys")
	_, err := f.Authenticate(t.Context(), p.token(t, "ed", nil))
	if err == nil || p.fetches.Load() != 0 {
		t.Errorf("%d fetches, %v", p.fetches.Load(), err)
	}
}
