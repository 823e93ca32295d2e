//go:build linux

package drill

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// result is what clients and operators noticed of one drill: a row of the table.
type result struct {
	requests, failed int
	failures         []string // one line for each kind, since the change

	slowest time.Duration // of the first attempts

	open, moved, cut int // sockets
	lost, doubled    int // events

	acknowledged, gone int // calls

	missing             int64 // entries of the ledger that the store lost
	missingAcknowledged int64 // those whose calls had been acknowledged
	counted             int64 // acknowledged entries of which the nodes say that they are lost

	noticedAfter time.Duration // since the store was back, less than 0: never

	moneyAfter time.Duration // from the change to the end of the last attempt that failed, less than 0: never
	delta      int64         // units
	books      string        // what else is wrong with the books, "" for nothing
}

// column is one column of the table.
type column struct {
	title string
	text  func(r result) string
	want  func(d drill, r result) string // what should be there, "" when it is
}

// columns are those of the table. What has no want is a figure that promises nothing.
var columns = []column{
	{"requests", func(r result) string { return fmt.Sprint(r.requests) }, nil},
	{
		"failed first attempts", func(r result) string { return fmt.Sprint(r.failed) },
		wantZero(func(d drill, r result) bool { return d.isPlanned && r.failed > 0 }),
	},
	{"slowest", func(r result) string { return duration(r.slowest) }, nil},
	{"sockets", func(r result) string { return fmt.Sprint(r.open) }, nil},
	{
		"moved", func(r result) string { return fmt.Sprint(r.moved) },
		wantZero(func(d drill, r result) bool { return d.keepsSockets && r.moved > 0 }),
	},
	{
		"cut", func(r result) string { return fmt.Sprint(r.cut) },
		wantZero(func(d drill, r result) bool { return (d.isPlanned || d.keepsSockets) && r.cut > 0 }),
	},
	{
		"events lost", func(r result) string { return fmt.Sprint(r.lost) },
		wantZero(func(_ drill, r result) bool { return r.lost > 0 }),
	},
	{
		"doubled", func(r result) string { return fmt.Sprint(r.doubled) },
		wantZero(func(_ drill, r result) bool { return r.doubled > 0 }),
	},
	{"acknowledged", func(r result) string { return fmt.Sprint(r.acknowledged) }, nil},
	{
		"of them lost", func(r result) string { return fmt.Sprint(r.gone) },
		wantZero(func(d drill, r result) bool { return !d.mayLose && r.gone > 0 }),
	},
	{
		"entries lost, acknowledged",
		func(r result) string { return fmt.Sprintf("%d, %d", r.missing, r.missingAcknowledged) },
		wantZero(func(d drill, r result) bool { return !d.mayLose && r.missingAcknowledged > 0 }),
	},
	{
		"counted", func(r result) string { return fmt.Sprint(r.counted) },
		func(_ drill, r result) string {
			if r.counted != r.missingAcknowledged {
				return fmt.Sprint(r.missingAcknowledged)
			}
			return ""
		},
	},
	{
		"noticed after", func(r result) string {
			if r.missingAcknowledged == 0 {
				return "–"
			}
			return duration(r.noticedAfter)
		},
		func(_ drill, r result) string {
			if r.missingAcknowledged > 0 && (r.noticedAfter < 0 || r.noticedAfter > noticeLimit) {
				return "at most " + duration(noticeLimit)
			}
			return ""
		},
	},
	{
		"money back after", func(r result) string { return duration(r.moneyAfter) },
		func(_ drill, r result) string {
			if r.moneyAfter < 0 {
				return "by itself"
			}
			return ""
		},
	},
	{
		"books", func(r result) string {
			if r.books != "" {
				return fmt.Sprintf("%d, wrong", r.delta)
			}
			return fmt.Sprint(r.delta)
		},
		wantZero(func(_ drill, r result) bool { return r.delta != 0 || r.books != "" }),
	},
}

const noticeLimit = 5 * time.Second

func wantZero(isWrong func(d drill, r result) bool) func(drill, result) string {
	return func(d drill, r result) string {
		if isWrong(d, r) {
			return "0"
		}
		return ""
	}
}

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "never"
	case d == 0:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// wrong returns the columns whose cells are not as they should be, by title.
func (r result) wrong(d drill) map[string]string {
	list := map[string]string{}
	for _, c := range columns {
		if c.want == nil {
			continue
		}
		if want := c.want(d, r); want != "" {
			list[c.title] = want
		}
	}
	return list
}

// row returns the row of a drill. A cell that is not as it should be says so.
func row(d drill, r result) string {
	cells := []string{d.name}
	wrong := r.wrong(d)
	for _, c := range columns {
		text := c.text(r)
		if want, isWrong := wrong[c.title]; isWrong {
			text = fmt.Sprintf("**%s, not %s**", text, want)
		}
		cells = append(cells, text)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// header returns the lines above the rows.
func header() string {
	titles := []string{"drill"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	return "| " + strings.Join(titles, " | ") + " |\n|" + strings.Repeat("---|", len(titles))
}

// TestACellThatIsNotAsItShouldBeSaysSo breaks each promise of each kind of drill.
func TestACellThatIsNotAsItShouldBeSaysSo(t *testing.T) {
	planned, failover := drill{isPlanned: true, keepsSockets: true}, drill{isFailover: true, mayLose: true}
	lossOf := func(counted int64, after time.Duration) result {
		return result{missing: 3, missingAcknowledged: 2, gone: 2, counted: counted, noticedAfter: after}
	}
	for _, c := range []struct {
		drill drill
		r     result
		wrong string // title of the column, "" for none
	}{
		{planned, result{requests: 9, slowest: time.Hour, open: 9, acknowledged: 9}, ""},
		{planned, result{failed: 1}, "failed first attempts"},
		{planned, result{moved: 1}, "moved"},
		{planned, result{cut: 1}, "cut"},
		{planned, result{gone: 1}, "of them lost"},
		{planned, result{moneyAfter: -1}, "money back after"},
		{drill{}, result{failed: 1, moved: 1, cut: 1, moneyAfter: time.Second}, ""},
		{drill{}, result{lost: 1}, "events lost"},
		{drill{}, result{doubled: 1}, "doubled"},
		{drill{}, result{delta: -1}, "books"},
		{drill{}, result{books: "wrong"}, "books"},
		{failover, lossOf(2, time.Second), ""},
		{failover, lossOf(3, time.Second), "counted"},
		{failover, lossOf(2, -1), "noticed after"},
		{failover, lossOf(2, 6*time.Second), "noticed after"},
		{drill{isFailover: true}, result{missing: 3, noticedAfter: -1}, ""},
		{drill{isFailover: true}, result{missing: 3, missingAcknowledged: 1, counted: 1}, "entries lost, acknowledged"},
	} {
		wrong := c.r.wrong(c.drill)
		if _, ok := wrong[c.wrong]; ok != (c.wrong != "") || len(wrong) != min(1, len(c.wrong)) {
			t.Errorf("%+v in %+v: %v, not %q", c.r, c.drill, wrong, c.wrong)
		}
		if marked := strings.Count(row(c.drill, c.r), "**") / 2; marked != len(wrong) {
			t.Errorf("%s marks %d cells", row(c.drill, c.r), marked)
		}
	}
}
