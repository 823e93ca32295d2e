package tournaments

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// people are the players of a test: every id is a player of the game.
type people struct {
	gameID int64
	born   time.Time
	minAge time.Duration // that the game asks of those who stake
}

func (p *people) Game(context.Context, int64) (int64, error) { return p.gameID, nil }

func (p *people) RecentProfile(_ context.Context, id int64) (users.Profile, error) {
	return users.Profile{ID: id, Username: "p" + strconv.FormatInt(id, 10)}, nil
}

func (p *people) CreatedAt(context.Context, int64) (time.Time, error) { return p.born, nil }

func (p *people) Profiles(ctx context.Context, ids ...int64) (map[int64]users.Profile, error) {
	found := map[int64]users.Profile{}
	for _, id := range ids {
		found[id], _ = p.RecentProfile(ctx, id)
	}
	return found, nil
}

func (p *people) AreFriends(context.Context, int64, ...int64) (map[int64]bool, error) {
	return nil, nil
}

func (p *people) ListedFriends(context.Context, int64, int) ([]int64, error) { return nil, nil }

func (p *people) Find(_ context.Context, id int64) (games.Game, error) {
	if id != p.gameID {
		return games.Game{}, apierror.GameNotFound
	}
	settings := games.DefaultSettings()
	settings.RakeBps, settings.MinStakeAge = 500, p.minAge
	return games.Game{ID: id, Settings: settings}, nil
}

// tester is what fixtures need of *testing.T and of *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Context() context.Context
}

// fixture is a game of its own with a token and all that tournaments use.
type fixture struct {
	t tester
	*Service
	people *people
	gameID int64
	db     *redisdb.DB
	wallet *wallet.Service
	rooms  *rooms.Service
	boards *leaderboards.Service
	token  wallet.Token
	fence  int64 // of the leader
	given  map[int64]wallet.Units
}

var lastGame atomic.Int64

func newFixture(t tester, db *redisdb.DB) *fixture {
	t.Helper()
	p := &people{gameID: lastGame.Add(1), born: time.Now().Add(-time.Hour)}
	f := &fixture{t: t, people: p, gameID: p.gameID, db: db, fence: 1, given: map[int64]wallet.Units{}}
	f.wallet = wallet.New(db, p, wallet.Options{})
	f.rooms = newRooms(db, f.wallet, p)
	prizeService := prizes.New(db, f.wallet)
	f.boards = leaderboards.New(db, p, p, leaderboards.Options{})
	f.Service = New(db, Deps{
		Wallets: f.wallet, Players: p, Games: p, Rooms: f.rooms, Prizes: prizeService, Boards: f.boards,
	}, Options{})
	token, err := f.wallet.CreateToken(t.Context(), operator, wallet.TokenDefinition{
		Code: fmt.Sprintf("GOLD%d", f.gameID), Name: "Gold", Metadata: wallet.Metadata{Decimals: "2"},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	f.token = token
	return f
}

// newRooms returns rooms of a node.
func newRooms(db *redisdb.DB, wallets *wallet.Service, p *people) *rooms.Service {
	return rooms.New(db, wallets, p, p, rooms.Options{
		KeyedHash: func(_ context.Context, label, text string) ([]byte, error) {
			sum := sha256.Sum256([]byte(label + text))
			return sum[:], nil
		},
	})
}

var operator = principal.Caller{Role: principal.Operator}

func (f *fixture) player(id int64) principal.Caller {
	return principal.Caller{Role: principal.Player, UserID: id, GameID: f.gameID}
}

// give credits units to players.
func (f *fixture) give(units wallet.Units, userIDs ...int64) {
	f.t.Helper()
	for _, id := range userIDs {
		_, err := f.wallet.Credit(f.t.Context(), operator, wallet.CreditInput{
			UserID: id, TokenCode: f.token.Code, Amount: wallet.AmountInput(units.Decimal(2)), Reason: "test",
		}, idempotency.Receipt{})
		if err != nil {
			f.t.Fatalf("%v", err)
		}
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
	r, err := f.Create(f.t.Context(), operator, f.gameID, in, idempotency.Receipt{})
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	return r.Tournament.ID
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
	v, err := f.Get(f.t.Context(), operator, f.gameID, id)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	return v
}

// lead does what the leader has to do now.
func (f *fixture) lead() {
	f.t.Helper()
	if _, err := f.driveGames(f.t.Context(), f.fence, []int64{f.gameID}); err != nil {
		f.t.Fatalf("%v", err)
	}
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

// check requires that money is conserved and that what players hold is the escrow.
func (f *fixture) check() {
	f.t.Helper()
	r, err := f.wallet.AuditDeep(f.t.Context(), f.gameID)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	if !r.Balanced || !r.HeldCounted {
		f.t.Fatalf("the money is not conserved: %+v", r)
	}
}

// balance returns what a player can spend and holds.
func (f *fixture) balance(userID int64) (free, held wallet.Units) {
	f.t.Helper()
	b, err := f.wallet.ReadBalance(f.t.Context(), f.gameID, userID, f.token.Code)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	return b.SpendableUnits, b.HeldUnits
}

func (f *fixture) wantBalance(userID int64, free, held wallet.Units) {
	f.t.Helper()
	if gotFree, gotHeld := f.balance(userID); gotFree != free || gotHeld != held {
		f.t.Errorf("player %d has %d and holds %d; want %d and %d", userID, gotFree, gotHeld, free, held)
	}
}

// house returns what the house has.
func (f *fixture) total(name func(wallet.TokenTotal) wallet.Units) wallet.Units {
	f.t.Helper()
	r, err := f.wallet.Audit(f.t.Context(), f.gameID)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	i := slices.IndexFunc(r.Tokens, func(total wallet.TokenTotal) bool { return total.TokenCode == f.token.Code })
	if i < 0 {
		return 0
	}
	return name(r.Tokens[i])
}

func house(t wallet.TokenTotal) wallet.Units { return t.HouseUnits }

// currentMatches returns the matches of the round.
func (f *fixture) currentMatches(id int64) []Match {
	f.t.Helper()
	v := f.get(id)
	if v.Round == 0 {
		return nil
	}
	list, _, err := f.Matches(f.t.Context(), operator, f.gameID, id, v.Round, "", 4096)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
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
	text, err := f.db.Client.HGet(ctx, matches, m.ID).Result()
	if err != nil {
		f.t.Fatalf("%v", err)
	}
	_, rest, _ := strings.Cut(text, "|")
	err = replaceField.Run(ctx, f.db.Client, []string{matches}, m.ID, text, "1|"+rest).Err()
	if m.RoomID != nil {
		shard, _ := keys.RoomShard(*m.RoomID)
		err = errors.Join(err, f.db.Client.HSet(ctx, keys.Room(shard, *m.RoomID), "deadline", 1).Err())
	}
	if err != nil {
		f.t.Fatalf("%v", err)
	}
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
		if _, err := f.rooms.Finish(f.t.Context(), caller, *m.RoomID, list, idempotency.Receipt{}); err != nil {
			f.t.Fatalf("finish %s: %v", m.ID, err)
		}
	}
	return f.report(m, ended)
}

// settlers are those who end a match: its server, or its players in agreement.
func (f *fixture) settlers(m Match) []principal.Caller {
	f.t.Helper()
	server := principal.Caller{Role: principal.Server, GameID: f.gameID}
	room, err := f.rooms.Get(f.t.Context(), server, *m.RoomID)
	if err != nil {
		f.t.Fatalf("%v", err)
	}
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
	settings, err := f.db.Client.HGet(f.t.Context(), keys.Room(shard, roomID), "settings").Result()
	if err != nil {
		f.t.Fatalf("%v", err)
	}
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

func wantCode(t *testing.T, err error, want *apierror.Error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v; want %s", err, want.Code)
	}
}

// opponentOf returns the other player of a match with two.
func (m *Match) opponentOf(userID int64) int64 {
	if m.Players[0].UserID == userID {
		return m.Players[1].UserID
	}
	return m.Players[0].UserID
}
