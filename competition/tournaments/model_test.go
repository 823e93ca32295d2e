package tournaments

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// crashes ends the context of a leader when it has sent a number of commands.
type crashes struct {
	left   atomic.Int64 // commands; below 0 nothing happens
	cancel atomic.Pointer[context.CancelFunc]
}

func newCrashes(db *redisdb.DB) *crashes {
	c := &crashes{}
	c.left.Store(-1)
	redistest.ObserveCommands(db, func([]redis.Cmder) {
		if c.left.Load() >= 0 && c.left.Add(-1) == 0 {
			(*c.cancel.Load())()
		}
	})
	return c
}

// leadAndDie leads until it has sent a number of commands; the last one may be done or not.
func (c *crashes) leadAndDie(f *fixture, fence int64, commands int) error {
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	c.cancel.Store(&cancel)
	c.left.Store(int64(commands))
	_, err := f.driveGames(ctx, fence, []int64{f.gameID})
	c.left.Store(-1)
	if ctx.Err() != nil || errors.Is(err, errLeaderReplaced) {
		return nil
	}
	return err
}

// TestTournamentsConserveMoneyHoweverLeadersDie makes random calls on a tournament, between leaders
// that die after any of their commands and leaders that were replaced. After each call it adds up
// all money and compares what is held with the escrow.
func TestTournamentsConserveMoneyHoweverLeadersDie(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		c := newCrashes(db)
		rapid.Check(t, func(t *rapid.T) {
			m := newModel(t, db, c)
			for range rapid.IntRange(5, 30).Draw(t, "calls") {
				m.call()
				m.check()
			}
			m.end()
		})
	})
}

// model is a tournament with what must become of its money.
type model struct {
	*fixture
	rapid   *rapid.T
	crashes *crashes
	id      int64
	version int64
}

const modelPlayers = 6

func newModel(t *rapid.T, db *redisdb.DB, c *crashes) *model {
	m := &model{fixture: newFixture(t, db), rapid: t, crashes: c}
	m.id = m.create(m.swiss(func(in *CreateInput) {
		in.Format = rapid.SampledFrom([]Format{FormatSwiss, FormatElimination, FormatRoundRobin}).Draw(t, "format")
		in.MaxEntrants = modelPlayers
		in.Room = &RoomInput{SettledBy: rapid.SampledFrom([]rooms.SettledBy{
			rooms.SettledByServer, rooms.SettledByConsensus,
		}).Draw(t, "settlement")}
		in.Disputes = rapid.SampledFrom([]Disputes{DisputesRefund, DisputesReplay, DisputesVoid}).Draw(t, "disputes")
		if rapid.Bool().Draw(t, "with a prize") {
			in.AddedPrize = &AddedPrizeInput{Amount: "3.01", From: FromMint}
		}
		if in.Format == FormatSwiss {
			in.LateJoinRounds = new(rapid.IntRange(0, 2).Draw(t, "late rounds"))
			in.Rounds = new(rapid.IntRange(3, 4).Draw(t, "rounds"))
		}
		if in.Format != FormatElimination {
			in.Draws = rapid.SampledFrom([]Draws{DrawHalf, DrawReplay, DrawSeed}).Draw(t, "draws")
		}
	}))
	for user := range int64(modelPlayers) {
		m.give(1000, user+1)
	}
	return m
}

// expected are the codes with which a random call may fail.
var expected = []*apierror.Error{
	apierror.NotEntrant, apierror.Disqualified, apierror.RegistrationClosed, apierror.TournamentClosed,
	apierror.TournamentFull, apierror.InsufficientFunds, apierror.CheckInClosed, apierror.MatchDecided,
}

// must fails unless an error is one that is expected.
func (m *model) must(call string, err error) {
	m.rapid.Helper()
	if err != nil && !slices.ContainsFunc(expected, func(e *apierror.Error) bool { return errors.Is(err, e) }) {
		m.rapid.Fatalf("%s: %v", call, err)
	}
}

// call makes one call.
func (m *model) call() {
	ctx, none := m.rapid.Context(), idempotency.Receipt{}
	user := rapid.Int64Range(1, modelPlayers).Draw(m.rapid, "player")
	var err error
	kind := rapid.SampledFrom([]string{
		"join", "join", "join", "join", "leave", "disqualify", "start", "lead", "lead", "die", "die", "die", "stale",
		"play", "play", "play", "play", "pass", "pass", "cancel", "resolve",
	}).Draw(m.rapid, "call")
	switch kind {
	case "join":
		_, err = m.Join(ctx, m.player(user), m.gameID, m.id, none)
	case "leave":
		_, err = m.Leave(ctx, m.player(user), m.gameID, m.id, none)
	case "disqualify":
		_, err = m.Disqualify(ctx, operator, m.gameID, m.id, user, none)
	case "start":
		if m.get(m.id).Entrants >= 2 || rapid.IntRange(0, 9).Draw(m.rapid, "too few") == 0 {
			_, err = m.Start(ctx, operator, m.gameID, m.id, none)
		}
	case "lead":
		m.fence++
		m.lead()
	case "die":
		m.fence++
		err = m.crashes.leadAndDie(m.fixture, m.fence, rapid.IntRange(1, 40).Draw(m.rapid, "commands"))
	case "stale":
		if m.get(m.id).Version == m.version { // else a leader with this fence may have changed nothing yet
			_, err = m.driveGames(ctx, m.fence-1, []int64{m.gameID})
			if errors.Is(err, errLeaderReplaced) {
				err = nil
			}
		}
	case "play":
		m.play()
	case "pass":
		if one, ok := m.anyMatch(); ok {
			m.pass(m.id, one)
		}
	case "resolve":
		if one, ok := m.anyMatch(); ok {
			winner := one.Players[0].UserID
			_, _, err = m.Resolve(ctx, operator, m.gameID, m.id, one.ID, winner, none)
			if isOut := m.isOut(winner); isOut && err == nil || !isOut && errors.Is(err, apierror.InvalidRequest) {
				m.rapid.Fatalf("the winner is out: %t, and resolve returns %v", isOut, err)
			}
			if errors.Is(err, apierror.InvalidRequest) {
				err = nil
			}
		}
	case "cancel":
		if rapid.IntRange(0, 4).Draw(m.rapid, "really") == 0 {
			_, err = m.Cancel(ctx, operator, m.gameID, m.id, none)
		}
	}
	m.must(kind, err)
}

// isOut reports whether a player has left or was disqualified.
func (m *model) isOut(userID int64) bool {
	list, _ := testkit.Must2(m.Entrants(m.rapid.Context(), operator, m.gameID, m.id, "", 100))(m.rapid)
	i := slices.IndexFunc(list, func(e Entrant) bool { return e.User.ID == userID })
	return i >= 0 && (list[i].Status == EntrantOut || list[i].Status == EntrantDisqualified)
}

// anyMatch returns an undecided match of the round.
func (m *model) anyMatch() (Match, bool) {
	list := slices.DeleteFunc(m.currentMatches(m.id), func(one Match) bool { return one.isDecided() })
	if len(list) == 0 {
		return Match{}, false
	}
	return rapid.SampledFrom(list).Draw(m.rapid, "match"), true
}

// play lets some of the players of a match sit down, and may end it when all do.
func (m *model) play() {
	one, ok := m.anyMatch()
	if !ok || one.RoomID == nil {
		return
	}
	for _, p := range one.Players {
		if rapid.IntRange(0, 4).Draw(m.rapid, "is there") > 0 {
			_, err := m.rooms.Join(m.rapid.Context(), m.player(p.UserID), *one.RoomID, idempotency.Receipt{})
			if errors.Is(err, apierror.RoomEnded) || errors.Is(err, apierror.AlreadyStarted) {
				err = nil
			}
			testkit.Check(m.rapid, err)
		}
	}
	room := testkit.Must(m.rooms.Get(m.rapid.Context(), operator, *one.RoomID))(m.rapid)
	if room.Status != rooms.Started {
		return
	}
	if room.SettledBy == rooms.SettledByConsensus && rapid.IntRange(0, 2).Draw(m.rapid, "contradict") == 0 {
		m.say(one, one.Players[0].UserID, one.Players[0].UserID)
		m.say(one, one.Players[1].UserID, one.Players[1].UserID)
		if rapid.Bool().Draw(m.rapid, "no decision") {
			m.passDispute(m.id, one)
		}
		return
	}
	places := map[int64]int{one.Players[0].UserID: 1, one.Players[1].UserID: rapid.IntRange(1, 2).Draw(m.rapid, "place")}
	testkit.Check(m.rapid, m.finish(one, places))
}

// passWhole makes the time of a match be over, and that of its dispute.
func (m *model) passWhole(one Match) {
	m.rapid.Helper()
	if one.RoomID != nil {
		room := testkit.Must(m.rooms.Get(m.rapid.Context(), operator, *one.RoomID))(m.rapid)
		if room.Status == rooms.Disputed {
			m.passDispute(m.id, one)
			return
		}
	}
	m.pass(m.id, one)
}

// check compares the money, the versions and the numbers of the events.
func (m *model) check() {
	m.rapid.Helper()
	m.money.Audit()
	v := m.get(m.id)
	if v.Version < m.version {
		m.rapid.Fatalf("version %d after %d", v.Version, m.version)
	}
	m.version = v.Version
	list := testkit.Must(m.db.Client.LRange(m.rapid.Context(), keys.TourEvents(m.gameID, m.id), 0, -1).Result())(m.rapid)
	for i, entry := range list {
		seq, _, _ := strings.Cut(entry, "-")
		if seq != strconv.Itoa(i+1) {
			m.rapid.Fatalf("event %d is %s", i+1, entry)
		}
		testkit.Must(events.Render(entry, strconv.FormatInt(m.id, 10)))(m.rapid)
	}
	if position, _, _ := strings.Cut(list[len(list)-1], "|"); position != v.Position || int(v.Seq) != len(list) {
		m.rapid.Fatalf("the position is %s and the last event %s", v.Position, position)
	}
}

// end drives the tournament to its end, whoever is there, and compares all balances.
func (m *model) end() {
	m.rapid.Helper()
	if s := m.get(m.id).Status; s == Registration || s == CheckIn {
		_, err := m.Start(m.rapid.Context(), operator, m.gameID, m.id, idempotency.Receipt{})
		m.must("start", err)
	}
	for look := 0; !m.get(m.id).Status.Ended(); look++ {
		if look > 60 {
			m.rapid.Fatalf("it does not end: %+v", m.get(m.id))
		}
		for _, one := range m.currentMatches(m.id) {
			if !one.isDecided() {
				m.passWhole(one)
			}
		}
		m.fence++
		m.lead()
	}
	m.check()
	v := m.get(m.id)
	sum := wallet.Units(0)
	for user := range int64(modelPlayers) {
		b := m.money.Balance(user + 1)
		free, held := b.SpendableUnits, b.HeldUnits
		if sum += free; held != 0 {
			m.rapid.Fatalf("player %d holds %d", user+1, held)
		}
		if v.Status == Cancelled && free != 1000 {
			m.rapid.Fatalf("player %d has %d after a cancelled tournament", user+1, free)
		}
	}
	want := wallet.Units(modelPlayers * 1000)
	if v.Status == Finished {
		want += v.AddedPrizeUnits - v.RakeUnits
		prize, err := m.Prizes.(*prizes.Service).Read(m.rapid.Context(), m.gameID, keys.TourRef(m.id))
		if err != nil || prize.State != prizes.StatePaid || prize.PoolUnits != v.PotUnits {
			m.rapid.Fatalf("%+v, %v", prize, err)
		}
	}
	if sum != want {
		m.rapid.Fatalf("the players have %d; want %d", sum, want)
	}
}
