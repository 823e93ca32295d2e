package rooms_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/rooms"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// house is a service on a store, with the players and the game that the test says.
type house struct {
	t       testing.TB
	db      *redisdb.DB
	rooms   *rooms.Service
	wallet  *wallet.Service
	token   wallet.Token
	game    int64
	set     games.Settings
	friends sync.Map // [2]int64 → true
}

var lastID atomic.Int64 // games and players of all tests are different

const homes = 3

func newHouse(t testing.TB, db *redisdb.DB) *house {
	t.Helper()
	h := &house{t: t, db: db, game: lastID.Add(1), set: games.DefaultSettings()}
	h.wallet = wallet.New(db, h, wallet.Options{})
	h.rooms = h.node()
	var err error
	h.token, err = h.wallet.CreateToken(t.Context(), operator, wallet.TokenDefinition{TokenID: fmt.Sprintf("T%d", h.game), Name: "Test", Metadata: wallet.Metadata{Decimals: "2"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// node is one more service on the same store.
func (h *house) node() *rooms.Service {
	return rooms.New(h.db, h.wallet, h, h, rooms.Options{Shards: homes})
}

func (h *house) Get(_ context.Context, id int64) (games.Game, error) {
	return games.Game{ID: id, Settings: h.set}, nil
}

// Game returns the one game of the fixture for every player.
func (h *house) Game(context.Context, int64) (int64, error) { return h.game, nil }

func (h *house) Profiles(_ context.Context, ids ...int64) (map[int64]users.Profile, error) {
	list := map[int64]users.Profile{}
	for _, id := range ids {
		list[id] = users.Profile{ID: id, Username: fmt.Sprintf(`Q"|ü%d`, id)}
	}
	return list, nil
}

func (h *house) AreFriends(_ context.Context, me int64, others ...int64) (map[int64]bool, error) {
	list := map[int64]bool{}
	for _, other := range others {
		if _, ok := h.friends.Load([2]int64{min(me, other), max(me, other)}); ok {
			list[other] = true
		}
	}
	return list, nil
}

func (h *house) befriend(a, b principal.Caller) {
	h.friends.Store([2]int64{min(a.User, b.User), max(a.User, b.User)}, true)
}

// player is a new player with some units of the token.
func (h *house) player(units int64) principal.Caller {
	h.t.Helper()
	p := principal.Caller{Role: principal.Player, User: lastID.Add(1), Game: h.game}
	if units > 0 {
		amount := wallet.AmountInput(wallet.Units(units).Decimal(h.token.Decimals))
		if _, err := h.wallet.Credit(h.t.Context(), operator, wallet.CreditInput{UserID: p.User, TokenID: h.token.TokenID, Amount: amount, Reason: "test"}, idempotency.Receipt{}); err != nil {
			h.t.Fatal(err)
		}
	}
	return p
}

func (h *house) server() principal.Caller {
	return principal.Caller{Role: principal.Server, Game: h.game}
}

var operator = principal.Caller{Role: principal.Operator}

var noKey idempotency.Receipt

// does takes what a verb answers and demands that it was done.
func does(t testing.TB) func(rooms.Result, error) rooms.Room {
	return func(a rooms.Result, err error) rooms.Room {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a.Room
	}
}

// refuses demands that a verb was refused with a word.
func refuses(t testing.TB, want *apierror.Error) func(rooms.Result, error) *apierror.Error {
	return func(_ rooms.Result, err error) *apierror.Error {
		t.Helper()
		refusal, ok := apierror.As(err)
		if !ok || refusal.Code != want.Code {
			t.Fatalf("answers %v, want %s", err, want.Code)
		}
		return refusal
	}
}

// paid is the input of a room with an entry.
func (h *house) paid(entry string, players int) rooms.CreateInput {
	return rooms.CreateInput{EntryTokenID: h.token.ID, RoomEntry: wallet.AmountInput(entry), MaxPlayers: players}
}

// has demands what a player can spend and holds, in minor units.
func (h *house) has(p principal.Caller, free, held int64) {
	h.t.Helper()
	b, err := h.wallet.Balance(h.t.Context(), p.User, h.token.TokenID)
	if err != nil {
		h.t.Fatal(err)
	}
	if int64(b.Amount) != free || int64(b.HeldAmount) != held {
		h.t.Fatalf("player %d has %d and holds %d; want %d and %d", p.User, b.Amount, b.HeldAmount, free, held)
	}
}

// balanced demands that no unit was made or lost, by the totals and by a recount.
func (h *house) balanced() {
	h.t.Helper()
	report, err := h.wallet.AuditDeep(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if !report.Balanced || len(report.Differences) > 0 || !report.HeldCounted {
		h.t.Fatalf("the books do not balance: %+v", report)
	}
}

// told lists the types of a room's events and demands that no number is left out.
func told(t testing.TB, db *redisdb.DB, home string, r rooms.Room) []string {
	t.Helper()
	entries, err := db.Client.XRange(t.Context(), "{"+home+"}:room:"+r.RoomID+":events", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	return eventTypes(t, entries, 0, r.RoomID)
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// eventTypes lists the types of the entries that follow the first told ones.
func eventTypes(t fataler, entries []redis.XMessage, told int, roomID string) []string {
	t.Helper()
	var types []string
	for i, entry := range entries {
		var e struct {
			Type, RoomID, Position string
			Seq                    int64
			At                     time.Time
			Data                   map[string]any
		}
		text, _ := entry.Values["e"].(string)
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("event %s: %v: %s", entry.ID, err, text)
		}
		seq := told + i + 1
		if e.Seq != int64(seq) || e.Position != entry.ID || !strings.HasPrefix(entry.ID, fmt.Sprintf("%d-", seq)) || e.RoomID != roomID ||
			e.At.IsZero() || e.Data["version"] == nil {
			t.Fatalf("event %d is %s: %s", seq, entry.ID, text)
		}
		types = append(types, e.Type)
	}
	return types
}

func each(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, newHouse(t, db)) })
}

// eachAndEmbedded is for stories that a newcomer's store must tell too.
func eachAndEmbedded(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	each(t, test)
	t.Run("embedded", func(t *testing.T) {
		db, err := redisdb.Open(redisdb.EmbeddedURL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		test(t, newHouse(t, db))
	})
}

func TestAPaidRoomFromOpeningToPayout(t *testing.T) {
	eachAndEmbedded(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c, d := h.player(1000), h.player(1000), h.player(1000), h.player(249)
		in := h.paid("2.5", 3)
		in.RakeBps, in.Payout, in.Metadata = new(333), []int{6000, 4000}, json.RawMessage(` {"mode": "blitz"} `)
		room := does(t)(h.rooms.Create(ctx, a, in, noKey))
		if room.Status != rooms.Created || room.Version != 1 || room.Seq != 1 || room.Pot != 250 || room.Host != a.User || room.MinPlayers != 2 {
			t.Fatalf("opened: %+v", room)
		}
		h.has(a, 750, 250)
		refusal := refuses(t, apierror.InsufficientFunds)(h.rooms.Join(ctx, d, room.RoomID, noKey))
		text, _ := json.Marshal(refusal.Members)
		if want := fmt.Sprintf(`{"available":2.49,"availableAmount":"249","required":2.5,"requiredAmount":"250","tokenId":%q}`, h.token.TokenID); string(text) != want {
			t.Fatalf("insufficient_funds says %s, want %s", text, want)
		}
		refuses(t, apierror.NotEnoughPlayers)(h.rooms.Start(ctx, a, room.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, b, room.RoomID, noKey))
		room = does(t)(h.rooms.Join(ctx, c, room.RoomID, noKey))
		if again := does(t)(h.rooms.Join(ctx, c, room.RoomID, noKey)); again.Version != room.Version || again.Seq != room.Seq {
			t.Fatal("joining twice changed the room")
		}
		refuses(t, apierror.RoomFull)(h.rooms.Join(ctx, h.player(1000), room.RoomID, noKey))
		refuses(t, apierror.NotHost)(h.rooms.Start(ctx, b, room.RoomID, noKey))
		refuses(t, apierror.NotStarted)(h.rooms.Finish(ctx, h.server(), room.RoomID, nil, noKey))
		room = does(t)(h.rooms.Start(ctx, a, room.RoomID, noKey))
		if room.Status != rooms.Started || room.StartedAt.IsZero() {
			t.Fatalf("started: %+v", room)
		}
		refuses(t, apierror.AlreadyStarted)(h.rooms.Start(ctx, a, room.RoomID, noKey))
		refuses(t, apierror.AlreadyStarted)(h.rooms.Join(ctx, d, room.RoomID, noKey))
		refuses(t, apierror.AlreadyStarted)(h.rooms.Kick(ctx, a, rooms.KickInput{RoomID: room.RoomID, UserID: b.User}, noKey))
		refuses(t, apierror.AlreadyStarted)(h.rooms.Cancel(ctx, a, room.RoomID, noKey))
		refuses(t, apierror.AlreadyStarted)(h.rooms.Ready(ctx, a, room.RoomID, true, noKey))
		result := []rooms.Placement{{UserID: c.User, Place: 1, Score: new(12.5)}, {UserID: b.User, Place: 2}, {UserID: a.User, Place: 2}}
		refuses(t, apierror.Forbidden)(h.rooms.Finish(ctx, a, room.RoomID, result, noKey))
		refuses(t, apierror.InvalidRequest)(h.rooms.Finish(ctx, h.server(), room.RoomID, result[:2], noKey))
		stranger := principal.Caller{Role: principal.Server, Game: h.game + 1_000_000}
		refuses(t, apierror.RoomNotFound)(h.rooms.Finish(ctx, stranger, room.RoomID, result, noKey))
		room = does(t)(h.rooms.Finish(ctx, h.server(), room.RoomID, result, noKey))
		// pot 750, rake 24; of 726 the first gets 436 by rounding, the two others share 290.
		if room.Status != rooms.Finished || room.Pot != 750 || room.Rake != 24 {
			t.Fatalf("finished: %+v", room)
		}
		h.has(a, 750+145, 0)
		h.has(b, 750+145, 0)
		h.has(c, 750+436, 0)
		if again := does(t)(h.rooms.Finish(ctx, h.server(), room.RoomID, []rooms.Placement{result[2], result[0], result[1]}, noKey)); again.Version != room.Version {
			t.Fatal("the same result again changed the room")
		}
		refuses(t, apierror.ResultConflict)(h.rooms.Finish(ctx, h.server(), room.RoomID, []rooms.Placement{
			{UserID: a.User, Place: 1}, {UserID: b.User, Place: 2}, {UserID: c.User, Place: 3},
		}, noKey))
		refuses(t, apierror.RoomClosed)(h.rooms.Cancel(ctx, operator, room.RoomID, noKey))
		refuses(t, apierror.RoomClosed)(h.rooms.Leave(ctx, a, room.RoomID, noKey))
		got := strings.Join(told(t, h.db, "e:main", room), " ")
		if want := "room.created room.joined room.joined room.started room.finished"; got != want {
			t.Fatalf("told %s, want %s", got, want)
		}
		if h.db.Kind() != redisdb.KindEmbedded {
			h.balanced()
		}
	})
}

func TestTheRoomOfTheWire(t *testing.T) {
	h := newHouse(t, redistest.Single(t))
	a, b := h.player(1000), h.player(1000)
	in := h.paid("2.5", 2)
	in.AutoStart = true
	does(t)(h.rooms.Join(t.Context(), b, does(t)(h.rooms.Create(t.Context(), a, in, noKey)).RoomID, noKey))
	page, err := h.rooms.List(t.Context(), a, rooms.ListQuery{Status: rooms.Started})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	r := does(t)(h.rooms.Finish(t.Context(), h.server(), page.Items[0].RoomID,
		[]rooms.Placement{{UserID: a.User, Place: 2}, {UserID: b.User, Place: 1, Score: new(3.0)}}, noKey))
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	at := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	user := func(p principal.Caller) string {
		return fmt.Sprintf(`{"id":%d,"username":"Q\"|ü%d","avatar":null}`, p.User, p.User)
	}
	want := strings.NewReplacer(
		"$id", fmt.Sprint(r.ID), "$room", r.RoomID, "$code", r.Code, "$game", fmt.Sprint(h.game), "$tid", fmt.Sprint(h.token.ID), "$token", h.token.TokenID,
		"$userA", user(a), "$userB", user(b), "$a", fmt.Sprint(a.User), "$b", fmt.Sprint(b.User), "$position", r.Position,
		"$joinA", at(r.Seats[0].JoinedAt), "$joinB", at(r.Seats[1].JoinedAt), "$created", at(r.CreatedAt), "$started", at(r.StartedAt), "$finished", at(r.FinishedAt),
	).Replace(`{"id":$id,"roomId":"$room","code":"$code","gameId":$game,` +
		`"entryToken":{"id":$tid,"tokenId":"$token","tokenName":"Test","logoUrl":null,"metadata":{"assetName":"","policyId":"","decimals":"2"},"volume":20},` +
		`"roomEntry":2.5,"roomEntryAmount":"250","totalWager":5,"totalWagerAmount":"500","creator":$userA,"host":$userA,"participants":[$userA,$userB],` +
		`"seats":[{"userId":$a,"state":"active","ready":false,"joinedAt":"$joinA"},{"userId":$b,"state":"active","ready":false,"joinedAt":"$joinB"}],` +
		`"maxPlayers":2,"minPlayers":2,"isFriendsOnly":false,"visibility":"public","autoStart":true,"settlement":"server","rakeBps":0,"payout":[10000],"tie":"split",` +
		`"metadata":{},"status":"FINISHED","reason":null,"version":3,"seq":4,"position":"$position","createdAt":"$created","startedAt":"$started","finishedAt":"$finished",` +
		`"results":[{"userId":$b,"place":1,"score":3},{"userId":$a,"place":2}],` +
		`"payouts":[{"userId":$b,"place":1,"payout":5,"amount":"500"},{"userId":$a,"place":2,"payout":0,"amount":"0"}],"refunds":null,` +
		`"rake":0,"rakeAmount":"0","rematchRoomId":null}`)
	if string(text) != want {
		t.Fatalf("the room is\n%s\nwant\n%s", text, want)
	}
	if !json.Valid(text) {
		t.Fatal("not JSON")
	}
}

func TestLeavingAfterTheStartForfeits(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c := h.player(1000), h.player(1000), h.player(1000)
		in := h.paid("1", 3)
		in.RakeBps = new(1000)
		room := does(t)(h.rooms.Create(ctx, a, in, noKey))
		does(t)(h.rooms.Join(ctx, b, room.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, c, room.RoomID, noKey))
		does(t)(h.rooms.Start(ctx, a, room.RoomID, noKey))
		room = does(t)(h.rooms.Leave(ctx, a, room.RoomID, noKey))
		if room.Status != rooms.Started || room.Host != b.User || room.Pot != 300 || len(room.ActivePlayers()) != 2 || room.Seats[0].State != rooms.Forfeited {
			t.Fatalf("after the first left: %+v", room)
		}
		h.has(a, 900, 100)
		refuses(t, apierror.NotParticipant)(h.rooms.Leave(ctx, a, room.RoomID, noKey))
		room = does(t)(h.rooms.Leave(ctx, c, room.RoomID, noKey))
		if room.Status != rooms.Finished || room.Rake != 30 || room.Pot != 300 {
			t.Fatalf("after the second left: %+v", room)
		}
		h.has(a, 900, 0)
		h.has(b, 900+270, 0)
		h.has(c, 900, 0)
		got := strings.Join(told(t, h.db, "e:main", room), " ")
		if want := "room.created room.joined room.joined room.started room.left room.host_changed room.left room.finished"; got != want {
			t.Fatalf("told %s", got)
		}
		h.balanced()

		free := does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: 2}, noKey))
		does(t)(h.rooms.Join(ctx, b, free.RoomID, noKey))
		does(t)(h.rooms.Start(ctx, a, free.RoomID, noKey))
		if free = does(t)(h.rooms.Leave(ctx, b, free.RoomID, noKey)); free.Status != rooms.Started {
			t.Fatalf("a free room with one left is %s", free.Status)
		}
		if free = does(t)(h.rooms.Leave(ctx, a, free.RoomID, noKey)); free.Status != rooms.Cancelled || free.Reason != "empty" {
			t.Fatalf("a free room with nobody is %s, %s", free.Status, free.Reason)
		}
	})
}

func TestATieForTheFirstPlaceCanRefund(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c := h.player(1000), h.player(1000), h.player(1000)
		in := h.paid("1", 3)
		in.RakeBps, in.Tie = new(1000), rooms.TieRefund
		room := does(t)(h.rooms.Create(ctx, a, in, noKey))
		does(t)(h.rooms.Join(ctx, b, room.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, c, room.RoomID, noKey))
		does(t)(h.rooms.Start(ctx, a, room.RoomID, noKey))
		does(t)(h.rooms.Leave(ctx, c, room.RoomID, noKey))
		room = does(t)(h.rooms.Finish(ctx, h.server(), room.RoomID, []rooms.Placement{{UserID: a.User, Place: 1}, {UserID: b.User, Place: 1}}, noKey))
		if room.Status != rooms.Finished || room.Rake != 0 {
			t.Fatalf("%+v", room)
		}
		for _, p := range []principal.Caller{a, b, c} {
			h.has(p, 1000, 0)
		}
		h.balanced()
	})
}

func TestTheHostsPowers(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c := h.player(1000), h.player(1000), h.player(1000)
		room := does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		id := room.RoomID
		does(t)(h.rooms.Join(ctx, b, id, noKey))
		refuses(t, apierror.NotHost)(h.rooms.Kick(ctx, b, rooms.KickInput{RoomID: id, UserID: a.User}, noKey))
		refuses(t, apierror.InvalidRequest)(h.rooms.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: a.User}, noKey))
		refuses(t, apierror.NotParticipant)(h.rooms.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: c.User}, noKey))
		refuses(t, apierror.Forbidden)(h.rooms.Kick(ctx, operator, rooms.KickInput{RoomID: id, UserID: b.User}, noKey))
		does(t)(h.rooms.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: b.User}, noKey))
		h.has(b, 1000, 0)
		does(t)(h.rooms.Join(ctx, b, id, noKey))
		refuses(t, apierror.NotParticipant)(h.rooms.TransferHost(ctx, a, id, c.User, noKey))
		if room = does(t)(h.rooms.TransferHost(ctx, a, id, b.User, noKey)); room.Host != b.User {
			t.Fatal("the role did not pass")
		}
		if again := does(t)(h.rooms.TransferHost(ctx, b, id, b.User, noKey)); again.Version != room.Version {
			t.Fatal("passing the role to oneself changed the room")
		}
		room = does(t)(h.rooms.Kick(ctx, h.server(), rooms.KickInput{RoomID: id, UserID: b.User, Ban: true}, noKey))
		if room.Host != a.User {
			t.Fatal("the role did not fall back")
		}
		refuses(t, apierror.Banned)(h.rooms.Join(ctx, b, id, noKey))
		room = does(t)(h.rooms.Cancel(ctx, a, id, noKey))
		if room.Status != rooms.Cancelled || room.Reason != "host" {
			t.Fatalf("%+v", room)
		}
		h.has(a, 1000, 0)
		refuses(t, apierror.RoomClosed)(h.rooms.Join(ctx, c, id, noKey))

		room = does(t)(h.rooms.Create(ctx, a, h.paid("1", 3), noKey))
		does(t)(h.rooms.Join(ctx, b, room.RoomID, noKey))
		if room = does(t)(h.rooms.Leave(ctx, a, room.RoomID, noKey)); room.Host != b.User || room.Status != rooms.Created {
			t.Fatalf("the host left: %+v", room)
		}
		if room = does(t)(h.rooms.Leave(ctx, b, room.RoomID, noKey)); room.Status != rooms.Cancelled || room.Reason != "empty" || room.Host != b.User {
			t.Fatalf("the last one left: %+v", room)
		}
		h.balanced()
	})
}

func TestARoomStartsByItselfWhenFullOrReady(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c := h.player(0), h.player(0), h.player(0)
		open := func(maxPlayers, minPlayers int) string {
			return does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: maxPlayers, MinPlayers: &minPlayers, AutoStart: true}, noKey)).RoomID
		}
		full := open(2, 2)
		if r := does(t)(h.rooms.Join(ctx, b, full, noKey)); r.Status != rooms.Started || r.Version != 2 || r.Seq != 3 {
			t.Fatalf("full: %+v", r)
		}
		ready := open(3, 2)
		if r := does(t)(h.rooms.Ready(ctx, a, ready, true, noKey)); r.Status != rooms.Created {
			t.Fatal("started with too few")
		}
		does(t)(h.rooms.Join(ctx, b, ready, noKey))
		if r := does(t)(h.rooms.Ready(ctx, b, ready, true, noKey)); r.Status != rooms.Started {
			t.Fatal("not started although all are ready")
		}
		waiting := open(4, 2)
		does(t)(h.rooms.Join(ctx, b, waiting, noKey))
		does(t)(h.rooms.Join(ctx, c, waiting, noKey))
		does(t)(h.rooms.Ready(ctx, a, waiting, true, noKey))
		does(t)(h.rooms.Ready(ctx, b, waiting, true, noKey))
		if r := does(t)(h.rooms.Leave(ctx, c, waiting, noKey)); r.Status != rooms.Started {
			t.Fatal("not started when the one left who was not ready")
		}
		if r := does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: 1, AutoStart: true}, noKey)); r.Status != rooms.Started {
			t.Fatal("a room for one does not start full")
		}
	})
}

func TestWhoSeesARoom(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, friend, stranger := h.player(0), h.player(0), h.player(0)
		h.befriend(a, friend)
		other := principal.Caller{Role: principal.Player, User: stranger.User, Game: h.game + 1_000_000}
		sees := func(p principal.Caller, r rooms.Room, want bool) {
			t.Helper()
			byID, err1 := h.rooms.Get(ctx, p, r.RoomID)
			byCode, err2 := h.rooms.GetByCode(ctx, p, strings.ToLower(r.Code))
			if want && (err1 != nil || err2 != nil || byID.RoomID != r.RoomID || byCode.RoomID != r.RoomID) {
				t.Fatalf("%s does not see the room: %v, %v", p.ActorID(), err1, err2)
			}
			if !want && (!errors.Is(err1, apierror.RoomNotFound) || !errors.Is(err2, apierror.RoomNotFound)) {
				t.Fatalf("%s sees the room: %v, %v", p.ActorID(), err1, err2)
			}
		}
		private := does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, Visibility: rooms.Private}, noKey))
		for p, want := range map[principal.Caller]bool{a: true, friend: true, stranger: false, other: false, h.server(): true, operator: true} {
			sees(p, private, want)
		}
		refuses(t, apierror.RoomNotFound)(h.rooms.Join(ctx, stranger, private.RoomID, noKey))
		refuses(t, apierror.RoomNotFound)(h.rooms.Start(ctx, stranger, private.RoomID, noKey))
		refuses(t, apierror.RoomNotFound)(h.rooms.Leave(ctx, stranger, private.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, friend, private.RoomID, noKey))

		friendly := does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, FriendsOnly: true}, noKey))
		sees(stranger, friendly, true)
		sees(other, friendly, false)
		refuses(t, apierror.FriendsOnly)(h.rooms.Join(ctx, stranger, friendly.RoomID, noKey))
		refuses(t, apierror.RoomNotFound)(h.rooms.Join(ctx, other, friendly.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, friend, friendly.RoomID, noKey))
		does(t)(h.rooms.Leave(ctx, a, friendly.RoomID, noKey))
		does(t)(h.rooms.Join(ctx, a, friendly.RoomID, noKey)) // the creator comes back

		unlisted := does(t)(h.rooms.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, Visibility: rooms.Unlisted}, noKey))
		sees(stranger, unlisted, true)
		does(t)(h.rooms.Join(ctx, stranger, unlisted.RoomID, noKey))

		for _, id := range []string{"", "x", "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-8000-8000-ffffffffffff"} {
			if _, err := h.rooms.Get(ctx, operator, id); !errors.Is(err, apierror.RoomNotFound) {
				t.Fatalf("%q: %v", id, err)
			}
			refuses(t, apierror.RoomNotFound)(h.rooms.Join(ctx, a, id, noKey))
		}
		capitals := strings.ToUpper(unlisted.RoomID)
		if r, err := h.rooms.Get(ctx, operator, capitals); err != nil || r.RoomID != unlisted.RoomID {
			t.Fatalf("an id in capitals: %v", err)
		}
		does(t)(h.rooms.Join(ctx, a, capitals, noKey))
	})
}

func TestListsAreNewestFirstAndInPages(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, friend, stranger := h.player(100_000), h.player(100_000), h.player(100_000)
		h.befriend(a, friend)
		ids := func(p principal.Caller, q rooms.ListQuery) []string {
			t.Helper()
			var list []string
			for {
				page, err := h.rooms.List(ctx, p, q)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Items {
					list = append(list, r.RoomID)
				}
				if q.Cursor = page.NextCursor; q.Cursor == "" {
					return list
				}
				if len(page.Items) != q.Limit {
					t.Fatalf("a page of %d with a next one", len(page.Items))
				}
			}
		}
		same := func(got []string, want ...string) {
			t.Helper()
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatalf("listed %v, want %v", got, want)
			}
		}
		var opened []string
		open := func(in rooms.CreateInput) string {
			id := does(t)(h.rooms.Create(ctx, a, in, noKey)).RoomID
			for len(opened) > 0 && id[:13] == opened[len(opened)-1][:13] { // ids of one millisecond have no order among them
				does(t)(h.rooms.Cancel(ctx, operator, id, noKey))
				id = does(t)(h.rooms.Create(ctx, a, in, noKey)).RoomID
			}
			opened = append(opened, id)
			return id
		}
		free := open(rooms.CreateInput{MaxPlayers: 2})
		cheap := open(h.paid("0.05", 2))
		dear := open(h.paid("3", 2))
		friendly := open(rooms.CreateInput{MaxPlayers: 2, FriendsOnly: true})
		open(rooms.CreateInput{MaxPlayers: 2, Visibility: rooms.Unlisted})
		open(rooms.CreateInput{MaxPlayers: 2, Visibility: rooms.Private})

		q := rooms.ListQuery{Limit: 2}
		same(ids(friend, q), friendly, dear, cheap, free)
		same(ids(stranger, q), dear, cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 3}), dear, cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 2, EntryTokenID: h.token.ID}), dear, cheap)
		same(ids(stranger, rooms.ListQuery{Limit: 2, MaxEntry: "0.5"}), cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 2, MaxEntry: "0"}), free)
		does(t)(h.rooms.Join(ctx, stranger, cheap, noKey))
		same(ids(friend, q), friendly, dear, free)
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Created}), friendly, dear, cheap, free)
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Created, HasSeat: new(false)}), cheap)
		does(t)(h.rooms.Start(ctx, a, cheap, noKey))
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Started}), cheap)
		does(t)(h.rooms.Kick(ctx, h.server(), rooms.KickInput{RoomID: dear, UserID: a.User}, noKey))
		same(ids(friend, q), friendly, free)
		if got := ids(h.server(), rooms.ListQuery{Limit: 100}); len(got) < 6 {
			t.Fatalf("the server sees %v", got)
		}
		if got := ids(operator, rooms.ListQuery{Limit: 100, Status: rooms.Started, GameID: h.game}); len(got) != 1 || got[0] != cheap {
			t.Fatalf("the operator sees %v", got)
		}
		if got := ids(operator, rooms.ListQuery{Limit: 100}); len(got) < 6 {
			t.Fatalf("the operator sees %v of all games", got)
		}
		for _, q := range []rooms.ListQuery{{Limit: 101}, {Limit: -1}, {Status: "OPEN"}, {Cursor: "???"}, {Cursor: "eA"}} {
			if _, err := h.rooms.List(ctx, a, q); !errors.Is(err, apierror.InvalidRequest) {
				t.Errorf("%+v: %v", q, err)
			}
		}
		if _, err := h.rooms.List(ctx, a, rooms.ListQuery{GameID: h.game + 1}); !errors.Is(err, apierror.GameNotFound) {
			t.Error(err)
		}
		if _, err := h.rooms.AdminList(ctx, a, rooms.ListQuery{}); !errors.Is(err, apierror.Forbidden) {
			t.Error(err)
		}
	})
}

func TestWhatCannotWorkIsRefusedAllAtOnce(t *testing.T) {
	h := newHouse(t, redistest.Single(t))
	h.set.MinRakeBps, h.set.RakeBps, h.set.MaxPlayers = 100, 200, 10
	a := h.player(int64(wallet.MaxUnits))
	fields := func(in rooms.CreateInput, want ...string) {
		t.Helper()
		refusal := refuses(t, apierror.InvalidRequest)(h.rooms.Create(t.Context(), a, in, noKey))
		var got []string
		for _, f := range refusal.FieldErrors {
			got = append(got, f.Field)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("refused %v, want %v", got, want)
		}
	}
	fields(rooms.CreateInput{}, "maxPlayers")
	fields(rooms.CreateInput{
		RoomEntry: "1", MaxPlayers: 11, MinPlayers: new(12), Visibility: "secret", Metadata: json.RawMessage(`[]`), Settlement: "consensus", RakeBps: new(99),
		Payout: []int{5000, 4999}, Tie: "coin",
	}, "entryTokenId", "maxPlayers", "minPlayers", "visibility", "settlement", "tie", "rakeBps", "payout", "metadata")
	fields(rooms.CreateInput{MaxPlayers: 2, Payout: []int{-1, 10001}}, "payout[0]")
	fields(rooms.CreateInput{MaxPlayers: 2, Payout: []int{}}, "payout")
	fields(rooms.CreateInput{MaxPlayers: 1, Payout: []int{5000, 5000}}, "payout")
	fields(rooms.CreateInput{MaxPlayers: 2, MinPlayers: new(0)}, "minPlayers")
	fields(rooms.CreateInput{MaxPlayers: 2, Metadata: json.RawMessage(`{"x":"` + strings.Repeat("y", 4096) + `"}`)}, "metadata")
	fields(h.paid("1", 1), "maxPlayers")
	fields(rooms.CreateInput{MaxPlayers: 2, EntryTokenID: h.token.ID}, "roomEntry")
	for _, amount := range []string{"-1", "0", "0.001", "x", "90071992547409.92", "45035996273704.96"} { // the last: twice it is too much
		refuses(t, apierror.InvalidAmount)(h.rooms.Create(t.Context(), a, h.paid(amount, 2), noKey))
	}
	refuses(t, apierror.TokenNotFound)(h.rooms.Create(t.Context(), a, rooms.CreateInput{MaxPlayers: 2, EntryTokenID: 1 << 40, RoomEntry: "1"}, noKey))
	refuses(t, apierror.GameNotFound)(h.rooms.Create(t.Context(), a, rooms.CreateInput{MaxPlayers: 2, GameID: h.game + 1}, noKey))
	refuses(t, apierror.Forbidden)(h.rooms.Create(t.Context(), h.server(), rooms.CreateInput{MaxPlayers: 2}, noKey))
	room := does(t)(h.rooms.Create(t.Context(), a, h.paid("45035996273704.95", 2), noKey))
	if room.RakeBps != 200 || room.ID < 1 {
		t.Fatalf("%+v", room)
	}
	h.has(a, int64(wallet.MaxUnits)-4503599627370495, 4503599627370495)
	h.balanced()
}

func TestARematchHoldsSeatsForTheOthers(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b, c, poor, stranger := h.player(1000), h.player(1000), h.player(1000), h.player(100), h.player(1000)
		for _, p := range []principal.Caller{b, c, poor} {
			h.befriend(a, p)
		}
		in := h.paid("1", 4)
		in.Visibility, in.FriendsOnly = rooms.Private, true
		old := does(t)(h.rooms.Create(ctx, a, in, noKey))
		for _, p := range []principal.Caller{b, c, poor} {
			does(t)(h.rooms.Join(ctx, p, old.RoomID, noKey))
		}
		refuses(t, apierror.NotStarted)(h.rooms.Rematch(ctx, b, old.RoomID, noKey))
		does(t)(h.rooms.Start(ctx, a, old.RoomID, noKey))
		refuses(t, apierror.AlreadyStarted)(h.rooms.Rematch(ctx, b, old.RoomID, noKey))
		does(t)(h.rooms.Finish(ctx, h.server(), old.RoomID, []rooms.Placement{
			{UserID: a.User, Place: 1}, {UserID: b.User, Place: 2}, {UserID: c.User, Place: 3}, {UserID: poor.User, Place: 4},
		}, noKey))
		refuses(t, apierror.RoomNotFound)(h.rooms.Rematch(ctx, stranger, old.RoomID, noKey))
		refuses(t, apierror.InsufficientFunds)(h.rooms.Rematch(ctx, poor, old.RoomID, noKey))
		room := does(t)(h.rooms.Rematch(ctx, b, old.RoomID, noKey))
		if room.RoomID == old.RoomID || room.ID == old.ID || room.Creator != b.User || room.Host != b.User || len(room.ActivePlayers()) != 1 || room.TakenSeats() != 4 ||
			room.Pot != 100 || room.Visibility != rooms.Private {
			t.Fatalf("the rematch: %+v", room)
		}
		if again := does(t)(h.rooms.Rematch(ctx, c, old.RoomID, noKey)); again.RoomID != room.RoomID || again.Version != room.Version {
			t.Fatal("there are two rematches")
		}
		h.has(c, 900, 0)
		does(t)(h.rooms.Join(ctx, c, room.RoomID, noKey)) // no friend of b, but a seat is held
		room = does(t)(h.rooms.Leave(ctx, a, room.RoomID, noKey))
		if room.TakenSeats() != 3 {
			t.Fatalf("declined: %+v", room)
		}
		room = does(t)(h.rooms.Start(ctx, b, room.RoomID, noKey))
		if len(room.Seats) != 2 {
			t.Fatalf("started: %+v", room)
		}
		refuses(t, apierror.RoomNotFound)(h.rooms.Join(ctx, poor, room.RoomID, noKey))
		h.balanced()
		if got := strings.Join(told(t, h.db, "e:main", room), " "); got != "room.created room.joined room.left room.started" {
			t.Fatal(got)
		}
		if got := told(t, h.db, "e:main", old); got[len(got)-1] != "room.rematch" {
			t.Fatal(got)
		}
	})
}

func TestAKeyedCallHappensOnce(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		a, b := h.player(1000), h.player(250)
		key := func(name string) idempotency.Receipt { return idempotency.Receipt{Key: name, Fingerprint: "f" + name} }
		twice := func(do func(rc idempotency.Receipt) (rooms.Result, error), name string) rooms.Room {
			t.Helper()
			first, err := do(key(name))
			if err != nil || first.Replayed {
				t.Fatalf("%s: %+v, %v", name, first, err)
			}
			second, err := do(key(name))
			if err != nil || !second.Replayed {
				t.Fatalf("%s again: %+v, %v", name, second, err)
			}
			x, _ := json.Marshal(first.Room)
			if y, _ := json.Marshal(second.Room); string(x) != string(y) {
				t.Fatalf("%s: first %s then %s", name, x, y)
			}
			_, err = do(idempotency.Receipt{Key: name, Fingerprint: "other"})
			if !errors.Is(err, apierror.IdempotencyKeyReused) {
				t.Fatalf("%s with another request: %v", name, err)
			}
			return first.Room
		}
		for _, in := range []rooms.CreateInput{h.paid("2", 4), {MaxPlayers: 4}} {
			names := in.RoomEntry
			room := twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Create(ctx, a, in, rc) }, "create"+string(names))
			id := room.RoomID
			twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Join(ctx, b, id, rc) }, "join"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Ready(ctx, b, id, true, rc) }, "ready"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Leave(ctx, b, id, rc) }, "leave"+string(names))
			if again, err := h.rooms.Join(ctx, b, id, key("join"+string(names))); err != nil || !again.Replayed || len(again.Room.ActivePlayers()) != 2 {
				t.Fatalf("a late duplicate of the join: %+v, %v", again, err)
			}
			if now, err := h.rooms.Get(ctx, b, id); err != nil || len(now.ActivePlayers()) != 1 {
				t.Fatal("a late duplicate of a join seated the player")
			}
			does(t)(h.rooms.Join(ctx, b, id, noKey))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) {
				return h.rooms.TransferHost(ctx, a, id, b.User, rc)
			}, "transfer"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) {
				return h.rooms.Kick(ctx, b, rooms.KickInput{RoomID: id, UserID: a.User}, rc)
			}, "kick"+string(names))
			does(t)(h.rooms.Join(ctx, a, id, noKey))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Start(ctx, b, id, rc) }, "start"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) {
				return h.rooms.Finish(ctx, h.server(), id, []rooms.Placement{{UserID: a.User, Place: 1}, {UserID: b.User, Place: 1}}, rc)
			}, "finish"+string(names))
			again := twice(func(rc idempotency.Receipt) (rooms.Result, error) { return h.rooms.Rematch(ctx, a, id, rc) }, "rematch"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.Result, error) {
				return h.rooms.Cancel(ctx, operator, again.RoomID, rc)
			}, "cancel"+string(names))
		}
		h.has(a, 1000, 0)
		h.has(b, 250, 0)

		// The first answer stands although the same request would be refused now.
		h.set.MaxPlayers = 1
		if again, err := h.rooms.Create(ctx, a, h.paid("2", 4), key("create2")); err != nil || !again.Replayed {
			t.Fatalf("a create after the game's limits have changed: %+v, %v", again, err)
		}
		refuses(t, apierror.InvalidRequest)(h.rooms.Create(ctx, a, h.paid("2", 4), key("new")))
		h.set.MaxPlayers = 256

		// A refusal that depends on the state is kept: its late duplicate never succeeds.
		dear := does(t)(h.rooms.Create(ctx, a, h.paid("3", 2), noKey))
		_, err := h.rooms.Join(ctx, b, dear.RoomID, key("poor"))
		if !errors.Is(err, apierror.InsufficientFunds) {
			t.Fatal(err)
		}
		if _, err := h.wallet.Credit(ctx, operator, wallet.CreditInput{UserID: b.User, TokenID: h.token.TokenID, Amount: "5", Reason: "gift"}, noKey); err != nil {
			t.Fatal(err)
		}
		if again, err := h.rooms.Join(ctx, b, dear.RoomID, key("poor")); !errors.Is(err, apierror.InsufficientFunds) || !again.Replayed {
			t.Fatalf("the late duplicate: %+v, %v", again, err)
		}
		h.balanced()
	})
}

func TestManyRaceForFewSeatsThroughTwoNodes(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		nodes := []*rooms.Service{h.node(), h.node()}
		host := h.player(1000)
		room := does(t)(h.rooms.Create(ctx, host, h.paid("10", 9), noKey))
		racers := make([]principal.Caller, 200)
		for i := range racers {
			racers[i] = h.player(1000)
		}
		var seated, full atomic.Int64
		var wg sync.WaitGroup
		for i, p := range racers {
			wg.Go(func() {
				_, err := nodes[i%2].Join(ctx, p, room.RoomID, noKey)
				switch {
				case err == nil:
					seated.Add(1)
				case errors.Is(err, apierror.RoomFull):
					full.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		room, err := h.rooms.Get(ctx, host, room.RoomID)
		if err != nil || seated.Load() != 8 || full.Load() != 192 || len(room.ActivePlayers()) != 9 || room.Pot != 9000 {
			t.Fatalf("%d seated, %d refused: %+v, %v", seated.Load(), full.Load(), room, err)
		}
		for _, p := range racers {
			if _, in := room.Seat(p.User); in {
				h.has(p, 0, 1000)
			} else {
				h.has(p, 1000, 0)
			}
		}
		if got := told(t, h.db, "e:main", room); len(got) != 9 {
			t.Fatal(got)
		}
		h.balanced()
	})
}

func TestEverybodyLeavesAtOnceWhileTheServerFinishes(t *testing.T) {
	each(t, func(t *testing.T, h *house) {
		ctx := t.Context()
		nodes := []*rooms.Service{h.node(), h.node()}
		for range 10 {
			players := []principal.Caller{h.player(1000), h.player(1000), h.player(1000), h.player(1000)}
			in := h.paid("10", 4)
			in.RakeBps = new(700)
			room := does(t)(h.rooms.Create(ctx, players[0], in, noKey))
			for _, p := range players[1:] {
				does(t)(h.rooms.Join(ctx, p, room.RoomID, noKey))
			}
			does(t)(h.rooms.Start(ctx, h.server(), room.RoomID, noKey))
			var wg sync.WaitGroup
			for i, p := range players {
				wg.Go(func() {
					if _, err := nodes[i%2].Leave(ctx, p, room.RoomID, noKey); err != nil && !errors.Is(err, apierror.RoomClosed) {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				_, err := nodes[0].Finish(ctx, h.server(), room.RoomID, []rooms.Placement{
					{UserID: players[0].User, Place: 1}, {UserID: players[1].User, Place: 1}, {UserID: players[2].User, Place: 1}, {UserID: players[3].User, Place: 1},
				}, noKey)
				if err != nil && !errors.Is(err, apierror.InvalidRequest) && !errors.Is(err, apierror.ResultConflict) && !errors.Is(err, apierror.RoomClosed) {
					t.Error(err)
				}
			})
			wg.Wait()
			room, err := h.rooms.Get(ctx, operator, room.RoomID)
			if err != nil || room.Status != rooms.Finished {
				t.Fatalf("%+v, %v", room, err)
			}
		}
		h.balanced()
	})
}
