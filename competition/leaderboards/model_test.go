package leaderboards

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

// modelEntry is an entry of the model.
type modelEntry struct {
	user, score, sub int64
	at               time.Time
	submissions      int64
	hidden           bool
	country          string
}

// model is a board as a sorted slice.
type model struct {
	*fixture
	d       Definition
	seasons []map[int64]*modelEntry // the last one is open
}

func (m *model) isBetter(a, b int64, order Order) bool {
	if order == Ascending {
		return a < b
	}
	return a > b
}

func (m *model) combine(operator Operator, order Order, old, given int64) int64 {
	switch operator {
	case Last:
		return given
	case Sum:
		return old + given
	case Min:
		return min(old, given)
	case Max:
		return max(old, given)
	}
	if m.isBetter(given, old, order) {
		return given
	}
	return old
}

// submit returns whether the entry has changed.
func (m *model) submit(user, score, sub int64, at time.Time, country string) bool {
	open := m.seasons[len(m.seasons)-1]
	e, ok := open[user]
	if !ok {
		open[user] = &modelEntry{user: user, score: score, sub: sub, at: at, submissions: 1, country: country}
		return true
	}
	e.submissions++
	if e.country == "" {
		e.country = country
	}
	newScore, newSub := m.combine(m.d.Operator, m.d.Order, e.score, score), int64(0)
	if s := m.d.Subscore; s != nil {
		newSub = m.combine(s.Operator, s.Order, e.sub, sub)
		keepsOne := m.d.Operator != Last && m.d.Operator != Sum
		if s.Operator == Best && keepsOne && score != e.score {
			newSub = e.sub
			if newScore == score {
				newSub = sub
			}
		}
	}
	if newScore == e.score && newSub == e.sub {
		return false
	}
	e.score, e.sub, e.at = newScore, newSub, at
	return true
}

func (m *model) compare(a, b *modelEntry) int {
	direction := func(order Order) int {
		if order == Ascending {
			return 1
		}
		return -1
	}
	bySub := 0
	if m.d.Subscore != nil {
		bySub = direction(m.d.Subscore.Order) * cmp.Compare(a.sub, b.sub)
	}
	byScore := direction(m.d.Order) * cmp.Compare(a.score, b.score)
	return cmp.Or(byScore, bySub, a.at.Compare(b.at), cmp.Compare(a.user, b.user))
}

// sorted returns the entries of a season, of a country unless that is "", that are not hidden; and
// of one player even if hidden.
func (m *model) sorted(season int, country string, even int64) []*modelEntry {
	list := slices.Collect(maps.Values(m.seasons[season]))
	list = slices.DeleteFunc(list, func(e *modelEntry) bool {
		return e.hidden && e.user != even || country != "" && e.country != country
	})
	slices.SortFunc(list, m.compare)
	return list
}

// want returns what the board must show of some entries of an order.
func (m *model) want(order []*modelEntry, shown []*modelEntry) (lines []string) {
	for _, e := range shown {
		rank, place := 1, 1
		for _, other := range order {
			if other.hidden || other == e {
				continue
			}
			if m.compare(other, e) < 0 {
				rank++
				if other.score != e.score || other.sub != e.sub {
					place++
				}
			}
		}
		if m.d.Ties == TiesFirst {
			place = rank
		}
		lines = append(lines, fmt.Sprintf("%d/%d user %d: %d, %d at %d, %d times, hidden %v, %q",
			rank, place, e.user, e.score, e.sub, e.at.UnixMilli(), e.submissions, e.hidden, e.country))
	}
	return lines
}

func (m *model) got(entries []Entry) (lines []string) {
	for _, e := range entries {
		sub := int64(0)
		if e.Subscore != nil {
			sub = e.Subscore.Units
		}
		lines = append(lines, fmt.Sprintf("%d/%d user %d: %d, %d at %d, %d times, hidden %v, %q",
			e.Rank, e.Place, e.User.ID, e.Score.Units, sub, e.ReachedAt.UnixMilli(), e.Submissions, e.Hidden,
			e.Segments["country"]))
	}
	return lines
}

func (m *model) compareLines(what string, got, want []string) {
	m.t.Helper()
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func (m *model) mustSucceed(err error) {
	m.t.Helper()
	testkit.Check(m.t, err)
}

// docs/proof.md has the run with a thousand cases.
func TestBoardsAgreeWithASortedSlice(t *testing.T) {
	if checks := flag.Lookup("rapid.checks").Value; checks.String() == "100" { // the command line sets no other number
		_ = checks.Set("25")
		defer func() { _ = checks.Set("100") }()
	}
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for _, shards := range []int{1, 8} {
			t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { runModel(rt, db, shards) })
			})
		}
	})
}

func runModel(t *rapid.T, db *redisdb.DB, shards int) {
	operators := rapid.SampledFrom([]Operator{Best, Last, Sum, Min, Max})
	orders := rapid.SampledFrom([]Order{Ascending, Descending})
	m := &model{fixture: newFixture(t, db), d: Definition{
		Order: orders.Draw(t, "order"), Operator: operators.Draw(t, "operator"), Shards: shards,
		Ties:     rapid.SampledFrom([]Ties{TiesFirst, TiesShared}).Draw(t, "ties"),
		Segments: []string{"country"}, Writers: Writers{WriterServer},
	}, seasons: []map[int64]*modelEntry{{}}}
	if rapid.Bool().Draw(t, "with a subscore") {
		m.d.Subscore = &Subscore{orders.Draw(t, "order of it"), operators.Draw(t, "operator of it")}
	}
	m.create(m.d)
	players, limits := rapid.Int64Range(1, 20), rapid.IntRange(1, 12)
	countries := rapid.SampledFrom([]string{"", "DE", "FR"})
	newest := map[int64]time.Time{} // of each shard
	t.Repeat(map[string]func(*rapid.T){
		"submit": func(t *rapid.T) {
			user, score := players.Draw(t, "user"), rapid.Int64Range(-4, 4).Draw(t, "score")
			sub, country := rapid.Int64Range(-2, 2).Draw(t, "sub"), countries.Draw(t, "country")
			if m.d.Subscore == nil {
				sub = 0
			}
			old, had := m.seasons[len(m.seasons)-1][user]
			var before modelEntry
			if had {
				before = *old
			}
			r, err := m.send(user, strconv.FormatInt(score, 10), func(in *SubmitInput) {
				if m.d.Subscore != nil {
					in.Subscore = ScoreInput(strconv.FormatInt(sub, 10))
				}
				if country != "" {
					in.Segments = map[string]string{"country": country}
				}
			})
			if had && country != "" && old.country != "" && old.country != country {
				if !errors.Is(err, apierror.SegmentFixed) {
					t.Fatalf("another country: %v", err)
				}
				return
			}
			m.mustSucceed(err)
			if changed := m.submit(user, score, sub, r.Entry.ReachedAt, country); changed != r.Changed {
				t.Fatalf("changed: %v; want %v", r.Changed, changed)
			}
			if had != (r.Previous != nil) || had && r.Previous.Score.Units != before.score {
				t.Fatalf("previous: %v; want %v", r.Previous, before)
			}
			shard := user % int64(shards)
			if r.Changed && r.Entry.ReachedAt.Before(newest[shard]) {
				t.Fatalf("an entry is older than one before it")
			}
			if r.Changed {
				newest[shard] = r.Entry.ReachedAt
			}
		},
		"hide": func(t *rapid.T) {
			user, hide := players.Draw(t, "user"), rapid.Bool().Draw(t, "hide")
			season := rapid.IntRange(0, len(m.seasons)-1).Draw(t, "season")
			e, ok := m.seasons[season][user]
			shown, err := m.SetHidden(t.Context(), m.server(), m.gameID, "top", int64(season+1), user, hide)
			if !ok {
				if !errors.Is(err, apierror.EntryNotFound) {
					t.Fatalf("hide nobody: %v", err)
				}
				return
			}
			m.mustSucceed(err)
			e.hidden = hide
			m.compareLines("hidden", m.got([]Entry{shown}), m.want(m.sorted(season, "", user), []*modelEntry{e}))
		},
		"remove": func(t *rapid.T) {
			user := players.Draw(t, "user")
			season := rapid.IntRange(0, len(m.seasons)-1).Draw(t, "season")
			_, ok := m.seasons[season][user]
			_, err := m.Remove(t.Context(), m.server(), m.gameID, "top", int64(season+1), user)
			if !ok {
				if !errors.Is(err, apierror.EntryNotFound) {
					t.Fatalf("remove nobody: %v", err)
				}
				return
			}
			m.mustSucceed(err)
			delete(m.seasons[season], user)
		},
		"end the season": func(t *rapid.T) {
			if len(m.seasons) == 4 {
				t.Skip("enough seasons")
			}
			_, err := m.EndSeason(t.Context(), m.server(), m.gameID, "top", int64(len(m.seasons)))
			m.mustSucceed(err)
			m.seasons = append(m.seasons, map[int64]*modelEntry{})
			clear(newest)
		},
		"around": func(t *rapid.T) {
			user, limit, country := players.Draw(t, "user"), limits.Draw(t, "limit"), countries.Draw(t, "country")
			season := rapid.IntRange(0, len(m.seasons)-1).Draw(t, "season")
			list, err := m.Around(t.Context(), m.player(user), m.gameID, "top", m.scope(season, country), limit)
			order := m.sorted(season, country, user)
			at := slices.IndexFunc(order, func(e *modelEntry) bool { return e.user == user })
			if at < 0 {
				if !errors.Is(err, apierror.EntryNotFound) {
					t.Fatalf("around nobody: %v", err)
				}
				return
			}
			m.mustSucceed(err)
			first := min(max(0, at-(limit-1)/2), max(0, len(order)-limit))
			m.compareLines("around", m.got(list), m.want(order, order[first:min(first+limit, len(order))]))
		},
		"friends": func(t *rapid.T) {
			user, limit, country := players.Draw(t, "user"), limits.Draw(t, "limit"), countries.Draw(t, "country")
			season := rapid.IntRange(0, len(m.seasons)-1).Draw(t, "season")
			m.people.Friends[user] = slices.DeleteFunc(rapid.SliceOfDistinct(players, rapid.ID[int64]).Draw(t, "friends"),
				func(id int64) bool { return id == user })
			list, err := m.FriendEntries(t.Context(), m.player(user), m.gameID, "top", m.scope(season, country), limit)
			m.mustSucceed(err)
			order, shown := m.sorted(season, country, 0), []*modelEntry{}
			for _, e := range order {
				if e.user == user || slices.Contains(m.people.Friends[user], e.user) {
					shown = append(shown, e)
				}
			}
			if own, ok := m.seasons[season][user]; ok && own.hidden && country == "" {
				shown = append(shown, own)
				slices.SortFunc(shown, m.compare)
			}
			m.compareLines("friends", m.got(list), m.want(order, shown[:min(limit, len(shown))]))
		},
		"": func(t *rapid.T) { m.check(t, limits.Draw(t, "limit")) },
	})
}

func (m *model) scope(season int, country string) Scope {
	s := Scope{Season: int64(season + 1)}
	if country != "" {
		s.Segment = "country:" + country
	}
	return s
}

// check compares one order, page by page, and the entries in it.
func (m *model) check(t *rapid.T, limit int) {
	season := rapid.IntRange(0, len(m.seasons)-1).Draw(t, "season")
	country := rapid.SampledFrom([]string{"", "DE"}).Draw(t, "country")
	order := m.sorted(season, country, 0)
	var shown []Entry
	cursor := ""
	for first := true; first || cursor != ""; first = false {
		page, next, err := m.Entries(t.Context(), m.player(1), m.gameID, "top", m.scope(season, country), cursor, limit)
		m.mustSucceed(err)
		if len(page) > limit || next != "" && len(page) < limit {
			t.Fatalf("a page of %d with limit %d", len(page), limit)
		}
		shown, cursor = append(shown, page...), next
	}
	m.compareLines("pages", m.got(shown), m.want(order, order))
	user := rapid.Int64Range(1, 20).Draw(t, "whose entry")
	e, ok := m.seasons[season][user]
	got, err := m.GetEntry(t.Context(), m.player(user), m.gameID, "top", m.scope(season, ""), user)
	if !ok {
		if !errors.Is(err, apierror.EntryNotFound) {
			t.Fatalf("the entry of nobody: %v", err)
		}
		return
	}
	m.mustSucceed(err)
	m.compareLines("own entry", m.got([]Entry{got}), m.want(m.sorted(season, "", user), []*modelEntry{e}))
	_, err = m.GetEntry(t.Context(), m.player(user+1), m.gameID, "top", m.scope(season, ""), user)
	if e.hidden != errors.Is(err, apierror.EntryNotFound) {
		t.Fatalf("another player sees the entry: %v", err)
	}
}
