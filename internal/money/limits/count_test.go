package limits

import (
	"fmt"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A loss counts in its hour and the 24 after it, and a stake counts as an open room for as long as
// it is held.
func TestStakesOfTwoDaysAgoAreOpenAndNoLosses(t *testing.T) {
	const looked, user, oldRoom, newRoom = 7, 9, "tour:1", "tour:2"
	db := redistest.Single(t)
	s := &Service{db: db}
	now := db.Client.Time(t.Context()).Val()
	thisHour := hourOf(now.UnixMilli())
	var lines []any
	add := func(hoursAgo, delta int64, reason, ref string) {
		at := (thisHour - hoursAgo) * time.Hour.Milliseconds()
		lines = append(lines, fmt.Sprintf("%d-n|user.balance|%d|GOLD|0|%d|0|0|%s|%s", len(lines)+1, at, delta, reason, ref))
	}
	add(49, -5, entryReason, "tour:0")
	add(48, 5, "refund", "tour:0")
	add(48, -7, entryReason, oldRoom)
	for range countedPageSize { // the stake is on an older page than all that is recent
		add(26, 1, "credit", "a gift")
	}
	add(25, -100, "prize", newRoom)
	add(24, -1000, "prize", newRoom)
	add(1, -3, entryReason, newRoom)
	add(0, 20, "payout", newRoom)
	testkit.Check(t, db.Client.RPush(t.Context(), keys.WalletLines(looked, user), lines...).Err())
	testkit.Check(t, db.Client.HSet(t.Context(), keys.Wallet(looked, user), "GOLD", "0|7").Err())
	counted, err := s.countStakes(t.Context(), looked, user, "GOLD")
	want := fmt.Sprintf("%d:1000,%d:3,%d:-20,", thisHour-24, thisHour-1, thisHour)
	if err != nil || counted.open != 1 || counted.hours != want {
		t.Errorf("%+v, %v; want 1 open and the hours %s", counted, err, want)
	}
}

func TestLossesAreShownForADay(t *testing.T) {
	now := time.Now()
	hours := ""
	for ago, units := range map[int64]int64{48: 10_000, 25: 1000, 24: 100, 1: 10, 0: -1} {
		hours += fmt.Sprintf("%d:%d,", hourOf(now.UnixMilli())-ago, units)
	}
	if got := sumLosses(hours, now); got != 109 {
		t.Errorf("%d are lost; want 109", got)
	}
}
