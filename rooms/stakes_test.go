package rooms_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// playedMatch is the match of a tournament with a fee that two players play; the first is its host.
type playedMatch struct {
	*fixture
	rooms.Room
	players []principal.Caller
}

func (f *fixture) playMatch(t *testing.T, hasStakes bool) playedMatch {
	t.Helper()
	in, players := f.newMatch(2, time.Hour)
	in.HasStakes, in.TournamentID = hasStakes, lastID.Add(1)
	room := f.openMatch(t, in)
	for _, p := range players {
		room = must(t)(f.service.Join(t.Context(), p, room.RoomID, noKey))
	}
	if room.Status != rooms.Started || room.HostID != players[0].UserID {
		t.Fatalf("%+v", room)
	}
	return playedMatch{f, room, players}
}

// Where the players of a match report its result, a server key decides nothing: also not by a turn
// that forfeits the seat of whoever has it.
func TestAServerKeyDecidesNoMatchOfPlayers(t *testing.T) {
	for _, hasStakes := range []bool{true, false} {
		f := newFixture(t, redistest.Single(t))
		f.Settings.TurnTimeout = games.TurnForfeits
		in, players := f.newMatch(2, time.Hour)
		in.HasStakes, in.TournamentID, in.SettledBy = hasStakes, lastID.Add(1), rooms.SettledByConsensus
		m := playedMatch{f, f.openMatch(t, in), players}
		for _, p := range players {
			m.Room = must(t)(f.service.Join(t.Context(), p, m.RoomID, noKey))
		}
		if hasStakes {
			mustFail(t, apierror.Forbidden)(f.service.Cancel(t.Context(), f.Server(), m.RoomID, noKey))
			mustFail(t, apierror.Forbidden)(f.service.Finish(t.Context(), f.Server(), m.RoomID, placesOf(players, "12"), noKey))
		}
		must(t)(f.service.SetTurn(t.Context(), f.Server(), turnOf(m.Room, players[1], 1), noKey))
		if room := m.endTurn(t); (room.Status == rooms.Started) != hasStakes {
			t.Errorf("with stakes: %v; the room is %s", hasStakes, room.Status)
		}
	}
}

// giveASecond lets the host give the other player a turn that is over, and ends it.
func (m playedMatch) giveASecond(t *testing.T) rooms.Room {
	t.Helper()
	must(t)(m.service.SetTurn(t.Context(), m.players[0], turnOf(m.Room, m.players[1], 1), noKey))
	return m.endTurn(t)
}

func (m playedMatch) endTurn(t *testing.T) rooms.Room {
	t.Helper()
	m.setTurnBack(m.RoomID)
	testkit.Must(m.service.Sweep(t.Context()))(t)
	return testkit.Must(m.service.Get(t.Context(), operator, m.RoomID))(t)
}

// meaning is what a rule asks when it reads the entry of a room, or that it is a match.
type meaning string

const (
	asksPot    meaning = "pot"    // whether stakes of players lie in the room; a match has none
	asksStakes meaning = "stakes" // whether money hangs on the room
	asksMatch  meaning = "match"  // whether a tournament decides about the room, with or without stakes
	asksShape  meaning = "shape"  // stores, decodes or shows it, and decides nothing
)

// entryRule is a place that reads the entry of a room.
type entryRule struct {
	meaning meaning
	// onMatch is what the rule must do to the match of a tournament with a fee; nil where pot and
	// shape have nothing to do: staysOutOfMoney covers them together.
	onMatch func(t *testing.T, m playedMatch)
}

// staysOutOfMoney requires of a match that it moves no money, whoever ends it: the fees lie in the
// tournament.
func staysOutOfMoney(t *testing.T, m playedMatch) {
	room := must(t)(m.service.Leave(t.Context(), m.players[1], m.RoomID, noKey))
	if room.Status != rooms.Finished || room.Entry != 0 || room.Pot != 0 || room.Rake != 0 || room.TokenCode != "" {
		t.Errorf("%+v", room)
	}
	for _, p := range m.players {
		m.requireBalance(p, 0, 0)
	}
}

// forbiddenToTheHost returns the case of what the host of a match may not do.
func forbiddenToTheHost(
	verb func(m playedMatch, ctx context.Context) (rooms.ChangeResult, error),
) func(t *testing.T, m playedMatch) {
	return func(t *testing.T, m playedMatch) {
		mustFail(t, apierror.Forbidden)(verb(m, t.Context()))
	}
}

// entryRules are all places of the package and its scripts that read the entry of a room, the pot,
// or whether it is a match. A new one needs a row, and so the question what hangs on it.
var entryRules = map[string]entryRule{
	"scripts/room_turn_set.lua": {asksStakes, func(t *testing.T, m playedMatch) {
		m.Settings.TurnTimeout = games.TurnForfeits
		if room := m.giveASecond(t); room.Status != rooms.Started || len(room.ActivePlayers()) != 2 {
			t.Errorf("the host has forfeited its opponent: %+v", room)
		}
		must(t)(m.service.SetTurn(t.Context(), m.Server(), turnOf(m.Room, m.players[0], 1), noKey))
		nobody := rooms.TurnInput{RoomID: m.RoomID}
		mustFail(t, apierror.Forbidden)(m.service.SetTurn(t.Context(), m.players[0], nobody, noKey))
		if room := m.endTurn(t); room.Status != rooms.Finished || room.Placements()[0].UserID != m.players[1].UserID {
			t.Errorf("the server's turn has not forfeited the host: %+v", room)
		}
	}},
	"scripts/lib_has_stakes.lua": {asksStakes, nil}, // by room_turn_set alone
	"turn.go SetTurn":            {asksPot, nil},    // saves a read of the settings; the script decides
	"scripts/room_kick.lua": {asksMatch, forbiddenToTheHost(
		func(m playedMatch, ctx context.Context) (rooms.ChangeResult, error) {
			in := rooms.KickInput{RoomID: m.RoomID, UserID: m.players[1].UserID}
			return m.service.Kick(ctx, m.players[0], in, noKey)
		})},
	"scripts/room_cancel.lua": {asksMatch, forbiddenToTheHost(
		func(m playedMatch, ctx context.Context) (rooms.ChangeResult, error) {
			return m.service.Cancel(ctx, m.players[0], m.RoomID, noKey)
		})},
	"scripts/room_rematch.lua": {asksMatch, func(t *testing.T, m playedMatch) {
		must(t)(m.service.Cancel(t.Context(), m.Server(), m.RoomID, noKey))
		mustFail(t, apierror.Forbidden)(m.service.Rematch(t.Context(), m.players[0], m.RoomID, noKey))
	}},
	"service.go prepareRematch": {asksMatch, nil}, // by room_rematch
	"scripts/room_leave.lua": {asksMatch, func(t *testing.T, m playedMatch) {
		room := must(t)(m.service.Leave(t.Context(), m.players[0], m.RoomID, noKey))
		if room.Status != rooms.Finished || room.Placements()[0].UserID != m.players[1].UserID {
			t.Errorf("%+v", room)
		}
	}},
	"settle.go settleWithout": {asksMatch, nil}, // by room_leave
	"scripts/room_finish.lua": {asksPot, forbiddenToTheHost(
		func(m playedMatch, ctx context.Context) (rooms.ChangeResult, error) {
			return m.service.Finish(ctx, m.players[0], m.RoomID, []rooms.Placement{
				{UserID: m.players[0].UserID, Place: 1}, {UserID: m.players[1].UserID, Place: 2},
			}, noKey)
		})},
	"scripts/room_join.lua": {asksPot, func(t *testing.T, m playedMatch) {
		mustFail(t, apierror.AlreadyStarted)(m.service.Join(t.Context(), m.newPlayer(100), m.RoomID, noKey))
	}},
	"scripts/room_resolve.lua":      {asksPot, nil}, // who may report and resolve follows from the settlement
	"scripts/room_report.lua":       {asksPot, nil},
	"scripts/room_sweep.lua":        {asksPot, nil},
	"scripts/room_window_close.lua": {asksPot, nil},
	"scripts/lib_open_room.lua":     {asksPot, nil},
	"settle.go computeSettlement":   {asksPot, nil},
	// A player may be too new for a stake of its own; entrants of a tournament are checked when they
	// pay its fee.
	"service.go Join":          {asksPot, nil},
	"service.go Rematch":       {asksPot, nil},
	"create.go prepareSeats":   {asksPot, nil}, // two players by default, whose stakes make the pot
	"create.go prepareEntry":   {asksPot, nil},
	"create.go prepareCreate":  {asksPot, nil}, // a free room asks what it feeds
	"service.go replayCreate":  {asksShape, nil},
	"service.go lookup":        {asksShape, nil}, // the game of a command; a free shard has many
	"match.go draft":           {asksShape, nil},
	"match.go matchCommand":    {asksMatch, nil},  // the tournament's own commands
	"match.go authorizeServer": {asksStakes, nil}, // TestAServerKeyDecidesNoMatchOfPlayers
	"record.go encode":         {asksShape, nil},
	"record.go decodeSettings": {asksShape, nil},
	"record.go decodeLive":     {asksShape, nil},
	"record.go decodeFields":   {asksShape, nil},
	"room.go AppendJSON":       {asksShape, nil},
	"list.go parseQuery":       {asksShape, nil},
	"list.go decimalEntry":     {asksShape, nil},
	// Which keys a script gets, and which games' money is stopped: rooms with a pot are in an economy.
	"store.go changed":            {asksPot, nil},
	"store.go newCommand":         {asksPot, nil},
	"store.go sharedKeys":         {asksPot, nil},
	"store.go addLedger":          {asksPot, nil},
	"store.go addWallet":          {asksPot, nil},
	"store.go addNewRoom":         {asksPot, nil},
	"store.go runScript":          {asksPot, nil},
	"store.go tryCreate":          {asksPot, nil},
	"store_sweep.go splitStopped": {asksPot, nil},
	"store_sweep.go sweepCall":    {asksPot, nil},
}

var (
	entryInLua = regexp.MustCompile(`entry [~=]= '0'|has_stakes\(|byte\(feeds\) [~=]= 116`)
	entryInGo  = map[string]bool{
		"Paid": true, "Entry": true, "entry": true, "EntryTokenID": true, "Pot": true,
		"HasStakes": true, "isMatch": true,
	}
)

// TestEveryRuleThatReadsAnEntryHasACase compares the table with the sources, and runs the case of
// each rule on a match, whose room takes no entry and on which money hangs.
func TestEveryRuleThatReadsAnEntryHasACase(t *testing.T) {
	found := readsOfAnEntry(t)
	for _, place := range found {
		if _, ok := entryRules[place]; !ok {
			t.Errorf("%s reads an entry and has no case in entryRules", place)
		}
	}
	for place := range entryRules {
		if !slices.Contains(found, place) {
			t.Errorf("%s is in entryRules and reads no entry", place)
		}
	}
	f := newFixture(t, openEmbedded(t))
	staysOutOfMoney(t, f.playMatch(t, true))
	for place, rule := range entryRules {
		if rule.onMatch != nil {
			t.Run(place, func(t *testing.T) { rule.onMatch(t, f.playMatch(t, true)) })
		}
	}
}

// readsOfAnEntry returns the scripts, and the functions of the package, that read an entry.
func readsOfAnEntry(t *testing.T) (places []string) {
	t.Helper()
	files, err := filepath.Glob("../scripts/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text := testkit.Must(os.ReadFile(file))(t)
		if entryInLua.Match(text) {
			places = append(places, "scripts/"+filepath.Base(file))
		}
	}
	files, err = filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := testkit.Must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
		for _, declared := range parsed.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place := file + " " + function.Name.Name
			ast.Inspect(function, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if ok && entryInGo[selector.Sel.Name] && !slices.Contains(places, place) {
					places = append(places, place)
				}
				return true
			})
		}
	}
	return places
}

// In a match on which nothing hangs, the rules of the game hold as in any free room.
func TestAMatchWithoutStakesIsAFreeRoom(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	f.Settings.TurnTimeout = games.TurnForfeits
	if room := f.playMatch(t, false).giveASecond(t); room.Status != rooms.Finished {
		t.Errorf("%+v", room)
	}
}

func TestWhetherMoneyHangsOnARoom(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	ctx := t.Context()
	prized := map[string]bool{"cup": true}
	f.service = rooms.New(f.db, f.wallet, f, f, rooms.Options{
		Shards: shards, KeyedHash: domaintest.KeyedHash,
		HasPrizes: func(_ context.Context, _ int64, board string) (bool, error) { return prized[board], nil },
	})
	want := func(what string, room rooms.Room, hasStakes bool) {
		t.Helper()
		now, err := f.service.Get(ctx, operator, room.RoomID)
		if err != nil || now.HasStakes != hasStakes {
			t.Errorf("%s: %v, %v; want %v", what, now.HasStakes, err, hasStakes)
		}
	}
	a, b := f.newPlayer(1000), f.newPlayer(0)
	create := func(in rooms.CreateInput) rooms.Room { return must(t)(f.service.Create(ctx, a, in, noKey)) }
	want("a free room", create(rooms.CreateInput{MaxPlayers: 2}), false)
	want("a paid room", create(f.paidRoom("1", 2)), true)
	want("a match with stakes", f.playMatch(t, true).Room, true)
	want("a match without", f.playMatch(t, false).Room, false)
	f.Settings.Boards = []games.BoardFeed{{Board: "wins", From: games.FromWin}}
	want("a room that feeds a leaderboard", create(rooms.CreateInput{MaxPlayers: 2}), false)
	f.Settings.Boards = append(f.Settings.Boards, games.BoardFeed{Board: "cup", From: games.FromWin})
	prizes := f.startedRoom(t, rooms.CreateInput{MaxPlayers: 2}, a, b)
	want("a room that feeds prizes", prizes, true)

	f.Settings.TurnTimeout = games.TurnForfeits
	if room := (playedMatch{f, prizes, []principal.Caller{a, b}}).giveASecond(t); len(room.ActivePlayers()) != 2 {
		t.Errorf("the host of a room that feeds prizes has forfeited a seat: %+v", room)
	}
	must(t)(f.service.Cancel(ctx, f.Server(), prizes.RoomID, noKey))
	want("its rematch", must(t)(f.service.Rematch(ctx, a, prizes.RoomID, noKey)), true)
	prized["cup"] = false
	other := f.startedRoom(t, rooms.CreateInput{MaxPlayers: 2}, a, b)
	must(t)(f.service.Cancel(ctx, f.Server(), other.RoomID, noKey))
	want("a rematch without prizes", must(t)(f.service.Rematch(ctx, a, other.RoomID, noKey)), false)

	// A room of an older build lacks the field.
	match := f.playMatch(t, false).Room
	shard, _ := keys.RoomShard(match.RoomID)
	testkit.Check(t, f.db.Client.HDel(ctx, keys.Room(shard, match.RoomID), "stakes").Err())
	want("a match of an older build", match, true)
}

func TestPlayersChooseASettlementThatTheGameAllows(t *testing.T) {
	f := newFixture(t, openEmbedded(t))
	ctx := t.Context()
	a, b := f.newPlayer(0), f.newPlayer(0)
	in := rooms.CreateInput{MaxPlayers: 2, SettledBy: rooms.SettledByConsensus}
	room := f.startedRoom(t, in, a, b)
	f.Settings.Settlements = []games.Settlement{games.SettledByServer}
	err := mustFail(t, apierror.InvalidRequest)(f.service.Create(ctx, a, in, noKey))
	if len(err.FieldErrors) != 1 || err.FieldErrors[0].Field != "settlement" {
		t.Errorf("%+v", err.FieldErrors)
	}
	// A room that was opened before goes on; it has no further rematch.
	ranking := []rooms.Placement{{UserID: b.UserID, Place: 1}, {UserID: a.UserID, Place: 2}}
	room = must(t)(f.service.Finish(ctx, a, room.RoomID, ranking, noKey))
	if room.Status != rooms.Finished {
		t.Errorf("%+v", room)
	}
	mustFail(t, apierror.Forbidden)(f.service.Rematch(ctx, a, room.RoomID, noKey))
	f.Settings.Settlements = []games.Settlement{games.SettledByConsensus}
	mustFail(t, apierror.InvalidRequest)(f.service.Create(ctx, a, rooms.CreateInput{MaxPlayers: 2}, noKey))
	must(t)(f.service.Rematch(ctx, a, room.RoomID, noKey))
}

// Eight rooms of a host, with turns of a second, have one turn a second together; one room keeps
// its own pace, and so do rooms with long turns.
func TestAHostHasOneTurnASecondThatGoesOnByItself(t *testing.T) {
	ids := strings.Split("a,b,c,d,e,f,g,h", ",")
	now := time.Now()
	for i, least := range rooms.LeastTurns(now, 1, 1, ids...) {
		if least != 8*time.Second {
			t.Errorf("room %d: %v", i, least)
		}
	}
	if least := rooms.LeastTurns(now, 1, 1, "a"); least[0] != time.Second {
		t.Errorf("one room: %v", least)
	}
	if least := rooms.LeastTurns(now, 1, 30, ids...); least[7] > 30*time.Second {
		t.Errorf("long turns: %v", least)
	}
}
