package scripts_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
)

// transition is a change of a room: from is "" for one that is opened, to is "removed" for one that
// is.
type transition struct{ from, to, script string }

var drawnArrow = regexp.MustCompile(`(?m)^//\t(\w*) *──▶ (\w+) +([a-z_ ]*[a-z])(?: \(.*\))?$`)

// drawnTransitions reads the drawing of the state machine in the package comment of rooms.
func drawnTransitions(t *testing.T) map[transition]bool {
	t.Helper()
	text, err := os.ReadFile("../rooms/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[transition]bool{}
	from := ""
	for _, m := range drawnArrow.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			from = m[1]
		}
		for script := range strings.FieldsSeq(m[3]) {
			drawn[transition{from, m[2], "room_" + script}] = true
		}
	}
	if arrows := strings.Count(string(text), "──▶"); arrows != len(drawnArrow.FindAllString(string(text), -1)) {
		t.Fatalf("not all of the %d arrows can be read", arrows)
	}
	return drawn
}

// roomStates returns the live values of each room of a shard by its id.
func roomStates(shard keys.Shard, now redistest.Snapshot) map[string]string {
	states := map[string]string{}
	for key, stored := range now {
		if _, id, _ := strings.Cut(key, "room:"); key == keys.Room(shard, id) && stored.Type == "hash" {
			states[id] = stored.Field("live")
		}
	}
	return states
}

func TestTheScriptsMakeTheTransitionsThatAreDrawn(t *testing.T) {
	made := map[transition]bool{}
	db := redistest.Single(t)
	status := func(live string) string {
		status, _, _ := strings.Cut(live, "|")
		return status
	}
	for _, e := range examples {
		if !strings.HasPrefix(e.script.Name, "room_") {
			continue
		}
		f := newFixture(t, db)
		c := e.prepare(f)
		before := roomStates(c.shard, c.snapshot())
		c.want(e.status)
		after := roomStates(c.shard, c.snapshot())
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
	drawn := drawnTransitions(t)
	for _, change := range slices.Concat(slices.Collect(maps.Keys(made)), slices.Collect(maps.Keys(drawn))) {
		switch {
		case !drawn[change]:
			t.Errorf("%s makes a %s room %s, which rooms/doc.go does not draw", change.script, change.from, change.to)
		case !made[change]:
			t.Errorf("rooms/doc.go draws %s from %q to %s, which no example does", change.script, change.from, change.to)
		}
	}
}
