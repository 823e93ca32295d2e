package leaderboards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
	"github.com/redis/go-redis/v9"
)

// sweepGame does what is to be done on the boards of a game, whenever the leader looked at them
// last.
func (s *Service) sweepGame(ctx context.Context, gameID int64) (isBusy bool, err error) {
	s.sweeps.mu.Lock()
	clear(s.sweeps.games)
	s.sweeps.mu.Unlock()
	unfinished, err := s.sweepGames(ctx, 1, []int64{gameID})
	return len(unfinished) > 0, err
}

// countReads counts the boards that are read.
func countReads(db *redisdb.DB) *atomic.Int64 {
	var reads atomic.Int64
	redistest.ObserveCommands(db, func(commands []redis.Cmder) {
		for _, c := range commands {
			if name := c.Name(); name == "hgetall" {
				reads.Add(1)
			}
		}
	})
	return &reads
}

// storeBoards stores copies of a board of a game, as a release before would have: nothing says when
// they are due.
func (f *fixture) storeBoards(t *testing.T, count int) {
	t.Helper()
	stored := f.db.Client.HGetAll(t.Context(), keys.Board(f.gameID, "top")).Val()
	testkit.Must(f.db.Client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range count {
			key := fmt.Sprintf("copy-%d", i)
			p.HSet(t.Context(), keys.Board(f.gameID, key), stored)
			p.SAdd(t.Context(), keys.Boards(f.gameID), key)
		}
		return nil
	}))(t)
}

// What is due decides what the leader reads, not how many boards there are.
func TestTheLeaderReadsWhatIsDue(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	f.create(Definition{})
	f.storeBoards(t, 2_500)
	for range 3 { // each looks at 1,000 boards
		f.sweeps.games = map[int64]*gameSweep{f.gameID: {lookFrom: lookedUntil(f)}}
		testkit.Must(f.sweepGames(t.Context(), 1, []int64{f.gameID}))(t)
	}
	if listed := db.Client.ZCard(t.Context(), keys.BoardsDue(f.gameID)).Val(); listed != 2_501 {
		t.Errorf("it knows when %d boards are due; want all", listed)
	}
	reads := countReads(db)
	for range 5 {
		testkit.Must(f.sweepGames(t.Context(), 1, []int64{f.gameID}))(t)
	}
	if n := reads.Load(); n > 10 {
		t.Errorf("it reads %d boards of which none is due", n)
	}
}

// lookedUntil returns the board at which the leader looked last.
func lookedUntil(f *fixture) string {
	if memory := f.sweeps.games[f.gameID]; memory != nil {
		return memory.lookFrom
	}
	return ""
}

// A game with many boards that are due, and one with a season that is over, take turns.
func TestAGameWithManyBoardsHoldsUpNoOther(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		busy, other := newFixture(t, db), newFixture(t, db)
		busy.create(Definition{})
		busy.storeBoards(t, 500)
		list := make([]dueBoard, 500)
		for i := range list {
			list[i] = dueBoard{fmt.Sprintf("copy-%d", i), 1}
		}
		testkit.Check(t, busy.store.addDue(t.Context(), busy.gameID, list))
		other.create(Definition{})
		testkit.Must(other.EndSeason(t.Context(), other.server(), other.gameID, "top", 1))(t)
		var reads, readsBefore atomic.Int64
		season := keys.BoardSeason(keys.NewBoardShard(other.gameID, "top", 0), 1)
		redistest.ObserveCommands(db, func(commands []redis.Cmder) {
			for _, c := range commands {
				if reads.Add(1); strings.Contains(fmt.Sprint(c.Args()...), season) {
					readsBefore.CompareAndSwap(0, reads.Load())
				}
			}
		})
		testkit.Must(busy.sweepGames(t.Context(), 1, []int64{busy.gameID, other.gameID}))(t)
		b, err := other.read(t.Context(), other.gameID, "top")
		if err != nil || !b.seasons[0].isSealed {
			t.Errorf("the season of the other game is not sealed: %v", err)
		}
		if n := readsBefore.Load(); n > 900 { // a look at 501 boards and a turn, of more than 3,000
			t.Errorf("%d commands were sent before", n)
		}
	})
}

// A board that cannot be kept is tried once a minute, holds up no other, and is logged once.
func TestABoardThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	db := redistest.Single(t)
	f := newFixture(t, db)
	f.create(Definition{})
	testkit.Must(f.EndSeason(t.Context(), f.server(), f.gameID, "top", 1))(t)
	var list []dueBoard
	for i := range 2 * boardsInTurn {
		key := fmt.Sprintf("bad-%d", i)
		list = append(list, dueBoard{key, 1})
		testkit.Check(t, db.Client.SAdd(t.Context(), keys.Boards(f.gameID), key).Err())
	}
	testkit.Check(t, f.store.addDue(t.Context(), f.gameID, list))
	for range 2 {
		testkit.Must(f.sweepGames(t.Context(), 1, []int64{f.gameID}))(t)
	}
	b, err := f.read(t.Context(), f.gameID, "top")
	if err != nil || !b.seasons[0].isSealed {
		t.Errorf("the season is not sealed: %v", err)
	}
	first, _, err := f.store.firstDue(t.Context(), f.gameID)
	if now, clockErr := f.store.now(t.Context()); first < now || err != nil || clockErr != nil {
		t.Errorf("a board is due at %d, at %d, %v, %v", first, now, err, clockErr)
	}
}

func TestAGameHasAsManyBoardsAsItMay(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		f := newFixture(t, db)
		f.people.Settings.Quotas = games.Quotas{Boards: 3}
		var made, refused atomic.Int64
		var group sync.WaitGroup
		for i := range 10 {
			node := New(db, f.people, f.people, Options{})
			group.Go(func() {
				_, err := node.Create(t.Context(), f.server(), f.gameID, Definition{Board: fmt.Sprint("b", i), Name: "B"})
				switch apiErr, _ := apierror.As(err); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, apierror.LimitReached) && apiErr.ExtraMembers["limit"] == "boards" &&
					apiErr.ExtraMembers["max"] == int64(3):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if made.Load() != 3 || refused.Load() != 7 {
			t.Errorf("%d boards are made and %d refused of 10 at once; want 3", made.Load(), refused.Load())
		}
		testkit.Report(t, f.CreateForTournament(t.Context(), f.gameID, Definition{Board: TournamentBoard(1), Name: "T"}),
			"the board of a tournament")
		page, _, err := f.List(t.Context(), f.server(), f.gameID, "", 10)
		if err != nil || len(page) != 4 {
			t.Fatalf("%d boards, %v", len(page), err)
		}
		testkit.Check(t, f.Delete(t.Context(), f.server(), f.gameID, page[0].Board))
		testkit.Must(f.sweepGame(t.Context(), f.gameID))(t)
		if _, err := f.Create(t.Context(), f.server(), f.gameID, Definition{Board: "another", Name: "A"}); err != nil {
			t.Errorf("after one was deleted: %v", err)
		}
	})
}
