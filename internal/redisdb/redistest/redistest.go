// Package redistest gives tests real redis-server processes: one single server and one
// Cluster of three masters for each test binary, started at the first use, on unix sockets and free
// ports. It is for tests only.
//
// A package that uses it has, once:
//
//	func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/redis/go-redis/v9"
)

// Main runs the tests of a package and then ends the servers that they started.
func Main(m *testing.M) int {
	code := m.Run()
	endAll()
	return code
}

// Wrap puts Main around another package's Main.
func Wrap(run func(m *testing.M) int) func(m *testing.M) int {
	return func(m *testing.M) int {
		code := run(m)
		endAll()
		return code
	}
}

// Each runs a test on a single server and on a Cluster; every test of a domain does.
func Each(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	t.Run("single", func(t *testing.T) { test(t, Single(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, Cluster(t)) })
}

// EachURL is Each for tests that hand the store's address to other processes; the stores write to disk before
// they answer, as a node that keeps money demands.
func EachURL(t *testing.T, test func(t *testing.T, url string, db *redisdb.DB)) {
	t.Helper()
	t.Run("single", func(t *testing.T) {
		s := StartFor(t, "--appendonly", "yes", "--appendfsync", "always")
		test(t, s.URL(), open(t, s.URL()))
	})
	t.Run("cluster", func(t *testing.T) {
		db := Cluster(t)
		test(t, clusterURL, db)
	})
}

const databases = 4096

var (
	singleOnce sync.Once
	single     *Server
	singleErr  error
	nextDB     atomic.Int64
)

// Single opens an empty database of the binary's single server. Tests that run at the same time get
// different databases; channels, which databases do not separate, are theirs to keep apart.
func Single(t testing.TB) *redisdb.DB {
	t.Helper()
	singleOnce.Do(func() { single, singleErr = Start("--databases", strconv.Itoa(databases)) })
	if singleErr != nil {
		t.Fatalf("start redis-server: %v", singleErr)
	}
	n := nextDB.Add(1)
	if n >= databases {
		t.Fatalf("more than %d databases in one test binary", databases)
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

// Server is one redis-server process of its own, for tests that stop, cut or restart it.
type Server struct {
	Socket string // unix socket
	Addr   string // host:port on loopback
	Dir    string // working directory: the append-only file stands here

	args []string
	cmd  *exec.Cmd
	done chan struct{}
	log  bytes.Buffer
}

// Start starts a server with further arguments and waits until it answers.
func Start(args ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "parlor-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "redis.sock")}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s.Addr = "127.0.0.1:" + strconv.Itoa(port)
	s.args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", dir,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", "--loglevel", "warning",
	}, args...)
	return s, s.Restart()
}

// StartSentinel starts a sentinel with the settings in a file of its own, which it rewrites.
func StartSentinel(file string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	s := &Server{Dir: dir, Socket: filepath.Join(dir, "sentinel.sock"), Addr: "127.0.0.1:" + strconv.Itoa(port)}
	s.args = []string{file, "--sentinel", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--unixsocket", s.Socket, "--dir", dir, "--loglevel", "warning"}
	return s, s.Restart()
}

// Dial opens a plain client to a server, which ends with the test.
func Dial(t testing.TB, s *Server) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: s.Socket, PoolSize: 1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// StartFor starts a server that ends with the test.
func StartFor(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := Start(args...)
	if err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(s.Remove)
	return s
}

// URL is the address for redisdb.Open, over the unix socket.
func (s *Server) URL() string { return "unix://" + s.Socket }

var (
	runningMu sync.Mutex
	running   = map[*Server]bool{}
)

// Restart starts the process again, with the same arguments and files, after Kill.
func (s *Server) Restart() error {
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.done = make(chan struct{})
	started := make(chan error)
	// The parent-death signal follows the thread that started the process: this goroutine keeps it.
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
	return until(10*time.Second, func() error {
		select {
		case <-s.done:
			return fmt.Errorf("redis-server ended: %s", s.log.String())
		default:
			return client.Ping(context.Background()).Err()
		}
	})
}

// Kill ends the process at once, as a power cut would, and waits until it is gone.
func (s *Server) Kill() { s.signal(syscall.SIGKILL); <-s.done }

// Pause stops the process without ending it; Resume lets it go on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Pid is the process id, to read its CPU time.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

func (s *Server) signal(sig os.Signal) { _ = s.cmd.Process.Signal(sig) }

// Remove ends the process and takes away its files.
func (s *Server) Remove() {
	s.Resume()
	s.Kill()
	_ = os.RemoveAll(s.Dir)
	runningMu.Lock()
	delete(running, s)
	runningMu.Unlock()
}

func endAll() {
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

// until tries again, every few milliseconds, until try succeeds or the time is over.
func until(limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// freePort answers a port that nobody listens on, whose Cluster bus port (10,000 above) is free too. Somebody may take it before its user does.
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
