package auth_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/dialguard/dialguardtest"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

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

func TestANameThatResolvesToThisMachineIsNotConnectedTo(t *testing.T) {
	l := listen(t, func(conn net.Conn) { _ = conn.Close() })
	fetch := func(allowLoopback bool, host string) error {
		dialer := &net.Dialer{Resolver: dialguardtest.ResolverTo(func() string { return "127.0.0.1" })}
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
