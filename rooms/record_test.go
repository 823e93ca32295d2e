package rooms

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/wallet"
)

// The scripts read these texts by position, so the order is part of the stored format.
func TestTheOrderOfPackedValues(t *testing.T) {
	n := roomDraft{
		gameID: 2, token: wallet.Token{Code: "GOLD", Decimals: 3}, entryTokenJSON: `{"id":1}`, entry: 4, maxPlayers: 6,
		minPlayers: 5, friendsOnly: true, autoStart: false, visibility: Unlisted, settledBy: "server", rakeBps: 250,
		payoutBps: []int{6000, 4000}, tie: TieRefund, metadataJSON: `{"a":1}`, idleTimeout: 7 * time.Second,
		maxAge:       8 * time.Second,
		matchTimeout: 9 * time.Second, retention: 10 * time.Second,
	}
	settings, document := n.encode("id", 11)
	if want := "id|2|GOLD|3|4|6|5|1|unlisted|0|7000|8000|9000|10000|11"; settings != want {
		t.Errorf("settings %q, want %q", settings, want)
	}
	if want := "server\t250\t6000,4000\trefund\t{\"a\":1}\t{\"id\":1}"; document != want {
		t.Errorf("document %q, want %q", document, want)
	}
}

func storedRoom(seats int) map[string]string {
	profile := func(id int) string { return fmt.Sprintf(`{"id":%d,"username":"a|b","avatar":null}`, id) }
	list := make([]string, seats)
	for i := range list {
		list[i] = fmt.Sprintf("%d|active|1|1700000000000|250|%s", i+1, profile(i+1))
	}
	return map[string]string{
		"set":   "01a201f5-243a-8000-81ab-bbfb36f90f05|2|GOLD|3|250|8|2|0|public|1|1|2|3|4|1",
		"doc":   "7\tQ29G5H4\t" + profile(1) + "\tserver\t250\t6000,4000\tsplit\t{}\t{\"id\":1}",
		"state": "STARTED|1|9|12-34|2000|" + profile(1),
		"seats": strings.Join(list, "\t"), "seq": "12", "created": "1700000000000", "started": "1700000001000",
	}
}

func TestAStoredRoomIsDecodedByName(t *testing.T) {
	hash := storedRoom(2)
	hash["ban:5"] = "1"
	r, err := decodeRoom(hash)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(r.ID, r.GameID, r.TokenCode, r.TokenDecimals, r.Entry, r.MaxPlayers, r.MinPlayers, r.FriendsOnly,
		r.Visibility, r.AutoStart, r.CreatorID, r.SettledBy, r.RakeBps, r.PayoutBps, r.Tie, r.Status, r.HostID,
		r.Version, r.Position, r.Pot, r.Seq, r.bannedUsers, r.StartedAt.UnixMilli(), r.FinishedAt.IsZero())
	want := fmt.Sprint(7, 2, "GOLD", 3, 250, 8, 2, false,
		"public", true, 1, "server", 250, "[6000 4000]", "split", "STARTED", 1,
		9, "12-34", 2000, 12, "map[5:true]", 1700000001000, true)
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("decoded\n%s, want\n%s", got, want)
	}
	if seat := r.Seats[1]; seat.UserID != 2 || !seat.Ready || seat.Stake != 250 || seat.Profile().Username != "a|b" {
		t.Errorf("the second seat is %+v", seat)
	}
}

func TestARoomWithMissingOrWrongValuesIsNotDecoded(t *testing.T) {
	for field, text := range map[string]string{
		"set": "id|2|GOLD", "state": "STARTED|1|9", "doc": "7\tcode", "seats": "1|active|1", "seq": "x",
		"created": "x", "ban:x": "1", "rake": "1.5",
	} {
		hash := storedRoom(2)
		hash[field] = text
		if r, err := decodeRoom(hash); err == nil {
			t.Errorf("%s %q is decoded: %+v", field, text, r)
		}
	}
}

// BenchmarkDecodeRoom decodes a script's reply with eight seats.
func BenchmarkDecodeRoom(b *testing.B) {
	var flat []string
	for field, value := range storedRoom(8) {
		flat = append(flat, field, value)
	}
	text := strings.Join(flat, "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodeRoom(decodeHashReply(text)); err != nil {
			b.Fatal(err)
		}
	}
}
