package handlers_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parlor-games/parlor/handlers"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// storeContent is every key of a store with what it holds.
type storeContent map[string]storedValue

type storedValue struct {
	Text    string
	expires bool
}

// storeContent returns what is in the store, without the keys that have one of some texts in their
// names. Hashes and sets are sorted: while Redis enlarges one, every read moves some of its
// members.
func (f *fixture) storeContent(without ...string) storeContent {
	f.t.Helper()
	names := testkit.Must(f.db.Client.Keys(f.t.Context(), "*").Result())(f.t)
	content := storeContent{}
	for _, name := range names {
		if slices.ContainsFunc(without, func(text string) bool { return strings.Contains(name, text) }) {
			continue
		}
		var value any
		kind, err := f.db.Client.Type(f.t.Context(), name).Result()
		switch {
		case err != nil:
		case kind == "hash":
			value, err = f.db.Client.HGetAll(f.t.Context(), name).Result() // a map is printed in order
		case kind == "set":
			var members []string
			members, err = f.db.Client.SMembers(f.t.Context(), name).Result()
			slices.Sort(members)
			value = members
		default:
			value, err = f.db.Client.Dump(f.t.Context(), name).Result()
		}
		if errors.Is(err, redis.Nil) {
			continue // it has expired
		}
		testkit.Check(f.t, err)
		ttl := testkit.Must(f.db.Client.PTTL(f.t.Context(), name).Result())(f.t)
		content[name] = storedValue{Text: fmt.Sprintf("%q", value), expires: ttl > 0}
	}
	return content
}

// changes returns what is different in later; "" if nothing is. Keys that expire may be gone: some
// last for a minute, and a test may take longer.
func (c storeContent) changes(later storeContent) string {
	before := maps.Clone(c)
	maps.DeleteFunc(before, func(name string, v storedValue) bool {
		_, still := later[name]
		return v.expires && !still
	})
	return cmp.Diff(before, later, cmpopts.IgnoreUnexported(storedValue{}))
}

// newRoomFixture is newGameFixture with a room of Ann and Bob. The replacer fills in the ids of a
// request.
func newRoomFixture(t *testing.T) (*fixture, player, *strings.Replacer) {
	return newRoomFixtureFor(t, "")
}

// newRoomFixtureFor is newRoomFixture with the tournaments that a request needs.
func newRoomFixtureFor(t *testing.T, request string) (*fixture, player, *strings.Replacer) {
	t.Helper()
	return newRoomFixtureOn(t, newGameFixture(t), request)
}

// newRoomFixtureOn is newRoomFixtureFor on a node with a game.
func newRoomFixtureOn(t *testing.T, f *fixture, request string) (*fixture, player, *strings.Replacer) {
	t.Helper()
	ann, bob := f.guest("Ann"), f.guest("Bob")
	room := f.createRoom(ann)
	f.expect(200, "POST", "/join", bob.token, roomBody(room))
	f.createBoard(ann.id)
	f.createHeldSeason("held", ann.id)
	free := f.expect(201, "POST", f.gamePath()+"/assets", f.serverKey, `{"name":"Free","tokenId":"GOLD","price":1}`)
	return f, ann, strings.NewReplacer(append(f.tournamentPlaceholders(request, ann, bob), "<free>", free.text("id"),
		"<game>", strconv.FormatInt(f.game, 10), "<gold>", strconv.FormatInt(f.gold, 10),
		"<room>", room,
		"<ann>", strconv.FormatInt(ann.id, 10), "<bob>", strconv.FormatInt(bob.id, 10), "<asset>",
		strconv.FormatInt(f.createSword(), 10))...)
}

// validBodies has a valid body for every operation that accepts one, and the caller who sends it.
var validBodies = []struct {
	operation, as, body string
	optional            bool // the whole body may be missing
}{
	{
		"POST /api/v1/auth/guest", "nobody",
		`{"gameId":<game>,"username":"Cid","deviceSecret":"0123456789abcdef0123456789abcdef"}`, false,
	},
	{"POST /api/v1/auth/exchange", "server", `{"externalId":"x","username":"Cid","avatar":null}`, false},
	{"POST /api/v1/auth/refresh", "nobody", `{"refreshToken":"x"}`, false},
	{"POST /api/v1/auth/logout", "ann", `{"refreshToken":"x"}`, true},
	{"POST /api/v1/auth/link", "ann", `{"deviceSecret":"0123456789abcdef0123456789abcdef"}`, false},
	{"POST /api/v1/auth/ticket", "ann", `{}`, true},
	{"POST /api/v1/admin/console-links", "operator", `{}`, true},
	{"PATCH /api/v1/me", "ann", `{"username":"Anna","avatar":null}`, false},
	{
		"PUT /api/v1/me/limits", "ann",
		`{"tokenId":"GOLD","maxStake":1,"maxOpenRooms":1,"maxLoss24h":null,"excludedUntil":"2130-01-01T00:00:00Z"}`, false,
	},
	{"POST /api/v1/admin/games/<game>/accept-audit", "operator", `{"reason":"x"}`, false},
	{"PUT /api/v1/admin/users/<ann>/limits", "operator", `{"tokenId":"GOLD","maxStake":1}`, false},
	{"POST /api/v1/friends/<bob>", "ann", `{}`, true},
	{"POST /api/v1/friends/<bob>/block", "ann", `{}`, true},
	{"POST /api/v1/game-session/create", "ann", `{"gameId":<game>,"entryTokenId":<gold>,"roomEntry":1,"maxPlayers":2,` +
		`"minPlayers":2,"isFriendsOnly":false,` +
		`"visibility":"public","metadata":{},"autoStart":false,"settlement":"server","rakeBps":500,"payout":[10000],` +
		`"tie":"split"}`, false},
	{"POST /api/v1/game-session/join", "ann", `{"roomId":"<room>"}`, false},
	{"POST /join", "ann", `{"roomId":"<room>"}`, false},
	{"POST /api/v1/game-session/leave", "ann", `{"roomId":"<room>"}`, false},
	{"POST /api/v1/game-session/ready", "ann", `{"roomId":"<room>","ready":true}`, false},
	{"POST /api/v1/game-session/kick", "ann", `{"roomId":"<room>","userId":<bob>,"ban":true}`, false},
	{"POST /api/v1/game-session/transfer-host", "ann", `{"roomId":"<room>","userId":<bob>}`, false},
	{"POST /api/v1/game-session/start", "ann", `{"roomId":"<room>"}`, false},
	{
		"POST /api/v1/game-session/state", "server",
		`{"roomId":"<room>","version":0,"patch":{"a":{"b":[1]}},"delete":["c"]}`, false,
	},
	{"POST /api/v1/game-session/turn", "ann", `{"roomId":"<room>","userId":<bob>,"seconds":30}`, false},
	{
		"POST /api/v1/game-session/finish", "server",
		`{"roomId":"<room>","results":[{"userId":<ann>,"place":1,"score":1},{"userId":<bob>,"place":2}]}`, false,
	},
	{
		"POST /api/v1/admin/rooms/<room>/resolve", "operator",
		`{"results":[{"userId":<ann>,"place":1,"score":1},{"userId":<bob>,"place":2}],"refund":false}`, false,
	},
	{"POST /api/v1/game-session/cancel", "ann", `{"roomId":"<room>"}`, false},
	{"POST /api/v1/game-session/rematch", "ann", `{"roomId":"<room>"}`, false},
	{"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"quantity":1,"expectedPrice":7.5}`, true},
	{
		"POST /api/v1/admin/games", "operator", `{"name":"New","origins":["https://new.example"],` +
			`"welcomeGrant":{"tokenId":"GOLD","amount":1},"settings":{"rakeBps":1,"matchTimeoutSeconds":60,"issuers":[]}}`,
		false,
	},
	{
		"PATCH /api/v1/admin/games/<game>", "operator",
		`{"version":0,"name":"New","origins":[],"welcomeGrant":null,"settings":{"maxPlayers":8}}`, false,
	},
	{"POST /api/v1/admin/games/<game>/server-keys", "operator", `{}`, true},
	{
		"POST /api/v1/admin/games/<game>/assets", "server",
		`{"name":"Bow","tokenId":"GOLD","price":1,"stock":5,"perUserLimit":1,"metadata":{}}`, false,
	},
	{
		"PATCH /api/v1/admin/games/<game>/assets/<asset>", "server",
		`{"name":"Bow","active":false,"price":1,"stock":null,"perUserLimit":null,"metadata":{}}`, false,
	},
	{"POST /api/v1/admin/tokens", "operator", `{"tokenId":"GEM","tokenName":"Gem","logoUrl":null,` +
		`"metadata":{"assetName":"00","policyId":"00","decimals":"0"}}`, false},
	{
		"PATCH /api/v1/admin/tokens/GOLD", "operator", `{"tokenName":"Fine","logoUrl":null,"metadata":{"assetName":"00"}}`,
		false,
	},
	{"POST /api/v1/admin/users/<ann>/suspend", "operator", `{"reason":"x","until":"2030-01-01T00:00:00Z"}`, false},
	{"POST /api/v1/admin/users/<ann>/unsuspend", "operator", `{}`, true},
	{"POST /api/v1/admin/users/<ann>/credit", "operator", `{"tokenId":"GOLD","amount":1,"reason":"x"}`, false},
	{"POST /api/v1/admin/users/<ann>/debit", "operator", `{"tokenId":"GOLD","amount":1,"reason":"x"}`, false},
	{"PUT /api/v1/admin/users/<ann>/saves/main", "server", `{"state":{"a":1},"version":0}`, false},
	{
		"POST /api/v1/admin/games/<game>/leaderboards", "server", `{"board":"new","name":"New","order":"asc","operator":` +
			`"best","decimals":1,"subscore":{"order":"asc"},"ties":"shared","writers":["server","players"],` +
			`"rules":{"min":1,"play":true},"schedule":{"everySeconds":60},"startsAt":"2030-01-01T00:00:00Z",` +
			`"graceSeconds":5,"keepSeasons":3,` +
			`"segments":["country"],"maxEntries":10,"shards":2,"metadata":{},"prizes":{"tokenId":"GOLD","pool":1,"from":` +
			`"mint","table":[{"fromPlace":1,"toPlace":1,"prize":0.5},{"fromPlace":2,"toPlace":2,"shareBps":10},` +
			`{"fromPlace":3,"toPlace":3,"gameAssetId":<free>,"quantity":2}],"reviewSeconds":5},"league":null}`, false,
	},
	{
		"PATCH " + topBoard, "server", `{"name":"New","writers":"server","rules":null,"schedule":null,"graceSeconds":5,` +
			`"keepSeasons":3,"segments":[],"maxEntries":null,"metadata":{}}`, false,
	},
	{"POST /api/v1/leaderboards/top/plays", "ann", `{}`, true},
	{
		"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":1,"playedAt":"2030-01-01T00:00:00Z",` +
			`"metadata":{},"evidence":{},"segments":{"country":"DE"}}`, false,
	},
	{"POST /api/v1/leaderboards/top/scores/batch", "server", `{"scores":[{"userId":<ann>,"score":1}]}`, false},
	{"POST " + topBoard + "/seasons/1/end", "server", `{"reason":"x"}`, false},
	{"POST " + heldBoard + "/seasons/1/approve", "server", `{"reason":"x"}`, false},
	{"POST " + heldBoard + "/seasons/1/void", "server", `{"reason":"x"}`, false},
	{"POST " + topBoard + "/entries/<ann>/hide", "server", `{"reason":"x"}`, false},
	{"POST " + topBoard + "/entries/<ann>/unhide", "server", `{"reason":"x"}`, false},
	{"POST " + topBoard + "/entries/<ann>/remove", "server", `{"reason":"x"}`, false},
	{"POST /api/v1/tournaments/<tour>/join", "ann", `{}`, true},
	{"POST /api/v1/tournaments/<tour>/leave", "ann", `{}`, true},
	{"POST /api/v1/tournaments/<tour>/check-in", "ann", `{}`, true},
	{"POST /api/v1/tournaments/<score>/attempts", "ann", `{}`, true},
	{
		"POST " + gameTournaments, "operator", `{"name":"New","format":"swiss","entryTokenId":<gold>,"entryFee":1,` +
			`"addedPrize":{"amount":1,"from":"mint"},"rakeBps":1,"payout":[10000],"minEntrants":2,"maxEntrants":8,` +
			`"registrationOpensAt":"2026-01-01T00:00:00Z","checkInOpensAt":"2026-01-01T00:00:00Z",` +
			`"startsAt":"<soon>","endsAt":null,` +
			`"rounds":1,"lateJoinRounds":0,"room":{},"seeding":"random","noShowSeconds":60,` +
			`"matchTimeoutSeconds":60,"draws":"half","noCheckIn":"refund","visibility":"public","metadata":{}}`, false,
	},
	{"POST /api/v1/game-session/call", "ann", `{"roomId":"<room>","op":"x","timeoutMs":100}`, false},
	{"POST /api/v1/admin/users/<ann>/messages", "server", `{"op":"x"}`, false},
	{"POST " + gameTournaments + "/<tour>/start", "server", `{}`, true},
	{"POST " + gameTournaments + "/<tour>/cancel", "server", `{"reason":"a flood"}`, true},
	{"POST " + gameTournaments + "/<tour>/entrants/<bob>/disqualify", "server", `{"reason":"a bot"}`, true},
	{"POST " + gameTournaments + "/<match>/matches/r1m1/resolve", "server", `{"winnerId":<bob>}`, false},
}

const gameTournaments = "/api/v1/admin/games/<game>/tournaments"

func TestEveryBodyIsDecodedStrictly(t *testing.T) {
	withBody := slices.DeleteFunc(operations(), func(operation string) bool {
		return strings.HasPrefix(operation, "GET ") || strings.HasPrefix(operation, "DELETE ")
	})
	if len(validBodies) != len(withBody) {
		t.Errorf("%d operations take a body, %d are tested", len(withBody), len(validBodies))
	}
	for _, b := range validBodies {
		t.Run(b.operation, func(t *testing.T) {
			t.Parallel()
			f, ann, fill := newRoomFixtureFor(t, b.operation)
			bearer := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}[b.as]
			method, path, _ := strings.Cut(fill.Replace(b.operation), " ")
			good := fill.Replace(b.body)
			before := f.storeContent()
			expectError := func(status int, code, field, body string, headers ...string) {
				t.Helper()
				resp := f.expectError(status, code, method, path, bearer, body, append(headers, "Idempotency-Key", "bad")...)
				if field != "" && resp.text("errors.0.field") != field {
					t.Errorf("%s names %s; want %s", body, resp.raw, field)
				}
				if changed := before.changes(f.storeContent()); changed != "" {
					t.Errorf("%s returned an error and changed the store: %s", body, changed)
				}
			}
			more := func(member string) string {
				if good == "{}" {
					return "{" + member + "}"
				}
				return good[:len(good)-1] + "," + member + "}"
			}
			expectError(400, "invalid_request", "surplus", more(`"surplus":1`))
			expectError(400, "invalid_json", "", good+"{}")
			expectError(400, "invalid_json", "", good+" x")
			expectError(400, "invalid_json", "", good[:len(good)-1])
			expectError(400, "invalid_json", "", "{'a':1}")
			expectError(400, "invalid_request", "body", "[]")
			expectError(400, "invalid_request", "body", "null")
			expectError(400, "invalid_json", "", more("\"\xff\":1"))
			maxBytes := 64 << 10
			if strings.Contains(b.operation, "/saves/") {
				maxBytes = 320 << 10
			}
			expectError(413, "payload_too_large", "", more(`"surplus":"`+strings.Repeat("x", maxBytes)+`"`))
			expectError(415, "unsupported_media_type", "", good, "Content-Type", "text/plain")
			expectError(415, "unsupported_media_type", "", good, "Content-Type", "application/json; charset=latin1")
			expectError(415, "unsupported_media_type", "", good, "Content-Type", "")
			if !b.optional {
				expectError(400, "invalid_json", "", "")
			}
			for _, name := range members(b.body) {
				expectError(400, "invalid_request", name, more(fmt.Sprintf("%q:0", name))) // a duplicate
				if resp := f.expectError(400, "", method, path, bearer, fmt.Sprintf(`{%q:[{"a":[]}]}`, name), "Idempotency-Key",
					"bad"); !strings.Contains(string(resp.raw), `"field":"`+name) {
					t.Errorf("%s of another type returns %s", name, resp.raw)
				}
			}
		})
	}
}

// members returns the names of the members of an object, without those of nested objects.
func members(body string) []string {
	var list []string
	depth := 0
	for i := range len(body) {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			rest := body[i+1:]
			end := strings.IndexByte(rest, '"')
			if depth == 1 && strings.HasPrefix(rest[end+1:], ":") && strings.ContainsRune("{,", rune(body[i-1])) {
				list = append(list, rest[:end])
			}
		}
	}
	return list
}

func TestAnInvalidRequestNamesTheField(t *testing.T) {
	const session, admin = "/api/v1/game-session/", "/api/v1/admin/"
	for _, c := range []struct{ operation, as, body, want string }{
		{"POST /api/v1/auth/guest", "", `{}`, "400 invalid_request gameId"},
		{"POST /api/v1/auth/guest", "", `{"gameId":"1"}`, "400 invalid_request gameId"},
		{"POST /api/v1/auth/guest", "", `{"gameId":1.5}`, "400 invalid_request gameId"},
		{"POST /api/v1/auth/guest", "", `{"gameId":99999999999999999999}`, "400 invalid_request gameId"},
		{"POST /api/v1/auth/guest", "", `{"gameId":999}`, "404 game_not_found"},
		{
			"POST /api/v1/auth/guest", "", `{"gameId":<game>,"deviceSecret":"short","username":""}`,
			"400 invalid_request deviceSecret username",
		},
		{"POST /api/v1/auth/exchange", "server", `{"username":"x"}`, "400 invalid_request externalId"},
		{"POST /api/v1/auth/refresh", "", `{}`, "400 invalid_request refreshToken"},
		{"POST /api/v1/auth/refresh", "", `{"refreshToken":7}`, "400 invalid_request refreshToken"},
		{"POST /api/v1/auth/link", "ann", `{}`, "400 invalid_request deviceSecret"},
		{"PUT /api/v1/me/limits", "ann", `{}`, "400 invalid_request tokenId"},
		{"PUT /api/v1/me/limits", "ann", `{"tokenId":"NONE","maxStake":1}`, "404 token_not_found"},
		{"PUT /api/v1/me/limits", "ann", `{"tokenId":"GOLD","maxStake":0.0000000001}`, "400 invalid_amount maxStake"},
		{"PUT /api/v1/me/limits", "ann", `{"tokenId":"GOLD","maxLoss24h":-1}`, "400 invalid_amount maxLoss24h"},
		{
			"PUT /api/v1/me/limits", "ann", `{"tokenId":"GOLD","maxOpenRooms":-1,"excludedUntil":"2020-01-01T00:00:00Z"}`,
			"400 invalid_request maxOpenRooms excludedUntil",
		},
		{"GET /api/v1/me/limits?tokenId=NONE", "ann", "", "404 token_not_found"},
		{"POST /api/v1/admin/games/<game>/accept-audit", "operator", `{}`, "400 invalid_request reason"},
		{"POST /api/v1/admin/games/999999/accept-audit", "operator", `{"reason":"x"}`, "404 game_not_found"},
		{"PUT /api/v1/admin/users/<ann>/limits", "operator", `{"tokenId":"NONE"}`, "404 token_not_found"},
		{"PUT /api/v1/admin/users/999999/limits", "operator", `{"tokenId":"GOLD"}`, "404 user_not_found"},
		{
			"PATCH /api/v1/me", "ann", `{"username":"\u0000","avatar":"no address"}`,
			"400 invalid_request username avatar",
		},
		{"POST /api/v1/friends/<ann>", "ann", "", "400 invalid_request userId"},
		{"POST /api/v1/friends/x", "ann", "", "404 user_not_found"},
		{"POST /api/v1/friends/0", "ann", "", "404 user_not_found"},
		{"POST /api/v1/friends/99999999999999999999", "ann", "", "404 user_not_found"},

		{
			"POST " + gameTournaments, "operator", `{"name":"x","format":"swiss","maxEntrants":4,"startsAt":5}`,
			"400 invalid_request startsAt",
		},
		{
			"POST " + gameTournaments, "operator", `{"name":"x","format":"swiss","maxEntrants":4,` +
				`"startsAt":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `","entryTokenId":<gold>,"entryFee":-1}`,
			"400 invalid_amount entryFee",
		},
		{"GET /api/v1/tournaments/01", "ann", "", "404 tournament_not_found"},
		{
			"POST " + gameTournaments + "/1/matches/r1m1/resolve", "server", `{"winnerId":-1}`,
			"400 invalid_request winnerId",
		},

		{"POST " + session + "create", "ann", `{}`, "400 invalid_request maxPlayers"},
		{"POST " + session + "create", "ann", `{"maxPlayers":2,"minPlayers":3,"visibility":"secret","tie":"x","payout":[1],` +
			`"rakeBps":10001,"metadata":[]}`, "400 invalid_request minPlayers visibility tie rakeBps payout metadata"},
		{"POST " + session + "create", "ann", `{"maxPlayers":"2"}`, "400 invalid_request maxPlayers"},
		{"POST " + session + "create", "ann", `{"maxPlayers":2,"payout":["x"]}`, "400 invalid_request payout[0]"},
		{"POST " + session + "create", "ann", `{"gameId":999,"maxPlayers":2}`, "404 game_not_found"},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":999,"roomEntry":1,"maxPlayers":2}`,
			"404 token_not_found",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":1.001,"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":-1,"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":0,"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":90071992547409.92,"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":"1e400","maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":true,"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":{},"maxPlayers":2}`,
			"400 invalid_amount roomEntry",
		},
		{
			"POST " + session + "create", "ann", `{"entryTokenId":<gold>,"roomEntry":100.01,"maxPlayers":2}`,
			"402 insufficient_funds",
		},
		{"POST " + session + "join", "ann", `{}`, "400 invalid_request roomId"},
		{"POST " + session + "join", "ann", `{"roomId":7}`, "400 invalid_request roomId"},
		{"POST " + session + "join", "ann", `{"roomId":"x"}`, "400 invalid_request roomId"},
		{"POST " + session + "join", "ann", roomBody(unknownRoom), "404 room_not_found"},
		{"POST " + session + "join", "ann", `{"roomid":"<room>"}`, "400 invalid_request roomid"},
		{"POST " + session + "join", "ann", `{"roomId":"<room>","roomId":"<room>"}`, "400 invalid_request roomId"},
		{"POST " + session + "ready", "ann", `{"roomId":"<room>"}`, "400 invalid_request ready"},
		{"POST " + session + "ready", "ann", `{"roomId":"<room>","ready":"yes"}`, "400 invalid_request ready"},
		{"POST " + session + "kick", "ann", `{}`, "400 invalid_request roomId userId"},
		{"POST " + session + "kick", "ann", `{"roomId":"<room>","userId":<ann>}`, "400 invalid_request userId"},
		{"POST " + session + "transfer-host", "ann", `{"roomId":"<room>","userId":999}`, "403 not_participant"},
		{"POST " + session + "state", "server", `{"patch":{"a":1}}`, "400 invalid_request roomId"},
		{"POST " + session + "state", "server", `{"roomId":"<room>"}`, "400 invalid_request patch"},
		{"POST " + session + "state", "server", `{"roomId":"<room>","patch":{}}`, "400 invalid_request patch"},
		{"POST " + session + "state", "server", `{"roomId":"<room>","patch":[1]}`, "400 invalid_request patch"},
		{"POST " + session + "state", "server", `{"roomId":"<room>","patch":{"a b":1}}`, "400 invalid_request patch"},
		{"POST " + session + "state", "server", `{"roomId":"<room>","patch":{"":1}}`, "400 invalid_request patch"},
		{
			"POST " + session + "state", "server", `{"roomId":"<room>","version":-1,"patch":{"a":1},"delete":["a","é","b","b"]}`,
			"400 invalid_request version delete[0] delete[1] delete[3]",
		},
		{"POST " + session + "state", "ann", `{"roomId":"<room>","patch":{"a":1}}`, "403 forbidden"},
		{"POST " + session + "turn", "ann", `{"userId":<bob>,"seconds":30}`, "400 invalid_request roomId"},
		{"POST " + session + "turn", "ann", `{"roomId":"<room>","userId":<bob>}`, "400 invalid_request seconds"},
		{
			"POST " + session + "turn", "ann", `{"roomId":"<room>","userId":<bob>,"seconds":0}`,
			"400 invalid_request seconds",
		},
		{
			"POST " + session + "turn", "ann", `{"roomId":"<room>","userId":0,"seconds":86401}`,
			"400 invalid_request seconds userId",
		},
		{"POST " + session + "turn", "ann", `{"roomId":"<room>","seconds":30}`, "400 invalid_request seconds"},
		{
			"POST " + session + "turn", "ann", `{"roomId":"<room>","userId":<bob>,"seconds":1.5}`,
			"400 invalid_request seconds",
		},
		{"POST " + session + "finish", "server", `{"roomId":"<room>"}`, "400 invalid_request results"},
		{
			"POST " + session + "finish", "server", `{"roomId":"<room>","results":[{"userId":<ann>,"place":"first"}]}`,
			"400 invalid_request results[0].place",
		},
		{
			"POST " + session + "finish", "server", `{"roomId":"<room>","results":[{"userId":<ann>,"place":1,"rank":1}]}`,
			"400 invalid_request results[0].rank",
		},
		{"POST /api/v1/admin/rooms/<room>/resolve", "operator", `{}`, "400 invalid_request results"},
		{"POST /api/v1/admin/rooms/<room>/resolve", "operator", `{"refund":false}`, "400 invalid_request results"},
		{
			"POST /api/v1/admin/rooms/<room>/resolve", "operator",
			`{"refund":true,"results":[{"userId":<ann>,"place":1}]}`, "400 invalid_request refund",
		},
		{"POST /api/v1/admin/rooms/<room>/resolve", "operator", `{"refund":true}`, "409 not_disputed"},
		{"POST /api/v1/admin/rooms/x/resolve", "operator", `{"refund":true}`, "400 invalid_request roomId"},
		{"GET " + session + "get", "ann", "", "400 invalid_request roomId"},
		{"GET " + session + "get?roomId=<room>&code=x", "ann", "", "400 invalid_request roomId"},
		{"GET " + session + "get?roomId=<room>&roomId=<room>", "ann", "", "400 invalid_request roomId"},
		{"GET " + session + "get?roomId=%zz", "ann", "", "400 invalid_request query"},
		{"GET " + session + "get?roomId=x", "ann", "", "400 invalid_request roomId"},
		{"GET " + session + "get?roomId=" + unknownRoom, "ann", "", "404 room_not_found"},
		{"GET " + session + "get?code=nope", "ann", "", "404 room_not_found"},
		{"GET " + session + "get?code=nope", "operator", "", "400 invalid_request gameId"},
		{"GET " + session + "get?code=nope&gameId=0", "operator", "", "400 invalid_request gameId"},
		{"GET " + session + "get?code=nope&gameId=<game>", "operator", "", "404 room_not_found"},
		{
			"GET " + session + "list?limit=0&gameId=x&entryTokenId=-1&hasSeat=maybe", "ann", "",
			"400 invalid_request gameId entryTokenId hasSeat limit",
		},
		{"GET " + session + "list?limit=101", "ann", "", "400 invalid_request limit"},
		{"GET " + session + "list?mine=yes", "ann", "", "400 invalid_request mine"},
		{"GET " + session + "list?mine=true", "server", "", "400 invalid_request mine"},
		{"GET " + session + "list?cursor=x", "ann", "", "400 invalid_request cursor"},
		{"GET " + session + "list?status=OPEN", "ann", "", "400 invalid_request status"},
		{"GET " + session + "list?maxEntry=much", "ann", "", "400 invalid_amount maxEntry"},
		{"GET " + session + "list?gameId=999", "ann", "", "404 game_not_found"},
		{"GET /api/v1/user-balance/ledger?cursor=x&limit=x", "ann", "", "400 invalid_request cursor limit"},
		{"GET /api/v1/user-balance/ledger?tokenId=NONE", "ann", "", "404 token_not_found"},

		{"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"quantity":0}`, "400 invalid_request quantity"},
		{"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"quantity":"1"}`, "400 invalid_request quantity"},
		{"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"quantity":1.5}`, "400 invalid_request quantity"},
		{
			"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"expectedPrice":7.505}`,
			"400 invalid_amount expectedPrice",
		},
		{
			"POST /api/v1/user-assets/add/game-asset/<asset>", "ann", `{"expectedPrice":[7.5]}`,
			"400 invalid_amount expectedPrice",
		},
		{"POST /api/v1/user-assets/add/game-asset/999", "ann", ``, "404 asset_not_found"},
		{"POST /api/v1/user-assets/add/game-asset/sword", "ann", ``, "404 asset_not_found"},
		{"GET /api/v1/user-assets?limit=1000", "ann", "", "400 invalid_request limit"},
		{"GET /api/v1/game-assets", "operator", "", "400 invalid_request gameId"},
		{"GET /api/v1/game-assets?gameId=999", "operator", "", "404 game_not_found"},

		{"POST " + admin + "games", "operator", `{}`, "400 invalid_request name"},
		{
			"POST " + admin + "games", "operator", `{"name":"x","origins":["*","duel"]}`,
			"400 invalid_request origins[0] origins[1]",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","welcomeGrant":{"tokenId":"NONE","amount":1}}`,
			"404 token_not_found",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","welcomeGrant":{"tokenId":"GOLD","amount":0}}`,
			"400 invalid_amount welcomeGrant.amount",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"rakeBps":10001,"matchTimeoutSeconds":0}}`,
			"400 invalid_request settings.rakeBps settings.matchTimeoutSeconds",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"matchTimeoutSeconds":"1h"}}`,
			"400 invalid_request settings.matchTimeoutSeconds",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"colour":"red"}}`,
			"400 invalid_request settings.colour",
		},
		{
			"POST " + admin + "games", "operator",
			`{"name":"x","settings":{"boards":[{"board":"Top","from":"x"},{"board":"a","from":"win"},` +
				`{"board":"a","from":"win"}]}}`,
			"400 invalid_request settings.boards[0].board settings.boards[0].from settings.boards[2].board",
		},
		{
			"POST " + admin + "games", "operator",
			`{"name":"x","settings":{"boards":[` + strings.Repeat(`{"board":"a","from":"win"},`, 8) + `{}]}}`,
			"400 invalid_request settings.boards",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"settlements":["server","me","server"]}}`,
			"400 invalid_request settings.settlements[1] settings.settlements[2]",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"settlements":[]}}`,
			"400 invalid_request settings.settlements",
		},
		{
			"POST " + admin + "games", "operator", `{"name":"x","settings":{"progressRules":[{}]}}`,
			"400 invalid_request settings.progressRules[0].path",
		},
		{"PATCH " + admin + "games/<game>", "operator", `{"version":99}`, "409 version_conflict"},
		{"GET " + admin + "games/x", "operator", "", "404 game_not_found"},
		{"GET " + admin + "games?cursor=0", "operator", "", "400 invalid_request cursor"},
		{"POST " + admin + "games/<game>/assets", "server", `{}`, "400 invalid_request name tokenId price"},
		{
			"POST " + admin + "games/<game>/assets", "server", `{"name":"x","tokenId":"NONE","price":1}`,
			"404 token_not_found",
		},
		{
			"POST " + admin + "games/<game>/assets", "server", `{"name":"x","tokenId":"GOLD","price":-1,"stock":-1}`,
			"400 invalid_request stock",
		},
		{
			"PATCH " + admin + "games/<game>/assets/<asset>", "server", `{"tokenId":"GEM"}`,
			"400 invalid_request tokenId",
		},
		{"PATCH " + admin + "games/<game>/assets/999", "server", `{}`, "404 asset_not_found"},
		{
			"POST " + admin + "tokens", "operator", `{"tokenId":"no code","metadata":{"decimals":"19","assetName":"xyz"}}`,
			"400 invalid_request tokenId tokenName metadata.assetName metadata.decimals",
		},
		{
			"POST " + admin + "tokens", "operator", `{"tokenId":"GOLD","tokenName":"x","metadata":{"decimals":"0"}}`,
			"409 token_exists",
		},
		{
			"POST " + admin + "tokens", "operator", `{"tokenId":"GEM","tokenName":"x","metadata":{"decimals":0}}`,
			"400 invalid_request metadata.decimals",
		},
		{"PATCH " + admin + "tokens/NONE", "operator", `{}`, "404 token_not_found"},
		{
			"PATCH " + admin + "tokens/GOLD", "operator", `{"metadata":{"decimals":"3"}}`,
			"400 invalid_request metadata.decimals",
		},
		{
			"POST " + admin + "users/<ann>/credit", "operator", `{"tokenId":"GOLD","amount":0,"reason":"x"}`,
			"400 invalid_amount amount",
		},
		{
			"POST " + admin + "users/<ann>/credit", "operator", `{"tokenId":"GOLD","amount":1}`,
			"400 invalid_request reason",
		},
		{
			"POST " + admin + "users/<ann>/credit", "operator", `{"amount":1,"reason":"x"}`,
			"400 invalid_request tokenId",
		},
		{
			"POST " + admin + "users/<ann>/debit", "operator", `{"tokenId":"GOLD","reason":"x"}`,
			"400 invalid_request amount",
		},
		{
			"POST " + admin + "users/<ann>/credit", "operator", `{"tokenId":"NONE","amount":1,"reason":"x"}`,
			"404 token_not_found",
		},
		{
			"POST " + admin + "users/<ann>/credit", "operator", `{"tokenId":"GOLD","amount":"90071992547409.91","reason":"x"}`,
			"400 invalid_amount",
		},
		{
			"POST " + admin + "users/999/credit", "operator", `{"tokenId":"GOLD","amount":1,"reason":"x"}`,
			"404 user_not_found",
		},
		{
			"POST " + admin + "users/<ann>/debit", "operator", `{"tokenId":"GOLD","amount":1000,"reason":"x"}`,
			"402 insufficient_funds",
		},
		{"PUT " + admin + "users/<ann>/saves/main", "server", `{"version":1}`, "400 invalid_request state"},
		{
			"PUT " + admin + "users/<ann>/saves/a%20b", "server", `{"state":[],"version":-1}`,
			"400 invalid_request slot version state",
		},
		{"PUT " + admin + "users/<ann>/saves/main", "server", `{"state":{},"version":2}`, "409 version_conflict"},
		{"PUT " + admin + "users/x/saves/main", "operator", `{"state":{}}`, "404 user_not_found"},
		{"PUT " + admin + "users/999/saves/main", "operator", `{"state":{}}`, "404 user_not_found"},
		{"GET " + admin + "rooms?status=x", "operator", "", "400 invalid_request status"},
		{"POST " + admin + "games/<game>/leaderboards", "server", `{}`, "400 invalid_request board name"},
		{
			"POST " + admin + "games/<game>/leaderboards", "server", `{"board":"x","name":"x","schedule":{"cron":"0 0 30 2 *",` +
				`"timeZone":"Nowhere"}}`, "400 invalid_request schedule.timeZone schedule.cron",
		},
		{"POST " + admin + "games/<game>/leaderboards", "server", `{"board":"top","name":"x"}`, "409 board_exists"},
		{"PATCH " + topBoard, "server", `{"order":"asc"}`, "400 invalid_request order"},
		{"POST " + topBoard + "/entries/<ann>/hide", "server", `{}`, "400 invalid_request reason"},
		{"POST " + topBoard + "/entries/999/hide", "server", `{"reason":"x"}`, "404 entry_not_found"},
		{"POST " + topBoard + "/seasons/7/end", "server", `{"reason":"x"}`, "404 season_not_found"},
		{"POST " + topBoard + "/seasons/7/approve", "server", `{"reason":"x"}`, "404 season_not_found"},
		{"POST " + topBoard + "/seasons/x/approve", "server", `{"reason":"x"}`, "404 season_not_found"},
		{"POST " + topBoard + "/seasons/1/approve", "server", `{"reason":"x"}`, "409 season_closed"},
		{"POST " + topBoard + "/seasons/1/approve", "server", `{}`, "400 invalid_request reason"},
		{"POST " + topBoard + "/seasons/7/void", "server", `{"reason":"x"}`, "404 season_not_found"},
		{"POST " + topBoard + "/seasons/1/void", "server", `{"reason":"x"}`, "409 season_closed"},
		{"POST " + topBoard + "/seasons/1/void", "server", `{}`, "400 invalid_request reason"},
		{"GET /api/v1/leaderboards/top/league", "ann", "", "400 invalid_request board"},
		{
			"POST " + admin + "games/<game>/leaderboards", "server", `{"board":"x","name":"x","graceSeconds":1,` +
				`"league":{"size":9,"tiers":["a","a"],"promote":5,"relegate":5}}`,
			"400 invalid_request league.size league.tiers[1] league.relegate graceSeconds",
		},
		{
			"POST " + admin + "games/<game>/leaderboards", "server", `{"board":"x","name":"x","prizes":{"tokenId":"GOLD",` +
				`"pool":1,"from":"mint","table":[{"fromPlace":1,"toPlace":3,"prize":0.34}]}}`,
			"400 invalid_request prizes.table",
		},
		{
			"POST " + admin + "games/<game>/leaderboards", "server", `{"board":"x","name":"x","prizes":{"tokenId":"GOLD",` +
				`"pool":1,"table":[{"fromPlace":1,"toPlace":1,"prize":0.3}]}}`,
			"403 forbidden",
		},
		{
			"PATCH " + topBoard, "operator", `{"prizes":{"table":[{"fromPlace":1,"toPlace":1,"gameAssetId":<asset>}]}}`,
			"400 invalid_request prizes.table[0].gameAssetId",
		},
		{"POST /api/v1/leaderboards/top/scores", "server", `{}`, "400 invalid_request score userId"},
		{
			"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":"NaN"}`,
			"400 invalid_request score",
		},
		{
			"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":1e400}`,
			"400 invalid_request score",
		},
		{
			"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":true}`,
			"400 invalid_request score",
		},
		{"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":1.5}`, "400 invalid_request score"},
		{
			"POST /api/v1/leaderboards/top/scores", "server", `{"userId":<ann>,"score":4503599627370496}`,
			"400 invalid_request score",
		},
		{"POST /api/v1/leaderboards/top/scores", "server", `{"userId":999999,"score":1}`, "404 user_not_found"},
		{"POST /api/v1/leaderboards/top/scores", "ann", `{"score":1}`, "403 forbidden"},
		{"POST /api/v1/leaderboards/none/scores", "server", `{"userId":<ann>,"score":1}`, "404 board_not_found"},
		{"POST /api/v1/leaderboards/top/scores/batch", "server", `{"scores":[]}`, "400 invalid_request scores"},
		{"POST /api/v1/leaderboards/top/plays", "ann", "", "400 invalid_request board"},
		{"GET /api/v1/leaderboards", "operator", "", "400 invalid_request gameId"},
		{"GET /api/v1/leaderboards?gameId=999", "ann", "", "404 game_not_found"},
		{"GET /api/v1/leaderboards/top/entries?segment=team:red", "ann", "", "400 invalid_request segment"},
		{"GET /api/v1/leaderboards/top/entries?cursor=x", "ann", "", "400 invalid_request cursor"},
		{"GET /api/v1/leaderboards/top/entries?season=7", "ann", "", "404 season_not_found"},
		{"GET /api/v1/leaderboards/top/entries/x", "ann", "", "404 entry_not_found"},
		{"GET /api/v1/leaderboards/top/seasons?cursor=x", "ann", "", "400 invalid_request cursor"},
		{"GET " + admin + "trail?from=yesterday", "operator", "", "400 invalid_request from"},
		{"GET " + admin + "trail?cursor=x&limit=0", "operator", "", "400 invalid_request cursor limit"},
		{"GET " + admin + "audit?gameId=x", "operator", "", "400 invalid_request gameId"},
		{"GET " + admin + "audit?gameId=999", "operator", "", "404 game_not_found"},
		{"GET /api/v1/nothing", "ann", "", "404 not_found"},
		{"PUT /api/v1/me", "ann", "", "405 method_not_allowed"},
	} {
		t.Run(c.operation+" "+c.body, func(t *testing.T) {
			t.Parallel()
			f, ann, fill := newRoomFixture(t)
			bearer := map[string]string{"ann": ann.token, "server": f.serverKey, "operator": adminKey}[c.as]
			method, path, _ := strings.Cut(fill.Replace(c.operation), " ")
			want := strings.Fields(c.want)
			storesReceipt := want[0] != "400" || strings.Contains(c.body, "90071992547409.91") // an error that depends on state
			var headers []string
			if strings.Contains(path, "/user-assets/add/") || strings.Contains(path, "/credit") ||
				strings.Contains(path, "/debit") || strings.HasSuffix(path, "finish") {
				headers = []string{"Idempotency-Key", "bad"}
			} else {
				storesReceipt = false
			}
			before := f.storeContent()
			resp := f.send(method, path, bearer, fill.Replace(c.body), headers...)
			got := []string{strconv.Itoa(resp.status), resp.code()}
			if resp.body != nil && resp.member("errors") != nil {
				for i := range resp.count("errors") {
					got = append(got, resp.text(fmt.Sprintf("errors.%d.field", i)))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %s; want %s", resp.raw, c.want)
			}
			if changed := before.changes(f.storeContent()); !storesReceipt && changed != "" {
				t.Errorf("it returned an error and changed the store: %s", changed)
			}
		})
	}
}

func TestThePlainSpellingOfARoomMeansWhatTheLibraryDecodes(t *testing.T) {
	for body, want := range map[string]bool{
		`{"roomId":"0190A-z9"}`: true, `{"roomId":""}`: true,
		``: false, `{"roomId":"`: false, `{"roomId":"}`: false, `{"roomId":"a"`: false, ` {"roomId":"a"}`: false,
		`{"roomId":"a"} `: false, `{"roomId":"a\u0062"}`: false, `{"roomId":"a b"}`: false, `{"roomId":"é"}`: false,
		"{\"roomId\":\"\xff\"}": false, `{"roomId":"a","roomId":"b"}`: false, `{"roomid":"a"}`: false,
		`{"roomId":null}`: false,
	} {
		got, plain := handlers.DecodePlainRoom(body)
		var in struct {
			RoomID string `json:"roomId"`
		}
		err := wire.UnmarshalStrict([]byte(body), &in)
		if plain != want || plain && (err != nil || got != in.RoomID) || !plain && got != "" {
			t.Errorf("%s: %q, %v; the library has %q, %v", body, got, plain, in.RoomID, err)
		}
	}
}
