package tournaments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// start creates a tournament, lets players enter and starts it.
func (f *fixture) start(in CreateInput, userIDs ...int64) int64 {
	f.t.Helper()
	id := f.create(in)
	f.enter(id, userIDs...)
	testkit.Must(f.Start(f.t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(f.t)
	f.lead()
	return id
}

// match returns the match of a player in the round.
func (f *fixture) match(id, userID int64) Match {
	f.t.Helper()
	list := f.currentMatches(id)
	i := slices.IndexFunc(list, func(m Match) bool { return m.has(userID) })
	if i < 0 {
		f.t.Fatalf("player %d has no match", userID)
	}
	return list[i]
}

// win plays a match that one of its players wins.
func (f *fixture) win(m Match, winnerID int64) {
	f.t.Helper()
	f.sit(m, winnerID, m.opponentOf(winnerID))
	testkit.Check(f.t, f.finish(m, map[int64]int{winnerID: 1, m.opponentOf(winnerID): 2}))
}

// standings returns all standings.
func (f *fixture) standings(id int64) []Standing {
	f.t.Helper()
	list, _ := testkit.Must2(f.Standings(f.t.Context(), operator, f.gameID, id, "", 4096))(f.t)
	return list
}

func TestTwoPlayersOfWhomOneWins(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(nil), 1, 2)
		m := f.match(id, 1)
		if m.Status != MatchReady || m.Attempt != 1 || m.Deadline == nil {
			t.Fatalf("%+v", m)
		}
		f.win(m, 2)
		f.money.Audit()
		f.lead()
		v := f.get(id)
		if v.Status != Finished || v.PotUnits != 500 || v.RakeUnits != 25 {
			t.Fatalf("%+v", v)
		}
		f.money.Audit()
		f.money.WantBalance(2, 750+285, 0) // 60 % of 475
		f.money.WantBalance(1, 750+190, 0)
		if h := f.total(house); h != 25 {
			t.Errorf("the house has %d", h)
		}
		list := f.standings(id)
		if len(list) != 2 || list[0].User.ID != 2 || list[0].Wins != 1 || *list[0].Units != 285 || list[1].Place != 2 {
			t.Errorf("%+v", list)
		}
	})
}

// Nobody reads off a status who has won: the winner of a bracket never was out.
func TestTheEntrantsOfATournamentThatIsOverHavePlaceAndPrize(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		entrants := func(id int64) (texts []string) {
			list, _ := testkit.Must2(f.Entrants(t.Context(), operator, f.gameID, id, "", 10))(t)
			for _, e := range list {
				text := fmt.Sprintf("%d %s", e.User.ID, e.Status)
				if e.Place != nil {
					text += fmt.Sprintf(" %d", *e.Place)
				}
				if e.Units != nil {
					text += fmt.Sprintf(" %d of %d", *e.Units, e.Payout.Units)
				}
				texts = append(texts, text)
			}
			return texts
		}
		id := f.create(f.swiss(func(in *CreateInput) {
			in.Format, in.Payout, in.Seeding = FormatElimination, []int{6000, 4000}, SeedByJoined
		}))
		f.enter(id, 1, 2, 3, 4)
		if got := entrants(id); got[0] != "1 joined" {
			t.Errorf("before the start: %v", got)
		}
		testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
		f.lead()
		f.win(f.match(id, 1), 1)
		f.win(f.match(id, 2), 2)
		if got := entrants(id); !slices.Equal(got, []string{"1 playing", "2 playing", "3 out", "4 out"}) {
			t.Errorf("after the first round: %v", got)
		}
		f.lead()
		f.win(f.match(id, 1), 2)
		f.leadUntil(t, id, Finished)
		want := []string{"1 out 2 380 of 380", "2 joined 1 570 of 570", "3 out 3 0 of 0", "4 out 3 0 of 0"}
		if got := entrants(id); !slices.Equal(got, want) {
			t.Errorf("after the end: %v; want %v", got, want)
		}

		cancelled := f.start(f.swiss(nil), 5, 6)
		testkit.Must(f.Cancel(t.Context(), operator, f.gameID, cancelled, idempotency.Receipt{}))(t)
		f.leadUntil(t, cancelled, Cancelled)
		if got := entrants(cancelled); !slices.Equal(got, []string{"5 joined", "6 joined"}) {
			t.Errorf("of a cancelled one: %v", got)
		}
	})
}

// slowRooms takes a while to open a room: time itself is what the test is about.
type slowRooms struct {
	Rooms
	opens time.Duration
	given []time.Duration // to the players of each match, until its deadline
}

func (r *slowRooms) OpenMatch(ctx context.Context, in rooms.MatchInput) (rooms.Room, error) {
	r.given = append(r.given, time.Until(in.Deadline))
	r.wait()
	return r.Rooms.OpenMatch(ctx, in)
}

func (r *slowRooms) wait() { time.Sleep(r.opens) } // a room that opens late: time is the subject

// Else the players of the last match of a large round would lose before they have a room.
func TestPlayersHaveTheSameTimeHoweverLateTheirRoomIsOpened(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	slow := &slowRooms{Rooms: f.Rooms, opens: 100 * time.Millisecond}
	f.Rooms = slow
	f.start(f.swiss(func(in *CreateInput) { in.NoShowSeconds = new(int64(10)) }), 1, 2, 3, 4, 5, 6, 7, 8)
	if len(slow.given) != 4 {
		t.Fatalf("%d rooms were opened", len(slow.given))
	}
	for i, given := range slow.given {
		if given < slow.given[0]-slow.opens/2 {
			t.Errorf("room %d leaves its players %v, the first one %v", i+1, given, slow.given[0])
		}
	}
}

func TestAPageOfEntrantsGoesOnAfterOneWhoLeftWhileItWasRead(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	id := f.create(f.swiss(nil))
	f.enter(id, 1, 2, 3, 4, 5)
	// As the second read finds it when player 2 leaves between the two.
	testkit.Check(t, f.db.Client.HDel(t.Context(), keys.TourEntrants(f.gameID, id), "2").Err())
	var pages [][]int64
	for cursor := ""; ; {
		list, next := testkit.Must2(f.Entrants(t.Context(), operator, f.gameID, id, cursor, 2))(t)
		var page []int64
		for _, e := range list {
			page = append(page, e.User.ID)
		}
		if pages = append(pages, page); next == "" || len(pages) > 5 {
			break
		}
		cursor = next
	}
	if got := fmt.Sprint(pages); got != "[[1] [3 4] [5]]" {
		t.Errorf("the pages are %s", got)
	}
	tour := testkit.Must(f.read(t.Context(), operator, f.gameID, id))(t)
	if all, err := f.store.readAllEntrants(t.Context(), tour); err != nil || len(all) != 4 {
		t.Errorf("all of them are %v, %v", all, err)
	}
}

func TestAMatchIsDecidedByWhoIsThere(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		in := f.swiss(func(in *CreateInput) { in.Rounds, in.Seeding = new(3), SeedByJoined })
		id := f.start(in, 1, 2, 3, 4)
		one, other := f.match(id, 1), f.match(id, 4)
		f.sit(one, 1)
		f.lead() // before the deadline nothing is decided
		if m := f.match(id, 1); m.Status != MatchReady {
			t.Errorf("%+v", m)
		}
		f.pass(id, one)
		f.pass(id, other)
		f.lead()
		matches, _ := testkit.Must2(f.Matches(t.Context(), operator, f.gameID, id, 1, "", 10))(t)
		if m := matches[0]; *m.Reason != Walkover || *m.WinnerID != 1 {
			t.Errorf("%+v", m)
		}
		if m := matches[1]; *m.Reason != DoubleForfeit || m.WinnerID != nil {
			t.Errorf("%+v", m)
		}
		if v := f.get(id); v.Round != 2 {
			t.Errorf("%+v", v)
		}
		f.money.Audit()
	})
}

func TestAMatchThatBothCameToIsPlayed(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(nil), 1, 2)
		m := f.match(id, 1)
		f.sit(m, 1, 2)
		f.pass(id, m)
		f.lead()
		if m = f.match(id, 1); m.Status != MatchPlaying {
			t.Fatalf("%+v", m)
		}
		f.pass(id, m) // without a result, whatever its room does
		f.lead()
		if v := f.get(id); v.Status != Finished {
			t.Fatalf("%+v", v)
		}
		room, err := f.rooms.Get(t.Context(), operator, *m.RoomID)
		if err != nil || room.Status != rooms.Cancelled {
			t.Errorf("the room is %s, %v", room.Status, err)
		}
		list := f.standings(id)
		if list[0].Draws != 1 || list[1].Draws != 1 {
			t.Errorf("%+v", list)
		}
		f.money.Audit()
	})
}

func TestADrawIsPlayedAgainThreeTimesAndThenTheBetterSeedWins(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		in := f.swiss(func(in *CreateInput) {
			in.Format, in.Draws, in.Seeding, in.Payout = FormatElimination, DrawReplay, SeedByJoined, nil
		})
		id := f.start(in, 1, 2)
		seen := map[string]bool{}
		for attempt := 1; attempt <= MaxAttempts; attempt++ {
			m := f.match(id, 1)
			if m.Attempt != attempt || m.Status != MatchReady || seen[*m.RoomID] {
				t.Fatalf("%+v", m)
			}
			seen[*m.RoomID] = true
			f.sit(m, 1, 2)
			testkit.Check(t, f.finish(m, map[int64]int{1: 1, 2: 1}))
			// of an earlier attempt, or decided: nothing changes
			testkit.Check(t, f.report(m, rooms.Ended{RoomID: *m.RoomID, Status: rooms.Finished}))
			f.lead()
		}
		v := f.get(id)
		matches, _, err := f.Matches(t.Context(), operator, f.gameID, id, 0, "", 10)
		if err != nil || v.Status != Finished || len(matches) != 1 || *matches[0].WinnerID != 1 || matches[0].Attempt != 3 {
			t.Fatalf("%+v, %+v, %v", v, matches, err)
		}
		f.money.Audit()
		f.money.WantBalance(1, 750+475, 0)
	})
}

func TestAResultIsReportedOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(func(in *CreateInput) { in.Rounds = new(1) }), 1, 2, 3, 4)
		m := f.match(id, 1)
		f.win(m, 1)
		version := f.get(id).Version
		for range 2 {
			testkit.Report(t, f.report(m, rooms.Ended{
				RoomID: *m.RoomID, Status: rooms.Finished, Places: []rooms.Place{{UserID: m.opponentOf(1), Place: 1}},
			}))
		}
		if v := f.get(id); v.Version != version || *f.match(id, 1).WinnerID != 1 {
			t.Errorf("%+v", v)
		}
		_, _, err := f.Resolve(t.Context(), operator, f.gameID, id, m.ID, m.opponentOf(1), idempotency.Receipt{})
		testkit.WantError(t, err, apierror.MatchDecided)
	})
}

func TestStaffDecidesAMatch(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(nil), 1, 2)
		m := f.match(id, 1)
		_, _, err := f.Resolve(t.Context(), operator, f.gameID, id, m.ID, 9, idempotency.Receipt{})
		testkit.WantError(t, err, apierror.InvalidRequest)
		_, _, err = f.Resolve(t.Context(), operator, f.gameID, id, "r1m2", 1, idempotency.Receipt{})
		testkit.WantError(t, err, apierror.MatchNotFound)
		for range 2 { // sent again, it is the same
			m, _, err = f.Resolve(t.Context(), operator, f.gameID, id, m.ID, 1, idempotency.Receipt{})
			if err != nil || *m.WinnerID != 1 || *m.Reason != ResolvedByHand {
				t.Fatalf("%+v, %v", m, err)
			}
		}
		f.lead()
		if v := f.get(id); v.Status != Finished {
			t.Errorf("%+v", v)
		}
		f.money.Audit()
	})
}

func TestWhoLeavesOrIsDisqualifiedLosesAndIsNotPairedAgain(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		in := f.swiss(func(in *CreateInput) {
			in.Rounds, in.Seeding, in.LateJoinRounds = new(2), SeedByJoined, new(1)
		})
		id := f.start(in, 1, 2, 3, 4)
		first, second := f.match(id, 1), f.match(id, 3)
		left, out := first.opponentOf(1), second.opponentOf(3)
		_, err := f.Leave(t.Context(), f.player(left), f.gameID, id, idempotency.Receipt{})
		if err == nil {
			_, err = f.Disqualify(t.Context(), operator, f.gameID, id, out, idempotency.Receipt{})
		}
		testkit.Check(t, err)
		f.lead()
		matches, _, err := f.Matches(t.Context(), operator, f.gameID, id, 1, "", 10)
		if err != nil || *matches[0].Reason != Walkover || *matches[1].Reason != Disqualified {
			t.Fatalf("%+v, %v", matches, err)
		}
		if list := f.currentMatches(id); len(list) != 1 || !list[0].has(1) || !list[0].has(3) {
			t.Fatalf("the second round is %+v", list)
		}
		testkit.Fails(f.Join(t.Context(), f.player(left), f.gameID, id, idempotency.Receipt{}))(
			t, apierror.RegistrationClosed)
		testkit.Fails(f.Join(t.Context(), f.player(out), f.gameID, id, idempotency.Receipt{}))(t, apierror.Disqualified)
		f.win(f.match(id, 1), 1)
		f.lead()
		list := f.standings(id)
		if f.get(id).Status != Finished || list[0].User.ID != 1 || list[3].User.ID != out || *list[3].Units != 0 {
			t.Errorf("%+v", list)
		}
		f.money.WantBalance(left, 750, 0)
		f.money.Audit()
	})
}

func TestPlayersJoinLateAndComeBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		in := f.swiss(func(in *CreateInput) { in.Rounds, in.LateJoinRounds = new(3), new(2) })
		id := f.start(in, 1, 2)
		f.enter(id, 3)
		testkit.Must(f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t)
		testkit.Must(f.Join(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t)
		f.money.WantBalance(1, 750, 250) // the fee was there
		f.money.Audit()
		f.win(f.match(id, 2), 2)
		f.lead()
		if v := f.get(id); v.Round != 2 || v.Entrants != 3 {
			t.Fatalf("%+v", v)
		}
		playing := map[int64]bool{}
		for _, m := range f.currentMatches(id) {
			for _, p := range m.Players {
				playing[p.UserID] = true
			}
		}
		if len(playing) != 3 {
			t.Errorf("%v play", playing)
		}
	})
}

func TestATournamentThatIsCancelledWhileItRunsEndsItsRooms(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(nil), 1, 2, 3, 4)
		m := f.match(id, 1)
		f.sit(m, 1)
		testkit.Must(f.Cancel(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
		f.leadUntil(t, id, Cancelled)
		room, err := f.rooms.Get(t.Context(), operator, *m.RoomID)
		if err != nil || room.Status != rooms.Cancelled {
			t.Errorf("the room is %s, %v", room.Status, err)
		}
		for user := range int64(4) {
			f.money.WantBalance(user+1, 1000, 0)
		}
		f.money.Audit()
	})
}

// bots plays tournaments. Of the players, one in five never comes.
type bots struct {
	*fixture
	random *rand.Rand
	absent map[int64]bool
}

// play does something in each match that is ready.
func (b *bots) play(id int64) {
	b.t.Helper()
	for _, m := range b.currentMatches(id) {
		if m.Status != MatchReady && m.Status != MatchPlaying {
			continue
		}
		var there []int64
		for _, p := range m.Players {
			if !b.absent[p.UserID] {
				there = append(there, p.UserID)
			}
		}
		if m.Status == MatchReady {
			b.sit(m, there...)
		}
		switch {
		case len(there) < 2:
			b.pass(id, m)
		case b.random.IntN(10) == 0: // they have all vanished
			b.pass(id, m)
		default:
			places := map[int64]int{m.Players[0].UserID: 1, m.Players[1].UserID: 1 + b.random.IntN(2)}
			if b.random.IntN(2) == 0 {
				places = map[int64]int{m.Players[0].UserID: 2, m.Players[1].UserID: 1}
			}
			testkit.Check(b.t, b.finish(m, places))
		}
	}
}

func TestTournamentsOfBotsEndAndPayEverybodyOnce(t *testing.T) {
	for _, format := range []Format{FormatSwiss, FormatElimination, FormatRoundRobin} {
		for _, players := range []int{2, 3, 7, 64} {
			if format == FormatRoundRobin && players > format.MaxEntrants() {
				players = 16
			}
			t.Run(string(format)+"/"+strconv.Itoa(players), func(t *testing.T) {
				onBothStores(t, func(t *testing.T, f *fixture) { f.playWithBots(t, format, players) })
			})
		}
	}
}

func (f *fixture) playWithBots(t *testing.T, format Format, players int) {
	t.Helper()
	b := bots{f, rand.New(rand.NewPCG(uint64(players), 1)), map[int64]bool{}}
	ids := make([]int64, players)
	for i := range ids {
		ids[i] = int64(i) + 1
		b.absent[ids[i]] = i%5 == 4
	}
	in := f.swiss(func(in *CreateInput) {
		in.Format, in.Payout, in.MaxEntrants = format, nil, players
		in.AddedPrize = &AddedPrizeInput{Amount: "10", From: FromMint}
		if players > 2 {
			in.Payout = []int{5000, 3000, 2000}
		}
	})
	id := f.start(in, ids...)
	other := fixture{
		t: f.t, Service: New(f.db, f.Deps, Options{}), people: f.people, gameID: f.gameID, db: f.db, wallet: f.wallet,
		money: f.money, rooms: f.rooms, token: f.token, fence: f.fence,
	}
	for look := 0; f.get(id).Status != Finished; look++ {
		if look > 500 {
			t.Fatalf("after %d looks it is %+v", look, f.get(id))
		}
		b.play(id)
		if look%5 == 0 {
			f.money.Audit()
		}
		// Two leaders take turns; the one that was replaced changes nothing.
		f.fence++
		other.fence = f.fence - 1
		f.lead()
		before := f.get(id).Version
		if _, err := other.driveGames(t.Context(), other.fence, []int64{f.gameID}); err != nil &&
			!errors.Is(err, errLeaderReplaced) {
			t.Fatal(err)
		}
		if after := f.get(id); after.Version != before {
			t.Fatalf("the leader that was replaced changed version %d to %d", before, after.Version)
		}
	}
	f.money.Audit()
	v := f.get(id)
	pot := wallet.Units(players)*250 + 1000
	sum := v.RakeUnits
	for _, s := range f.standings(id) {
		sum += *s.Units
	}
	if v.PotUnits != pot || sum != pot {
		t.Errorf("the pot is %d, payouts and rake are %d; want %d", v.PotUnits, sum, pot)
	}
	var balances wallet.Units
	for _, userID := range ids {
		b := f.money.Balance(userID)
		balances += b.SpendableUnits
		if b.HeldUnits != 0 {
			t.Errorf("player %d holds %d", userID, b.HeldUnits)
		}
	}
	if want := wallet.Units(players)*1000 + 1000 - v.RakeUnits; balances != want {
		t.Errorf("the players have %d; want %d", balances, want)
	}
	f.checkRooms(id)
}

// checkRooms requires that each attempt of each match had a room of its own.
func (f *fixture) checkRooms(id int64) {
	f.t.Helper()
	list, _ := testkit.Must2(f.Matches(f.t.Context(), operator, f.gameID, id, 0, "", 100_000))(f.t)
	seen := map[string]bool{}
	for _, m := range list {
		if !m.isDecided() || m.RoomID != nil && seen[*m.RoomID] {
			f.t.Errorf("%+v", m)
		}
		if m.RoomID != nil {
			seen[*m.RoomID] = true
		}
	}
}

func TestATournamentWhoseEveryPlayerVanishedEnds(t *testing.T) {
	for _, format := range []Format{FormatSwiss, FormatElimination, FormatRoundRobin} {
		t.Run(string(format), func(t *testing.T) {
			onBothStores(t, func(t *testing.T, f *fixture) {
				id := f.start(f.swiss(func(in *CreateInput) { in.Format, in.MaxEntrants = format, 32 }), 1, 2, 3, 4, 5)
				for range 20 {
					for _, m := range f.currentMatches(id) {
						if !m.isDecided() {
							f.pass(id, m)
						}
					}
					f.lead()
				}
				f.wantUnplayed(id, 1, 2, 3, 4, 5)
			})
		})
	}
}

// wantUnplayed requires that a tournament ended without a result and every fee is back: the draw
// alone must not decide who is paid, and the house has no part of what nobody won.
func (f *fixture) wantUnplayed(id int64, userIDs ...int64) {
	f.t.Helper()
	if v := f.get(id); v.Status != Cancelled || *v.CancelReason != Unplayed || v.RakeUnits != 0 {
		f.t.Errorf("%+v", v)
	}
	for _, userID := range userIDs {
		f.money.WantBalance(userID, 1000, 0)
	}
	if h := f.total(house); h != 0 {
		f.t.Errorf("the house has %d", h)
	}
	f.money.Audit()
}

func TestATournamentWhosePlayersAreAllDisqualifiedPaysNobody(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.swiss(func(in *CreateInput) { in.Format = FormatElimination }), 1, 2)
		m := f.match(id, 1)
		for _, userID := range []int64{1, 2} {
			testkit.Must(f.Disqualify(t.Context(), operator, f.gameID, id, userID, idempotency.Receipt{}))(t)
		}
		_, _, err := f.Resolve(t.Context(), operator, f.gameID, id, m.ID, 1, idempotency.Receipt{})
		testkit.WantError(t, err, apierror.InvalidRequest) // who is out cannot win
		f.leadUntil(t, id, Cancelled)
		f.wantUnplayed(id, 1, 2)
	})
}

func TestATournamentThatIsNotOverAtItsEndExpires(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		start := time.Now().Add(300 * time.Millisecond)
		id := f.create(f.swiss(func(in *CreateInput) {
			in.StartsAt, in.EndsAt = &start, new(start.Add(200*time.Millisecond))
		}))
		f.enter(id, 1, 2)
		v := f.leadUntil(t, id, Cancelled)
		if *v.CancelReason != Expired {
			t.Errorf("the reason is %s", *v.CancelReason)
		}
		f.money.WantBalance(1, 1000, 0)
		f.money.Audit()
	})
}

func TestPairingsOfAnEarlierVersionAreNotTaken(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.create(f.swiss(nil))
		f.enter(id, 1, 2, 3)
		testkit.Check(t, f.store.start(t.Context(), noFence, f.gameID, id, 5))
		read := testkit.Must(f.store.load(t.Context(), f.gameID, id))(t)
		testkit.Must(f.Leave(t.Context(), f.player(2), f.gameID, id, idempotency.Receipt{}))(t)
		testkit.WantError(t, f.beginRound(t.Context(), formatFence(f.fence), read, true), redisdb.ErrStale)
		f.lead()
		if list := f.currentMatches(id); len(list) != 1 || list[0].has(2) {
			t.Errorf("%+v", list)
		}
	})
}
