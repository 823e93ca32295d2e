package rooms_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

// roomsOfAll are the rooms of several goroutines.
type roomsOfAll struct {
	mu  sync.Mutex
	ids []string
}

func (r *roomsOfAll) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.ids, id) { // a rematch may be somebody else's
		r.ids = append(r.ids, id)
	}
}

// pick returns one of the rooms, mostly a new one; "" without any.
func (r *roomsOfAll) pick(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return ""
	}
	return r.ids[max(0, len(r.ids)-1-n)]
}

// change makes a random change of a room, which the service may refuse.
func (r *roomsOfAll) change(t *testing.T, f *fixture, p principal.Caller, verb string, n int) {
	id, ctx := r.pick(n), t.Context()
	var result rooms.ChangeResult
	var err error
	switch verb {
	case "create":
		in := rooms.CreateInput{MaxPlayers: 3, AutoStart: n%2 == 0}
		if n > 1 {
			in = f.paidRoom("1", 3)
		}
		result, err = f.service.Create(ctx, p, in, noKey)
	case "join":
		result, err = f.service.Join(ctx, p, id, noKey)
	case "leave":
		result, err = f.service.Leave(ctx, p, id, noKey)
	case "ready":
		result, err = f.service.Ready(ctx, p, id, n > 0, noKey)
	case "start":
		result, err = f.service.Start(ctx, f.Server(), id, noKey)
	case "turn":
		result, err = f.service.SetTurn(ctx, f.Server(), rooms.TurnInput{
			RoomID: id, UserID: &p.UserID, Seconds: new(int64(60)),
		}, noKey)
	case "cancel":
		result, err = f.service.Cancel(ctx, f.Server(), id, noKey)
	case "rematch":
		result, err = f.service.Rematch(ctx, p, id, noKey)
	case "finish":
		var room rooms.Room
		if room, err = f.service.Get(ctx, f.Server(), id); err == nil {
			var placements []rooms.Placement
			for i, user := range room.ActivePlayers() {
				placements = append(placements, rooms.Placement{UserID: user, Place: i + 1})
			}
			result, err = f.service.Finish(ctx, f.Server(), id, placements, noKey)
		}
	}
	if err == nil && result.Room != nil {
		r.add(result.Room.RoomID)
	}
}

// TestAFeedIsTheUnionOfItsRooms changes rooms at once, with replies that are lost, and compares
// each feed with the lists of its rooms.
func TestAFeedIsTheUnionOfItsRooms(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		var losesReplies atomic.Bool
		redistest.LoseReplies(db, losesReplies.Load)
		old := flag.Lookup("rapid.checks").Value.String()
		if old == "100" { // the default: the command line sets no other number
			_ = flag.Set("rapid.checks", "12")
			defer func() { _ = flag.Set("rapid.checks", old) }()
		}
		compared := 0
		rapid.Check(t, func(rt *rapid.T) {
			f := newCase(t, db)
			f.Settings.Feed = true
			all := &roomsOfAll{}
			type step struct {
				verb string
				n    int
			}
			verbs := []string{
				"create", "create", "join", "join", "join", "leave", "ready", "start", "turn", "finish", "cancel", "rematch",
			}
			var steps [4][]step
			for i := range steps {
				steps[i] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
					return step{rapid.SampledFrom(verbs).Draw(t, "verb"), rapid.IntRange(0, 3).Draw(t, "n")}
				}), 5, 30).Draw(rt, "steps")
			}
			losesReplies.Store(rapid.Bool().Draw(rt, "lost replies"))
			var done sync.WaitGroup
			for _, of := range steps {
				p := f.newPlayer(1_000_000)
				done.Go(func() {
					for _, s := range of {
						all.change(t, f, p, s.verb, s.n)
					}
				})
			}
			done.Wait()
			losesReplies.Store(false)
			compared += f.requireUnion(rt)
		})
		if compared == 0 {
			t.Error("no event was compared")
		}
	})
}

// requireUnion requires that the feeds have the events of the game's rooms, and of no others, each
// once and in the order of its room, under numbers without a gap. It returns how many there are.
func (f *fixture) requireUnion(t *rapid.T) (compared int) {
	got := map[string][]string{}
	var roomIDs []string // also those whose creator got no reply
	for _, shard := range feed.Shards(f.GameID, shards) {
		entries, gap, _, err := feed.Read(f.t.Context(), f.db, shard, f.GameID, feed.Start, 10_000)
		testkit.Check(t, err)
		index := keys.RoomIndex(shard, f.GameID, "all")
		roomIDs = append(roomIDs, testkit.Must(f.db.Client.ZRange(f.t.Context(), index, 0, -1).Result())(t)...)
		if gap {
			t.Fatalf("the feed of %s does not begin with its first entry", shard)
		}
		for i, e := range entries {
			if at, _ := keys.RoomShard(e.ID); e.Number != int64(i+1) || e.Kind() == "" || at != shard {
				t.Fatalf("entry %d of the feed of %s is %+v", i+1, shard, e)
			}
			got[e.ID] = append(got[e.ID], fmt.Sprint(e.Type, " ", e.Seq))
		}
		compared += len(entries)
	}
	for _, id := range roomIDs {
		shard, _ := keys.RoomShard(id)
		var want []string
		for _, text := range testkit.Must(f.db.Client.LRange(f.t.Context(), keys.RoomEvents(shard, id), 0, -1).Result())(t) {
			if h, _ := events.ParseHeader(text); events.FeedKind(h.Type) != "" {
				want = append(want, fmt.Sprint(h.Type, " ", h.Seq))
			}
		}
		if !slices.Equal(got[id], want) {
			t.Fatalf("the feed has %v of room %s, want %v", got[id], id, want)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		t.Fatalf("the feeds have %v of other rooms", got)
	}
	return compared
}
