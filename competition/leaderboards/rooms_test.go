package leaderboards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// createFor makes a board that rooms feed.
func (f *fixture) createFor(from games.FeedSource, d Definition) {
	f.t.Helper()
	d.Board, d.Name, d.Writers = string(from), string(from), Writers{WriterRooms}
	testkit.Must(f.Create(f.t.Context(), f.server(), f.gameID, d))(f.t)
	f.people.Settings.Boards = append(f.people.Settings.Boards, games.BoardFeed{Board: string(from), From: from})
}

// standings returns the entries of a board as "<player>:<score>", best first.
func (f *fixture) standings(board string, season int64) []string {
	f.t.Helper()
	page, _ := testkit.Must2(f.Entries(f.t.Context(), f.server(), f.gameID, board, Scope{Season: season}, "", 100))(f.t)
	list := []string{}
	for _, e := range page {
		list = append(list, fmt.Sprintf("%d:%s", e.User.ID, wire.AppendDecimal(nil, e.Score.Units, e.Score.Decimals)))
	}
	return list
}

func (f *fixture) requireStandings(board string, want ...string) {
	f.t.Helper()
	if got := f.standings(board, 0); !slices.Equal(got, want) {
		f.t.Fatalf("the board %s has %v, want %v", board, got, want)
	}
}

// result returns a room that ended now: player 1 won 4.90 of 5.00 with 9.5, player 2 had no score,
// and player 3 forfeited.
func (f *fixture) result(roomID string) RoomResult {
	return RoomResult{
		GameID: f.gameID, RoomID: roomID, EndedAt: time.Now(), TokenDecimals: 2, Players: []RoomPlayer{
			{UserID: 1, Place: 1, Score: "9.5", PayoutUnits: 490}, {UserID: 2, Place: 2}, {UserID: 3},
		},
	}
}

func (f *fixture) add(r RoomResult) {
	f.t.Helper()
	testkit.Check(f.t, f.AddRoomResult(f.t.Context(), r))
}

func TestAFinishedRoomAddsAScoreOfEachPlayer(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.createFor(games.FromScore, Definition{Decimals: 1})
		f.createFor(games.FromWin, Definition{Operator: Sum, Shards: 4})
		f.createFor(games.FromPayout, Definition{Operator: Sum, Decimals: 1})
		f.add(f.result("a"))
		f.requireStandings("score", "1:9.5")
		f.requireStandings("win", "1:1", "2:0")
		f.requireStandings("payout", "1:4.9", "2:0")
		lost := f.result("b")
		lost.Players[0], lost.Players[1] = RoomPlayer{UserID: 1, Place: 2, Score: "9.4"}, RoomPlayer{
			UserID: 2, Place: 1, Score: "1e1", PayoutUnits: 199,
		}
		f.add(lost)
		f.requireStandings("score", "2:10", "1:9.5")
		f.requireStandings("win", "1:1", "2:1")
		f.requireStandings("payout", "1:4.9", "2:1.9") // a payout is rounded down
		e, err := f.GetEntry(t.Context(), f.server(), f.gameID, "score", Scope{}, 2)
		if err != nil || e.Evidence == nil || e.Evidence.RoomID != "b" || e.Submissions != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// What adds up counts once, however many nodes apply the same room, and when.
// A room that a board has taken in part comes again when its receipts are long gone: whom the error
// named does not count twice.
func TestWhoARoomHasFedDoesNotCountAgain(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.createFor(games.FromWin, Definition{Operator: Sum, MaxEntries: new(int64(1))})
	r := f.result("a")
	for range 2 {
		err := f.AddRoomResult(t.Context(), r)
		partly, ok := errors.AsType[*PartlyFed](err)
		if !ok || partly.Fed != "win:1" || !errors.Is(err, apierror.BoardFull) {
			t.Fatalf("%v; want board_full after player 1", err)
		}
		shard := keys.NewBoardShard(f.gameID, "win", 0)
		receipts := []string{keys.BoardReceipt(shard, roomCaller, "a:1"), keys.BoardReceipt(shard, roomCaller, "a:2")}
		n, err := f.db.Client.Del(t.Context(), receipts...).Result() // as when their time is over
		if want := map[bool]int64{true: 2, false: 1}[r.Fed == ""]; err != nil || n != want {
			t.Fatalf("%d receipts, %v; want %d", n, err, want)
		}
		r.Fed = partly.Fed
	}
	f.requireStandings("win", "1:1")
	most := new(int64(2))
	p := Patch{MaxEntries: wire.Given(most), Effective: EffectiveNow}
	testkit.Must(f.Patch(t.Context(), f.server(), f.gameID, "win", p))(t)
	f.add(r)
	f.requireStandings("win", "1:1", "2:0")
	if got := parseFed("a:1,2;b:3;;x:y:4,z").String(); got != "a:1,2;b:3" {
		t.Errorf("%q", got)
	}
}

func TestARoomCountsOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.createFor(games.FromWin, Definition{Operator: Sum})
		f.createFor(games.FromScore, Definition{Operator: Last, Decimals: 1})
		other := New(db, f.people, f.people, Options{})
		r := f.result("a")
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				testkit.Report(t, []*Service{f.Service, other}[i%2].AddRoomResult(t.Context(), r))
			})
		}
		wg.Wait()
		testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "win", 1))(t)
		f.add(r) // not in the next season either
		if got := f.standings("win", 1); !slices.Equal(got, []string{"1:1", "2:0"}) {
			t.Errorf("%v", got)
		}
		f.requireStandings("win")
		e, err := f.GetEntry(t.Context(), f.server(), f.gameID, "score", Scope{}, 1)
		if err != nil || e.Submissions != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

func TestARoomByConsensusFeedsWinsAlone(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for _, from := range []games.FeedSource{games.FromScore, games.FromWin, games.FromPayout} {
		f.createFor(from, Definition{Decimals: 2})
	}
	r := f.result("a")
	r.ByConsensus = true
	f.add(r)
	f.requireStandings("score")
	f.requireStandings("win", "1:1", "2:0")
	f.requireStandings("payout")
}

func TestAFreeRoomFeedsNoPayouts(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.createFor(games.FromPayout, Definition{})
	r := f.result("a")
	r.Players[0].PayoutUnits, r.TokenDecimals = 0, 0
	f.add(r)
	f.requireStandings("payout")
}

// A room that comes late counts in the season in which it ended, until that is sealed; then in the
// current one. One that ended before the first season does not count.
func TestALateRoomCountsInItsSeasonOrTheCurrentOne(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for grace, want := range map[int64][2][]string{
			600: {{"1:1", "2:0"}, {}},
			0:   {{}, {"1:1", "2:0"}},
		} {
			f := newFixture(t, db)
			f.createFor(games.FromWin, Definition{Operator: Sum, GraceSeconds: grace})
			b := testkit.Must(f.Get(t.Context(), f.server(), f.gameID, "win"))(t)
			early, late := f.result("early"), f.result("late")
			early.EndedAt, late.EndedAt = b.Season.OpensAt.Add(-time.Millisecond), b.Season.OpensAt
			// A season that ends in the millisecond of its beginning has no time in which a room can end.
			redistest.Eventually(t, "the season has begun", func() bool {
				now, err := db.Client.Time(t.Context()).Result()
				return err == nil && now.Sub(b.Season.OpensAt) > time.Millisecond
			})
			testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "win", 1))(t)
			for range 2 {
				f.add(early)
				f.add(late)
			}
			if got := [2][]string{f.standings("win", 1), f.standings("win", 2)}; !slices.Equal(got[0], want[0]) ||
				!slices.Equal(got[1], want[1]) {
				t.Errorf("with a grace time of %d s: %v, want %v", grace, got, want)
			}
		}
	})
}

func TestABoardThatTakesNoRoomHoldsUpNoOther(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		for name, tt := range map[string]struct {
			want    *apierror.Error
			prepare func(f *fixture)
		}{
			"no board": {apierror.BoardNotFound, func(*fixture) {}},
			"deleted": {apierror.BoardNotFound, func(f *fixture) {
				f.create(Definition{Writers: Writers{WriterRooms}})
				testkit.Check(t, f.Delete(t.Context(), f.server(), f.gameID, "top"))
			}},
			"for the server": {apierror.Forbidden, func(f *fixture) { f.create(Definition{}) }},
			"too many digits": {apierror.ScoreRejected, func(f *fixture) {
				f.create(Definition{Writers: Writers{WriterRooms}})
			}},
			"full": {apierror.BoardFull, func(f *fixture) {
				f.create(Definition{Writers: Writers{WriterRooms, WriterServer}, MaxEntries: new(int64(1)), Decimals: 1})
				f.mustSend(9, "1")
			}},
		} {
			f := newFixture(t, db)
			f.people.Settings.Boards = []games.BoardFeed{{Board: "top", From: games.FromScore}}
			tt.prepare(f)
			f.createFor(games.FromWin, Definition{Operator: Sum})
			for range 2 {
				if err := f.AddRoomResult(t.Context(), f.result("a")); !apierror.IsFinal(err) {
					t.Errorf("%s: %v", name, err)
				} else {
					testkit.WantError(t, err, tt.want)
				}
				f.requireStandings("win", "1:1", "2:0")
			}
		}
	})
}

// absent is people of whom some cannot be looked up.
type absent struct {
	*people
	unknown int64
}

func (a absent) Game(ctx context.Context, userID int64) (int64, error) {
	if userID == a.unknown {
		return 0, apierror.StoreUnavailable
	}
	return a.people.Game(ctx, userID)
}

// An outage makes the room come again, also when a board does not take it; what was added then is
// not added again. A player who is gone has no score.
func TestAnOutageMakesTheRoomComeAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.people.Settings.Boards = []games.BoardFeed{{Board: "none", From: games.FromWin}}
		f.createFor(games.FromWin, Definition{Operator: Sum})
		r := f.result("a")
		r.Players = append(r.Players, RoomPlayer{UserID: 1_000_000, Place: 3}) // is gone
		node := New(db, absent{f.people, 2}, f.people, Options{})
		if err := node.AddRoomResult(t.Context(), r); apierror.IsFinal(err) {
			t.Errorf("%v", err)
		} else {
			testkit.WantError(t, err, apierror.StoreUnavailable)
		}
		f.requireStandings("win", "1:1")
		testkit.WantError(t, f.AddRoomResult(t.Context(), r), apierror.BoardNotFound)
		f.requireStandings("win", "1:1", "2:0")
	})
}

// walkover returns a paid room that ended now because player 2 had left.
func (f *fixture) walkover(roomID string) RoomResult {
	r := f.result(roomID)
	r.Players = []RoomPlayer{{UserID: 1, Place: 1, Score: "9.5", PayoutUnits: 490}, {UserID: 2}}
	return r
}

func TestAWalkoverFeedsNothingUnlessStaffSaysSo(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for _, from := range []games.FeedSource{games.FromScore, games.FromWin, games.FromPayout} {
		f.createFor(from, Definition{Decimals: 1})
	}
	f.add(f.walkover("left"))
	last := f.result("last") // by the report of the last one who stayed
	last.Players, last.ByConsensus = last.Players[:1], true
	f.add(last)
	for _, board := range []string{"score", "win", "payout"} {
		f.requireStandings(board)
	}
	alone := f.result("alone") // a room with one seat, whose result is the server's
	alone.Players = alone.Players[:1]
	f.add(alone)
	f.requireStandings("score", "1:9.5")

	f.people.Settings.Boards[1].Walkovers = true
	second := f.walkover("staff says so")
	second.Players[0].UserID, second.Players[1].UserID = 2, 1
	f.add(second)
	f.requireStandings("score", "1:9.5")
	f.requireStandings("win", "1:1", "2:1")
}

// Prizes are for results that one person cannot make with accounts of their own.
func TestABoardWithPrizesTakesRoomsOfTwoByTheServerAlone(t *testing.T) {
	for name, change := range map[string]func(r *RoomResult){
		"of one player":   func(r *RoomResult) { r.Players = r.Players[:1] },
		"by consensus":    func(r *RoomResult) { r.ByConsensus = true },
		"that was left":   func(r *RoomResult) { r.Players[1].Place = 0 },
		"for its payouts": func(*RoomResult) {},
	} {
		t.Run(name, func(t *testing.T) {
			from := games.FromWin
			if name == "for its payouts" {
				from = games.FromPayout
			}
			f := newFixture(t, redistest.Single(t))
			f.createFor(from, Definition{Decimals: 1})
			counts := f.result("counts")
			change(&counts)
			f.people.Settings.Boards[0].Walkovers = true
			f.add(counts)
			if f.standings(string(from), 0)[0][:2] != "1:" {
				t.Fatal("it does not count on a board without prizes")
			}
			f.promise(string(from))
			other := f.result("other")
			for i := range other.Players {
				other.Players[i].UserID += 10
			}
			change(&other)
			if name == "that was left" {
				f.people.Settings.Boards[0].Walkovers = false
			}
			f.add(other)
			for _, one := range f.standings(string(from), 0) {
				if one[:2] == "11" {
					t.Errorf("it counts: %s", one)
				}
			}
		})
	}
}

// promise makes a board pay prizes from its next season on, past the check of its feeds, as
// settings that changed at the same time do.
func (f *fixture) promise(key string) {
	f.t.Helper()
	testkit.Must(f.change(f.t.Context(), f.gameID, key, func(b *board, _ int64) (c boardChange, err error) {
		version, d := b.newest()
		next := *d
		next.Prizes = &Prizes{}
		return c, c.setDefinition(version+1, &next)
	}))(f.t)
}

func TestPrizesAndFeedsThatOnePersonFillsAloneExcludeEachOther(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	prized := Definition{Board: "cup", Name: "Cup", Writers: Writers{WriterRooms}, Prizes: &Prizes{
		Table: []PrizeRow{{FromPlace: 1, ToPlace: 1, AssetID: 1}},
	}}
	server := []games.Settlement{games.SettledByServer}
	for name, c := range map[string]struct {
		feed        games.BoardFeed
		settlements []games.Settlement
		want        bool
	}{
		"wins":               {games.BoardFeed{Board: "cup", From: games.FromWin}, server, true},
		"payouts":            {games.BoardFeed{Board: "cup", From: games.FromPayout}, server, false},
		"payouts of another": {games.BoardFeed{Board: "top", From: games.FromPayout}, server, true},
		"wins by consensus only": {
			games.BoardFeed{Board: "cup", From: games.FromWin}, []games.Settlement{"consensus"}, false,
		},
	} {
		f.people.Settings.Boards = []games.BoardFeed{c.feed}
		f.people.Settings.Settlements = c.settlements
		var errs apierror.FieldErrors
		testkit.Check(t, f.checkFeeds(t.Context(), &errs, f.gameID, prized.Board))
		if got := errs.Err() == nil; got != c.want {
			t.Errorf("%s: %v; want %v", name, errs.Err(), c.want)
		}
	}
}
