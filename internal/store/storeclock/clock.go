package storeclock

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxSkew is how far the clocks may be apart. The library skewed_clock of the scripts has it too.
	MaxSkew = 5 * time.Second
	// maxRoundTrip is the longest round trip of a reading. Half of it is the reading's error.
	maxRoundTrip = time.Second
	// settleTime is how long the clocks must agree after a difference: for longer than a lease of
	// presence lasts. A server counts for as long after its last reading.
	settleTime = 10 * time.Second
	// adoptTime is how long store and node must agree on a time to which both have jumped.
	adoptTime = time.Minute
)

// Source is where the node's clocks are read. Both are functions so that tests can move them.
type Source struct {
	Wall    func() time.Time     // without a monotonic part
	Elapsed func() time.Duration // of the monotonic clock since any instant
}

// SystemSource reads the clocks of the machine.
func SystemSource() Source {
	start := time.Now()
	return Source{
		Wall:    func() time.Time { return time.Now().Round(0) },
		Elapsed: func() time.Duration { return time.Since(start) },
	}
}

// Reading is the time of one server of the store, and when the node sent for it and got it, by
// Elapsed.
type Reading struct {
	Master         string
	Time           time.Time
	Sent, Received time.Duration
}

// Skew is by how much the clock of a server is ahead of the node's wall clock.
type Skew struct {
	Master string
	Ahead  time.Duration // negative: it is behind
}

// Clock knows how far the clocks are apart. It is safe for concurrent use.
type Clock struct {
	source Source

	mu           sync.Mutex
	wall         time.Time     // the node's time at elapsed, which all clocks agreed on
	at           time.Duration // Elapsed then
	skews        []comparison  // of the last look, by master
	skewReported bool          // ReportSkew was called since the last look
	differ       *difference   // nil while the clocks agree
}

// comparison is how far a server's clock is ahead of the node's two.
type comparison struct {
	master       string
	wall, steady time.Duration
	readAt       time.Duration // Elapsed
}

// difference is a time in which the clocks differ, or did a moment ago.
type difference struct {
	since  time.Duration
	detail string
	// goodSince and agreedSince are from when on the looks in a row found no difference, and none
	// between store and wall clock; negative when the last one did.
	goodSince, agreedSince time.Duration
}

// Change is what a look has changed.
type Change struct {
	Began, Ended bool
	Detail       string        // of a difference that began
	Lasted       time.Duration // of one that ended
}

// New returns a clock that knows of no difference.
func New(source Source) *Clock {
	return &Clock{source: source, wall: source.Wall(), at: source.Elapsed()}
}

// Elapsed returns the node's monotonic clock, for a Reading.
func (c *Clock) Elapsed() time.Duration { return c.source.Elapsed() }

// NowMS returns the node's time in ms since 1970. It starts from the last time at which the clocks
// of node and store agreed and adds the monotonic time since then, so a change of the system's
// clock does not move it.
func (c *Clock) NowMS() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady(c.source.Elapsed()).UnixMilli()
}

// steady returns the node's time at an instant of Elapsed. mu must be held.
func (c *Clock) steady(elapsed time.Duration) time.Time { return c.wall.Add(elapsed - c.at) }

// Agrees reports whether a time of the store, read just now, is the node's.
func (c *Clock) Agrees(store time.Time) bool {
	return time.UnixMilli(c.NowMS()).Sub(store).Abs() <= MaxSkew
}

// ReportSkew makes AllowsEnding return false until the next look. It is called when a time of the
// store differed from the node's.
func (c *Clock) ReportSkew() {
	c.mu.Lock()
	c.skewReported = true
	c.mu.Unlock()
}

// AllowsEnding reports whether this node may end rooms, turns, seasons, tournaments and leases of
// others whose time has passed.
func (c *Clock) AllowsEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	drift := c.source.Wall().Sub(c.steady(c.source.Elapsed()))
	return c.differ == nil && !c.skewReported && drift.Abs() <= MaxSkew
}

// Observe takes the readings of one look at all servers. A reading with a long round trip is
// replaced by the last good one for settleTime, so that a server that does not reply does not hold
// up the others; nothing on that server can end anyway. A look without any reading changes nothing.
func (c *Clock) Observe(readings []Reading) Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed, wall := c.source.Elapsed(), c.source.Wall()
	drift := wall.Sub(c.steady(elapsed))
	skews := make([]comparison, 0, len(readings))
	hasNew := false
	for _, r := range readings {
		if r.Time.IsZero() || r.Received-r.Sent > maxRoundTrip {
			i := slices.IndexFunc(c.skews, func(s comparison) bool { return s.master == r.Master })
			if i >= 0 && elapsed-c.skews[i].readAt <= settleTime {
				skews = append(skews, c.skews[i])
			}
			continue
		}
		steady := r.Time.Sub(c.steady((r.Sent + r.Received) / 2))
		skews = append(skews, comparison{r.Master, steady - drift, steady, elapsed})
		hasNew = true
	}
	if !hasNew {
		return Change{}
	}
	c.skews, c.skewReported = skews, false
	isSkewed := slices.ContainsFunc(skews, func(s comparison) bool { return s.wall.Abs() > MaxSkew })
	hasJumped := slices.ContainsFunc(skews, func(s comparison) bool { return s.steady.Abs() > MaxSkew })
	switch {
	case c.differ == nil && !isSkewed && !hasJumped:
		c.wall, c.at = wall, elapsed
		return Change{}
	case c.differ == nil:
		c.differ = &difference{since: elapsed, detail: describe(skews, isSkewed), goodSince: -1, agreedSince: -1}
	}
	return c.updateDifference(elapsed, wall, isSkewed, hasJumped)
}

// updateDifference ends a difference when the clocks have agreed for long enough. mu must be held.
func (c *Clock) updateDifference(elapsed time.Duration, wall time.Time, isSkewed, hasJumped bool) Change {
	d := c.differ
	follow := func(since *time.Duration, holds bool) (lasts time.Duration) {
		switch {
		case !holds:
			*since = -1
		case *since < 0:
			*since = elapsed
		}
		if *since < 0 {
			return -1
		}
		return elapsed - *since
	}
	good := follow(&d.goodSince, !isSkewed && !hasJumped)
	agreed := follow(&d.agreedSince, !isSkewed)
	switch {
	case good >= settleTime || agreed >= adoptTime:
		c.differ, c.wall, c.at = nil, wall, elapsed
		return Change{Ended: true, Lasted: elapsed - d.since}
	case good < 0:
		d.detail = describe(c.skews, isSkewed)
	default:
		d.detail = "the clocks of store and node agree again; what ends at a time goes on when they have for " +
			Words(settleTime)
	}
	return Change{Began: d.since == elapsed, Detail: d.detail}
}

// describe returns a sentence about the server that is farthest off.
func describe(skews []comparison, isSkewed bool) string {
	const held = "; nothing is ended by time until they agree"
	by := func(s comparison) time.Duration {
		if isSkewed {
			return s.wall
		}
		return s.steady
	}
	worst := slices.MaxFunc(skews, func(a, b comparison) int { return int(by(a).Abs() - by(b).Abs()) })
	direction := "ahead of"
	if by(worst) < 0 {
		direction = "behind"
	}
	if isSkewed {
		return fmt.Sprintf("the clock of %s is %s %s this node's%s", worst.master, Words(by(worst).Abs()), direction, held)
	}
	return fmt.Sprintf("the clocks of %s and of this node have jumped together, and are %s %s the time that has passed%s",
		worst.master, Words(by(worst).Abs()), direction, held)
}

// Status reports whether the clocks agree, with a sentence for anyone to read.
func (c *Clock) Status() (ok bool, detail string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.differ != nil {
		return false, c.differ.detail
	}
	return true, "the clocks of store and node differ by at most " + Words(MaxSkew)
}

// Skews returns by how much each server was ahead of the node at the last look.
func (c *Clock) Skews() []Skew {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Skew, len(c.skews))
	for i, s := range c.skews {
		list[i] = Skew{s.master, s.wall}
	}
	return list
}

// Words returns a duration in whole units, the two largest: "1 hour 5 minutes". Below a second it
// is "less than a second".
func Words(d time.Duration) string {
	if d = d.Round(time.Second); d == 0 {
		return "less than a second"
	}
	var words []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		n := d / unit.size
		d -= n * unit.size
		if n == 0 {
			if len(words) > 0 {
				break
			}
			continue
		}
		name := unit.name
		if n > 1 {
			name += "s"
		}
		if words = append(words, fmt.Sprintf("%d %s", n, name)); len(words) == 2 {
			break
		}
	}
	return strings.Join(words, " ")
}
