package scripts_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// transition is a change of what has states: from is "" for what is made, to is "removed" for what
// is removed.
type transition struct{ from, to, script string }

// machine is a drawing of states, and how to see in them what a script has changed.
type machine struct {
	drawing string // the package comment that has it
	prefix  string // of the scripts' names
	// read returns what is stored of each thing with a state by its id: the state, "|" and the rest.
	read func(c call) map[string]string
}

var machines = []machine{
	{"../rooms/doc.go", "room_", roomStates},
	{"../competition/tournaments/doc.go", "tour_", tourStates},
}

var drawnArrow = regexp.MustCompile(`(?m)^//\t(\w*) *──▶ (\w+) +([a-z_ ]*[a-z])(?: \(.*\))?$`)

// drawnTransitions reads the drawing.
func (m machine) drawnTransitions(t *testing.T) map[transition]bool {
	t.Helper()
	text := testkit.Must(os.ReadFile(m.drawing))(t)
	drawn := map[transition]bool{}
	from := ""
	for _, arrow := range drawnArrow.FindAllStringSubmatch(string(text), -1) {
		if arrow[1] != "" {
			from = arrow[1]
		}
		for script := range strings.FieldsSeq(arrow[3]) {
			drawn[transition{from, arrow[2], m.prefix + script}] = true
		}
	}
	if arrows := strings.Count(string(text), "──▶"); arrows != len(drawnArrow.FindAllString(string(text), -1)) {
		t.Fatalf("not all of the %d arrows of %s can be read", arrows, m.drawing)
	}
	return drawn
}

// roomStates returns the live values of each room of a shard.
func roomStates(c call) map[string]string {
	states := map[string]string{}
	for key, stored := range c.snapshot() {
		if _, id, _ := strings.Cut(key, "room:"); key == keys.Room(c.shard, id) && stored.Type == "hash" {
			states[id] = stored.Field("live")
		}
	}
	return states
}

// tourStates returns the fixture's tournament with all of its keys: who plays an attempt changes
// only one of those beside the tournament.
func tourStates(c call) map[string]string {
	now, tour := c.snapshot(), keys.Tour(c.f.id, tourID)
	live := now[tour].Field("live")
	if live == "" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if key == tour || strings.HasPrefix(key, tour+":") {
			live += fmt.Sprintln(key, now[key].Values)
		}
	}
	return map[string]string{"": live}
}

func TestTheScriptsMakeTheTransitionsThatAreDrawn(t *testing.T) {
	db := redistest.Single(t)
	for _, m := range machines {
		made, drawn := m.madeTransitions(t, db), m.drawnTransitions(t)
		for _, change := range slices.Concat(slices.Collect(maps.Keys(made)), slices.Collect(maps.Keys(drawn))) {
			switch {
			case !drawn[change]:
				t.Errorf("%s makes %q %s, which %s does not draw", change.script, change.from, change.to, m.drawing)
			case !made[change]:
				t.Errorf("%s draws %s from %q to %s, which no example does", m.drawing, change.script, change.from, change.to)
			}
		}
	}
}

// madeTransitions runs the examples.
func (m machine) madeTransitions(t *testing.T, db *redisdb.DB) map[transition]bool {
	t.Helper()
	made := map[transition]bool{}
	status := func(live string) string {
		status, _, _ := strings.Cut(live, "|")
		return status
	}
	for _, e := range examples {
		if !strings.HasPrefix(e.script.Name, m.prefix) {
			continue
		}
		f := newFixture(t, db)
		f.feeds = true // see requireFeed
		c := e.prepare(f)
		before := m.read(c)
		c.want(e.status)
		requireFeed(t, e, c)
		after := m.read(c)
		for id, live := range after {
			if live != before[id] {
				made[transition{status(before[id]), status(live), e.script.Name}] = true
			}
		}
		for id, live := range before {
			if after[id] == "" {
				made[transition{status(live), "removed", e.script.Name}] = true
			}
		}
		f.dropAll(c.tag())
	}
	return made
}
