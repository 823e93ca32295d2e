// Package nodetest runs Parlor nodes as processes of their own, for tests that send requests over
// HTTP, kill a node, or stop its store. It is for tests only.
package nodetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/base/wire/wiretest"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// AdminKey is the operator's key of every node that this package starts.
const AdminKey = "operator-key-of-the-tests-3f9c1d7ab2"

// SigningKey signs the access tokens of every node that this package starts.
const SigningKey = "signing-key-of-the-tests-5b8e20c49d71"

var binaryBuild struct {
	once sync.Once
	path string
	err  error
}

// Binary builds parlor once for the test binary and returns its path. It has the race detector when
// the tests have it. `make test` builds that one for all packages, and names it in NODETEST_BIN:
// nodes do not take variables with PARLOR_ that they do not know.
func Binary(t testing.TB) string {
	t.Helper()
	if built := os.Getenv("NODETEST_BIN"); raceEnabled && built != "" {
		return built
	}
	binaryBuild.once.Do(func() {
		dir, err := os.MkdirTemp("", "parlor-bin-")
		if err != nil {
			binaryBuild.err = err
			return
		}
		binaryBuild.path = filepath.Join(dir, "parlor")
		args := []string{"build", "-o", binaryBuild.path}
		if raceEnabled {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "github.com/parlor-games/parlor/cmd/parlor")...).CombinedOutput()
		if err != nil {
			binaryBuild.err = fmt.Errorf("build parlor: %w\n%s", err, out)
		}
	})
	if binaryBuild.err != nil {
		t.Fatal(binaryBuild.err)
	}
	return binaryBuild.path
}

// Main runs the tests and removes the binary.
func Main(m *testing.M) int {
	// Started by nohup, the tests ignore SIGHUP, and the nodes that they start would too.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	code := m.Run()
	if binaryBuild.path != "" {
		_ = os.RemoveAll(filepath.Dir(binaryBuild.path))
	}
	return code
}

// Node is one running node.
type Node struct {
	URL         string // public address: http://127.0.0.1:…
	InternalURL string // metrics and profiling

	cmd    *exec.Cmd
	done   chan struct{}
	output LogBuffer
	t      testing.TB
}

// Start runs `parlor serve` on a store, with further settings as NAME=value, and waits until it is
// ready. The node is killed when the test ends.
func Start(t testing.TB, redisURL string, settings ...string) *Node {
	t.Helper()
	n := StartWithoutStore(t, redisURL, settings...)
	n.WaitReady(http.StatusOK)
	return n
}

// StartWithoutStore is Start that waits until the node listens only.
func StartWithoutStore(t testing.TB, redisURL string, settings ...string) *Node {
	t.Helper()
	return testkit.Must(StartProgram(t, Binary(t), redisURL, settings...))(t)
}

// StartProgram is StartWithoutStore with another binary. It returns an error when the node ends
// instead of listening.
func StartProgram(t testing.TB, bin, redisURL string, settings ...string) (*Node, error) {
	n := &Node{t: t, done: make(chan struct{})}
	n.cmd = exec.Command(bin, "serve")
	n.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(),
		"PARLOR_LISTEN=127.0.0.1:0", "PARLOR_INTERNAL_LISTEN=127.0.0.1:0", "PARLOR_REDIS_URL=" + redisURL,
		"PARLOR_ADMIN_KEY=" + AdminKey, "PARLOR_SIGNING_KEY=" + SigningKey, "PARLOR_LOG=text",
	}, settings...)
	n.cmd.Stdout, n.cmd.Stderr = &n.output, &n.output
	if err := StartProcess(n.cmd, n.done); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("log of the node at %s:\n%s", n.URL, n.output.String())
		}
		if strings.Contains(n.output.String(), "DATA RACE") {
			t.Errorf("the node at %s had a data race:\n%s", n.URL, n.output.String())
		}
	})
	return n, n.waitServing()
}

// StartProcess starts a command that is killed when the tests end in any way, and closes done when
// it has ended.
func StartProcess(cmd *exec.Cmd, done chan<- struct{}) error {
	redistest.EndWithParent(cmd)
	started := make(chan error)
	// The parent-death signal is sent when the thread that started the process ends: this goroutine
	// keeps the thread.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(done)
	}()
	return <-started
}

// servingLine has the addresses of a node, in text or in JSON.
var servingLine = regexp.MustCompile(`msg"?[=:]"?serving\W+listen\W+([0-9.:]+)\W+internal\W+([0-9.:]+)`)

const startTimeout = 30 * time.Second // far longer than a start takes on a busy machine

// waitServing waits until the log has the ports that the node took. A port found free before the
// start might be taken by another process in between.
func (n *Node) waitServing() error {
	ended := false
	err := redistest.Poll(startTimeout, func() error {
		if m := servingLine.FindStringSubmatch(n.output.String()); m != nil {
			n.URL, n.InternalURL = "http://"+m[1], "http://"+m[2]
			return nil
		}
		if ended = n.HasEnded(); ended {
			return nil
		}
		return errors.New("it does not serve")
	})
	if ended {
		err = errors.New("the node ended")
	}
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, n.output.String())
	}
	return nil
}

// Remote returns a node that another process runs, or a load balancer. It can only be called.
func Remote(t testing.TB, url string) *Node { return &Node{URL: url, t: t, done: make(chan struct{})} }

// WaitReady waits until /readyz returns the status.
func (n *Node) WaitReady(status int) {
	n.t.Helper()
	err := redistest.Poll(startTimeout, func() error {
		n.failIfEnded()
		response, err := http.Get(n.URL + "/readyz")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != status {
			return fmt.Errorf("/readyz returns %s, want %d", response.Status, status)
		}
		return nil
	})
	if err != nil {
		n.t.Fatalf("the node at %s: %v\n%s", n.URL, err, n.output.String())
	}
}

// HasEnded reports whether the process has ended.
func (n *Node) HasEnded() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// failIfEnded fails the test when the process has ended.
func (n *Node) failIfEnded() {
	n.t.Helper()
	if n.HasEnded() {
		n.t.Fatalf("the node ended:\n%s", n.output.String())
	}
}

// Kill ends the node at once, as a crash would.
func (n *Node) Kill() { _ = n.cmd.Process.Kill(); <-n.done }

// Terminate sends SIGTERM to the node, waits for its end and returns the exit status.
func (n *Node) Terminate() int {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	return n.Wait()
}

const endTimeout = time.Minute // far longer than draining takes on a busy machine

// Wait waits for the node's end and returns the exit status. A node that does not end prints its
// goroutines, and the status is another one than 0.
func (n *Node) Wait() int {
	stuck := time.AfterFunc(endTimeout, func() { _ = n.cmd.Process.Signal(syscall.SIGQUIT) })
	defer stuck.Stop()
	<-n.done
	return n.cmd.ProcessState.ExitCode()
}

// Pause stops the process without ending it. Resume continues it.
func (n *Node) Pause() { _ = redistest.PauseProcess(n.cmd.Process) }

// Resume continues a paused process.
func (n *Node) Resume() { _ = redistest.ResumeProcess(n.cmd.Process) }

// Signal sends a signal to the process.
func (n *Node) Signal(signal os.Signal) {
	n.t.Helper()
	testkit.Report(n.t, n.cmd.Process.Signal(signal), "signal the node")
}

// Reload makes the node read its settings and secrets again, and returns when it has.
func (n *Node) Reload(t testing.TB) {
	t.Helper()
	const line = "msg=reloaded"
	before := strings.Count(n.Log(), line)
	n.Signal(syscall.SIGHUP)
	redistest.Eventually(t, "the node has read its files", func() bool { return strings.Count(n.Log(), line) > before })
}

// Pid returns the process id.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Log returns what the node has printed so far.
func (n *Node) Log() string { return n.output.String() }

// LogBuffer is the output of a process that runs. It is safe for concurrent use.
type LogBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (s *LogBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Write(p)
}

func (s *LogBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.String()
}

// Response is the response of a node.
type Response struct {
	Status int
	Header http.Header
	Body   map[string]any // the decoded object, numbers as Number; nil for other bodies
	Raw    []byte
}

// Code returns the error code, "" for a success.
func (r Response) Code() string {
	if r.Status < 400 {
		return "" // a room has a member "code" too
	}
	code, _ := r.Body["code"].(string)
	return code
}

// String returns status and body, for messages.
func (r Response) String() string { return fmt.Sprintf("%d %s", r.Status, r.Raw) }

// Metric returns the sum of the metrics of a node whose lines start with a text.
func Metric(t testing.TB, n *Node, start string) (sum float64) {
	t.Helper()
	response := testkit.Must(http.Get(n.InternalURL + "/metrics"))(t)
	defer func() { _ = response.Body.Close() }()
	text := testkit.Must(io.ReadAll(response.Body))(t)
	for line := range strings.Lines(string(text)) {
		if m := metricLine.FindStringSubmatch(line); m != nil && strings.HasPrefix(line, start) {
			value := testkit.Must(strconv.ParseFloat(m[1], 64))(t)
			sum += value
		}
	}
	return sum
}

var metricLine = regexp.MustCompile(`^[a-z].* (\S+)\n$`)

var client = &http.Client{
	Transport: &http.Transport{MaxIdleConns: 2000, MaxIdleConnsPerHost: 1000},
	Timeout:   60 * time.Second,
}

// Do sends a request. body is encoded as JSON unless it is nil; bearer is the token, or ""; headers
// are name, value, name, value ….
func (n *Node) Do(
	ctx context.Context, method, path, bearer string, body any, headers ...string,
) (Response, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := wire.Marshal(body)
		if err != nil {
			return Response{}, err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, n.URL+path, reader)
	if err != nil {
		return Response{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = response.Body.Close() }()
	r := Response{Status: response.StatusCode, Header: response.Header}
	if r.Raw, err = io.ReadAll(response.Body); err != nil {
		return Response{}, err
	}
	if wiretest.Unmarshal(r.Raw, &r.Body) != nil {
		r.Body = nil
	}
	return r, nil
}

// Must is Do for a request whose status is certain. Another status fails the test.
func (n *Node) Must(t testing.TB, status int, method, path, bearer string, body any, headers ...string) Response {
	t.Helper()
	r := testkit.Must(n.Do(t.Context(), method, path, bearer, body, headers...))(t, "%s %s", method, path)
	if r.Status != status {
		t.Fatalf("%s %s returns %s; want %d", method, path, r, status)
	}
	return r
}

// Dial opens a socket.
func (n *Node) Dial(ctx context.Context, path, bearer string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	header := http.Header{"Authorization": {"Bearer " + bearer}}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(n.URL, "http")+path, header)
	if err != nil && response != nil {
		body, _ := io.ReadAll(response.Body)
		err = fmt.Errorf("%w: %s %s", err, response.Status, body)
	}
	return conn, err
}
