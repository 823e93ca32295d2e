package scripts_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// setState returns the call by which a player sets values of the shared state, given as name and
// value in turn. User 0 is the game's server.
func (r *room) setState(user int, version string, deleted string, pairs ...any) call {
	r.t.Helper()
	c := r.call(scripts.RoomStateSet, user, values{
		"host_only": 0, "read_version": version, "patch": `{"a":1}`, "deleted": deleted, "max_bytes": 16384, "max_names": 128,
	})
	c.rest = pairs
	return c
}

// setTurn returns the call by which a player gives another one the turn for a time that is over at
// once, unless seconds are given.
func (r *room) setTurn(user int, player, seconds, timeout string) call {
	r.t.Helper()
	return r.call(scripts.RoomTurnSet, user, values{"player": player, "seconds": seconds, "timeout": timeout})
}

// give gives a player the turn, as the game's server.
func (r *room) give(player, seconds, timeout string) *room {
	r.t.Helper()
	r.setTurn(0, player, seconds, timeout).want(scripts.OK)
	return r
}

func (r *room) skipTurn() call { return r.call(scripts.RoomTurnSkip, 0, nil) }

// forfeitTurn returns the call that forfeits the seat of the player whose turn is over.
func (r *room) forfeitTurn(user int, given values) call {
	r.t.Helper()
	turn := roomTurn.Split(r.field(r.key(), "turn"))
	return r.call(scripts.RoomLeave, user, values{"over": turn.Text("deadline")}).with(given)
}

var stateExamples = []example{
	{scripts.RoomStateSet, "the first values", "ok", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "", "a", "1", "board", `"XO|;"`)
	}},
	{scripts.RoomStateSet, "a value changed, one added, one deleted", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start()
		r.setState(1, "0", "", "a", "1", "b", "[1,2]").want(scripts.OK)
		return r.setState(2, "1", "b,none", "a", "22", "c", "null")
	}},
	{scripts.RoomStateSet, "deleted only", "ok", func(f *fixture) call {
		r := f.openRoom(free)
		r.setState(1, "0", "", "a", "1").want(scripts.OK)
		return r.setState(1, "1", "a")
	}},
	{scripts.RoomStateSet, "what is not there deleted", "ok", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "a,b")
	}},
	{scripts.RoomStateSet, "by the server", "ok", func(f *fixture) call {
		return f.openRoom(nil).setState(0, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "the host's name by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "", "a", "1").with(values{"host_only": 1})
	}},
	{scripts.RoomStateSet, "exactly as much as a room may have", "ok", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "", "a", strings.Repeat("1", 16384-2-5))
	}},
	{scripts.RoomStateSet, "a byte more", "limit_reached", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "", "a", strings.Repeat("1", 16384-2-4))
	}},
	{scripts.RoomStateSet, "a name more", "limit_reached", func(f *fixture) call {
		r := f.openRoom(nil)
		r.setState(1, "0", "", "a", "1").want(scripts.OK)
		return r.setState(1, "1", "", "b", "1", "a", "2").with(values{"max_names": 1})
	}},
	{scripts.RoomStateSet, "another version", "version_conflict", func(f *fixture) call {
		r := f.openRoom(nil)
		r.setState(1, "0", "", "a", "1").want(scripts.OK)
		return r.setState(1, "0", "", "a", "2")
	}},
	{scripts.RoomStateSet, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().setState(1, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).setState(1, "0", "", "a", "1").with(values{"caller_game": f.id + 1})
	}},
	{scripts.RoomStateSet, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).setState(2, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").setState(0, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "a disputed room", "room_disputed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().setState(1, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).setState(2, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "a forfeited seat", "not_participant", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.setState(2, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "a reserved seat", "not_participant", func(f *fixture) call {
		return f.openRematch().setState(2, "0", "", "a", "1")
	}},
	{scripts.RoomStateSet, "the host's name by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).setState(2, "0", "", "a", "1").with(values{"host_only": 1})
	}},

	{scripts.RoomTurnSet, "by the host", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().setTurn(1, "2", "30", "skip")
	}},
	{scripts.RoomTurnSet, "by the server, another turn before", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).start().give("1", "30", "skip").setTurn(0, "2", "60", "forfeit")
	}},
	{scripts.RoomTurnSet, "to nobody", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "30", "skip").setTurn(1, "", "", "skip")
	}},
	{scripts.RoomTurnSet, "to nobody when nobody has it", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().setTurn(1, "", "", "skip")
	}},
	{scripts.RoomTurnSet, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().setTurn(1, "2", "30", "skip")
	}},
	{scripts.RoomTurnSet, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().setTurn(1, "2", "30", "skip").with(values{"caller_game": f.id + 1})
	}},
	{scripts.RoomTurnSet, "a private room without a seat", "room_not_found", func(f *fixture) call {
		return f.openRoom(private).setTurn(2, "1", "30", "skip")
	}},
	{scripts.RoomTurnSet, "a room that ended", "room_closed", func(f *fixture) call {
		return f.openRoom(nil).cancel("1").setTurn(1, "1", "30", "skip")
	}},
	{scripts.RoomTurnSet, "by another player", "not_host", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().setTurn(2, "2", "30", "skip")
	}},
	{scripts.RoomTurnSet, "a disputed room", "room_disputed", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().dispute().setTurn(1, "2", "30", "skip")
	}},
	{scripts.RoomTurnSet, "before the start", "not_started", func(f *fixture) call {
		return f.openRoom(nil).join(2).setTurn(1, "2", "30", "skip")
	}},
	{scripts.RoomTurnSet, "without a seat", "not_participant", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().setTurn(1, "3", "30", "skip")
	}},
	{scripts.RoomTurnSet, "a forfeited seat", "not_participant", func(f *fixture) call {
		r := f.openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		return r.setTurn(1, "2", "30", "skip")
	}},

	{scripts.RoomTurnSet, "by the host of a match", "ok", func(f *fixture) call {
		return f.openMatch(false).sit(1, 2).setTurn(1, "2", "1", "forfeit")
	}},
	{scripts.RoomTurnSet, "by the host, of a turn that forfeits in a paid room", "forbidden", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "30", "forfeit").setTurn(1, "1", "30", "skip")
	}},
	{scripts.RoomTurnSet, "by the host, of a turn that forfeits in a free room", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2).start().give("1", "30", "forfeit").setTurn(1, "1", "30", "skip")
	}},

	{scripts.RoomTurnSkip, "before its time", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "30", "skip").skipTurn()
	}},
	{scripts.RoomTurnSkip, "when its time is over", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().give("1", "30", "skip")
		r.setTurnOver()
		return r.skipTurn()
	}},
	{scripts.RoomTurnSkip, "when nobody has done anything for three rounds", "ok", func(f *fixture) call {
		r := f.openRoom(free).join(2).start().give("1", "30", "skip")
		for range 6 {
			r.setTurnOver()
			r.skipTurn().want(scripts.OK)
		}
		r.setTurnOver()
		return r.skipTurn()
	}},
	{scripts.RoomTurnSkip, "of a room that ended", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "0", "skip").cancel("1,2").skipTurn()
	}},
	{scripts.RoomTurnSkip, "of a disputed room", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "0", "skip").dispute().skipTurn()
	}},
	{scripts.RoomTurnSkip, "no room", "ok", func(f *fixture) call { return f.noRoom().skipTurn() }},
	{scripts.RoomTurnSkip, "that ends with a forfeit", "stale", func(f *fixture) call {
		return f.openRoom(nil).join(2).start().give("1", "0", "forfeit").skipTurn()
	}},

	{scripts.RoomLeave, "with the turn", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().give("2", "30", "skip").call(scripts.RoomLeave, 2, nil)
	}},
	{scripts.RoomLeave, "the host with the turn", "ok", func(f *fixture) call {
		return f.openRoom(free).join(2, 3).start().give("1", "30", "forfeit").call(scripts.RoomLeave, 1, nil)
	}},
	{scripts.RoomLeave, "a turn that is over", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().give("2", "0", "forfeit").forfeitTurn(2, nil)
	}},
	{scripts.RoomLeave, "a turn that is not over", "ok", func(f *fixture) call {
		return f.openRoom(nil).join(2, 3).start().give("2", "30", "forfeit").forfeitTurn(2, nil)
	}},
	{scripts.RoomLeave, "a turn that is over, of the last but one", "ok", func(f *fixture) call {
		r := f.openRoom(nil).join(2).start().give("2", "0", "forfeit")
		return r.forfeitTurn(2, values{
			"users": "1,2", "placements": "1:1:500:;2:0:0:;", "computed_for": r.live("version"),
		})
	}},
}

// lastEvent returns the newest event of a room, without its position and time.
func (r *room) lastEvent() string {
	r.t.Helper()
	c := r.skipTurn()
	entries := c.snapshot()[c.keyOf("events")].Values
	parts := strings.SplitN(entries[len(entries)-1], "|", 4)
	return parts[1] + "|" + parts[3]
}

func TestATurnThatIsOverGoesToTheNextActivePlayerOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(nil).join(2, 3, 4).start()
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		r.give("2", "30", "skip")
		want := func(user string) {
			t.Helper()
			turn := roomTurn.Split(r.field(r.key(), "turn"))
			if turn.Text("turn_user") != user || turn.Text("seconds") != "30" {
				t.Fatalf("the turn is %s; want that of %s", r.field(r.key(), "turn"), user)
			}
		}
		for _, next := range []string{"4", "1", "2"} { // 3 has left
			r.setTurnOver()
			r.skipTurn().want(scripts.OK)
			want(next)
			deadline := roomTurn.Split(r.field(r.key(), "turn"))
			if e := r.lastEvent(); e != "room.turn|"+r.live("version")+"|"+next+"|"+deadline.Text("deadline")+"|skipped" {
				t.Fatal(e)
			}
			r.skipTurn().changesNothing(scripts.OK) // another leader
			want(next)
		}
		r.call(scripts.RoomLeave, 2, nil).want(scripts.OK)
		want("4")
	})
}

// A room in which nobody does anything has three skips for each active seat, and then no turn. What
// anybody does begins the count anew.
func TestTurnsEndWhenNobodyDoesAnything(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(nil).join(2, 3).start()
		r.call(scripts.RoomLeave, 3, nil).want(scripts.OK)
		r.give("1", "30", "skip")
		skip := func(times int) {
			t.Helper()
			for range times {
				r.setTurnOver()
				r.skipTurn().want(scripts.OK)
				if r.field(r.key(), "turn") == "" {
					t.Fatal("the turns have ended")
				}
			}
		}
		skip(5)
		r.setState(2, "0", "", "a", "1").want(scripts.OK)
		skip(6)
		r.setTurnOver()
		r.skipTurn().want(scripts.OK)
		if r.field(r.key(), "turn") != "" || r.lastEvent() != "room.turn|"+r.live("version")+"|||skipped" {
			t.Fatalf("the turn is %q, the last event %s", r.field(r.key(), "turn"), r.lastEvent())
		}
		if due := r.skipTurn().snapshot()[r.skipTurn().keyOf("turns")]; len(due.Values) != 0 {
			t.Errorf("the room is still due: %v", due)
		}
		r.give("1", "30", "skip")
		skip(6)
	})
}

// setTurnOver makes the deadline of the turn one that is long over.
func (r *room) setTurnOver() {
	r.t.Helper()
	turn := strings.Split(r.field(r.key(), "turn"), "|")
	turn[1] = "1"
	due := redis.Z{Score: 1, Member: r.id}
	for _, err := range []error{
		r.db.Client.HSet(r.t.Context(), r.key(), "turn", strings.Join(turn, "|")).Err(),
		r.db.Client.ZAdd(r.t.Context(), r.skipTurn().keyOf("turns"), due).Err(),
	} {
		testkit.Check(r.t, err)
	}
}

func TestAForfeitAtADeadlineIsALeaveAndHappensOnce(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(nil).join(2, 3).start().give("2", "30", "forfeit")
		early := r.forfeitTurn(2, nil)
		early.changesNothing(scripts.OK)
		r.setTurnOver()
		early.changesNothing(scripts.OK) // it is for another turn
		over := r.forfeitTurn(2, nil)
		over.want(scripts.OK)
		if state, _, _ := strings.Cut(r.field(r.key(), "s2"), "|"); state != "forfeited" || r.live("pot") != "750" {
			t.Fatalf("the seat is %s, the pot %s", state, r.live("pot"))
		}
		if e := r.lastEvent(); !strings.HasPrefix(e, "room.turn|"+r.live("version")+"|3|") || !strings.HasSuffix(e, "|left") {
			t.Fatal(e)
		}
		over.with(values{"nonce": "othernon"}).changesNothing("not_participant") // another leader: the seat is forfeited
		f.wantBalances("750|250", "750|250", "750|250")
		r.setTurnOver()
		r.forfeitTurn(3, nil).changesNothing(scripts.Stale) // the payout is not there
		r.forfeitTurn(3, values{
			"users": "1,2,3", "placements": "1:1:750:;2:0:0:;3:0:0:;", "computed_for": r.live("version"),
		}).want(scripts.OK)
		f.wantBalances("1500|0", "750|0", "750|0")
		r.skipTurn().want(scripts.OK) // it forgets the turn
	})
}

func TestTheEventsOfASharedStateAreBounded(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		r := newFixture(t, db).openRoom(nil)
		patch := `{"a":"` + strings.Repeat("x", 8_000) + `"}`
		longest := 0
		for i := range 40 {
			c := r.setState(1, strconv.Itoa(i), "", "a", `"`+strings.Repeat("x", 8_000)+`"`).with(values{"patch": patch})
			c.want(scripts.OK)
			n := testkit.Must(db.Client.LLen(t.Context(), c.keyOf("events")).Result())(t)
			longest = max(longest, int(n))
		}
		if longest < 32 || longest > 32+9 { // 64 KiB are 9 of them
			t.Errorf("the list has up to %d events", longest)
		}
	})
}
