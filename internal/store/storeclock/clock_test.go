package storeclock

import (
	"strings"
	"testing"
	"time"
)

// machine has the clocks of a node, and those of the store's servers as offsets from the true time.
type machine struct {
	t       *testing.T
	clock   *Clock
	passed  time.Duration // true time, by the monotonic clock
	node    time.Duration // offset of the node's wall clock
	masters map[string]time.Duration
	trip    time.Duration // of a reading
	gone    string        // a master that does not reply
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, masters: map[string]time.Duration{"store": 0}, trip: 10 * time.Millisecond}
	m.clock = New(Source{
		Wall:    func() time.Time { return epoch.Add(m.passed + m.node) },
		Elapsed: func() time.Duration { return m.passed },
	})
	return m
}

// look lets a second pass and looks at the clocks.
func (m *machine) look() Change {
	m.passed += time.Second
	var readings []Reading
	for name, offset := range m.masters {
		sent := m.passed
		if name == m.gone {
			readings = append(readings, Reading{Master: name, Sent: sent, Received: sent})
			continue
		}
		readings = append(readings, Reading{name, epoch.Add(sent + m.trip/2 + offset), sent, sent + m.trip})
	}
	m.passed += m.trip
	return m.clock.Observe(readings)
}

// looks looks n times and returns how many differences began and ended.
func (m *machine) looks(n int) (began, ended int) {
	for range n {
		change := m.look()
		if change.Began {
			began++
		}
		if change.Ended {
			ended++
		}
	}
	return began, ended
}

func (m *machine) want(allows bool, what string) {
	m.t.Helper()
	if m.clock.AllowsEnding() != allows {
		_, detail := m.clock.Status()
		m.t.Errorf("%s: AllowsEnding is %v, want %v: %s", what, !allows, allows, detail)
	}
}

func TestADifferenceAboveFiveSecondsHoldsBackAndIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		ahead  time.Duration
		detail string
	}{
		"ahead":  {time.Hour, "the clock of store is 1 hour ahead of this node's"},
		"behind": {-time.Hour - 5*time.Minute, "the clock of store is 1 hour 5 minutes behind this node's"},
		"little": {6 * time.Second, "the clock of store is 6 seconds ahead of this node's"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.looks(3)
			m.want(true, "before")
			m.masters["store"] = c.ahead
			if change := m.look(); !change.Began || !strings.HasPrefix(change.Detail, c.detail) {
				t.Errorf("the look found %+v, want %q", change, c.detail)
			}
			m.want(false, "while they differ")
			if began, ended := m.looks(100); began != 0 || ended != 0 {
				t.Errorf("%d and %d lines while they differ", began, ended)
			}
			m.want(false, "after a while")
			m.masters["store"] = 0
			if began, ended := m.looks(9); began != 0 || ended != 0 {
				t.Errorf("%d and %d lines while they settle", began, ended)
			}
			m.want(false, "at once after it")
			if began, ended := m.looks(10); began != 0 || ended != 1 {
				t.Errorf("%d and %d lines after they settled", began, ended)
			}
			m.want(true, "after it")
		})
	}
}

func TestFourSecondsAreNoDifference(t *testing.T) {
	m := newMachine(t)
	m.masters["store"] = 4 * time.Second
	if began, _ := m.looks(5); began != 0 {
		t.Error("a difference began")
	}
	m.want(true, "four seconds")
	if ok, _ := m.clock.Status(); !ok {
		t.Error("the check is not ok")
	}
}

// The server read its clock in the middle of the round trip.
func TestASlowReplyIsNoDifference(t *testing.T) {
	for _, ahead := range []time.Duration{4800 * time.Millisecond, -4800 * time.Millisecond} {
		m := newMachine(t)
		m.masters["store"], m.trip = ahead, 900*time.Millisecond
		if began, _ := m.looks(5); began != 0 {
			t.Errorf("%v ahead a difference began", ahead)
		}
	}
}

func TestADriftThatIsSmallBetweenTwoLooksIsFollowed(t *testing.T) {
	m := newMachine(t)
	for range 20 {
		m.masters["store"] += time.Second
		m.node += time.Second
		m.look()
		m.want(true, "a second more")
	}
}

func TestOneMasterOfAClusterIsEnough(t *testing.T) {
	m := newMachine(t)
	m.masters = map[string]time.Duration{"store:0-5460": 0, "store:5461-10922": -7 * time.Second, "store:10923-16383": 0}
	if change := m.look(); !strings.HasPrefix(change.Detail, "the clock of store:5461-10922 is 7 seconds behind") {
		t.Errorf("the look found %+v", change)
	}
	m.want(false, "one is behind")
	found := map[string]time.Duration{}
	for _, s := range m.clock.Skews() {
		found[s.Master] = s.Ahead.Round(time.Second)
	}
	if len(found) != 3 || found["store:5461-10922"] != -7*time.Second || found["store:0-5460"] != 0 {
		t.Errorf("the skews are %v", found)
	}
}

func TestAJumpOfStoreAndNodeTogetherIsBelievedAfterAMinute(t *testing.T) {
	m := newMachine(t)
	m.looks(3)
	before := m.clock.NowMS()
	m.masters["store"], m.node = time.Hour, time.Hour
	m.want(false, "before the look")
	if change := m.look(); !change.Began || !strings.Contains(change.Detail, "have jumped together") {
		t.Errorf("the look found %+v", change)
	}
	m.looks(50)
	m.want(false, "for most of a minute")
	if passed := m.clock.NowMS() - before; passed > 60_000 {
		t.Errorf("the node's time jumped by %d ms", passed)
	}
	if _, ended := m.looks(15); ended != 1 {
		t.Error("the difference did not end")
	}
	m.want(true, "after a minute")
	if passed := m.clock.NowMS() - before; passed < time.Hour.Milliseconds() {
		t.Errorf("the node's time is %d ms later", passed)
	}
}

func TestAJumpOfBothThatGoesBackIsNotBelieved(t *testing.T) {
	m := newMachine(t)
	m.looks(3)
	m.masters["store"], m.node = time.Hour, time.Hour
	m.looks(8)
	m.masters["store"], m.node = 0, 0
	m.looks(9)
	m.want(false, "while they settle")
	m.looks(5)
	m.want(true, "after it")
}

func TestANodeWhoseClockIsWrongEndsNothing(t *testing.T) {
	m := newMachine(t)
	m.look()
	m.node = -time.Hour
	m.want(false, "before the look")
	change := m.look()
	if !change.Began || !strings.HasPrefix(change.Detail, "the clock of store is 1 hour ahead of this node's") {
		t.Errorf("the look found %+v", change)
	}
	m.looks(300)
	m.want(false, "while it is wrong")
	m.node = 0
	m.looks(15)
	m.want(true, "when it is right again")
}

func TestANodeThatStartedWithAWrongClockGoesOnWhenItIsRight(t *testing.T) {
	m := newMachine(t)
	m.node = time.Hour
	m.clock = New(m.clock.source)
	m.looks(5)
	m.want(false, "while it is wrong")
	m.node = 0
	m.looks(70)
	m.want(true, "a minute after it is right")
}

func TestASlowReadingDoesNotCount(t *testing.T) {
	m := newMachine(t)
	m.look()
	m.masters["store"], m.trip = time.Hour, 1100*time.Millisecond
	if change := m.look(); change != (Change{}) {
		t.Errorf("the look found %+v", change)
	}
	m.want(true, "nothing is known")
	m.trip = 900 * time.Millisecond
	if change := m.look(); !change.Began {
		t.Error("a reading in time did not count")
	}
	m.masters["store"], m.trip = 0, 1100*time.Millisecond
	m.looks(30)
	m.want(false, "nothing new is known")
}

// Nobody can put right the clock of a machine that is gone.
func TestAMasterThatIsGoneHoldsNothingBackForLong(t *testing.T) {
	for name, c := range map[string]struct{ a, b, node, nodeAfter time.Duration }{
		"its clock was wrong":        {b: time.Hour},
		"all have jumped before":     {time.Hour, time.Hour, time.Hour, time.Hour},
		"the node's clock was wrong": {node: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.masters = map[string]time.Duration{"a": 0, "b": 0}
			m.looks(3)
			m.masters["a"], m.masters["b"], m.node = c.a, c.b, c.node
			m.looks(3)
			m.gone = "b"
			m.look()
			m.want(false, "at once")
			m.node = c.nodeAfter
			if began, ended := m.looks(100); began != 0 || ended != 1 {
				t.Errorf("%d differences began and %d ended", began, ended)
			}
			m.want(true, "after a while")
		})
	}
}

func TestADoubtLastsUntilTheNextLook(t *testing.T) {
	m := newMachine(t)
	m.look()
	m.clock.ReportSkew()
	m.want(false, "doubted")
	m.look()
	m.want(true, "looked at")
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than a second", 499 * time.Millisecond: "less than a second", time.Second: "1 second",
		3599600 * time.Millisecond: "1 hour", 8400 * time.Millisecond: "8 seconds", 65 * time.Second: "1 minute 5 seconds",
		time.Hour + 30*time.Second: "1 hour", 49 * time.Hour: "2 days 1 hour",
	} {
		if got := Words(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
