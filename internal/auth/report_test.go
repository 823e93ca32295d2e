package auth

import (
	"testing"
	"time"
)

// A report costs the store a script: a player who sends some messages a second, in a room of
// thousands, must not make one of each.
func TestACallerIsReportedSeldomUnlessHalfOfTheShareIsUsed(t *testing.T) {
	const share = 500
	perSecond := Limit{PerSecond: 1, Burst: 4 * share, Scope: ScopeUser}
	now := time.Now()
	soon, ago := now.Add(time.Minute), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		class      Class
		limit      Limit
		unreported int64
		from       time.Time
		want       bool
	}{
		"the first use":                  {ClassRead, perSecond, 1, time.Time{}, true},
		"soon after a report":            {ClassRead, perSecond, share/2 - 1, soon, false},
		"half of the share":              {ClassRead, perSecond, share / 2, soon, true},
		"long after a report":            {ClassRead, perSecond, 1, ago, true},
		"without a share":                {ClassSignIn, perSecond, 0, soon, true},
		"the first use of a day's":       {ClassRequiredKeys, Limit{PerDay: 100, Burst: 100}, 1, time.Time{}, false},
		"half of the share of a day":     {ClassRequiredKeys, Limit{PerDay: 100, Burst: 100}, 20, soon, false},
		"long after a report of a day's": {ClassRequiredKeys, Limit{PerDay: 100, Burst: 100}, 1, ago, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bucket{key: bucketKey{class: c.class}, unreported: c.unreported, reportFrom: c.from}
			if got := b.isReportTime(c.limit); got != c.want {
				t.Errorf("got %v", got)
			}
			if next := time.Until(b.reportFrom); c.want && (next <= 0 || next > dailyReportInterval) {
				t.Errorf("the next report is in %v", next)
			}
		})
	}
}
