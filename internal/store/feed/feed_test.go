package feed_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const roomID = "0190a1b2-c3d4-8000-8001-000000000001"

// stored returns an entry as scripts write it.
func stored(number int, nonce string) string {
	return fmt.Sprintf("%d-%s|room.ready|1764264746123|%s|%d|4|7|1", number, nonce, roomID, number+3)
}

func TestAnEntryBecomesTheEventThatServersGet(t *testing.T) {
	for text, want := range map[string]string{
		stored(12, "0k3f9zq1"): `{"type":"room.ready","feed":"r0","position":"12-0k3f9zq1","roomId":"` + roomID +
			`","seq":15,"time":"2025-11-27T17:32:26.123Z","data":{"userId":7,"ready":true,"version":4}}`,
		"3-0k3f9zq1|tournament.opened|1764264746123|12|1|1|REGISTRATION": `{"type":"tournament.opened","feed":"r0",` +
			`"position":"3-0k3f9zq1","tournamentId":12,"seq":1,"time":"2025-11-27T17:32:26.123Z",` +
			`"data":{"status":"REGISTRATION","version":1}}`,
	} {
		entry := testkit.Must(feed.Parse(text))(t)
		if got := string(entry.AppendJSON(nil, "r0")); got != want {
			t.Errorf("%s\nis  %s\nnot %s", text, got, want)
		}
	}
}

func TestAnEntryThatCannotBeReadIsAnError(t *testing.T) {
	for text, position := range map[string]string{
		"":                                   "",
		"12|room.ready|1|a|1|4":              "",
		"12-0k3f9zq1|room.ready":             "",
		"12-0k3f9zq1|room.ready|1|a":         "12-0k3f9zq1",
		"12-0k3f9zq1|room.ready|1|a|0|4|7|1": "12-0k3f9zq1",
		"12-0k3f9zq1|room.ready|1|a|1|4|7|9": "12-0k3f9zq1",
		"12-0k3f9zq1|room.of_a_newer_build|1|a|1|4|7|1": "12-0k3f9zq1",
	} {
		if entry, err := feed.Parse(text); err == nil || entry.Position != position || entry.Data != nil {
			t.Errorf("%q is %+v, %v", text, entry, err)
		}
	}
}

func TestAFeedIsReadFromAPosition(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		shard := keys.FreeShard(1)
		list, head := keys.Feed(shard, 3), keys.FeedHead(shard, 3)
		read := func(after string, limit int) string {
			t.Helper()
			entries, gap, head, err := feed.Read(t.Context(), db, shard, 3, after, limit)
			testkit.Check(t, err)
			var numbers []int64
			for _, e := range entries {
				numbers = append(numbers, e.Number)
			}
			return fmt.Sprintf("%v %v %s", numbers, gap, head)
		}
		expect := func(want, after string, limit int) {
			t.Helper()
			if got := read(after, limit); got != want {
				t.Errorf("after %q: %s; want %s", after, got, want)
			}
		}
		expect("[] false 0-0", "", 9)
		expect("[] false 0-0", feed.Start, 9)
		expect("[] true 0-0", "1-aaaaaaaa", 9)
		for n := range 5 {
			testkit.Check(t, db.Client.RPush(t.Context(), list, stored(n+1, "aaaaaaaa")).Err())
		}
		expect("[1 2 3 4 5] false 5-aaaaaaaa", "", 9)
		expect("[1 2 3] false 5-aaaaaaaa", feed.Start, 3)
		expect("[3 4] false 5-aaaaaaaa", "2-aaaaaaaa", 2)
		expect("[] false 5-aaaaaaaa", "5-aaaaaaaa", 2)
		expect("[] true 5-aaaaaaaa", "2-bbbbbbbb", 2)
		expect("[] true 5-aaaaaaaa", "5-bbbbbbbb", 2)
		expect("[] true 5-aaaaaaaa", "6-aaaaaaaa", 2)
		expect("[] true 5-aaaaaaaa", "x", 2)
		testkit.Check(t, db.Client.LTrim(t.Context(), list, 2, -1).Err())
		expect("[] true 5-aaaaaaaa", feed.Start, 9)
		expect("[] true 5-aaaaaaaa", "2-aaaaaaaa", 9)
		expect("[4 5] false 5-aaaaaaaa", "3-aaaaaaaa", 9)
		expect("[3 4 5] false 5-aaaaaaaa", "", 9)

		heads := testkit.Must(feed.ReadHeads(t.Context(), db, 3, feed.Shards(3, 2)))(t)
		if len(heads) != 3 || heads[0] != (feed.Head{Position: feed.Start}) || heads[2].Position != "5-aaaaaaaa" {
			t.Errorf("heads: %+v", heads)
		}
		testkit.Check(t, db.Client.HSet(t.Context(), head, "since", 1_764_264_746_123).Err())
		heads = testkit.Must(feed.ReadHeads(t.Context(), db, 3, []keys.Shard{shard}))(t)
		if !heads[0].Since.Equal(time.UnixMilli(1_764_264_746_123)) {
			t.Errorf("since: %v", heads[0].Since)
		}
	})
}

func TestEachRoomBelongsToOneShare(t *testing.T) {
	if got := feed.ShareOf("123456789", 1<<30); got != 0xe3069283%(1<<30) { // the check value of CRC-32C
		t.Errorf("%x", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 64).Draw(t, "of")
		if got := feed.ShareOf(rapid.String().Draw(t, "room"), of); got < 0 || got >= of {
			t.Fatalf("%d of %d", got, of)
		}
	})
}

func TestAFeedHasItsNameOnTheWire(t *testing.T) {
	if got := feed.Name(keys.EconomyShard(7)) + " " + feed.Name(keys.FreeShard(12)); got != "e r12" {
		t.Error(got)
	}
}
