package referee

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	parlor "github.com/parlor-games/parlor/sdk/go"
	"github.com/parlor-games/parlor/tests/testkit"
)

var now = time.UnixMilli(1_800_000_000_000)

// newTestRace returns the race of a room with a state.
func newTestRace(t *testing.T, state string) *race {
	t.Helper()
	room := parlor.Room{
		RoomID: "r", Participants: []parlor.User{{ID: 5}, {ID: 6}, {ID: 7}}, Shared: &parlor.SharedState{Version: 3},
	}
	testkit.Check(t, wire.Unmarshal([]byte(state), &room.Shared.Value))
	return testkit.Must(newRace(room))(t)
}

const begun = `"race":{"finishLine":20,"endsAt":"2027-01-15T08:00:10Z","cooldownMs":250}`

func TestOnlyPlayersOfARaceMoveAndNotTooFast(t *testing.T) {
	g := newTestRace(t, `{`+begun+`,"runner.5":{"steps":19,"rolled":1,"moves":9,"atMs":1799999999900},
		"runner.6":{"steps":2,"rolled":2,"moves":1,"atMs":1799999999000},"runner.99":{"steps":20}}`)
	if g.version != 3 || g.rules.EndsAt.IsZero() {
		t.Fatalf("read as %+v", g)
	}
	for _, c := range []struct {
		user   int64
		after  time.Duration
		steps  int
		reason string
	}{
		{5, 0, 0, "too_fast"},
		{5, 150 * time.Millisecond, 20, ""}, // 19 and 3, and no further than the finish
		{6, 0, 5, ""},
		{7, 0, 3, ""},
		{99, 0, 0, "not_in_race"},
		{6, 11 * time.Second, 0, "race_over"},
	} {
		next, err := g.next(c.user, now.Add(c.after), 3)
		rejected := (*parlor.Error)(nil)
		if errors.As(err, &rejected) != (c.reason != "") || rejected != nil && rejected.Code != c.reason ||
			next.Steps != c.steps {
			t.Errorf("player %d after %v: %+v, %v", c.user, c.after, next, err)
		}
	}
	won := newTestRace(t, `{`+begun+`,"runner.7":{"steps":20}}`)
	if _, err := won.next(5, now, 1); err == nil {
		t.Error("a race that is won goes on")
	}
}

func TestPlacesCountThoseWhoAreFurther(t *testing.T) {
	g := newTestRace(t, `{`+begun+`,"runner.5":{"steps":3},"runner.6":{"steps":3}}`)
	var places []int
	for _, r := range g.results() {
		places = append(places, r.Place)
	}
	if !slices.Equal(places, []int{1, 1, 3}) {
		t.Errorf("got %v", places)
	}
}

func TestOtherRoomsAreNoRaces(t *testing.T) {
	for metadata, want := range map[string]bool{`{"game":"race"}`: true, `{"game":7}`: false, `{}`: false, ``: false} {
		if isRace(parlor.Room{Metadata: []byte(metadata)}) != want {
			t.Errorf("%s", metadata)
		}
	}
}
