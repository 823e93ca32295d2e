package handlers_test

import (
	"fmt"
	"testing"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// remember returns a function that puts keys back to what they are now, as a store does that lost
// its newest writes.
func (f *fixture) remember(names ...string) (goBack func()) {
	f.t.Helper()
	ctx, values := f.t.Context(), make([]string, len(names))
	for i, name := range names {
		value := testkit.Must(f.db.Client.Dump(ctx, name).Result())(f.t, "%s", name)
		values[i] = value
	}
	return func() {
		f.t.Helper()
		for i, name := range names {
			testkit.Check(f.t, f.db.Client.RestoreReplace(ctx, name, 0, values[i]).Err(), "%s", name)
		}
	}
}

// collect returns the next events by their types and reasons. They must be those that are wanted,
// in any order: topics have none among them.
func (s *testSocket) collect(want map[string]bool) map[string]received {
	s.t.Helper()
	got := map[string]received{}
	for len(got) < len(want) {
		e := s.nextEvent()
		name := e.Type
		if reason, ok := e.Data["reason"].(string); ok {
			name += " " + reason
		}
		if _, twice := got[name]; !want[name] || twice {
			s.t.Fatalf("got %s; want %v, of which there were %d", e.raw, want, len(got))
		}
		got[name] = e
	}
	return got
}

// TestAfterALossEveryClientGetsWhatTheStoreHas lets a store forget what clients have received
// already.
func TestAfterALossEveryClientGetsWhatTheStoreHas(t *testing.T) {
	eachStore(t, func(t *testing.T, f *fixture) {
		far := f.newNode()
		ann, bob := f.guest("Ann"), f.guest("Bob")
		room := f.createRoom(ann)
		sockets := []*testSocket{f.dialRealtime(ann), far.dialRealtime(ann)}
		bobs := far.dialRealtime(bob) // subscribed to no room
		for _, s := range sockets {
			s.subscribe(room, "")
		}
		shard, _ := keys.RoomShard(room)
		goBack := f.remember(keys.Room(shard, room), keys.RoomEvents(shard, room), keys.Wallet(f.game, ann.id),
			keys.WalletLines(f.game, ann.id), keys.Wallet(f.game, bob.id), keys.WalletLines(f.game, bob.id))
		f.credit(ann, "forgotten")
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
		for _, s := range append(sockets, bobs) {
			want := map[string]bool{"user.balance forgotten": true, "room.joined": true}
			if s == bobs {
				want = map[string]bool{"user.balance entry": true}
			}
			s.collect(want)
		}
		goBack()
		for _, node := range []*fixture{f, far} {
			node.deps.RealtimeHub.Resync()
		}
		balance := f.expect(200, "GET", "/api/v1/user-balance/token-balances", ann.token, "")
		for _, s := range sockets {
			got := s.collect(map[string]bool{"room.snapshot": true, "user.balance resync": true})
			snapshot, money := got["room.snapshot"], got["user.balance resync"]
			participants, _ := snapshot.data("room.participants").([]any)
			if snapshot.Seq != 1 || len(participants) != 1 {
				t.Errorf("the room is %s", snapshot.raw)
			}
			if money.Data["delta"] != 0. || money.Data["amount"] != balance.text("balances.0.amount") ||
				money.Data["amount"] != "9750" || money.Data["heldAmount"] != "250" {
				t.Errorf("the balance is %s; the wallet has %s", money.raw, balance.raw)
			}
		}
		got := bobs.collect(map[string]bool{"user.balance resync": true})["user.balance resync"]
		if got.Data["amount"] != "10000" {
			t.Errorf("bob, whose stake was forgotten, got %s", got.raw)
		}

		// All goes on from there, with nothing in between.
		f.expect(200, "POST", "/join", bob.token, roomBody(room))
		f.credit(ann, "again")
		f.dial(savePath, ann.token).expectOK("saved", "save", `{"slot":"main","state":{}}`)
		for _, s := range sockets {
			s.collect(map[string]bool{"user.balance again": true, "room.joined": true, "user.progress": true})
		}
	})
}

// A player whom the store knows no money of was told of none, so there is nothing to replace.
func TestAPlayerWithoutMoneyGetsNoFrameAfterALoss(t *testing.T) {
	f := newGameFixture(t)
	otherGame, _ := f.createOtherGame()
	eve := f.guestOf(otherGame, "Eve")
	s := f.dialRealtime(eve)
	s.expectOK("userAnew", "user.subscribe", `{"after":{}}`) // her events begin
	read := f.deps.RealtimeHub.Stats().Snapshots
	f.deps.RealtimeHub.Resync()
	redistest.Eventually(t, "her wallet was read", func() bool { return f.deps.RealtimeHub.Stats().Snapshots > read })
	f.expect(200, "POST", fmt.Sprintf("/api/v1/admin/users/%d/credit", eve.id), adminKey,
		`{"tokenId":"GOLD","amount":1,"reason":"found"}`, "Idempotency-Key", "found")
	if got := s.expectEvent("user.balance"); got.Data["reason"] != "found" {
		t.Errorf("got %s", got.raw)
	}
}
