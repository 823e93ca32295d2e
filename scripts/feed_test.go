package scripts_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// A room without a feed must not pay for those with one.
func TestOnlyTheSecondTextOfAScriptKnowsOfFeeds(t *testing.T) {
	library := string(testkit.Must(os.ReadFile("lib_feed.lua"))(t))
	added := regexp.MustCompile(`(?m)^ *(?:append_to_feed\(|fed_seq, ).*\n`)
	eventType := regexp.MustCompile(`'((?:room|tournament)\.[a-z_]+)'`)
	count := 0
	for name, s := range scripts.All() {
		feeds := false
		for _, m := range eventType.FindAllStringSubmatch(s.Source, -1) {
			feeds = feeds || events.FeedKind(m[1]) != ""
		}
		if strings.Contains(s.Source, "feed_key") || strings.Contains(s.Source, "@feed") {
			t.Errorf("%s knows of feeds", name)
		}
		with := s.WithFeed()
		if (with != nil) != feeds {
			t.Errorf("%s emits events of feeds: %v; it has a text for them: %v", name, feeds, with != nil)
		}
		if with == nil {
			continue
		}
		count++
		line, _, _ := strings.Cut(s.Source, "\n")
		text, begins := strings.CutPrefix(with.Source, line+"\n"+library)
		if !begins || line+"\n"+added.ReplaceAllString(text, "") != s.Source {
			t.Errorf("the text of %s with a feed differs in more than the feed", name)
		}
	}
	if count < 25 {
		t.Errorf("%d scripts can feed", count)
	}
}

func TestARoomWithAFeedAppendsWhatItEmits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.feeds = true
		r, create := f.newRoom(values{"max_players": 2})
		for user := range int64(2) {
			f.setBalance(user+1, "1000", "0")
		}
		create.want(scripts.OK)
		create.want(scripts.OK) // a resend
		r.call(scripts.RoomJoin, 2, values{}).want(scripts.OK)
		r.call(scripts.RoomStart, 1, values{}).want(scripts.OK)
		var got []string
		for i, text := range f.list(keys.Feed(r.shard, f.id)) {
			entry := testkit.Must(feed.Parse(text))(t)
			if entry.Number != int64(i+1) || entry.ID != r.id {
				t.Errorf("entry %d is %q", i+1, text)
			}
			position, rest, _ := strings.Cut(text, "|")
			_, nonce, _ := strings.Cut(position, "-")
			rest = strings.Replace(rest, fmt.Sprintf("%s|%d|", r.id, entry.Seq), "", 1)
			got = append(got, fmt.Sprintf("%d-%s|%s", entry.Seq, nonce, rest))
		}
		want := f.list(keys.RoomEvents(r.shard, r.id))
		if len(got) != 3 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the feed has\n%s\nand the room\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		first := testkit.Must(feed.Parse(f.list(keys.Feed(r.shard, f.id))[0]))(t)
		head := keys.FeedHead(r.shard, f.id)
		if since := f.field(head, "since"); since != fmt.Sprint(first.At.UnixMilli()) || f.field(head, "seq") != "3" {
			t.Errorf("since %s, not %d; number %s", since, first.At.UnixMilli(), f.field(head, "seq"))
		}
	})
}

// requireFeed compares the feed after an example with the lists of the rooms and tournaments, as
// far as these are still there: every event of a kind that feeds have is in the feed once, in the
// order of its own list. The call that is sent again appends nothing.
func requireFeed(t *testing.T, e example, c call) {
	t.Helper()
	list := keys.Feed(c.shard, c.f.id)
	got := map[string][]string{}
	texts := c.f.list(list)
	for i, text := range texts {
		entry := testkit.Must(feed.Parse(text))(t)
		if entry.Number != int64(i+1) || entry.Kind() == "" {
			t.Errorf("%s/%s: entry %d of the feed is %q", e.script.Name, e.name, i+1, text)
		}
		got[entry.ID] = append(got[entry.ID], fmt.Sprint(entry.Type, " ", entry.Seq))
	}
	own := 0
	for key, stored := range c.snapshot() {
		id, isRoom := keys.ParseRoomEvents(key)
		if !isRoom {
			if id, isRoom = keys.ParseTourEvents(key); !isRoom {
				continue
			}
		}
		var want []string
		for _, text := range stored.Values {
			if h, ok := events.ParseHeader(text); ok && events.FeedKind(h.Type) != "" {
				want = append(want, fmt.Sprint(h.Type, " ", h.Seq))
			}
		}
		own += len(want)
		if !slices.Equal(got[id], want) {
			t.Errorf("%s/%s: the feed has %v of %s, want %v", e.script.Name, e.name, got[id], id, want)
		}
	}
	if e.status == scripts.OK && own == 0 && strings.HasPrefix(e.script.Name, "tour_") && e.script.WithFeed() != nil {
		t.Errorf("%s/%s has no event to compare", e.script.Name, e.name)
	}
	c.run()
	if again := c.f.list(list); !slices.Equal(again, texts) && !slices.Contains(newEachTime, e.script) {
		t.Errorf("%s/%s, sent again, appends %v", e.script.Name, e.name, again[len(texts):])
	}
}

// What is broken in a feed must not keep a room from ending: its readers notice.
func TestABrokenFeedStopsNoRoom(t *testing.T) {
	db := redistest.Single(t)
	for _, e := range examples {
		if e.status != scripts.OK || !endsForOthers(e) || e.script.WithFeed() == nil {
			continue
		}
		for _, broken := range []func(keys.Shard, int64) string{keys.Feed, keys.FeedHead} {
			f := newFixture(t, db)
			f.feeds = true
			c := e.prepare(f)
			testkit.Check(t, db.Client.Set(t.Context(), broken(c.shard, f.id), "?", 0).Err())
			c.want(scripts.OK)
			f.dropAll(c.tag())
		}
	}
}

// The digit that says whether a room feeds has bits of its shard, too.
func TestRoomsOfEachShardFeed(t *testing.T) {
	db := openEmbedded(t)
	digits := map[byte]bool{}
	for i := range 64 {
		f := newFixture(t, db)
		f.id += int64(i / 32) // a room takes a number, too, so that each second one would be missing
		f.feeds = true
		r := f.openRoom(values{"entry": i % 2})
		digits[r.id[22]] = true
		if n := db.Client.LLen(t.Context(), keys.Feed(r.shard, f.id)).Val(); n != 1 || !keys.RoomFeeds(r.id) {
			t.Errorf("room %s has %d entries in the feed", r.id, n)
		}
	}
	if len(digits) != 8 {
		t.Errorf("the rooms have %d of 8 digits", len(digits))
	}
}

// Entries of two counts in one list would have no order.
func TestAFeedThatHasLostItsHeadBeginsAnew(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.feeds = true
		shard := keys.EconomyShard(f.id)
		list, head := keys.Feed(shard, f.id), keys.FeedHead(shard, f.id)
		f.openRoom(values{})
		f.openRoom(values{}).join(2)
		testkit.Check(t, db.Client.Del(t.Context(), head).Err())
		f.openRoom(values{})
		entries := testkit.Must(db.Client.LRange(t.Context(), list, 0, -1).Result())(t)
		if len(entries) != 1 || !strings.HasPrefix(entries[0], "1-") {
			t.Errorf("the feed has %q", entries)
		}
		f.dropAll("{" + shard.String() + "}:")
	})
}

func TestAFeedKeepsItsNewestEntriesAndWhatAWebhookWaitsFor(t *testing.T) {
	onEveryStore(t, func(t *testing.T, db *redisdb.DB) {
		for _, c := range []struct {
			length  int    // before the event
			kept    string // "" for no webhook
			want    int    // entries afterwards
			expects string
		}{
			{5118, "", 5119, "it is not full"},
			{5119, "", 4096, "the newest stay"},
			{5119, "5000", 4096, "the webhook has nearly all"},
			{5119, "100", 5021, "what the webhook lacks stays, behind what it has"},
			{99_327, "100", 98_976, "it lacks too much"},
		} {
			f := newFixture(t, db)
			shard := keys.EconomyShard(f.id)
			list, head := keys.Feed(shard, f.id), keys.FeedHead(shard, f.id)
			const fill = "for i = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[1], i .. '-aaaaaaaa|x') end " +
				"redis.call('HSET', KEYS[2], 'seq', ARGV[1]) return 1"
			testkit.Check(t, db.Client.Eval(t.Context(), fill, []string{list, head}, c.length).Err())
			if c.kept != "" {
				number := testkit.Must(strconv.ParseInt(c.kept, 10, 64))(t)
				testkit.Check(t, feed.SetKept(t.Context(), db, shard, f.id, number))
			}
			f.feeds = true
			f.openRoom(values{})
			first, _, _ := strings.Cut(testkit.Must(db.Client.LIndex(t.Context(), list, 0).Result())(t), "-")
			length := testkit.Must(db.Client.LLen(t.Context(), list).Result())(t)
			if want := strconv.Itoa(c.length + 1 - c.want + 1); int(length) != c.want || first != want {
				t.Errorf("%s: %d entries from %s on; want %d from %s on", c.expects, length, first, c.want, want)
			}
			f.dropAll("{" + shard.String() + "}:")
		}
	})
}
