//go:build linux

package balancertest

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/tests/testkit"
)

func TestPlainHTTPIsRedirectedToThePortOfHTTPS(t *testing.T) {
	for port, want := range map[string]string{
		"443": "https://play.example/a?b=c", "8443": "https://play.example:8443/a?b=c",
	} {
		front := Start(t, Options{Certificate: Certificates.Both, Settings: []string{"PARLOR_HTTPS_PORT=" + port}})
		conn := testkit.Must(net.Dial("tcp", front.Plain))(t)
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "GET /a?b=c HTTP/1.1\r\nHost: play.example:8080\r\n\r\n")
		response := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		_ = response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != http.StatusPermanentRedirect || to != want {
			t.Errorf("with the port %s plain HTTP returns %s to %q; want %q", port, response.Status, to, want)
		}
	}
}

// Browsers open connections before they need them.
func TestAConnectionThatIsNeverUsedEndsWithoutAWord(t *testing.T) {
	front := Start(t, Options{Certificate: Certificates.Both})
	conn := testkit.Must(tls.Dial("tcp", front.Addr, &tls.Config{MinVersion: tls.VersionTLS12}))(t)
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if text, err := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("it gets %q, %v", text, err)
	}
}

func TestTheLimitOfConnectionsFollowsFromOneNumber(t *testing.T) {
	front := Start(t, Options{Certificate: Certificates.Both, Settings: []string{"PARLOR_MAX_SOCKETS=160"}})
	var open, rejected int
	for range 170 {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", front.Addr,
			&tls.Config{MinVersion: tls.VersionTLS12})
		switch {
		case err == nil:
			defer func() { _ = conn.Close() }()
			open++
		case strings.Contains(err.Error(), "timeout"):
			t.Fatalf("connection %d waits: %v", open, err)
		default:
			rejected++
		}
	}
	if open < 145 || open > 150 || rejected < 20 {
		t.Errorf("%d connections were taken and %d rejected, of a limit of 150", open, rejected)
	}
}
