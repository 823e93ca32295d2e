// Package nodetest runs real Parlor nodes as processes of their own, for tests that play a story over HTTP,
// kill a node, or take its store away. It is for tests only.
package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// AdminKey is the operator's key of every node that this package starts.
const AdminKey = "operator-key-of-the-tests-3f9c1d7ab2"

// SigningKey signs the access tokens of every node that this package starts.
const SigningKey = "signing-key-of-the-tests-5b8e20c49d71"

var binary struct {
	once sync.Once
	path string
	err  error
}

// Binary builds parlor once for the test binary, with the race detector when race is on for the tests, and answers its path.
func Binary(t testing.TB) string {
	t.Helper()
	binary.once.Do(func() {
		dir, err := os.MkdirTemp("", "parlor-bin-")
		if err != nil {
			binary.err = err
			return
		}
		binary.path = filepath.Join(dir, "parlor")
		args := []string{"build", "-o", binary.path}
		if raceEnabled {
			args = append(args, "-race")
		}
		out, err := exec.Command("go", append(args, "github.com/parlor-games/parlor/cmd/parlor")...).CombinedOutput()
		if err != nil {
			binary.err = fmt.Errorf("build parlor: %w\n%s", err, out)
		}
	})
	if binary.err != nil {
		t.Fatal(binary.err)
	}
	return binary.path
}

// Main runs the tests and removes the binary.
func Main(m *testing.M) int {
	code := m.Run()
	if binary.path != "" {
		_ = os.RemoveAll(filepath.Dir(binary.path))
	}
	return code
}

// Node is one running node.
type Node struct {
	URL      string // public address: http://127.0.0.1:…
	Internal string // metrics and profiling

	cmd  *exec.Cmd
	done chan struct{}
	log  syncBuffer
	t    testing.TB
}

// Start runs `parlor serve` on a store, with further settings as NAME=value, and waits until it is ready. It ends with the test.
func Start(t testing.TB, redisURL string, settings ...string) *Node {
	t.Helper()
	bin := Binary(t)
	n := &Node{t: t, done: make(chan struct{})}
	n.cmd = exec.Command(bin, "serve")
	n.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(),
		"PARLOR_LISTEN=127.0.0.1:0", "PARLOR_INTERNAL_LISTEN=127.0.0.1:0", "PARLOR_REDIS_URL=" + redisURL,
		"PARLOR_ADMIN_KEY=" + AdminKey, "PARLOR_SIGNING_KEY=" + SigningKey, "PARLOR_LOG=text",
	}, settings...)
	n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	// The parent-death signal follows the thread that started the process: this goroutine keeps it.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := n.cmd.Start()
		started <- err
		if err == nil {
			_ = n.cmd.Wait()
		}
		close(n.done)
	}()
	if err := <-started; err != nil {
		t.Fatalf("start a node: %v", err)
	}
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("log of the node at %s:\n%s", n.URL, n.log.String())
		}
		if strings.Contains(n.log.String(), "DATA RACE") {
			t.Errorf("the node at %s had a data race:\n%s", n.URL, n.log.String())
		}
	})
	n.waitServing()
	n.WaitReady(http.StatusOK)
	return n
}

var serving = regexp.MustCompile(`msg=serving listen=(\S+) internal=(\S+)`)

// waitServing waits until the node says which ports it took: one that was only free a moment ago may be somebody else's by now.
func (n *Node) waitServing() {
	n.t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if m := serving.FindStringSubmatch(n.log.String()); m != nil {
			n.URL, n.Internal = "http://"+m[1], "http://"+m[2]
			return
		}
		select {
		case <-n.done:
			n.t.Fatalf("the node ended:\n%s", n.log.String())
		case <-deadline:
			n.t.Fatalf("the node never served:\n%s", n.log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// At is a node that somebody else runs, or a balancer in front of several; it can only be asked.
func At(t testing.TB, url string) *Node { return &Node{URL: url, t: t, done: make(chan struct{})} }

// WaitReady waits until /readyz answers the status.
func (n *Node) WaitReady(status int) {
	n.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		response, err := http.Get(n.URL + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == status {
				return
			}
		}
		select {
		case <-n.done:
			n.t.Fatalf("the node ended:\n%s", n.log.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("the node at %s never answered %d on /readyz (%v):\n%s", n.URL, status, err, n.log.String())
		}
	}
}

// Kill ends the node at once, as a crash would.
func (n *Node) Kill() { _ = n.cmd.Process.Kill(); <-n.done }

// Terminate asks the node to end and answers its exit status.
func (n *Node) Terminate() int {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	<-n.done
	return n.cmd.ProcessState.ExitCode()
}

// Pid is the node's process id.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Log is what the node has printed so far.
func (n *Node) Log() string { return n.log.String() }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Response is what a node said.
type Response struct {
	Status int
	Header http.Header
	Body   map[string]any // numbers are json.Number
	Raw    []byte
}

// Code is the refusal's word, or "".
func (a Response) Code() string {
	if a.Status < 400 {
		return "" // a room has a code of its own
	}
	code, _ := a.Body["code"].(string)
	return code
}

// String shows status and body, for messages.
func (a Response) String() string { return fmt.Sprintf("%d %s", a.Status, a.Raw) }

var client = &http.Client{
	Transport: &http.Transport{MaxIdleConns: 2000, MaxIdleConnsPerHost: 1000},
	Timeout:   60 * time.Second,
}

// Do sends a request. body is encoded as JSON unless it is nil; headers are name, value, name, value….
func (n *Node) Do(ctx context.Context, method, path, bearer string, body any, headers ...string) (Response, error) {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
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
	a := Response{Status: response.StatusCode, Header: response.Header}
	if a.Raw, err = io.ReadAll(response.Body); err != nil {
		return Response{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Raw))
	decoder.UseNumber()
	_ = decoder.Decode(&a.Body) // an answer that is no JSON object has no Body
	return a, nil
}

// Must is Do for calls whose status is certain; another one ends the test.
func (n *Node) Must(t testing.TB, status int, method, path, bearer string, body any, headers ...string) Response {
	t.Helper()
	a, err := n.Do(t.Context(), method, path, bearer, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	if a.Status != status {
		t.Fatalf("%s %s answers %s; want %d", method, path, a, status)
	}
	return a
}
