package games_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/domaintest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// validator knows the token GOLD, amounts of which are minor units, and rejects what is named
// "bad".
type validator struct{}

func (validator) CheckProgressRules(rules []byte) error {
	if string(rules) == `"bad"` {
		return apierror.InvalidRequest.WithField("settings.progressRules", "type", "must be an array")
	}
	return nil
}

func (validator) CheckKeySet(keySet []byte) error {
	if string(keySet) == `"bad"` {
		return errors.New("must be a JSON Web Key Set")
	}
	return nil
}

func (validator) ParseAmount(_ context.Context, tokenID, amount string) (int64, error) {
	if tokenID != "GOLD" {
		return 0, apierror.TokenNotFound
	}
	units, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return 0, apierror.InvalidAmount
	}
	return units, nil
}

var operator = principal.Caller{Role: principal.Operator}

func open(db *redisdb.DB) *games.Service {
	return games.New(db, games.Options{Validator: validator{}, ReservedIssuer: "parlor"})
}

func create(t *testing.T, s *games.Service, d games.Definition) (games.Game, string) {
	t.Helper()
	if d.Name == "" {
		d.Name = "Chess"
	}
	g, key := testkit.Must2(s.Create(t.Context(), operator, d))(t)
	return g, key
}

// fieldsOf returns the faulty fields of an error, joined by spaces.
func fieldsOf(err error) string {
	e, ok := apierror.As(err)
	if !ok {
		return ""
	}
	var fields []string
	for _, f := range e.FieldErrors {
		fields = append(fields, f.Field)
	}
	return strings.Join(fields, " ")
}

func TestAGameIsReadAsCreated(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		created, _ := create(t, open(db), games.Definition{
			Name: " Chess ", Origins: []string{"HTTPS://Chess.Example.com:443/", "https://*.example.org", "null", "null"},
			SignupGrant: &games.SignupGrantInput{TokenCode: "GOLD", DecimalAmount: "9007199254740991"},
			Settings: games.SettingsPatch{
				RakeBps:             new(250),
				MatchTimeoutSeconds: new(games.Seconds(1500 * time.Millisecond)),
			},
		})
		read := testkit.Must(open(db).Get(t.Context(), operator, created.ID))(t)
		if read.Name != "Chess" ||
			strings.Join(read.Origins, " ") != "https://chess.example.com https://*.example.org null" ||
			read.SignupGrant.Units != 1<<53-1 ||
			read.Version != 1 ||
			time.Since(read.CreatedAt) > time.Minute {
			t.Errorf("read %+v", read)
		}
		if read.Settings.RakeBps != 250 || read.Settings.MatchTimeout != 1500*time.Millisecond ||
			read.Settings.IdleTimeout != 15*time.Minute {
			t.Errorf("settings %+v", read.Settings)
		}
		testkit.Fails(open(db).Get(t.Context(), operator, created.ID+1))(t, apierror.GameNotFound, "an unknown game")
	})
}

func TestAnInvalidDefinitionReturnsEveryFaultyField(t *testing.T) {
	s := open(redistest.Single(t))
	_, _, err := s.Create(t.Context(), operator, games.Definition{
		Name: strings.Repeat("x", 81),
		Origins: []string{
			"https://ok.example",
			"*",
			"chess.example.com",
			"https://*.com",
			"https://a/path",
			"https://a:99999",
			"https://user@a",
		},
		Settings: games.SettingsPatch{
			RakeBps: new(100), MinRakeBps: new(10_001), MaxAgeSeconds: new(games.Seconds(0)), MaxPlayers: new(0),
			Issuers: &[]games.Issuer{
				{Issuer: "parlor", Audience: ""},
				{Issuer: "i", Audience: "a", JWKSURL: "http://127.0.0.1/"},
				{Issuer: "i", Audience: "b", KeySetJSON: wire.RawJSON(`"bad"`)},
			},
		},
	})
	want := "name origins[1] origins[2] origins[3] origins[4] origins[5] origins[6] " +
		"settings.minRakeBps settings.rakeBps settings.maxAgeSeconds settings.maxPlayers " +
		"settings.issuers[0].issuer settings.issuers[0].audience settings.issuers[0].jwksUrl " +
		"settings.issuers[1].jwksUrl settings.issuers[2].keys"
	if got := fieldsOf(err); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestARaisedMinimumRaisesTheRake(t *testing.T) {
	s := open(redistest.Single(t))
	g, _ := create(t, s, games.Definition{Settings: games.SettingsPatch{MinRakeBps: new(500)}})
	if g.Settings.RakeBps != 500 {
		t.Errorf("the rake is %d", g.Settings.RakeBps)
	}
}

func TestWhichOriginsAPatternAllows(t *testing.T) {
	dev := games.New(redistest.Single(t), games.Options{Validator: validator{}, AllowAnyOrigin: true})
	for _, test := range []struct {
		pattern string
		allowed []string
		refused []string
	}{
		{
			"https://a.example.com",
			[]string{"https://a.example.com"},
			[]string{
				"http://a.example.com", "https://a.example.com:8443", "https://b.a.example.com",
				"https://a.example.com.evil.com", "null", "",
			},
		},
		{
			"https://*.example.com",
			[]string{"https://a.example.com", "https://b.a.example.com"},
			[]string{
				"https://example.com", "https://.example.com", "https://evil.com/.example.com", "https://evil.com#.example.com",
				"https://evilexample.com", "https://a.example.com:444", "https://x:1.example.com", "https://u@a.example.com",
			},
		},
		{"http://localhost:3000", []string{"http://localhost:3000"}, []string{"http://localhost", "http://localhost:30001"}},
		{"http://[0:0::1]:80", []string{"http://[::1]"}, []string{"http://[::2]"}},
		{"capacitor://localhost", []string{"capacitor://localhost"}, []string{"http://localhost"}},
		{"null", []string{"null"}, []string{"https://null", ""}},
		{"*", []string{"null", "https://any.example"}, nil},
	} {
		g, _ := create(t, dev, games.Definition{Origins: []string{test.pattern}})
		for _, origin := range test.allowed {
			if !g.AllowsOrigin(origin) {
				t.Errorf("%s refuses %q", test.pattern, origin)
			}
		}
		for _, origin := range test.refused {
			if g.AllowsOrigin(origin) {
				t.Errorf("%s allows %q", test.pattern, origin)
			}
		}
	}
}

func TestAPatchChangesOnlyGivenFieldsAndIsSeenAtOnce(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		g, _ := create(
			t,
			s,
			games.Definition{Origins: []string{"null"}, SignupGrant: &games.SignupGrantInput{
				TokenCode:     "GOLD",
				DecimalAmount: "5",
			}},
		)
		testkit.Must(s.Get(t.Context(), operator, g.ID))(t) // now it is cached
		p := games.PatchInput{Version: 1, Name: new("Go"), Settings: games.SettingsPatch{MaxPlayers: new(2)}}
		testkit.Must(s.Patch(t.Context(), operator, g.ID, p))(t)
		got, err := s.Get(t.Context(), operator, g.ID)
		if err != nil || got.Name != "Go" || got.Settings.MaxPlayers != 2 || got.Version != 2 || len(got.Origins) != 1 ||
			got.SignupGrant == nil {
			t.Errorf("%+v, %v", got, err)
		}
		testkit.Fails(s.Patch(t.Context(), operator, g.ID, games.PatchInput{Version: 1, Name: new("Old")}))(
			t, apierror.VersionConflict, "a change of an older version")
		got, err = s.Patch(t.Context(), operator, g.ID,
			games.PatchInput{SignupGrant: wire.Given[games.SignupGrantInput](nil)})
		if err != nil || got.SignupGrant != nil || got.Name != "Go" {
			t.Errorf("%+v, %v", got, err)
		}
		testkit.Fails(s.Patch(t.Context(), operator, 99, games.PatchInput{}))(t, apierror.GameNotFound, "an unknown game")
	})
}

func TestConcurrentPatchesLoseNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		g, _ := create(t, open(db), games.Definition{})
		changes := []games.PatchInput{
			{Name: new("Go")},
			{Origins: &[]string{"null"}},
			{SignupGrant: wire.Given(&games.SignupGrantInput{TokenCode: "GOLD", DecimalAmount: "1"})},
			{Settings: games.SettingsPatch{RakeBps: new(1)}},
			{Settings: games.SettingsPatch{MaxPlayers: new(3)}},
		}
		var wg sync.WaitGroup
		for _, change := range changes {
			wg.Go(func() {
				testkit.Report(t, testkit.ErrorOf(open(db).Patch(t.Context(), operator, g.ID, change)))
			})
		}
		wg.Wait()
		got, err := open(db).Get(t.Context(), operator, g.ID)
		if err != nil || got.Name != "Go" || len(got.Origins) != 1 || got.SignupGrant == nil || got.Settings.RakeBps != 1 ||
			got.Settings.MaxPlayers != 3 ||
			got.Version != 6 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestAnotherNodeSeesAChangeWithinTwoSeconds(t *testing.T) {
	db := redistest.Single(t)
	a, b := open(db), open(db)
	g, _ := create(t, a, games.Definition{})
	testkit.Must(b.Get(t.Context(), operator, g.ID))(t)
	testkit.Must(a.Patch(t.Context(), operator, g.ID, games.PatchInput{Name: new("Go")}))(t)
	for deadline := time.Now().Add(2 * time.Second); ; {
		got := testkit.Must(b.Get(t.Context(), operator, g.ID))(t)
		if got.Name == "Go" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the other node still has the old game")
		}
	}
}

func TestServerKeysAreHashedRotatedAndRevoked(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		g, first := create(t, s, games.Definition{})
		other, otherKey := create(t, s, games.Definition{})
		if len(first) < 43 || !strings.HasPrefix(first, "psk_1_") {
			t.Errorf("the key is %q", first)
		}
		if strings.Contains(redistest.Dump(t, db), first[len("psk_1_"):]) {
			t.Error("the store holds the key")
		}
		_, second := testkit.Must2(s.AddServerKey(t.Context(), operator, g.ID))(t)
		for key, id := range map[string]int64{first: g.ID, second: g.ID, otherKey: other.ID} {
			if found, err := s.FindByServerKey(t.Context(), key); err != nil || found.ID != id {
				t.Errorf("the key of game %d belongs to game %d, %v", id, found.ID, err)
			}
		}
		testkit.Must(s.RevokeServerKey(t.Context(), operator, g.ID, g.ServerKeys()[0].ID))(t)
		for _, key := range []string{
			first, "", "psk_", "psk_1", "psk_1_", "psk_x_y", "psk_99_" + second[6:], "psk_2_" + second[6:],
			second[:len(second)-1], second + "A",
		} {
			testkit.Fails(s.FindByServerKey(t.Context(), key))(t, apierror.Unauthenticated, "%q", key)
		}
		testkit.Report(t, testkit.ErrorOf(s.FindByServerKey(t.Context(), second)), "the second key")
		testkit.Fails(s.RevokeServerKey(t.Context(), operator, g.ID, "nothing"))(t, apierror.InvalidRequest, "an unknown key")
		for range 7 {
			testkit.Must2(s.AddServerKey(t.Context(), operator, g.ID))(t)
		}
		if _, _, err := s.AddServerKey(t.Context(), operator, g.ID); !errors.Is(err, apierror.Forbidden) {
			t.Errorf("a ninth key: %v", err)
		}
	})
}

// A key is valid on every node as soon as it is added, even on one that has just cached the game.
func TestANewServerKeyIsValidAtOnceOnOtherNodes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		here, there := open(db), open(db)
		g, first := create(t, here, games.Definition{})
		for range 3 {
			testkit.Must(there.FindByServerKey(t.Context(), first))(t)
			_, next := testkit.Must2(here.AddServerKey(t.Context(), operator, g.ID))(t)
			testkit.Report(t, testkit.ErrorOf(there.FindByServerKey(t.Context(), next)), "the other node refuses the new key")
		}
	})
}

func TestListReturnsAllGamesPageByPage(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		if list, next, err := s.List(t.Context(), operator, 0, 2); err != nil || len(list) != 0 || next != 0 {
			t.Fatalf("of none: %v %d %v", list, next, err)
		}
		for range 5 {
			create(t, s, games.Definition{})
		}
		var ids []int64
		for after := int64(0); ; {
			list, next := testkit.Must2(s.List(t.Context(), operator, after, 2))(t)
			for _, g := range list {
				ids = append(ids, g.ID)
			}
			if next == 0 {
				break
			}
			after = next
		}
		if len(ids) != 5 || ids[0] != 1 || ids[4] != 5 {
			t.Errorf("listed %v", ids)
		}
	})
}

func TestAnIssuerBelongsToOneGame(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := open(db)
		issuers := []games.Issuer{{Issuer: "https://id.example", Audience: "chess", KeySetJSON: wire.RawJSON(`{"keys":[]}`)}}
		settings := games.SettingsPatch{Issuers: &issuers}
		a, _ := create(t, s, games.Definition{Settings: settings})
		found, issuer, err := s.FindByIssuer(t.Context(), "https://id.example", "chess")
		if err != nil || found.ID != a.ID || len(issuer.KeySetJSON) == 0 {
			t.Fatalf("%d %v %v", found.ID, issuer, err)
		}
		if _, _, err := s.FindByIssuer(t.Context(), "https://id.example", "go"); !errors.Is(err, apierror.Unauthenticated) {
			t.Errorf("another audience: %v", err)
		}
		if _, _, err := s.Create(t.Context(), operator, games.Definition{Name: "Go", Settings: settings}); !errors.Is(
			err,
			apierror.InvalidRequest,
		) {
			t.Errorf("a second game with the issuer: %v", err)
		}
		none := games.SettingsPatch{Issuers: &[]games.Issuer{}}
		testkit.Must(s.Patch(t.Context(), operator, a.ID, games.PatchInput{Settings: none}))(t)
		if _, _, err := s.FindByIssuer(t.Context(), "https://id.example", "chess"); !errors.Is(
			err,
			apierror.Unauthenticated,
		) {
			t.Errorf("after it was taken away: %v", err)
		}
		b, _ := create(t, s, games.Definition{Settings: settings})
		if found, _, err := s.FindByIssuer(t.Context(), "https://id.example", "chess"); err != nil || found.ID != b.ID {
			t.Errorf("after it moved: %d %v", found.ID, err)
		}
	})
}

func TestNoRulesAreAnEmptyArray(t *testing.T) {
	s := open(redistest.Single(t))
	for _, none := range []string{"[]", "null"} {
		g, _ := create(
			t,
			s,
			games.Definition{Settings: games.SettingsPatch{ProgressRules: wire.RawJSON(`[{"path":"gold","max":10}]`)}},
		)
		g = testkit.Must(s.Patch(
			t.Context(),
			operator,
			g.ID,
			games.PatchInput{Settings: games.SettingsPatch{ProgressRules: wire.RawJSON(none)}},
		))(t)
		if text, err := wire.Marshal(g.Settings); err != nil || !strings.Contains(string(text), `"progressRules":[]`) {
			t.Errorf("after %s: %s, %v", none, text, err)
		}
	}
}

func TestSettingsAreMarshalledAndUnmarshalled(t *testing.T) {
	s := games.DefaultSettings()
	s.MatchTimeout = 1500 * time.Millisecond
	text, err := wire.Marshal(s)
	want := `{"rakeBps":0,"minRakeBps":0,"maxRakeBps":2000,"matchTimeoutSeconds":1.5,"reportWindowSeconds":120,` +
		`"idleTimeoutSeconds":900,"maxAgeSeconds":86400,"maxPlayers":256,"minAgeToStakeSeconds":0,"issuers":[],`
	if err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{`"1"`, "-1", "1e3", "null1", "1s", "0x1"} {
		var seconds games.Seconds
		if err := wire.Unmarshal([]byte(bad), &seconds); err == nil {
			t.Errorf("%s was read as %v", bad, seconds)
		}
	}
}

func TestTheValidatorChecksRulesAndGrants(t *testing.T) {
	s := open(redistest.Single(t))
	g, _ := create(t, s, games.Definition{})
	for name, test := range map[string]struct {
		settings games.SettingsPatch
		grant    *games.SignupGrantInput
		want     *apierror.Error
	}{
		"bad rules": {games.SettingsPatch{ProgressRules: wire.RawJSON(`"bad"`)}, nil, apierror.InvalidRequest},
		"an unknown token": {
			games.SettingsPatch{},
			&games.SignupGrantInput{TokenCode: "GEM", DecimalAmount: "1"},
			apierror.TokenNotFound,
		},
		"a bad amount": {
			games.SettingsPatch{},
			&games.SignupGrantInput{TokenCode: "GOLD", DecimalAmount: "x"},
			apierror.InvalidAmount,
		},
	} {
		d := games.Definition{Name: "Go", SignupGrant: test.grant, Settings: test.settings}
		if _, _, err := s.Create(t.Context(), operator, d); !errors.Is(err, test.want) {
			t.Errorf("Create with %s returned %v, want %v", name, err, test.want)
		}
		p := games.PatchInput{Settings: test.settings}
		if test.grant != nil {
			p.SignupGrant = wire.Given(test.grant)
		}
		testkit.Fails(s.Patch(t.Context(), operator, g.ID, p))(t, test.want, "Patch with %s returned", name)
	}
}

// TestWhichRoleMayCallWhat calls each method as every role.
func TestWhichRoleMayCallWhat(t *testing.T) {
	s := open(redistest.Single(t))
	g, _ := create(t, s, games.Definition{})
	callers := []principal.Caller{
		{},
		{Role: principal.Player, UserID: 1, GameID: g.ID},
		{Role: principal.Server, GameID: g.ID},
		{Role: principal.Server, GameID: g.ID + 1},
		operator,
		{Role: principal.System},
	}
	const (
		operatorOnly = "forbidden forbidden forbidden forbidden ok forbidden"
		ownServer    = "forbidden forbidden ok game_not_found ok forbidden"
	)
	for _, verb := range []struct {
		name string
		call func(principal.Caller) error
		want string // one code for each caller
	}{
		{"Create", func(c principal.Caller) error {
			_, _, err := s.Create(t.Context(), c, games.Definition{Name: "Go"})
			return err
		}, operatorOnly},
		{"List", func(c principal.Caller) error { _, _, err := s.List(t.Context(), c, 0, 1); return err }, operatorOnly},
		{"Get", func(c principal.Caller) error { _, err := s.Get(t.Context(), c, g.ID); return err }, ownServer},
		{"Patch", func(c principal.Caller) error {
			_, err := s.Patch(t.Context(), c, g.ID, games.PatchInput{Name: new("Go")})
			return err
		}, ownServer},
		{"AddServerKey", func(c principal.Caller) error {
			_, _, err := s.AddServerKey(t.Context(), c, g.ID)
			return err
		}, operatorOnly},
		{"RevokeServerKey", func(c principal.Caller) error {
			_, err := s.RevokeServerKey(t.Context(), c, g.ID, g.ServerKeys()[0].ID)
			return err
		}, operatorOnly},
	} {
		domaintest.WantCodes(t, verb.name, callers, strings.Fields(verb.want), verb.call)
	}
}

func TestAnUnknownServerKeyCostsNoReadOfTheGame(t *testing.T) {
	db := redistest.Single(t)
	here, ctx := open(db), t.Context()
	g, key := create(t, here, games.Definition{})
	calls := func(command string) int {
		_, after, _ := strings.Cut(db.Client.Info(ctx, "commandstats").Val(), "cmdstat_"+command+":calls=")
		number, _, _ := strings.Cut(after, ",")
		n, _ := strconv.Atoi(number)
		return n
	}
	there := open(db) // knows no game yet
	before, lookups := calls("hgetall"), calls("hexists")
	for n := range 20 {
		unknown := fmt.Sprintf("psk_%d_unknown%d", g.ID, n/2)
		if _, err := there.FindByServerKey(ctx, unknown); !errors.Is(err, apierror.Unauthenticated) {
			t.Fatalf("an unknown key: %v", err)
		}
	}
	if n := calls("hgetall") - before; n != 0 {
		t.Errorf("20 calls with unknown keys read the game %d times", n)
	}
	if n := calls("hexists") - lookups; n > 11 || n < 10 {
		t.Errorf("10 unknown keys, twice each, were looked up %d times", n)
	}
	if found, err := there.FindByServerKey(ctx, key); err != nil || found.ID != g.ID {
		t.Errorf("the key of the game: %v, %v", found.ID, err)
	}
}

// A game that was stored before there was the list allows what it allowed; a new one does not.
func TestSettlementsOfOldAndNewGames(t *testing.T) {
	db := redistest.Single(t)
	s := open(db)
	g, _ := create(t, s, games.Definition{Name: "New"})
	if !slices.Equal(g.Settings.Settlements, []games.Settlement{games.SettledByServer}) {
		t.Errorf("a new game allows %v", g.Settings.Settlements)
	}
	ctx, key := t.Context(), keys.Game(g.ID)
	doc, err := db.Client.HGet(ctx, key, "doc").Result()
	if err != nil || !strings.Contains(doc, `,"settlements":["server"]`) {
		t.Fatal(doc, err)
	}
	testkit.Check(t, db.Client.HSet(ctx, key, "doc", strings.Replace(doc, `,"settlements":["server"]`, "", 1)).Err())
	both := []games.Settlement{games.SettledByServer, games.SettledByConsensus}
	old, err := open(db).Get(ctx, operator, g.ID)
	if err != nil || !slices.Equal(old.Settings.Settlements, both) {
		t.Errorf("an old game allows %v, %v", old.Settings.Settlements, err)
	}
	patched, err := open(db).Patch(ctx, operator, g.ID, games.PatchInput{Name: new("Newer")})
	if err != nil || !slices.Equal(patched.Settings.Settlements, both) {
		t.Errorf("after a change it allows %v, %v", patched.Settings.Settlements, err)
	}
}

func TestAFeedThatOnePersonFillsAloneIsNotThatOfABoardWithPrizes(t *testing.T) {
	s := games.New(redistest.Single(t), games.Options{
		Validator: validator{}, ReservedIssuer: "parlor",
		HasPrizes: func(_ context.Context, _ int64, board string) (bool, error) { return board == "cup", nil },
	})
	g, _ := create(t, s, games.Definition{Name: "Duel"})
	for _, c := range []struct {
		patch games.SettingsPatch
		want  string
	}{
		{games.SettingsPatch{Boards: &[]games.BoardFeed{{Board: "top", From: games.FromPayout}}}, ""},
		{
			games.SettingsPatch{Boards: &[]games.BoardFeed{
				{Board: "top", From: games.FromPayout}, {Board: "cup", From: games.FromPayout},
			}},
			"settings.boards[1].from",
		},
		{games.SettingsPatch{Boards: &[]games.BoardFeed{{Board: "cup", From: games.FromWin}}}, ""},
		{games.SettingsPatch{Settlements: &[]games.Settlement{games.SettledByConsensus}}, "settings.boards[0].from"},
		{games.SettingsPatch{Settlements: &[]games.Settlement{games.SettledByConsensus, games.SettledByServer}}, ""},
	} {
		_, err := s.Patch(t.Context(), operator, g.ID, games.PatchInput{Settings: c.patch})
		if got := fieldsOf(err); got != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.patch, got, err, c.want)
		}
	}
}

func TestAGameHasAFeedWhileItIsSetOrAWebhookIsActive(t *testing.T) {
	db := redistest.Single(t)
	s := open(db)
	g, serverKey := create(t, s, games.Definition{})
	wants := func(want bool, webhooks int) {
		t.Helper()
		for _, of := range []*games.Service{s, open(db)} { // another node, too
			got := testkit.Must(of.Find(t.Context(), g.ID))(t)
			if got.HasFeed() != want || got.ActiveWebhooks != webhooks {
				t.Errorf("a feed: %v, want %v; %d webhooks, want %d", got.HasFeed(), want, got.ActiveWebhooks, webhooks)
			}
		}
	}
	wants(false, 0)
	server := principal.Caller{Role: principal.Server, GameID: g.ID}
	set := func(caller principal.Caller, feed bool) {
		t.Helper()
		in := games.PatchInput{Settings: games.SettingsPatch{Feed: &feed}}
		testkit.Must(s.Patch(t.Context(), caller, g.ID, in))(t)
	}
	set(server, true)
	wants(true, 0)
	testkit.Check(t, s.SetActiveWebhooks(t.Context(), g.ID, 2))
	set(operator, false)
	wants(true, 2)
	if _, err := s.FindByServerKey(t.Context(), serverKey); err != nil {
		t.Errorf("the number of webhooks hides the server key: %v", err)
	}
	testkit.Check(t, s.SetActiveWebhooks(t.Context(), g.ID, 0))
	wants(false, 0)
	if err := s.SetActiveWebhooks(t.Context(), g.ID+99, 1); !errors.Is(err, apierror.GameNotFound) {
		t.Errorf("a game that does not exist: %v", err)
	}
}
