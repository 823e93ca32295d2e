package rooms_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

// setConnected stores that a player got or lost the only connection to a room, as the node of
// package presence that has it does.
func (f *fixture) setConnected(roomID string, userID int64, isConnected bool) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	here, gone := "", strconv.FormatInt(userID, 10)
	if isConnected {
		here, gone = gone, ""
	}
	call := lastID.Add(1) // also makes each grace differ: presence does not lose two in a millisecond
	testkit.Must(f.db.RunScript(f.t.Context(), scripts.PresenceSet,
		[]string{keys.Room(shard, roomID), keys.RoomEvents(shard, roomID), keys.PresenceLease(shard, "lease000")},
		f.db.PublishCommand, idempotency.NewNonce(), "lease000", call, roomID, 10_000+call, "0", here, gone))(f.t)
}

// passWindow makes the window of a room be over.
func (f *fixture) passWindow(roomID string) {
	f.t.Helper()
	shard, _ := keys.RoomShard(roomID)
	room := keys.Room(shard, roomID)
	window, err := f.db.Client.HGet(f.t.Context(), room, "window").Result()
	if err == nil {
		_, absent, _ := strings.Cut(window, "|")
		err = f.db.Client.HSet(f.t.Context(), room, "window", "1|"+absent).Err()
	}
	testkit.Check(f.t, err)
	f.makeDue(roomID)
}

// Every story is what players do, as in TestStoriesOfConsensus; "+2" is the second one who connects
// and "~2" who loses the connection, "over" the end of the window before any node has noticed,
// "window" the same and a sweep, "timeout" the end of the match and a sweep.
func TestStoriesOfWindows(t *testing.T) {
	stories := []struct{ story, want string }{
		{"+2 1:12 window", "FINISHED 12"},
		{"1:12 window", "DISPUTED"}, // the second one was never there
		{"+2 ~2 1:12 window", "DISPUTED"},
		{"1:12 +2 window", "FINISHED 12"},
		{"1:12 +2 ~2 window", "FINISHED 12"}, // there for a moment
		{"+2 ~2 1:12 +2 ~2 window", "FINISHED 12"},
		{"+2 1:12 ~2 window", "FINISHED 12"}, // gone when it lost
		{"1:12 over +2 window", "DISPUTED"},  // too late
		{"+2 ~2 1:12 over +2 ~2 2:21", "DISPUTED"},
		{"+2 1:12 2:21", "DISPUTED"},
		{"+2 1:11 window", "DISPUTED"},    // silence does not agree to a draw
		{"+2 1:11 2:11", "FINISHED 11"},   // both did
		{"+2 1:11 over 2:11", "DISPUTED"}, // too late
		{"+2 1:12 over 2:21/result_conflict", "FINISHED 12"},
		{"+2 1:12 over 2:12", "FINISHED 12"},
		{"+2 1:12 over 1:12", "STARTED"}, // sent again, it ends nothing
		{"1:12 over 2:21 2:12/result_conflict", "DISPUTED"},
		{"+2 1:12 over !21", "FINISHED 21"}, // the server's word
		{"+2 1:12 timeout", "STARTED"},      // while the window runs
		{"+2 1:12 timeout window", "FINISHED 12"},
		{"+2 timeout", "CANCELLED timeout"}, // nobody has reported
		{"+2 +3 1:123 window", "FINISHED 123"},
		{"+2 +3 1:123 2:123 window", "FINISHED 123"},
		{"+2 1:123 2:123 window", "DISPUTED"}, // the third one was not there
		{"+2 1:123 2:123 3:132", "DISPUTED"},  // two of three are evidence, not the result
		{"+2 +3 1:112 window", "DISPUTED"},
		{"+2 +3 1:122 window", "FINISHED 122"}, // a tie behind the first place is no draw
		{"+2 +3 1:123 -1 window", "STARTED"},   // the report went with the player
		{"+2 +3 1:123 -1 window timeout", "CANCELLED timeout"},
		{"+2 +3 1:123 -1 over 2:012 window", "FINISHED 012"},
		{"+2 +3 1:123 -2 window", "FINISHED 102"},
		{"+2 +3 1:213 over -1/room_closed", "FINISHED 213"}, // the report stays
		{"+2 +3 1:132 over -2/room_closed", "FINISHED 132"},
		{"+2 1:123 over -3/room_disputed", "DISPUTED"}, // who was not there
		{"+2 1:12 over -1/room_closed", "FINISHED 12"},
	}
	run := func(t *testing.T, f *fixture, entry string) {
		ctx := t.Context()
		for _, s := range stories {
			t.Run(s.story, func(t *testing.T) {
				f.t = t
				n := 2
				if strings.Contains(s.story, "3") {
					n = 3
				}
				room, players := f.startConsensus(n, entry)
				for i, step := range strings.Fields(s.story) {
					step, code, _ := strings.Cut(step, "/")
					var err error
					switch step[0] {
					case '+', '~':
						f.setConnected(room.RoomID, players[step[1]-'1'].UserID, step[0] == '+')
					case '-':
						_, err = f.service.Leave(ctx, players[step[1]-'1'], room.RoomID, noKey)
					case '!':
						_, err = f.service.Finish(ctx, f.Server(), room.RoomID, placesOf(players, step[1:]), noKey)
					case 'o':
						f.passWindow(room.RoomID)
					case 'w':
						f.passWindow(room.RoomID)
						f.sweep(f.service)
					case 't':
						f.setBack(room.RoomID, "started", f.Settings.MatchTimeout+time.Minute)
						f.makeDue(room.RoomID)
						f.sweep(f.service)
					default:
						rc := receiptOf(fmt.Sprint(room.RoomID, i))
						_, err = f.service.Finish(ctx, players[step[0]-'1'], room.RoomID, placesOf(players, step[2:]), rc)
					}
					if got := domaintest.CodeOf(err); got != code && (code != "" || err != nil) {
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
				if room.ReportUntil.IsZero() != (room.Status.Ended() || strings.HasSuffix(s.story, "-1 window")) {
					t.Errorf("a room that is %s shows a window until %v", got, room.ReportUntil)
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

// The loser of a paid room says nothing, and the winner is paid once by two nodes that sweep at the
// same time. tests/chaos kills the nodes that run when the winner reports.
func TestASilentLoserPays(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		room, players := f.startConsensus(2, "1")
		f.setConnected(room.RoomID, players[1].UserID, true)
		got := must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "12"), noKey))
		if until := time.Until(got.ReportUntil); until < time.Minute || until > 2*time.Minute {
			t.Errorf("the window ends in %v; want two minutes", until)
		}
		due, err := f.db.Client.ZScore(ctx, keys.RoomsDue(keys.EconomyShard(f.GameID)), room.RoomID).Result()
		if err != nil || int64(due) != got.ReportUntil.UnixMilli() {
			t.Errorf("the room is due at %.0f, %v; want %d", due, err, got.ReportUntil.UnixMilli())
		}
		f.Settings.ReportWindow = time.Hour // reaches no window that runs
		f.passWindow(room.RoomID)
		nodes := []*rooms.Service{f.newService(), f.newService()}
		race(func() { _, _ = nodes[0].Sweep(ctx) }, func() { _, _ = nodes[1].Sweep(ctx) })
		f.sweep(f.service)
		f.requireBalance(players[0], 1080, 0) // the pot of 200 less the rake of 20
		f.requireBalance(players[1], 900, 0)
		list, err := f.service.ListEvents(ctx, operator, room.RoomID, got.Seq-1)
		if err != nil || len(list.Events) != 2 || !strings.Contains(string(list.Events[0]), `"until":"`) ||
			!strings.Contains(string(list.Events[1]), `"room.finished"`) {
			t.Errorf("%s, %v; want the report with its window, and the end once", list.Events, err)
		}
		f.requireBooksBalance()
	})
}

// A node of the release before stores a report and begins no window. The next report here begins
// one: else two friends would be paid at once, before the third player could contradict.
func TestAReportBehindOneOfAnOlderNodeBeginsAWindow(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	room, players := f.startConsensus(3, "1")
	f.setConnected(room.RoomID, players[2].UserID, true)
	must(t)(f.service.Finish(t.Context(), players[0], room.RoomID, placesOf(players, "123"), noKey))
	shard, _ := keys.RoomShard(room.RoomID)
	testkit.Check(t, f.db.Client.HDel(t.Context(), keys.Room(shard, room.RoomID), "window").Err())
	got := must(t)(f.service.Finish(t.Context(), players[1], room.RoomID, placesOf(players, "123"), noKey))
	if until := time.Until(got.ReportUntil); until < time.Minute || until > 2*time.Minute {
		t.Errorf("the window ends in %v; want two minutes", until)
	}
}

// A sweep that comes before the end of the window ends nothing and comes again at its end.
func TestAWindowThatRunsIsNotEnded(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	room, players := f.startConsensus(2, "1")
	f.setConnected(room.RoomID, players[1].UserID, true)
	got := must(t)(f.service.Finish(t.Context(), players[0], room.RoomID, placesOf(players, "12"), noKey))
	f.makeDue(room.RoomID)
	f.sweep(f.service)
	due := f.db.Client.ZScore(t.Context(), keys.RoomsDue(keys.EconomyShard(f.GameID)), room.RoomID).Val()
	now, err := f.service.Get(t.Context(), operator, room.RoomID)
	isSame := now.Status == rooms.Started && now.Version == got.Version
	if err != nil || !isSame || int64(due) != got.ReportUntil.UnixMilli() {
		t.Errorf("%s of version %d, due at %.0f, %v", now.Status, now.Version, due, err)
	}
}

// A window that is over is closed before a turn that forfeits: the reported result is paid. While
// the window runs, the turn forfeits the seat as a leave does.
func TestATurnTakesNoResultWhoseWindowIsOver(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		f.Settings.TurnTimeout = games.TurnForfeits
		for _, isOver := range []bool{true, false} {
			room, players := f.startConsensus(2, "1")
			f.setConnected(room.RoomID, players[1].UserID, true)
			must(t)(f.service.SetTurn(ctx, f.Server(), turnOf(room, players[0], 1), noKey))
			must(t)(f.service.Finish(ctx, players[0], room.RoomID, placesOf(players, "12"), noKey))
			if isOver {
				f.passWindow(room.RoomID)
			}
			f.setTurnBack(room.RoomID)
			f.sweep(f.service)
			winner := players[1]
			if isOver {
				winner = players[0]
			}
			f.requireBalance(winner, 1080, 0)
		}
		f.requireBooksBalance()
	})
}

// Staff decides three disputes of the same two players: who reported otherwise is counted, once
// each, whatever the room costs and however often staff sends it.
func TestWhoLosesADisputeIsCounted(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		a, b := f.newPlayer(1000), f.newPlayer(1000)
		players := []principal.Caller{a, b}
		disputed := func(entry string) string {
			in := rooms.CreateInput{MaxPlayers: 2, SettledBy: rooms.SettledByConsensus}
			if entry != "0" {
				in = f.paidRoom(entry, 2)
				in.SettledBy = rooms.SettledByConsensus
			}
			room := must(t)(f.service.Create(ctx, a, in, noKey))
			must(t)(f.service.Join(ctx, b, room.RoomID, noKey))
			must(t)(f.service.Start(ctx, a, room.RoomID, noKey))
			must(t)(f.service.Finish(ctx, a, room.RoomID, placesOf(players, "12"), noKey))
			must(t)(f.service.Finish(ctx, b, room.RoomID, placesOf(players, "21"), noKey))
			return room.RoomID
		}
		resolve := func(roomID string, in rooms.ResolveInput) {
			for range 2 {
				must(t)(f.service.Resolve(ctx, operator, roomID, in, noKey))
			}
		}
		resolve(disputed("1"), rooms.ResolveInput{Placements: placesOf(players, "12")})
		resolve(disputed("0"), rooms.ResolveInput{Placements: placesOf(players, "12")})
		resolve(disputed("1"), rooms.ResolveInput{Placements: placesOf(players, "11")})
		resolve(disputed("1"), rooms.ResolveInput{Refund: true})
		last := disputed("1")
		lost := map[int64]int64{}
		room, err := f.service.Get(ctx, operator, last)
		page, listErr := f.service.AdminList(ctx, operator, rooms.ListQuery{GameID: f.GameID, Status: rooms.Disputed})
		if err != nil || listErr != nil || len(page.Items) != 1 {
			t.Fatalf("%d rooms, %v, %v", len(page.Items), err, listErr)
		}
		for i, report := range room.Reports {
			lost[report.UserID] = report.DisputesLost
			n, err := f.service.CountDisputesLost(ctx, operator, f.GameID, report.UserID)
			if err != nil || n != report.DisputesLost {
				t.Errorf("player %d has lost %d disputes, %v; want %d", report.UserID, n, err, report.DisputesLost)
			}
			if listed := page.Items[0].Reports[i]; listed.DisputesLost != report.DisputesLost {
				t.Errorf("the list has %d", listed.DisputesLost)
			}
		}
		if want := map[int64]int64{a.UserID: 1, b.UserID: 3}; !maps.Equal(lost, want) {
			t.Errorf("%v; want %v", lost, want)
		}
		if refundAt := time.Until(room.RefundAt); refundAt < 71*time.Hour || refundAt > 72*time.Hour {
			t.Errorf("the stakes go back in %v", refundAt)
		}
	})
}

// reportModel is the rules of reports and windows in plain Go.
type reportModel struct {
	active       []int // players by number
	reports      map[int]string
	status       rooms.Status
	result       string // places of the active players by number
	hasWindow    bool
	isOver       bool // the window is, and nobody has noticed
	connected    map[int]bool
	wasConnected map[int]bool // at any time of the window
}

// among returns the places that the active players have in a report.
func (m *reportModel) among(report string) string {
	if report == "" {
		return ""
	}
	var b strings.Builder
	for _, x := range m.active {
		place := 1
		for _, y := range m.active {
			if report[y] < report[x] {
				place++
			}
		}
		fmt.Fprint(&b, place)
	}
	return b.String()
}

// reported returns the active players who have reported.
func (m *reportModel) reported() (list []int) {
	for _, p := range m.active {
		if m.reports[p] != "" {
			list = append(list, p)
		}
	}
	return list
}

func (m *reportModel) finish(report string) { m.status, m.result = rooms.Finished, m.among(report) }

// close ends a window that is over.
func (m *reportModel) close() {
	if m.status != rooms.Started || !m.isOver {
		return
	}
	m.hasWindow, m.isOver = false, false
	reported := m.reported()
	if len(reported) == 0 {
		return
	}
	report := m.reports[reported[0]]
	isDraw := strings.Count(m.among(report), "1") > 1
	for _, p := range m.active {
		if m.reports[p] == "" && (isDraw || !m.wasConnected[p]) {
			m.status = rooms.Disputed
			return
		}
	}
	m.finish(report)
}

// report returns the code that the service must return.
func (m *reportModel) report(p int, report string) string {
	own := m.reports[p]
	if own == "" {
		m.close()
	}
	isSame := m.among(own) == m.among(report)
	if m.status == rooms.Finished {
		isSame = m.result == m.among(report)
	}
	if m.status == rooms.Finished || own != "" {
		return map[bool]string{true: "ok", false: "result_conflict"}[isSame]
	}
	before := m.reported()
	m.reports[p] = report
	if m.status == rooms.Disputed {
		return "ok"
	}
	differs := len(before) > 0 && m.among(m.reports[before[0]]) != m.among(report)
	concedes := len(m.active) == 2 && m.among(report)[slices.Index(m.active, p)] > '1'
	switch {
	case !differs && len(before)+1 == len(m.active), concedes:
		m.finish(report)
	case differs:
		m.status = rooms.Disputed
	case len(before) == 0:
		m.hasWindow, m.isOver, m.wasConnected = true, false, maps.Clone(m.connected)
	}
	return "ok"
}

// leave forfeits a seat of a free room, and returns the code that the service must return.
func (m *reportModel) leave(p int) string {
	switch m.close(); m.status {
	case rooms.Finished:
		return "room_closed"
	case rooms.Disputed:
		return "room_disputed"
	}
	m.active = slices.DeleteFunc(slices.Clone(m.active), func(other int) bool { return other == p })
	reported := m.reported()
	switch {
	case len(m.active) == 0:
		m.status = rooms.Cancelled
	case len(reported) == len(m.active):
		m.finish(m.reports[reported[0]])
	}
	return "ok"
}

// Reports, leaves, connections and ends of windows in any order, with and without a sweep behind
// them, agree with the model.
func TestReportsWithWindowsAgreeWithTheirModel(t *testing.T) {
	db := redistest.Single(t)
	for range 10 { // of 100 cases each
		rapid.Check(t, func(rt *rapid.T) { checkReports(t, rt, db) })
	}
}

func checkReports(t *testing.T, rt *rapid.T, db *redisdb.DB) {
	f := newCase(t, db)
	n := rapid.IntRange(2, 4).Draw(rt, "players")
	room, players := f.startConsensus(n, "0")
	m := &reportModel{
		reports: map[int]string{}, status: rooms.Started, connected: map[int]bool{}, wasConnected: map[int]bool{},
	}
	for p := range n {
		m.active = append(m.active, p)
	}
	ctx := t.Context()
	for range rapid.IntRange(2, 14).Draw(rt, "steps") {
		if len(m.active) == 0 {
			break
		}
		p := rapid.SampledFrom(m.active).Draw(rt, "player")
		switch step := rapid.SampledFrom([]string{
			"report", "report", "report", "report", "connect", "connect", "lose", "leave", "over", "over", "sweep", "timeout",
		}).Draw(rt, "step"); step {
		case "report":
			// Mostly what somebody else saw: else every game ends in a dispute.
			digits := []byte("1234"[:n])
			if reported := m.reported(); len(reported) > 0 && rapid.IntRange(0, 3).Draw(rt, "agrees") > 0 {
				digits = []byte(m.reports[reported[0]])
			} else if rapid.IntRange(0, 2).Draw(rt, "shuffled") == 0 {
				for i := range digits {
					digits[i] = byte('1' + rapid.IntRange(0, n-1).Draw(rt, "place"))
				}
			}
			// The places of those who are there, counted from 1, as the service counts them.
			ranks, given := m.among(string(digits)), []byte(strings.Repeat("0", n))
			for i, other := range m.active {
				given[other] = ranks[i]
			}
			want := m.report(p, string(given))
			_, err := f.service.Finish(ctx, players[p], room.RoomID, placesOf(players, string(given)), noKey)
			if got := domaintest.CodeOf(err); got != want {
				rt.Fatalf("%d reports %s: %v; want %s", p, given, err, want)
			}
		case "connect", "lose":
			m.connected[p] = step == "connect"
			m.wasConnected[p] = m.wasConnected[p] || m.connected[p] && !m.isOver
			f.setConnected(room.RoomID, players[p].UserID, m.connected[p])
		case "leave":
			if m.status != rooms.Started || rapid.IntRange(0, 1).Draw(rt, "really") == 0 {
				continue
			}
			want := m.leave(p)
			if _, err := f.service.Leave(ctx, players[p], room.RoomID, noKey); domaintest.CodeOf(err) != want {
				rt.Fatalf("%d leaves: %v; want %s", p, err, want)
			}
		case "over":
			if m.status == rooms.Started && m.hasWindow && !m.isOver {
				m.isOver = true
				f.passWindow(room.RoomID)
			}
		case "sweep":
			m.close()
			f.sweep(f.service)
		case "timeout":
			if m.status != rooms.Started || rapid.IntRange(0, 2).Draw(rt, "really") > 0 {
				continue
			}
			if m.close(); m.status == rooms.Started && !m.hasWindow {
				m.status = rooms.Cancelled
			}
			f.setBack(room.RoomID, "started", f.Settings.MatchTimeout+time.Minute)
			f.makeDue(room.RoomID)
			for range 2 { // the first one may close a window after which the time of the match is over
				f.sweep(f.service)
			}
		}
		got, err := f.service.Get(ctx, operator, room.RoomID)
		places := ""
		for _, active := range m.active {
			places += formatPlaces(players, got.Placements())[active : active+1]
		}
		if err != nil || got.Status != m.status || m.status == rooms.Finished && places != m.result {
			rt.Fatalf("the room is %s %s, %v; want %s %s", got.Status, places, err, m.status, m.result)
		}
		if m.status == rooms.Started && got.ReportUntil.IsZero() == m.hasWindow {
			rt.Fatalf("the window ends at %v; want one: %t", got.ReportUntil, m.hasWindow)
		}
		if m.status.Ended() {
			break
		}
	}
}

// A report waits while the clocks differ: whether it is in time decides about money.
func TestALateReportIsNotJudgedWhileTheClocksDiffer(t *testing.T) {
	db, clock := redistest.OpenMovable(t)
	f := newFixture(t, db)
	room, players := f.startConsensus(2, "1")
	f.setConnected(room.RoomID, players[1].UserID, true)
	must(t)(f.service.Finish(t.Context(), players[0], room.RoomID, placesOf(players, "12"), noKey))
	clock.Move(time.Hour)
	mustFail(t, apierror.StoreUnavailable)(
		f.service.Finish(t.Context(), players[1], room.RoomID, placesOf(players, "21"), noKey))
	clock.Move(0)
	redistest.LookAtClocks(t, db)
	got := must(t)(f.service.Finish(t.Context(), players[1], room.RoomID, placesOf(players, "21"), noKey))
	if got.Status != rooms.Disputed {
		t.Errorf("the room is %s", got.Status)
	}
}
