package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// An installation of each kind is played on, and all of its Redis ends, by SIGTERM and by kill -9.
// Every key must be there after it, with its type, its value and the time at which it expires; the
// nodes go on by themselves, and the books balance.
func TestAnInstallationSurvivesARestartOfRedis(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *store{
		"single": startSingle, "sentinel": startSentinels, "cluster": startCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // all mostly wait
			s := start(t)
			g := openGame(t, s)
			g.play(0)
			for i, end := range []func(*redistest.Server){(*redistest.Server).Terminate, (*redistest.Server).Kill} {
				s.wantNothingRefused()
				before := g.pause()
				for _, server := range s.servers {
					end(server)
				}
				for _, server := range s.servers {
					if err := server.Restart(); err != nil {
						t.Fatal(err)
					}
				}
				s.waitLoaded()
				after := s.readAll()
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
			s.wantNothingRefused()
		})
	}
}

// readAll returns the keys of every server, the replicas' too.
func (s *store) readAll() []map[string]key {
	s.t.Helper()
	var all []map[string]key
	for _, server := range s.servers {
		all = append(all, s.readKeys(server))
	}
	return all
}

func count(servers []map[string]key) (n int) {
	for _, keys := range servers {
		n += len(keys)
	}
	return n
}

// difference lists the keys that differ. A key may be gone when its time was over.
func difference(before, after []map[string]key) (lines []string) {
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
			isOver := had && !has && was.expireAt >= 0 && was.expireAt <= now
			if !isOver && was != is {
				lines = append(lines, fmt.Sprintf("server %d, %s\n  was %+v\n  is  %+v", i, name, was, is))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
