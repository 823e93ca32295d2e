package rooms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/tests/testkit"
)

const testRoomID = "01a201f5-243a-8000-81ab-bbfb36f90f05"

// The order of the values is part of the stored format.
func TestTheOrderOfPackedValues(t *testing.T) {
	n := roomDraft{
		gameID: 2, token: wallet.Token{Code: "GOLD", Decimals: 3}, entryTokenJSON: `{"id":1}`, entry: 4, maxPlayers: 6,
		minPlayers: 5, friendsOnly: true, autoStart: false, visibility: Unlisted, settledBy: "server", rakeBps: 250,
		payoutBps: []int{6000, 4000}, tie: TieRefund, metadataJSON: `{"a":1}`, creatorProfileJSON: `{"id":11}`,
		idleTimeout: 7 * time.Second, maxAge: 8 * time.Second, matchTimeout: 9 * time.Second, retention: 10 * time.Second,
		consumer: "boards",
	}
	settings, document := n.encode(redisdb.NewestLayout(), 11)
	if want := "4|GOLD|3|6|2|11|unlisted|1|0|5|9000|7000|8000|10000|boards"; settings != want {
		t.Errorf("settings %q, want %q", settings, want)
	}
	if want := "server\t250\t6000,4000\trefund\t{\"a\":1}\t{\"id\":1}\t{\"id\":11}"; document != want {
		t.Errorf("document %q, want %q", document, want)
	}
}

// Builds before feeds wrote no such value, and nodes of both read each other's rooms during an
// upgrade. TestEveryEndOfARoomIsAppliedOnce ends rooms that are stored so, by every script.
func TestARoomWithoutFeedsIsStoredAsOlderBuildsStoreIt(t *testing.T) {
	n := roomDraft{
		gameID: 2, token: wallet.Token{Code: "GOLD", Decimals: 3}, entry: 4, maxPlayers: 6, minPlayers: 5,
		visibility: Public, retention: 10 * time.Second,
	}
	older := "4|GOLD|3|6|2|11|public|0|0|5|0|0|0|10000"
	if settings, _ := n.encode(redisdb.NewestLayout(), 11); settings != older {
		t.Errorf("settings %q, want %q", settings, older)
	}
	for text, want := range map[string]string{older: "", older + "|": "", older + "|boards": "boards"} {
		r := Room{consumer: "other"}
		if err := r.decodeSettings(text); err != nil || r.consumer != want || r.Entry != 4 || r.MinPlayers != 5 {
			t.Errorf("%q is decoded as %+v, %v", text, r, err)
		}
	}
	if err := new(Room).decodeSettings("4|GOLD|3|6|2|11|public|0|0|5|0|0|0"); err == nil {
		t.Error("a text without keep_ms was decoded")
	}
}

func testProfile(id int) string { return fmt.Sprintf(`{"id":%d,"username":"a|b","avatar":null}`, id) }

func storedRoom(seats int) map[string]string {
	hash := map[string]string{
		"settings": "250|GOLD|3|8|2|1|public|0|1|2|1|2|3|4|boards",
		"document": "server\t250\t6000,4000\tsplit\t{}\t{\"id\":1}\t" + testProfile(1),
		"live":     "STARTED|9|12|0000abcd|2000|2|0|2|1|1700000001000",
		"id":       "7", "code": "Q29G5H4", "created": "1700000000000", "started": "1700000001000",
	}
	for i := 1; i <= seats; i++ {
		hash[fmt.Sprintf("s%d", i)] = fmt.Sprintf("active|1|1700000000000|250|%d000|%s", i, testProfile(i))
	}
	return hash
}

func TestAStoredRoomIsDecodedByName(t *testing.T) {
	hash := storedRoom(2)
	hash["b5"], hash["bans"] = "1", "1"
	r := testkit.Must(decodeRoom(testRoomID, redisdb.HashOf(hash)))(t)
	got := fmt.Sprint(r.RoomID, r.ID, r.GameID, r.TokenCode, r.TokenDecimals, r.Entry, r.MaxPlayers, r.MinPlayers,
		r.FriendsOnly, r.Visibility, r.AutoStart, r.CreatorID, r.SettledBy, r.RakeBps, r.PayoutBps, r.Tie, r.Status,
		r.HostID, r.Version, r.Position, r.Pot, r.Seq, r.bannedUsers, r.StartedAt.UnixMilli(), r.FinishedAt.IsZero(),
		r.placementsJSON, r.refundsJSON)
	want := fmt.Sprint(testRoomID, 7, 2, "GOLD", 3, 250, 8, 2,
		false, "public", true, 1, "server", 250, "[6000 4000]", "split", "STARTED",
		1, 9, "12-0000abcd", 2000, 12, "map[5:true]", 1700000001000, true)
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("decoded\n%s, want\n%s", got, want)
	}
	if seat := r.Seats[1]; seat.UserID != 2 || !seat.Ready || seat.Stake != 250 || seat.Profile().Username != "a|b" {
		t.Errorf("the second seat is %+v", seat)
	}
}

func TestSeatsAreInTheOrderInWhichTheyWereTaken(t *testing.T) {
	hash := storedRoom(0)
	for user, order := range map[int]int{30: 1000, 10: 1001, 20: 2000, 5: 10000} {
		hash[fmt.Sprintf("s%d", user)] = fmt.Sprintf("active|0|1700000000000|250|%d|%s", order, testProfile(user))
	}
	r, err := decodeRoom(testRoomID, redisdb.HashOf(hash))
	if err != nil || fmt.Sprint(r.seatedUsers()) != "[30 10 20 5]" {
		t.Errorf("%v, %v", r.seatedUsers(), err)
	}
}

func TestTheHostIsShownAsSeatedAndAfterTheLastOneLeftAsStored(t *testing.T) {
	hash := storedRoom(2)
	if r, err := decodeRoom(testRoomID, redisdb.HashOf(hash)); err != nil || r.hostProfileJSON != testProfile(1) {
		t.Errorf("%s, %v", r.hostProfileJSON, err)
	}
	delete(hash, "s1")
	hash["host_profile"] = testProfile(1)
	if r, err := decodeRoom(testRoomID, redisdb.HashOf(hash)); err != nil || r.hostProfileJSON != testProfile(1) {
		t.Errorf("%s, %v", r.hostProfileJSON, err)
	}
}

func TestResultsPayoutsAndRefundsAreDecoded(t *testing.T) {
	for name, c := range map[string]struct{ field, text, results, payouts, refunds string }{
		"paid": {
			"placements", "2:1:1500:3;1:2:500:;3:0:0:;",
			`[{"userId":2,"place":1,"score":3},{"userId":1,"place":2}]`,
			`[{"userId":2,"place":1,"payout":1.5,"amount":"1500"},{"userId":1,"place":2,"payout":0.5,"amount":"500"}]`, "",
		},
		"refunded tie": {
			"placements", "2:1:250:;3:0:250:;",
			`[{"userId":2,"place":1}]`,
			`[{"userId":2,"place":1,"payout":0.25,"amount":"250"},{"userId":3,"place":null,"payout":0.25,"amount":"250"}]`, "",
		},
		"free":          {"placements", "2:1::;", `[{"userId":2,"place":1}]`, `[]`, ""},
		"cancelled":     {"refunds", "2:250;", "", "", `[{"userId":2,"refund":0.25,"amount":"250"}]`},
		"no refunds":    {"refunds", "", "", "", `[]`},
		"has not ended": {"started", "1", "", "", ""},
	} {
		hash := storedRoom(3)
		hash[c.field] = c.text
		r, err := decodeRoom(testRoomID, redisdb.HashOf(hash))
		if err != nil || r.placementsJSON != c.results || r.payoutsJSON != c.payouts || r.refundsJSON != c.refunds {
			t.Errorf("%s: %s, %s, %s, %v", name, r.placementsJSON, r.payoutsJSON, r.refundsJSON, err)
		}
	}
}

func TestARoomWithMissingOrWrongValuesIsNotDecoded(t *testing.T) {
	for field, text := range map[string]string{
		"settings": "4|GOLD|3", "live": "STARTED|1|9", "document": "7\tcode", "s1": "active|1", "id": "x",
		"created": "x", "rake": "1.5", "refunds": "1:x;", "placements": "1:1:x:;",
	} {
		hash := storedRoom(2)
		hash[field] = text
		if r, err := decodeRoom(testRoomID, redisdb.HashOf(hash)); err == nil {
			t.Errorf("%s %q is decoded: %+v", field, text, r)
		}
	}
}

// BenchmarkDecodeRoom decodes a room of eight seats.
func BenchmarkDecodeRoom(b *testing.B) {
	hash := redisdb.HashOf(storedRoom(8))
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(decodeRoom(testRoomID, hash))(b)
	}
}
