package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// filesOfNode are the files that a node reads its settings from.
type filesOfNode struct {
	t      *testing.T
	folder string
}

func (f filesOfNode) write(name, text string) {
	f.t.Helper()
	testkit.Check(f.t, os.WriteFile(filepath.Join(f.folder, name), []byte(text), 0o600))
}

// environ returns the variables that name the files.
func (f filesOfNode) environ() []string {
	return []string{
		"PARLOR_CONFIG=" + filepath.Join(f.folder, "settings.yaml"),
		"PARLOR_ADMIN_KEY=", "PARLOR_ADMIN_KEY_FILE=" + filepath.Join(f.folder, "admin"),
		"PARLOR_SIGNING_KEY=", "PARLOR_SIGNING_KEY_FILE=" + filepath.Join(f.folder, "signing"),
		"PARLOR_REDIS_URL=", "PARLOR_REDIS_URL_FILE=" + filepath.Join(f.folder, "redis"),
	}
}

// reload sends SIGHUP and waits until the log has a text so many times.
func reload(t *testing.T, n *nodetest.Node, text string, times int) {
	t.Helper()
	n.Signal(syscall.SIGHUP)
	redistest.Eventually(t, "the log says "+text, func() bool {
		return n.HasEnded() || strings.Count(n.Log(), text) >= times
	})
	if n.HasEnded() {
		t.Fatalf("the node ended:\n%s", n.Log())
	}
}

func TestSIGHUPReadsSecretsAndSettingsAgain(t *testing.T) {
	t.Parallel()
	const newAdmin, newSigning = "admin-key-of-the-reload-19b7c3d5e0aa", "signing-key-of-the-reload-40c2aa81d7"
	store := redistest.StartForTest(t, "--appendonly", "yes", "--user", "parlor", "on", ">before", "~*", "&*", "+@all")
	f := filesOfNode{t, t.TempDir()}
	redisURL := func(password string) string { return "unix://parlor:" + password + "@" + store.Socket }
	f.write("settings.yaml", "log-level: info\nrate-limits: on\nroom-retention: 24h\n")
	f.write("admin", nodetest.AdminKey)
	f.write("signing", nodetest.SigningKey)
	f.write("redis", redisURL("before"))
	n := nodetest.Start(t, "", f.environ()...)

	game := n.Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Reload"})
	guest := n.Must(t, 201, "POST", "/api/v1/auth/guest", "", map[string]any{
		"gameId": wire.RawJSON(fmt.Sprint(game.Body["game"].(map[string]any)["id"])),
	})
	token, refresh := guest.Body["accessToken"].(string), guest.Body["refreshToken"].(string)
	socket, err := n.Dial(t.Context(), "/api/v1/realtime", token)
	testkit.Check(t, err)
	defer func() { _ = socket.Close() }()

	// A fault in any of them, and nothing changes.
	f.write("admin", newAdmin+",short")
	f.write("signing", newSigning)
	f.write("settings.yaml", "log-level: loud\n")
	reload(t, n, "the reload changed nothing", 2)
	if log := n.Log(); !strings.Contains(log, "PARLOR_ADMIN_KEY") || !strings.Contains(log, "PARLOR_LOG_LEVEL") {
		t.Errorf("the log does not name each fault:\n%s", log)
	}
	n.Must(t, 200, "GET", "/api/v1/admin/games", nodetest.AdminKey, nil)
	n.Must(t, 401, "GET", "/api/v1/admin/games", newAdmin, nil)

	// A password that the store refuses is one.
	f.write("admin", nodetest.AdminKey+","+newAdmin)
	f.write("signing", nodetest.SigningKey+","+newSigning)
	f.write("settings.yaml", "log-level: info\nrate-limits: on\nroom-retention: 24h\n")
	f.write("redis", redisURL("wrong"))
	reload(t, n, "the store does not accept it", 1)
	n.Must(t, 401, "GET", "/api/v1/admin/games", newAdmin, nil)

	// All of them at once, in steps as docs/deployment.md has them.
	admin := redistest.Dial(t, store)
	redisOK := func(args ...any) {
		t.Helper()
		testkit.Check(t, admin.Do(t.Context(), args...).Err())
	}
	redisOK("ACL", "SETUSER", "parlor", ">after")
	f.write("redis", redisURL("after"))
	f.write("settings.yaml", "log-level: debug\nrate-limits: off\nroom-retention: 48h\n")
	reload(t, n, "msg=reloaded", 1)
	for _, name := range []string{"REDIS_URL", "ADMIN_KEY", "SIGNING_KEY", "LOG_LEVEL", "RATE_LIMITS"} {
		if !strings.Contains(lineWith(n.Log(), "msg=reloaded"), "PARLOR_"+name) {
			t.Errorf("%s was not changed", name)
		}
	}
	reload(t, n, "msg=reloaded", 2)
	if line := lineWith(n.Log(), "at its start only"); !strings.Contains(line, "PARLOR_ROOM_RETENTION") {
		t.Errorf("the log does not say that the time of rooms needs a restart:\n%s", n.Log())
	}
	n.Must(t, 200, "GET", "/api/v1/admin/games", newAdmin, nil)
	n.Must(t, 200, "GET", "/api/v1/me", token, nil)
	redisOK("ACL", "SETUSER", "parlor", "<before")
	redisOK("CLIENT", "KILL", "USER", "parlor")
	redistest.Eventually(t, "the node is back by the new password", func() bool {
		r, err := n.Do(t.Context(), "GET", "/api/v1/me", token, nil)
		return err == nil && r.Status == http.StatusOK
	})

	// The old keys go, with what they signed: the socket ends and the client refreshes.
	f.write("admin", newAdmin)
	f.write("signing", newSigning)
	reload(t, n, "msg=reloaded", 3)
	for err == nil {
		_, _, err = socket.ReadMessage()
	}
	if !strings.Contains(err.Error(), "4001") {
		t.Errorf("the socket ended with %v", err)
	}
	n.Must(t, 401, "GET", "/api/v1/admin/games", nodetest.AdminKey, nil)
	n.Must(t, 401, "GET", "/api/v1/me", token, nil)
	r := n.Must(t, 200, "POST", "/api/v1/auth/refresh", "", map[string]any{"refreshToken": refresh})
	n.Must(t, 200, "GET", "/api/v1/me", r.Body["accessToken"].(string), nil)
}

// lineWith returns the first line of a log with a text.
func lineWith(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

func TestADrainLogsItsProgressAndASecondSignalEndsIt(t *testing.T) {
	t.Parallel()
	n := nodetest.Start(t, redistest.StartForTest(t, "--appendonly", "yes").URL(), "PARLOR_DRAIN_DELAY=1m")
	for _, text := range []string{"msg=draining delay=1m0s", "msg=draining sockets=0"} {
		if text == "msg=draining delay=1m0s" {
			n.Signal(syscall.SIGTERM)
		}
		redistest.Eventually(t, "the log has "+text, func() bool { return strings.Contains(n.Log(), text) })
	}
	if status := n.Terminate(); status == 0 {
		t.Errorf("a node that was ended at once exits with %d:\n%s", status, n.Log())
	}
}

// A ticket that a player shows to a node whose sockets are closing is good for the next node.
func TestANodeThatClosesItsSocketsRedeemsNoTicket(t *testing.T) {
	t.Parallel()
	store := redistest.StartForTest(t, "--appendonly", "yes").URL()
	leaving := nodetest.Start(t, store, "PARLOR_DRAIN_DELAY=0s", "PARLOR_DRAIN_TIMEOUT=30s")
	staying := nodetest.Start(t, store)
	game := leaving.Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Drain"})
	guest := leaving.Must(t, 201, "POST", "/api/v1/auth/guest", "", map[string]any{
		"gameId": wire.RawJSON(fmt.Sprint(game.Body["game"].(map[string]any)["id"])),
	})
	token := guest.Body["accessToken"].(string)
	ticket := leaving.Must(t, 200, "POST", "/api/v1/auth/ticket", token, nil).Body["ticket"].(string)
	dial := func(n *nodetest.Node, path, bearer string) *websocket.Conn {
		t.Helper()
		socket := testkit.Must(n.Dial(t.Context(), path, bearer))(t)
		t.Cleanup(func() { _ = socket.Close() })
		return socket
	}
	var socket *websocket.Conn
	for range 5 { // the last of them closes within two seconds
		socket = dial(leaving, "/api/v1/realtime", token)
	}
	leaving.Signal(syscall.SIGTERM)
	for frame := []byte(nil); !bytes.Contains(frame, []byte("server.draining")); {
		_, frame = testkit.Must2(socket.ReadMessage())(t)
	}
	if _, err := leaving.Dial(t.Context(), "/api/v1/realtime?ticket="+ticket, ""); err == nil {
		t.Error("the node opens a socket while it closes the others")
	}
	dial(staying, "/api/v1/realtime?ticket="+ticket, "")
}

func TestServeNeedsAsManyOpenFilesAsItMayHaveSockets(t *testing.T) {
	limit, known := openFileLimit()
	if !known || limit > 400_000 {
		t.Skipf("this process may open %d files", limit)
	}
	setRequired(t, "redis://127.0.0.1:1")
	t.Setenv("PARLOR_MAX_SOCKETS", "500000")
	status, _, stderr := command(t, "serve")
	if status != 78 || !strings.Contains(stderr, "PARLOR_MAX_SOCKETS: 500000 needs 500500 open files") ||
		!strings.Contains(stderr, "LimitNOFILE=") {
		t.Errorf("exits %d:\n%s", status, stderr)
	}
}
