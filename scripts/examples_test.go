package scripts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// example is a call to which a script must reply with a status.
type example struct {
	script  *scripts.Script
	name    string
	status  scripts.Status
	prepare func(f *fixture) call
}

var examples = slices.Concat(
	roomExamples, outboxExamples, stateExamples, moneyExamples, prizeExamples, limitExamples, presenceExamples,
	boardExamples, tourExamples, webhookExamples,
	otherExamples,
)

// hasReceipt reports whether a script stores the outcome of a call with a key.
func hasReceipt(s *scripts.Script) bool {
	c := call{script: s}
	return c.hasArg("fingerprint") && c.hasArg("ttl_ms")
}

func TestEveryStatusOfEveryScriptHasAnExample(t *testing.T) {
	for name, s := range scripts.All() {
		found := map[scripts.Status]bool{}
		if hasReceipt(s) { // see checkReceipt
			found[scripts.Replay], found["idempotency_key_reused"] = true, true
		}
		for _, e := range examples {
			if e.script == s {
				found[e.status] = true
			}
		}
		declared := slices.Sorted(slices.Values(s.Statuses))
		if reached := slices.Sorted(maps.Keys(found)); !slices.Equal(reached, declared) {
			t.Errorf("%s has examples of %v and declares %v", name, reached, declared)
		}
	}
}

// TestExamples runs every example, and checks that
//
//   - what is refused or stale changes nothing, but for the receipt of an error with a key;
//   - a call that is sent again changes nothing more and has the same outcome;
//   - another request with the same key is rejected;
//   - what changes is among the keys that were passed, and these share a hash tag;
//   - a room agrees with its seats, its events and the lists of rooms.
func TestExamples(t *testing.T) {
	t.Run("single", func(t *testing.T) {
		db := redistest.Single(t)
		runExamples(t, db, examples, checkWithoutKey)
		runExamples(t, db, examplesWithReceipt(), checkReceipt)
	})
	t.Run("embedded", func(t *testing.T) {
		db := openEmbedded(t)
		runExamples(t, db, examples, checkWithoutKey)
		runExamples(t, db, examplesWithReceipt(), checkReceipt)
	})
	// A Cluster rejects a call whose keys are not in one slot, and one that uses a key of another.
	t.Run("cluster", func(t *testing.T) {
		runExamples(t, redistest.Cluster(t), examples, func(t *testing.T, e example, c call) {
			c.want(e.status)
			if e.status == scripts.OK && hasReceipt(e.script) {
				c.keyed().run()
			}
		})
	})
}

// examplesWithReceipt returns the examples whose calls may have a key.
func examplesWithReceipt() []example {
	return slices.DeleteFunc(slices.Clone(examples), func(e example) bool { return !hasReceipt(e.script) })
}

func runExamples(t *testing.T, db *redisdb.DB, list []example, check func(t *testing.T, e example, c call)) {
	t.Helper()
	for _, e := range list {
		t.Run(e.script.Name+"/"+e.name, func(t *testing.T) {
			f := newFixture(t, db)
			c := e.prepare(f)
			check(t, e, c)
			if strings.HasPrefix(e.script.Name, "room_") {
				checkRooms(t, c.shard, f.id, c.snapshot())
			}
			f.dropAll(c.tag())
		})
	}
}

// dropAll removes the keys of a hash tag, so that reading those of others stays fast.
func (f *fixture) dropAll(tag string) {
	f.t.Helper()
	const drop = "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do redis.call('DEL', key) end"
	if err := f.db.Client.Eval(f.t.Context(), drop, []string{tag}, tag).Err(); err != nil && err.Error() != "redis: nil" {
		f.t.Fatalf("%v", err)
	}
}

// changesOnly compares two snapshots around a call.
func changesOnly(t *testing.T, c call, before, after redistest.Snapshot, allowed []string) {
	t.Helper()
	for _, key := range before.Changed(after) {
		if !slices.Contains(allowed, key) {
			t.Errorf("%s changed %s\n  was %v\n  is  %v", c.script.Name, key, before[key], after[key])
		}
	}
}

func checkWithoutKey(t *testing.T, e example, c call) {
	keyNames, _ := c.build()
	for _, key := range keyNames {
		if !strings.HasPrefix(key, c.tag()) {
			t.Errorf("%s has another hash tag than %s", key, keyNames[0])
		}
	}
	before := c.snapshot()
	first := c.want(e.status)
	after := c.snapshot()
	if e.status != scripts.OK {
		keyNames = nil
		if hasReceipt(e.script) && e.status != scripts.Stale && c.text("fingerprint") != "" {
			keyNames = []string{c.receipt()}
		}
	}
	changesOnly(t, c, before, after, keyNames)

	if slices.Contains(newEachTime, e.script) {
		return
	}
	again := c.run()
	if hasReceipt(e.script) {
		again, _ = idempotency.FirstReply(c.text("nonce"), again)
	}
	expected := []scripts.Status{first.Status, scripts.Replay}
	if slices.Contains(removals, e.script) && first.Status == scripts.OK {
		expected = append(expected, "asset_not_found", "tournament_not_found") // it is gone
	}
	if e.script == scripts.LedgerFold { // somebody has folded these entries, whoever it was
		expected = append(expected, scripts.Stale)
	}
	if !slices.Contains(expected, again.Status) {
		t.Errorf("sent again: %v; want %v", again, first)
	}
	if diff := after.Diff(c.snapshot()); diff != "" {
		t.Errorf("sent again, it changes\n%s", diff)
	}
}

// removals are the scripts that find nothing the second time.
var removals = []*scripts.Script{scripts.AssetRemove, scripts.TourRemove}

// newEachTime are the scripts that may make another change each time: a fencing token that was lost
// is as good as one that was used, a rate limit may count a permit twice, a family of refresh
// tokens lives from the last call that started it, as the lease of a node does, sessions end at the
// time of the last call, and a new player may be counted twice.
var newEachTime = []*scripts.Script{
	scripts.FencingTokenIssue, scripts.RateLimitTake, scripts.RefreshStart, scripts.UserEndSessions,
	scripts.SessionsEnd, scripts.PresenceRenew, scripts.GameCountPlayer,
}

func checkReceipt(t *testing.T, e example, c call) {
	c = c.keyed()
	before := c.snapshot()
	first := c.want(e.status)
	after := c.snapshot()
	if e.status == scripts.Stale {
		changesOnly(t, c, before, after, nil)
		return
	}
	if e.status != scripts.OK {
		changesOnly(t, c, before, after, []string{c.receipt()})
	}
	receipt, ok := after[c.receipt()]
	switch {
	case !ok:
		t.Fatal("no receipt")
	case receipt.TTL == 0 || receipt.TTL > time.Duration(c.number("ttl_ms"))*time.Millisecond:
		t.Errorf("the receipt stays for %v", receipt.TTL)
	case len(receipt.Text()) > 100:
		t.Errorf("the receipt has %d bytes: %s", len(receipt.Text()), receipt.Text())
	}

	// A shorter life than a new receipt has, to see that a replay does not touch it.
	const left = time.Hour
	testkit.Check(t, c.f.db.Client.PExpire(t.Context(), c.receipt(), left).Err())
	firstValues, _ := idempotency.FirstReply(c.text("nonce"), first)
	if e.script == scripts.RoomRematch && first.Status == scripts.OK && len(first.Values) == 0 {
		// Ok alone is the room that the caller named.
		firstValues.Values = []string{c.text("new_room_id")}
	}
	for name, resent := range map[string]call{
		"the same call":          c,
		"another call":           c.with(values{"nonce": "othernon"}),
		"another call next year": c.with(values{"nonce": "othernon", "ttl_ms": 1}),
	} {
		reply := resent.want(scripts.Replay)
		if again, _ := idempotency.FirstReply(c.text("nonce"), reply); !sameOutcome(again, firstValues) {
			t.Errorf("%s with the same key: %v; want %v", name, again, firstValues)
		}
		now := c.snapshot()
		if diff := after.Diff(now); diff != "" {
			t.Errorf("%s with the same key changes\n%s", name, diff)
		}
		if ttl := now[c.receipt()].TTL; ttl == 0 || ttl > left {
			t.Errorf("%s with the same key leaves the receipt a life of %v", name, ttl)
		}
	}
	for _, nonce := range []string{c.text("nonce"), "othernon"} {
		other := c.with(values{"nonce": nonce, "fingerprint": strings.Repeat("g", 22)})
		other.changesNothing("idempotency_key_reused")
	}
}

// sameOutcome compares outcomes. A script may return a status alone and store its nonce with it.
func sameOutcome(a, b redisdb.Reply) bool {
	return a.Status == b.Status && slices.Equal(a.Values, b.Values)
}
