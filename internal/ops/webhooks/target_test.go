package webhooks

import (
	"testing"
	"time"
)

func newTestTarget(st state) *target {
	return newTarget(3, "wh_a", stored{definition: definition{Active: true}}, signer{}, st, time.Now())
}

// What a feed may trim is what the store knows to be delivered: a leader that dies before a commit
// is followed by one that begins with the former positions.
func TestWhatIsNotStoredIsKept(t *testing.T) {
	tg := newTestTarget(state{positions: map[string]string{"r0": "0-0"}})
	d := &dispatcher{targets: map[targetKey]*target{{3, "wh_a"}: tg}}
	tg.add(tg.feeds["r0"], "1-aaaaaaaa", "room", message{}, true, time.Now())
	tg.land(tg.next(time.Now()), outcome{status: 200}, time.Now())
	if tg.feeds["r0"].stored != "1-aaaaaaaa" {
		t.Fatal("it was not delivered")
	}
	numbers, isKnown := d.undelivered(3, map[string]stored{"wh_a": tg.stored})
	if !isKnown || numbers["r0"] != 0 {
		t.Errorf("the feed need not keep what follows %d", numbers["r0"])
	}
}

// Staff has put a position before the place of a room that is behind: the next leader begins there.
func TestAReplayGoesBackBeforeTheRoomsThatAreBehind(t *testing.T) {
	tg := newTestTarget(state{
		positions: map[string]string{"r0": "5-aaaaaaaa"},
		behind:    map[string]place{"room": {feed: "r0", after: "9-aaaaaaaa", tries: 1, due: time.Now().Add(time.Hour)}},
	})
	for _, position := range []string{"6-aaaaaaaa", "7-aaaaaaaa"} {
		tg.add(tg.feeds["r0"], position, "room", message{}, true, time.Now())
	}
	if at := tg.takeProgress(1, time.Now()).places["room"]; at == nil || at.after != "5-aaaaaaaa" {
		t.Errorf("the room goes on at %v", at)
	}
}

func TestATargetThatWasSlowIsSlowForAWhile(t *testing.T) {
	tg, now := newTestTarget(state{}), time.Now()
	for _, step := range []struct {
		passes, took time.Duration
		isSlow       bool
		atOnce       int
	}{
		{0, 0, false, maxOfTarget},
		{0, slowAfter, true, maxOfTarget},
		{time.Second, time.Millisecond, true, maxOfTarget},
		{slowFor - 2*time.Second, time.Millisecond, true, maxOfTarget},
		{time.Second, slowAfter, true, maxOfTarget},
		{slowFor, time.Millisecond, false, maxOfTarget},
	} {
		if now = now.Add(step.passes); step.passes == slowFor && tg.atOnce(now) != 1 {
			t.Errorf("%d requests before it has shown that it is fast", tg.atOnce(now))
		}
		tg.notePace(step.took, now)
		if tg.isSlow(now) != step.isSlow || tg.atOnce(now) != step.atOnce {
			t.Errorf("%+v: it is slow: %v, %d at once", step, tg.isSlow(now), tg.atOnce(now))
		}
	}
}

func TestTargetsReadLessWhileMuchWaits(t *testing.T) {
	few, many := &target{pending: maxPending}, make([]*target, 10)
	for i := range many {
		many[i] = few
	}
	if pendingLimit(many[:9]) != maxPending || pendingLimit(many) != fewPending {
		t.Error("events in memory have no bound")
	}
}

// A room that fails waits for its time, each time longer, and goes on behind what was delivered.
func TestARoomWaitsForItsTimeAndGoesOnBehindWhatWasDelivered(t *testing.T) {
	tg, now := newTestTarget(state{positions: map[string]string{"r0": "0-0"}}), time.Now()
	for _, position := range []string{"1-aaaaaaaa", "2-aaaaaaaa"} {
		tg.add(tg.feeds["r0"], position, "room", message{}, true, now)
	}
	for _, delay := range retryDelays[:3] {
		tg.land(tg.next(now), outcome{status: 500, err: errTimeout}, now)
		tg.wakeDue(now.Add(delay - delay/10 - time.Second))
		if tg.next(now) != nil {
			t.Fatalf("it is sent again before %v", delay)
		}
		now = now.Add(delay + delay/10)
		tg.wakeDue(now)
	}
	tg.land(tg.next(now), outcome{status: 200}, now)
	if e := tg.next(now); e == nil || e.position != "2-aaaaaaaa" {
		t.Fatalf("the next event is %v", e)
	}
	tg.takeProgress(1, now)
	if at := tg.rooms["room"].place.after; at != "1-aaaaaaaa" {
		t.Errorf("the room goes on behind %s", at)
	}
}
