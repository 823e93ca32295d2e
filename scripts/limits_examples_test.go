package scripts_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
)

// limitExamples has calls that set the limits of a player, and calls that these refuse.
var limitExamples = []example{
	{scripts.WalletLimit, "the first, with what was counted", "ok", func(f *fixture) call {
		f.setBalance(7, "1000", "0")
		return f.newLimit(7, values{"new_stake": "250"})
	}},
	{scripts.WalletLimit, "of a player without a wallet", "ok", func(f *fixture) call {
		return f.newLimit(7, values{"new_stake": "250"})
	}},
	{scripts.WalletLimit, "an exclusion alone", "ok", func(f *fixture) call {
		return f.newLimit(7, values{"new_excluded": inDays(1), "counted_at": ""})
	}},
	{scripts.WalletLimit, "looser, a day later", "ok", func(f *fixture) call {
		f.newLimit(7, values{"new_stake": "250", "new_rooms": 1}).want(scripts.OK)
		return f.newLimit(7, values{"new_stake": "", "new_rooms": 2})
	}},
	{scripts.WalletLimit, "tighter, by staff", "ok", func(f *fixture) call {
		f.newLimit(7, values{"new_stake": "250"}).want(scripts.OK)
		return f.newLimit(7, values{"new_stake": "249", "by_staff": 1, "new_excluded": inDays(1)})
	}},
	{scripts.WalletLimit, "not counted yet", "stale", func(f *fixture) call {
		return f.newLimit(7, values{"new_stake": "250", "counted_at": ""})
	}},
	{scripts.WalletLimit, "counted before money moved", "stale", func(f *fixture) call {
		f.newCall(scripts.WalletCredit, nil).want(scripts.OK)
		return f.newLimit(7, values{"new_stake": "250"})
	}},
	{scripts.WalletLimit, "looser, by staff", "forbidden", func(f *fixture) call {
		f.newLimit(7, values{"new_stake": "250"}).want(scripts.OK)
		return f.newLimit(7, values{"new_stake": "251", "by_staff": 1})
	}},
	{scripts.WalletLimit, "more rooms, by staff", "forbidden", func(f *fixture) call {
		f.newLimit(7, values{"new_rooms": 1}).want(scripts.OK)
		return f.newLimit(7, values{"new_rooms": "", "by_staff": 1})
	}},
	{scripts.WalletLimit, "more losses, by staff", "forbidden", func(f *fixture) call {
		f.newLimit(7, values{"new_loss": "9007199254740990"}).want(scripts.OK)
		return f.newLimit(7, values{"new_loss": "9007199254740991", "by_staff": 1})
	}},
	{scripts.WalletLimit, "an exclusion that ends earlier", "self_excluded", func(f *fixture) call {
		f.newLimit(7, values{"new_excluded": inDays(2)}).want(scripts.OK)
		return f.newLimit(7, values{"new_excluded": inDays(1)})
	}},

	{scripts.RoomCreate, "within the player's limits", "ok", func(f *fixture) call {
		return f.newLimitedRoom(values{
			"new_stake": 250, "new_rooms": 1, "new_loss": 250,
		})
	}},
	{scripts.RoomCreate, "above the player's highest stake", "stake_limit", func(f *fixture) call {
		return f.newLimitedRoom(values{"new_stake": 249})
	}},
	{scripts.RoomCreate, "in as many rooms as the player wants", "open_rooms_limit", func(f *fixture) call {
		return f.newLimitedRoom(values{"new_rooms": 2, "open": 2})
	}},
	{scripts.RoomCreate, "a unit above the player's highest loss", "loss_limit", func(f *fixture) call {
		return f.newLimitedRoom(values{"new_loss": 1000, "hours": hoursAgo(24, 751)})
	}},
	{scripts.RoomCreate, "losses of 25 hours ago", "ok", func(f *fixture) call {
		return f.newLimitedRoom(values{"new_loss": 1000, "hours": hoursAgo(25, 751)})
	}},
	{scripts.RoomCreate, "an excluded player", "self_excluded", func(f *fixture) call {
		return f.newLimitedRoom(values{"new_excluded": inDays(1)})
	}},
	{scripts.RoomCreate, "an excluded player in a free room", "ok", func(f *fixture) call {
		f.newLimit(1, values{"new_excluded": inDays(1)}).want(scripts.OK)
		_, create := f.newRoom(free)
		return create
	}},
	{scripts.RoomJoin, "within the player's limits", "ok", func(f *fixture) call {
		return f.newLimitedJoin(values{
			"new_stake": 250, "new_rooms": 1, "new_loss": 250,
		})
	}},
	{scripts.RoomJoin, "above the player's highest stake", "stake_limit", func(f *fixture) call {
		return f.newLimitedJoin(values{"new_stake": 249})
	}},
	{scripts.RoomJoin, "in as many rooms as the player wants", "open_rooms_limit", func(f *fixture) call {
		return f.newLimitedJoin(values{"new_rooms": 0})
	}},
	{scripts.RoomJoin, "a unit above the player's highest loss", "loss_limit", func(f *fixture) call {
		return f.newLimitedJoin(values{"new_loss": 249})
	}},
	{scripts.RoomJoin, "an excluded player", "self_excluded", func(f *fixture) call {
		return f.newLimitedJoin(values{"new_excluded": inDays(1)})
	}},
	{scripts.RoomRematch, "above the player's highest stake", "stake_limit", func(f *fixture) call {
		return f.newLimitedRematch(values{"new_stake": 249})
	}},
	{scripts.RoomRematch, "in as many rooms as the player wants", "open_rooms_limit", func(f *fixture) call {
		return f.newLimitedRematch(values{"new_rooms": 0})
	}},
	{scripts.RoomRematch, "a unit above the player's highest loss", "loss_limit", func(f *fixture) call {
		return f.newLimitedRematch(values{"new_loss": 249})
	}},
	{scripts.RoomRematch, "an excluded player", "self_excluded", func(f *fixture) call {
		return f.newLimitedRematch(values{"new_excluded": inDays(1)})
	}},
}

// inDays returns a time in days from now in milliseconds, the same in every call of a test.
func inDays(days int64) int64 { return testBegan.Add(time.Duration(days) * 24 * time.Hour).UnixMilli() }

var testBegan = time.Now()

// hoursAgo returns the hours of a record with a loss in one of them.
func hoursAgo(hours, units int64) string {
	return fmt.Sprintf("%d:%d,", time.Now().Unix()/3600-hours, units)
}

// newLimit returns the call that sets limits of a player, who had no event before.
func (f *fixture) newLimit(user int, given values) call {
	f.t.Helper()
	return f.newCall(scripts.WalletLimit, values{
		"user": user, "by_staff": 0, "new_stake": "=", "new_rooms": "=",
		"new_loss": "=", "new_excluded": "=", "counted_at": 0, "open": 0, "hours": "",
	}).with(given)
}

// newLimitedRoom returns the call by which player 1 opens a room for 250 under limits.
func (f *fixture) newLimitedRoom(limits values) call {
	f.t.Helper()
	f.setBalance(1, "1000", "0")
	f.newLimit(1, limits).want(scripts.OK)
	_, create := f.newRoom(nil)
	return create
}

// newLimitedJoin returns the call by which player 2 joins a room for 250 under limits.
func (f *fixture) newLimitedJoin(limits values) call {
	f.t.Helper()
	r := f.openRoom(nil)
	f.newLimit(2, limits).want(scripts.OK)
	return r.call(scripts.RoomJoin, 2, nil)
}

// newLimitedRematch returns the call by which player 2 opens the rematch of a room for 250 under
// limits.
func (f *fixture) newLimitedRematch(limits values) call {
	f.t.Helper()
	r := f.openRoom(nil).join(2).start()
	r.finish("1:1:500:;2:2:0:;", 0).want(scripts.OK)
	f.newLimit(2, limits).with(values{"counted_at": 2}).want(scripts.OK)
	return r.call(scripts.RoomRematch, 2, values{"users": "1"})
}

// TestLossesAtTheLargestAmount counts stakes and payouts where a number of Lua is only just exact.
func TestLossesAtTheLargestAmount(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		const largest = 1<<53 - 1
		f := newFixture(t, db)
		f.setBalance(1, fmt.Sprint(largest), "0")
		f.newLimit(1, values{"new_loss": largest}).want(scripts.OK)
		r, create := f.newRoom(values{"entry": largest})
		create.want(scripts.OK)
		if got := f.limit(1, "hours"); !strings.HasSuffix(got, fmt.Sprintf(":%d,", largest)) {
			t.Fatalf("the losses are %s; want %d", got, largest)
		}
		f.set(keys.Wallet(f.id, 1), "GOLD", fmt.Sprintf("1|%d|L", largest))
		_, second := f.newRoom(values{"entry": 1})
		second.changesNothing("loss_limit")
		r.call(scripts.RoomLeave, 1, nil).want(scripts.OK)
		if got := f.limit(1, "hours"); !strings.HasSuffix(got, ":0,") {
			t.Fatalf("after the refund the losses are %s; want 0", got)
		}
		if got := f.limit(1, "open"); got != "0" {
			t.Fatalf("%s rooms are open; want none", got)
		}
	})
}

// TestLossesCountForADay starts with losses of other hours.
func TestLossesCountForADay(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.setBalance(1, "1000", "0")
	hour := time.Now().UnixMilli() / time.Hour.Milliseconds()
	counted := fmt.Sprintf("%d:100,%d:300,", hour-22, hour-1)
	f.newLimit(1, values{
		"new_loss": 650, "hours": fmt.Sprintf("%d:500,%s", hour-30, counted),
	}).want(scripts.OK)
	_, create := f.newRoom(nil)
	create.want(scripts.OK)
	if got := f.limit(1, "hours"); !strings.HasPrefix(got, counted) || !strings.HasSuffix(got, ":250,") {
		t.Errorf("the losses are %s; want %s and 250", got, counted)
	}
	_, create = f.newRoom(nil)
	create.changesNothing("loss_limit")
}

// TestAPlayerWithoutLimitsHasNoRecord guards that others pay nothing for the limits of some.
func TestAPlayerWithoutLimitsHasNoRecord(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	r := f.openRoom(nil).join(2)
	r.cancel("1,2")
	for _, user := range []int64{1, 2} {
		if got := f.field(keys.Wallet(f.id, user), "GOLD"); got != "1000|0" {
			t.Errorf("the balance of player %d is %s", user, got)
		}
		if got := f.field(keys.Wallet(f.id, user), keys.WalletLimitsField("GOLD")); got != "" {
			t.Errorf("player %d has the limits %s", user, got)
		}
	}
}

// TestTheFlagOfLimitsReachesNewTokens gives an excluded player the first units of a token.
func TestTheFlagOfLimitsReachesNewTokens(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.newLimit(1, values{"token": "SILVER", "new_excluded": inDays(1)}).want(scripts.OK)
	f.newCall(scripts.WalletCredit, values{"user": 1, "units": 1000}).want(scripts.OK)
	if got := f.field(keys.Wallet(f.id, 1), "GOLD"); got != "1000|0|L" {
		t.Fatalf("the balance is %s", got)
	}
	_, create := f.newRoom(nil)
	create.changesNothing("self_excluded")
	f.newCall(scripts.WalletDebit, values{"user": 1, "units": 1}).want(scripts.OK)
	if got := f.field(keys.Wallet(f.id, 1), "GOLD"); got != "999|0|L" {
		t.Fatalf("after a debit the balance is %s", got)
	}
}

// TestALooserLimitCountsADayLater looks at the record, and moves its time back a day.
func TestALooserLimitCountsADayLater(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.setBalance(1, "1000", "0")
	f.newLimit(1, values{"new_stake": 100}).want(scripts.OK)
	f.newLimit(1, values{"new_stake": 250}).want(scripts.OK)
	from := f.limit(1, "stake_from")
	if f.limit(1, "stake") != "100" || f.limit(1, "stake_next") != "250" || from == "" {
		t.Fatalf("the limits are %s", f.field(keys.Wallet(f.id, 1), keys.WalletLimitsField("GOLD")))
	}
	f.newLimit(1, values{"new_stake": 200}).want(scripts.OK) // tighter than what was asked for
	if f.limit(1, "stake_next") != "200" || f.limit(1, "stake_from") != from {
		t.Fatalf("the limits are %s", f.field(keys.Wallet(f.id, 1), keys.WalletLimitsField("GOLD")))
	}
	f.newLimit(1, values{"new_stake": 250}).want(scripts.OK)
	_, create := f.newRoom(nil)
	create.changesNothing("stake_limit")
	limits := f.field(keys.Wallet(f.id, 1), keys.WalletLimitsField("GOLD"))
	past := fmt.Sprint(time.Now().UnixMilli() - 1)
	f.set(keys.Wallet(f.id, 1), keys.WalletLimitsField("GOLD"),
		strings.Replace(limits, f.limit(1, "stake_from"), past, 1))
	create.want(scripts.OK)
}

// limit reads a value of a player's limits.
func (f *fixture) limit(user int64, name string) string {
	f.t.Helper()
	layout := redisdb.PackedLayout{Name: "limits", Separator: '|', Layout: scripts.WalletLimits}
	record := layout.Split(f.field(keys.Wallet(f.id, user), keys.WalletLimitsField("GOLD")))
	if record.Err() != nil {
		f.t.Fatalf("%v", record.Err())
	}
	return record.Text(name)
}
