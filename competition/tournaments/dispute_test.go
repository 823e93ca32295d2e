package tournaments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// consensus returns a bracket whose players say who has won; who joins first is the better seed.
func (f *fixture) consensus(change func(in *CreateInput)) CreateInput {
	return f.swiss(func(in *CreateInput) {
		in.Format, in.Seeding, in.Payout, in.MaxEntrants = FormatElimination, SeedByJoined, nil, 16
		in.Room = &RoomInput{SettledBy: rooms.SettledByConsensus}
		if change != nil {
			change(in)
		}
	})
}

// say lets a player of a match report who has won, 0 for a draw.
func (f *fixture) say(m Match, userID, winnerID int64) {
	f.t.Helper()
	var list []rooms.Placement
	for _, p := range m.Players {
		place := 1
		if winnerID != 0 && p.UserID != winnerID {
			place = 2
		}
		list = append(list, rooms.Placement{UserID: p.UserID, Place: place})
	}
	if _, err := f.rooms.Finish(f.t.Context(), f.player(userID), *m.RoomID, list, idempotency.Receipt{}); err != nil {
		f.t.Fatalf("player %d reports on %s: %v", userID, m.ID, err)
	}
}

// playing seats both players of a match, whose time to sit down is over.
func (f *fixture) playing(id int64, m Match) Match {
	f.t.Helper()
	f.sit(m, m.Players[0].UserID, m.Players[1].UserID)
	f.pass(id, m)
	f.lead()
	m = f.match(id, m.Players[0].UserID)
	if m.Status != MatchPlaying {
		f.t.Fatalf("%+v", m)
	}
	return m
}

// setRoom changes a field of the room of a match and makes the room due.
func (f *fixture) setRoom(m Match, field string, change func(value string) string) {
	f.t.Helper()
	ctx, client := f.t.Context(), f.db.Client
	shard, _ := keys.RoomShard(*m.RoomID)
	room := keys.Room(shard, *m.RoomID)
	value, err := client.HGet(ctx, room, field).Result()
	if err == nil {
		err = client.HSet(ctx, room, field, change(value)).Err()
	}
	if err == nil {
		err = client.ZAdd(ctx, keys.RoomsDue(shard), redis.Z{Score: 1, Member: *m.RoomID}).Err()
	}
	testkit.Check(f.t, err)
}

// passDispute makes the time of staff be over, in the room and in the match.
func (f *fixture) passDispute(id int64, m Match) {
	f.t.Helper()
	f.setRoom(m, "disputed", func(string) string { return "1" })
	f.pass(id, m)
}

// sweepRooms sweeps the rooms and applies the ends of matches.
func (f *fixture) sweepRooms() {
	f.t.Helper()
	testkit.Must(f.rooms.Sweep(f.t.Context()))(f.t)
}

func (f *fixture) decided(id int64, matchID string) Match {
	f.t.Helper()
	round, number, _ := ParseMatchID(matchID)
	list, _, err := f.Matches(f.t.Context(), operator, f.gameID, id, round, "", 100)
	if err != nil || len(list) < number || !list[number-1].isDecided() {
		f.t.Fatalf("%s is not decided: %+v, %v", matchID, list, err)
	}
	return list[number-1]
}

// The better seed loses, and says nothing: it sits there with its page open.
func TestASilentSeedLosesItsMatch(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		id := f.start(f.consensus(nil), 1, 2)
		m := f.playing(id, f.match(id, 1))
		f.setRoom(m, "s1", func(seat string) string { // as package presence does
			shard, _ := keys.RoomShard(*m.RoomID)
			record := strings.Split(seat, "|")[4] + "||lease000,"
			testkit.Check(t, f.db.Client.HSet(t.Context(), keys.Room(shard, *m.RoomID), "p1", record).Err())
			return seat
		})
		f.say(m, 2, 2)
		f.pass(id, m) // the time of the match is over, and the window is not
		f.lead()
		if m = f.match(id, 1); m.Status != MatchPlaying || time.Until(*m.Deadline) < time.Minute {
			t.Fatalf("%+v", m)
		}
		f.setRoom(m, "window", func(window string) string { return "1" + window[strings.Index(window, "|"):] })
		f.sweepRooms()
		f.lead()
		if v := f.get(id); v.Status != Finished {
			t.Fatalf("%+v", v)
		}
		if m = f.decided(id, m.ID); *m.WinnerID != 2 || *m.Reason != Played || m.Attempt != 1 {
			t.Errorf("%+v", m)
		}
		f.money.WantBalance(2, 750+475, 0)
		f.money.WantBalance(1, 750, 0)
		f.money.Audit()
	})
}

// Without the sweep, the leader closes the window at the deadline of the match.
func TestAWindowEndsThoughNobodySweeps(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.consensus(nil), 1, 2)
		m := f.playing(id, f.match(id, 1))
		f.say(m, 2, 2) // 1 is not connected
		f.setRoom(m, "window", func(window string) string { return "1" + window[strings.Index(window, "|"):] })
		f.pass(id, m)
		f.lead()
		room, err := f.rooms.Get(t.Context(), operator, *m.RoomID)
		if err != nil || room.Status != rooms.Disputed || time.Until(room.RefundAt) > 24*time.Hour {
			t.Fatalf("the room is %s until %v, %v", room.Status, room.RefundAt, err)
		}
		if m = f.match(id, 1); m.Status != MatchPlaying || time.Until(*m.Deadline) < 23*time.Hour {
			t.Errorf("%+v", m)
		}
	})
}

// The better seed contradicts the winner. Staff says nothing: both are out with their fees, and the
// others play for theirs.
func TestASeedThatContradictsDoesNotAdvance(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		id := f.start(f.consensus(func(in *CreateInput) {
			in.AddedPrize = &AddedPrizeInput{Amount: "1", From: FromMint}
		}), 1, 2, 3, 4)
		m := f.playing(id, f.match(id, 1))
		loser, winner := m.Players[0].UserID, m.Players[1].UserID
		f.say(m, winner, winner)
		f.say(m, loser, loser)
		f.pass(id, m)
		f.lead()
		if m = f.match(id, loser); m.Status != MatchPlaying || time.Until(*m.Deadline) < 23*time.Hour {
			t.Fatalf("%+v", m)
		}
		f.passDispute(id, m)
		f.lead()
		if m = f.decided(id, m.ID); m.WinnerID != nil || *m.Reason != Refunded {
			t.Fatalf("%+v", m)
		}
		f.money.Audit()
		other := f.match(id, 2) // the first seed meets the fourth
		f.sit(other, other.Players[0].UserID, other.Players[1].UserID)
		f.say(other, other.Players[0].UserID, other.Players[1].UserID)
		f.sweepRooms()
		v := f.leadUntil(t, id, Finished)
		if v.PotUnits != 600 || v.RakeUnits != 30 { // two fees and the prize
			t.Errorf("%+v", v)
		}
		f.money.WantBalance(loser, 1000, 0)
		f.money.WantBalance(winner, 1000, 0)
		f.money.WantBalance(other.Players[1].UserID, 750+570, 0)
		f.money.WantBalance(other.Players[0].UserID, 750, 0)
		f.money.Audit()
	})
}

func TestADisputedMatchFollowsTheRuleOfItsTournament(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		first := int64(0)
		for rule, want := range map[Disputes]struct {
			reason   MatchReason
			attempts int
		}{
			DisputesRefund: {Refunded, 1}, DisputesVoid: {DoubleForfeit, 1}, DisputesReplay: {Refunded, MaxAttempts},
		} {
			first += 10 // players of its own
			id := f.start(f.consensus(func(in *CreateInput) { in.Disputes = rule }), first, first+1)
			for attempt := 1; attempt <= want.attempts; attempt++ {
				m := f.match(id, first)
				if m.Attempt != attempt {
					t.Fatalf("%s: %+v", rule, m)
				}
				f.sit(m, first, first+1)
				f.say(m, first, first)
				f.say(m, first+1, first+1)
				// By the room's own time, which is that of the tournament.
				f.setRoom(m, "disputed", func(string) string {
					return fmt.Sprint(time.Now().Add(-25 * time.Hour).UnixMilli())
				})
				f.sweepRooms()
				f.lead()
			}
			m := f.decided(id, "r1m1")
			if m.WinnerID != nil || *m.Reason != want.reason || m.Attempt != want.attempts {
				t.Errorf("%s: %+v", rule, m)
			}
			f.leadUntil(t, id, Cancelled)
			f.wantUnplayed(id, first, first+1)
		}
	})
}

// Staff decides the room, and that decides the match.
func TestStaffDecidesADisputedMatch(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		id := f.start(f.consensus(nil), 1, 2)
		m := f.match(id, 1)
		f.sit(m, 1, 2)
		f.say(m, 1, 1)
		f.say(m, 2, 2)
		f.sweepRooms()
		f.lead()
		if m = f.match(id, 1); m.isDecided() {
			t.Fatalf("%+v", m)
		}
		testkit.Must(f.rooms.Resolve(t.Context(), operator, *m.RoomID, rooms.ResolveInput{
			Placements: []rooms.Placement{{UserID: 2, Place: 1}, {UserID: 1, Place: 2}},
		}, idempotency.Receipt{}))(t)
		f.sweepRooms()
		f.leadUntil(t, id, Finished)
		if m = f.decided(id, m.ID); *m.WinnerID != 2 || *m.Reason != Played {
			t.Errorf("%+v", m)
		}
		f.money.Audit()
	})
}

// Both sit there until the end of the match and report nothing.
func TestAMatchThatNobodyReportsIsLostByBoth(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.consensus(nil), 1, 2)
		m := f.playing(id, f.match(id, 1))
		f.pass(id, m)
		f.lead()
		if m = f.decided(id, m.ID); m.WinnerID != nil || *m.Reason != DoubleForfeit {
			t.Errorf("%+v", m)
		}
		f.leadUntil(t, id, Cancelled)
		f.wantUnplayed(id, 1, 2)
	})
}

// The server of the game says nothing in three attempts: nobody wins by that.
func TestAServerThatSaysNothingLetsNobodyWin(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.consensus(func(in *CreateInput) { in.Room = nil }), 1, 2)
		for attempt := 1; attempt <= MaxAttempts; attempt++ {
			m := f.playing(id, f.match(id, 1))
			if m.Attempt != attempt {
				t.Fatalf("%+v", m)
			}
			f.pass(id, m)
			f.lead()
		}
		if m := f.decided(id, "r1m1"); m.WinnerID != nil || *m.Reason != Refunded {
			t.Errorf("%+v", m)
		}
		f.leadUntil(t, id, Cancelled)
		f.wantUnplayed(id, 1, 2)
	})
}

// Draws that both players reported are replayed, and the last one is decided by lot.
func TestTheLastDrawOfPlayersIsDecidedByLot(t *testing.T) {
	wins := map[int64]int{}
	f := Definition{Draws: DrawReplay, Room: &RoomSet{SettledBy: rooms.SettledByConsensus}}
	for draw := range uint64(100) {
		one := &tour{definition: f, draw: draw}
		m := &Match{ID: "r1m1", Attempt: MaxAttempts, Players: []MatchPlayer{{UserID: 1, Seed: 1}, {UserID: 2, Seed: 2}}}
		first := one.drawn(m)
		if again := one.drawn(m); again != first {
			t.Fatalf("%+v, then %+v", first, again)
		}
		wins[first.winnerID]++
		m.Attempt--
		if c := one.drawn(m); c.status != MatchWaiting || c.newAttempt != MaxAttempts {
			t.Fatalf("%+v", c)
		}
	}
	if wins[1] < 30 || wins[2] < 30 || wins[1]+wins[2] != 100 {
		t.Errorf("the seeds win %v of 100", wins)
	}
}

// Who is out already when a match is given up keeps the fee in the pot: the other one wins.
func TestWhoHasLeftADisputedMatchGetsNoFeeBack(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		id := f.start(f.consensus(nil), 1, 2)
		m := f.playing(id, f.match(id, 1))
		f.say(m, 1, 1)
		f.say(m, 2, 2)
		testkit.Must(f.Leave(t.Context(), f.player(1), f.gameID, id, idempotency.Receipt{}))(t)
		ended := rooms.Ended{
			RoomID: *m.RoomID, Status: rooms.Cancelled, Reason: rooms.ReasonDisputeRefunded, StartedAt: time.Now(),
		}
		testkit.Check(t, f.report(m, ended))
		if m = f.decided(id, m.ID); *m.WinnerID != 2 || *m.Reason != Walkover {
			t.Errorf("%+v", m)
		}
		_, _, err := f.Resolve(t.Context(), operator, f.gameID, id, m.ID, 1, idempotency.Receipt{})
		testkit.WantError(t, err, apierror.InvalidRequest)
		f.leadUntil(t, id, Finished)
		f.money.WantBalance(1, 750, 0)
		f.money.Audit()
	})
}

// Staff disqualifies a player whose room ends before a leader comes by: its result counts no more,
// whoever has won there.
func TestADisqualifiedPlayerWinsNoMatchThatEndsAtOnce(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		for first, winnerID := range map[int64]int64{1: 1, 11: 0} { // 0: they report a draw
			id := f.start(f.consensus(func(in *CreateInput) { in.Draws = DrawReplay }), first, first+1, first+2, first+3)
			m := f.playing(id, f.match(id, first))
			out, other := m.Players[0].UserID, m.Players[1].UserID
			if winnerID != 0 {
				winnerID = out
			}
			f.say(m, out, winnerID)
			testkit.Must(f.Disqualify(t.Context(), operator, f.gameID, id, out, idempotency.Receipt{}))(t)
			f.say(m, other, winnerID)
			f.sweepRooms()
			f.lead()
			if m = f.decided(id, m.ID); m.WinnerID == nil || *m.WinnerID != other || *m.Reason != Disqualified {
				t.Errorf("%+v; want the victory of player %d", m, other)
			}
		}
		f.money.Audit()
	})
}

// passEnd makes endsAt of a tournament be over.
func (f *fixture) passEnd(id int64) {
	f.t.Helper()
	ctx, tour, ends := f.t.Context(), keys.Tour(f.gameID, id), *f.get(id).EndsAt
	past := time.Now().Add(-time.Second)
	const wireTime = "2006-01-02T15:04:05.000Z07:00"
	for field, texts := range map[string][2]string{
		"settings":   {fmt.Sprint(ends.UnixMilli()), fmt.Sprint(past.UnixMilli())},
		"definition": {`"endsAt":"` + ends.Format(wireTime), `"endsAt":"` + past.UTC().Format(wireTime)},
	} {
		value, err := f.db.Client.HGet(ctx, tour, field).Result()
		if err != nil || strings.Count(value, texts[0]) != 1 {
			f.t.Fatalf("endsAt is not found in %s, %v", value, err)
		}
		testkit.Check(f.t, f.db.Client.HSet(ctx, tour, field, strings.Replace(value, texts[0], texts[1], 1)).Err())
	}
}

// The loser of the final contradicts, and endsAt passes before anybody decides. The fee does not
// come back by that: the rule for disputes decides, whatever the leader sees first.
func TestAContradictionBeforeTheEndDoesNotCancelTheTournament(t *testing.T) {
	const all, half = 950, 475 // of the pot of four fees, without the rake
	for name, c := range map[string]struct {
		rule    Disputes
		isReady bool // the leader has not yet noticed that the final is being played
		paid    wallet.Units
		decide  func(f *fixture, id int64, final Match, results *resultConsumer)
	}{
		"staff decides":                        {DisputesVoid, false, all, resolveFinal},
		"staff decides a final that was short": {DisputesVoid, true, all, resolveFinal},
		"nobody decides": {DisputesVoid, false, half, func(f *fixture, id int64, final Match, _ *resultConsumer) {
			f.passDispute(id, final) // both reached the final and lost it: they share what its players get
		}},
		"the room ends before the match": {
			DisputesVoid, false, half,
			func(f *fixture, id int64, final Match, results *resultConsumer) {
				results.isPaused = true
				f.setRoom(final, "disputed", func(string) string { return "1" })
				if _, err := f.rooms.Sweep(f.t.Context()); !errors.Is(err, apierror.StoreUnavailable) {
					f.t.Fatalf("%v", err) // the room has ended, and the match must not know it
				}
				f.lead()
				f.wantRunning(id)
				results.isPaused = false
				f.pass(id, final)
			},
		},
		"it is played again": {DisputesReplay, false, all, func(f *fixture, id int64, final Match, _ *resultConsumer) {
			f.passDispute(id, final)
			f.lead()
			if m := f.match(id, 2); m.Attempt != 2 || m.Status != MatchReady {
				f.t.Fatalf("%+v", m)
			}
			f.winByAll(id, 2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, f *fixture) {
				results := &resultConsumer{f: f}
				f.consume(results.roomEnded)
				id := f.start(f.consensus(func(in *CreateInput) {
					in.Disputes, in.EndsAt = c.rule, new(time.Now().Add(300*time.Hour))
				}), 1, 2, 3, 4)
				f.winByAll(id, 1)
				f.winByAll(id, 2)
				f.lead()
				final := f.match(id, 1)
				if c.isReady {
					f.sit(final, 1, 2)
				} else {
					final = f.playing(id, final)
				}
				f.say(final, 2, 2)
				f.say(final, 1, 1)
				f.passEnd(id)
				f.lead()
				f.wantRunning(id)
				c.decide(f, id, final, results)
				f.leadUntil(t, id, Finished)
				f.money.WantBalance(2, 750+c.paid, 0)
				f.money.WantBalance(1, 750+all-c.paid, 0)
				f.money.Audit()
			})
		})
	}
}

func resolveFinal(f *fixture, id int64, final Match, _ *resultConsumer) {
	f.t.Helper()
	testkit.Must2(f.Resolve(f.t.Context(), operator, f.gameID, id, final.ID, 2, idempotency.Receipt{}))(f.t)
}

// resultConsumer gets the ends of rooms, and fails while it is paused.
type resultConsumer struct {
	f        *fixture
	isPaused bool
}

func (c *resultConsumer) roomEnded(ctx context.Context, ended rooms.Ended) error {
	if c.isPaused {
		return apierror.StoreUnavailable
	}
	return c.f.RoomEnded(ctx, ended)
}

func (f *fixture) wantRunning(id int64) {
	f.t.Helper()
	if v := f.get(id); v.Status != Running {
		f.t.Fatalf("it is %s", v.Status)
	}
}

// winByAll lets both players of a match report that one of them has won.
func (f *fixture) winByAll(id, winnerID int64) {
	f.t.Helper()
	m := f.playing(id, f.match(id, winnerID))
	for _, p := range m.Players {
		f.say(m, p.UserID, winnerID)
	}
	f.sweepRooms()
}

// A round that nobody has reported of is not waited for, and no other round begins after endsAt.
func TestNoRoundBeginsAfterTheEnd(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		f.consume(f.RoomEnded)
		id := f.start(f.consensus(func(in *CreateInput) { in.EndsAt = new(time.Now().Add(300 * time.Hour)) }), 1, 2, 3, 4)
		f.winByAll(id, 1)
		m := f.playing(id, f.match(id, 2))
		for _, p := range m.Players {
			f.say(m, p.UserID, 2)
		}
		f.passEnd(id)
		f.sweepRooms()
		if v := f.leadUntil(t, id, Cancelled); *v.CancelReason != Expired || v.Round != 1 {
			t.Errorf("%+v", v)
		}
		for userID := range int64(4) {
			f.money.WantBalance(userID+1, 1000, 0)
		}
		f.money.Audit()
	})
}
