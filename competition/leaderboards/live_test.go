package leaderboards

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// audience is who watches in a test.
type audience struct {
	mu    sync.Mutex
	views map[View]bool
	told  []string // what was shown, in order
}

func (a *audience) Views(int64, string) (views []View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for v := range a.views {
		views = append(views, v)
	}
	return views
}

func (a *audience) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, fmt.Sprintf(format, args...))
}

func (a *audience) Show(_ int64, _ string, v View, s LiveSnapshot) {
	a.note("%d: season %d, %s", v.Top, s.Season, ranksOf(s.Entries)+around(s.Me))
}

func (a *audience) ShowSeasonEnded(_ int64, _ string, s Season) {
	a.note("ended %d %s %d", s.Season, s.Status, s.Entries)
}

func (a *audience) ShowSeasonStarted(_ int64, _ string, s Season) {
	a.note("started %d %s %d", s.Season, s.Status, s.Entries)
}

func (a *audience) End(_ int64, _ string, reason error) {
	a.note("end")
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.views)
}

// heard returns what was shown since the last call.
func (a *audience) heard() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := strings.Join(a.told, "; ")
	a.told = nil
	return told
}

// ranksOf returns entries as "1=7 2=8": rank and player.
func ranksOf(entries wire.RawJSON) string {
	var list []struct {
		Rank int64 `json:"rank"`
		User struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	if err := wire.Unmarshal(entries, &list); err != nil {
		panic(err)
	}
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = fmt.Sprintf("%d=%d", e.Rank, e.User.ID)
	}
	return strings.Join(texts, " ")
}

func around(me wire.RawJSON) string {
	if me == nil {
		return ""
	}
	return ", around " + ranksOf(me)
}

// watcher is a Live whose ticks a test makes.
type watcher struct {
	*fixture
	*Live
	audience *audience
}

func newWatcher(f *fixture) *watcher {
	a := &audience{views: map[View]bool{}}
	return &watcher{f, f.NewLive(a), a}
}

// watch adds a view and returns what it begins with.
func (w *watcher) watch(v View) string {
	w.t.Helper()
	first := ""
	testkit.Check(w.t, w.Watch(w.t.Context(), w.player(max(v.UserID, 1)), w.gameID, "top", v, func(s LiveSnapshot) error {
		w.audience.mu.Lock()
		defer w.audience.mu.Unlock()
		w.audience.views[v] = true
		first = ranksOf(s.Entries) + around(s.Me)
		return nil
	}), "watch")
	return first
}

func (w *watcher) expect(want string) {
	w.t.Helper()
	w.tick(w.t.Context())
	if got := w.audience.heard(); got != want {
		w.t.Fatalf("shown was %q; want %q", got, want)
	}
}

func TestWatchedBoardsAreShownWhenTheyChange(t *testing.T) {
	for _, shards := range []int{1, 8} {
		t.Run(fmt.Sprint(shards, " shards"), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
				w := newWatcher(newFixture(t, db))
				w.create(Definition{Shards: shards})
				if first := w.watch(View{Top: 2}); first != "" {
					t.Errorf("an empty board has %q", first)
				}
				w.expect("")
				w.mustSend(1, "10")
				w.mustSend(2, "20")
				w.expect("2: season 1, 1=2 2=1") // once, for two scores
				w.expect("")
				w.mustSend(3, "5")
				w.tick(t.Context())
				w.audience.heard() // the percentiles
				w.mustSend(3, "6")
				w.expect("") // among the first 100, and not among the first 2
				if first := w.watch(View{Top: 3}); first != "1=2 2=1 3=3" {
					t.Errorf("the first three are %q", first)
				}
				w.mustSend(3, "15")
				w.tick(t.Context())
				if got := w.audience.heard(); !strings.Contains(got, "2: season 1, 1=2 2=3") ||
					!strings.Contains(got, "3: season 1, 1=2 2=3 3=1") {
					t.Errorf("shown was %q", got)
				}
				testkit.Must(w.SetHidden(t.Context(), w.server(), w.gameID, "top", 0, 2, true))(t)
				delete(w.audience.views, View{Top: 3})
				w.expect("2: season 1, 1=3 2=1")
			})
		})
	}
}

// A watcher that begins gets the newest, and the others get it before.
func TestWatchingShowsTheOthersWhatIsNew(t *testing.T) {
	w := newWatcher(newFixture(t, redistest.Single(t)))
	w.create(Definition{})
	w.watch(View{Top: 1})
	w.mustSend(1, "10")
	if first := w.watch(View{Top: 5}); first != "1=1" {
		t.Errorf("the second watcher begins with %q", first)
	}
	if got := w.audience.heard(); got != "1: season 1, 1=1" {
		t.Errorf("the first watcher was shown %q", got)
	}
	w.expect("")
}

func TestTheOwnPlaceIsShownToWhoAsksForIt(t *testing.T) {
	w := newWatcher(newFixture(t, redistest.Single(t)))
	w.create(Definition{})
	for id := int64(1); id <= 200; id++ {
		w.mustSend(id, fmt.Sprint(1000-id))
	}
	v := View{Top: 1, Around: 3, UserID: 150}
	if first := w.watch(v); first != "1=1, around 149=149 150=150 151=151" {
		t.Fatalf("the watcher begins with %q", first)
	}
	if first := w.watch(View{Top: 1, Around: 1, UserID: 999}); first != "1=1, around " {
		t.Fatalf("a player without an entry begins with %q", first)
	}
	delete(w.audience.views, View{Top: 1, Around: 1, UserID: 999})
	w.mustSend(200, "852") // not among the first 100
	w.expect("")           // it was read a moment ago
	w.rewind(v)
	w.expect("1: season 1, 1=1, around 150=149 151=150 152=151")
	w.rewind(v)
	w.expect("") // nothing has changed
	w.boards[boardID{w.gameID, "top"}].views[v].meReadAt = time.Now()
	w.mustSend(201, "2000")
	w.expect("1: season 1, 1=201, around 150=149 151=150 152=151") // the first at once
	w.rewind(v)
	w.expect("1: season 1, 1=201, around 151=149 152=150 153=151")
}

// rewind makes the place of a view as old as it may be.
func (w *watcher) rewind(v View) {
	w.boards[boardID{w.gameID, "top"}].views[v].meReadAt = time.Now().Add(-liveAroundInterval)
}

func TestANodeReadsABoundedNumberOfPlacesAtOnce(t *testing.T) {
	w := newWatcher(newFixture(t, redistest.Single(t)))
	w.create(Definition{})
	const watchers = 3*liveAroundsAtOnce - 1
	for id := int64(1); id <= watchers; id++ {
		w.mustSend(id, fmt.Sprint(1000-id))
		w.watch(View{Top: 1, Around: 1, UserID: id})
	}
	w.audience.heard()
	w.mustSend(900, "2000")
	for v := range w.audience.views {
		w.rewind(v)
	}
	shown := map[string]bool{}
	for turn := range 3 {
		w.tick(t.Context())
		n := 0
		for one := range strings.SplitSeq(w.audience.heard(), "; ") {
			if _, own, ok := strings.Cut(one, "around "); ok && !shown[own] && !strings.HasSuffix(own, before(own)) {
				shown[own] = true
				n++
			}
		}
		if n > liveAroundsAtOnce {
			t.Errorf("turn %d read %d places", turn, n)
		}
	}
	if len(shown) != watchers {
		t.Errorf("after three turns %d of %d have their new place", len(shown), watchers)
	}
}

// before returns the place that a player had before one more was ahead: "7=7".
func before(place string) string {
	_, id, _ := strings.Cut(place, "=")
	return id + "=" + id
}

func TestTheNextSeasonIsShown(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		w := newWatcher(newFixture(t, db))
		w.create(Definition{})
		w.mustSend(1, "10")
		w.watch(View{Top: 2})
		other := New(db, w.people, w.people, Options{}) // on another node
		testkit.Must(other.EndSeason(t.Context(), w.server(), w.gameID, "top", 1))(t)
		for range boardVersionTicks {
			w.tick(t.Context())
		}
		const want = "ended 1 CLOSING 1; started 2 OPEN 0; 2: season 2, "
		if got := w.audience.heard(); got != want {
			t.Errorf("shown was %q; want %q", got, want)
		}
		w.mustSend(2, "5")
		w.expect("2: season 2, 1=2")
	})
}

func TestTheSeasonOfTheClockIsShown(t *testing.T) {
	w := newWatcher(newFixture(t, redistest.Single(t)))
	w.create(Definition{Schedule: &Schedule{EverySeconds: 60}})
	w.mustSend(1, "10")
	w.watch(View{Top: 2})
	b := w.boards[boardID{w.gameID, "top"}]
	passed := *b.ranking.board // as if a minute had passed
	passed.seasons = append([]season(nil), passed.seasons...)
	for i := range passed.seasons {
		passed.seasons[i].opens -= 60_000
		passed.seasons[i].closes -= 60_000
	}
	b.ranking = passed.ranking(&passed.seasons[0])
	w.expect("ended 1 CLOSING 1; started 2 OPEN 0; 2: season 2, ")
}

func TestADeletedBoardIsNotWatched(t *testing.T) {
	w := newWatcher(newFixture(t, redistest.Single(t)))
	w.create(Definition{})
	w.watch(View{Top: 2})
	testkit.Check(t, w.Delete(t.Context(), w.server(), w.gameID, "top"))
	for range boardVersionTicks {
		w.tick(t.Context())
	}
	if got := w.audience.heard(); got != "end" || len(w.boards) != 0 {
		t.Errorf("shown was %q, and %d boards are watched", got, len(w.boards))
	}
	testkit.WantError(t, w.Watch(t.Context(), w.player(1), w.gameID, "top", View{Top: 1}, nil), apierror.BoardNotFound,
		"watching it")
}

func TestWhatNobodyWatchesIsNotRead(t *testing.T) {
	db := redistest.Single(t)
	w := newWatcher(newFixture(t, db))
	w.create(Definition{Shards: 4})
	w.watch(View{Top: 2})
	commands := redistest.CountCommands(db)
	w.ticks = 0
	w.tick(t.Context())
	if n := commands.Swap(0); n != 4 {
		t.Errorf("a look at a board of four shards takes %d commands", n)
	}
	w.mustSend(1, "10")
	w.tick(t.Context())
	commands.Store(0)
	w.mustSend(1, "20")
	sent := commands.Swap(0)
	w.tick(t.Context())
	if n := commands.Swap(0); n == 0 {
		t.Errorf("a score took %d commands, and nothing was read after it", sent)
	}
	clear(w.audience.views)
	w.tick(t.Context())
	if n := commands.Load(); n != 0 || len(w.boards) != 0 {
		t.Errorf("nobody watches, and a look takes %d commands", n)
	}
}

func TestWatchersKeepWhatTheyHaveWithoutAStore(t *testing.T) {
	server := redistest.StartForTest(t, "--appendonly", "yes", "--appendfsync", "always")
	db := testkit.Must(redisdb.Open(server.URL()))(t)
	t.Cleanup(func() { _ = db.Close() })
	w := newWatcher(newFixture(t, db))
	w.create(Definition{})
	w.mustSend(1, "10")
	w.watch(View{Top: 2})
	server.Kill()
	w.expect("")
	ctx, cancel := context.WithTimeout(t.Context(), liveTimeout)
	defer cancel()
	testkit.WantError(t, w.Watch(ctx, w.player(1), w.gameID, "top", View{Top: 1}, nil), apierror.StoreUnavailable,
		"watching without a store")
	testkit.Check(t, server.Restart())
	redistest.Eventually(t, "the store is back", func() bool { _, err := w.send(2, "20"); return err == nil })
	w.expect("2: season 1, 1=2 2=1")
}
