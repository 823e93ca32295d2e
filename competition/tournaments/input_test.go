package tournaments

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/tests/testkit"
)

var inputTime = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

// prepare reads a request and prepares it for the operator, at inputTime, with the token 1 of two
// decimals.
func prepare(t *testing.T, body string, isOperator bool) (Definition, error) {
	t.Helper()
	var in CreateInput
	testkit.Check(t, wire.UnmarshalStrict([]byte(body), &in), "%s", body)
	terms := Terms{Now: inputTime, RakeBps: 300, MatchTimeout: 2 * time.Hour, IsOperator: isOperator}
	if in.EntryTokenID == 1 {
		terms.Token = &wallet.Token{ID: 1, Code: "GOLD", Decimals: 2}
	}
	return in.Prepare(terms)
}

const (
	swissInput = `"name":"Cup","format":"swiss","maxEntrants":64,"startsAt":"2026-11-20T19:00:00Z"`
	scoreInput = `"name":"Laps","format":"score","maxEntrants":64,"startsAt":"2026-11-20T19:00:00Z",` +
		`"endsAt":"2026-11-21T19:00:00Z"`
	bracketInput = `"name":"Cup","format":"single_elimination","maxEntrants":8,"startsAt":"2026-11-20T19:00:00Z"`
)

func TestDefaultsOfANewTournament(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"swiss": {
			swissInput, `{"name":"Cup","format":"swiss","entryTokenId":null,"entryFeeAmount":"0","addedPrize":null,` +
				`"rakeBps":300,"payout":[10000],"minEntrants":2,"maxEntrants":64,` +
				`"registrationOpensAt":"2026-11-20T17:00:00.000Z","checkInOpensAt":null,` +
				`"startsAt":"2026-11-20T19:00:00.000Z","endsAt":null,` +
				`"room":{"maxPlayers":2,"metadata":{},"settlement":"server"},"seeding":"random","noShowSeconds":120,` +
				`"matchTimeoutSeconds":7200,"draws":"half","disputes":"refund","disputeSeconds":86400,` +
				`"visibility":"public","metadata":{}}`,
		},
		"bracket": {
			bracketInput + `,"checkInOpensAt":"2026-11-20T18:00:00Z"`, `{"name":"Cup","format":"single_elimination",` +
				`"entryTokenId":null,"entryFeeAmount":"0","addedPrize":null,"rakeBps":300,"payout":[10000],"minEntrants":2,` +
				`"maxEntrants":8,"registrationOpensAt":"2026-11-20T17:00:00.000Z","checkInOpensAt":` +
				`"2026-11-20T18:00:00.000Z","startsAt":"2026-11-20T19:00:00.000Z","endsAt":null,` +
				`"room":{"maxPlayers":2,"metadata":{},"settlement":"server"},"seeding":"random","noShowSeconds":120,` +
				`"matchTimeoutSeconds":7200,"draws":"replay","disputes":"refund","disputeSeconds":86400,` +
				`"noCheckIn":"refund","visibility":"public","metadata":{}}`,
		},
		"score": {
			scoreInput + `,"entryTokenId":1,"entryFee":2.5,"addedPrize":{"amount":"50","from":"house"}`,
			`{"name":"Laps","format":"score","entryTokenId":1,"entryFeeAmount":"250","addedPrize":{"units":5000,` +
				`"from":"house"},"rakeBps":300,"payout":[10000],"minEntrants":2,"maxEntrants":64,` +
				`"registrationOpensAt":"2026-11-20T17:00:00.000Z","checkInOpensAt":null,` +
				`"startsAt":"2026-11-20T19:00:00.000Z","endsAt":"2026-11-21T19:00:00.000Z","attempts":1,` +
				`"board":{"order":"desc","operator":"best","decimals":0,"writers":["server"],"graceSeconds":0},` +
				`"visibility":"public","metadata":{}}`,
		},
	} {
		d, err := prepare(t, "{"+c.body+"}", true)
		text, encodeErr := wire.Marshal(d)
		if err := errors.Join(err, encodeErr); err != nil || string(text) != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, text, c.want)
		}
		var stored Definition
		testkit.Report(t, wire.Unmarshal(text, &stored), "%s", name)
		if again, err := wire.Marshal(stored); err != nil || string(again) != string(text) {
			t.Errorf("%s is stored as\n%s\nand read as\n%s, %v", name, text, again, err)
		}
	}
}

func TestFaultsOfANewTournament(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`"name":""`, "invalid_request name format startsAt"},
		{`"name":"x","format":"chess","startsAt":"2026-11-20T19:00:00Z"`, "invalid_request format"},
		{`"name":"x","format":"swiss","startsAt":"2026-11-20T19:00:00Z"`, "invalid_request maxEntrants"},
		{
			`"name":"x","format":"round_robin","maxEntrants":33,"startsAt":"2026-11-20T17:00:00Z","visibility":"private",` +
				`"metadata":[],"payout":[5000,4000]`,
			"invalid_request visibility metadata payout startsAt maxEntrants",
		},
		{
			`"name":"x","format":"swiss","maxEntrants":4097,"startsAt":"2028-01-01T00:00:00Z"`,
			"invalid_request startsAt maxEntrants",
		},
		{
			`"name":"x","format":"single_elimination","maxEntrants":1025,"startsAt":"2026-11-20T19:00:00Z"`,
			"invalid_request maxEntrants",
		},
		{
			`"name":"x","format":"score","maxEntrants":100001,"startsAt":"2026-11-20T19:00:00Z"`,
			"invalid_request endsAt maxEntrants",
		},
		{swissInput + `,"minEntrants":65`, "invalid_request minEntrants"},
		{swissInput + `,"minEntrants":1`, "invalid_request minEntrants"},
		{swissInput + `,"payout":[]`, "invalid_request payout"},
		{swissInput + `,"payout":[-1,10001]`, "invalid_request payout[0]"},
		{bracketInput + `,"payout":[2000,1000,1000,1000,1000,1000,1000,1000,1000]`, "invalid_request payout"},
		{swissInput + `,"rakeBps":10001`, "invalid_request rakeBps"},
		{swissInput + `,"registrationOpensAt":"2026-11-20T19:00:00Z"`, "invalid_request registrationOpensAt"},
		{swissInput + `,"checkInOpensAt":"2026-11-20T19:00:00Z"`, "invalid_request checkInOpensAt"},
		{
			swissInput + `,"registrationOpensAt":"2026-11-20T18:00:00Z","checkInOpensAt":"2026-11-20T17:30:00Z"`,
			"invalid_request checkInOpensAt",
		},
		{swissInput + `,"endsAt":"2026-11-20T19:00:00Z"`, "invalid_request endsAt"},
		{swissInput + `,"noCheckIn":"refund"`, "invalid_request noCheckIn"},
		{
			swissInput + `,"disputes":"seed"`, "invalid_request disputes",
		},
		{
			swissInput + `,"disputeSeconds":59`, "invalid_request disputeSeconds",
		},
		{
			swissInput + `,"attempts":2,"board":{},"rounds":0,"lateJoinRounds":65,"noShowSeconds":4,` +
				`"matchTimeoutSeconds":0,"draws":"win","seeding":"rating","room":{"maxPlayers":3,"settlement":"x",` +
				`"metadata":{"a":1e999}}`,
			"invalid_request attempts board seeding draws noShowSeconds matchTimeoutSeconds room.maxPlayers " +
				"room.settlement room.metadata rounds lateJoinRounds",
		},
		{swissInput + `,"rounds":5,"lateJoinRounds":5`, "invalid_request lateJoinRounds"},
		{bracketInput + `,"rounds":3,"lateJoinRounds":0,"draws":"half"`, "invalid_request draws rounds lateJoinRounds"},
		{
			scoreInput + `,"attempts":1001,"room":{},"seeding":"joined","noShowSeconds":60,"draws":"seed",` +
				`"board":{"order":"up","operator":"avg","decimals":7,"graceSeconds":-1,"rules":{"maxSubmissions":3}}`,
			"invalid_request attempts board.order board.operator board.decimals board.graceSeconds " +
				"board.rules.maxSubmissions room seeding noShowSeconds draws board.rules",
		},
		{swissInput + `,"entryFee":1`, "invalid_request entryTokenId"},
		{swissInput + `,"addedPrize":{"amount":1,"from":"mint"}`, "invalid_request entryTokenId"},
		{swissInput + `,"entryTokenId":1`, "invalid_request entryFee"},
		{swissInput + `,"entryTokenId":1,"addedPrize":{"amount":1,"from":"x"}`, "invalid_request addedPrize.from"},
		{swissInput + `,"entryTokenId":9,"entryFee":1`, "token_not_found"},
		{swissInput + `,"entryTokenId":1,"entryFee":1.001`, "invalid_amount entryFee"},
		{swissInput + `,"entryTokenId":1,"entryFee":-1`, "invalid_amount entryFee"},
		{swissInput + `,"entryTokenId":1,"addedPrize":{"amount":0,"from":"mint"}`, "invalid_amount addedPrize.amount"},
		{swissInput + `,"entryTokenId":1,"entryFee":1407374883553.28`, "invalid_amount"}, // of 64: 2^53
		{
			swissInput + `,"entryTokenId":1,"entryFee":1,"addedPrize":{"amount":90071992547345.92,"from":"mint"}`,
			"invalid_amount",
		},
	} {
		if _, err := prepare(t, "{"+c.body+"}", true); describe(err) != c.want {
			t.Errorf("%s\nreturns %s\nwant    %s", c.body, describe(err), c.want)
		}
	}
	for _, valid := range []string{
		`,"entryTokenId":1,"entryFee":1407374883553.27`, `,"entryFee":0`, `,"entryFee":"0.00"`,
		`,"entryTokenId":1,"entryFee":0,"addedPrize":{"amount":1,"from":"mint"}`, `,"rounds":5,"lateJoinRounds":4`,
		`,"registrationOpensAt":"2020-01-01T00:00:00Z","checkInOpensAt":"2020-01-01T00:00:00Z"`, `,"metadata":null`,
	} {
		testkit.Report(t, testkit.ErrorOf(prepare(t, "{"+swissInput+valid+"}", true)), "%s", valid)
	}
}

// describe returns the code of an error and the fields that it names.
func describe(err error) string {
	e, ok := apierror.As(err)
	if !ok {
		return fmt.Sprint(err)
	}
	words := []string{e.Code}
	for _, field := range e.FieldErrors {
		words = append(words, field.Field)
	}
	return strings.Join(words, " ")
}

// Where money hangs on a score, players send it within bounds or not at all.
func TestWritersOfAScoreTournament(t *testing.T) {
	const fee, prize = `,"entryTokenId":1,"entryFee":1`, `,"entryTokenId":1,"addedPrize":{"amount":1,"from":"mint"}`
	for _, c := range []struct{ body, want string }{
		{`,"board":{}`, "<nil>"},
		{fee + `,"board":{"writers":["server"]}`, "<nil>"},
		{`,"board":{"writers":["server","players"]}`, "<nil>"},
		{fee + `,"board":{"writers":["server","players"]}`, "invalid_request board.rules.max board.rules.play"},
		{prize + `,"board":{"writers":["players","server"],"rules":{"max":5}}`, "invalid_request board.rules.play"},
		{fee + `,"board":{"writers":["server","players"],"rules":{"play":true}}`, "invalid_request board.rules.max"},
		{fee + `,"board":{"writers":["server","players"],"rules":{"max":5,"play":true}}`, "<nil>"},
		{
			fee + `,"board":{"order":"asc","writers":["server","players"],"rules":{"max":5,"play":true}}`,
			"invalid_request board.rules.min",
		},
		{fee + `,"board":{"order":"asc","writers":["server","players"],"rules":{"min":5,"play":true}}`, "<nil>"},
		{`,"board":{"writers":[]}`, "invalid_request board.writers"},
		{`,"board":{"writers":["players"]}`, "invalid_request board.writers"},
		{`,"board":{"writers":["server","rooms","server"]}`, "invalid_request board.writers[1] board.writers[2]"},
		{`,"board":{"rules":{"play":true}}`, "invalid_request board.rules"},
		{`,"board":{"writers":"server","rules":{"max":0.5}}`, "invalid_request board.rules.max board.rules"},
	} {
		if _, err := prepare(t, "{"+scoreInput+c.body+"}", false); describe(err) != c.want {
			t.Errorf("%s\nreturns %s\nwant    %s", c.body, describe(err), c.want)
		}
	}
}

func TestWhatIsTheOperatorsIsForbiddenToAServer(t *testing.T) {
	const money = `,"entryTokenId":1,"addedPrize":{"amount":1,"from":"house"}`
	if _, err := prepare(t, "{"+swissInput+money+`,"rakeBps":0}`, false); describe(err) !=
		"forbidden rakeBps addedPrize.from" {
		t.Errorf("returns %s", describe(err))
	}
	testkit.Report(t, testkit.ErrorOf(prepare(t, "{"+swissInput+strings.Replace(money, "house", "mint", 1)+"}", false)),
		"a prize from mint")
}

func TestMatchIDs(t *testing.T) {
	if id := MatchID(12, 345); id != "r12m345" {
		t.Errorf("the id is %s", id)
	}
	for id, want := range map[string][2]int{"r1m1": {1, 1}, "r12m345": {12, 345}, "r9999m99999": {9999, 99999}} {
		if round, number, ok := ParseMatchID(id); !ok || round != want[0] || number != want[1] {
			t.Errorf("%s is %d, %d, %v", id, round, number, ok)
		}
	}
	for _, id := range []string{
		"", "r0m1", "r1m0", "r01m1", "r1m1 ", "m1r1", "r1", "r1m", "r10000m1", "r1m100000", "R1M1",
	} {
		if _, _, ok := ParseMatchID(id); ok {
			t.Errorf("%q is taken for a match", id)
		}
	}
}
