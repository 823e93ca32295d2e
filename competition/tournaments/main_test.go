package tournaments

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// fixture is a game of its own with a token and all that tournaments use.
type fixture struct {
	t testkit.T
	*Service
	people *domaintest.Players
	gameID int64
	db     *redisdb.DB
	wallet *wallet.Service
	money  domaintest.Money
	limits *limits.Service
	rooms  *rooms.Service
	boards *leaderboards.Service
	token  wallet.Token
	fence  int64 // of the leader
	given  map[int64]wallet.Units

	matchConsumer *rooms.ResultConsumer // of rooms
}

var lastGame atomic.Int64

func newFixture(t testkit.T, db *redisdb.DB) *fixture {
	t.Helper()
	p := domaintest.NewPlayers(lastGame.Add(1))
	p.Settings.RakeBps = 500
	f := &fixture{t: t, people: p, gameID: p.GameID, db: db, fence: 1, given: map[int64]wallet.Units{}}
	f.wallet = wallet.New(db, p, wallet.Options{})
	f.limits = limits.New(db, f.wallet, p)
	f.newRooms()
	prizeService := prizes.New(db, f.wallet)
	f.boards = leaderboards.New(db, p, p, leaderboards.Options{})
	f.Service = New(db, Deps{
		Wallets: f.wallet, Players: p, Games: p, Rooms: f.rooms, Prizes: prizeService, Boards: f.boards,
	}, Options{})
	f.money = domaintest.NewMoney(t, db, f.wallet, f.gameID, wallet.TokenDefinition{Code: fmt.Sprintf("GOLD%d", f.gameID)})
	f.token = f.money.Token
	return f
}

// newRooms makes rooms of a node. The results of matches wait until consume is called.
func (f *fixture) newRooms() {
	consumer := new(rooms.ResultConsumer)
	f.matchConsumer = consumer
	f.rooms = rooms.New(f.db, f.wallet, f.people, f.people, rooms.Options{
		KeyedHash: domaintest.KeyedHash,
		MatchConsumer: func(ctx context.Context, e rooms.Ended) error {
			if *consumer == nil {
				return errors.New("nobody takes the results of matches")
			}
			return (*consumer)(ctx, e)
		},
	})
}

// consume gives the results of matches to a consumer.
func (f *fixture) consume(c rooms.ResultConsumer) { *f.matchConsumer = c }

var operator = domaintest.Operator

func (f *fixture) player(id int64) principal.Caller { return f.people.Player(id) }

// give credits units to players.
func (f *fixture) give(units wallet.Units, userIDs ...int64) {
	f.t.Helper()
	f.money.Credit(wallet.AmountInput(units.Decimal(2)), userIDs...)
	for _, id := range userIDs {
		f.given[id] += units
	}
}

// swiss returns a paid Swiss tournament that starts in an hour.
func (f *fixture) swiss(change func(in *CreateInput)) CreateInput {
	in := CreateInput{
		Name: "Cup", Format: FormatSwiss, EntryTokenID: f.token.ID, EntryFee: "2.50", MaxEntrants: 100,
		StartsAt: new(time.Now().Add(time.Hour)), Payout: []int{6000, 4000},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// create makes a tournament and opens it.
func (f *fixture) create(in CreateInput) int64 {
	f.t.Helper()
	return testkit.Must(f.Create(f.t.Context(), operator, f.gameID, in, idempotency.Receipt{}))(f.t).Tournament.ID
}

// enter lets players join, who get the fee first.
func (f *fixture) enter(id int64, userIDs ...int64) {
	f.t.Helper()
	for _, userID := range userIDs {
		f.give(1000, userID)
		if _, err := f.Join(f.t.Context(), f.player(userID), f.gameID, id, idempotency.Receipt{}); err != nil {
			f.t.Fatalf("player %d joins: %v", userID, err)
		}
	}
}

func (f *fixture) get(id int64) Tournament {
	f.t.Helper()
	return testkit.Must(f.Get(f.t.Context(), operator, f.gameID, id))(f.t)
}

// lead does what the leader has to do now.
func (f *fixture) lead() {
	f.t.Helper()
	testkit.Must(f.driveGames(f.t.Context(), f.fence, []int64{f.gameID}))(f.t)
}

// leadUntil leads until the tournament has a status.
func (f *fixture) leadUntil(t *testing.T, id int64, want Status) Tournament {
	t.Helper()
	var v Tournament
	redistest.Eventually(t, "the tournament is "+string(want), func() bool {
		f.lead()
		v = f.get(id)
		return v.Status == want
	})
	return v
}

// total returns a total of the token in the audit, 0 without one.
func (f *fixture) total(name func(audit.TokenTotal) wallet.Units) wallet.Units {
	f.t.Helper()
	r := testkit.Must(moneytest.NewAudit(f.db, f.wallet).Audit(f.t.Context(), f.gameID))(f.t)
	i := slices.IndexFunc(r.Tokens, func(total audit.TokenTotal) bool { return total.TokenCode == f.token.Code })
	if i < 0 {
		return 0
	}
	return name(r.Tokens[i])
}

func house(t audit.TokenTotal) wallet.Units { return t.HouseUnits }

// currentMatches returns the matches of the round.
func (f *fixture) currentMatches(id int64) []Match {
	f.t.Helper()
	v := f.get(id)
	if v.Round == 0 {
		return nil
	}
	list, _ := testkit.Must2(f.Matches(f.t.Context(), operator, f.gameID, id, v.Round, "", 4096))(f.t)
	return list
}

// sit seats a player in the room of a match.
func (f *fixture) sit(m Match, userIDs ...int64) {
	f.t.Helper()
	for _, userID := range userIDs {
		if _, err := f.rooms.Join(f.t.Context(), f.player(userID), *m.RoomID, idempotency.Receipt{}); err != nil {
			f.t.Fatalf("player %d sits down for %s: %v", userID, m.ID, err)
		}
	}
}

// replaceField replaces a field that is still the same: a leader may have decided the match.
var replaceField = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return 1`)

// pass makes the time of a match be over, in the tournament and in its room.
func (f *fixture) pass(id int64, m Match) {
	f.t.Helper()
	ctx, matches := f.t.Context(), keys.TourMatches(f.gameID, id)
	text := testkit.Must(f.db.Client.HGet(ctx, matches, m.ID).Result())(f.t)
	_, rest, _ := strings.Cut(text, "|")
	err := replaceField.Run(ctx, f.db.Client, []string{matches}, m.ID, text, "1|"+rest).Err()
	if m.RoomID != nil {
		shard, _ := keys.RoomShard(*m.RoomID)
		err = errors.Join(err, f.db.Client.HSet(ctx, keys.Room(shard, *m.RoomID), "deadline", 1).Err())
	}
	testkit.Check(f.t, err)
}

// finish ends the room of a match, in which both sit, with places by user id, and reports that as
// the outbox does.
func (f *fixture) finish(m Match, places map[int64]int) error {
	f.t.Helper()
	var list []rooms.Placement
	ended := rooms.Ended{
		RoomID: *m.RoomID, GameID: f.gameID, Status: rooms.Finished, StartedAt: time.Now(), EndedAt: time.Now(),
	}
	for userID, place := range places {
		list = append(list, rooms.Placement{UserID: userID, Place: place})
		ended.Places = append(ended.Places, rooms.Place{UserID: userID, Place: place})
	}
	for _, caller := range f.settlers(m) {
		testkit.Must(f.rooms.Finish(f.t.Context(), caller, *m.RoomID, list, idempotency.Receipt{}))(f.t, "finish %s", m.ID)
	}
	return f.report(m, ended)
}

// settlers are those who end a match: its server, or its players in agreement.
func (f *fixture) settlers(m Match) []principal.Caller {
	f.t.Helper()
	server := f.people.Server()
	room := testkit.Must(f.rooms.Get(f.t.Context(), server, *m.RoomID))(f.t)
	if room.SettledBy == rooms.SettledByServer {
		return []principal.Caller{server}
	}
	var players []principal.Caller
	for _, p := range m.Players {
		players = append(players, f.player(p.UserID))
	}
	return players
}

// report reports the end of the room of a match.
func (f *fixture) report(m Match, ended rooms.Ended) error {
	ended.GameID = f.gameID
	ended.Consumer = fmt.Sprintf("t.%d.%s.%d", f.tourOf(*m.RoomID), m.ID, m.Attempt)
	return f.RoomEnded(f.t.Context(), ended)
}

// tourOf returns the tournament that a room feeds.
func (f *fixture) tourOf(roomID string) int64 {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	settings := testkit.Must(f.db.Client.HGet(f.t.Context(), keys.Room(shard, roomID), "settings").Result())(f.t)
	for i := len(settings) - 1; ; i-- {
		if settings[i] == '|' {
			id, _, _, ok := parseConsumer(settings[i+1:])
			if !ok {
				f.t.Fatalf("the room feeds %q", settings[i+1:])
			}
			return id
		}
	}
}

// onBothStores runs a test on a single server and on a Cluster.
func onBothStores(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, newFixture(t, db)) })
}

// opponentOf returns the other player of a match with two.
func (m *Match) opponentOf(userID int64) int64 {
	if m.Players[0].UserID == userID {
		return m.Players[1].UserID
	}
	return m.Players[0].UserID
}
