package tournaments

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/feed"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/tests/testkit"
)

// fed returns the events of a feed by the room or tournament of each.
func (f *fixture) fed(shard keys.Shard) map[string][]string {
	f.t.Helper()
	entries, _, _, err := feed.Read(f.t.Context(), f.db, shard, f.gameID, "", 10_000)
	testkit.Check(f.t, err)
	found := map[string][]string{}
	for i, e := range entries {
		if e.Number != int64(i+1) {
			f.t.Fatalf("entry %d has the number %d", i+1, e.Number)
		}
		found[e.ID] = append(found[e.ID], fmt.Sprint(e.Type, " ", e.Seq))
	}
	return found
}

// feedable returns the events of a list, of the kinds that feeds have.
func (f *fixture) feedable(key string) (found []string) {
	f.t.Helper()
	for _, text := range testkit.Must(f.db.Client.LRange(f.t.Context(), key, 0, -1).Result())(f.t) {
		if h, _ := events.ParseHeader(text); events.FeedKind(h.Type) != "" {
			found = append(found, fmt.Sprint(h.Type, " ", h.Seq))
		}
	}
	return found
}

// A tournament and its matches feed, or do not, as its game was set when it was made.
func TestATournamentFeedsTheServerOfItsGame(t *testing.T) {
	onBothStores(t, func(t *testing.T, f *fixture) {
		for _, hasFeed := range []bool{true, false} {
			f.people.Settings.Feed = hasFeed
			id := f.create(f.swiss(nil))
			f.people.Settings.Feed = !hasFeed
			f.store.feeding.Purge() // as on another node
			f.enter(id, 1, 2)
			testkit.Must(f.Start(t.Context(), operator, f.gameID, id, idempotency.Receipt{}))(t)
			f.lead()
			m := f.match(id, 1)
			f.win(m, 2)
			f.lead()
			if v := f.get(id); v.Status != Finished {
				t.Fatalf("%+v", v)
			}
			shard, _ := keys.RoomShard(*m.RoomID)
			ofTour, ofRoom := f.fed(keys.EconomyShard(f.gameID))[fmt.Sprint(id)], f.fed(shard)[*m.RoomID]
			wantTour, wantRoom := f.feedable(keys.TourEvents(f.gameID, id)), f.feedable(keys.RoomEvents(shard, *m.RoomID))
			if len(wantTour) < 7 || len(wantRoom) < 5 {
				t.Fatalf("%v, %v", wantTour, wantRoom)
			}
			if !hasFeed {
				wantTour, wantRoom = nil, nil
			}
			if !slices.Equal(ofTour, wantTour) || !slices.Equal(ofRoom, wantRoom) {
				t.Errorf("with a feed %v: the feed has %v and %v, want %v and %v", hasFeed, ofTour, ofRoom, wantTour, wantRoom)
			}
		}
	})
}
