// Package install tests an installation as a whole: the secrets that deploy/make-secrets.sh makes,
// Redis with the files of deploy/redis, and nodes that connect as the user they get.
package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/installtest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Wrap(nodetest.Main)(m)) }

// An installation of each kind is played on, and all of its Redis ends, by SIGTERM and by kill -9.
// Every key must be there after it, with its type, its value and the time at which it expires; the
// nodes go on by themselves, and the books balance.
func TestAnInstallationSurvivesARestartOfRedis(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *installtest.Store{
		"single": func(t *testing.T) *installtest.Store { return installtest.StartSingle(t) },
		// A restart on a busy machine must not become a failover.
		"sentinel": func(t *testing.T) *installtest.Store { return installtest.StartSentinels(t, time.Minute) },
		"cluster":  func(t *testing.T) *installtest.Store { return installtest.StartCluster(t, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // all mostly wait
			s := start(t)
			g := openGame(t, s)
			g.play(0)
			for i, end := range []func(*redistest.Server){(*redistest.Server).Terminate, (*redistest.Server).Kill} {
				s.WantNothingRefused()
				before := g.pause()
				for _, server := range s.Servers {
					end(server)
				}
				for _, server := range s.Servers {
					testkit.Check(t, server.Restart())
				}
				s.WaitLoaded()
				after := s.ReadAll()
				if lost := difference(before, after); len(lost) > 0 {
					t.Fatalf("after a restart %d of %d keys differ:\n%s", len(lost), count(before), strings.Join(lost, "\n"))
				}
				t.Logf("%d keys are as they were", count(after))
				g.resume()
				g.wantBalanced()
				g.play(i + 1)
			}
			g.wantBalanced()
			if out := g.run("backup", "--to", filepath.Join(t.TempDir(), "backup")); out == "" {
				t.Error("backup printed nothing")
			}
			s.WantNothingRefused()
		})
	}
}

func count(servers []map[string]installtest.Key) (n int) {
	for _, keys := range servers {
		n += len(keys)
	}
	return n
}

// difference lists the keys that differ. A key may be gone when its time was over.
func difference(before, after []map[string]installtest.Key) (lines []string) {
	now := time.Now().UnixMilli()
	for i := range before {
		names := map[string]bool{}
		for name := range before[i] {
			names[name] = true
		}
		for name := range after[i] {
			names[name] = true
		}
		for name := range names {
			was, had := before[i][name]
			is, has := after[i][name]
			isOver := had && !has && was.ExpireAt >= 0 && was.ExpireAt <= now
			if !isOver && was != is {
				lines = append(lines, fmt.Sprintf("server %d, %s\n  was %+v\n  is  %+v", i, name, was, is))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
