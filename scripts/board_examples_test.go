package scripts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// boardShard is the one shard of the fixture's leaderboard.
func (f *fixture) boardShard() keys.BoardShard { return keys.NewBoardShard(f.id, "top", 0) }

// boardKey returns the key that the header of a script of leaderboards names, "" for others.
func (c call) boardKey(name string) string {
	at := c.f.boardShard()
	if c.script == scripts.BoardPlayStart && name == "play" {
		return keys.BoardPlay(at, c.text("play_id"))
	}
	return map[string]string{
		"board": keys.Board(c.f.id, "top"), "season": keys.BoardSeason(at, 1), "rank": keys.BoardRank(at, 1),
		"entries": keys.BoardEntries(at, 1, 0), "details": keys.BoardDetails(at, 1, 0),
		"plays": keys.BoardPlays(at, 7),
	}[name]
}

// startPlay returns the run that begins a play of the player 7, who may have two. listed are the
// ids of plays that it is given.
func (f *fixture) startPlay(playID string, listed ...any) call {
	return f.newCall(scripts.BoardPlayStart,
		values{"play_id": playID, "keep_ms": 60_000, "most_plays": 2, "segments": ""}, listed...)
}

// boardKeys returns the keys behind those with a number, but for the receipt.
func (c call) boardKeys() (more []string) {
	if c.script == scripts.BoardPlayStart {
		for _, listed := range c.rest {
			more = append(more, keys.BoardPlay(c.f.boardShard(), fmt.Sprint(listed)))
		}
		return more
	}
	if c.args["play"] == "1" {
		more = append(more, keys.BoardPlay(c.f.boardShard(), c.text("play_id")))
	}
	for segment := range strings.SplitSeq(c.text("segments"), ",") {
		if name, value, ok := strings.Cut(segment, "="); ok && name == "@" {
			more = append(more, keys.BoardCohort(c.f.boardShard(), 1, value))
		} else if ok {
			more = append(more, keys.BoardSegmentRank(c.f.boardShard(), 1, name, value))
		}
	}
	return more
}

// score returns a run of board_submit on a board with the operator best.
func (f *fixture) score(units int, given values) call {
	return f.newCall(scripts.BoardSubmit, values{
		"from": 1, "to": "", "order": "desc", "operator": "best", "units": units, "sub_order": "",
		"sub_operator": "", "sub_units": "", "segments": "", "details": "", "most_entries": "",
		"longest_step": "", "interval_ms": "", "most_submissions": "", "play": "",
		"shortest_ms": 0, "longest_ms": 60_000, "number": 1,
	}).with(given)
}

// entry returns a run of a script on the entry of the player 7.
func (f *fixture) entry(s *scripts.Script, given values) call {
	return f.newCall(s, values{"segments": ""}).with(given)
}

// enter returns the run that gives a player a place in a cohort of two, on the second of three
// shards.
func (f *fixture) enter(user int) call {
	return f.newCall(scripts.BoardEnter, values{
		"user": user, "tier": 4, "size": 2, "shards": 3, "shard": 1, "draw": 0,
	})
}

// A draw decides among the free places of the open cohorts. Those that a release before has filled
// in their order go on: the last one is open, and each player who comes through it opens the next.
func TestAPlaceInALeagueIsDrawn(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	enter := func(user, draw int) string {
		t.Helper()
		reply := f.enter(user).with(values{"draw": draw}).want(scripts.OK)
		return reply.Values[0]
	}
	season := f.enter(0).keyOf("season")
	for i, step := range []struct {
		draw                int
		want, places, state string
	}{
		{3, "4:1", "4", "0:1,1:0,"}, {1, "4:4", "4", "0:1,1:1,"}, {3, "4:4", "4", "0:1,"}, {1, "4:7", "6", "0:1,2:1,"},
	} {
		if got := enter(i+1, step.draw); got != step.want {
			t.Errorf("player %d is in %s; want %s", i+1, got, step.want)
		}
		stored := f.db.Client.HMGet(t.Context(), season, "l:4", "o:4").Val()
		if stored[0] != step.places || stored[1] != step.state {
			t.Errorf("after player %d: %v; want %s and %s", i+1, stored, step.places, step.state)
		}
	}
	f.set(season, "l:4", "7") // an older release has opened cohort 3 and given one place
	if got := enter(9, 2); got != "4:10" {
		t.Errorf("player 9 is in %s; want the cohort of the older release", got)
	}
	if stored := f.db.Client.HMGet(t.Context(), season, "l:4", "o:4").Val(); stored[0] != "8" || stored[1] != "0:1,2:1," {
		t.Errorf("%v", stored)
	}
}

func TestCohortsAreFilledOneAfterTheOther(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		for user, want := range []string{"4:1", "4:1", "4:4", "4:4", "4:7"} {
			for range 2 {
				if reply := f.enter(user + 1).want(scripts.OK); reply.Values[0] != want {
					t.Errorf("player %d is in the cohort %v; want %s", user+1, reply.Values, want)
				}
			}
		}
		if reply := f.enter(9).with(values{"tier": 0}).want(scripts.OK); reply.Values[0] != "0:1" {
			t.Errorf("the first of another tier is in %v", reply.Values)
		}
	})
}

// play stores a play of the player 7.
func (f *fixture) play(text string) values {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.Set(f.t.Context(), keys.BoardPlay(f.boardShard(), "play"), text, 0).Err())
	return values{"play": "1", "play_id": "play"}
}

// playNow stores a play that has just begun.
func (f *fixture) playNow() values {
	now := testkit.Must(f.db.Client.Time(f.t.Context()).Result())(f.t)
	return f.play(fmt.Sprint("7|", now.UnixMilli()))
}

var boardExamples = []example{
	{scripts.BoardList, "the last that the game may have", "ok", func(f *fixture) call {
		f.newCall(scripts.BoardList, values{"board": "a", "most": 2, "due": 5}).want(scripts.OK)
		return f.newCall(scripts.BoardList, values{"board": "b", "most": 2, "due": 5})
	}},
	{scripts.BoardList, "of a tournament, which does not count", "ok", func(f *fixture) call {
		f.newCall(scripts.BoardList, values{"board": "tour-1", "most": "", "due": 5}).want(scripts.OK)
		return f.newCall(scripts.BoardList, values{"board": "a", "most": 1, "due": 5})
	}},
	{scripts.BoardSchedule, "as the leader took them", "ok", func(f *fixture) call {
		f.newCall(scripts.BoardList, values{"board": "a", "due": 5}).want(scripts.OK)
		return f.newCall(scripts.BoardSchedule, values{"taken": 5}, "a", 7)
	}},
	{scripts.BoardList, "one too many", "limit_reached", func(f *fixture) call {
		f.newCall(scripts.BoardList, values{"board": "a", "most": 1, "due": 5}).want(scripts.OK)
		return f.newCall(scripts.BoardList, values{"board": "b", "most": 1, "due": 5})
	}},
	{scripts.BoardList, "listed already", "ok", func(f *fixture) call {
		f.newCall(scripts.BoardList, values{"board": "a", "most": 1, "due": 5}).want(scripts.OK)
		return f.newCall(scripts.BoardList, values{"board": "a", "most": 1, "due": 6})
	}},
	{scripts.BoardDefine, "new", "ok", func(f *fixture) call {
		return f.newCall(scripts.BoardDefine, values{"version_read": ""}, "d:1", "{}", "s:1", "1||0|1|1024|0")
	}},
	{scripts.BoardDefine, "a field less", "ok", func(f *fixture) call {
		f.newCall(scripts.BoardDefine, values{"version_read": ""}, "d:1", "{}").want(scripts.OK)
		return f.newCall(scripts.BoardDefine, values{"version_read": 1}, "d:1", "", "d:2", "{}")
	}},
	{scripts.BoardDefine, "of an older version", "stale", func(f *fixture) call {
		f.newCall(scripts.BoardDefine, values{"version_read": ""}, "d:1", "{}").want(scripts.OK)
		return f.newCall(scripts.BoardDefine, values{"version_read": 2}, "d:1", "")
	}},
	{scripts.BoardDefine, "there already", "board_exists", func(f *fixture) call {
		f.newCall(scripts.BoardDefine, values{"version_read": ""}, "d:1", "{}").want(scripts.OK)
		return f.newCall(scripts.BoardDefine, values{"version_read": ""}, "d:1", "{}")
	}},

	{scripts.BoardSubmit, "the first", "ok", func(f *fixture) call { return f.score(5, nil) }},
	{scripts.BoardSubmit, "a better one", "ok", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		return f.score(6, values{"details": `{"metadata":{}}`})
	}},
	{scripts.BoardSubmit, "one that is not better", "ok", func(f *fixture) call {
		f.score(5, values{"details": `{"metadata":{}}`}).want(scripts.OK)
		return f.score(4, nil)
	}},
	{scripts.BoardSubmit, "of a hidden player", "ok", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		f.entry(scripts.BoardHide, values{"hide": 1}).want(scripts.OK)
		return f.score(6, nil)
	}},
	{scripts.BoardSubmit, "with segments, later", "ok", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		return f.score(5, values{"segments": "country=DE,team=red"})
	}},
	{scripts.BoardSubmit, "for a play", "ok", func(f *fixture) call { return f.score(5, f.playNow()) }},
	{scripts.BoardSubmit, "after the interval", "ok", func(f *fixture) call {
		return f.score(5, values{"interval_ms": 1000})
	}},
	{scripts.BoardSubmit, "before the season", "stale", func(f *fixture) call {
		return f.score(5, values{"from": 1 << 52})
	}},
	{scripts.BoardSubmit, "after the season", "stale", func(f *fixture) call { return f.score(5, values{"to": 2}) }},
	{scripts.BoardSubmit, "in a sealed season", "stale", func(f *fixture) call {
		f.newCall(scripts.BoardSeal, values{"to": 2}).want(scripts.OK)
		return f.score(5, nil)
	}},
	{scripts.BoardSubmit, "without the stored segments", "stale", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.score(6, nil)
	}},
	{scripts.BoardSubmit, "in another segment", "segment_fixed", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.score(6, values{"segments": "country=FR"})
	}},
	{scripts.BoardSubmit, "with a segment beside the cohort of a league", "ok", func(f *fixture) call {
		f.score(5, values{"segments": "@=0:3"}).want(scripts.OK)
		return f.score(5, values{"segments": "country=DE,@=0:3"})
	}},
	{scripts.BoardSubmit, "in another cohort", "segment_fixed", func(f *fixture) call {
		f.score(5, values{"segments": "@=0:3"}).want(scripts.OK)
		return f.score(6, values{"segments": "country=DE,@=0:4"})
	}},
	{scripts.BoardSubmit, "in another segment and cohort", "segment_fixed", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE,@=0:3"}).want(scripts.OK)
		return f.score(6, values{"segments": "country=FR,@=0:3"})
	}},
	{scripts.BoardEnter, "the first place", "ok", func(f *fixture) call { return f.enter(7) }},
	{scripts.BoardEnter, "the last free place of those that are open", "ok", func(f *fixture) call {
		f.enter(8).want(scripts.OK)
		return f.enter(7).with(values{"draw": 2})
	}},
	{scripts.BoardEnter, "a place that was given", "ok", func(f *fixture) call {
		f.enter(7).want(scripts.OK)
		return f.enter(7)
	}},
	{scripts.BoardSubmit, "too many", "submissions_exhausted", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		return f.score(6, values{"most_submissions": 1})
	}},
	{scripts.BoardSubmit, "on a full board", "board_full", func(f *fixture) call {
		f.score(5, values{"user": 8}).want(scripts.OK)
		return f.score(6, values{"most_entries": 1})
	}},
	{scripts.BoardSubmit, "too long a step", "score_rejected", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		return f.score(16, values{"longest_step": 10})
	}},
	{scripts.BoardSubmit, "too large a sum", "score_rejected", func(f *fixture) call {
		f.score(1<<52-1, values{"operator": "sum"}).want(scripts.OK)
		return f.score(1, values{"operator": "sum"})
	}},
	{scripts.BoardSubmit, "no such play", "play_not_found", func(f *fixture) call {
		return f.score(5, values{"play": "1", "play_id": "none"})
	}},
	{scripts.BoardSubmit, "for a play of another player", "play_not_found", func(f *fixture) call {
		return f.score(5, f.play("8|1"))
	}},
	{scripts.BoardSubmit, "for a play that is used", "play_used", func(f *fixture) call {
		return f.score(5, f.play("used"))
	}},
	{scripts.BoardSubmit, "for a play that is over", "play_expired", func(f *fixture) call {
		return f.score(5, f.play("7|1"))
	}},

	{scripts.BoardPlayStart, "the first", "ok", func(f *fixture) call { return f.startPlay("a") }},
	{scripts.BoardPlayStart, "one too many, of which the others are not given", "stale", func(f *fixture) call {
		f.startPlay("a").want(scripts.OK)
		f.startPlay("b").want(scripts.OK)
		return f.startPlay("c")
	}},
	{scripts.BoardPlayStart, "one too many", "ok", func(f *fixture) call {
		f.startPlay("a").want(scripts.OK)
		f.startPlay("b").want(scripts.OK)
		return f.startPlay("c", "a", "b")
	}},

	{scripts.BoardHide, "an entry", "ok", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.entry(scripts.BoardHide, values{"hide": 1, "segments": "country=DE"})
	}},
	{scripts.BoardHide, "shown again", "ok", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		f.entry(scripts.BoardHide, values{"hide": 1}).want(scripts.OK)
		return f.entry(scripts.BoardHide, values{"hide": 0})
	}},
	{scripts.BoardHide, "without the stored segments", "stale", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.entry(scripts.BoardHide, values{"hide": 1})
	}},
	{scripts.BoardHide, "nobody", "entry_not_found", func(f *fixture) call {
		return f.entry(scripts.BoardHide, values{"hide": 1})
	}},
	{scripts.BoardRemove, "an entry", "ok", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.entry(scripts.BoardRemove, values{"segments": "country=DE"})
	}},
	{scripts.BoardRemove, "a hidden one", "ok", func(f *fixture) call {
		f.score(5, nil).want(scripts.OK)
		f.entry(scripts.BoardHide, values{"hide": 1}).want(scripts.OK)
		return f.entry(scripts.BoardRemove, nil)
	}},
	{scripts.BoardRemove, "nobody", "ok", func(f *fixture) call { return f.entry(scripts.BoardRemove, nil) }},
	{scripts.BoardRemove, "without the stored segments", "stale", func(f *fixture) call {
		f.score(5, values{"segments": "country=DE"}).want(scripts.OK)
		return f.entry(scripts.BoardRemove, nil)
	}},
	{scripts.BoardSeal, "after its end", "ok", func(f *fixture) call {
		return f.newCall(scripts.BoardSeal, values{"to": 2})
	}},
	{scripts.BoardSeal, "before its end", "stale", func(f *fixture) call {
		return f.newCall(scripts.BoardSeal, values{"to": 1 << 52})
	}},
}

func TestTheVersionOfTheFirstHundredRisesOnlyWithThem(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		top := func() string { return f.field(keys.BoardSeason(f.boardShard(), 1), keys.BoardTopField) }
		for user := range 110 {
			f.score(1000-user, values{"user": user + 1}).want(scripts.OK)
		}
		if top() != "100" {
			t.Fatalf("%s after 110 players", top())
		}
		for _, step := range []struct {
			name string
			call call
			want string
		}{
			{"behind the first hundred", f.score(899, values{"user": 110}), "100"},
			{"unchanged in front", f.score(1, values{"user": 1}), "100"},
			{"as good as the hundredth, and later", f.score(901, values{"user": 110}), "100"},
			{"from behind into them", f.score(950, values{"user": 110}), "101"},
			{"out of them", f.score(1, values{"user": 1, "operator": "last"}), "102"},
			{"hidden in front", f.entry(scripts.BoardHide, values{"user": 2, "hide": 1}), "103"},
			{"hidden behind", f.entry(scripts.BoardHide, values{"user": 109, "hide": 1}), "103"},
			{"removed in front", f.entry(scripts.BoardRemove, values{"user": 3}), "104"},
			{"shown again in front", f.entry(scripts.BoardHide, values{"user": 2, "hide": 0}), "105"},
			{"shown again behind", f.entry(scripts.BoardHide, values{"user": 109, "hide": 0}), "105"},
		} {
			step.call.want(scripts.OK)
			if top() != step.want {
				t.Errorf("%s: %s; want %s", step.name, top(), step.want)
			}
		}
	})
}
