package realtime

import (
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
)

// A snapshot is taken once for all subscribers, so taking it proves nothing about the right of one
// of them to see it.
func TestASnapshotForALostPositionNeedsAuthorization(t *testing.T) {
	db := redistest.Single(t)
	topic := "{r1}:room:revoked:events"
	n := startNode(t, db, Options{})
	var revoked atomic.Bool
	n.authorize = func(user int64) error {
		if user == 2 && revoked.Load() {
			return apierror.RoomNotFound
		}
		return nil
	}
	allowed, refused := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
	for _, c := range []*testClient{allowed, refused} {
		c.subscribe(topic, "")
	}
	for range 3 {
		emit(t, db, topic, "x")
		allowed.next()
		refused.next()
	}
	revoked.Store(true)
	forkHistory(t, db, topic, 1)
	pos := emit(t, db, topic, "y")
	if e := allowed.next(); e.Type != "room.snapshot" || e.Position != pos {
		t.Errorf("the authorized client got %+v, want a snapshot at %s", e, pos)
	}
	if code := refused.waitCloseCode(); code != CloseTooSlow {
		t.Errorf("the client without authorization was closed with %d (%v), want %d", code, refused.err, CloseTooSlow)
	}
	select {
	case e := <-refused.in:
		t.Errorf("the client without authorization got %+v", e)
	default:
	}
}

func TestASubscriptionNeedsAuthorization(t *testing.T) {
	n := startNode(t, redistest.Single(t), Options{})
	n.authorize = func(int64) error { return apierror.RoomNotFound }
	c := dial(t, n, "user=1").listen()
	c.next()
	c.send(request{ID: "s", Type: "sub", Topic: "{r1}:room:secret:events"})
	if e := c.next(); e.ReplyTo != "s" || e.OK {
		t.Errorf("got %+v, want an error", e)
	}
	if n.firstClient(t).IsSubscribed("{r1}:room:secret:events") {
		t.Error("the client is subscribed")
	}
}

func TestEventsWaitForTheReauthorizationBeforeThem(t *testing.T) {
	for name, emitLeft := range map[string]func(*testNode, string){
		"from the channel": func(n *testNode, topic string) { emitType(t, n.db, topic, "room.left", "x") },
		"from the list":    func(n *testNode, topic string) { emitWithoutPublish(t, n.db, topic, "room.left") },
	} {
		t.Run(name, func(t *testing.T) {
			db := redistest.Single(t)
			topic := "{r1}:room:left:events"
			n := startNode(t, db, Options{})
			var calls atomic.Int64
			n.authorize = func(user int64) error {
				switch user {
				case 1: // allowed, but Redis cannot be reached at first
					if calls.Add(1) == 2 {
						return apierror.StoreUnavailable
					}
				case 2:
					if n.clientOf(2).IsSubscribed(topic) {
						return apierror.RoomNotFound
					}
				}
				return nil
			}
			member, former := dial(t, n, "user=1").listen(), dial(t, n, "user=2").listen()
			for _, c := range []*testClient{member, former} {
				c.subscribe(topic, "")
			}
			emit(t, db, topic, "first")
			emitLeft(n, topic)
			emit(t, db, topic, "last")
			for want := range uint64(3) {
				if e := member.next(); e.Seq != want+1 {
					t.Fatalf("the member got %+v, want seq %d", e, want+1)
				}
			}
			if calls.Load() != 3 {
				t.Errorf("the member was authorized %d times, want 3: to subscribe, and twice after room.left", calls.Load())
			}
			for want := range uint64(2) {
				if e := former.next(); e.Seq != want+1 {
					t.Fatalf("the former member got %+v, want seq %d", e, want+1)
				}
			}
			waitUntil(t, "the subscription has ended", func() bool { return !n.clientOf(2).IsSubscribed(topic) })
			former.send(request{ID: "e"})
			if e := former.next(); e.ReplyTo != "e" {
				t.Errorf("the former member got %+v after room.left", e)
			}
		})
	}
}
