package rooms_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"github.com/parlor-games/parlor/tests/testkit"
	"pgregory.net/rapid"
)

// crash is where a node dies when it applies a room.
type crash int

const (
	noCrash crash = iota
	beforeItIsApplied
	beforeItIsAcknowledged
)

// newNode returns a node that adds wins to leaderboards and dies where next says.
func (f *fixture) newNode(next func() crash) *rooms.Service {
	boards := leaderboards.New(f.db, f, f, leaderboards.Options{})
	node := f.newService()
	node.SetBoardsConsumer(func(ctx context.Context, e rooms.Ended) error {
		if e.GameID != f.GameID || e.Status != rooms.Finished {
			return nil
		}
		at := next()
		if at == beforeItIsApplied {
			return errors.New("the node dies before it has applied the room")
		}
		result := leaderboards.RoomResult{GameID: e.GameID, RoomID: e.RoomID, EndedAt: e.EndedAt}
		for _, p := range e.Places {
			result.Players = append(result.Players, leaderboards.RoomPlayer{UserID: p.UserID, Place: p.Place})
		}
		if err := boards.AddRoomResult(ctx, result); err != nil {
			return err
		}
		if at == beforeItIsAcknowledged {
			return errors.New("the node dies before it has acknowledged the room")
		}
		return nil
	})
	return node
}

// Nodes die before they have applied a room and before they have acknowledged it, and the sweep
// applies a room at the same time as the node that ended it: every room counts once.
func TestWinsAreExactHoweverNodesDie(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		rapid.Check(t, func(rt *rapid.T) {
			f := newCase(t, db)
			f.Settings.Boards = []games.BoardFeed{{Board: "wins", From: games.FromWin}}
			boards := leaderboards.New(db, f, f, leaderboards.Options{})
			testkit.Must(boards.Create(t.Context(), f.Server(), f.GameID, leaderboards.Definition{
				Board: "wins", Name: "Wins", Operator: leaderboards.Sum, Writers: leaderboards.Writers{leaderboards.WriterRooms},
				Shards: rapid.SampledFrom([]int{1, 8}).Draw(rt, "shards"),
			}))(rt)
			deaths := rapid.SliceOfN(rapid.IntRange(0, 2), 12, 12).Draw(rt, "crashes of the node that ends rooms")
			var applied atomic.Int64
			f.service = f.newNode(func() crash { return crash(deaths[applied.Add(1)%int64(len(deaths))]) })
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for range 2 {
				running.Go(func() { f.service.ApplyEnded(ctx) })
			}
			a, b := f.newPlayer(0), f.newPlayer(0)
			won := map[int64]int64{}
			play := func() {
				room := must(t)(f.service.Create(t.Context(), a, rooms.CreateInput{MaxPlayers: 2}, noKey))
				must(t)(f.service.Join(t.Context(), b, room.RoomID, noKey))
				must(t)(f.service.Start(t.Context(), a, room.RoomID, noKey))
				first, second := a, b
				if rapid.Bool().Draw(rt, "the second one wins") {
					first, second = b, a
				}
				must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(first, second), noKey))
				won[first.UserID]++
			}
			total := 0
			for range rapid.IntRange(1, 12).Draw(rt, "steps") {
				if rapid.Bool().Draw(rt, "play") {
					play()
					total++
					continue
				}
				at := crash(rapid.IntRange(0, 2).Draw(rt, "crash"))
				f.sweep(f.newNode(func() crash { return at }))
			}
			stop()
			running.Wait()
			f.sweep(f.newNode(func() crash { return noCrash }))
			for _, p := range []principal.Caller{a, b} {
				entry, err := boards.GetEntry(t.Context(), f.Server(), f.GameID, "wins", leaderboards.Scope{}, p.UserID)
				if total == 0 {
					continue
				}
				if err != nil || entry.Score.Units != won[p.UserID] || entry.Submissions != int64(total) {
					rt.Fatalf("player %d has %d wins in %d rooms, %v; want %d in %d", p.UserID, entry.Score.Units,
						entry.Submissions, err, won[p.UserID], total)
				}
			}
		})
	})
}

// A room that ends feeds its leaderboard while nodes run, within moments.
func TestALeaderboardHasARoomThatEndedMomentsAgo(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.Settings.Boards = []games.BoardFeed{{Board: "wins", From: games.FromWin}}
		boards := leaderboards.New(db, f, f, leaderboards.Options{})
		testkit.Must(boards.Create(t.Context(), f.Server(), f.GameID, leaderboards.Definition{
			Board: "wins", Name: "Wins", Writers: leaderboards.Writers{leaderboards.WriterRooms},
		}))(t)
		f.service = f.newNode(func() crash { return noCrash })
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- f.service.Run(ctx) }()
		room, a, b := f.startGame(t, rooms.CreateInput{MaxPlayers: 2})
		ended := time.Now()
		must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, firstOf(a, b), noKey))
		waitUntil(t, func() bool {
			_, err := boards.GetEntry(t.Context(), f.Server(), f.GameID, "wins", leaderboards.Scope{}, b.UserID)
			return err == nil
		})
		t.Logf("after %v", time.Since(ended))
		stop()
		testkit.Report(t, <-stopped)
	})
}
