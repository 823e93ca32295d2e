package rooms_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// newMatch returns a match of new players, whose deadline is some time from now.
func (f *fixture) newMatch(players int, wait time.Duration) (rooms.MatchInput, []principal.Caller) {
	in := rooms.MatchInput{
		GameID: f.GameID, TournamentID: 12, MatchID: "r2m5", Attempt: 1, RoundStart: time.UnixMilli(1_790_000_000_000),
		Metadata: wire.RawJSON(`{"round": 2}`), Deadline: time.Now().Add(wait), MatchTimeout: time.Hour,
	}
	var callers []principal.Caller
	for range players {
		p := f.newPlayer(0)
		callers, in.Players = append(callers, p), append(in.Players, p.UserID)
	}
	return in, callers
}

func (f *fixture) openMatch(t *testing.T, in rooms.MatchInput) rooms.Room {
	t.Helper()
	return testkit.Must(f.service.OpenMatch(t.Context(), in))(t)
}

// closeMatch closes a match, which must have a status then and be left by those who sat in it.
func (f *fixture) closeMatch(t *testing.T, room rooms.Room, want rooms.Status, present ...principal.Caller) {
	t.Helper()
	status, seated, err := f.service.CloseMatch(t.Context(), f.GameID, room.RoomID)
	ids := []int64{}
	for _, p := range present {
		ids = append(ids, p.UserID)
	}
	slices.Sort(seated) // they sit in the order in which they came
	if err != nil || status != want || !slices.Equal(seated, ids) {
		t.Fatalf("the match is %s with %v, %v; want %s with %v", status, seated, err, want, ids)
	}
}

func TestAMatchIsOneRoomHoweverOftenItIsOpened(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		in, players := f.newMatch(2, time.Hour)
		other := f.newService()
		wantID := testkit.Must(other.MatchRoomID(t.Context(), in))(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				s := []*rooms.Service{f.service, other}[i%2]
				if room, err := s.OpenMatch(t.Context(), in); err != nil || room.RoomID != wantID || room.Version != 1 {
					t.Errorf("%+v, %v; want %s", room, err, wantID)
				}
			})
		}
		wg.Wait()
		shard, ok := keys.RoomShard(wantID)
		if !ok || shard.Paid() || !strings.HasPrefix(wantID, "01a0c450-6c00-8") {
			t.Errorf("%s is on %v", wantID, shard)
		}
		mine, err := f.service.List(t.Context(), players[1], rooms.ListQuery{Mine: true})
		if err != nil || len(mine.Items) != 1 || mine.Items[0].RoomID != wantID {
			t.Errorf("%+v, %v", mine.Items, err)
		}
		room := must(t)(f.service.Join(t.Context(), players[1], wantID, noKey))
		if again := f.openMatch(t, in); again.Version != room.Version || len(again.ActivePlayers()) != 1 {
			t.Errorf("opened again it is %+v", again)
		}
	})
}

func TestEachMatchAndAttemptHasItsOwnRoom(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	first, _ := f.newMatch(2, time.Hour)
	seen := map[string]bool{}
	for _, change := range []func(*rooms.MatchInput){
		func(*rooms.MatchInput) {}, func(in *rooms.MatchInput) { in.GameID++ },
		func(in *rooms.MatchInput) { in.TournamentID++ }, func(in *rooms.MatchInput) { in.MatchID = "r2m6" },
		func(in *rooms.MatchInput) { in.Attempt++ },
		func(in *rooms.MatchInput) { in.RoundStart = in.RoundStart.Add(time.Millisecond) },
	} {
		in := first
		change(&in)
		id, err := f.service.MatchRoomID(t.Context(), in)
		if err != nil || seen[id] {
			t.Errorf("%+v has the room %s, as another one, %v", in, id, err)
		}
		seen[id] = true
		in.Players = nil // what does not say which match it is
		if again, err := f.service.MatchRoomID(t.Context(), in); err != nil || again != id {
			t.Errorf("%s, %v; want %s", again, err, id)
		}
	}
}

func TestAMatchStartsWhenAllOfItsPlayersSit(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		in, p := f.newMatch(3, time.Hour)
		in.Visibility = rooms.Private
		room := f.openMatch(t, in)
		if room.Status != rooms.Created || room.HostID != p[0].UserID || room.TakenSeats() != 3 || room.CreatorID != 0 ||
			len(room.ActivePlayers()) != 0 || room.Visibility != rooms.Private || room.Entry != 0 {
			t.Fatalf("%+v", room)
		}
		stranger := f.newPlayer(0)
		mustFail(t, apierror.RoomNotFound)(f.service.Join(ctx, stranger, room.RoomID, noKey))
		must(t)(f.service.Join(ctx, p[2], room.RoomID, noKey))
		// The host has not sat down.
		mustFail(t, apierror.NotParticipant)(f.service.TransferHost(ctx, p[0], room.RoomID, p[2].UserID, noKey))
		must(t)(f.service.Join(ctx, p[0], room.RoomID, noKey))
		must(t)(f.service.TransferHost(ctx, p[0], room.RoomID, p[2].UserID, noKey))
		f.closeMatch(t, room, rooms.Created, p[0], p[2])
		room = must(t)(f.service.Join(ctx, p[1], room.RoomID, noKey))
		active := room.ActivePlayers()
		if slices.Sort(active); room.Status != rooms.Started || !slices.Equal(active, in.Players) {
			t.Errorf("%+v", room)
		}
		f.closeMatch(t, room, rooms.Started, p...)
		room = must(t)(f.service.Finish(ctx, f.Server(), room.RoomID, []rooms.Placement{
			{UserID: p[0].UserID, Place: 2}, {UserID: p[1].UserID, Place: 1}, {UserID: p[2].UserID, Place: 2},
		}, noKey))
		f.closeMatch(t, room, rooms.Finished, p...)
		node := f.newService()
		k := f.take(node, nil)
		f.sweep(node)
		if len(k.taken) != 1 || k.taken[0].Consumer != "t.12.r2m5.1" || len(k.taken[0].Places) != 3 ||
			k.taken[0].Places[0].UserID != p[1].UserID {
			t.Errorf("%+v came", k.taken)
		}
		mustFail(t, apierror.Forbidden)(f.service.Rematch(ctx, p[0], room.RoomID, noKey))
	})
}

func TestAMatchIsCancelledAtItsDeadlineWhenSomebodyIsNotThere(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		in, p := f.newMatch(2, -time.Second)
		room := f.openMatch(t, in)
		must(t)(f.service.Join(t.Context(), p[1], room.RoomID, noKey))
		f.closeMatch(t, room, rooms.Cancelled, p[1])
		f.closeMatch(t, room, rooms.Cancelled, p[1]) // it was decided
		mustFail(t, apierror.RoomEnded)(f.service.Join(t.Context(), p[0], room.RoomID, noKey))
		got, err := f.service.Get(t.Context(), operator, room.RoomID)
		if err != nil || got.CancelReason != rooms.ReasonNoShow {
			t.Errorf("%+v, %v", got, err)
		}
		types := listEventTypes(t, f.db, got)
		if !slices.Equal(types, []string{"room.created", "room.joined", "room.cancelled"}) {
			t.Errorf("its events are %v", types)
		}
		node := f.newService()
		k := f.take(node, nil)
		f.sweep(node)
		if len(k.taken) != 1 || k.taken[0].Reason != rooms.ReasonNoShow || k.taken[0].Status != rooms.Cancelled {
			t.Errorf("%+v came", k.taken)
		}
		for _, player := range p {
			mine, err := f.service.List(t.Context(), player, rooms.ListQuery{Mine: true})
			if err != nil || len(mine.Items) > 0 {
				t.Errorf("%v, %v", mine.Items, err)
			}
		}
	})
}

// A join of the last instant is in or out: the match has started with all of its players, or it was
// cancelled and the last player did not sit down.
func TestAJoinOfTheLastInstantIsInOrOut(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		in, p := f.newMatch(2, -time.Second)
		started, cancelled := 0, 0
		for round := range 40 {
			in.Attempt = round + 1
			room := f.openMatch(t, in)
			must(t)(f.service.Join(t.Context(), p[0], room.RoomID, noKey))
			var wg sync.WaitGroup
			var joinErr, closeErr error
			wg.Go(func() { _, joinErr = f.service.Join(t.Context(), p[1], room.RoomID, noKey) })
			wg.Go(func() { _, _, closeErr = f.service.CloseMatch(t.Context(), f.GameID, room.RoomID) })
			wg.Wait()
			testkit.Check(t, closeErr)
			if joinErr == nil {
				f.closeMatch(t, room, rooms.Started, p...)
				started++
			} else if code := domaintest.CodeOf(joinErr); code == apierror.RoomEnded.Code {
				f.closeMatch(t, room, rooms.Cancelled, p[0])
				cancelled++
			} else {
				t.Fatal(joinErr)
			}
		}
		t.Logf("%d started and %d were cancelled", started, cancelled)
	})
}

func TestOnlyItsDeadlineStaffAndItsTournamentEndAMatchBeforeItsStart(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		in, p := f.newMatch(2, time.Hour)
		room := f.openMatch(t, in)
		mustFail(t, apierror.FriendsOnly)(f.service.Join(ctx, f.newPlayer(0), room.RoomID, noKey))
		must(t)(f.service.Join(ctx, p[0], room.RoomID, noKey)) // the host
		mustFail(t, apierror.Forbidden)(f.service.Cancel(ctx, p[0], room.RoomID, noKey))
		mustFail(t, apierror.NotEnoughPlayers)(f.service.Start(ctx, p[0], room.RoomID, noKey))
		kick := rooms.KickInput{RoomID: room.RoomID, UserID: p[1].UserID}
		mustFail(t, apierror.Forbidden)(f.service.Kick(ctx, p[0], kick, noKey))
		mustFail(t, apierror.Forbidden)(f.service.Kick(ctx, f.Server(), kick, noKey))
		must(t)(f.service.Leave(ctx, p[0], room.RoomID, noKey))
		must(t)(f.service.Leave(ctx, p[1], room.RoomID, noKey))
		f.closeMatch(t, room, rooms.Created)
		mustFail(t, apierror.FriendsOnly)(f.service.Join(ctx, p[0], room.RoomID, noKey)) // the seat was given up
		if f.waiting(room.RoomID) != "" {
			t.Fatalf("it leaves %s", f.waiting(room.RoomID))
		}
		for range 2 {
			testkit.Check(t, f.service.CancelMatch(ctx, f.GameID, room.RoomID, rooms.ReasonTournament))
		}
		f.closeMatch(t, room, rooms.Cancelled)
		if text := f.waiting(room.RoomID); !strings.Contains(text, "|CANCELLED|tournament|") {
			t.Errorf("it leaves %q", text)
		}

		in.Attempt++
		room = f.openMatch(t, in)
		room = must(t)(f.service.Cancel(ctx, f.Server(), room.RoomID, noKey))
		if room.CancelReason != "server" {
			t.Errorf("%+v", room)
		}
	})
}

func TestAMatchIsWonByTheLastPlayerWhoIsLeft(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		for _, settledBy := range []rooms.SettledBy{rooms.SettledByServer, rooms.SettledByConsensus} {
			in, p := f.newMatch(3, time.Hour)
			in.SettledBy, in.MatchID = settledBy, string(settledBy)
			room := f.openMatch(t, in)
			for _, player := range p {
				room = must(t)(f.service.Join(t.Context(), player, room.RoomID, noKey))
			}
			room = must(t)(f.service.Leave(t.Context(), p[0], room.RoomID, noKey))
			if room.Status != rooms.Started {
				t.Fatalf("%+v", room)
			}
			room = must(t)(f.service.Leave(t.Context(), p[2], room.RoomID, noKey))
			want := []rooms.Placement{{UserID: p[1].UserID, Place: 1}}
			if got := room.Placements(); room.Status != rooms.Finished || !slices.Equal(got, want) {
				t.Errorf("%s with %+v", room.Status, got)
			}
			if text := f.waiting(room.RoomID); !strings.Contains(text, "|FINISHED||"+string(settledBy)+"|") {
				t.Errorf("it leaves %q", text)
			}
		}
	})
}

// A match is nobody's own room.
func TestAMatchCountsForNoQuotaOfOpenRooms(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		f.service = rooms.New(f.db, f.wallet, f, f, rooms.Options{
			Shards: 1, KeyedHash: domaintest.KeyedHash, Quotas: rooms.Quotas{OpenRooms: 1, Seats: 32},
		})
		in, p := f.newMatch(2, time.Hour)
		for in.Attempt < 4 {
			in.Attempt++
			f.openMatch(t, in)
		}
		room := must(t)(f.service.Create(t.Context(), p[0], rooms.CreateInput{MaxPlayers: 2}, noKey))
		mustFail(t, apierror.LimitReached)(f.service.Create(t.Context(), p[0], rooms.CreateInput{MaxPlayers: 2}, noKey))
		must(t)(f.service.Cancel(t.Context(), f.Server(), room.RoomID, noKey))
	})
}

func TestRoomsThatAreNoMatchAreNotFound(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	room := must(t)(f.service.Create(t.Context(), f.newPlayer(0), rooms.CreateInput{MaxPlayers: 2}, noKey))
	in, _ := f.newMatch(2, time.Hour)
	match := f.openMatch(t, in)
	unopened, _ := f.service.MatchRoomID(t.Context(), rooms.MatchInput{GameID: f.GameID, RoundStart: time.Now()})
	for _, tt := range []struct {
		game   int64
		roomID string
	}{{f.GameID, room.RoomID}, {f.GameID + 1, match.RoomID}, {f.GameID, unopened}} {
		if _, _, err := f.service.CloseMatch(t.Context(), tt.game, tt.roomID); domaintest.CodeOf(err) != "room_not_found" {
			t.Errorf("close %+v: %v", tt, err)
		}
		err := f.service.CancelMatch(t.Context(), tt.game, tt.roomID, rooms.ReasonTournament)
		if domaintest.CodeOf(err) != "room_not_found" {
			t.Errorf("cancel %+v: %v", tt, err)
		}
	}
	if err := f.service.CancelMatch(t.Context(), f.GameID, match.RoomID, "other"); err == nil {
		t.Error("it is cancelled for a reason that the contract does not have")
	}
}

func TestAMatchThatCannotBeIsRejectedWithEveryField(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	_, err := f.service.OpenMatch(t.Context(), rooms.MatchInput{
		MatchID: "a.b", Players: []int64{3, 3, -1}, Metadata: wire.RawJSON(`[]`), SettledBy: "x", Visibility: "x",
	})
	e, ok := apierror.As(err)
	if !ok || e.Code != apierror.InvalidRequest.Code {
		t.Fatal(err)
	}
	var fields []string
	for _, field := range e.FieldErrors {
		fields = append(fields, field.Field)
	}
	want := []string{
		"gameId", "tournamentId", "matchId", "attempt", "roundStart", "deadline", "matchTimeout", "players", "players",
		"visibility", "settlement", "metadata",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("the fields are %v; want %v", fields, want)
	}
}

// Nobody closes the match: the sweep cancels it an hour after its deadline.
func TestTheSweepEndsAMatchThatNobodyCloses(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		in, p := f.newMatch(2, -time.Minute)
		room := f.openMatch(t, in)
		must(t)(f.service.Join(t.Context(), p[0], room.RoomID, noKey))
		f.makeDue(room.RoomID)
		f.sweep(f.service)
		f.requireCreated(t, room)
		f.setBack(room.RoomID, "created", 61*time.Minute)
		f.makeDue(room.RoomID)
		if r := f.sweepUntil(room, isCancelled); r.CancelReason != "expired" {
			t.Errorf("%+v", r)
		}
		f.closeMatch(t, room, rooms.Cancelled, p[0])
	})
}

// requireCreated requires that a room still waits for its players.
func (f *fixture) requireCreated(t *testing.T, room rooms.Room) {
	t.Helper()
	if got, err := f.service.Get(t.Context(), operator, room.RoomID); err != nil || got.Status != rooms.Created {
		t.Fatalf("%+v, %v", got, err)
	}
}

// Every node finds the room of a match again: its id follows from what the tournament stores.
func TestTheRoomOfAMatchFeedsAsItsTournament(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	in, _ := f.newMatch(2, time.Hour)
	id := func(hasFeed *bool) string {
		in.HasFeed = hasFeed
		return testkit.Must(f.service.MatchRoomID(t.Context(), in))(t)
	}
	with, without, before := id(new(true)), id(new(false)), id(nil)
	if !keys.RoomFeeds(with) || keys.RoomFeeds(without) || with == without || before != with && before != without {
		t.Errorf("with a feed %s, without %s, of a build before feeds %s", with, without, before)
	}
	if in.HasFeed = new(true); f.openMatch(t, in).RoomID != with {
		t.Error("the room has another id")
	}
}
