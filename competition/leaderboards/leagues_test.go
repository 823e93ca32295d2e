package leaderboards

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"golang.org/x/sync/errgroup"
)

// smallLeague has cohorts of ten, of whom two rise and three fall.
func smallLeague() *League {
	return &League{Size: 10, Tiers: []string{"bronze", "silver", "gold"}, Promote: 2, Relegate: 3}
}

// cohortOf returns the tier and the number of the cohort of a player, "" for none.
func (f *fixture) cohortOf(userID, season int64) string {
	f.t.Helper()
	c, err := f.Cohort(f.t.Context(), f.player(userID), f.gameID, "top", season)
	if errors.Is(err, apierror.EntryNotFound) {
		return ""
	}
	testkit.Check(f.t, err)
	return fmt.Sprintf("%s %d", c.Tier, c.Cohort)
}

func (f *fixture) endSeason(number int64) {
	f.t.Helper()
	testkit.Must(f.EndSeason(f.t.Context(), f.server(), f.gameID, "top", number))(f.t)
}

func TestALeagueIsCheckedWhenABoardIsDefined(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for field, change := range map[string]func(*Definition){
		"league.size":     func(d *Definition) { d.League.Size = 101 },
		"league.tiers":    func(d *Definition) { d.League.Tiers = nil },
		"league.tiers[1]": func(d *Definition) { d.League.Tiers = []string{"a", "a"} },
		"league.tiers[0]": func(d *Definition) { d.League.Tiers = []string{" "} },
		"league.promote":  func(d *Definition) { d.League.Promote = -1 },
		"league.relegate": func(d *Definition) { d.League.Relegate = 9 },
		"graceSeconds":    func(d *Definition) { d.GraceSeconds = 1 },
		"keepSeasons":     func(d *Definition) { d.KeepSeasons = new(int64(0)) },
	} {
		d := Definition{Board: "top", Name: "Top", League: smallLeague()}
		change(&d)
		_, err := f.Create(t.Context(), f.server(), f.gameID, d)
		wantError(t, err, apierror.InvalidRequest, field)
	}
}

// drawFirst makes players get the first free place, so that cohorts are filled in their order.
func (f *fixture) drawFirst() { f.draw = func() uint32 { return 0 } }

// Ten accounts that enter one after the other are not one cohort, and only a few cohorts are left
// with free places.
func TestPlayersWhoEnterTogetherAreNotTogether(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{League: smallLeague()})
	random := rand.New(rand.NewPCG(1, 2))
	f.draw = random.Uint32
	players := map[string]int{}
	for user := range int64(500) {
		f.mustSend(user+1, "1")
		players[f.cohortOf(user+1, 0)]++
		if user == 9 {
			for name, count := range players {
				if count > 7 {
					t.Errorf("%d of the first ten players are in %s", count, name)
				}
			}
		}
	}
	open := 0
	for name, count := range players {
		if count > 10 {
			t.Errorf("%s has %d players", name, count)
		}
		if count < 10 {
			open++
		}
	}
	if len(players) > 50+8 || open > 8 {
		t.Errorf("500 players are in %d cohorts of ten, %d of them not full", len(players), open)
	}
}

// Else own accounts without an entry fill a cohort, and the first player who enters it rises alone.
func TestAScoreThatDoesNotCountTakesNoPlaceInACohort(t *testing.T) {
	for name, faulty := range map[string]SubmitInput{
		"a score above max": {Score: "101"}, "an unknown play": {Score: "1", PlayID: "0123456789abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, redistest.Single(t))
			f.drawFirst()
			rules := &Rules{Max: new(ScoreInput("100")), Play: faulty.PlayID != ""}
			f.create(Definition{League: smallLeague(), Writers: Writers{WriterPlayers, WriterServer}, Rules: rules})
			for user := range int64(20) {
				_, err := f.Submit(t.Context(), f.player(user+1), f.gameID, "top", faulty, idempotency.Receipt{})
				if !errors.Is(err, apierror.ScoreRejected) && !errors.Is(err, apierror.PlayNotFound) {
					t.Fatal(err)
				}
			}
			for user := range int64(10) {
				f.mustSend(user+21, "1")
				if got := f.cohortOf(user+21, 0); got != "bronze 0" {
					t.Errorf("player %d is in %s", user+21, got)
				}
			}
			// Who has an entry hears the same of a faulty score as before.
			_, err := f.Submit(t.Context(), f.player(21), f.gameID, "top", faulty, idempotency.Receipt{})
			if !errors.Is(err, apierror.ScoreRejected) && !errors.Is(err, apierror.PlayNotFound) {
				t.Error(err)
			}
		})
	}
}

func TestPlayersFillCohortsOneAfterTheOther(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.drawFirst()
		f.create(Definition{League: smallLeague(), Ties: TiesShared, Segments: []string{"country"}})
		for user := range int64(13) {
			f.mustSend(user+1, fmt.Sprint(100-user))
		}
		f.mustSend(13, "200")
		for user, want := range map[int64]string{1: "bronze 0", 10: "bronze 0", 11: "bronze 1", 13: "bronze 1", 14: ""} {
			if got := f.cohortOf(user, 0); got != want {
				t.Errorf("player %d is in %q; want %q", user, got, want)
			}
		}
		c, err := f.Cohort(t.Context(), f.player(12), f.gameID, "top", 0)
		if err != nil || !slices.Equal(userIDs(c.Entries), []int64{13, 11, 12}) || c.Promote != 2 || c.Relegate != 3 {
			t.Fatalf("%+v, %v", c, err)
		}
		if c.Entries[0].Rank != 1 || c.Entries[2].Rank != 3 || len(c.Entries[0].Segments) != 0 {
			t.Errorf("%+v", c.Entries)
		}
		if got := userIDs(f.entries(Scope{})); len(got) != 13 || got[0] != 13 {
			t.Errorf("all players: %v", got)
		}
		testkit.Fails(f.Cohort(t.Context(), f.server(), f.gameID, "top", 0))(t, apierror.Forbidden)
	})
}

func TestTheBestOfACohortRiseAndTheLastFall(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.drawFirst()
		f.create(Definition{League: smallLeague()})
		play := func(season int64, order ...int64) {
			t.Helper()
			for i, user := range order {
				f.mustSend(user, fmt.Sprint(100-i))
			}
			f.endSeason(season)
		}
		want := func(season int64, tiers map[int64]string) {
			t.Helper()
			for user, tier := range tiers {
				if got := f.cohortOf(user, season); got != tier {
					t.Errorf("in season %d player %d is in %q; want %q", season, user, got, tier)
				}
			}
		}
		play(1, 1, 2, 3, 4, 5, 6)
		testkit.Check(t, f.store.hide(t.Context(), f.board(), f.board().find(1), 1, true)) // 2 and 3 are the best now
		play(2, 1, 2, 3, 4, 5, 6, 7)
		want(2, map[int64]string{
			1: "bronze 0", 2: "silver 0", 3: "silver 0", 4: "bronze 0", 6: "bronze 0", 7: "bronze 0",
		})
		// Of two in silver both rise: rising comes before falling. In bronze 1 and 4 are the best.
		play(3, 2, 4, 7)
		want(3, map[int64]string{2: "gold 0", 4: "silver 0", 7: "bronze 0"})
		// 3 missed a season: no better, no worse than before. 2 stays in the highest tier, 7 falls no
		// further.
		play(4, 2, 3, 7, 1)
		want(4, map[int64]string{2: "gold 0", 3: "silver 0", 7: "silver 0", 1: "bronze 0"})
	})
}

// board returns the board "top" as it is stored.
func (f *fixture) board() *board {
	f.t.Helper()
	return testkit.Must(f.read(f.t.Context(), f.gameID, "top"))(f.t)
}

func TestPlayersWhoMissManySeasonsBeginInTheLowestTier(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.drawFirst()
	f.create(Definition{League: smallLeague()})
	f.mustSend(1, "1")
	f.endSeason(1)
	f.mustSend(1, "1") // silver
	for season := range int64(tierMemory + 1) {
		f.endSeason(season + 2)
	}
	f.mustSend(1, "1")
	if got := f.cohortOf(1, 0); got != "bronze 0" {
		t.Errorf("%q", got)
	}
}

func TestSegmentsAreGivenBesideACohort(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{League: smallLeague(), Segments: []string{"country"}})
		country := func(value string) func(*SubmitInput) {
			return func(in *SubmitInput) { in.Segments = map[string]string{"country": value} }
		}
		f.mustSend(1, "1")
		if got := f.mustSend(1, "2", country("DE")); got.Entry.Segments["country"] != "DE" {
			t.Errorf("%+v", got)
		}
		f.mustSend(1, "3")
		testkit.Fails(f.send(1, "4", country("FR")))(t, apierror.SegmentFixed)
		if got := f.entries(Scope{Segment: "country:DE"}); len(got) != 1 || got[0].Score.Units != 3 {
			t.Errorf("%+v", got)
		}
		for _, hide := range []bool{true, false} {
			testkit.Must(f.SetHidden(t.Context(), f.server(), f.gameID, "top", 0, 1, hide))(t)
			c, err := f.Cohort(t.Context(), f.player(1), f.gameID, "top", 0)
			if err != nil || (len(c.Entries) == 0) != hide {
				t.Errorf("%+v, %v", c, err)
			}
		}
		testkit.Fails(f.listSegment("@:0:0"))(t, apierror.InvalidRequest, "a cohort as a segment")
		testkit.Must(f.Remove(t.Context(), f.server(), f.gameID, "top", 0, 1))(t)
		if got := f.cohortOf(1, 0); got != "" {
			t.Errorf("a player who was removed is in %q", got)
		}
	})
}

// listSegment returns the entries of a list of a segment.
func (f *fixture) listSegment(segment string) ([]Entry, error) {
	list, _, err := f.Entries(f.t.Context(), f.server(), f.gameID, "top", Scope{Segment: segment}, "", 10)
	return list, err
}

// A hundred players at the same time, each with two first scores, on several shards: no cohort has
// more than its size, and nobody is in two.
func TestPlayersEnterCohortsAtTheSameTime(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{League: smallLeague(), Shards: 3})
		var group errgroup.Group
		for user := range int64(100) {
			for range 2 {
				group.Go(func() error {
					_, err := f.Submit(t.Context(), f.server(), f.gameID, "top",
						SubmitInput{UserID: user + 1, Score: "1"}, idempotency.Receipt{})
					return err
				})
			}
		}
		testkit.Check(t, group.Wait())
		players := map[string]int{}
		for user := range int64(100) {
			players[f.cohortOf(user+1, 0)]++
		}
		open := 0
		for name, count := range players {
			c := fmt.Sprint(name)
			if count > 10 || name == "" {
				t.Errorf("%q has %d players", c, count)
			}
			if count < 10 {
				open++
			}
		}
		if open > 3*2 { // two on each shard
			t.Errorf("%v", players)
		}
	})
}

func TestTheCohortsOfASeasonAreRemovedWithIt(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.drawFirst()
	f.create(Definition{League: smallLeague(), Shards: 2, KeepSeasons: new(int64(1))})
	for user := range int64(30) {
		f.mustSend(user+1, "1")
	}
	left := func() (names []string) {
		tag := fmt.Sprintf("{b:%d.top.", f.gameID)
		for _, shard := range []string{"0}:", "1}:"} {
			for name := range redistest.TakeSnapshot(t, f.db, tag+shard) {
				names = append(names, name)
			}
		}
		return names
	}
	before := left()
	cohort := keys.BoardCohort(keys.NewBoardShard(f.gameID, "top", 1), 1, "0:3")
	if !slices.Contains(before, cohort) {
		t.Fatalf("%s is not in %v", cohort, before)
	}
	f.endSeason(1)
	f.endSeason(2)
	testkit.Must(f.sweepGames(t.Context(), 1, []int64{f.gameID}))(t)
	after := left()
	isOfSeason := func(name string) bool {
		return !strings.HasSuffix(name, ":board") && !strings.HasSuffix(name, ":season:2")
	}
	if slices.ContainsFunc(after, isOfSeason) {
		t.Errorf("left are %v", after)
	}
}

// A board without a league does not look for cohorts.
func TestABoardWithoutALeagueSendsOneCommandForAScore(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	f.create(Definition{})
	f.mustSend(1, "1")
	b := f.board()
	sent := redistest.CountCommands(db)
	before := sent.Load()
	one, to := b.chooseSeason(0, b.seasons[0].opens)
	call, err := f.prepare(t.Context(), b,
		&scoreDraft{writer: WriterServer, userID: 1, in: SubmitInput{Score: "2"}}, b.seasons[0].opens)
	if err != nil || one == nil || to != 0 {
		t.Fatal(err)
	}
	testkit.Must(f.store.submit(t.Context(), call))(t)
	if got := sent.Load() - before; got != 1 {
		t.Errorf("a score sends %d commands", got)
	}
}
