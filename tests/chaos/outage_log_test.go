package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/nodetest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// logLine is a line of a node's log.
type logLine struct {
	Level   string `json:"level"`
	Msg     string `json:"msg"`
	Masters string `json:"masters"`
	Away    string `json:"away"`
	Refused int    `json:"refused"`
	raw     string
}

// linesAfter returns what a node has logged beyond some bytes, without what server keys wrote.
func linesAfter(t *testing.T, n *nodetest.Node, bytes int) (lines []logLine) {
	t.Helper()
	for text := range strings.Lines(n.Log()[bytes:]) {
		line := logLine{raw: text}
		if err := wire.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("a line of the log is no JSON: %s", text)
		}
		if line.Msg != "writes of a server key" {
			lines = append(lines, line)
		}
	}
	return lines
}

// startTraffic has a player, a host and a game's server call all nodes until the test ends. A call
// is served, or refused because there is no store.
func startTraffic(t *testing.T, c *crowd) {
	t.Helper()
	a := c.audience
	running, stop := context.WithCancel(context.Background())
	created := a.node(0).Must(t, 201, "POST", "/api/v1/admin/games", nodetest.AdminKey, map[string]any{"name": "Load"})
	serverKey := created.Body["serverKey"].(string)
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for place, call := range []func(n *nodetest.Node, i int) (nodetest.Response, error){
		func(n *nodetest.Node, _ int) (nodetest.Response, error) {
			return n.Do(running, "GET", "/api/v1/user-balance/token-balances", c.hosts[0], nil)
		},
		func(n *nodetest.Node, i int) (nodetest.Response, error) {
			body := map[string]any{"roomId": c.rooms[0], "ready": i%2 == 0}
			return n.Do(running, "POST", "/api/v1/game-session/ready", c.hosts[0], body)
		},
		func(n *nodetest.Node, i int) (nodetest.Response, error) {
			body := map[string]any{"externalId": fmt.Sprint("player-", i%50), "username": fmt.Sprint("Player ", i%50)}
			return n.Do(running, "POST", "/api/v1/auth/exchange", serverKey, body)
		},
	} {
		for node := range a.nodes {
			all.Go(func() {
				for i := 0; waitPause(running, 25*time.Millisecond); i++ {
					r, err := call(a.node(node), i+100*place)
					if running.Err() == nil && (err != nil || r.Status >= 300 && r.Code() != "store_unavailable") {
						t.Errorf("a call returned %v %v", r, err)
					}
				}
			})
		}
	}
}

// awayFor is how long the store is away: longer than the lease of a node and than the silence after
// which sockets are sent away.
const awayFor = 10 * time.Second

// TestAnOutageOfTheStoreIsTwoLines makes the store go away under sockets, calls and background
// work. Each node logs when that begins and when it ends, with what it refused, and nothing else.
func TestAnOutageOfTheStoreIsTwoLines(t *testing.T) {
	for name, outage := range map[string]struct {
		begin func(*redistest.Server)
		end   func(*redistest.Server) error
	}{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Pause, func(s *redistest.Server) error { s.Resume(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "everysec")
			url := server.URL()
			a := newAudience(t, openStoreOf(t, url), []string{url, url}, "PARLOR_LOG=json")
			c := a.newCrowd(t, 40)
			startTraffic(t, c)
			wantOutageOfTwoLines(t, c, "store", func() { outage.begin(server) }, func() error { return outage.end(server) })
			for _, n := range a.nodes {
				if moved := nodetest.Metric(t, n, "parlor_realtime_moved_total"); moved != 0 {
					t.Errorf("a node sent %.0f sockets to another one that had no store either", moved)
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if n := len(c.closes) + c.other; n > 0 {
				t.Errorf("%d sockets were closed", n)
			}
		})
	}
}

// TestTheOutageOfOneMasterIsTwoLines kills one of the masters of a Cluster without replicas.
func TestTheOutageOfOneMasterIsTwoLines(t *testing.T) {
	t.Parallel()
	url, servers, err := redistest.StartCluster(append(slices.Clone(deliveryStore),
		"--cluster-require-full-coverage", "no")...)
	for _, s := range servers {
		t.Cleanup(s.Remove)
	}
	testkit.Check(t, err)
	a := newAudience(t, openStoreOf(t, url), []string{url, url}, "PARLOR_LOG=json")
	c := a.newCrowd(t, 40)
	startTraffic(t, c)
	wantOutageOfTwoLines(t, c, "store:5461-10921", servers[1].Kill, servers[1].Restart)
}

// wantOutageOfTwoLines begins and ends an outage of a master and checks what two nodes log of it.
func wantOutageOfTwoLines(t *testing.T, c *crowd, master string, begin func(), end func() error) {
	t.Helper()
	nodes := c.audience.nodes
	waitFor(t, 6*time.Second) // the nodes know each other
	var marks []int
	for _, n := range nodes {
		marks = append(marks, len(n.Log()))
	}
	hasLine := func(message string) {
		t.Helper()
		for i, n := range nodes {
			redistest.Eventually(t, "a node logs that "+message, func() bool {
				return slices.ContainsFunc(linesAfter(t, n, marks[i]), func(l logLine) bool { return l.Msg == message })
			})
		}
	}
	begin()
	hasLine("the store does not serve")
	waitFor(t, awayFor)
	testkit.Check(t, end())
	hasLine("the store serves again")
	c.waitAll(t, "every member is subscribed", c.members, func(m *member) bool { return m.open })
	c.changeRooms(t, false)
	c.changeRooms(t, true)
	waitFor(t, 8*time.Second) // late lines, of work that is done now and then
	for i, n := range nodes {
		// A record that the trail did not get is in the log alone: that line is the record.
		lines := slices.DeleteFunc(linesAfter(t, n, marks[i]), func(l logLine) bool {
			return l.Msg == "staff write not in the trail"
		})
		if len(lines) != 2 || lines[0].Level != "WARN" || lines[1].Level != "INFO" ||
			lines[0].Masters != master || lines[1].Masters != master {
			var text strings.Builder
			for _, l := range lines {
				text.WriteString(l.raw)
			}
			t.Errorf("node %d logged %d lines about an outage of %s:\n%s", i, len(lines), master, text.String())
			continue
		}
		took, err := time.ParseDuration(lines[1].Away)
		if err != nil || took < awayFor || took > awayFor+6*time.Second || lines[1].Refused == 0 {
			t.Errorf("away %q, %d refused: %v", lines[1].Away, lines[1].Refused, err)
		}
	}
}
