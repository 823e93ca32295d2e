package ledger_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parlor-games/parlor/internal/money/ledger"
)

// apply replays entries "<ref>|<postings>" of GOLD.
func apply(entries ...string) *ledger.Replay {
	r := ledger.NewReplay()
	for _, e := range entries {
		r.Apply(ledger.Decode(r.Number+1, "1700000000000|nonce|GOLD|why|"+e))
	}
	return r
}

func TestStakesFollowARoomFromTheFirstEntryToThePayout(t *testing.T) {
	play := []string{
		"op|m:-30;w1:30", "op|m:-30;w2:30", "op|m:-30;w3:30",
		"a|w1:-10;e:10", "a|w2:-10;e:10", "b|w1:-5;e:5", "a|w3:-10;e:10",
		"a|e:-10;w3:10",           // leaves
		"a|e:-20;w2:18;h:2",       // the payout: player 1 gets nothing
		"b|e:-5;w1:5",             // cancelled
		"asset:7|w1:-3;h:3", "x|", // what is free has no postings
	}
	for n, want := range map[int]map[int64]ledger.Balances{
		3:  {},
		7:  {1: {"GOLD": 15}, 2: {"GOLD": 10}, 3: {"GOLD": 10}},
		8:  {1: {"GOLD": 15}, 2: {"GOLD": 10}},
		9:  {1: {"GOLD": 5}},
		10: {},
	} {
		r := apply(play[:n]...)
		if diff := cmp.Diff(want, r.Held()); diff != "" {
			t.Errorf("after %d entries, held (-want +got)\n%s", n, diff)
		}
		escrow := int64(0)
		for _, room := range r.Rooms {
			escrow += room.Escrow
		}
		if total := r.Totals()["GOLD"]["escrow"]; total != escrow {
			t.Errorf("after %d entries the rooms have %d and the total is %d", n, escrow, total)
		}
	}
	r := apply(play...)
	want := ledger.Totals{"GOLD": {"minted": 90, "wallets": 85, "escrow": 0, "house": 5}}
	if diff := cmp.Diff(want, r.Totals()); diff != "" {
		t.Errorf("totals (-want +got)\n%s", diff)
	}
	if len(r.Defects) > 0 || r.Number != int64(len(play)) {
		t.Errorf("%+v", r)
	}
	if len(r.Rooms) > 0 {
		t.Errorf("rooms that have ended are kept: %v", r.Rooms)
	}
}

func TestDefectsOfEntriesAreNoted(t *testing.T) {
	for why, c := range map[string]string{
		"a sum": "op|m:-1;w1:2", "no units": "op|w1:x", "no account": "op|:1", "no player": "op|w:0", "too many": "a|b|c|d",
	} {
		if r := apply(c); len(r.Defects) == 0 {
			t.Errorf("%s: nothing is noted", why)
		}
	}
	r := ledger.NewReplay()
	for _, number := range []int64{1, 3} {
		r.Apply(ledger.Decode(number, "1|n|GOLD|why|op|m:-1;w1:1"))
	}
	if len(r.Defects) != 1 || r.Number != 3 {
		t.Errorf("a gap: %+v", r)
	}
}

func TestAnEntryIsDecoded(t *testing.T) {
	e := ledger.Decode(7, "1700000000123|nonce|GOLD|a%7Cb|room%25|w12:-9007199254740991;e:9007199254740991")
	if e.Number != 7 || e.At.UnixMilli() != 1700000000123 || e.Code != "GOLD" || e.Reason != "a|b" || e.Ref != "room%" {
		t.Errorf("%+v", e)
	}
	if id, ok := e.Postings[0].UserID(); !ok || id != 12 || fmt.Sprint(e.Postings[1].Units) != "9007199254740991" {
		t.Errorf("%+v", e.Postings)
	}
}

func TestTotalsAreComparedInBothDirections(t *testing.T) {
	has := ledger.Totals{"GOLD": {"wallets": 5, "house": 1, "escrow": 0}, "GEMS": {"house": 2}}
	want := ledger.Totals{"GOLD": {"wallets": 4, "house": 1, "minted": 3}, "IRON": {"house": 0}}
	got := has.Compare(want)
	if diff := cmp.Diff([]ledger.Difference{
		{Code: "GEMS", Total: "house", Has: 2},
		{Code: "GOLD", Total: "minted", Wants: 3},
		{Code: "GOLD", Total: "wallets", Has: 5, Wants: 4},
	}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestASumOverGamesStopsAtTheLargestInteger(t *testing.T) {
	for _, c := range []struct{ a, b, want int64 }{
		{1, 2, 3},
		{-1, 1, 0},
		{math.MaxInt64, -1, math.MaxInt64 - 1},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64},
		{math.MinInt64, math.MinInt64, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -1},
	} {
		if got := ledger.AddBounded(c.a, c.b); got != c.want {
			t.Errorf("%d + %d is %d; want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestACreditWithTheReasonOfARoomIsOfNoRoom(t *testing.T) {
	for text, want := range map[string]bool{
		"1764264746123|00abc123|GOLD|entry|room|w7:-250;e:+250":  true,
		"1764264746123|00abc123|GOLD|refund|room|e:-250;w7:+250": true,
		"1764264746123|00abc123|GOLD|refund|op|m:-250;w7:+250":   false,
		"1764264746123|00abc123|GOLD|purchase|a|w7:-250;h:+250":  false,
	} {
		if entry := ledger.Decode(1, text); entry.IsOfARoom() != want || entry.Postings[0].Invalid != "" {
			t.Errorf("%s: %v, want %v: %+v", text, entry.IsOfARoom(), want, entry)
		}
	}
}
