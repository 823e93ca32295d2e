package leaderboards

import (
	"fmt"
	"strings"
	"time"

	_ "time/tzdata" // so that a zone means the same on every machine

	"github.com/adhocore/gronx"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/validate"
)

// seasonsAhead is the number of future seasons whose boundaries are stored.
const seasonsAhead = 4

// maxSeasonsAtOnce bounds how many seasons one change adds, after an outage of days.
const maxSeasonsAtOnce = 256

// season is one season of a board: a row of its table.
type season struct {
	number     int64
	opens      int64 // ms
	closes     int64 // ms; 0: staff ends it
	graceMS    int64
	definition int64 // version of the definition that it has
	buckets    int64 // hashes over which the records of a shard are spread
	isSealed   bool  // on every shard

	isFunded bool    // its prizes lie in their account, or did
	reviewMS int64   // until when staff may look at a sealed season before it is paid; 0: not sealed
	outcome  outcome // of its prizes
}

// outcome is the state of the prizes of a season.
type outcome string

const (
	undecided outcome = ""
	approved  outcome = "approved" // by staff, and not paid yet
	paid      outcome = "paid"
	voided    outcome = "void"
)

// owesPrizes reports whether prizes of the season are still to be paid or returned.
func (s *season) owesPrizes() bool { return s.isFunded && s.outcome != paid && s.outcome != voided }

// isPayable reports whether the prizes are to be paid at a time (ms).
func (s *season) isPayable(ms int64) bool {
	isReviewed := s.reviewMS != 0 && ms >= s.reviewMS
	return s.isSealed && s.owesPrizes() && (s.outcome == approved || isReviewed)
}

// isHeld reports whether the season is in review at a time (ms).
func (s *season) isHeld(ms int64) bool {
	return s.isSealed && s.owesPrizes() && s.outcome == undecided && ms < s.reviewMS
}

// isOpenAt reports whether the season takes scores that come at a time (ms).
func (s *season) isOpenAt(ms int64) bool { return s.opens <= ms && (s.closes == 0 || ms < s.closes) }

// sealsAt returns the ms from which the season takes no late results, 0 for a season without an
// end.
func (s *season) sealsAt() int64 {
	if s.closes == 0 {
		return 0
	}
	return s.closes + s.graceMS
}

// isOver reports whether the season takes no score any more at a time (ms).
func (s *season) isOver(ms int64) bool { return s.isSealed || s.closes != 0 && ms >= s.sealsAt() }

// SeasonStatus is the stage of a season.
type SeasonStatus string

// All states of a season, in their order.
const (
	SeasonUpcoming SeasonStatus = "UPCOMING" // of a board before its first season
	SeasonOpen     SeasonStatus = "OPEN"
	SeasonClosing  SeasonStatus = "CLOSING" // over; late results are accepted until it is sealed
	SeasonSealed   SeasonStatus = "SEALED"
	SeasonHeld     SeasonStatus = "HELD" // sealed, and its prizes are in review
	SeasonPaid     SeasonStatus = "PAID" // sealed, and its prizes are paid
)

func (s *season) statusAt(ms int64) SeasonStatus {
	switch {
	case s.outcome == paid:
		return SeasonPaid
	case s.isHeld(ms):
		return SeasonHeld
	case s.isSealed:
		return SeasonSealed
	case ms < s.opens:
		return SeasonUpcoming
	case s.isOpenAt(ms):
		return SeasonOpen
	default:
		return SeasonClosing
	}
}

// check adds an error for a schedule that cannot work.
func (s *Schedule) check(errs *apierror.FieldErrors) {
	switch {
	case (s.Cron == "") == (s.EverySeconds == 0):
		errs.Add("schedule", "required", "must have cron with timeZone, or everySeconds")
		return
	case s.Cron == "":
		validate.Range(errs, "schedule.everySeconds", s.EverySeconds, minSeasonSeconds, maxSeasonSeconds)
		if s.TimeZone != "" {
			errs.Add("schedule.timeZone", "range", "is for cron")
		}
		return
	}
	if s.TimeZone == "" || s.TimeZone == "Local" {
		errs.Add("schedule.timeZone", "required", "must be a zone of the IANA database")
	} else if _, err := time.LoadLocation(s.TimeZone); err != nil {
		errs.Add("schedule.timeZone", "unknown", "must be a zone of the IANA database")
	}
	switch {
	case !isValidCron(s.Cron):
		errs.Add("schedule.cron", "format", "must be a cron expression of five fields")
	case !s.fires(time.Now()):
		errs.Add("schedule.cron", "range", "must fire at some time, and again")
	}
}

// equals reports whether two schedules, nil for none, are the same.
func (s *Schedule) equals(other *Schedule) bool {
	if s == nil || other == nil {
		return s == other
	}
	return *s == *other
}

// isValidCron reports whether each value of a cron expression of five fields is valid. The library
// stops at the first value of a list that fits the time, so that one behind it would be found
// faulty at another time.
func isValidCron(expression string) bool {
	fields := strings.Fields(expression)
	if len(fields) != 5 || !gronx.IsValid(expression) {
		return false
	}
	for i, field := range fields {
		for value := range strings.SplitSeq(field, ",") {
			alone := []string{"*", "*", "*", "*", "*"}
			alone[i] = value
			if !gronx.IsValid(strings.Join(alone, " ")) {
				return false
			}
		}
	}
	return true
}

// fires reports whether there are the boundaries that a board stores from a time on. The library
// looks ahead for a bounded time.
func (s *Schedule) fires(after time.Time) bool {
	zoned := *s
	if _, err := time.LoadLocation(s.TimeZone); err != nil {
		zoned.TimeZone = "UTC" // another error
	}
	for range seasonsAhead + 2 {
		var err error
		if after, err = zoned.next(after); err != nil {
			return false
		}
	}
	return true
}

// next returns the first boundary at least a minute after a time.
//
// A cron expression is about the clock on the wall. A local time that does not exist is the first
// instant after the gap, and one that comes twice is the first of the two.
func (s *Schedule) next(after time.Time) (time.Time, error) {
	if s.EverySeconds > 0 {
		return after.Add(time.Duration(s.EverySeconds) * time.Second), nil
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("find the next season: %w", err)
	}
	earliest := after.Add(minSeasonSeconds * time.Second)
	local := after.In(zone)
	_, offset := local.Zone()
	wall := local.Add(time.Duration(offset) * time.Second).UTC() // the clock on the wall, as if in UTC
	for {
		if wall, err = gronx.NextTickAfter(s.Cron, wall, false); err != nil {
			return time.Time{}, fmt.Errorf("find the next season: %w", err)
		}
		if at := instantOf(wall, zone); !at.Before(earliest) {
			return at, nil
		}
	}
}

// instantOf returns when the clock on the wall of a zone shows a time for the first time, or would
// show it: then the first instant after the gap.
func instantOf(wall time.Time, zone *time.Location) time.Time {
	const around = 48 * time.Hour // more than any two zones differ
	var skipped time.Time
	for i, near := range []time.Time{wall.Add(-around), wall.Add(around)} {
		_, offset := near.In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		if _, is := at.In(zone).Zone(); is == offset { // the offset before is the first of two
			return at.UTC()
		}
		if i == 0 {
			skipped, _ = at.In(zone).ZoneBounds()
		}
	}
	return skipped.UTC()
}

// extend returns the seasons that are missing so that seasonsAhead are stored after the one at a
// time (ms), at most maxSeasonsAtOnce.
func (b *board) extend(nowMS int64) (added []season, err error) {
	last := b.seasons[len(b.seasons)-1]
	version, d := b.newest()
	ahead := 0
	for _, s := range b.seasons {
		if s.opens > nowMS {
			ahead++
		}
	}
	for last.closes != 0 && ahead < seasonsAhead && len(added) < maxSeasonsAtOnce {
		next := season{
			number: last.number + 1, opens: last.closes, graceMS: d.GraceSeconds * 1000, definition: version,
			buckets: b.bucketsOfNext,
		}
		if next.closes, err = d.closeAfter(next.opens); err != nil {
			return nil, err
		}
		if next.opens > nowMS {
			ahead++
		}
		added, last = append(added, next), next
	}
	return added, nil
}

// closeAfter returns the ms at which a season that opens at a ms closes, 0 without a schedule.
func (d *Definition) closeAfter(opensMS int64) (int64, error) {
	if d.Schedule == nil {
		return 0, nil
	}
	at, err := d.Schedule.next(time.UnixMilli(opensMS))
	return at.UnixMilli(), err
}

// Bounds of the number of buckets. 55 records of 36 or 37 bytes, of players whose ids follow each
// other, fill the 2 KiB that the store allocates for them: with the key of their bucket 38.9 bytes
// each. 64 take 41.4, and more records cost more time. Ids with gaps make buckets of all sizes:
// 41.6 bytes each.
const (
	minBuckets       = 1 << 10
	maxBuckets       = 1 << 18
	recordsPerBucket = 55
)

// bucketsFor returns the number of buckets of a shard for a number of entries.
func bucketsFor(entriesOfShard int64) int64 {
	return min(max(entriesOfShard/recordsPerBucket, minBuckets), maxBuckets)
}

// bucketsAhead returns the number of buckets of a shard for the entries that a definition allows.
// All shards together have maxBuckets at most, since few of the entries may ever come and each
// bucket is named when the season is removed.
func (d *Definition) bucketsAhead() int64 {
	return min(bucketsFor(d.entriesExpectedPerShard()), max(maxBuckets/int64(d.Shards), minBuckets))
}
