package rooms_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/moneytest"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const fullRake = 10_000 // basis points

// fixture is a service on a store with one game, whose settings and friendships the test sets.
type fixture struct {
	*domaintest.Players
	t       testkit.T
	db      *redisdb.DB
	service *rooms.Service
	wallet  *wallet.Service
	money   domaintest.Money
	token   wallet.Token
	friends sync.Map // [2]int64 → true
}

var lastID atomic.Int64 // players of all tests are different

// gameCounters has the last game of each store, *atomic.Int64 by *redisdb.DB. The first one is 1: a
// sweep and an audit look at every game up to the last one.
var gameCounters sync.Map

// casesOfAStore is how many cases of a property share a store before it is emptied.
const casesOfAStore = 20

// newCase is newFixture for a case of a property. The books of a store that has had enough cases
// are audited, and the store is emptied.
func newCase(t *testing.T, db *redisdb.DB) *fixture {
	t.Helper()
	if counter, _ := gameCounters.Load(db); counter != nil && counter.(*atomic.Int64).Load() >= casesOfAStore {
		requireBooksBalance(t, db)
		redistest.EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
			return server.FlushDB(ctx).Err()
		})
		gameCounters.Delete(db)
	}
	return newFixture(t, db)
}

// requireBooksBalance requires that the books of all games balance. It lets the test go on, so that
// a case of a property that failed is still made smaller.
func requireBooksBalance(t *testing.T, db *redisdb.DB) {
	t.Helper()
	report, err := moneytest.NewAudit(db, wallet.New(db, nil, wallet.Options{})).AuditDeep(t.Context(), 0)
	if err != nil || !report.Balanced || len(report.Differences) > 0 {
		t.Errorf("the books do not balance: %+v, %v", report, err)
	}
}

const shards = 3

func newFixture(t testing.TB, db *redisdb.DB) *fixture {
	t.Helper()
	counter, _ := gameCounters.LoadOrStore(db, new(atomic.Int64))
	f := &fixture{Players: domaintest.NewPlayers(counter.(*atomic.Int64).Add(1)), t: t, db: db}
	f.Born = time.Now()
	f.Settings.MaxRakeBps = fullRake // most tests are not about what a player may choose
	f.Settings.Settlements = []games.Settlement{games.SettledByServer, games.SettledByConsensus}
	testkit.Check(t, db.Client.Set(t.Context(), keys.GameIDCounter(), f.GameID, 0).Err())
	f.wallet = wallet.New(db, f, wallet.Options{})
	f.service = f.newService()
	f.money = domaintest.NewMoney(t, db, f.wallet, f.GameID, wallet.TokenDefinition{
		Code: fmt.Sprintf("T%d", f.GameID), Name: "Test",
	})
	f.token = f.money.Token
	return f
}

// newService returns one more service on the same store.
func (f *fixture) newService() *rooms.Service {
	return rooms.New(f.db, f.wallet, f, f, rooms.Options{Shards: shards, KeyedHash: domaintest.KeyedHash})
}

// Find finds every game: a sweep looks at those of other tests, too.
func (f *fixture) Find(_ context.Context, id int64) (games.Game, error) {
	return games.Game{ID: id, Settings: f.Settings}, nil
}

func (f *fixture) AreFriends(_ context.Context, me int64, others ...int64) (map[int64]bool, error) {
	list := map[int64]bool{}
	for _, other := range others {
		if _, ok := f.friends.Load([2]int64{min(me, other), max(me, other)}); ok {
			list[other] = true
		}
	}
	return list, nil
}

func (f *fixture) makeFriends(a, b principal.Caller) {
	f.friends.Store([2]int64{min(a.UserID, b.UserID), max(a.UserID, b.UserID)}, true)
}

// newPlayer returns a new player with some units of the token.
func (f *fixture) newPlayer(units int64) principal.Caller {
	f.t.Helper()
	p := f.Player(lastID.Add(1))
	if units > 0 {
		f.money.Credit(wallet.AmountInput(wallet.Units(units).Decimal(f.token.Decimals)), p.UserID)
	}
	return p
}

var operator = domaintest.Operator

var noKey idempotency.Receipt

func receiptOf(key string) idempotency.Receipt {
	return idempotency.Receipt{KeyDigest: key, Fingerprint: "f" + key}
}

// must requires that a method succeeded and returns the room.
func must(t testing.TB) func(rooms.ChangeResult, error) rooms.Room {
	return func(a rooms.ChangeResult, err error) rooms.Room {
		t.Helper()
		testkit.Check(t, err)
		return *a.Room
	}
}

// mustFail requires that a method failed with an error code and returns the error.
func mustFail(t testing.TB, want *apierror.Error) func(rooms.ChangeResult, error) *apierror.Error {
	return func(_ rooms.ChangeResult, err error) *apierror.Error {
		t.Helper()
		apiErr, ok := apierror.As(err)
		if !ok || apiErr.Code != want.Code {
			t.Fatalf("got %v, want %s", err, want.Code)
		}
		return apiErr
	}
}

// paidRoom returns the input of a room with an entry.
func (f *fixture) paidRoom(entry string, maxPlayers int) rooms.CreateInput {
	return rooms.CreateInput{EntryTokenID: f.token.ID, RoomEntry: wallet.AmountInput(entry), MaxPlayers: maxPlayers}
}

// requireBalance requires what a player can spend and what is held, in minor units.
func (f *fixture) requireBalance(p principal.Caller, free, held int64) {
	f.t.Helper()
	f.money.WantBalance(p.UserID, wallet.Units(free), wallet.Units(held))
}

// requireBooksBalance requires that no unit was made or lost, by the totals and by a recount.
func (f *fixture) requireBooksBalance() {
	f.t.Helper()
	report := testkit.Must(moneytest.NewAudit(f.db, f.wallet).AuditDeep(f.t.Context(), 0))(f.t)
	if !report.Balanced || len(report.Differences) > 0 || !report.HeldCounted {
		f.t.Fatalf("the books do not balance: %+v", report)
	}
}

// listEventTypes returns the types of a room's events and requires that no number is missing.
func listEventTypes(t testing.TB, db *redisdb.DB, r rooms.Room) []string {
	t.Helper()
	shard, _ := keys.RoomShard(r.RoomID)
	entries := testkit.Must(db.Client.LRange(t.Context(), keys.RoomEvents(shard, r.RoomID), 0, -1).Result())(t)
	return parseEventTypes(t, entries, 0, r.RoomID)
}

// parseEventTypes returns the types of the entries that follow the first known ones.
func parseEventTypes(t testkit.T, entries []string, known int, roomID string) []string {
	t.Helper()
	var types []string
	for i, entry := range entries {
		rendered, err := events.Render(entry, roomID)
		if err != nil || len(rendered) != 1 {
			t.Fatalf("entry %q is %d events, %v", entry, len(rendered), err)
		}
		var e struct {
			Type     string         `json:"type"`
			RoomID   string         `json:"roomId"`
			Position string         `json:"position"`
			Seq      int64          `json:"seq"`
			At       time.Time      `json:"at"`
			Data     map[string]any `json:"data"`
		}
		if err := wire.Unmarshal(rendered[0].JSON, &e); err != nil {
			t.Fatalf("entry %q: %v: %s", entry, err, rendered[0].JSON)
		}
		seq := known + i + 1
		if e.Seq != int64(seq) || !strings.HasPrefix(entry, e.Position+"|") ||
			!strings.HasPrefix(e.Position, fmt.Sprintf("%d-", seq)) || e.RoomID != roomID ||
			e.At.IsZero() || e.Data["version"] == nil {
			t.Fatalf("event %d is %s", seq, rendered[0].JSON)
		}
		types = append(types, e.Type)
	}
	return types
}

// eachStore runs a test on a single Redis, on a Cluster and on the embedded store.
func eachStore(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) { test(t, newFixture(t, db)) })
	t.Run("embedded", func(t *testing.T) { test(t, newFixture(t, openEmbedded(t))) })
}

// eachStoreAtOnce is eachStore for a test that waits for a clock most of the time.
func eachStoreAtOnce(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	eachStore(t, func(t *testing.T, f *fixture) {
		t.Parallel()
		test(t, f)
	})
}

func openEmbedded(t *testing.T) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAPaidRoomFromOpeningToPayout(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c, d := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(249)
		in := f.paidRoom("2.5", 3)
		in.RakeBps, in.PayoutBps, in.Metadata = new(333), []int{6000, 4000}, wire.RawJSON(` {"mode": "blitz"} `)
		room := must(t)(f.service.Create(ctx, a, in, noKey))
		if room.Status != rooms.Created || room.Version != 1 || room.Seq != 1 || room.Pot != 250 || room.HostID != a.UserID ||
			room.MinPlayers != 2 {
			t.Fatalf("opened: %+v", room)
		}
		f.requireBalance(a, 750, 250)
		apiErr := mustFail(t, apierror.InsufficientFunds)(f.service.Join(ctx, d, room.RoomID, noKey))
		text, _ := wire.Marshal(apiErr.ExtraMembers)
		want := fmt.Sprintf(`{"available":2.49,"availableAmount":"249","required":2.5,"requiredAmount":"250","tokenId":%q}`,
			f.token.Code)
		if string(text) != want {
			t.Fatalf("insufficient_funds has the members %s, want %s", text, want)
		}
		mustFail(t, apierror.NotEnoughPlayers)(f.service.Start(ctx, a, room.RoomID, noKey))
		must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
		room = must(t)(f.service.Join(ctx, c, room.RoomID, noKey))
		if again := must(t)(f.service.Join(ctx, c, room.RoomID, noKey)); again.Version != room.Version ||
			again.Seq != room.Seq {
			t.Fatal("joining twice changed the room")
		}
		mustFail(t, apierror.RoomFull)(f.service.Join(ctx, f.newPlayer(1000), room.RoomID, noKey))
		mustFail(t, apierror.NotHost)(f.service.Start(ctx, b, room.RoomID, noKey))
		mustFail(t, apierror.NotStarted)(f.service.Finish(ctx, f.Server(), room.RoomID, nil, noKey))
		room = must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
		if room.Status != rooms.Started || room.StartedAt.IsZero() {
			t.Fatalf("started: %+v", room)
		}
		mustFail(t, apierror.AlreadyStarted)(f.service.Start(ctx, a, room.RoomID, noKey))
		mustFail(t, apierror.AlreadyStarted)(f.service.Join(ctx, d, room.RoomID, noKey))
		kick := rooms.KickInput{RoomID: room.RoomID, UserID: b.UserID}
		mustFail(t, apierror.AlreadyStarted)(f.service.Kick(ctx, a, kick, noKey))
		mustFail(t, apierror.AlreadyStarted)(f.service.Cancel(ctx, a, room.RoomID, noKey))
		mustFail(t, apierror.AlreadyStarted)(f.service.Ready(ctx, a, room.RoomID, true, noKey))
		result := []rooms.Placement{
			{UserID: c.UserID, Place: 1, Score: new(12.5)},
			{UserID: b.UserID, Place: 2},
			{UserID: a.UserID, Place: 2},
		}
		mustFail(t, apierror.Forbidden)(f.service.Finish(ctx, a, room.RoomID, result, noKey))
		mustFail(t, apierror.InvalidRequest)(f.service.Finish(ctx, f.Server(), room.RoomID, result[:2], noKey))
		stranger := principal.Caller{Role: principal.Server, GameID: f.GameID + 1_000_000}
		mustFail(t, apierror.RoomNotFound)(f.service.Finish(ctx, stranger, room.RoomID, result, noKey))
		room = must(t)(f.service.Finish(ctx, f.Server(), room.RoomID, result, noKey))
		// pot 750, rake 24; of 726 the first gets 436 by rounding, the two others share 290.
		if room.Status != rooms.Finished || room.Pot != 750 || room.Rake != 24 {
			t.Fatalf("finished: %+v", room)
		}
		f.requireBalance(a, 750+145, 0)
		f.requireBalance(b, 750+145, 0)
		f.requireBalance(c, 750+436, 0)
		if again := must(t)(f.service.Finish(ctx, f.Server(), room.RoomID, []rooms.Placement{result[2], result[0], result[1]},
			noKey)); again.Version != room.Version {
			t.Fatal("the same result again changed the room")
		}
		mustFail(t, apierror.ResultConflict)(f.service.Finish(ctx, f.Server(), room.RoomID, []rooms.Placement{
			{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 2}, {UserID: c.UserID, Place: 3},
		}, noKey))
		mustFail(t, apierror.RoomEnded)(f.service.Cancel(ctx, operator, room.RoomID, noKey))
		mustFail(t, apierror.RoomEnded)(f.service.Leave(ctx, a, room.RoomID, noKey))
		got := strings.Join(listEventTypes(t, f.db, room), " ")
		if want := "room.created room.joined room.joined room.started room.finished"; got != want {
			t.Fatalf("events %s, want %s", got, want)
		}
		f.requireBooksBalance()
	})
}

func TestARoomAsJSON(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	a, b := f.newPlayer(1000), f.newPlayer(1000)
	in := f.paidRoom("2.5", 2)
	in.AutoStart = true
	must(t)(f.service.Join(t.Context(), b, must(t)(f.service.Create(t.Context(), a, in, noKey)).RoomID, noKey))
	page, err := f.service.List(t.Context(), a, rooms.ListQuery{Status: rooms.Started})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	r := must(t)(f.service.Finish(t.Context(), f.Server(), page.Items[0].RoomID,
		[]rooms.Placement{{UserID: a.UserID, Place: 2}, {UserID: b.UserID, Place: 1, Score: new(3.0)}}, noKey))
	text := testkit.Must(wire.Marshal(r))(t)
	at := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z") }
	user := func(p principal.Caller) string {
		return fmt.Sprintf(`{"id":%d,"username":"Q\"|ü%d","avatar":null}`, p.UserID, p.UserID)
	}
	want := strings.NewReplacer(
		"$id", fmt.Sprint(r.ID), "$room", r.RoomID, "$code", r.Code, "$game", fmt.Sprint(f.GameID), "$tid",
		fmt.Sprint(f.token.ID), "$token", f.token.Code,
		"$userA", user(a), "$userB", user(b), "$a", fmt.Sprint(a.UserID), "$b", fmt.Sprint(b.UserID), "$position", r.Position,
		"$joinA", at(r.Seats[0].JoinedAt), "$joinB", at(r.Seats[1].JoinedAt), "$created", at(r.CreatedAt), "$started",
		at(r.StartedAt), "$finished", at(r.FinishedAt), "$deadline", at(r.StartedAt.Add(r.MatchTimeout)),
	).Replace(`{"id":$id,"roomId":"$room","code":"$code","gameId":$game,` +
		`"entryToken":{"id":$tid,"tokenId":"$token","tokenName":"Test","logoUrl":null,` +
		`"metadata":{"assetName":"","policyId":"","decimals":"2"},"volume":20},` +
		`"roomEntry":2.5,"roomEntryAmount":"250","totalWager":5,"totalWagerAmount":"500",` +
		`"creator":$userA,"host":$userA,"participants":[$userA,$userB],` +
		`"seats":[{"userId":$a,"state":"active","ready":false,"joinedAt":"$joinA"},` +
		`{"userId":$b,"state":"active","ready":false,"joinedAt":"$joinB"}],` +
		`"maxPlayers":2,"minPlayers":2,"isFriendsOnly":false,"visibility":"public","autoStart":true,` +
		`"settlement":"server","rakeBps":0,"payout":[10000],"tie":"split",` +
		`"metadata":{},"status":"FINISHED","reason":null,"version":3,"seq":4,"position":"$position",` +
		`"createdAt":"$created","startedAt":"$started","finishedAt":"$finished",` +
		`"results":[{"userId":$b,"place":1,"score":3},{"userId":$a,"place":2}],` +
		`"payouts":[{"userId":$b,"place":1,"payout":5,"amount":"500"},` +
		`{"userId":$a,"place":2,"payout":0,"amount":"0"}],"refunds":null,` +
		`"rake":0,"rakeAmount":"0","rematchRoomId":null,"matchDeadline":"$deadline"}`)
	if string(text) != want {
		t.Fatalf("the room is\n%s\nwant\n%s", text, want)
	}
	if !wire.RawJSON(text).IsValid() {
		t.Fatal("not JSON")
	}
}

func TestLeavingAfterTheStartForfeits(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)
		in := f.paidRoom("1", 3)
		in.RakeBps = new(1000)
		room := must(t)(f.service.Create(ctx, a, in, noKey))
		must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
		must(t)(f.service.Join(ctx, c, room.RoomID, noKey))
		must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
		room = must(t)(f.service.Leave(ctx, a, room.RoomID, noKey))
		if room.Status != rooms.Started || room.HostID != b.UserID || room.Pot != 300 || len(room.ActivePlayers()) != 2 ||
			room.Seats[0].State != rooms.SeatForfeited {
			t.Fatalf("after the first left: %+v", room)
		}
		f.requireBalance(a, 900, 100)
		mustFail(t, apierror.NotParticipant)(f.service.Leave(ctx, a, room.RoomID, noKey))
		room = must(t)(f.service.Leave(ctx, c, room.RoomID, noKey))
		if room.Status != rooms.Finished || room.Rake != 30 || room.Pot != 300 {
			t.Fatalf("after the second left: %+v", room)
		}
		f.requireBalance(a, 900, 0)
		f.requireBalance(b, 900+270, 0)
		f.requireBalance(c, 900, 0)
		got := strings.Join(listEventTypes(t, f.db, room), " ")
		want := "room.created room.joined room.joined room.started room.left room.host_changed room.left room.finished"
		if got != want {
			t.Fatalf("events %s, want %s", got, want)
		}
		f.requireBooksBalance()

		free := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 2}, noKey))
		must(t)(f.service.Join(ctx, b, free.RoomID, noKey))
		must(t)(f.service.Start(ctx, a, free.RoomID, noKey))
		if free = must(t)(f.service.Leave(ctx, b, free.RoomID, noKey)); free.Status != rooms.Started {
			t.Fatalf("a free room with one left is %s", free.Status)
		}
		if free = must(t)(f.service.Leave(ctx, a, free.RoomID, noKey)); free.Status != rooms.Cancelled ||
			free.CancelReason != "empty" {
			t.Fatalf("a free room with nobody is %s, %s", free.Status, free.CancelReason)
		}
	})
}

func TestATieForTheFirstPlaceCanRefund(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)
		in := f.paidRoom("1", 3)
		in.RakeBps, in.Tie = new(1000), rooms.TieRefund
		room := must(t)(f.service.Create(ctx, a, in, noKey))
		must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
		must(t)(f.service.Join(ctx, c, room.RoomID, noKey))
		must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
		must(t)(f.service.Leave(ctx, c, room.RoomID, noKey))
		room = must(t)(f.service.Finish(ctx, f.Server(), room.RoomID,
			[]rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 1}}, noKey))
		if room.Status != rooms.Finished || room.Rake != 0 {
			t.Fatalf("%+v", room)
		}
		for _, p := range []principal.Caller{a, b, c} {
			f.requireBalance(p, 1000, 0)
		}
		f.requireBooksBalance()
	})
}

func TestWhatTheHostMayDo(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)
		room := must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		id := room.RoomID
		must(t)(f.service.Join(ctx, b, id, noKey))
		mustFail(t, apierror.NotHost)(f.service.Kick(ctx, b, rooms.KickInput{RoomID: id, UserID: a.UserID}, noKey))
		mustFail(t, apierror.InvalidRequest)(f.service.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: a.UserID}, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: c.UserID}, noKey))
		mustFail(t, apierror.Forbidden)(f.service.Kick(ctx, operator, rooms.KickInput{RoomID: id, UserID: b.UserID}, noKey))
		must(t)(f.service.Kick(ctx, a, rooms.KickInput{RoomID: id, UserID: b.UserID}, noKey))
		f.requireBalance(b, 1000, 0)
		must(t)(f.service.Join(ctx, b, id, noKey))
		mustFail(t, apierror.NotParticipant)(f.service.TransferHost(ctx, a, id, c.UserID, noKey))
		if room = must(t)(f.service.TransferHost(ctx, a, id, b.UserID, noKey)); room.HostID != b.UserID {
			t.Fatal("the host did not change")
		}
		if again := must(t)(f.service.TransferHost(ctx, b, id, b.UserID, noKey)); again.Version != room.Version {
			t.Fatal("transferring to oneself changed the room")
		}
		room = must(t)(f.service.Kick(ctx, f.Server(), rooms.KickInput{RoomID: id, UserID: b.UserID, Ban: true}, noKey))
		if room.HostID != a.UserID {
			t.Fatal("the host did not change back")
		}
		mustFail(t, apierror.Banned)(f.service.Join(ctx, b, id, noKey))
		room = must(t)(f.service.Cancel(ctx, a, id, noKey))
		if room.Status != rooms.Cancelled || room.CancelReason != "host" {
			t.Fatalf("%+v", room)
		}
		f.requireBalance(a, 1000, 0)
		mustFail(t, apierror.RoomEnded)(f.service.Join(ctx, c, id, noKey))

		room = must(t)(f.service.Create(ctx, a, f.paidRoom("1", 3), noKey))
		must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
		if room = must(t)(f.service.Leave(ctx, a, room.RoomID, noKey)); room.HostID != b.UserID ||
			room.Status != rooms.Created {
			t.Fatalf("the host left: %+v", room)
		}
		if room = must(t)(f.service.Leave(ctx, b, room.RoomID, noKey)); room.Status != rooms.Cancelled ||
			room.CancelReason != "empty" || room.HostID != b.UserID {
			t.Fatalf("the last one left: %+v", room)
		}
		f.requireBooksBalance()
	})
}

func TestARoomStartsByItselfWhenFullOrReady(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
		open := func(maxPlayers, minPlayers int) string {
			return must(t)(f.service.Create(ctx, a,
				rooms.CreateInput{MaxPlayers: maxPlayers, MinPlayers: &minPlayers, AutoStart: true}, noKey)).RoomID
		}
		full := open(2, 2)
		if r := must(t)(f.service.Join(ctx, b, full, noKey)); r.Status != rooms.Started || r.Version != 2 || r.Seq != 3 ||
			r.StartedAt.IsZero() {
			t.Fatalf("full: %+v", r)
		}
		ready := open(3, 2)
		if r := must(t)(f.service.Ready(ctx, a, ready, true, noKey)); r.Status != rooms.Created {
			t.Fatal("started with too few")
		}
		must(t)(f.service.Join(ctx, b, ready, noKey))
		if r := must(t)(f.service.Ready(ctx, b, ready, true, noKey)); r.Status != rooms.Started {
			t.Fatal("not started although all are ready")
		}
		waiting := open(4, 2)
		must(t)(f.service.Join(ctx, b, waiting, noKey))
		must(t)(f.service.Join(ctx, c, waiting, noKey))
		must(t)(f.service.Ready(ctx, a, waiting, true, noKey))
		must(t)(f.service.Ready(ctx, b, waiting, true, noKey))
		if r := must(t)(f.service.Leave(ctx, c, waiting, noKey)); r.Status != rooms.Started {
			t.Fatal("not started when the one left who was not ready")
		}
		if r := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 1, AutoStart: true},
			noKey)); r.Status != rooms.Started {
			t.Fatal("a room for one does not start full")
		}
	})
}

// A replay shows the room as it is now, so it must not show what the caller may not see any more.
func TestAReplayShowsNoPrivateRoomToWhoMayNotSeeIt(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, friend := f.newPlayer(0), f.newPlayer(0)
		f.makeFriends(a, friend)
		rc := idempotency.Receipt{KeyDigest: "join private", Fingerprint: "f"}
		private := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, Visibility: rooms.Private}, noKey))
		must(t)(f.service.Join(ctx, friend, private.RoomID, rc))
		must(t)(f.service.Kick(ctx, a, rooms.KickInput{RoomID: private.RoomID, UserID: friend.UserID}, noKey))
		if again, err := f.service.Join(ctx, friend, private.RoomID, rc); err != nil || !again.Replayed {
			t.Errorf("a friend who was kicked gets %+v, %v", again, err)
		}
		f.friends.Clear()
		again, err := f.service.Join(ctx, friend, private.RoomID, rc)
		if !errors.Is(err, apierror.RoomNotFound) || !again.Replayed || again.Room != nil {
			t.Errorf("who is no friend any more gets %+v, %v", again, err)
		}
	})
}

// requireSameHead requires that GetHeads says of a room what Get does, beside an id that is none.
func (f *fixture) requireSameHead(p principal.Caller, roomID string) {
	f.t.Helper()
	room, err := f.service.Get(f.t.Context(), p, roomID)
	heads := f.service.GetHeads(f.t.Context(), p, roomID, "x", roomID)
	if len(heads) != 3 || !errors.Is(heads[1].Err, apierror.InvalidRequest) || heads[0].Head != heads[2].Head {
		f.t.Fatalf("the heads are %+v", heads)
	}
	want := rooms.Head{RoomID: room.RoomID, Visibility: room.Visibility, Position: room.Position}
	if got := heads[0]; fmt.Sprint(got.Err) != fmt.Sprint(err) || got.Head != want {
		f.t.Fatalf("%s gets %+v, and by Get %+v, %v", p.ActorID(), got, want, err)
	}
}

func TestWhoMaySeeARoom(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, friend, stranger := f.newPlayer(0), f.newPlayer(0), f.newPlayer(0)
		f.makeFriends(a, friend)
		other := principal.Caller{Role: principal.Player, UserID: stranger.UserID, GameID: f.GameID + 1_000_000}
		sees := func(p principal.Caller, r rooms.Room, want bool) {
			t.Helper()
			byID, err1 := f.service.Get(ctx, p, r.RoomID)
			f.requireSameHead(p, r.RoomID)
			byCode, err2 := f.service.GetByCode(ctx, p, p.GameID, strings.ToLower(r.Code))
			if p.Role == principal.Operator {
				byCode, err2 = f.service.GetByCode(ctx, p, f.GameID, strings.ToLower(r.Code))
			}
			if want && (err1 != nil || err2 != nil || byID.RoomID != r.RoomID || byCode.RoomID != r.RoomID) {
				t.Fatalf("%s does not see the room: %v, %v", p.ActorID(), err1, err2)
			}
			if !want && (!errors.Is(err1, apierror.RoomNotFound) || !errors.Is(err2, apierror.RoomNotFound)) {
				t.Fatalf("%s sees the room: %v, %v", p.ActorID(), err1, err2)
			}
		}
		private := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, Visibility: rooms.Private}, noKey))
		for p, want := range map[principal.Caller]bool{
			a: true, friend: true, stranger: false, other: false, f.Server(): true, operator: true,
		} {
			sees(p, private, want)
		}
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, stranger, private.RoomID, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Start(ctx, stranger, private.RoomID, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Leave(ctx, stranger, private.RoomID, noKey))
		must(t)(f.service.Join(ctx, friend, private.RoomID, noKey))

		friendly := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, FriendsOnly: true}, noKey))
		sees(stranger, friendly, true)
		sees(other, friendly, false)
		mustFail(t, apierror.FriendsOnly)(f.service.Join(ctx, stranger, friendly.RoomID, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, other, friendly.RoomID, noKey))
		must(t)(f.service.Join(ctx, friend, friendly.RoomID, noKey))
		must(t)(f.service.Leave(ctx, a, friendly.RoomID, noKey))
		must(t)(f.service.Join(ctx, a, friendly.RoomID, noKey)) // the creator comes back

		unlisted := must(t)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 4, Visibility: rooms.Unlisted}, noKey))
		sees(stranger, unlisted, true)
		must(t)(f.service.Join(ctx, stranger, unlisted.RoomID, noKey))

		for id, want := range map[string]*apierror.Error{
			"": apierror.InvalidRequest, "x": apierror.InvalidRequest,
			"000000000000-4000-8000-0000-00000000":                         apierror.InvalidRequest,
			"0000000g-0000-4000-8000-000000000000":                         apierror.InvalidRequest,
			"00000000-0000-4000-8000-000000000000":                         apierror.RoomNotFound,
			"ffffffff-ffff-8000-8000-ffffffffffff":                         apierror.RoomNotFound, // there is no such shard
			keys.NewRoomID(keys.FreeShard(0), time.Now(), false):           apierror.RoomNotFound,
			keys.NewRoomID(keys.EconomyShard(f.GameID), time.Now(), false): apierror.RoomNotFound,
		} {
			_, err := f.service.Get(ctx, operator, id)
			apiErr := mustFail(t, want)(rooms.ChangeResult{}, err)
			f.requireSameHead(operator, id)
			if want == apierror.InvalidRequest && (len(apiErr.FieldErrors) != 1 || apiErr.FieldErrors[0].Field != "roomId") {
				t.Fatalf("%q: %+v", id, apiErr)
			}
			mustFail(t, want)(f.service.Join(ctx, a, id, noKey))
		}
		capitals := strings.ToUpper(unlisted.RoomID)
		if r, err := f.service.Get(ctx, operator, capitals); err != nil || r.RoomID != unlisted.RoomID {
			t.Fatalf("an id in capitals: %v", err)
		}
		f.requireSameHead(operator, capitals)
		must(t)(f.service.Join(ctx, a, capitals, noKey))

		f.friends.Clear()
		sees(friend, private, true) // has a seat
	})
}

func TestListsAreNewestFirstAndInPages(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, friend, stranger := f.newPlayer(100_000), f.newPlayer(100_000), f.newPlayer(100_000)
		f.makeFriends(a, friend)
		ids := func(p principal.Caller, q rooms.ListQuery) []string {
			t.Helper()
			var list []string
			for {
				page := testkit.Must(f.service.List(ctx, p, q))(t)
				for _, r := range page.Items {
					list = append(list, r.RoomID)
				}
				if q.Cursor = page.NextCursor; q.Cursor == "" {
					return list
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
			id := must(t)(f.service.Create(ctx, a, in, noKey)).RoomID
			for len(opened) > 0 && id[:13] == opened[len(opened)-1][:13] { // ids of one millisecond have no order among them
				must(t)(f.service.Cancel(ctx, operator, id, noKey))
				id = must(t)(f.service.Create(ctx, a, in, noKey)).RoomID
			}
			opened = append(opened, id)
			return id
		}
		free := open(rooms.CreateInput{MaxPlayers: 2})
		cheap := open(f.paidRoom("0.05", 2))
		dear := open(f.paidRoom("3", 2))
		friendly := open(rooms.CreateInput{MaxPlayers: 2, FriendsOnly: true})
		open(rooms.CreateInput{MaxPlayers: 2, Visibility: rooms.Unlisted})
		open(rooms.CreateInput{MaxPlayers: 2, Visibility: rooms.Private})

		q := rooms.ListQuery{Limit: 2}
		same(ids(friend, q), friendly, dear, cheap, free)
		same(ids(stranger, q), dear, cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 3}), dear, cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 2, EntryTokenID: f.token.ID}), dear, cheap)
		same(ids(stranger, rooms.ListQuery{Limit: 2, MaxEntry: "0.5"}), cheap, free)
		same(ids(stranger, rooms.ListQuery{Limit: 2, MaxEntry: "0"}), free)
		must(t)(f.service.Join(ctx, stranger, cheap, noKey))
		same(ids(friend, q), friendly, dear, free)
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Created}), friendly, dear, cheap, free)
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Created, HasFreeSeat: new(false)}), cheap)
		must(t)(f.service.Start(ctx, a, cheap, noKey))
		same(ids(friend, rooms.ListQuery{Limit: 2, Status: rooms.Started}), cheap)
		must(t)(f.service.Kick(ctx, f.Server(), rooms.KickInput{RoomID: dear, UserID: a.UserID}, noKey))
		same(ids(friend, q), friendly, free)
		if got := ids(f.Server(), rooms.ListQuery{Limit: 100}); len(got) < 6 {
			t.Fatalf("the server sees %v", got)
		}
		if got := ids(operator, rooms.ListQuery{Limit: 100, Status: rooms.Started, GameID: f.GameID}); len(got) != 1 ||
			got[0] != cheap {
			t.Fatalf("the operator sees %v", got)
		}
		if got := ids(operator, rooms.ListQuery{Limit: 100}); len(got) < 6 {
			t.Fatalf("the operator sees %v of all games", got)
		}
		for _, q := range []rooms.ListQuery{{Limit: 101}, {Limit: -1}, {Status: "OPEN"}, {Cursor: "???"}, {Cursor: "eA"}} {
			testkit.Fails(f.service.List(ctx, a, q))(t, apierror.InvalidRequest, "%+v", q)
		}
		testkit.Fails(f.service.List(ctx, a, rooms.ListQuery{GameID: f.GameID + 1}))(t, apierror.GameNotFound)
		testkit.Fails(f.service.AdminList(ctx, a, rooms.ListQuery{}))(t, apierror.Forbidden)
	})
}

func TestAListReadsWhatItShowsAndScansABoundedNumber(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	a, stranger := f.newPlayer(100_000), f.newPlayer(0)
	paid := must(t)(f.service.Create(t.Context(), a, f.paidRoom("3", 2), noKey)).RoomID
	made := time.Now().UnixMilli()
	// Within one millisecond the order of ids is random.
	redistest.Eventually(t, "a later millisecond", func() bool { return time.Now().UnixMilli() > made+1 })
	const free = 650
	var creators sync.WaitGroup
	for range 10 {
		creators.Go(func() {
			for range free / 10 {
				testkit.Report(t, testkit.ErrorOf(f.service.Create(t.Context(), a, rooms.CreateInput{MaxPlayers: 2}, noKey)))
			}
		})
	}
	creators.Wait()
	var reads atomic.Int64
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		for _, cmd := range commands {
			if cmd.Name() == "hgetall" {
				reads.Add(1)
			}
		}
	})
	list := func(q rooms.ListQuery) rooms.Page {
		t.Helper()
		before := reads.Load()
		page := testkit.Must(f.service.List(t.Context(), stranger, q))(t)
		if read := int(reads.Load() - before); read != page.Scanned {
			t.Errorf("%d rooms were read, but Scanned is %d", read, page.Scanned)
		}
		return page
	}
	for _, limit := range []int{1, 20, 100} {
		page := list(rooms.ListQuery{Limit: limit})
		if len(page.Items) != limit || page.Scanned != limit || page.NextCursor == "" {
			t.Errorf("a page of %d has %d rooms of %d that were read, cursor %q", limit, len(page.Items), page.Scanned,
				page.NextCursor)
		}
	}

	// The oldest room alone has this token.
	for _, limit := range []int{1, 20} {
		var found []string
		var scanned []int
		for q := (rooms.ListQuery{Limit: limit, EntryTokenID: f.token.ID}); ; {
			page := list(q)
			scanned = append(scanned, page.Scanned)
			for _, r := range page.Items {
				found = append(found, r.RoomID)
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if !slices.Equal(scanned, []int{300, 300, 51}) || !slices.Equal(found, []string{paid}) {
			t.Errorf("with a limit of %d, pages that scanned %v found %v", limit, scanned, found)
		}
	}

	// A walk over all pages has every room once, and the last page has no cursor.
	for _, limit := range []int{7, 93} { // 651 is 7 times 93
		seen, pages := map[string]bool{}, 0
		for q := (rooms.ListQuery{Limit: limit}); ; {
			page := list(q)
			pages++
			for _, r := range page.Items {
				seen[r.RoomID] = true
			}
			if q.Cursor = page.NextCursor; q.Cursor == "" {
				break
			}
		}
		if len(seen) != free+1 || pages != (free+1)/limit {
			t.Errorf("%d pages of %d have %d rooms", pages, limit, len(seen))
		}
	}
}

func TestCreateReportsEveryInvalidFieldAtOnce(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	f.Settings.MinRakeBps, f.Settings.RakeBps, f.Settings.MaxPlayers = 100, 200, 10
	a := f.newPlayer(int64(wallet.MaxUnits))
	fields := func(in rooms.CreateInput, want ...string) {
		t.Helper()
		apiErr := mustFail(t, apierror.InvalidRequest)(f.service.Create(t.Context(), a, in, noKey))
		var got []string
		for _, fieldError := range apiErr.FieldErrors {
			got = append(got, fieldError.Field)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("faulty fields %v, want %v", got, want)
		}
	}
	fields(rooms.CreateInput{}, "maxPlayers")
	fields(rooms.CreateInput{
		RoomEntry: "1", MaxPlayers: 11, MinPlayers: new(12), Visibility: "secret", Metadata: wire.RawJSON(`[]`),
		SettledBy: "dice", RakeBps: new(99),
		PayoutBps: []int{5000, 4999}, Tie: "coin",
	}, "entryTokenId", "maxPlayers", "minPlayers", "visibility", "settlement", "tie", "rakeBps", "payout", "metadata")
	fields(rooms.CreateInput{MaxPlayers: 2, PayoutBps: []int{-1, 10001}}, "payout[0]")
	fields(rooms.CreateInput{MaxPlayers: 2, PayoutBps: []int{}}, "payout")
	fields(rooms.CreateInput{MaxPlayers: 1, PayoutBps: []int{5000, 5000}}, "payout")
	fields(rooms.CreateInput{MaxPlayers: 2, MinPlayers: new(0)}, "minPlayers")
	fields(rooms.CreateInput{MaxPlayers: 2, Metadata: wire.RawJSON(`{"x":"` + strings.Repeat("y", 4096) + `"}`)},
		"metadata")
	fields(rooms.CreateInput{MaxPlayers: 2, Metadata: wire.RawJSON(`{"x":1e999}`)}, "metadata")
	fields(f.paidRoom("1", 1), "maxPlayers")
	fields(rooms.CreateInput{MaxPlayers: 2, EntryTokenID: f.token.ID}, "roomEntry")
	// The last amount is valid once, but too large twice.
	for _, amount := range []string{"-1", "0", "0.001", "x", "90071992547409.92", "45035996273704.96"} {
		mustFail(t, apierror.InvalidAmount)(f.service.Create(t.Context(), a, f.paidRoom(amount, 2), noKey))
	}
	noToken := rooms.CreateInput{MaxPlayers: 2, EntryTokenID: 1 << 40, RoomEntry: "1"}
	mustFail(t, apierror.TokenNotFound)(f.service.Create(t.Context(), a, noToken, noKey))
	otherGame := rooms.CreateInput{MaxPlayers: 2, GameID: f.GameID + 1}
	mustFail(t, apierror.GameNotFound)(f.service.Create(t.Context(), a, otherGame, noKey))
	mustFail(t, apierror.Forbidden)(f.service.Create(t.Context(), f.Server(), rooms.CreateInput{MaxPlayers: 2}, noKey))
	room := must(t)(f.service.Create(t.Context(), a, f.paidRoom("45035996273704.95", 2), noKey))
	if room.RakeBps != 200 || room.ID < 1 {
		t.Fatalf("%+v", room)
	}
	f.requireBalance(a, int64(wallet.MaxUnits)-4503599627370495, 4503599627370495)
	f.requireBooksBalance()
}

func TestARematchReservesSeatsForTheOthers(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b, c, poor, stranger := f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(100),
			f.newPlayer(1000)
		for _, p := range []principal.Caller{b, c, poor} {
			f.makeFriends(a, p)
		}
		in := f.paidRoom("1", 4)
		in.Visibility, in.FriendsOnly = rooms.Private, true
		old := must(t)(f.service.Create(ctx, a, in, noKey))
		for _, p := range []principal.Caller{b, c, poor} {
			must(t)(f.service.Join(ctx, p, old.RoomID, noKey))
		}
		mustFail(t, apierror.NotStarted)(f.service.Rematch(ctx, b, old.RoomID, noKey))
		must(t)(f.service.Start(ctx, a, old.RoomID, noKey))
		mustFail(t, apierror.AlreadyStarted)(f.service.Rematch(ctx, b, old.RoomID, noKey))
		must(t)(f.service.Finish(ctx, f.Server(), old.RoomID, []rooms.Placement{
			{UserID: a.UserID, Place: 1},
			{UserID: b.UserID, Place: 2},
			{UserID: c.UserID, Place: 3},
			{UserID: poor.UserID, Place: 4},
		}, noKey))
		mustFail(t, apierror.RoomNotFound)(f.service.Rematch(ctx, stranger, old.RoomID, noKey))
		mustFail(t, apierror.InsufficientFunds)(f.service.Rematch(ctx, poor, old.RoomID, noKey))
		room := must(t)(f.service.Rematch(ctx, b, old.RoomID, noKey))
		if room.RoomID == old.RoomID || room.ID == old.ID || room.CreatorID != b.UserID || room.HostID != b.UserID ||
			len(room.ActivePlayers()) != 1 || room.TakenSeats() != 4 ||
			room.Pot != 100 || room.Visibility != rooms.Private {
			t.Fatalf("the rematch: %+v", room)
		}
		if again := must(t)(f.service.Rematch(ctx, c, old.RoomID, noKey)); again.RoomID != room.RoomID ||
			again.Version != room.Version {
			t.Fatal("there are two rematches")
		}
		f.requireBalance(c, 900, 0)
		must(t)(f.service.Join(ctx, c, room.RoomID, noKey)) // no friend of b, but a seat is held
		room = must(t)(f.service.Leave(ctx, a, room.RoomID, noKey))
		if room.TakenSeats() != 3 {
			t.Fatalf("declined: %+v", room)
		}
		room = must(t)(f.service.Start(ctx, b, room.RoomID, noKey))
		if len(room.Seats) != 2 {
			t.Fatalf("started: %+v", room)
		}
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, poor, room.RoomID, noKey))
		f.requireBooksBalance()
		if got := strings.Join(listEventTypes(t, f.db, room), " "); got != "room.created room.joined room.left room.started" {
			t.Fatal(got)
		}
		if got := listEventTypes(t, f.db, old); got[len(got)-1] != "room.rematch" {
			t.Fatal(got)
		}
	})
}

func TestACallWithAKeyHappensOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(1000), f.newPlayer(250)
		key := func(name string) idempotency.Receipt {
			return idempotency.Receipt{KeyDigest: name, Fingerprint: "f" + name}
		}
		twice := func(do func(rc idempotency.Receipt) (rooms.ChangeResult, error), name string) rooms.Room {
			t.Helper()
			first, err := do(key(name))
			if err != nil || first.Replayed {
				t.Fatalf("%s: %+v, %v", name, first, err)
			}
			second, err := do(key(name))
			if err != nil || !second.Replayed {
				t.Fatalf("%s again: %+v, %v", name, second, err)
			}
			x, _ := wire.Marshal(first.Room)
			if y, _ := wire.Marshal(second.Room); string(x) != string(y) {
				t.Fatalf("%s: first %s then %s", name, x, y)
			}
			_, err = do(idempotency.Receipt{KeyDigest: name, Fingerprint: "other"})
			if !errors.Is(err, apierror.IdempotencyKeyReused) {
				t.Fatalf("%s with another request: %v", name, err)
			}
			return *first.Room
		}
		for _, in := range []rooms.CreateInput{f.paidRoom("2", 4), {MaxPlayers: 4}} {
			names := in.RoomEntry
			room := twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Create(ctx, a, in, rc)
			}, "create"+string(names))
			id := room.RoomID
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Join(ctx, b, id, rc)
			}, "join"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Ready(ctx, b, id, true, rc)
			}, "ready"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Leave(ctx, b, id, rc)
			}, "leave"+string(names))
			if again, err := f.service.Join(ctx, b, id, key("join"+string(names))); err != nil || !again.Replayed ||
				len(again.Room.ActivePlayers()) != 1 { // the room as it is now
				t.Fatalf("a late duplicate of the join: %+v, %v", again, err)
			}
			if now, err := f.service.Get(ctx, b, id); err != nil || len(now.ActivePlayers()) != 1 {
				t.Fatal("a late duplicate of a join seated the player")
			}
			must(t)(f.service.Join(ctx, b, id, noKey))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.TransferHost(ctx, a, id, b.UserID, rc)
			}, "transfer"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Kick(ctx, b, rooms.KickInput{RoomID: id, UserID: a.UserID}, rc)
			}, "kick"+string(names))
			must(t)(f.service.Join(ctx, a, id, noKey))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Start(ctx, b, id, rc)
			}, "start"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Finish(ctx, f.Server(), id,
					[]rooms.Placement{{UserID: a.UserID, Place: 1}, {UserID: b.UserID, Place: 1}}, rc)
			}, "finish"+string(names))
			again := twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Rematch(ctx, a, id, rc)
			}, "rematch"+string(names))
			twice(func(rc idempotency.Receipt) (rooms.ChangeResult, error) {
				return f.service.Cancel(ctx, operator, again.RoomID, rc)
			}, "cancel"+string(names))
		}
		f.requireBalance(a, 1000, 0)
		f.requireBalance(b, 250, 0)

		// The first reply is returned although the same request is invalid now.
		f.Settings.MaxPlayers = 1
		if again, err := f.service.Create(ctx, a, f.paidRoom("2", 4), key("create2")); err != nil || !again.Replayed {
			t.Fatalf("a create after the game's limits have changed: %+v, %v", again, err)
		}
		mustFail(t, apierror.InvalidRequest)(f.service.Create(ctx, a, f.paidRoom("2", 4), key("new")))
		f.Settings.MaxPlayers = 256

		// An error that depends on the state is kept: a late duplicate of the request never succeeds.
		dear := must(t)(f.service.Create(ctx, a, f.paidRoom("3", 2), noKey))
		_, err := f.service.Join(ctx, b, dear.RoomID, key("poor"))
		if !errors.Is(err, apierror.InsufficientFunds) {
			t.Fatal(err)
		}
		in := wallet.CreditInput{UserID: b.UserID, TokenCode: f.token.Code, Amount: "5", Reason: "gift"}
		testkit.Must(f.wallet.Credit(ctx, operator, in, noKey))(t)
		if again, err := f.service.Join(ctx, b, dear.RoomID, key("poor")); !errors.Is(err, apierror.InsufficientFunds) ||
			!again.Replayed {
			t.Fatalf("the late duplicate: %+v, %v", again, err)
		}
		f.requireBooksBalance()
	})
}

func TestManyRaceForFewSeatsThroughTwoNodes(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		nodes := []*rooms.Service{f.newService(), f.newService()}
		host := f.newPlayer(1000)
		room := must(t)(f.service.Create(ctx, host, f.paidRoom("10", 9), noKey))
		racers := make([]principal.Caller, 200)
		for i := range racers {
			racers[i] = f.newPlayer(1000)
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
		room, err := f.service.Get(ctx, host, room.RoomID)
		if err != nil || seated.Load() != 8 || full.Load() != 192 || len(room.ActivePlayers()) != 9 || room.Pot != 9000 {
			t.Fatalf("%d seated, %d refused: %+v, %v", seated.Load(), full.Load(), room, err)
		}
		for _, p := range racers {
			if _, in := room.Seat(p.UserID); in {
				f.requireBalance(p, 0, 1000)
			} else {
				f.requireBalance(p, 1000, 0)
			}
		}
		if got := listEventTypes(t, f.db, room); len(got) != 9 {
			t.Fatal(got)
		}
		f.requireBooksBalance()
	})
}

func TestEverybodyLeavesAtOnceWhileTheServerFinishes(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		nodes := []*rooms.Service{f.newService(), f.newService()}
		for range 10 {
			players := []principal.Caller{f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000), f.newPlayer(1000)}
			in := f.paidRoom("10", 4)
			in.RakeBps = new(700)
			room := must(t)(f.service.Create(ctx, players[0], in, noKey))
			for _, p := range players[1:] {
				must(t)(f.service.Join(ctx, p, room.RoomID, noKey))
			}
			must(t)(f.service.Start(ctx, f.Server(), room.RoomID, noKey))
			var wg sync.WaitGroup
			for i, p := range players {
				wg.Go(func() {
					if _, err := nodes[i%2].Leave(ctx, p, room.RoomID, noKey); err != nil && !errors.Is(err, apierror.RoomEnded) {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				_, err := nodes[0].Finish(ctx, f.Server(), room.RoomID, []rooms.Placement{
					{UserID: players[0].UserID, Place: 1},
					{UserID: players[1].UserID, Place: 1},
					{UserID: players[2].UserID, Place: 1},
					{UserID: players[3].UserID, Place: 1},
				}, noKey)
				if err != nil && !errors.Is(err, apierror.InvalidRequest) && !errors.Is(err, apierror.ResultConflict) &&
					!errors.Is(err, apierror.RoomEnded) {
					t.Error(err)
				}
			})
			wg.Wait()
			room, err := f.service.Get(ctx, operator, room.RoomID)
			if err != nil || room.Status != rooms.Finished {
				t.Fatalf("%+v, %v", room, err)
			}
		}
		f.requireBooksBalance()
	})
}
