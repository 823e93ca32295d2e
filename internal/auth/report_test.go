package auth

import (
	"slices"
	"testing"
	"time"
)

// A report costs the store a script: a player who sends some messages a second, in a room of
// thousands, must not make one of each. Nor must a thousand players who come back in one second.
func TestACallerIsReportedSeldomUnlessHalfOfTheShareIsUsed(t *testing.T) {
	const class, share = ClassRead, 500
	limit := Limit{PerSecond: 1, Burst: 4 * share, Scope: ScopeUser}
	quota := Limit{PerDay: 100, Burst: 100}
	now := time.Now()
	for name, c := range map[string]struct {
		limit Limit
		uses  []int64
		after time.Duration
		want  int // how often the bucket is in the list
	}{
		"at once":                          {limit, []int64{1}, 0, 0},
		"before an interval is over":       {limit, []int64{1, share/2 - 2}, callerReportInterval - 1, 0},
		"an interval later":                {limit, []int64{1, 1, 1}, callerReportInterval, 1},
		"half of the share":                {limit, []int64{share/2 - 1, 1, 1}, 0, 1},
		"both":                             {limit, []int64{share}, callerReportInterval, 2},
		"half of the share of a day":       {quota, []int64{20}, callerReportInterval, 0},
		"a quota of a day, later":          {quota, []int64{1}, dailyReportInterval, 1},
		"a quota of a day, some ms before": {quota, []int64{1}, dailyReportInterval - time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Limiter{limits: Limits{class: c.limit}}
			b := &bucket{key: bucketKey{class: class}}
			sum := int64(0)
			for _, n := range c.uses {
				l.reportLater(b, c.limit, now, n)
				sum += n
			}
			due := l.takeDue(now.Add(c.after), false)
			if want := slices.Repeat([]*bucket{b}, c.want); !slices.Equal(due, want) {
				t.Fatalf("%d buckets are due, want %d", len(due), c.want)
			}
			reported := int64(0)
			for _, b := range due {
				reported += l.startReport(b).used
			}
			if want := sum * int64(min(c.want, 1)); reported != want {
				t.Errorf("%d permits are reported, want %d", reported, want)
			}
			// What is used while the report is under way is in the next one, whichever list it was in.
			l.reportLater(b, c.limit, now, 1)
			b.unreported -= reported
			b.reporting = 0
			last := int64(0)
			for _, b := range l.takeDue(now, true) {
				last += l.startReport(b).used
			}
			if want := sum - reported + 1; last != want {
				t.Errorf("%d permits are reported at the end, want %d", last, want)
			}
		})
	}
}

// The buckets that are due are found without a look at those that are not.
func TestBucketsAreDueInTheOrderOfTheirFirstUse(t *testing.T) {
	limit := Limit{PerSecond: 1, Burst: 100, Scope: ScopeUser}
	l := &Limiter{limits: Limits{ClassRead: limit}}
	now := time.Now()
	buckets := make([]*bucket, 5)
	for i := range buckets {
		buckets[i] = &bucket{key: bucketKey{class: ClassRead}}
		l.reportLater(buckets[i], limit, now.Add(time.Duration(i)*time.Second), 1)
	}
	for second, want := range [][]*bucket{
		2: buckets[:1], 3: buckets[1:2], 4: buckets[2:3], 5: buckets[3:4], 6: buckets[4:],
	} {
		due := l.takeDue(now.Add(time.Duration(second)*time.Second), false)
		if !slices.Equal(due, want) {
			t.Errorf("after %d seconds %d buckets are due, want %d", second, len(due), len(want))
		}
	}
}
