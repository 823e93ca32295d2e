package leaderboards

import (
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestSeasonsFollowTheClockOnTheWall(t *testing.T) {
	for name, test := range map[string]struct {
		schedule Schedule
		after    string
		want     []string
	}{
		"a week in Berlin, into winter": {
			Schedule{Cron: "0 0 * * 1", TimeZone: "Europe/Berlin"},
			"2026-10-15T12:00:00Z",
			[]string{"2026-10-18T22:00:00Z", "2026-10-25T23:00:00Z"},
		},
		"a time that does not exist is the end of the gap": {
			Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"},
			"2026-03-28T02:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		},
		"a time that comes twice is the first": {
			Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"},
			"2026-10-24T02:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"each quarter of an hour around the gap": {
			Schedule{Cron: "*/15 * * * *", TimeZone: "Europe/Berlin"},
			"2026-03-29T00:40:00Z",
			[]string{"2026-03-29T00:45:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z"},
		},
		"half an hour of summer time on Lord Howe": {
			Schedule{Cron: "15 2 * * *", TimeZone: "Australia/Lord_Howe"},
			"2026-10-02T16:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}, // 02:00 to 02:30 is skipped on the 4th
		},
		"a day that Apia skipped": {
			Schedule{Cron: "0 0 * * *", TimeZone: "Pacific/Apia"},
			"2011-12-28T12:00:00Z",
			[]string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		},
		"an interval": {
			Schedule{EverySeconds: 90}, "2026-01-01T00:00:00Z", []string{"2026-01-01T00:01:30Z", "2026-01-01T00:03:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := at(t, test.after)
			for _, want := range test.want {
				next, err := test.schedule.next(after)
				if err != nil || !next.Equal(at(t, want)) {
					t.Fatalf("after %v: %v, %v; want %s", after, next.UTC(), err, want)
				}
				after = next
			}
		})
	}
}

func TestNoSeasonIsShorterThanAMinute(t *testing.T) {
	s := Schedule{Cron: "* * * * *", TimeZone: "Europe/Berlin"}
	begin := at(t, "2026-03-29T00:00:20Z")
	for after := begin; after.Before(begin.Add(3 * time.Hour)); {
		next, err := s.next(after)
		if err != nil || next.Sub(after) < time.Minute || next.Sub(after) > 2*time.Minute {
			t.Fatalf("after %v: %v, %v", after, next, err)
		}
		after = next
	}
}

func TestSeasonsAreStoredAhead(t *testing.T) {
	d := Definition{Schedule: &Schedule{EverySeconds: 60}, GraceSeconds: 5}
	b := &board{
		definitions: map[int64]*Definition{1: &d}, bucketsOfNext: 1024,
		seasons: []season{{number: 1, opens: 0, closes: 60_000, definition: 1}},
	}
	added, err := b.extend(130_000)
	if err != nil || len(added) != 6 { // 2 and 3 have begun
		t.Fatalf("%v, %v", added, err)
	}
	for i, s := range added {
		if s.number != int64(i+2) || s.opens != int64(i+1)*60_000 || s.closes != s.opens+60_000 || s.graceMS != 5_000 {
			t.Errorf("%+v", s)
		}
	}
}
