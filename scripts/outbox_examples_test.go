package scripts_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// feeding and freeFeeding are settings of rooms that feed leaderboards.
var (
	feeding     = values{"feeds": "boards"}
	freeFeeding = values{"feeds": "boards", "entry": 0}
)

// notRead are the arguments of a call that does not know the room.
var notRead = values{"feeds": "", "has_outbox": 0, "computed_for": 0}

// waiting returns what waits in the outbox for the end of the room, "" for nothing.
func (r *room) waiting() string {
	r.t.Helper()
	return r.field(keys.RoomOutbox(r.shard), r.id)
}

// closeEntry returns the call that takes the entry of a finished room off the outbox.
func (f *fixture) closeEntry(letter string, maxLetters int) (*room, call) {
	f.t.Helper()
	r := f.openRoom(feeding).join(2).start()
	r.finish("2:1:500:9;1:2:0:3;", 0).want(scripts.OK)
	return r, r.call(scripts.OutboxClose, 0, values{
		"entry": r.waiting(), "parked_entry": letter, "most_parked": maxLetters,
	})
}

// outboxExamples has calls on rooms for whose end somebody waits.
var outboxExamples = []example{
	{scripts.RoomFinish, "that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).start().finish("2:1:480:9;1:2:0:3;", 20)
	}},
	{scripts.RoomFinish, "free, that feeds", "ok", func(f *fixture) call {
		return f.openRoom(freeFeeding).join(2).start().finish("2:1::9;1:2::;", 0).with(values{"users": "1,2"})
	}},
	{scripts.RoomReport, "the last one, of a room that feeds", "ok", func(f *fixture) call {
		r := f.openRoom(feeding).join(2).start()
		r.report(1, "add", "1,2", 0, "").want(scripts.OK)
		return r.report(2, "agree", "1,2", 1, "1:1:500:;2:2:0:;")
	}},
	{scripts.RoomResolve, "with a result, that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).start().dispute().resolve("2,1", "2:1:500:9;1:2:0:;")
	}},
	{scripts.RoomResolve, "by a refund, that feeds", "ok", func(f *fixture) call {
		return f.openRoom(freeFeeding).join(2).start().dispute().resolve("1,2", "")
	}},
	{scripts.RoomCancel, "that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).call(scripts.RoomCancel, 1, values{"users": "1,2"})
	}},
	{scripts.RoomKick, "the last one, of a room that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).call(scripts.RoomKick, 0, values{"target": 1})
	}},
	{scripts.RoomKick, "the last one, of a room that was not read", "stale", func(f *fixture) call {
		return f.openRoom(feeding).call(scripts.RoomKick, 0, values{"target": 1}).with(notRead)
	}},
	{scripts.RoomKick, "one of two, of a room that was not read", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).call(scripts.RoomKick, 1, values{"target": 2}).with(notRead)
	}},
	{scripts.RoomLeave, "the last one, of a room that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).call(scripts.RoomLeave, 1, values{"computed_for": 1})
	}},
	{scripts.RoomLeave, "the last one, of a room that was not read", "stale", func(f *fixture) call {
		return f.openRoom(feeding).call(scripts.RoomLeave, 1, nil).with(notRead)
	}},
	{scripts.RoomLeave, "one of two, of a room that was not read", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).call(scripts.RoomLeave, 2, nil).with(notRead)
	}},
	{scripts.RoomLeave, "a game that is won then and feeds", "ok", func(f *fixture) call {
		r := f.openRoom(feeding).join(2).start()
		return r.call(scripts.RoomLeave, 1, values{
			"users": "2,1", "placements": "2:1:500:;1:0:0:;", "computed_for": r.live("version"),
		})
	}},
	{scripts.RoomSweep, "no result in time, of a room that feeds", "ok", func(f *fixture) call {
		r := f.openRoom(values{"feeds": "boards", "match_ms": 0}).join(2).start()
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomSweep, "a room that feeds and goes on", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).start().call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomRematch, "of a room that feeds", "ok", func(f *fixture) call {
		return f.openRoom(feeding).join(2).cancel("1,2").call(scripts.RoomRematch, 1, values{"users": "2"})
	}},

	{scripts.OutboxClose, "applied", "ok", func(f *fixture) call {
		_, c := f.closeEntry("", 9)
		return c
	}},
	{scripts.OutboxClose, "refused", "ok", func(f *fixture) call {
		_, c := f.closeEntry("why", 9)
		return c
	}},
	{scripts.OutboxClose, "another entry", "ok", func(f *fixture) call {
		_, c := f.closeEntry("why", 9)
		return c.with(values{"entry": "another"})
	}},

	{scripts.RoomOpenMatch, "a new one", "ok", func(f *fixture) call {
		_, open := f.newMatch(nil, false)
		return open
	}},
	{scripts.RoomOpenMatch, "a private one", "ok", func(f *fixture) call {
		_, open := f.newMatch(private, false)
		return open
	}},
	{scripts.RoomOpenMatch, "opened already", "ok", func(f *fixture) call {
		_, open := f.newMatch(nil, false)
		open.want(scripts.OK)
		return open.with(values{"code": "OTHER"})
	}},
	{scripts.RoomOpenMatch, "a code that is taken", "stale", func(f *fixture) call {
		other := f.openRoom(free)
		_, open := f.newMatch(nil, false)
		return open.with(values{"code": other.code})
	}},
	{scripts.RoomJoin, "the last player of a match", "ok", func(f *fixture) call {
		return f.openMatch(false).sit(2).call(scripts.RoomJoin, 1, values{"may_start": 1})
	}},
	{scripts.RoomJoin, "a match of others", "friends_only", func(f *fixture) call {
		return f.openMatch(false).call(scripts.RoomJoin, 3, values{"friend": 0})
	}},
	{scripts.RoomLeave, "a match in which nobody sits", "ok", func(f *fixture) call {
		return f.openMatch(false).call(scripts.RoomLeave, 1, nil)
	}},
	{scripts.RoomLeave, "a match that is won then", "ok", func(f *fixture) call {
		r := f.openMatch(false).sit(1, 2)
		return r.call(scripts.RoomLeave, 1, values{"users": "1,2", "placements": "2:1::;", "computed_for": r.live("version")})
	}},
	{scripts.RoomCancel, "a match, by its host", "forbidden", func(f *fixture) call {
		return f.openMatch(false).sit(1).call(scripts.RoomCancel, 1, values{"users": "1,2"})
	}},
	{scripts.RoomCancel, "a match, by its tournament", "ok", func(f *fixture) call {
		return f.openMatch(false).sit(1).call(scripts.RoomCancel, 0, values{"users": "1,2", "reason": "tournament"})
	}},
	{scripts.RoomKick, "from a match", "forbidden", func(f *fixture) call {
		return f.openMatch(false).sit(1).call(scripts.RoomKick, 0, values{"target": 2})
	}},
	{scripts.RoomRematch, "of a match", "forbidden", func(f *fixture) call {
		return f.openMatch(false).sit(1, 2).cancel("1,2").call(scripts.RoomRematch, 1, values{"users": "2"})
	}},
	{scripts.RoomSweep, "a match that nobody closed", "ok", func(f *fixture) call {
		r, open := f.newMatch(values{"idle_ms": 0}, true)
		open.want(scripts.OK)
		return r.call(scripts.RoomSweep, 0, values{"users": "1,2"})
	}},
	{scripts.RoomCloseMatch, "one player is there", "ok", func(f *fixture) call {
		return f.openMatch(true).sit(2).call(scripts.RoomCloseMatch, 0, values{"users": "1,2"})
	}},
	{scripts.RoomCloseMatch, "the deadline is to come", "ok", func(f *fixture) call {
		return f.openMatch(false).sit(2).call(scripts.RoomCloseMatch, 0, values{"users": "1,2"})
	}},
	{scripts.RoomCloseMatch, "both are there", "ok", func(f *fixture) call {
		return f.openMatch(true).sit(2, 1).call(scripts.RoomCloseMatch, 0, values{"users": "1,2"})
	}},
	{scripts.RoomCloseMatch, "a player is not there", "stale", func(f *fixture) call {
		return f.openMatch(true).call(scripts.RoomCloseMatch, 0, values{"users": "1"})
	}},
	{scripts.RoomCloseMatch, "no room", "room_not_found", func(f *fixture) call {
		return f.noRoom().call(scripts.RoomCloseMatch, 0, nil)
	}},
	{scripts.RoomCloseMatch, "a room of another game", "room_not_found", func(f *fixture) call {
		return f.openMatch(true).call(scripts.RoomCloseMatch, 0, values{"caller_game": f.id + 1})
	}},
	{scripts.RoomCloseMatch, "a room of no match", "room_not_found", func(f *fixture) call {
		return f.openRoom(free).call(scripts.RoomCloseMatch, 0, values{"users": "1"})
	}},
}

// What a room leaves for others is how it ended, for every script that ends rooms, and nothing when
// nobody waits.
func TestARoomThatEndsLeavesHowItEndedForWhoeverWaits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for name, tt := range map[string]struct {
			settings values
			end      func(r *room) call
			want     string // behind the time, the game and the feeds, <start> is a time
		}{
			"finish": {nil, func(r *room) call {
				return r.join(2).start().finish("2:1:480:9;1:2:0:3;", 20)
			}, "FINISHED||server|<start>|2|2:1:480:9;1:2:0:3;"},
			"finish, free": {free, func(r *room) call {
				return r.join(2).start().finish("2:1::9;1:2::;", 0).with(values{"users": "1,2"})
			}, "FINISHED||server|<start>|2|2:1::9;1:2::;"},
			"report": {nil, func(r *room) call {
				return r.join(2).start().report(1, "concede", "2,1", 0, "2:1:500:;1:2:0:;")
			}, "FINISHED||server|<start>|2|2:1:500:;1:2:0:;"},
			"resolve": {nil, func(r *room) call {
				return r.join(2).start().dispute().resolve("2,1", "2:1:500:;1:2:0:;")
			}, "FINISHED||server|<start>|2|2:1:500:;1:2:0:;"},
			"resolve, refund": {
				nil, func(r *room) call { return r.join(2).start().dispute().resolve("2,1", "") },
				"CANCELLED|dispute_refunded|server|<start>|2|",
			},
			"leave": {nil, func(r *room) call {
				r.join(2).start()
				return r.call(scripts.RoomLeave, 1, values{
					"users": "2,1", "placements": "2:1:500:;1:0:0:;", "computed_for": r.live("version"),
				})
			}, "FINISHED||server|<start>|2|2:1:500:;1:0:0:;"},
			"leave, empty": {
				nil, func(r *room) call { return r.call(scripts.RoomLeave, 1, values{"computed_for": 1}) },
				"CANCELLED|empty|server||2|",
			},
			"kick": {
				nil, func(r *room) call { return r.call(scripts.RoomKick, 0, values{"target": 1}) },
				"CANCELLED|empty|server||2|",
			},
			"cancel": {nil, func(r *room) call {
				return r.join(2).start().call(scripts.RoomCancel, 0, values{"users": "1,2", "reason": "server"})
			}, "CANCELLED|server|server|<start>|2|"},
			"sweep": {values{"match_ms": 0}, func(r *room) call {
				return r.join(2).start().call(scripts.RoomSweep, 0, values{"users": "1,2"})
			}, "CANCELLED|timeout|server|<start>|2|"},
		} {
			for _, feeds := range []string{"", "boards"} {
				f := newFixture(t, db)
				settings := values{"feeds": feeds}
				for name, value := range tt.settings {
					settings[name] = value
				}
				r := f.openRoom(settings)
				f.set(r.key(), "document", "server\t0\t10000")
				end := tt.end(r)
				if r.waiting() != "" {
					t.Errorf("%s: %s waits before the end", name, r.waiting())
				}
				for range 2 { // sent again it leaves nothing else
					if end.run(); feeds == "" {
						if got := r.waiting(); got != "" {
							t.Errorf("%s, which feeds nothing, leaves %s", name, got)
						}
						continue
					}
					want := strings.Join([]string{
						r.field(r.key(), "finished"), end.text("game"), feeds,
						strings.Replace(tt.want, "<start>", r.field(r.key(), "started"), 1),
					}, "|")
					if got := r.waiting(); got != want {
						t.Errorf("%s leaves %s; want %s", name, got, want)
					}
				}
			}
		}
	})
}

func TestDeadLettersAreBounded(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		first, closed := f.closeEntry("first", 1)
		closed.want(scripts.OK)
		second, closed := f.closeEntry("second", 1)
		closed.want(scripts.OK)
		closed.want(scripts.OK)
		for r, want := range map[*room]string{first: "first", second: ""} {
			if got := f.field(keys.DeadLetters(r.shard), r.id); got != want || r.waiting() != "" {
				t.Errorf("the dead letter is %q, and %q waits; want %q", got, r.waiting(), want)
			}
		}
	})
}

// An entry leaves the outbox by whoever applied that very entry.
func TestAnEntryThatWasNotAppliedStaysInTheOutbox(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r, c := f.closeEntry("why", 9)
		c.with(values{"entry": "another"}).changesNothing(scripts.OK)
		if r.waiting() == "" {
			t.Error("it is gone")
		}
	})
}

// A match that waits for its players is not cancelled before its time by the store's clock.
func TestAMatchIsNotCancelledBeforeItsDeadline(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.openMatch(false).sit(2).call(scripts.RoomCloseMatch, 0, values{"users": "1,2"}).changesNothing(scripts.OK)
		r := f.openMatch(true).sit(2)
		r.call(scripts.RoomCloseMatch, 0, values{"users": "1,2"}).want(scripts.OK)
		if status := r.live("status"); status != "CANCELLED" {
			t.Errorf("the match is %s", status)
		}
	})
}

// A key that SET replaced fails before anything has changed: else a room could end that is never
// applied.
func TestARoomDoesNotEndWithoutItsOutbox(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		r := f.openRoom(feeding).join(2).start()
		finish := r.finish("2:1:500:;1:2:0:;", 0)
		cancel := r.call(scripts.RoomCancel, 0, values{"users": "1,2"})
		testkit.Check(t, db.Client.Set(t.Context(), keys.RoomOutbox(r.shard), "x", 0).Err())
		before := finish.snapshot()
		for _, end := range []call{finish, cancel} {
			names, args := end.build()
			_, err := db.RunScript(t.Context(), end.script, names, args...)
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v", end.script.Name, err)
			}
		}
		if diff := before.Diff(finish.snapshot()); diff != "" {
			t.Errorf("what failed changed\n%s", diff)
		}
	})
}
