package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// turnTime is how long every turn lasts in these tests.
const turnTime = time.Second

// TestATurnThatIsDueWhileThePrimaryDiesEndsOnceAtItsReturn kills the primary of rooms in which one
// turn follows the other, so that some end while there is no primary. A failover may lose the turns
// that ended last: then they end again in the history that is left, and once in that.
func TestATurnThatIsDueWhileThePrimaryDiesEndsOnceAtItsReturn(t *testing.T) {
	t.Parallel()
	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		servers := startSentinels(t, deliveryStore)
		killUnderTurns(t, servers.url(), func(int, string) *redistest.Server {
			servers.wait()
			return testkit.Must(servers.primary())(t)
		})
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		url, servers := startReplicatedCluster(t, deliveryStore)
		db := openStoreOf(t, url)
		killUnderTurns(t, url, func(round int, room string) *redistest.Server {
			waitForCluster(t, servers)
			cluster := db.Client.(*redis.ClusterClient)
			cluster.ReloadState(t.Context())
			if round%2 == 1 { // by turns that of the rooms, and that of the lock of whoever ends turns
				room = keys.Lock("turns")
			}
			return primaryOf(t, cluster, room, servers)
		})
	})
}

// killUnderTurns kills the primaries that next returns, given the round and a key of the rooms.
func killUnderTurns(t *testing.T, url string, next func(round int, room string) *redistest.Server) {
	t.Helper()
	in := &installation{t: t, url: url, settings: []string{"PARLOR_RATE_LIMITS=off", "PARLOR_ACCESS_TTL=1h"}}
	for range 2 {
		in.nodes = append(in.nodes, in.startNode())
	}
	db := openStoreOf(t, url)
	rooms := in.openFollowedRooms(pick(3, 20))
	for _, room := range rooms {
		host := room.sitters[0]
		in.nodes[0].Must(t, 200, "POST", "/api/v1/game-session/start", host.token, map[string]any{"roomId": room.id})
		in.nodes[0].Must(t, 200, "POST", "/api/v1/game-session/turn", host.token, map[string]any{
			"roomId": room.id, "userId": host.id, "seconds": int(turnTime.Seconds()),
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var actors sync.WaitGroup
	actors.Go(func() { in.keepActing(ctx, rooms) })
	defer func() { cancel(); actors.Wait() }()
	var outages []outage
	for round := range pick(1, 10) {
		primary := next(round, roomEvents(rooms[0].id))
		waitForTurns(t, db, rooms, 2)
		o := outage{from: time.Now()}
		primary.Kill()
		redistest.Eventually(t, "every key can be written again", func() bool {
			for _, key := range []string{roomEvents(rooms[0].id), keys.Lock("turns")} {
				probe := "{" + strings.Trim(key[:strings.Index(key, "}")], "{") + "}:probe"
				if db.Client.Set(t.Context(), probe, round, 0).Err() != nil {
					return false
				}
			}
			return true
		})
		o.to = time.Now()
		outages = append(outages, o)
		waitForTurns(t, db, rooms, 2)
		testkit.Check(t, primary.Restart())
	}
	// Within which a turn ends, after its deadline or the store's return. The short form runs beside
	// other tests, which may take the processors for longer.
	turnLimit := pick(3*time.Second, time.Second)
	turns, during, latest := 0, 0, time.Duration(0)
	for _, room := range rooms {
		list := readTurns(t, db, room.id)
		for n := 1; n < len(list); n++ {
			due := list[n-1].at.Add(turnTime)
			from := due // when the turn could end first
			for _, o := range outages {
				if due.After(o.from.Add(-time.Second)) && due.Before(o.to) && list[n].at.After(o.from) {
					from = o.to
					during++
				}
			}
			switch late := list[n].at.Sub(from); {
			case list[n].at.Before(due):
				t.Errorf("a turn ended at %v, before its deadline %v", list[n].at, due)
			case list[n].user == list[n-1].user:
				t.Errorf("after a turn of player %d came one of the same player", list[n].user)
			case late > turnLimit:
				t.Errorf("a turn ended %v after its deadline, or after the store's return", late)
			default:
				latest = max(latest, late)
			}
			turns++
		}
	}
	if during == 0 {
		t.Error("no turn was due while there was no primary")
	}
	if t.Failed() {
		t.Logf("outages %v", outages)
		for _, n := range in.nodes {
			for line := range strings.Lines(n.Log()) {
				if strings.Contains(line, "kind=turns") {
					t.Log(line)
				}
			}
		}
	}
	var longest time.Duration
	for _, o := range outages {
		longest = max(longest, o.to.Sub(o.from))
	}
	report(t, "%d primaries killed, %d turns in %d rooms, %d of them due while the store was away, for %.1f s at most; "+
		"each ended once, %.2f s after its deadline or the store's return at the latest", len(outages), turns, len(rooms),
		during, longest.Seconds(), latest.Seconds())
}

// outage is a time without a primary, by the clock of this machine, which is that of the store.
type outage struct{ from, to time.Time }

// turn is a player's turn, from the time when it began.
type turn struct {
	user int64
	at   time.Time
}

func roomEvents(room string) string {
	shard, _ := keys.RoomShard(room)
	return keys.RoomEvents(shard, room)
}

// readTurns returns the turns in the list of a room, oldest first.
func readTurns(t *testing.T, db *redisdb.DB, room string) []turn {
	t.Helper()
	return testkit.Must(tryTurns(t, db, room))(t)
}

func tryTurns(t *testing.T, db *redisdb.DB, room string) (list []turn, err error) {
	entries, err := db.Client.LRange(t.Context(), roomEvents(room), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if h, ok := events.ParseHeader(entry); !ok || h.Type != events.RoomTurn.Name {
			continue
		}
		// <position>|room.turn|<ms>|<version>|<user>|<deadline>|<reason>
		values := strings.Split(entry, "|")
		ms, msErr := strconv.ParseInt(values[2], 10, 64)
		user, userErr := strconv.ParseInt(values[4], 10, 64)
		if msErr != nil || userErr != nil {
			return nil, fmt.Errorf("the entry of a turn is %s", entry)
		}
		list = append(list, turn{user, time.UnixMilli(ms)})
	}
	return list, nil
}

// keepActing has somebody do something in every room about once a second until ctx ends, where the
// store is there: turns end by themselves where nobody does anything else.
func (in *installation) keepActing(ctx context.Context, rooms []*followedRoom) {
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; {
		for _, room := range rooms {
			for i, player := range room.sitters { // one of them is the host, who passes the room on
				_, _ = in.nodes[0].Do(ctx, "POST", "/api/v1/game-session/transfer-host", player.token, map[string]any{
					"roomId": room.id, "userId": room.sitters[1-i].id,
				})
			}
		}
		select {
		case <-ctx.Done():
			tick.Stop()
		case <-tick.C:
		}
	}
}

// waitForTurns waits until in every room so many turns more have begun.
func waitForTurns(t *testing.T, db *redisdb.DB, rooms []*followedRoom, more int) {
	t.Helper()
	begun := time.Now()
	redistest.Eventually(t, "turns go on", func() bool {
		return !slices.ContainsFunc(rooms, func(r *followedRoom) bool {
			list, _ := tryTurns(t, db, r.id)
			return len(list) < more || list[len(list)-more].at.Before(begun)
		})
	})
}
