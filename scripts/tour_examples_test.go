package scripts_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// tourID is the one tournament of a fixture.
const tourID = 12

// tourKey returns the key that the header of a script of tournaments names, "" for others.
func (c call) tourKey(name string) string {
	return map[string]string{
		"tour": keys.Tour(c.f.id, tourID), "events": keys.TourEvents(c.f.id, tourID), "tours": keys.Tours(c.f.id),
		"entrants": keys.TourEntrants(c.f.id, tourID), "order": keys.TourOrder(c.f.id, tourID),
		"matches": keys.TourMatches(c.f.id, tourID), "attempts": keys.TourAttempts(c.f.id, tourID),
		"due": keys.ToursDue(c.f.id), "fence": keys.ToursFence(c.f.id), "prize": keys.Prize(c.f.id, keys.TourRef(tourID)),
	}[name]
}

// farAway is a time (ms) that does not come.
const farAway = 1 << 52

// tourSettings returns the packed settings of a tournament with a fee of 250 that opened long ago.
func (f *fixture) tourSettings(given values) string {
	f.t.Helper()
	all := values{
		"fee": 250, "token": "GOLD", "decimals": 2, "added": 0, "min": 2, "max": 4, "registers": 1, "checks_in": "",
		"starts": farAway, "ends": "", "late_rounds": 0, "no_check_in": "",
	}
	maps.Copy(all, given)
	var packed []string
	for _, name := range scripts.TourSettings.Names {
		packed = append(packed, fmt.Sprint(all[name]))
	}
	return strings.Join(packed, "|")
}

// tour returns a run of a script on the fixture's tournament.
func (f *fixture) tour(s *scripts.Script, given values, rest ...any) call {
	f.t.Helper()
	return f.newCall(s, values{
		"tour_id": tourID, "ref": keys.TourRef(tourID), "fence": 1, "prize": 1, "draw": 5,
		"profile": `{"id":7,"name":"a|b"}`, "actor": "op", "definition": "{}",
		"new_state": "out", "why": "operator", "users": "7,8", "rake": 0, "payouts": "",
	}, rest...).with(given)
}

// newTour makes a tournament with these settings and opens it.
func (f *fixture) newTour(settings values) {
	f.t.Helper()
	for user := range int64(9) {
		f.setBalance(user+1, "1000", "0")
	}
	f.tour(scripts.TourCreate, values{"settings": f.tourSettings(settings)}).want(scripts.OK)
	f.tour(scripts.TourOpen, nil).want(scripts.OK)
}

// joinTour lets players join.
func (f *fixture) joinTour(users ...int) {
	f.t.Helper()
	for _, user := range users {
		f.tour(scripts.TourJoin, values{"user": user}).want(scripts.OK)
	}
}

// tourLive reads one of the values that change.
func (f *fixture) tourLive(name string) string {
	f.t.Helper()
	layout := redisdb.PackedLayout{Name: "a tournament", Separator: '|', Layout: scripts.TourLive}
	record := layout.Split(f.field(keys.Tour(f.id, tourID), "live"))
	return record.Text(name)
}

// setTourLive changes one of the values that change.
func (f *fixture) setTourLive(name string, value any) {
	f.t.Helper()
	values := strings.Split(f.field(keys.Tour(f.id, tourID), "live"), "|")
	for i, one := range scripts.TourLive.Names {
		if one == name {
			values[i] = fmt.Sprint(value)
		}
	}
	f.set(keys.Tour(f.id, tourID), "live", strings.Join(values, "|"))
}

// startTour starts a tournament with the players 7 and 8.
func (f *fixture) startTour(settings values) {
	f.t.Helper()
	f.newTour(settings)
	f.joinTour(7, 8)
	f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
}

// openCheckIn brings a tournament of players to CHECK_IN.
func (f *fixture) openCheckIn(settings values, users ...int) {
	f.t.Helper()
	all := values{"checks_in": 2, "min": 1}
	maps.Copy(all, settings)
	f.newTour(all)
	f.joinTour(users...)
	f.tour(scripts.TourOpen, nil).want(scripts.OK)
}

// checkInTour starts a tournament with check-in in which 7 is there, and 8 and 9 are not.
func (f *fixture) checkInTour(noCheckIn string) {
	f.t.Helper()
	f.openCheckIn(values{"no_check_in": noCheckIn}, 7, 8, 9)
	f.tour(scripts.TourCheckIn, nil).want(scripts.OK)
	f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
}

// beginRound returns the call that begins a round with the match of 7 and 8.
func (f *fixture) beginRound(round int) call {
	f.t.Helper()
	return f.tour(scripts.TourPair, values{
		"new_round": round, "made_for": f.tourLive("version"), "seeds": "7,8",
		"undecided": 1, "wait_ms": 60_000, "count": 1,
	}, fmt.Sprintf("r%dm1", round), "WAITING|1||||7:1,8:2")
}

// refundMatch returns the call that gives both players of the match r1m1 their fees back.
func (f *fixture) refundMatch(given values) call {
	f.t.Helper()
	return f.tour(scripts.TourRefund, values{
		"match_id": "r1m1", "made_for": 1, "users": "7,8", "over": 0,
	}).with(given)
}

// reportMatch returns the call that gives the match r1m1 a status.
func (f *fixture) reportMatch(status string, given values) call {
	f.t.Helper()
	all := values{
		"match_id": "r1m1", "made_for": 1, "was": "", "new_state": status,
		"new_attempt": 1, "new_room": "room-1", "new_winner": "", "new_reason": "", "wait_ms": 60_000, "over": 0,
	}
	if status == "DECIDED" {
		all["new_winner"], all["new_reason"] = 7, "played"
	}
	return f.tour(scripts.TourReport, all).with(given)
}

// advanceTour returns the call that takes the tournament to a status.
func (f *fixture) advanceTour(status string) call {
	f.t.Helper()
	return f.tour(scripts.TourAdvance, values{
		"next_status": status, "made_for": f.tourLive("version"), "rake": 50, "payouts": "7:1:450:;",
	})
}

// settleTour brings a tournament of 7 and 8 to SETTLING.
func (f *fixture) settleTour() {
	f.t.Helper()
	f.startTour(nil)
	f.beginRound(1).want(scripts.OK)
	f.reportMatch("DECIDED", nil).want(scripts.OK)
	f.advanceTour("SETTLING").want(scripts.OK)
}

var tourExamples = []example{
	{scripts.TourCreate, "new", "ok", func(f *fixture) call {
		return f.tour(scripts.TourCreate, values{"settings": f.tourSettings(nil)})
	}},
	{scripts.TourRemove, "cancelled", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.tour(scripts.TourCancel, nil).want(scripts.OK)
		f.advanceTour("CANCELLED").want(scripts.OK)
		return f.tour(scripts.TourRemove, nil)
	}},
	{scripts.TourRemove, "finished", "ok", func(f *fixture) call {
		f.settleTour()
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		f.advanceTour("FINISHED").want(scripts.OK)
		return f.tour(scripts.TourRemove, nil)
	}},
	{scripts.TourRemove, "not ended", "forbidden", func(f *fixture) call {
		f.newTour(nil)
		return f.tour(scripts.TourRemove, nil)
	}},
	{scripts.TourRemove, "no tournament", "tournament_not_found", func(f *fixture) call {
		return f.tour(scripts.TourRemove, nil)
	}},
	{scripts.TourCreate, "one too many", "limit_reached", func(f *fixture) call {
		return f.tour(scripts.TourCreate, values{"settings": f.tourSettings(nil), "most": 0})
	}},
	{scripts.TourCreate, "looked up without a receipt", "stale", func(f *fixture) call {
		return f.tour(scripts.TourCreate, values{"settings": ""})
	}},

	{scripts.TourOpen, "the registration", "ok", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(nil)}).want(scripts.OK)
		return f.tour(scripts.TourOpen, nil)
	}},
	{scripts.TourOpen, "the check-in", "ok", func(f *fixture) call {
		f.newTour(values{"checks_in": 2})
		return f.tour(scripts.TourOpen, nil)
	}},
	{scripts.TourOpen, "before its time, with its prize", "ok", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(values{"registers": farAway, "added": 5})}).
			want(scripts.OK)
		return f.tour(scripts.TourOpen, nil)
	}},
	{scripts.TourOpen, "without its prize", "ok", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(values{"added": 5})}).want(scripts.OK)
		return f.tour(scripts.TourOpen, values{"prize": 0})
	}},
	{scripts.TourOpen, "an older leader", "stale", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(values{"checks_in": 2})}).want(scripts.OK)
		f.tour(scripts.TourOpen, values{"fence": 9}).want(scripts.OK)
		return f.tour(scripts.TourOpen, values{"fence": 8})
	}},
	{scripts.TourOpen, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourOpen, nil) }},

	{scripts.TourJoin, "with the fee", "ok", func(f *fixture) call {
		f.newTour(nil)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "for free, into the last place", "ok", func(f *fixture) call {
		f.newTour(values{"fee": 0, "token": ""})
		f.joinTour(1, 2, 3)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "during the check-in", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 8)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "a second time", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "late", "ok", func(f *fixture) call {
		f.startTour(values{"late_rounds": 1})
		return f.tour(scripts.TourJoin, values{"user": 9})
	}},
	{scripts.TourJoin, "back after the start", "ok", func(f *fixture) call {
		f.startTour(values{"late_rounds": 1})
		f.tour(scripts.TourLeave, nil).want(scripts.OK)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "back after the fee was returned", "ok", func(f *fixture) call {
		f.openCheckIn(values{"no_check_in": "refund", "late_rounds": 1}, 7, 8)
		f.tour(scripts.TourCheckIn, values{"user": 8}).want(scripts.OK)
		f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourJoin, nil) }},
	{scripts.TourJoin, "disqualified", "disqualified", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		f.tour(scripts.TourLeave, values{"new_state": "disqualified"}).want(scripts.OK)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "before the registration", "registration_closed", func(f *fixture) call {
		f.newTour(values{"registers": farAway})
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "at the start", "registration_closed", func(f *fixture) call {
		f.newTour(values{"starts": 2})
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "after the last round for it", "registration_closed", func(f *fixture) call {
		f.startTour(values{"late_rounds": 1})
		f.setTourLive("round", 2)
		return f.tour(scripts.TourJoin, values{"user": 9})
	}},
	{scripts.TourJoin, "being cancelled", "tournament_closed", func(f *fixture) call {
		f.newTour(nil)
		f.tour(scripts.TourCancel, values{"fence": ""}).want(scripts.OK)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "full", "tournament_full", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(1, 2, 3, 4)
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "a unit short", "insufficient_funds", func(f *fixture) call {
		f.newTour(nil)
		f.setBalance(7, "249", "1000")
		return f.tour(scripts.TourJoin, nil)
	}},
	{scripts.TourJoin, "above the player's highest stake", "stake_limit", func(f *fixture) call {
		return f.newLimitedEntry(values{"new_stake": 249})
	}},
	{scripts.TourJoin, "with as many stakes as the player wants", "open_rooms_limit", func(f *fixture) call {
		return f.newLimitedEntry(values{"new_rooms": 2, "open": 2})
	}},
	{scripts.TourJoin, "a unit above the player's highest loss", "loss_limit", func(f *fixture) call {
		return f.newLimitedEntry(values{"new_loss": 1000, "hours": hoursAgo(24, 751)})
	}},
	{scripts.TourJoin, "an excluded player", "self_excluded", func(f *fixture) call {
		return f.newLimitedEntry(values{"new_excluded": inDays(1)})
	}},

	{scripts.TourLeave, "before the start", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "during the check-in", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 7)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "after it", "ok", func(f *fixture) call {
		f.startTour(nil)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "disqualified", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		return f.tour(scripts.TourLeave, values{"new_state": "disqualified"})
	}},
	{scripts.TourLeave, "disqualified after it", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.tour(scripts.TourLeave, nil).want(scripts.OK)
		return f.tour(scripts.TourLeave, values{"new_state": "disqualified"})
	}},
	{scripts.TourLeave, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourLeave, nil) }},
	{scripts.TourLeave, "who is not there", "not_entrant", func(f *fixture) call {
		f.newTour(nil)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "who left before", "not_entrant", func(f *fixture) call {
		f.startTour(nil)
		f.tour(scripts.TourLeave, nil).want(scripts.OK)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "who is disqualified", "disqualified", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		f.tour(scripts.TourLeave, values{"new_state": "disqualified"}).want(scripts.OK)
		return f.tour(scripts.TourLeave, nil)
	}},
	{scripts.TourLeave, "being settled", "tournament_closed", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourLeave, nil)
	}},

	{scripts.TourCheckIn, "in time", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 7)
		return f.tour(scripts.TourCheckIn, nil)
	}},
	{scripts.TourCheckIn, "none", "tournament_not_found", func(f *fixture) call {
		return f.tour(scripts.TourCheckIn, nil)
	}},
	{scripts.TourCheckIn, "who is not there", "not_entrant", func(f *fixture) call {
		f.newTour(nil)
		return f.tour(scripts.TourCheckIn, nil)
	}},
	{scripts.TourCheckIn, "who is disqualified", "disqualified", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		f.tour(scripts.TourLeave, values{"new_state": "disqualified"}).want(scripts.OK)
		return f.tour(scripts.TourCheckIn, nil)
	}},
	{scripts.TourCheckIn, "before its time", "check_in_closed", func(f *fixture) call {
		f.newTour(values{"checks_in": farAway - 1})
		f.joinTour(7)
		return f.tour(scripts.TourCheckIn, nil)
	}},
	{scripts.TourCheckIn, "being cancelled", "tournament_closed", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		f.tour(scripts.TourCancel, values{"fence": ""}).want(scripts.OK)
		return f.tour(scripts.TourCheckIn, nil)
	}},

	{scripts.TourStart, "by staff", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7, 8)
		return f.tour(scripts.TourStart, values{"fence": ""})
	}},
	{scripts.TourStart, "at its time", "ok", func(f *fixture) call {
		f.newTour(values{"starts": 2, "min": 0})
		return f.tour(scripts.TourStart, nil)
	}},
	{scripts.TourStart, "before its time", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7, 8)
		return f.tour(scripts.TourStart, nil)
	}},
	{scripts.TourStart, "with too few players", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7)
		return f.tour(scripts.TourStart, values{"fence": ""})
	}},
	{scripts.TourStart, "with one who is there", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 7, 8)
		f.tour(scripts.TourCheckIn, nil).want(scripts.OK)
		return f.tour(scripts.TourStart, values{"fence": ""})
	}},
	{scripts.TourStart, "with nobody who is there", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 7, 8)
		return f.tour(scripts.TourStart, values{"fence": ""})
	}},
	{scripts.TourStart, "before the registration", "ok", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(nil)}).want(scripts.OK)
		return f.tour(scripts.TourStart, values{"fence": ""})
	}},
	{scripts.TourStart, "an older leader", "stale", func(f *fixture) call {
		f.newTour(values{"starts": 2, "min": 0})
		f.setText(keys.ToursFence(f.id), "9")
		return f.tour(scripts.TourStart, nil)
	}},
	{scripts.TourStart, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourStart, nil) }},
	{scripts.TourStart, "being settled", "tournament_closed", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourStart, nil)
	}},

	{scripts.TourPair, "the first round", "ok", func(f *fixture) call {
		f.startTour(nil)
		return f.beginRound(1)
	}},
	{scripts.TourPair, "a round again", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.reportMatch("DECIDED", nil).want(scripts.OK)
		return f.beginRound(1)
	}},
	{scripts.TourPair, "a round too far", "stale", func(f *fixture) call {
		f.startTour(nil)
		return f.beginRound(2)
	}},
	{scripts.TourPair, "for players as they were", "stale", func(f *fixture) call {
		f.startTour(nil)
		c := f.beginRound(1)
		f.tour(scripts.TourLeave, nil).want(scripts.OK)
		return c
	}},
	{scripts.TourPair, "with a match that is not decided", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.beginRound(2)
	}},
	{scripts.TourPair, "before all were looked at", "stale", func(f *fixture) call {
		f.checkInTour("refund")
		return f.beginRound(1)
	}},
	{scripts.TourPair, "an older leader", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.setText(keys.ToursFence(f.id), "9")
		return f.beginRound(1)
	}},
	{scripts.TourPair, "none", "tournament_not_found", func(f *fixture) call {
		f.startTour(nil)
		c := f.beginRound(1)
		f.drop(keys.Tour(f.id, tourID))
		return c
	}},

	{scripts.TourReport, "a room is open", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("READY", values{"was": "WAITING"})
	}},
	{scripts.TourReport, "it is played", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("PLAYING", nil)
	}},
	{scripts.TourReport, "it is played again", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("WAITING", values{"new_attempt": 2, "new_room": ""})
	}},
	{scripts.TourReport, "it is decided", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("DECIDED", nil)
	}},
	{scripts.TourReport, "of an earlier attempt", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.reportMatch("WAITING", values{"new_attempt": 2, "new_room": ""}).want(scripts.OK)
		return f.reportMatch("DECIDED", nil)
	}},
	{scripts.TourReport, "of another status", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("PLAYING", values{"was": "READY"})
	}},
	{scripts.TourReport, "before the deadline", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("DECIDED", values{"over": 1})
	}},
	{scripts.TourReport, "an older leader", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).with(values{"fence": 9}).want(scripts.OK)
		return f.reportMatch("DECIDED", nil)
	}},
	{scripts.TourReport, "staff names who is disqualified", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.tour(scripts.TourLeave, values{"new_state": "disqualified"}).want(scripts.OK)
		return f.reportMatch("DECIDED", values{"new_reason": "resolved"})
	}},
	{scripts.TourReport, "staff names who plays", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.reportMatch("DECIDED", values{"new_reason": "resolved"})
	}},
	{scripts.TourRefund, "a match with a fee", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "a match of a free tournament", "ok", func(f *fixture) call {
		f.startTour(values{"fee": 0})
		f.beginRound(1).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "of an earlier attempt", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.reportMatch("WAITING", values{"new_attempt": 2, "new_room": ""}).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "before the deadline", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.refundMatch(values{"over": 1})
	}},
	{scripts.TourRefund, "of other players", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.refundMatch(values{"users": "8,7"})
	}},
	{scripts.TourRefund, "a player is out", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.tour(scripts.TourLeave, values{"new_state": "out"}).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "an older leader", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).with(values{"fence": 9}).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "the clocks differ", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.refundMatch(values{"node_ms": 1})
	}},
	{scripts.TourRefund, "none", "tournament_not_found", func(f *fixture) call { return f.refundMatch(nil) }},
	{scripts.TourRefund, "being settled", "tournament_closed", func(f *fixture) call {
		f.settleTour()
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "of a round to come", "match_not_found", func(f *fixture) call {
		f.startTour(nil)
		return f.refundMatch(nil)
	}},
	{scripts.TourRefund, "decided before", "match_decided", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.refundMatch(nil).want(scripts.OK)
		return f.refundMatch(nil)
	}},
	{scripts.TourReport, "none", "tournament_not_found", func(f *fixture) call { return f.reportMatch("READY", nil) }},
	{scripts.TourReport, "being settled", "tournament_closed", func(f *fixture) call {
		f.settleTour()
		return f.reportMatch("DECIDED", nil)
	}},
	{scripts.TourReport, "of a round to come", "match_not_found", func(f *fixture) call {
		f.startTour(nil)
		return f.reportMatch("DECIDED", nil)
	}},
	{scripts.TourReport, "decided before", "match_decided", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.reportMatch("DECIDED", nil).want(scripts.OK)
		return f.reportMatch("DECIDED", values{"new_winner": 8})
	}},

	{scripts.TourAdvance, "to be settled", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		f.reportMatch("DECIDED", nil).want(scripts.OK)
		return f.advanceTour("SETTLING")
	}},
	{scripts.TourAdvance, "finished", "ok", func(f *fixture) call {
		f.settleTour()
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		return f.advanceTour("FINISHED")
	}},
	{scripts.TourAdvance, "cancelled", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.tour(scripts.TourCancel, nil).want(scripts.OK)
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		return f.advanceTour("CANCELLED")
	}},
	{scripts.TourAdvance, "with a match that is not decided", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.beginRound(1).want(scripts.OK)
		return f.advanceTour("SETTLING")
	}},
	{scripts.TourAdvance, "with a fee that is held", "stale", func(f *fixture) call {
		f.settleTour()
		return f.advanceTour("FINISHED")
	}},
	{scripts.TourAdvance, "with a fee that nobody paid back", "stale", func(f *fixture) call {
		f.settleTour()
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		f.setTourLive("escrow", 250)
		return f.advanceTour("FINISHED")
	}},
	{scripts.TourAdvance, "decided for an earlier version", "stale", func(f *fixture) call {
		f.startTour(nil)
		c := f.advanceTour("SETTLING")
		f.tour(scripts.TourLeave, nil).want(scripts.OK)
		return c
	}},
	{scripts.TourAdvance, "what is settled is not cancelled", "stale", func(f *fixture) call {
		f.settleTour()
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		return f.advanceTour("CANCELLED")
	}},
	{scripts.TourAdvance, "an older leader", "stale", func(f *fixture) call {
		f.startTour(nil)
		f.setText(keys.ToursFence(f.id), "9")
		return f.advanceTour("SETTLING")
	}},
	{scripts.TourAdvance, "none", "tournament_not_found", func(f *fixture) call {
		f.startTour(nil)
		c := f.advanceTour("SETTLING")
		f.drop(keys.Tour(f.id, tourID))
		return c
	}},

	{scripts.TourSettle, "fees to the prizes", "ok", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourSettle, nil)
	}},
	{scripts.TourSettle, "fees back", "ok", func(f *fixture) call {
		f.startTour(nil)
		f.tour(scripts.TourCancel, nil).want(scripts.OK)
		return f.tour(scripts.TourSettle, nil)
	}},
	{scripts.TourSettle, "absent players out, their fees back", "ok", func(f *fixture) call {
		f.checkInTour("refund")
		return f.tour(scripts.TourSettle, values{"users": "7,8,9"})
	}},
	{scripts.TourSettle, "absent players out, their fees forfeited", "ok", func(f *fixture) call {
		f.checkInTour("forfeit")
		return f.tour(scripts.TourSettle, values{"users": "7,8,9"})
	}},
	{scripts.TourSettle, "those who were gone through", "stale", func(f *fixture) call {
		f.settleTour()
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		return f.tour(scripts.TourSettle, nil)
	}},
	{scripts.TourSettle, "without one who is next", "stale", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourSettle, values{"users": "7"})
	}},
	{scripts.TourSettle, "with another one", "stale", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourSettle, values{"users": "7,9"})
	}},
	{scripts.TourSettle, "before the start", "stale", func(f *fixture) call {
		f.newTour(nil)
		f.joinTour(7, 8)
		return f.tour(scripts.TourSettle, nil)
	}},
	{scripts.TourSettle, "an older leader", "stale", func(f *fixture) call {
		f.settleTour()
		f.setText(keys.ToursFence(f.id), "9")
		return f.tour(scripts.TourSettle, nil)
	}},
	{scripts.TourSettle, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourSettle, nil) }},

	{scripts.TourCancel, "by staff", "ok", func(f *fixture) call {
		f.startTour(nil)
		return f.tour(scripts.TourCancel, values{"fence": ""})
	}},
	{scripts.TourCancel, "before the registration", "ok", func(f *fixture) call {
		f.tour(scripts.TourCreate, values{"settings": f.tourSettings(nil)}).want(scripts.OK)
		return f.tour(scripts.TourCancel, values{"fence": ""})
	}},
	{scripts.TourCancel, "during the registration", "ok", func(f *fixture) call {
		f.newTour(nil)
		return f.tour(scripts.TourCancel, values{"fence": ""})
	}},
	{scripts.TourCancel, "during the check-in", "ok", func(f *fixture) call {
		f.openCheckIn(nil, 7)
		return f.tour(scripts.TourCancel, values{"fence": ""})
	}},
	{scripts.TourCancel, "cancelled before", "ok", func(f *fixture) call {
		f.newTour(nil)
		f.tour(scripts.TourCancel, values{"fence": ""}).want(scripts.OK)
		return f.tour(scripts.TourCancel, values{"fence": "", "why": "server"})
	}},
	{scripts.TourCancel, "expired", "ok", func(f *fixture) call {
		f.startTour(values{"ends": 3})
		return f.tour(scripts.TourCancel, values{"why": "expired"})
	}},
	{scripts.TourCancel, "before its end", "ok", func(f *fixture) call {
		f.startTour(values{"ends": farAway})
		return f.tour(scripts.TourCancel, values{"why": "expired"})
	}},
	{scripts.TourCancel, "an older leader", "stale", func(f *fixture) call {
		f.startTour(values{"ends": 3})
		f.setText(keys.ToursFence(f.id), "9")
		return f.tour(scripts.TourCancel, values{"why": "expired"})
	}},
	{scripts.TourCancel, "none", "tournament_not_found", func(f *fixture) call { return f.tour(scripts.TourCancel, nil) }},
	{scripts.TourCancel, "being settled", "tournament_closed", func(f *fixture) call {
		f.settleTour()
		return f.tour(scripts.TourCancel, values{"fence": ""})
	}},

	{scripts.TourAttempt, "the first", "ok", func(f *fixture) call {
		f.startTour(values{"ends": farAway})
		return f.tour(scripts.TourAttempt, values{"most": 1})
	}},
	{scripts.TourAttempt, "none", "tournament_not_found", func(f *fixture) call {
		return f.tour(scripts.TourAttempt, values{"most": 1})
	}},
	{scripts.TourAttempt, "who is not there", "not_entrant", func(f *fixture) call {
		f.startTour(values{"ends": farAway})
		return f.tour(scripts.TourAttempt, values{"most": 1, "user": 9})
	}},
	{scripts.TourAttempt, "who is disqualified", "disqualified", func(f *fixture) call {
		f.startTour(values{"ends": farAway})
		f.tour(scripts.TourLeave, values{"new_state": "disqualified"}).want(scripts.OK)
		return f.tour(scripts.TourAttempt, values{"most": 1})
	}},
	{scripts.TourAttempt, "at the end", "tournament_closed", func(f *fixture) call {
		f.startTour(values{"ends": 3})
		return f.tour(scripts.TourAttempt, values{"most": 1})
	}},
	{scripts.TourAttempt, "one more", "attempts_exhausted", func(f *fixture) call {
		f.startTour(values{"ends": farAway})
		f.tour(scripts.TourAttempt, values{"most": 1}).want(scripts.OK)
		return f.tour(scripts.TourAttempt, values{"most": 1})
	}},
}

// newLimitedEntry returns the call by which a player with limits joins a tournament.
func (f *fixture) newLimitedEntry(limits values) call {
	f.t.Helper()
	f.newTour(nil)
	f.newLimit(7, limits).want(scripts.OK)
	return f.tour(scripts.TourJoin, nil)
}

// setText stores a text.
func (f *fixture) setText(key, text string) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.Set(f.t.Context(), key, text, 0).Err())
}

// checkHeld compares what players hold with the escrow of the tournament, and the ledger with both.
func (f *fixture) checkHeld(users ...int64) {
	f.t.Helper()
	sum := 0
	for _, user := range users {
		_, held := f.balance(user)
		units := 0
		_, _ = fmt.Sscan(held, &units)
		sum += units
	}
	if escrow := f.tourLive("escrow"); escrow != fmt.Sprint(sum) {
		f.t.Errorf("the escrow is %s and %d are held", escrow, sum)
	}
}

func TestFeesOfATournamentAreHeldUntilTheyArePrizes(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.settleTour()
		f.checkHeld(7, 8)
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		f.checkHeld(7, 8)
		if pool := f.field(keys.Prize(f.id, keys.TourRef(tourID)), "pool"); pool != "500" {
			t.Errorf("the pool is %s", pool)
		}
		if free, held := f.balance(8); free != "750" || held != "0" {
			t.Errorf("a player has %s and holds %s", free, held)
		}
		ledger := f.list(keys.Ledger(f.id))
		if last := ledger[len(ledger)-1]; !strings.HasSuffix(last, "|GOLD|fee|tour:12|e:-500;p:500") {
			t.Errorf("the last entry is %s", last)
		}
	})
}

func TestTheLargestFeeIsExact(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		const largest = "4503599627370495" // of two entrants, a pot below 2^53
		f := newFixture(t, db)
		f.newTour(values{"fee": largest})
		f.setBalance(7, "9007199254740991", "0")
		f.setBalance(8, largest, "0")
		f.joinTour(7, 8)
		f.checkHeld(7, 8)
		f.tour(scripts.TourStart, values{"fence": ""}).want(scripts.OK)
		f.tour(scripts.TourCancel, nil).want(scripts.OK)
		f.tour(scripts.TourSettle, nil).want(scripts.OK)
		for user, want := range map[int64]string{7: "9007199254740991", 8: largest} {
			if free, held := f.balance(user); free != want || held != "0" {
				t.Errorf("player %d has %s and holds %s", user, free, held)
			}
		}
	})
}
