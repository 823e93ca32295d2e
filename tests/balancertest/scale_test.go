//go:build linux

package balancertest

import (
	"net/netip"
	"os"
	"regexp"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// quickDrain keeps the tests short: sockets are closed within two thirds of the time.
const quickDrain = "PARLOR_DRAIN_TIMEOUT=1500ms"

// startInstallation returns three nodes behind a balancer.
func startInstallation(t *testing.T, settings ...string) (*Fleet, *Balancer) {
	t.Helper()
	fleet := NewFleet(t, StartOnDisk(t).URL(), append([]string{quickDrain}, settings...)...)
	for range 3 {
		fleet.Add()
	}
	return fleet, Start(t, Options{Certificate: Certificates.Both, Fleet: fleet})
}

func TestNothingFailsFromThreeNodesToFiveToTwo(t *testing.T) {
	fleet, front := startInstallation(t)
	load := StartLoad(t, front.Node, 6, 12)

	// One new node is known by name before it listens. The other one listens before it is known, and
	// neither has reached the store: nobody has to notice.
	gate := NewGate(t, fleet.redisURL)
	awaitKnown := func(a netip.Addr) {
		t.Helper()
		known := regexp.MustCompile(" to '?" + regexp.QuoteMeta(a.String()) + "'? by ") // 2.6, 3.1
		redistest.Eventually(t, "the balancer knows the address", func() bool {
			return known.MatchString(front.Log())
		})
		load.Await(t, 200)
	}
	first := fleet.PublishAddress()
	awaitKnown(first)
	fleet.StartAt(first, "PARLOR_REDIS_URL="+gate.URL)
	second := fleet.ReserveAddress()
	fleet.StartAt(second, "PARLOR_REDIS_URL="+gate.URL)
	fleet.DNS.Publish(second)
	awaitKnown(second)
	load.Await(t, 500)
	gate.Open()
	front.WaitServers(5)
	load.Await(t, 300)
	for _, m := range fleet.Members()[:3] {
		if status := fleet.Stop(m); status != 0 {
			t.Errorf("the %v exits with %d", m, status)
		}
	}
	front.WaitServers(2)
	load.Await(t, 300)
	report := load.Stop(t)
	t.Log(report)
	report.MustBeClean(t)
	if report.Moved == 0 {
		t.Error("no socket was moved: the nodes that ended had none")
	}
}
