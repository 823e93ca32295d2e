package events

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

const (
	testRoom  = "0190a1b2-c3d4-8000-8000-000000000001"
	testTour  = "12"
	largest   = "9007199254740991"
	ann, bob  = `{"id":7,"username":"Ann","avatar":null}`, `{"id":8,"username":"a|b;c%","avatar":null}`
	millis    = "1795195946123"
	renderedT = `"2026-11-20T17:32:26.123Z"`
)

// renderings has an entry of every type, and the type and data of each event that it stands for.
var renderings = []struct {
	name, list, entry string
	want              []string // type, data, type, data …
}{
	{
		"a paid room", testRoom,
		"1-0000001a|room.created|" + millis + "|1|K7QX2M|1|4|GOLD|2|250|" + ann,
		[]string{"room.created", `{"code":"K7QX2M","gameId":1,"creator":` + ann + `,"maxPlayers":4,"tokenId":"GOLD",` +
			`"roomEntry":2.5,"roomEntryAmount":"250","participantCount":1,"totalWager":2.5,"totalWagerAmount":"250",` +
			`"version":1}`},
	},
	{
		"a free room", testRoom, "1-0000001a|room.created|" + millis + "|1|K7QX2M|1|4||0|0|" + ann,
		[]string{"room.created", `{"code":"K7QX2M","gameId":1,"creator":` + ann + `,"maxPlayers":4,"tokenId":null,` +
			`"roomEntry":0,"roomEntryAmount":"0","participantCount":1,"totalWager":0,"totalWagerAmount":"0","version":1}`},
	},
	{
		"a profile with separators", testRoom, "2-zzzzzzzz|room.joined|" + millis + "|2|2|" + largest + "|18|" + bob,
		[]string{"room.joined", `{"user":` + bob + `,"participantCount":2,"totalWager":0.009007199254740991,` +
			`"totalWagerAmount":"` + largest + `","version":2}`},
	},
	{
		"a seat that is vacated", testRoom, "3-0000001a|room.left|" + millis + "|3|8|kicked|1|250|2",
		[]string{"room.left", `{"userId":8,"reason":"kicked","participantCount":1,"totalWager":2.5,` +
			`"totalWagerAmount":"250","version":3}`},
	},
	{
		"ready", testRoom, "4-0000001a|room.ready|" + millis + "|4|7|1",
		[]string{"room.ready", `{"userId":7,"ready":true,"version":4}`},
	},
	{
		"not ready", testRoom, "4-0000001a|room.ready|" + millis + "|4|7|0",
		[]string{"room.ready", `{"userId":7,"ready":false,"version":4}`},
	},
	{
		"a host", testRoom, "5-0000001a|room.host_changed|" + millis + "|5|8",
		[]string{"room.host_changed", `{"userId":8,"version":5}`},
	},
	{
		"a start", testRoom, "6-0000001a|room.started|" + millis + "|6|host|" + millis,
		[]string{"room.started", `{"by":"host","startedAt":` + renderedT + `,"matchDeadline":` + renderedT + `,"version":6}`},
	},
	{
		"a result", testRoom, "7-0000001a|room.finished|" + millis + "|7|2|10|7:1:490:12.5;8:2:0:;9:0:5:;10:0:0:;",
		[]string{"room.finished", `{"results":[{"userId":7,"place":1,"score":12.5},{"userId":8,"place":2}],"payouts":[` +
			`{"userId":7,"place":1,"payout":4.9,"amount":"490"},{"userId":8,"place":2,"payout":0,"amount":"0"},` +
			`{"userId":9,"place":null,"payout":0.05,"amount":"5"}],"rake":0.1,"rakeAmount":"10","version":7}`},
	},
	{
		"a player with a socket", testRoom, "6-0000001a|room.connected|" + millis + "|8",
		[]string{"room.connected", `{"userId":8}`},
	},
	{
		"a player without one", testRoom, "6-0000001a|room.disconnected|" + millis + "|8|" + millis,
		[]string{"room.disconnected", `{"userId":8,"graceUntil":` + renderedT + `}`},
	},
	{
		"a report", testRoom, "6-0000001a|room.result|" + millis + "|6|8",
		[]string{"room.result", `{"userId":8,"version":6}`},
	},
	{
		"a dispute", testRoom, "7-0000001a|room.disputed|" + millis + "|7|" + millis,
		[]string{"room.disputed", `{"refundAt":` + renderedT + `,"version":7}`},
	},
	{
		"a cancelled room", testRoom, "7-0000001a|room.cancelled|" + millis + "|7|2|timeout|7:250;8:250;",
		[]string{"room.cancelled", `{"reason":"timeout","refunds":[{"userId":7,"refund":2.5,"amount":"250"},` +
			`{"userId":8,"refund":2.5,"amount":"250"}],"version":7}`},
	},
	{
		"a cancelled free room", testRoom, "7-0000001a|room.cancelled|" + millis + "|7|0|empty|",
		[]string{"room.cancelled", `{"reason":"empty","refunds":[],"version":7}`},
	},
	{
		"a shared state", testRoom, "7-0000001a|room.state|" + millis + `|3|old,hand.7|{"a":"|;","b":[1]}`,
		[]string{"room.state", `{"version":3,"patch":{"a":"|;","b":[1]},"delete":["old","hand.7"]}`},
	},
	{
		"a shared state without deleted names", testRoom, "7-0000001a|room.state|" + millis + `|1||{"a":1}`,
		[]string{"room.state", `{"version":1,"patch":{"a":1},"delete":[]}`},
	},
	{
		"a turn", testRoom, "7-0000001a|room.turn|" + millis + "|7|8|" + millis + "|skipped",
		[]string{"room.turn", `{"userId":8,"deadline":` + renderedT + `,"reason":"skipped","version":7}`},
	},
	{
		"a turn of nobody", testRoom, "7-0000001a|room.turn|" + millis + "|7|||set",
		[]string{"room.turn", `{"userId":null,"deadline":null,"reason":"set","version":7}`},
	},
	{
		"a rematch", testRoom, "8-0000001a|room.rematch|" + millis + "|8|7|0190a1b2-c3d4-8000-8000-000000000002|P3ZT9A",
		[]string{"room.rematch", `{"newRoomId":"0190a1b2-c3d4-8000-8000-000000000002","code":"P3ZT9A","by":7,"version":8}`},
	},
	{
		"a value that a newer node appended", testRoom, "5-0000001a|room.host_changed|" + millis + "|5|8|new",
		[]string{"room.host_changed", `{"userId":8,"version":5}`},
	},
	{
		"a tournament", testTour, "1-0000001a|tournament.opened|" + millis + "|1|ANNOUNCED",
		[]string{"tournament.opened", `{"status":"ANNOUNCED","version":1}`},
	},
	{
		"an entrant", testTour, "2-0000001a|tournament.joined|" + millis + "|2|1|250|2|" + bob,
		[]string{"tournament.joined", `{"user":` + bob + `,"entrants":1,"fees":2.5,"feesAmount":"250","version":2}`},
	},
	{
		"an entrant who left", testTour, "3-0000001a|tournament.left|" + millis + "|3|8|no_check_in|0|0|0",
		[]string{"tournament.left", `{"userId":8,"reason":"no_check_in","entrants":0,"fees":0,"feesAmount":"0","version":3}`},
	},
	{
		"an entrant who is there", testTour, "4-0000001a|tournament.checked_in|" + millis + "|4|8|3",
		[]string{"tournament.checked_in", `{"userId":8,"checkedIn":3,"version":4}`},
	},
	{
		"a tournament that starts", testTour, "5-0000001a|tournament.started|" + millis + "|5|7",
		[]string{"tournament.started", `{"players":7,"version":5}`},
	},
	{
		"a round", testTour, "6-0000001a|tournament.round_started|" + millis + "|6|1|4|" + millis,
		[]string{"tournament.round_started", `{"round":1,"matches":4,"deadline":` + renderedT + `,"version":6}`},
	},
	{
		"a match", testTour,
		"7-0000001a|tournament.match_ready|" + millis + "|7|r1m2|" + testRoom + "|1|" + millis + "|7:1,8:2",
		[]string{"tournament.match_ready", `{"matchId":"r1m2","roomId":"` + testRoom + `","attempt":1,"deadline":` +
			renderedT + `,"players":[{"userId":7,"seed":1},{"userId":8,"seed":2}],"version":7}`},
	},
	{
		"a match that is won", testTour, "8-0000001a|tournament.match_decided|" + millis + "|8|r1m2|7|played|7:1,8:2",
		[]string{"tournament.match_decided", `{"matchId":"r1m2","winnerId":7,"reason":"played",` +
			`"players":[{"userId":7,"seed":1},{"userId":8,"seed":2}],"version":8}`},
	},
	{
		"a match of nobody", testTour, "9-0000001a|tournament.match_decided|" + millis + "|9|r3m1||double_forfeit|",
		[]string{"tournament.match_decided", `{"matchId":"r3m1","winnerId":null,"reason":"double_forfeit","players":[],` +
			`"version":9}`},
	},
	{
		"a tournament that is paid", testTour, "9-0000001a|tournament.settled|" + millis + "|9|2|1000|50|7:1:950:;",
		[]string{"tournament.settled", `{"pot":10,"potAmount":"1000","rake":0.5,"rakeAmount":"50","payouts":[` +
			`{"userId":7,"place":1,"payout":9.5,"amount":"950"}],"version":9}`},
	},
	{
		"a cancelled tournament", testTour, "9-0000001a|tournament.cancelled|" + millis + "|9|undersubscribed",
		[]string{"tournament.cancelled", `{"reason":"undersubscribed","version":9}`},
	},
	{
		"a call to a match", "", "9-0000001a|user.match|" + millis + "|12|r1m2|" + testRoom + "|" + millis,
		[]string{"user.match", `{"tournamentId":12,"matchId":"r1m2","roomId":"` + testRoom + `","deadline":` + renderedT +
			`}`},
	},
	{
		"a balance", "", "9-0000001a|user.balance|" + millis + "|GOLD|2|-250|750|250|a%7Cb%25\"\n|" + testRoom,
		[]string{"user.balance", `{"tokenId":"GOLD","volume":7.5,"amount":"750","held":2.5,"heldAmount":"250",` +
			`"delta":-2.5,"deltaAmount":"-250","reason":"a|b%\"\n","ref":"` + testRoom + `"}`},
	},
	{
		"a purchase", "", "10-0000001a|user.asset|" + millis + "|GOLD|0|-40|9223372036854775807|0|purchase|asset:3|3|1|2|41",
		[]string{
			"user.balance", `{"tokenId":"GOLD","volume":9223372036854775807,"amount":"9223372036854775807","held":0,` +
				`"heldAmount":"0","delta":-40,"deltaAmount":"-40","reason":"purchase","ref":"asset:3"}`,
			"user.asset", `{"assetId":3,"quantity":1,"owned":2,"purchaseId":41}`,
		},
	},
	{
		"a prize", "",
		"10-0000001a|user.prize|" + millis + "|GOLD|2|250|1000|0|prize|board:top:3|1|||",
		[]string{
			"user.balance", `{"tokenId":"GOLD","volume":10,"amount":"1000","held":0,"heldAmount":"0","delta":2.5,` +
				`"deltaAmount":"250","reason":"prize","ref":"board:top:3"}`,
			"user.prize", `{"source":"board:top:3","place":1,"tokenId":"GOLD","prize":2.5,"amount":"250","assetId":null,` +
				`"quantity":null,"owned":null}`,
		},
	},
	{
		"a prize that is an asset", "",
		"10-0000001a|user.prize|" + millis + "|GOLD|2|0|1000|0|prize|tour:7|2|3|5|6",
		[]string{
			"user.balance", `{"tokenId":"GOLD","volume":10,"amount":"1000","held":0,"heldAmount":"0","delta":0,` +
				`"deltaAmount":"0","reason":"prize","ref":"tour:7"}`,
			"user.prize", `{"source":"tour:7","place":2,"tokenId":null,"prize":0,"amount":"0","assetId":3,"quantity":5,` +
				`"owned":6}`,
		},
	},
	{
		"a save", "", "1-0000001a|user.progress|" + millis + `|"gameId":1,"slot":"a|b","version":4,"savedAt":` +
			renderedT + `,"size":31`,
		[]string{"user.progress", `{"gameId":1,"slot":"a|b","version":4,"savedAt":` + renderedT + `,"size":31}`},
	},
}

func TestEveryStoredEventIsRenderedWithTheMembersThatTheReferencePromises(t *testing.T) {
	rendered := map[string]bool{}
	for _, c := range renderings {
		t.Run(c.name, func(t *testing.T) {
			position, _, _ := strings.Cut(c.entry, "|")
			seq, nonce, _ := strings.Cut(position, "-")
			got, err := Render(c.entry, c.list)
			if err != nil || len(got) != len(c.want)/2 {
				t.Fatalf("%d events, %v", len(got), err)
			}
			idMember := ""
			switch c.list {
			case testRoom:
				idMember = `,"roomId":"` + testRoom + `"`
			case testTour:
				idMember = `,"tournamentId":` + testTour
			}
			for i, e := range got {
				number := seq
				if len(got) == 2 && i == 0 {
					number = before(seq)
				}
				rendered[e.Type] = true
				want := `{"type":"` + c.want[2*i] + `"` + idMember + `,"seq":` + number + `,"position":"` + number + "-" + nonce +
					`","at":` + renderedT + `,"data":` + c.want[2*i+1] + `}`
				if string(e.JSON) != want || e.Type != c.want[2*i] || e.Position != number+"-"+nonce {
					t.Errorf("%s %s\n%s\nwant\n%s", e.Type, e.Position, e.JSON, want)
				}
				checkMembers(t, e)
			}
		})
	}
	for _, e := range All() {
		inList := e.Audience == ToRoom || e.Audience == ToTournament || e.Audience == ToUser
		if inList && !rendered[e.Name] {
			t.Errorf("no entry of the type %s was rendered", e.Name)
		}
	}
}

// before returns the number before another one.
func before(seq string) string {
	n, _ := new(big.Int).SetString(seq, 10)
	return n.Sub(n, big.NewInt(1)).String()
}

// checkMembers requires the members of the data in the order of the reference.
func checkMembers(t *testing.T, e Rendered) {
	t.Helper()
	i := slices.IndexFunc(All(), func(t Type) bool { return t.Name == e.Type })
	rest := string(e.JSON[strings.Index(string(e.JSON), `"data":{`):])
	for _, name := range All()[i].MemberNames() {
		name, optional := strings.CutSuffix(name, "?")
		_, after, found := strings.Cut(rest, `"`+name+`":`)
		if !found && !optional {
			t.Errorf("%s has no member %s where the reference has it: %s", e.Type, name, e.JSON)
		}
		if found {
			rest = after
		}
	}
}

func TestAMalformedEntryIsAnError(t *testing.T) {
	const head = "2-0000001a|"
	for _, entry := range []string{
		"", "|", "2", "2-|", "2-0000001a", "2-0000001a|room.ready",
		"0-0000001a|room.ready|" + millis + "|4|7|1", "-1-0000001a|room.ready|" + millis + "|4|7|1",
		"02-0000001a|room.ready|" + millis + "|4|7|1", "+2-0000001a|room.ready|" + millis + "|4|7|1",
		"9223372036854775808-0000001a|room.ready|" + millis + "|4|7|1",
		"2-0000001|room.ready|" + millis + "|4|7|1", "2-00000001a|room.ready|" + millis + "|4|7|1",
		"2-0000001A|room.ready|" + millis + "|4|7|1",
		head + "room.unknown|" + millis + "|1", head + "hello|" + millis + "|1", head + "|" + millis + "|1",
		head + "room.ready||4|7|1", head + "room.ready|-1|4|7|1", head + "room.ready|253402300800000|4|7|1",
		head + "room.ready|" + millis, head + "room.ready|" + millis + "|4|7", head + "room.ready|" + millis + "|4|7|2",
		head + "room.ready|" + millis + "|4|07|1", head + "room.ready|" + millis + "|4|-7|1",
		head + "room.ready|" + millis + "|4|1e3|1", head + "room.ready|" + millis + "||7|1",
		head + "room.joined|" + millis + "|2|2|250|2", head + "room.joined|" + millis + "|2|2|250|2|",
		head + `room.joined|` + millis + `|2|2|250|2|{"id":7`, head + `room.joined|` + millis + `|2|2|250|2|{},{}`,
		head + "room.joined|" + millis + "|2|2|250|19|{}", head + "room.joined|" + millis + "|2|2|250|-1|{}",
		head + "room.joined|" + millis + "|2|2|2.5|2|{}", head + "room.joined|" + millis + "|2|2|-0|2|{}",
		head + "room.joined|" + millis + "|2|2|+250|2|{}", head + "room.joined|" + millis + "|2|2|9223372036854775808|2|{}",
		head + "room.finished|" + millis + "|7|2|10|7:1:490", head + "room.finished|" + millis + "|7|2|10|7:1:490:1:1",
		head + "room.finished|" + millis + "|7|2|10|7:1:490:best;", head + "room.finished|" + millis + `|7|2|10|7:1:490:"1";`,
		head + "room.finished|" + millis + "|7|2|10|x:1:490:;", head + "room.finished|" + millis + "|7|2|10|7:x:490:;",
		head + "room.cancelled|" + millis + "|7|2|idle|7", head + "room.cancelled|" + millis + "|7|2|idle|:5",
		head + "room.state|" + millis + "|3|", head + "room.state|" + millis + "|3||{",
		head + "room.state|" + millis + "|x||{}",
		head + "room.turn|" + millis + "|7|8||set", head + "room.turn|" + millis + "|7|8|" + millis,
		"1-0000001a|user.asset|" + millis + "|GOLD|0|-40|60|0|purchase|asset:3|3|1|2|41", // it would be 0 and 1
		head + "user.asset|" + millis + "|GOLD|0|-40|60|0|purchase|asset:3|3|1|2",
		head + "user.prize|" + millis + "|GOLD|2|250|1000|0|prize|tour:7|1||",
		head + "user.progress|" + millis + `|"gameId":1},"x":{"y":2`, head + "user.progress|" + millis + `|"a":1,"a":2`,
	} {
		if got, err := Render(entry, testRoom); err == nil {
			t.Errorf("%q is rendered as %s", entry, got[0].JSON)
		}
	}
}

func TestAMalformedEntryOfATournamentIsAnError(t *testing.T) {
	const head, match = "2-0000001a|tournament.", "2-0000001a|user.match|" + millis
	for _, entry := range []string{
		head + "opened|" + millis + "|x|ANNOUNCED", head + "joined|" + millis + "|2|1|250|2|{",
		head + "left|" + millis + "|2",
		head + "round_started|" + millis + "|6|1|4|x",
		head + "match_ready|" + millis + "|7|r1m2|" + testRoom + "|1|" + millis + "|7", // a player without a seed
		head + "match_ready|" + millis + "|7|r1m2|" + testRoom + "|1|" + millis + "|7:1,x:2",
		head + "match_decided|" + millis + "|8|r1m2|x|played|7:1", head + "settled|" + millis + "|9|2|1000|50|7:1:950",
		head + "cancelled|" + millis + "|9",
		match + "|x|r1m1|" + testRoom + "|" + millis, match + "|1|r1m1|" + testRoom, match + "|1|r1m1|" + testRoom + "|x",
	} {
		if got, err := Render(entry, testTour); err == nil {
			t.Errorf("%q is rendered as %s", entry, got[0].JSON)
		}
	}
	const opened = head + "opened|" + millis + "|1|ANNOUNCED"
	if got, err := Render(opened, testRoom); err == nil {
		t.Errorf("in the list of a room, %q is rendered as %s", opened, got[0].JSON)
	}
}

func FuzzRenderedEventsAreJSON(f *testing.F) {
	for _, c := range renderings {
		f.Add(c.entry, c.list)
	}
	f.Add("2-0000001a|room.joined|0|2|2|250|0|[", "a\"b\xff")
	f.Fuzz(func(t *testing.T, entry, list string) {
		rendered, err := Render(entry, list)
		h, ok := ParseHeader(entry)
		if err != nil {
			return
		}
		if !ok || len(rendered) != h.EventCount || rendered[len(rendered)-1].Seq != h.Seq {
			t.Fatalf("%q has the header %+v and is %d events", entry, h, len(rendered))
		}
		for _, e := range rendered {
			if !wire.RawJSON(e.JSON).IsValid() {
				t.Fatalf("%q is rendered as %s", entry, e.JSON)
			}
		}
	})
}

func TestAnyTextComesBackFromAnEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separators := rapid.StringOf(rapid.SampledFrom([]rune("%|;2537CBF1\x1f\"\\\n")))
		text := rapid.OneOf(rapid.String(), separators).Draw(t, "text")
		escaped := Escape(text)
		if strings.ContainsAny(escaped, "|;\x1f") || Unescape(escaped) != text {
			t.Fatalf("%q is escaped as %q, which is %q", text, escaped, Unescape(escaped))
		}
		rendered := testkit.Must(Render("1-0000001a|user.balance|0|GOLD|0|1|1|0|"+escaped+"|"+escaped, ""))(t)
		var event struct {
			Data struct{ Reason, Ref string }
		}
		want := strings.ToValidUTF8(text, "\uFFFD")
		if err := wire.Unmarshal(lowered(rendered[0].JSON), &event); err != nil || event.Data.Reason != want ||
			event.Data.Ref != want {
			t.Fatalf("%q is rendered as %s: %v", text, rendered[0].JSON, err)
		}
	})
}

// lowered returns an event with the names of the Go struct of the test above.
func lowered(event []byte) []byte {
	s := strings.Replace(string(event), `"data":`, `"Data":`, 1)
	s = strings.Replace(s, `"reason":`, `"Reason":`, 1)
	return []byte(strings.Replace(s, `"ref":`, `"Ref":`, 1))
}

func TestAmountsAreRenderedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000)).Draw(t, "units")
		decimals := rapid.IntRange(0, maxDecimals).Draw(t, "decimals")
		text := big.NewInt(units).String()
		b := testkit.Must(appendAmount([]byte("{"), "volume", "amount", text, big.NewInt(int64(decimals)).String()))(t)
		number, ok := strings.CutSuffix(strings.TrimPrefix(string(b), `{"volume":`), `,"amount":"`+text+`"`)
		got, isNumber := new(big.Rat).SetString(number)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		if !ok || !isNumber || got.Cmp(new(big.Rat).SetFrac(big.NewInt(units), scale)) != 0 ||
			strings.ContainsAny(number, "eE") {
			t.Fatalf("%d with %d decimals is %s", units, decimals, b)
		}
	})
}

var joined = renderings[2].entry

func TestAnEventIsRenderedIntoOneBufferOfItsSize(t *testing.T) {
	for _, c := range renderings {
		if c.list != testRoom || strings.Contains(c.entry, "finished") || strings.Contains(c.entry, "cancelled") {
			continue // lists grow
		}
		rendered, _ := Render(c.entry, c.list)
		if e := rendered[0].JSON; cap(e)-len(e) > 128 {
			t.Errorf("%s: %d bytes in a buffer of %d", c.name, len(e), cap(e))
		}
	}
	left, again := renderings[3].entry, Renderer{}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = again.Render(left, testRoom) }); allocs > 1 {
		t.Errorf("room.left takes %v allocations, want the builder alone", allocs)
	}
}

func BenchmarkRenderRoomJoined(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(Render(joined, testRoom))(b)
	}
}

func TestAPlayerWhoJoinedIsReadFromTheEvent(t *testing.T) {
	rendered := testkit.Must(Render(joined, testRoom))(t)
	var event struct {
		Data struct {
			User struct {
				ID int64 `json:"id"`
			} `json:"user"`
		} `json:"data"`
	}
	testkit.Check(t, wire.Unmarshal(rendered[0].JSON, &event))
	if id, ok := JoinedUserID(rendered[0].JSON); !ok || id != event.Data.User.ID || id == 0 {
		t.Errorf("%d, %v of %s", id, ok, rendered[0].JSON)
	}
	if id, ok := JoinedUserID([]byte(`{"type":"room.left","data":{"userId":7}}`)); ok {
		t.Errorf("another event has the player %d", id)
	}
}
