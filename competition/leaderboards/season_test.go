package leaderboards

import (
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	return testkit.Must(time.Parse(time.RFC3339, text))(t)
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

// A definition may allow far more entries than ever come, and the buckets of every season are named
// when it is removed.
func TestTheBucketsOfAllShardsAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		d    Definition
		want int64 // of a shard
	}{
		"any number of entries":        {Definition{Shards: 1}, minBuckets},
		"few entries":                  {Definition{Shards: 1, MaxEntries: new(int64(10))}, minBuckets},
		"a million entries":            {Definition{Shards: 1, MaxEntries: new(int64(1e6))}, 1_000_000 / recordsPerBucket},
		"as many as there may be":      {Definition{Shards: 1, MaxEntries: new(int64(1e9))}, maxBuckets},
		"the same on as many shards":   {Definition{Shards: maxShards, MaxEntries: new(int64(1e9))}, maxBuckets / maxShards},
		"a million entries on as many": {Definition{Shards: maxShards, MaxEntries: new(int64(1e6))}, minBuckets},
	} {
		if got := test.d.bucketsAhead(); got != test.want {
			t.Errorf("%s: %d buckets; want %d", name, got, test.want)
		}
	}
}

func TestASeasonWithoutEntriesIsRemovedByFewCommands(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	f.create(Definition{KeepSeasons: new(int64(0)), MaxEntries: new(int64(1e9))})
	testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
	sent := redistest.CountCommands(db)
	testkit.Must(f.sweepGame(t.Context(), f.gameID))(t)
	if got := sent.Load(); got > 30 {
		t.Errorf("%d commands", got)
	}
	if page, _, err := f.ListSeasons(t.Context(), f.server(), f.gameID, "top", 0, 10); err != nil || len(page) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// Whether a schedule is accepted does not depend on the time at which it is defined.
func TestAScheduleIsCheckedAtAnyTime(t *testing.T) {
	for _, cron := range []string{
		"0 0 1-30,99 * *", "0 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24 * * *", "*/0 * * * *",
		"0-59,60 * * * *", "0 0 30 2 *", "0 0 99W * *", "@daily", "0 0 * * * 2030", "0 0 * *", "0 0 * * 0-6,x",
		"0 0 1,L,,2 * *", "0 0 * 1-12,13 *", "", "* * * * *; *",
	} {
		var errs apierror.FieldErrors
		(&Schedule{Cron: cron, TimeZone: "UTC"}).check(&errs)
		if errs.Err() == nil {
			t.Errorf("%q is accepted", cron)
		}
	}
	for _, cron := range []string{
		"* * * * *", "0 0 * * MON", "0 0 1,15 * *", "0 0 L * *", "0 0 29 2 *", "0 0 15W * *", "0 9-17/2 * * 1-5",
		"0 0 * * 5#3", "30 6,18 * JAN,JUL 7",
	} {
		var errs apierror.FieldErrors
		(&Schedule{Cron: cron, TimeZone: "Europe/Berlin"}).check(&errs)
		testkit.Report(t, errs.Err(), "%q", cron)
	}
}

// A season that is ended by hand after a change of the schedule is followed by one of the new
// schedule alone. With the same schedule the boundary stays.
func TestASeasonThatIsEndedByHandIsFollowedByOneOfTheNewestSchedule(t *testing.T) {
	const day = 24 * 60 * 60
	month := &Schedule{EverySeconds: 30 * day}
	for name, c := range map[string]struct {
		schedule *Schedule
		patch    Patch
		want     time.Duration // how long the next season lasts
	}{
		"a shorter one":       {month, Patch{Schedule: wire.Given(&Schedule{EverySeconds: day})}, day * time.Second},
		"none":                {month, Patch{Schedule: wire.Given[Schedule](nil)}, 0},
		"one instead of none": {nil, Patch{Schedule: wire.Given(month)}, 30 * day * time.Second},
		"the same": {
			month, Patch{Schedule: wire.Given(&Schedule{EverySeconds: 30 * day})}, 30 * day * time.Second,
		},
		"a new name": {month, Patch{Name: new("New")}, 30 * day * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, redistest.Single(t))
			f.create(Definition{Schedule: c.schedule})
			testkit.Must(f.Patch(t.Context(), f.server(), f.gameID, "top", c.patch))(t)
			f.endSeason(1)
			next := f.board().find(2)
			got := time.Duration(next.closes-next.opens) * time.Millisecond
			if next.closes == 0 {
				got = 0
			}
			if got > c.want || got < c.want-time.Minute { // the boundary may be that of the first season
				t.Errorf("the next season lasts %v; want %v", got, c.want)
			}
		})
	}
}
