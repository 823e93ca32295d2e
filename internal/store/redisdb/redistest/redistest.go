// Package redistest starts real redis-server processes for tests: a single server and a Cluster of
// three masters for each test binary, started at the first use, on unix sockets and free ports. It
// also has the one helper that waits for a condition. It is for tests only.
//
// A package that uses it has, once:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// Main runs the tests of a package and then stops the servers that they started.
func Main(m *testing.M) int { return Wrap((*testing.M).Run)(m) }

// Wrap returns another package's Main that also stops the servers.
func Wrap(run func(m *testing.M) int) func(m *testing.M) int {
	return func(m *testing.M) int {
		if err := replaceScripts(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		code := run(m)
		stopAll()
		return code
	}
}

// Each runs a test on a single server and on a Cluster. Every test of a domain uses it.
func Each(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	t.Run("single", func(t *testing.T) { test(t, Single(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, Cluster(t)) })
}

// EachStoreURL is Each for tests that pass the store's address to other processes. The stores write
// to disk before they reply, as nodes require.
func EachStoreURL(t *testing.T, test func(t *testing.T, url string, db *redisdb.DB)) {
	t.Helper()
	t.Run("single", func(t *testing.T) {
		s := StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
		test(t, s.URL(), open(t, s.URL()))
	})
	t.Run("cluster", func(t *testing.T) {
		db := Cluster(t)
		test(t, clusterURL, db)
	})
}

const databaseCount = 4096

var (
	singleOnce sync.Once
	single     *Server
	singleErr  error
	nextDB     atomic.Int64
)

// Single opens an empty database of the test binary's single server. Tests that run at the same
// time get different databases. Databases do not separate channels: such tests must use different
// ones.
func Single(t testing.TB) *redisdb.DB {
	t.Helper()
	singleOnce.Do(func() { single, singleErr = Start("--databases", strconv.Itoa(databaseCount)) })
	if singleErr != nil {
		t.Fatalf("start redis-server: %v", singleErr)
	}
	n := nextDB.Add(1)
	if n >= databaseCount {
		t.Fatalf("more than %d databases in one test binary", databaseCount)
	}
	return open(t, single.URL()+"?db="+strconv.FormatInt(n, 10))
}

func open(t testing.TB, url string) *redisdb.DB {
	t.Helper()
	db, err := redisdb.Open(url)
	if err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Server is a redis-server process of its own, for tests that stop, pause or restart it.
type Server struct {
	Socket string // unix socket
	Addr   string // host:port on loopback
	Dir    string // working directory, with the append-only file

	program []string // under which redis-server runs; nil for none
	args    []string
	cmd     *exec.Cmd
	done    chan struct{}
	log     bytes.Buffer
}

// Start starts a server with further arguments and waits until it replies.
func Start(args ...string) (*Server, error) { return StartUnder(nil, args...) }

// StartUnder is Start under another program that takes the server's command line as its last
// arguments, such as valgrind. Its process id must become that of the server.
func StartUnder(program []string, args ...string) (*Server, error) {
	return startOn(program, func(port string) []string { return []string{"--port", port} }, args...)
}

// StartTLS is Start for a server that takes TLS connections only, besides its unix socket.
func StartTLS(certs Certificates, args ...string) (*Server, error) {
	return startOn(nil, certs.serverArgs, args...)
}

// startOn starts a server on a free port, with the arguments that make it listen there.
func startOn(program []string, listen func(port string) []string, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "parlor-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "redis.sock"), program: program}
	return s, s.startOnFreePort(func(port string) []string {
		return slices.Concat(listen(port), []string{
			"--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", dir,
			"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--loglevel", "warning",
		}, args)
	})
}

// startOnFreePort starts the process with the arguments for a free port, and for another one where
// somebody else has taken that meanwhile.
func (s *Server) startOnFreePort(args func(port string) []string) error {
	const tries = 5
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.Addr, s.args = "127.0.0.1:"+strconv.Itoa(port), args(strconv.Itoa(port))
		err = s.Restart()
		if err == nil || try == tries || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
		s.log.Reset()
	}
}

// StartWithFile starts a server with the settings in a file and waits until it replies. Its folder
// is that of the file. Arguments come after the file; only where it listens is added.
func StartWithFile(file string, args ...string) (*Server, error) {
	dir := filepath.Dir(file)
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "redis.sock")}
	return s, s.startOnFreePort(func(port string) []string {
		return slices.Concat([]string{file, "--port", port, "--bind", "127.0.0.1", "--unixsocket", s.Socket}, args)
	})
}

// StartSentinel starts a sentinel with the settings in a file, which it rewrites.
func StartSentinel(file string) (*Server, error) {
	return startSentinelOn(file, func(port string) []string { return []string{"--port", port} })
}

// StartTLSSentinel is StartSentinel for one that takes TLS connections only, and makes such ones.
func StartTLSSentinel(file string, certs Certificates) (*Server, error) {
	return startSentinelOn(file, certs.serverArgs)
}

func startSentinelOn(file string, listen func(port string) []string) (*Server, error) {
	dir := filepath.Dir(file)
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "sentinel.sock")}
	return s, s.startOnFreePort(func(port string) []string {
		return slices.Concat([]string{file, "--sentinel"}, listen(port), []string{
			"--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", dir, "--loglevel", "warning",
		})
	})
}

// Dial returns a client of a server. It is closed when the test ends.
func Dial(t testing.TB, s *Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, PoolSize: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// StartForTest starts a server that is removed when the test ends.
func StartForTest(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Start(args...)
	if err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(s.Remove)
	return s
}

// URL returns the address for redisdb.Open, over the unix socket.
func (s *Server) URL() string { return "unix://" + s.Socket }

var (
	runningMu sync.Mutex
	running   = map[*Server]bool{}
)

// Restart starts the process again, with the same arguments and files, after Kill or Terminate.
func (s *Server) Restart() error {
	line := slices.Concat(s.program, []string{"redis-server"}, s.args)
	s.cmd = exec.Command(line[0], line[1:]...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	EndWithParent(s.cmd)
	s.done = make(chan struct{})
	started := make(chan error)
	// The parent-death signal is sent when the thread that started the process ends: this goroutine
	// keeps the thread.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return err
	}
	runningMu.Lock()
	running[s] = true
	runningMu.Unlock()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	var ended error
	err := Poll(startLimit, func() error {
		select {
		case <-s.done:
			ended = fmt.Errorf("redis-server ended: %s", s.log.String())
			return nil
		default:
			err := client.Ping(context.Background()).Err()
			if redis.HasErrorPrefix(err, "NOAUTH") {
				return nil // it has no user without a password
			}
			return err
		}
	})
	return cmp.Or(ended, err)
}

// Kill ends the process at once, as a power cut would, and waits for its end.
func (s *Server) Kill() { s.signal(syscall.SIGKILL); <-s.done }

// Terminate sends SIGTERM to the process, as an operator's restart does, and waits for its end.
func (s *Server) Terminate() { s.signal(syscall.SIGTERM); <-s.done }

// Log returns what the process has printed so far. It must have ended.
func (s *Server) Log() string { return s.log.String() }

// Pause stops the process without ending it. Resume continues it.
func (s *Server) Pause() { _ = PauseProcess(s.cmd.Process) }

// Resume continues a paused process.
func (s *Server) Resume() { _ = ResumeProcess(s.cmd.Process) }

// Pid returns the process id, to read its CPU time.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

func (s *Server) signal(sig os.Signal) { _ = s.cmd.Process.Signal(sig) }

// Remove ends the process and removes its files.
func (s *Server) Remove() {
	s.Resume()
	s.Kill()
	_ = os.RemoveAll(s.Dir)
	runningMu.Lock()
	delete(running, s)
	runningMu.Unlock()
}

// Fill limits the memory of every server of a store to what is in use, so that it is full until the
// test ends or Unfill.
func Fill(t testing.TB, db *redisdb.DB) {
	t.Helper()
	setMaxMemory(t, db, "1mb")
	t.Cleanup(func() { Unfill(t, db) })
}

// Unfill takes the limit away again.
func Unfill(t testing.TB, db *redisdb.DB) {
	t.Helper()
	setMaxMemory(t, db, "0")
}

// setMaxMemory sets the limit of every server; none has less than 1 MB in use.
func setMaxMemory(t testing.TB, db *redisdb.DB, limit string) {
	t.Helper()
	set := func(_ context.Context, server *redis.Client) error {
		return server.ConfigSet(context.Background(), "maxmemory", limit).Err()
	}
	var err error
	if cluster, ok := db.Client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(context.Background(), set)
	} else {
		err = set(context.Background(), db.Client.(*redis.Client))
	}
	if err != nil {
		t.Fatalf("limit the memory: %v", err)
	}
}

func stopAll() {
	runningMu.Lock()
	var servers []*Server
	for s := range running {
		servers = append(servers, s)
	}
	runningMu.Unlock()
	for _, s := range servers {
		s.Remove()
	}
}

// Poll calls try every few milliseconds until it succeeds, and returns its last error after a time
// limit. It is the only place where a test sleeps: a test waits for a condition, never for a time.
func Poll(limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollInterval)
	}
}

const (
	pollInterval = 5 * time.Millisecond
	startLimit   = 20 * time.Second
	pollLimit    = 30 * time.Second // far longer than any condition takes on a busy machine
)

// Eventually waits until the condition holds. It fails the test when that takes too long.
func Eventually(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	err := Poll(pollLimit, func() error {
		if holds() {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		t.Fatalf("after %v it is still not true that %s", pollLimit, condition)
	}
}

// freePort returns a port that is free, and whose Cluster bus port (10,000 above) is free too.
// Another process may take it before it is used.
func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port+10000 > 65535 {
			continue
		}
		bus, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+10000))
		if err != nil {
			continue
		}
		_ = bus.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port found")
}
