package webhooks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// loseNewest makes the feed of shard 0 end earlier, as after a failover to a replica that lagged
// behind, and what follows another history.
func (in *installation) loseNewest(t *testing.T, count int64) {
	t.Helper()
	list := keys.Feed(keys.FreeShard(0), game)
	testkit.Check(t, in.db.Client.LTrim(t.Context(), list, 0, -count-1).Err())
	in.numbers[list] -= int(count)
	in.nonce = "bbbbbbbb"
}

func (r *receiver) ids(kind string) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.got {
		if d.kind == kind {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// A feed whose position the store has lost is sent again from the oldest entry that is stored.
func TestAFeedThatWentBackIsToldByAGap(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, rooms(3, 2)...)
	r.want(t, 6)
	in.wantPosition(t, w.ID, "6-aaaaaaaa")
	in.loseNewest(t, 4)
	redistest.Eventually(t, "the gap was delivered", func() bool { return len(r.ids("webhook.gap")) > 0 })
	in.happen(t, 0, "new-1", "new-2")
	redistest.Eventually(t, "events go on", func() bool { return r.count() == 9 })
	redistest.Eventually(t, "nothing waits", func() bool { return in.get(t, w.ID).LagSeconds == 0 })
	if gaps := r.ids("webhook.gap"); !slices.Equal(gaps, []string{"3_r0_gap-6-aaaaaaaa"}) || r.doubles < 2 {
		t.Errorf("gaps %v, %d doubles", gaps, r.doubles)
	}
}

// What waits in the memory of a leader is in the store too, where a failover may have cost the end
// of a feed: another leader sends it, and tells the gap.
func TestAFailoverAndTheDeathOfALeaderLoseNothingThatIsStored(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	defer close(blocked)
	r := receive(t, func(delivery) int { <-blocked; return 0 })
	w := in.create(t, r.URL)
	kill := in.lead(t)
	in.happen(t, 0, rooms(30, 1)...)
	redistest.Eventually(t, "a request is under way", func() bool { return r.asked() > 0 })
	in.loseNewest(t, 5)
	redistest.Eventually(t, "the gap is stored", func() bool {
		state := in.db.Client.HGetAll(t.Context(), keys.WebhookState(game, w.ID)).Val()
		return state["behind:gap:r0"] != "" || strings.HasPrefix(state["pos:r0"], "25-")
	})
	kill()
	r.setAnswer(always(200))
	in.lead(t)
	r.want(t, 26)
	if gaps := r.ids("webhook.gap"); len(gaps) != 1 {
		t.Errorf("gaps: %v", gaps)
	}
}

// A gap that is refused is tried again, by the next leader too.
func TestAGapThatIsRefusedComesLater(t *testing.T) {
	in := install(t)
	r := receive(t, func(d delivery) int {
		if d.kind == "webhook.gap" {
			return 500
		}
		return 200
	})
	w := in.create(t, r.URL)
	kill := in.lead(t)
	in.happen(t, 0, rooms(3, 1)...)
	r.want(t, 3)
	in.wantPosition(t, w.ID, "3-aaaaaaaa")
	in.loseNewest(t, 1)
	in.happen(t, 0, "new-1", "new-2")
	redistest.Eventually(t, "new events come", func() bool { return r.count() == 5 })
	in.wantPosition(t, w.ID, "4-bbbbbbbb")
	kill()
	in.lead(t)
	r.setAnswer(always(200))
	in.pass(time.Hour)
	redistest.Eventually(t, "the gap comes", func() bool { return len(r.ids("webhook.gap")) > 0 })
	redistest.Eventually(t, "nothing is behind", func() bool {
		fields := in.db.Client.HKeys(t.Context(), keys.WebhookState(game, w.ID)).Val()
		return !slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "behind:") })
	})
}

// The next leader sends the gap of what was trimmed, if this one dies before the response.
func TestAGapOutlivesTheLeaderThatTellsIt(t *testing.T) {
	in := install(t)
	blocked := make(chan struct{})
	defer close(blocked)
	r := receive(t, func(d delivery) int {
		if d.kind == "webhook.gap" {
			<-blocked
			return 0
		}
		return 200
	})
	w := in.create(t, r.URL)
	kill := in.lead(t)
	in.happen(t, 0, "a", "b", "c", "d") // the target shows that it is fast
	r.want(t, 4)
	list := keys.Feed(keys.FreeShard(0), game)
	_, err := in.db.Client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.RPush(t.Context(), list, "5-aaaaaaaa|room.ready|1764264746123|e|5|4|7|1",
			"6-aaaaaaaa|room.ready|1764264746123|f|6|4|7|1")
		return p.LTrim(t.Context(), list, 5, -1).Err()
	})
	testkit.Check(t, err)
	in.numbers[list] = 6
	in.wantGapAtOnce(t, r, w.ID)
	kill()
	r.setAnswer(always(200))
	in.lead(t)
	redistest.Eventually(t, "the gap comes", func() bool { return len(r.ids("webhook.gap")) > 0 })
}

// wantGapAtOnce waits until other rooms are delivered while the gap is under way.
func (in *installation) wantGapAtOnce(t *testing.T, r *receiver, id string) {
	t.Helper()
	redistest.Eventually(t, "others come meanwhile", func() bool {
		in.happen(t, 0, fmt.Sprintf("room-%d", r.asked())) // in whichever lane the gap is
		return r.count() > 5
	})
	redistest.Eventually(t, "a position behind the gap is stored", func() bool {
		state := in.db.Client.HGetAll(t.Context(), keys.WebhookState(game, id)).Val()
		return state["behind:gap:r0"] != "" || numberOf(state["pos:r0"]) > 6
	})
}

func numberOf(position string) (number int) {
	_, _ = fmt.Sscanf(position, "%d-", &number)
	return number
}

// A room whose place is lost begins with the oldest entry that is stored.
func TestARoomThatIsBehindOutlivesAFailover(t *testing.T) {
	in := install(t)
	r := receive(t, func(d delivery) int {
		if d.room == "room-0" {
			return 500
		}
		return 200
	})
	w := in.create(t, r.URL)
	kill := in.lead(t)
	in.happen(t, 0, "a", "room-0", "b", "room-0", "room-0", "c", "d")
	r.want(t, 4)
	redistest.Eventually(t, "the room waits", func() bool { return in.get(t, w.ID).WaitingRooms == 1 })
	kill()
	place := in.db.Client.HGet(t.Context(), keys.WebhookState(game, w.ID), "behind:room-0").Val()
	if !strings.HasPrefix(place, "r0|1-aaaaaaaa|") {
		t.Fatalf("the place is %s", place)
	}
	list := keys.Feed(keys.FreeShard(0), game)
	testkit.Check(t, in.db.Client.Del(t.Context(), list).Err()) // the store has lost all of it
	in.numbers[list], in.nonce = 0, "bbbbbbbb"
	in.happen(t, 0, "room-0", "a", "room-0", "e")
	r.setAnswer(always(200))
	in.lead(t)
	in.pass(time.Hour)
	for _, id := range []string{"3_r0_1-bbbbbbbb", "3_r0_2-bbbbbbbb", "3_r0_3-bbbbbbbb", "3_r0_4-bbbbbbbb"} {
		redistest.Eventually(t, id+" comes", func() bool { return slices.Contains(r.ids("room.ready"), id) })
	}
}

func TestALedgerThatWentBackIsToldByAGap(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	add := func(nonce string, numbers ...int) {
		for _, n := range numbers {
			text := fmt.Sprintf("1764264746123|%s%d|GOLD|purchase|asset:7|w7:-5;h::5", nonce, n)
			testkit.Check(t, in.db.Client.RPush(t.Context(), keys.Ledger(game), text).Err())
		}
	}
	in.create(t, r.URL, "money")
	in.lead(t)
	add("nonceaa", 1, 2, 3, 4, 5)
	r.want(t, 5)
	testkit.Check(t, in.db.Client.LTrim(t.Context(), keys.Ledger(game), 0, 2).Err())
	add("noncebb", 4, 5, 6)
	for _, id := range []string{"3_money_4-noncebb4", "3_money_5-noncebb5", "3_money_6-noncebb6"} {
		redistest.Eventually(t, id+" comes", func() bool { return slices.Contains(r.ids("ledger.entry"), id) })
	}
	redistest.Eventually(t, "the gap was delivered", func() bool { return len(r.ids("webhook.gap")) > 0 })
}

func TestAReplayNeverSkipsWhatWaits(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	in.happen(t, 0, rooms(5, 1)...)
	future := time.Now().Add(time.Hour)
	for _, from := range []webhooks.Replay{
		{From: &future}, {After: map[string]string{"r0": "4-aaaaaaaa", "r1": "7-other", "money": "9-"}},
	} {
		testkit.Must(in.Replay(t.Context(), operator, game, w.ID, from))(t)
	}
	in.lead(t)
	r.want(t, 5)
	in.happen(t, 1, "other") // the first one of its feed
	r.want(t, 6)
}

func TestAnEventThatCannotBeReadIsToldByAGap(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, "a")
	r.want(t, 1)
	list := keys.Feed(keys.FreeShard(0), game)
	testkit.Check(t, in.db.Client.RPush(t.Context(), list, "2-aaaaaaaa|room.ready|1764264746123|b|2|4|7|9").Err())
	in.numbers[list]++
	in.happen(t, 0, "c")
	r.want(t, 3)
	if gaps := r.ids("webhook.gap"); !slices.Equal(gaps, []string{"3_r0_gap-2-aaaaaaaa"}) {
		t.Errorf("gaps: %v", gaps)
	}
}

func TestAnEventThatIsTooLongIsParkedAtOnce(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	in.lead(t)
	in.happen(t, 0, strings.Repeat("x", 64<<10), "b")
	r.want(t, 1)
	redistest.Eventually(t, "it is parked", func() bool { return in.get(t, w.ID).Parked == 1 })
	if got := in.get(t, w.ID); got.State != webhooks.OK || got.WaitingRooms != 0 {
		t.Errorf("%+v", got)
	}
}

// Whoever notes how many webhooks are active may be late or die: the leader notes it again.
func TestALeaderMendsTheCountOfActiveWebhooks(t *testing.T) {
	in := install(t)
	in.create(t, "http://127.0.0.1:9/")
	in.lead(t)
	redistest.Eventually(t, "the leader has noted it", func() bool {
		return in.noted.Load() > 1 && in.active.Load() == 1
	})
	in.active.Store(0)
	redistest.Eventually(t, "it is noted again", func() bool {
		in.pass(time.Minute)
		return in.active.Load() == 1
	})
}

// A leader whose fence is lower than one that has stored something stores nothing, and ends.
func TestALeaderWithAnOlderFenceEnds(t *testing.T) {
	in, r := install(t), receive(t, always(200))
	w := in.create(t, r.URL)
	state := keys.WebhookState(game, w.ID)
	testkit.Check(t, in.db.Client.HSet(t.Context(), state, "fence", 5).Err())
	ended := make(chan error, 1)
	go func() { ended <- in.Lead(t.Context(), 1) }()
	in.happen(t, 0, "a")
	redistest.Eventually(t, "it ends", func() bool { return len(ended) == 1 })
	testkit.Check(t, <-ended)
	if got := in.db.Client.HGet(t.Context(), state, "pos:r0").Val(); got != "0-0" {
		t.Errorf("it has stored the position %s", got)
	}
}
