package redistest

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// MovedClock is the clock of servers that a test moves while they run.
type MovedClock struct {
	t    testing.TB
	file string
}

// movedClockSource is a library that the servers load before libc. It adds the milliseconds in a
// file to their wall clock, and leaves the monotonic clock alone.
const movedClockSource = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_ms;

__attribute__((constructor)) static void map_offset(void) {
  int fd = open(getenv("PARLOR_TEST_CLOCK"), O_RDONLY);
  void *page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_ms, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) abort();
  offset_ms = page;
}

int clock_gettime(clockid_t id, struct timespec *t) {
  int failed = syscall(SYS_clock_gettime, id, t);
  if (failed || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) || !offset_ms) return failed;
  int64_t ns = t->tv_nsec + *offset_ms % 1000 * 1000000;
  t->tv_sec += *offset_ms / 1000 + (ns >= 1000000000) - (ns < 0);
  t->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (t) *t = now.tv_sec;
  return now.tv_sec;
}
`

// newMovedClock returns a clock that is right, and the program under which servers have it. It
// needs a C compiler, as the race detector does, and Linux.
func newMovedClock(t testing.TB) (clock *MovedClock, program []string) {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	clock = &MovedClock{t, filepath.Join(dir, "offset")}
	clock.Move(0)
	if err := os.WriteFile(source, []byte(movedClockSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("compile the library that moves a clock: %v\n%s", err, out)
	}
	return clock, []string{"env", "LD_PRELOAD=" + library, "PARLOR_TEST_CLOCK=" + clock.file}
}

// Move puts the clock ahead of the true time, or behind it, at once.
func (c *MovedClock) Move(ahead time.Duration) {
	c.t.Helper()
	file, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600) // the servers have it mapped
	if err == nil {
		_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead.Milliseconds())), 0)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.t.Fatalf("move the clock: %v", err)
	}
}

// StartMovable starts a server whose clock the test can move. It ends with the test.
func StartMovable(t testing.TB, args ...string) (*Server, *MovedClock) {
	t.Helper()
	clock, program := newMovedClock(t)
	s, err := StartUnder(program, args...)
	if err != nil {
		t.Fatalf("start redis-server with a clock that can be moved: %v", err)
	}
	t.Cleanup(s.Remove)
	return s, clock
}

// OpenMovable opens a store on one server whose clock the test can move. Both end with the test.
func OpenMovable(t testing.TB) (*redisdb.DB, *MovedClock) {
	t.Helper()
	s, clock := StartMovable(t)
	return open(t, s.URL()), clock
}

// StartMovableCluster starts a Cluster of three masters that share a clock. It ends with the test.
func StartMovableCluster(t testing.TB, args ...string) (url string, clock *MovedClock) {
	t.Helper()
	clock, program := newMovedClock(t)
	addrs, err := startCluster(func(more ...string) (*Server, error) {
		s, err := StartUnder(program, append(more, args...)...)
		if err == nil {
			t.Cleanup(s.Remove)
		}
		return s, err
	})
	if err != nil {
		t.Fatalf("start a Cluster with a clock that can be moved: %v", err)
	}
	return clusterAddress(addrs), clock
}

// EachMovable runs a test on a single server and on a Cluster whose clock it can move.
func EachMovable(t *testing.T, test func(t *testing.T, db *redisdb.DB, clock *MovedClock)) {
	t.Helper()
	t.Run("single", func(t *testing.T) {
		db, clock := OpenMovable(t)
		test(t, db, clock)
	})
	t.Run("cluster", func(t *testing.T) {
		url, clock := StartMovableCluster(t)
		test(t, open(t, url), clock)
	})
}

// LookAtClocks compares the store's clock with the node's, as the monitor of a node does each
// second.
func LookAtClocks(t testing.TB, db *redisdb.DB) {
	t.Helper()
	var readings []redisdb.ClockReading
	for _, health := range db.NewProber(redisdb.Requirements{}).Probe(t.Context()) {
		readings = append(readings, health.Clock)
	}
	db.Clock.Observe(readings)
}
