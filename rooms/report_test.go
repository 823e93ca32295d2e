package rooms_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
)

// startConsensus starts a room with consensus of n players who have paid the entry, "0" for none.
func (f *fixture) startConsensus(n int, entry string) (rooms.Room, []principal.Caller) {
	f.t.Helper()
	ctx := f.t.Context()
	in := rooms.CreateInput{MaxPlayers: n, SettledBy: rooms.SettledByConsensus}
	if entry != "0" {
		in = f.paidRoom(entry, n)
		in.SettledBy, in.RakeBps = rooms.SettledByConsensus, new(1000)
	}
	players := make([]principal.Caller, n)
	var room rooms.Room
	var err error
	for i := range players {
		players[i] = f.newPlayer(1000)
		var result rooms.ChangeResult
		if i == 0 {
			if result, err = f.service.Create(ctx, players[i], in, noKey); err == nil {
				room = *result.Room
			}
		} else {
			_, err = f.service.Join(ctx, players[i], room.RoomID, noKey)
		}
		testkit.Check(f.t, err)
	}
	testkit.Must(f.service.Start(ctx, players[0], room.RoomID, noKey))(f.t)
	return room, players
}

// placesOf returns placements of players by digits: "21" has the second one first, "0" leaves one
// out.
func placesOf(players []principal.Caller, digits string) []rooms.Placement {
	var list []rooms.Placement
	for i, digit := range digits {
		if digit != '0' {
			list = append(list, rooms.Placement{UserID: players[i].UserID, Place: int(digit - '0')})
		}
	}
	return list
}

// formatPlaces is the reverse of placesOf.
func formatPlaces(players []principal.Caller, list []rooms.Placement) string {
	var b strings.Builder
	for _, p := range players {
		i := slices.IndexFunc(list, func(placement rooms.Placement) bool { return placement.UserID == p.UserID })
		if i < 0 {
			b.WriteString("0")
		} else {
			fmt.Fprint(&b, list[i].Place)
		}
	}
	return b.String()
}

// Every story is what players do: "1:213" is the first one who reports places, "-3" the third one
// who leaves, "!123" the server who finishes, "=213" and "=refund" the operator who resolves; an
// error code follows what is refused. The room must have the status then, and the result or the
// reason.
func TestStoriesOfConsensus(t *testing.T) {
	stories := []struct{ story, want string }{
		{"1:12", "STARTED"},
		{"1:12 2:12", "FINISHED 12"},
		{"1:11 2:11", "FINISHED 11"},
		{"1:12 1:12 1:21/result_conflict 2:12 1:12 2:21/result_conflict", "FINISHED 12"},
		{"1:21", "FINISHED 21"}, // against oneself
		{"1:21 2:21 2:12/result_conflict", "FINISHED 21"},
		{"1:11 2:12", "FINISHED 12"}, // the second concedes more than the first claims
		{"1:12 2:21", "DISPUTED"},
		{"1:12 2:11", "DISPUTED"},
		{"1:12 2:21 1:12 1:21/result_conflict 2:21", "DISPUTED"},
		{"1:12 2:21 -1/room_disputed !12/room_disputed", "DISPUTED"},
		{"1:12 2:21 =21 =21 =12/result_conflict =refund/result_conflict", "FINISHED 21"},
		{"1:12 2:21 =refund =refund =12/result_conflict", "CANCELLED dispute_refunded"},
		{"1:12 2:21 =10/invalid_request =00/invalid_request", "DISPUTED"},
		{"1:12 =12/not_disputed =refund/not_disputed", "STARTED"},
		{"1:12 2:12 =12/not_disputed", "FINISHED 12"},
		{"!21 1:21 2:12/result_conflict", "FINISHED 21"}, // the server's word is final
		{"1:12 !21 !21 !12/result_conflict 1:12/result_conflict", "FINISHED 21"},
		{"1:12 -2 1:12/result_conflict 1:10", "FINISHED 10"}, // one is left
		{"1:10/invalid_request 1:22/invalid_request 1:123/invalid_request", "STARTED"},
		{"1:123 2:123", "STARTED"},
		{"1:123 3:132", "DISPUTED"}, // at once
		{"1:123 3:132 2:123 =123", "FINISHED 123"},
		{"1:123 2:123 -3", "FINISHED 120"},
		{"1:231 2:231 -3", "FINISHED 120"}, // the others move up
		{"3:231 2:231 -2 1:201", "FINISHED 201"},
		{"3:231 -2 1:102", "DISPUTED"},           // of two who are left, each claims to be first
		{"3:231 -2 1:201", "FINISHED 201"},       // and one concedes
		{"1:123 -3 2:120", "FINISHED 120"},       // it is the same without who left
		{"1:123 -1 2:012 3:021", "DISPUTED"},     // a report of who left counts no more
		{"1:123 -1 2:012 3:012", "FINISHED 012"}, // likewise
		{"-3 1:123/invalid_request -3/not_participant", "STARTED"},
		{"-3 3:123/not_participant", "STARTED"},
		{"1:111 2:111 3:111", "FINISHED 111"},
	}
	run := func(t *testing.T, f *fixture, entry string) {
		ctx := t.Context()
		for _, s := range stories {
			if entry == "0" && strings.HasPrefix(s.story, "1:12 -2") {
				continue // a free game goes on with one player, but they reported the same
			}
			t.Run(s.story, func(t *testing.T) {
				f.t = t
				n := 2
				if strings.Contains(s.story, "3") && !strings.Contains(s.story, "1:10/") {
					n = 3
				}
				room, players := f.startConsensus(n, entry)
				for i, step := range strings.Fields(s.story) {
					step, code, _ := strings.Cut(step, "/")
					var err error
					who := players[0]
					if step[0] >= '1' && step[0] <= '3' {
						who, step = players[step[0]-'1'], step[1:]
					}
					list := placesOf(append(players, players[0]), step[1:min(len(step), 4)])
					switch step[0] {
					case ':':
						_, err = f.service.Finish(ctx, who, room.RoomID, list, receiptOf(fmt.Sprint(room.RoomID, i)))
					case '!':
						_, err = f.service.Finish(ctx, f.Server(), room.RoomID, list, receiptOf(fmt.Sprint(room.RoomID, i)))
					case '-':
						_, err = f.service.Leave(ctx, players[step[1]-'1'], room.RoomID, noKey)
					case '=':
						in := rooms.ResolveInput{Placements: list}
						if step == "=refund" {
							in = rooms.ResolveInput{Refund: true}
						}
						_, err = f.service.Resolve(ctx, operator, room.RoomID, in, receiptOf(fmt.Sprint(room.RoomID, i)))
					}
					got := ""
					if apiErr, ok := apierror.As(err); ok {
						got = apiErr.Code
					}
					if got != code || err != nil && got == "" {
						t.Fatalf("step %d: %v, want %q", i, err, code)
					}
				}
				room, err := f.service.Get(ctx, operator, room.RoomID)
				got := string(room.Status)
				switch room.Status {
				case rooms.Finished:
					got += " " + formatPlaces(players, room.Placements())
				case rooms.Cancelled:
					got += " " + room.CancelReason
				}
				if err != nil || got != s.want {
					t.Fatalf("the room is %s, %v", got, err)
				}
			})
		}
		f.t = t
		f.requireBooksBalance()
	}
	eachStore(t, func(t *testing.T, f *fixture) {
		t.Run("paid", func(t *testing.T) { run(t, f, "1") })
		t.Run("free", func(t *testing.T) { run(t, f, "0") })
	})
}

func TestAReportIsSeenByTheOperatorOnly(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	room, players := f.startConsensus(2, "1")
	mine := placesOf(players, "12")
	mine[0].Score, mine[1].Score = new(9.5), new(0.)
	got := must(t)(f.service.Finish(ctx, players[0], room.RoomID, mine, noKey))
	times := regexp.MustCompile(`,"matchDeadline":[^,}]*|("reportUntil"|"refundAt"):"[^"]*"`)
	show := func(r rooms.Room) string {
		text := testkit.Must(wire.Marshal(r))(t)
		_, members, _ := strings.Cut(string(text), `"rematchRoomId":null`)
		return times.ReplaceAllString(members, "$1")
	}
	reporter := fmt.Sprint(players[0].UserID)
	early := fmt.Sprintf(`,"disputedAt":null,"refundAt":null,"reportUntil","reportedBy":[%s]}`, reporter)
	if show(got) != early {
		t.Fatalf("a player sees %s", show(got))
	}
	if seen, err := f.service.Get(ctx, operator, room.RoomID); err != nil || show(seen) != early {
		t.Fatalf("the operator sees %s before the end, %v", show(seen), err)
	}
	must(t)(f.service.Finish(ctx, players[1], room.RoomID, placesOf(players, "21"), noKey))
	full := fmt.Sprintf(`"reports":[{"userId":%[1]d,"results":[{"userId":%[1]d,"place":1,"score":9.5},{"userId":%[2]d,`+
		`"place":2,"score":0}],"disputesLost":0},`+
		`{"userId":%[2]d,"results":[{"userId":%[2]d,"place":1},{"userId":%[1]d,"place":2}],"disputesLost":0}]}`,
		players[0].UserID, players[1].UserID)
	seen, err := f.service.Get(ctx, operator, room.RoomID)
	page, listErr := f.service.AdminList(ctx, operator, rooms.ListQuery{GameID: f.GameID, Status: rooms.Disputed})
	if err != nil || listErr != nil || len(page.Items) != 1 || !strings.HasSuffix(show(seen), full) ||
		show(page.Items[0]) != show(seen) {
		t.Fatalf("the operator sees %s and %d rooms, %v, %v", show(seen), len(page.Items), err, listErr)
	}
	for _, other := range []principal.Caller{players[0], f.Server()} {
		seen, err := f.service.Get(ctx, other, room.RoomID)
		if err != nil || strings.Contains(show(seen), "reports") || seen.DisputedAt.IsZero() {
			t.Fatalf("%v sees %s, %v", other.Role, show(seen), err)
		}
		list, err := f.service.List(ctx, other, rooms.ListQuery{Status: rooms.Disputed})
		if err != nil || len(list.Items) != 1 || strings.Contains(show(list.Items[0]), "reports") {
			t.Fatalf("%v lists %d, %v", other.Role, len(list.Items), err)
		}
	}
}

// A hidden room is in the list of the disputed ones, which players read too, as is a free one of
// another game.
func TestPlayersListDisputedRoomsThatArePublic(t *testing.T) {
	db := redistest.Single(t)
	f, other := newFixture(t, db), newFixture(t, db)
	for _, of := range []*fixture{f, other} {
		room, players := of.startConsensus(2, "0")
		must(t)(of.service.Finish(t.Context(), players[0], room.RoomID, placesOf(players, "12"), noKey))
		must(t)(of.service.Finish(t.Context(), players[1], room.RoomID, placesOf(players, "21"), noKey))
	}
	a, b := f.newPlayer(1000), f.newPlayer(1000)
	hidden := must(t)(f.service.Create(t.Context(), a, rooms.CreateInput{
		MaxPlayers: 2, Visibility: rooms.Unlisted, SettledBy: rooms.SettledByConsensus,
	}, noKey))
	must(t)(f.service.Join(t.Context(), b, hidden.RoomID, noKey))
	must(t)(f.service.Start(t.Context(), a, hidden.RoomID, noKey))
	players := []principal.Caller{a, b}
	must(t)(f.service.Finish(t.Context(), a, hidden.RoomID, placesOf(players, "12"), noKey))
	must(t)(f.service.Finish(t.Context(), b, hidden.RoomID, placesOf(players, "21"), noKey))
	for want, who := range map[int]principal.Caller{1: a, 2: f.Server()} {
		list, err := f.service.List(t.Context(), who, rooms.ListQuery{Status: rooms.Disputed})
		if err != nil || len(list.Items) != want {
			t.Errorf("%v lists %d disputed rooms, %v; want %d", who.Role, len(list.Items), err, want)
		}
	}
}

func TestARoomWithConsensusHasAtMost32Players(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	in := rooms.CreateInput{MaxPlayers: 33, SettledBy: rooms.SettledByConsensus}
	err := mustFail(t, apierror.InvalidRequest)(f.service.Create(t.Context(), f.newPlayer(0), in, noKey))
	if len(err.FieldErrors) != 1 || err.FieldErrors[0].Field != "maxPlayers" {
		t.Fatalf("%+v", err.FieldErrors)
	}
}

// isExpected reports whether an error is nil or one of those that a race may end with.
func isExpected(err error, codes ...*apierror.Error) bool {
	return err == nil || slices.ContainsFunc(codes, func(e *apierror.Error) bool { return errors.Is(err, e) })
}

// race makes all calls at once.
func race(calls ...func()) {
	var wg sync.WaitGroup
	for _, call := range calls {
		wg.Go(call)
	}
	wg.Wait()
}

func TestAllReportAtOnceThroughTwoNodes(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		nodes := []*rooms.Service{f.newService(), f.newService()}
		for _, liar := range []bool{false, true} {
			room, players := f.startConsensus(32, "1")
			var calls []func()
			for i, p := range players {
				list := make([]rooms.Placement, len(players))
				for seat := range players {
					list[seat] = rooms.Placement{UserID: players[seat].UserID, Place: 1 + seat}
				}
				if liar && i == 20 {
					list[0].Place, list[20].Place = list[20].Place, list[0].Place
				}
				calls = append(calls, func() {
					testkit.Report(t, testkit.ErrorOf(nodes[i%2].Finish(ctx, p, room.RoomID, list, noKey)))
				})
			}
			race(calls...)
			got, err := f.service.Get(ctx, operator, room.RoomID)
			want, count := rooms.Finished, len(players)+1
			if liar {
				want, count = rooms.Disputed, len(players)+1
			}
			ends := listEventTypes(t, f.db, got)
			reports := slices.DeleteFunc(slices.Clone(ends), func(e string) bool { return e != "room.result" })
			if err != nil || got.Status != want || len(got.Reports) != 32 || len(reports) != 32 ||
				len(ends) != count+len(players)+1 {
				t.Fatalf("%s with %d reports and the events %v, %v", got.Status, len(got.Reports), ends, err)
			}
			if liar {
				must(t)(f.service.Resolve(ctx, operator, room.RoomID, rooms.ResolveInput{Refund: true}, noKey))
			}
		}
		f.requireBooksBalance()
	})
}

func TestAReportRacesWhatElseEndsTheRoom(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		nodes := []*rooms.Service{f.newService(), f.newService()}
		for range 10 {
			// The last report and the leave of another: finished in any order, with the one who left or
			// without.
			room, players := f.startConsensus(3, "1")
			must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "123"), noKey))
			must(t)(f.service.Finish(ctx, players[2], room.RoomID, placesOf(players, "123"), noKey))
			race(func() {
				_, err := nodes[0].Finish(ctx, players[1], room.RoomID, placesOf(players, "123"), noKey)
				if !isExpected(err, apierror.InvalidRequest, apierror.ResultConflict) {
					t.Error(err)
				}
			}, func() {
				if _, err := nodes[1].Leave(ctx, players[2], room.RoomID, noKey); !isExpected(err, apierror.RoomEnded) {
					t.Error(err)
				}
			})
			got, err := f.service.Get(ctx, operator, room.RoomID)
			if err == nil && got.Status == rooms.Started { // the report named the one who had left
				got = must(t)(f.service.Finish(ctx, players[1], room.RoomID, placesOf(players, "120"), noKey))
			}
			if err != nil || got.Status != rooms.Finished || got.Placements()[0].UserID != players[0].UserID {
				t.Fatalf("%+v, %v", got, err)
			}

			// The last report and the deadline.
			room, players = f.startConsensus(2, "1")
			must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "12"), noKey))
			f.setBack(room.RoomID, "started", f.Settings.MatchTimeout+time.Minute)
			f.makeDue(room.RoomID)
			race(func() {
				_, err := nodes[0].Finish(ctx, players[1], room.RoomID, placesOf(players, "12"), noKey)
				if !isExpected(err, apierror.RoomEnded) {
					t.Error(err)
				}
			}, func() {
				testkit.Report(t, testkit.ErrorOf(nodes[1].Sweep(ctx)))
			})
			got, err = f.service.Get(ctx, operator, room.RoomID)
			if err != nil || !got.Status.Ended() || (got.Status == rooms.Cancelled) != (got.CancelReason == "timeout") {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		f.requireBooksBalance()
	})
}

func TestADisputeIsDecidedOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		nodes := []*rooms.Service{f.newService(), f.newService()}
		for i := range 12 {
			room, players := f.startConsensus(2, "1")
			must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "12"), noKey))
			must(t)(f.service.Finish(ctx, players[1], room.RoomID, placesOf(players, "21"), noKey))
			var errs [3]error
			decide := func(i int, in rooms.ResolveInput) func() {
				return func() { _, errs[i] = nodes[i%2].Resolve(ctx, operator, room.RoomID, in, noKey) }
			}
			calls := []func(){
				decide(0, rooms.ResolveInput{Placements: placesOf(players, "12")}),
				decide(1, rooms.ResolveInput{Placements: placesOf(players, "21")}),
				decide(2, rooms.ResolveInput{Placements: placesOf(players, "11")}),
			}
			if i%2 == 1 {
				f.setBack(room.RoomID, "disputed", 72*time.Hour+time.Minute)
				f.makeDue(room.RoomID)
				calls = append(calls, func() {
					testkit.Report(t, testkit.ErrorOf(nodes[0].Sweep(ctx)))
				})
			}
			race(calls...)
			decided := 0
			for _, err := range errs {
				if err == nil {
					decided++
				} else if !errors.Is(err, apierror.ResultConflict) {
					t.Error(err)
				}
			}
			got, err := f.service.Get(ctx, operator, room.RoomID)
			refunded := got.Status == rooms.Cancelled && got.CancelReason == "dispute_refunded"
			if err != nil || decided > 1 || refunded != (decided == 0) || !refunded && got.Status != rooms.Finished {
				t.Fatalf("%d decisions count, and the room is %s %s: %v", decided, got.Status, got.CancelReason, err)
			}
			for _, p := range players {
				if refunded {
					f.requireBalance(p, 1000, 0)
				}
			}
		}
		f.requireBooksBalance()
	})
}

func TestADisputeIsRefundedAfter72Hours(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		room, players := f.startConsensus(2, "1")
		must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "12"), noKey))
		must(t)(f.service.Finish(ctx, players[1], room.RoomID, placesOf(players, "21"), noKey))
		f.setBack(room.RoomID, "started", 365*24*time.Hour)
		f.setBack(room.RoomID, "disputed", 72*time.Hour-time.Minute)
		f.makeDue(room.RoomID)
		testkit.Must(f.service.Sweep(ctx))(t)
		if got, err := f.service.Get(ctx, operator, room.RoomID); err != nil || got.Status != rooms.Disputed {
			t.Fatalf("%s before its time, %v", got.Status, err)
		}
		f.setBack(room.RoomID, "disputed", time.Minute)
		f.makeDue(room.RoomID)
		got := f.sweepUntil(room, isCancelled)
		if got.CancelReason != "dispute_refunded" || got.Rake != 0 || len(got.Reports) != 2 {
			t.Fatalf("%+v", got)
		}
		for _, p := range players {
			f.requireBalance(p, 1000, 0)
		}
		f.requireBooksBalance()
	})
}
