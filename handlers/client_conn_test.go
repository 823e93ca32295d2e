package handlers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/tests/testkit"
)

// serveClients serves with handlers.Serve, as a node does, and returns the address.
func serveClients(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	handlers.SetConnContext(server)
	go func() { ended <- handlers.Serve(server, listener) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return listener.Addr().String()
}

func dialClient(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn := testkit.Must(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn.(*net.TCPConn)
}

// rawPost returns a POST of a player as it is on the wire.
func rawPost(p player, path, body string, headers ...string) string {
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n",
		path, p.token)
	for _, header := range headers {
		text += header + "\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
}

// Only a read ends when its client goes away, so only then net/http has to watch the connection.
func TestTheConnectionIsWatchedOnlyForReads(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	room := f.createRoom(ann)
	for _, c := range []struct {
		name, request string
		isWatched     bool
	}{
		{"a change", rawPost(ann, "/api/v1/game-session/join", roomBody(room)), false},
		{"a read", "GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + ann.token + "\r\n\r\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone, noticed := make(chan struct{}), make(chan bool, 1)
			address := serveClients(t, func(w http.ResponseWriter, r *http.Request) {
				<-gone
				f.server.ServeHTTP(w, r)
				ctx := r.Context()
				if c.isWatched {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 20*time.Second)
					defer cancel()
					<-ctx.Done()
				}
				noticed <- r.Context().Err() != nil
			})
			conn := dialClient(t, address)
			testkit.Must(io.WriteString(conn, c.request))(t)
			testkit.Check(t, conn.CloseWrite())
			close(gone)
			if got := <-noticed; got != c.isWatched {
				t.Errorf("net/http noticed that the client has gone: %t; want %t", got, c.isWatched)
			}
			if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				t.Error(err)
			} else if !c.isWatched && response.StatusCode != http.StatusOK {
				t.Errorf("returns %d", response.StatusCode)
			}
		})
	}
}

// What a client sends behind a change, before it has the response, belongs to its next request.
func TestRequestsOfOneConnectionAreAnsweredInTheirOrder(t *testing.T) {
	f := newGameFixture(t)
	ann := f.guest("Ann")
	room := f.createRoom(ann)
	conn := dialClient(t, serveClients(t, f.server.ServeHTTP))
	chunked := fmt.Sprintf("POST /api/v1/game-session/join HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nX-Request-Id: chunks\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"1\r\n{\r\n%x\r\n%s\r\n0\r\n\r\n", ann.token, len(roomBody(room))-1, roomBody(room)[1:])
	// The last byte of a buffer of net/http, 4,096 bytes, is in turn each part of a request.
	var requests strings.Builder
	var ids []string
	for i := range 60 {
		id := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i))
		requests.WriteString(rawPost(ann, "/api/v1/game-session/join", roomBody(room), "X-Request-Id: "+id))
		requests.WriteString(chunked)
		ids = append(ids, id, "chunks")
	}
	go func() { _, _ = io.WriteString(conn, requests.String()) }()
	reader := bufio.NewReader(conn)
	for _, id := range ids {
		response := testkit.Must(http.ReadResponse(reader, nil))(t, "%s", id)
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("X-Request-Id") != id {
			t.Fatalf("%s returns %d %v %s, %v", id, response.StatusCode, response.Header, body, err)
		}
	}
}
