//go:build linux

package balancertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/nodetest"
)

// secondOperator is the key of an operator who comes with the new settings.
const secondOperator = "second-operator-of-the-tests-77aa01b2c3"

func TestARollReplacesAllNodesAndNobodyNotices(t *testing.T) {
	fleet, front := startInstallation(t)
	docker := NewDocker(t, fleet)
	load := StartLoad(t, front.Node, 6, 12)
	before := fleet.Members()

	fleet.Set(quickDrain, "PARLOR_ADMIN_KEY="+nodetest.AdminKey+","+secondOperator)
	printed, status := docker.Roll()
	if status != 0 || !strings.HasSuffix(printed, "roll: done\n") {
		t.Errorf("roll.sh exits with %d:\n%s", status, printed)
	}
	load.Await(t, 300)
	report := load.Stop(t)
	t.Log(report)
	report.MustBeClean(t)
	if report.Moved < 12 {
		t.Errorf("%d sockets were moved; each was on a node that ended", report.Moved)
	}
	after := fleet.Members()
	stayed := func(m *Member) bool { return slices.Contains(before, m) }
	if len(after) != len(before) || slices.ContainsFunc(after, stayed) {
		t.Errorf("%v became %v", before, after)
	}
	front.Must(t, 200, "GET", "/api/v1/admin/games", secondOperator, nil)
}

func TestARollThatCannotGoOnLeavesTheNodesAndCanBeRunAgain(t *testing.T) {
	fleet, front := startInstallation(t)
	docker := NewDocker(t, fleet)
	load := StartLoad(t, front.Node, 6, 12)
	before := fleet.Members()
	wantStopped := func(why string, settings ...string) {
		t.Helper()
		fleet.Set(append([]string{quickDrain}, settings...)...)
		printed, status := docker.Roll("PARLOR_ROLL_WAIT=2")
		if status != 1 || !strings.Contains(printed, why) || !strings.Contains(printed, "3 nodes serve as before") {
			t.Errorf("roll.sh exits with %d:\n%s", status, printed)
		}
		if !slices.Equal(fleet.Members(), before) {
			t.Errorf("%v became %v", before, fleet.Members())
		}
		load.Await(t, 100)
	}
	wantStopped("needs at least 32", "PARLOR_ADMIN_KEY=short")
	wantStopped("did not become ready", "PARLOR_REDIS_URL="+NewGate(t, fleet.redisURL).URL)

	// Killed when a new node is there and no old one has ended.
	fleet.Set(quickDrain)
	docker.BeforeStop(docker.KillScript)
	if printed, status := docker.Roll(); status == 0 {
		t.Errorf("a killed roll.sh exits with 0:\n%s", printed)
	}
	docker.BeforeStop(nil)
	printed, status := docker.Roll()
	if status != 0 || fleet.Size() != 3 {
		t.Errorf("roll.sh exits with %d, and there are %d nodes:\n%s", status, fleet.Size(), printed)
	}
	report := load.Stop(t)
	t.Log(report)
	report.MustBeClean(t)
}
