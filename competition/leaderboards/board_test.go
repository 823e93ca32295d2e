package leaderboards

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMembersAreTheSameBytesOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, test := range []struct {
			order       Order
			sub         *Subscore
			score, subs string
			want        string // score, subscore, time and user
		}{
			{Descending, nil, "0", "", "10000000000000|10000000000000|0197f1d2e400|00000000002a"},
			{Descending, nil, "4503599627370495", "", "00000000000001|10000000000000|0197f1d2e400|00000000002a"},
			{Descending, nil, "-4503599627370495", "", "1fffffffffffff|10000000000000|0197f1d2e400|00000000002a"},
			{Ascending, nil, "4503599627370495", "", "1fffffffffffff|10000000000000|0197f1d2e400|00000000002a"},
			{Ascending, &Subscore{Descending, Best}, "258", "1", "10000000000102|0fffffffffffff|0197f1d2e400|00000000002a"},
			{Descending, &Subscore{Ascending, Best}, "258", "1", "0ffffffffffefe|10000000000001|0197f1d2e400|00000000002a"},
		} {
			f := newFixture(t, db)
			f.create(Definition{Order: test.order, Subscore: test.sub})
			first := keys.NewBoardShard(f.gameID, "top", 0)
			const clock = 0x0197f1d2e400 + 1<<42 // ahead of the store's: so it is the time of the entry
			want := strings.Replace(strings.ReplaceAll(test.want, "|", ""), "0197f1d2e400", "0597f1d2e400", 1)
			testkit.Check(t, db.Client.HSet(t.Context(), keys.BoardSeason(first, 1), "clock", clock).Err())
			r := f.mustSend(42, test.score, func(in *SubmitInput) { in.Subscore = ScoreInput(test.subs) })
			members, err := db.Client.ZRange(t.Context(), keys.BoardRank(first, 1), 0, -1).Result()
			if err != nil || len(members) != 1 || hex.EncodeToString([]byte(members[0])) != want {
				t.Fatalf("%s, %s: %x, %v; want %s", test.score, test.order, members, err, want)
			}
			units, _ := ScoreInput(test.score).toUnits(0)
			sub, _ := ScoreInput(test.subs).toUnits(0)
			_, d := testkit.Must(f.load(t.Context(), f.gameID, "top"))(t).newest()
			if encodeMember(d, units, sub, r.Entry.ReachedAt, 42) != members[0] {
				t.Errorf("Go makes another member of %s", test.score)
			}
			if r.Entry.Score.Units != units || r.Entry.ReachedAt.UnixMilli() != clock {
				t.Errorf("%+v", r.Entry)
			}
		}
	})
}

func TestScoresAreReadExactly(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "12.5": 1250, "-12.5": -1250, "1e2": 10_000, "1.5e-1": 15, "0.10": 10,
		"45035996273704.95": 1<<52 - 1,
	} {
		if units, problem := ScoreInput(text).toUnits(2); units != want || problem != "" {
			t.Errorf("%s: %d, %s; want %d", text, units, problem, want)
		}
	}
	for _, text := range []string{
		"NaN", "Infinity", "1e400", "1e", "0.001", "45035996273704.96", "-45035996273704.96", "+1", " 1", "1.", ".5", "0x1",
		"--1", "1e31", strings.Repeat("9", 40),
	} {
		if units, problem := ScoreInput(text).toUnits(2); problem == "" {
			t.Errorf("%s is %d", text, units)
		}
	}
}

func TestAScoreOfAnotherTypeIsRefusedWithTheField(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	for _, score := range []string{`null`, `""`, `true`, `[1]`, `{"a":1}`, `"1,5"`, `"NaN"`, `1e400`} {
		var in SubmitInput
		testkit.Report(t, wire.Unmarshal([]byte(`{"userId":1,"score":`+score+`}`), &in), "%s", score)
		_, err := f.Submit(t.Context(), f.server(), f.gameID, "top", in, idempotency.Receipt{})
		wantError(t, err, apierror.InvalidRequest, "score")
	}
}

func TestFaultyDefinitionsAreRefusedWithTheField(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	for field, d := range map[string]Definition{
		"order":                 {Order: "up"},
		"decimals":              {Decimals: 7},
		"shards":                {Shards: 65},
		"ties":                  {Ties: "none"},
		"writers[0]":            {Writers: Writers{"all"}},
		"schedule":              {Schedule: &Schedule{}},
		"schedule.cron":         {Schedule: &Schedule{Cron: "0 0 30 2 *", TimeZone: "UTC"}},
		"schedule.timeZone":     {Schedule: &Schedule{Cron: "0 0 * * *", TimeZone: "Mars/Base"}},
		"schedule.everySeconds": {Schedule: &Schedule{EverySeconds: 59}},
		"graceSeconds":          {GraceSeconds: 86_401},
		"startsAt":              {StartsAt: new(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))},
		"segments[0]":           {Segments: []string{"No"}},
		"rules":                 {Rules: &Rules{}},
		"rules.max": {
			Rules: &Rules{Min: new(ScoreInput("2")), Max: new(ScoreInput("1"))}, Writers: Writers{WriterPlayers},
		},
		"metadata":          {Metadata: wire.RawJSON(`[]`)},
		"subscore.operator": {Subscore: &Subscore{Operator: "mean"}},
		"maxEntries":        {MaxEntries: new(int64(0))},
	} {
		d.Board, d.Name = "top", "Top"
		_, err := f.Create(t.Context(), f.server(), f.gameID, d)
		wantError(t, err, apierror.InvalidRequest, field)
	}
	infinite := Definition{Board: "top", Name: "Top", Metadata: wire.RawJSON(`{"a":1e999}`)}
	_, err := f.Create(t.Context(), f.server(), f.gameID, infinite)
	wantError(t, err, apierror.InvalidRequest, "metadata")
	for _, key := range []string{"", "-a", "A", "a.b", "a{b}", strings.Repeat("a", 49)} {
		_, err := f.Create(t.Context(), f.server(), f.gameID, Definition{Board: key, Name: "Top"})
		wantError(t, err, apierror.InvalidRequest, "board")
	}
}

func TestABoardOfAnotherGameIsNotFound(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	other := principal.Caller{Role: principal.Server, GameID: f.gameID + 1}
	testkit.Fails(f.Get(t.Context(), other, f.gameID, "top"))(t, apierror.GameNotFound)
	testkit.Fails(f.Get(t.Context(), other, f.gameID+1, "top"))(t, apierror.BoardNotFound)
	testkit.Fails(f.Create(t.Context(), f.server(), f.gameID, Definition{Board: "top", Name: "Again"}))(
		t, apierror.BoardExists)
}

func TestEqualScoresAreInTheOrderOfTheirTimes(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	var group sync.WaitGroup
	for user := range int64(200) {
		group.Go(func() { _, _ = f.send(user+1, "7") })
	}
	group.Wait()
	entries := f.entries(Scope{})
	byTime := func(a, b Entry) int { return a.ReachedAt.Compare(b.ReachedAt) }
	if len(entries) != 200 || !slices.IsSortedFunc(entries, byTime) {
		t.Errorf("%d entries, not in the order of their times", len(entries))
	}
}

func TestTheTimeOfAnEntryNeverGoesBack(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Operator: Last})
		first := f.mustSend(1, "5").Entry.ReachedAt
		ahead := first.Add(time.Hour) // as after a failover to a server whose clock is behind
		season := keys.BoardSeason(keys.NewBoardShard(f.gameID, "top", 0), 1)
		testkit.Check(t, db.Client.HSet(t.Context(), season, "clock", ahead.UnixMilli()).Err())
		if got := f.mustSend(2, "5").Entry.ReachedAt; !got.Equal(ahead) {
			t.Errorf("reached at %v; want %v", got, ahead)
		}
	})
}

func TestAScoreWithAKeyCountsOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Operator: Sum, Decimals: 1})
		rc := idempotency.Receipt{KeyDigest: "digest", Fingerprint: "print"}
		in := SubmitInput{UserID: 1, Score: "2.5"}
		for i := range 3 {
			r, err := f.Submit(t.Context(), f.server(), f.gameID, "top", in, rc)
			if err != nil || r.Entry.Score.Units != 25 || !r.Changed || r.Previous != nil || r.Replayed != (i > 0) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		rc.Fingerprint = "other"
		testkit.Fails(f.Submit(t.Context(), f.server(), f.gameID, "top", in, rc))(t, apierror.IdempotencyKeyReused)

		// Also when the season is over, and by a resend of the client library.
		rc.Fingerprint = "print"
		testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
		if r, err := f.Submit(t.Context(), f.server(), f.gameID, "top", in, rc); err != nil || !r.Replayed {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestALostReplyCountsOnce(t *testing.T) {
	for _, operator := range []Operator{Best, Last, Sum} {
		t.Run(string(operator), func(t *testing.T) {
			db := redistest.Single(t)
			f := newFixture(t, db)
			f.create(Definition{Operator: operator})
			redistest.LoseReplies(db, nil)
			want := int64(0)
			for range 10 {
				f.mustSend(1, "2")
				want += 2
			}
			e, err := f.GetEntry(t.Context(), f.server(), f.gameID, "top", Scope{}, 1)
			if err != nil || e.Submissions != 10 || operator == Sum && e.Score.Units != want {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}

func TestScoresOfPlayersKeepTheRules(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Writers: Writers{WriterPlayers}, Rules: &Rules{
			Min: new(ScoreInput("1")), Max: new(ScoreInput("100")), MaxStep: new(ScoreInput("10")), MaxSubmissions: 3,
		}})
		send := func(user int64, score string) error {
			_, err := f.Submit(t.Context(), f.player(user), f.gameID, "top", SubmitInput{Score: ScoreInput(score)},
				idempotency.Receipt{})
			return err
		}
		rule := func(err error, want string) {
			t.Helper()
			e, ok := apierror.As(err)
			if !ok || e.Code != apierror.ScoreRejected.Code || e.ExtraMembers["rule"] != want {
				t.Errorf("%v; want score_rejected by %s", err, want)
			}
		}
		rule(send(1, "0"), "min")
		rule(send(1, "101"), "max")
		for _, score := range []string{"20", "30", "25"} {
			testkit.Check(t, send(1, score))
		}
		testkit.WantError(t, send(1, "31"), apierror.SubmissionsUsedUp)
		testkit.Check(t, send(2, "20"))
		rule(send(2, "31"), "maxStep")
		testkit.Fails(f.send(3, "5"))(t, apierror.Forbidden, "the server")
		for field, in := range map[string]SubmitInput{
			"userId": {Score: "5", UserID: 4}, "playedAt": {Score: "5", PlayedAt: new(time.Now())},
			"score": {Score: "5.5"}, "playId": {Score: "5", PlayID: "x"}, "subscore": {Score: "5", Subscore: "1"},
		} {
			_, err := f.Submit(t.Context(), f.player(4), f.gameID, "top", in, idempotency.Receipt{})
			wantError(t, err, apierror.InvalidRequest, field)
		}
	})
}

func TestAPlayerWaitsBetweenTwoScores(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{Writers: Writers{WriterPlayers}, Rules: &Rules{MinIntervalSeconds: 3600}})
	in := SubmitInput{Score: "5"}
	testkit.Must(f.Submit(t.Context(), f.player(1), f.gameID, "top", in, idempotency.Receipt{}))(t)
	_, err := f.Submit(t.Context(), f.player(1), f.gameID, "top", in, idempotency.Receipt{})
	if e, ok := apierror.As(err); !ok || e.ExtraMembers["rule"] != "minIntervalSeconds" {
		t.Errorf("%v", err)
	}
}

func TestAPlayIsForOneScore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Writers: Writers{WriterPlayers}, Rules: &Rules{Play: true, MaxPlaySeconds: 600}})
		begin := func(user int64) string {
			t.Helper()
			play, err := f.StartPlay(t.Context(), f.player(user), f.gameID, "top")
			if err != nil || play.ExpiresAt.Sub(play.StartedAt) != 10*time.Minute {
				t.Fatalf("%+v, %v", play, err)
			}
			return play.PlayID
		}
		send := func(user int64, play string) error {
			_, err := f.Submit(t.Context(), f.player(user), f.gameID, "top", SubmitInput{Score: "5", PlayID: play},
				idempotency.Receipt{})
			return err
		}
		wantError(t, send(1, ""), apierror.InvalidRequest, "playId")
		play := begin(1)
		testkit.WantError(t, send(2, play), apierror.PlayNotFound)
		testkit.Check(t, send(1, play))
		testkit.WantError(t, send(1, play), apierror.PlayUsed)
		testkit.WantError(t, send(1, strings.Repeat("x", 43)), apierror.PlayNotFound)
		late := begin(1)
		key := keys.BoardPlay(keys.NewBoardShard(f.gameID, "top", 0), late)
		ago := strconv.FormatInt(time.Now().Add(-11*time.Minute).UnixMilli(), 10)
		testkit.Check(t, db.Client.Set(t.Context(), key, "1|"+ago, time.Hour).Err())
		err := send(1, late)
		if !errors.Is(err, apierror.PlayExpired) && !errors.Is(err, apierror.SeasonClosed) {
			t.Errorf("%v", err)
		}
	})
}

// sendBefore submits scores, a last one among them, and returns a time of the season that is before
// now by the store's clock.
func (f *fixture) sendBefore(userID int64, last string) time.Time {
	f.t.Helper()
	first := f.mustSend(userID, "0").Entry.ReachedAt
	for n := 1; f.mustSend(userID, strconv.Itoa(-n)).Entry.ReachedAt.Equal(first); n++ { // until the next millisecond
	}
	f.mustSend(userID, last)
	return first
}

func TestALateResultCountsInItsSeason(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{GraceSeconds: 600, Operator: Last})
		played := f.sendBefore(1, "5")
		end, err := f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1)
		if err != nil || end.Status != SeasonClosing {
			t.Fatalf("%+v, %v", end, err)
		}
		f.mustSend(2, "9", func(in *SubmitInput) { in.PlayedAt = &played })
		f.mustSend(3, "7")
		testkit.Fails(f.send(4, "9", func(in *SubmitInput) { in.PlayedAt = new(time.Unix(0, 0)) }))(t, apierror.SeasonClosed)
		past, now := userIDs(f.entries(Scope{Season: 1})), userIDs(f.entries(Scope{}))
		if !slices.Equal(past, []int64{2, 1}) ||
			!slices.Equal(now, []int64{3}) {
			t.Errorf("%v, then %v", past, now)
		}
		testkit.Fails(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t, apierror.SeasonClosed)
		_, _, err = f.Entries(t.Context(), f.server(), f.gameID, "top", Scope{Season: 3}, "", 10)
		testkit.WantError(t, err, apierror.SeasonNotFound)
	})
}

func TestASealedSeasonTakesNoScore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Shards: 4, Operator: Last})
		played := f.sendBefore(1, "5")
		testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
		testkit.Must(f.sweepGame(t.Context(), f.gameID))(t)
		page, next, err := f.ListSeasons(t.Context(), f.player(1), f.gameID, "top", 0, 10)
		if err != nil || next != 0 || len(page) != 2 || page[1].Status != SeasonSealed || page[0].Status != SeasonOpen ||
			page[1].Entries != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		testkit.Fails(f.send(2, "9", func(in *SubmitInput) { in.PlayedAt = &played }))(t, apierror.SeasonClosed)
		if got := userIDs(f.entries(Scope{Season: 1})); !slices.Equal(got, []int64{1}) {
			t.Errorf("%v", got)
		}
	})
}

func TestEachScoreIsInOneSeason(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Operator: Sum, Shards: 3})
		other := &fixture{t, New(db, f.people, f.people, Options{}), f.people, f.gameID, db} // another node
		const writers, scores = 20, 30
		var group sync.WaitGroup
		for w := range int64(writers) {
			group.Go(func() {
				for i := range scores {
					node := f
					if i%2 == 0 {
						node = other
					}
					testkit.Report(t, testkit.ErrorOf(node.send(w+1, "1")))
				}
			})
		}
		group.Go(func() {
			for n := range int64(3) {
				testkit.Report(t, testkit.ErrorOf(f.EndSeason(t.Context(), f.server(), f.gameID, "top", n+1)))
				testkit.Report(t, testkit.ErrorOf(other.sweepGame(t.Context(), f.gameID)))
			}
		})
		group.Wait()
		sum := int64(0)
		for n := range int64(4) {
			for _, e := range f.entries(Scope{Season: n + 1}) {
				sum += e.Score.Units
			}
		}
		if sum != writers*scores {
			t.Errorf("the seasons have %d points; want %d", sum, writers*scores)
		}
	})
}

func TestAPatchCountsFromTheNextSeason(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	before := f.create(Definition{Schedule: &Schedule{EverySeconds: 3600}})
	b, err := f.Patch(t.Context(), f.server(), f.gameID, "top", Patch{
		Name: new("New"), Schedule: wire.Given(&Schedule{EverySeconds: 7200}), Segments: &[]string{"country"},
	})
	if err != nil || b.Name != "Top" || b.Next == nil || b.Next.Name != "New" ||
		!b.Season.ClosesAt.Equal(*before.Season.ClosesAt) {
		t.Fatalf("%+v, %v", b, err)
	}
	stored := testkit.Must(f.store.load(t.Context(), f.gameID, "top"))(t)
	if len(stored.seasons) != 1+seasonsAhead {
		t.Fatalf("%+v", stored.seasons)
	}
	for i, s := range stored.seasons[1:] {
		if s.number != int64(i+2) || s.opens != stored.seasons[i].closes || s.closes-s.opens != 7_200_000 {
			t.Errorf("%+v", s)
		}
	}
	closes := *before.Season.ClosesAt
	testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
	b, err = f.Get(t.Context(), f.player(1), f.gameID, "top")
	if err != nil || b.Name != "New" || b.Next != nil || b.Season.Season != 2 || b.Season.ClosesAt.Before(closes) {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestASeasonThatStaffEndsKeepsTheNextBoundary(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	before := f.create(Definition{Schedule: &Schedule{EverySeconds: 3600}})
	testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
	b := testkit.Must(f.Get(t.Context(), f.server(), f.gameID, "top"))(t)
	if b.Season.Season != 2 || !b.Season.ClosesAt.Equal(*before.Season.ClosesAt) {
		t.Errorf("%+v; want it to close at %v", b.Season, before.Season.ClosesAt)
	}
	stored := testkit.Must(f.store.load(t.Context(), f.gameID, "top"))(t)
	for i, s := range stored.seasons[1:] {
		if s.number != int64(i+2) || s.opens != stored.seasons[i].closes {
			t.Errorf("%+v follows %+v", s, stored.seasons[i])
		}
	}
}

func TestOldSeasonsGo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{KeepSeasons: new(int64(1)), Segments: []string{"country"}, Shards: 2})
		for n := range int64(3) {
			for user := range int64(4) {
				f.mustSend(user+1, "5", func(in *SubmitInput) { in.Segments = map[string]string{"country": "DE"} })
			}
			testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", n+1))(t)
			testkit.Must(f.sweepGame(t.Context(), f.gameID))(t)
		}
		page, _, err := f.ListSeasons(t.Context(), f.server(), f.gameID, "top", 0, 10)
		if err != nil || len(page) != 2 || page[1].Season != 3 {
			t.Fatalf("%+v, %v", page, err)
		}
		for shard := range 2 {
			tag, _, _ := strings.Cut(keys.BoardRank(keys.NewBoardShard(f.gameID, "top", shard), 1), "rank")
			for key := range redistest.TakeSnapshot(t, db, tag) {
				for _, old := range []string{":1", ":2"} {
					if strings.Contains(key, "season"+old) || strings.Contains(key, "rank"+old) ||
						strings.Contains(key, "entry"+old+":") || strings.Contains(key, "more"+old+":") {
						t.Errorf("%s is still there", key)
					}
				}
			}
		}
		testkit.Check(t, f.Delete(t.Context(), f.server(), f.gameID, "top"))
		testkit.Fails(f.Get(t.Context(), f.server(), f.gameID, "top"))(t, apierror.BoardNotFound)
		testkit.Must(f.sweepGame(t.Context(), f.gameID))(t)
		for shard := range 2 {
			tag, _, _ := strings.Cut(keys.BoardRank(keys.NewBoardShard(f.gameID, "top", shard), 1), "rank")
			for key := range redistest.TakeSnapshot(t, db, tag) {
				if !strings.Contains(key, ":did:") {
					t.Errorf("%s is still there", key)
				}
			}
		}
		f.create(Definition{}) // its key is free again
	})
}

func TestAPlayerWhoIsDeletedLeavesEverySeason(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Segments: []string{"country"}})
		german := func(in *SubmitInput) { in.Segments = map[string]string{"country": "DE"} }
		f.mustSend(1, "5", german)
		f.mustSend(2, "4", german)
		testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
		f.mustSend(1, "6")
		testkit.Check(t, f.DeletePlayer(t.Context(), f.player(1)))
		for _, scope := range []Scope{{Season: 1}, {Season: 1, Segment: "country:DE"}} {
			if got := userIDs(f.entries(scope)); !slices.Equal(got, []int64{2}) {
				t.Errorf("%v", got)
			}
		}
		if got := f.entries(Scope{}); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestDetailsAreThoseOfTheScoreThatCounts(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{})
	with := func(n int) func(*SubmitInput) {
		return func(in *SubmitInput) {
			in.Metadata = wire.RawJSON(fmt.Sprintf(`{ "n": %d }`, n))
			in.Evidence = &Evidence{RoomID: "room"}
		}
	}
	e := f.mustSend(1, "5", with(1)).Entry
	if string(e.Metadata) != `{"n":1}` || e.Evidence == nil || e.Evidence.RoomID != "room" {
		t.Errorf("%+v", e)
	}
	if e := f.mustSend(1, "4", with(2)).Entry; string(e.Metadata) != `{"n":1}` {
		t.Errorf("%+v", e)
	}
	if e := f.mustSend(1, "6").Entry; string(e.Metadata) != `{}` || e.Evidence != nil {
		t.Errorf("%+v", e)
	}
	_, err := f.send(1, "7", func(in *SubmitInput) { in.Evidence = &Evidence{URL: "http://x"} })
	wantError(t, err, apierror.InvalidRequest, "evidence.url")
	_, err = f.send(1, "7", func(in *SubmitInput) { in.Segments = map[string]string{"country": "DE"} })
	wantError(t, err, apierror.InvalidRequest, "segments.country")
	testkit.Fails(f.send(1_000_000, "7"))(t, apierror.UserNotFound)
}

func TestABoardThatIsFullTakesNoOtherPlayer(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{MaxEntries: new(int64(2))})
	f.mustSend(1, "5")
	f.mustSend(2, "5")
	testkit.Fails(f.send(3, "5"))(t, apierror.BoardFull)
	f.mustSend(1, "6")
}

// A hundred players on one of four shards have a place each on a board of a hundred, and nobody
// else.
func TestAShardMayHaveAllEntriesOfABoard(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{MaxEntries: new(int64(100)), Shards: 4})
	for user := range int64(100) {
		f.mustSend(4*(user+1), "5")
	}
	for _, user := range []int64{1, 4 * 101} {
		testkit.Fails(f.send(user, "5"))(t, apierror.BoardFull)
	}
	f.mustSend(4, "6")
	testkit.Must(f.Remove(t.Context(), f.server(), f.gameID, "top", 0, 4))(t)
	f.mustSend(1, "5")
}

func TestABatchReportsEachScore(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.create(Definition{Operator: Sum})
		batch := []SubmitInput{{UserID: 1, Score: "5"}, {UserID: 2, Score: "x"}, {UserID: 1, Score: "6"}}
		rc := idempotency.Receipt{KeyDigest: "batch", Fingerprint: "print"}
		for i := range 2 {
			r, replayed, err := f.SubmitBatch(t.Context(), f.server(), f.gameID, "top", batch, rc)
			if err != nil || len(r) != 3 || !errors.Is(r[1].Err, apierror.InvalidRequest) || r[2].Entry.Score.Units != 11 ||
				replayed != (i > 0) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		_, _, err := f.SubmitBatch(t.Context(), f.server(), f.gameID, "top", nil, rc)
		wantError(t, err, apierror.InvalidRequest, "scores")
		_, _, err = f.SubmitBatch(t.Context(), f.player(1), f.gameID, "top", batch, rc)
		testkit.WantError(t, err, apierror.Forbidden)
	})
}

func TestASeasonThatHasNotBegunTakesNoScore(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	begins := time.Now().Add(time.Hour)
	b := f.create(Definition{StartsAt: &begins})
	if b.Season.Status != SeasonUpcoming {
		t.Errorf("%+v", b.Season)
	}
	testkit.Fails(f.send(1, "5"))(t, apierror.SeasonClosed)
}

// A patch of who may write, and by which rules, counts from the next season on. With now it counts
// in the season that is open, which keeps what else was patched before for the next one.
func TestAPatchDoesNotReachIntoTheOpenSeason(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{Schedule: &Schedule{EverySeconds: 3600}})
	asPlayer := func(score ScoreInput, play string) error {
		_, err := f.Submit(t.Context(), f.player(7), f.gameID, "top", SubmitInput{Score: score, PlayID: play},
			idempotency.Receipt{})
		return err
	}
	patch := func(p Patch) Leaderboard {
		t.Helper()
		return testkit.Must(f.Patch(t.Context(), f.server(), f.gameID, "top", p))(t)
	}
	players, withPlay := Writers{WriterPlayers}, &Rules{Max: new(ScoreInput("100")), Play: true}
	b := patch(Patch{Writers: &players, Rules: wire.Given(withPlay), KeepSeasons: new(int64(5))})
	if b.Next == nil || b.NextFrom == nil || !b.NextFrom.Equal(*b.Season.ClosesAt) || b.Rules != nil {
		t.Errorf("%+v", b)
	}
	testkit.WantError(t, asPlayer("4503599627370495", ""), apierror.Forbidden)
	f.mustSend(1, "500")

	b = patch(Patch{
		Writers: &Writers{WriterServer, WriterPlayers}, Rules: wire.Given(&Rules{Max: new(ScoreInput("9"))}),
		Effective: EffectiveNow,
	})
	if !b.Definition.mayWrite(WriterPlayers) || *b.Rules.Max != "9" || *b.KeepSeasons != 10 || *b.Next.KeepSeasons != 5 {
		t.Errorf("%+v, then %+v", b.Definition, b.Next)
	}
	if e, ok := apierror.As(asPlayer("10", "")); !ok || e.ExtraMembers["rule"] != "max" {
		t.Errorf("%v; want score_rejected by max", e)
	}
	testkit.Report(t, asPlayer("9", ""))
	f.mustSend(1, "600")
	for field, p := range map[string]Patch{
		"schedule": {Schedule: wire.Given[Schedule](nil)}, "segments": {Segments: &[]string{"country"}},
		"prizes": {Prizes: wire.Given[Prizes](nil)}, "graceSeconds": {GraceSeconds: new(int64(1))},
		"league": {League: wire.Given[League](nil)},
	} {
		p.Effective = EffectiveNow
		_, err := f.Patch(t.Context(), f.server(), f.gameID, "top", p)
		wantError(t, err, apierror.InvalidRequest, field)
	}
	_, err := f.Patch(t.Context(), f.server(), f.gameID, "top", Patch{Effective: "soon"})
	wantError(t, err, apierror.InvalidRequest, "effective")
}

// The rule that demands plays is that of the season, too: a patch neither lets scores in without a
// play nor locks players out until the season ends.
func TestAPatchOfThePlayRuleCountsFromTheNextSeason(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.create(Definition{Writers: Writers{WriterPlayers}, Rules: &Rules{Play: true}})
	patch := func(play bool) {
		t.Helper()
		p := Patch{Rules: wire.Given(&Rules{Play: play})}
		testkit.Must(f.Patch(t.Context(), f.server(), f.gameID, "top", p))(t)
	}
	send := func(play string) error {
		_, err := f.Submit(t.Context(), f.player(7), f.gameID, "top", SubmitInput{Score: "5", PlayID: play},
			idempotency.Receipt{})
		return err
	}
	begin := func() (Play, error) { return f.StartPlay(t.Context(), f.player(7), f.gameID, "top") }
	patch(false)
	wantError(t, send(""), apierror.InvalidRequest, "playId")
	play, err := begin()
	if err == nil {
		err = send(play.PlayID)
	}
	testkit.Report(t, err, "a play of the season that is open")
	f.endSeason(1)
	testkit.Report(t, send(""), "in the next season")
	patch(true)
	testkit.Report(t, send(""), "before plays are demanded")
	_, err = begin()
	wantError(t, err, apierror.InvalidRequest, "board")
}

// A play is a key that stays for hours: a player has at most twenty open ones on a board.
func TestAPlayerHasTwentyOpenPlays(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		d := Definition{
			Board: "top", Name: "Top", Writers: Writers{WriterPlayers}, Rules: &Rules{Play: true}, Operator: Last, Shards: 4,
		}
		testkit.Must(f.Create(t.Context(), f.server(), f.gameID, d))(t)
		start := func(userID int64) string {
			t.Helper()
			return testkit.Must(f.StartPlay(t.Context(), f.player(userID), f.gameID, "top"))(t).PlayID
		}
		send := func(userID int64, playID string) error {
			_, err := f.Submit(t.Context(), f.player(userID), f.gameID, "top",
				SubmitInput{Score: "1", PlayID: playID}, idempotency.Receipt{})
			return err
		}
		others := start(2)
		var plays []string
		for range maxOpenPlays {
			plays = append(plays, start(1))
		}
		for range maxOpenPlays { // what was used is not open
			testkit.Check(t, send(1, plays[1]))
			plays = append(slices.Delete(plays, 1, 2), start(1))
		}
		plays = append(plays, start(1), start(1)) // two too many
		for i, play := range plays {
			switch err := send(1, play); {
			case i < 2 && !errors.Is(err, apierror.PlayNotFound), i >= 2 && err != nil:
				t.Errorf("play %d of %d: %v", i, len(plays), err)
			}
		}
		testkit.Report(t, send(2, others), "the play of another player")
		at := keys.NewBoardShard(f.gameID, "top", 1)
		if left, err := db.Client.LLen(t.Context(), keys.BoardPlays(at, 1)).Result(); err != nil || left > maxOpenPlays {
			t.Errorf("%d plays are listed, %v", left, err)
		}
		if ttl := db.Client.PTTL(t.Context(), keys.BoardPlays(at, 1)).Val(); ttl < time.Hour || ttl > 3*time.Hour {
			t.Errorf("the list of plays stays for %v", ttl)
		}
	})
}

// encodeMember returns the member of an entry, as the script does.
func encodeMember(d *Definition, score, sub int64, at time.Time, userID int64) string {
	b := appendScore(make([]byte, 0, memberBytes), score, d.Order)
	if d.Subscore != nil {
		b = appendScore(b, sub, d.Subscore.Order)
	} else {
		b = appendScore(b, 0, Descending)
	}
	b = appendBigEndian(b, uint64(at.UnixMilli()), timeBytes)
	return string(appendBigEndian(b, uint64(userID), userBytes))
}

// appendScore appends a score so that bytes sort as the order wants it.
func appendScore(b []byte, units int64, order Order) []byte {
	if order == Ascending {
		return appendBigEndian(b, uint64(scoreBound+units), scoreBytes)
	}
	return appendBigEndian(b, uint64(scoreBound-units), scoreBytes)
}
