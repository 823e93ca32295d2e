package users_test

import (
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// listAll returns the ids of every page, and the number of pages.
func listAll(t *testing.T, s *users.Service, caller principal.Caller, q users.ListQuery) (ids []int64, pages int) {
	t.Helper()
	for {
		page, next := testkit.Must2(s.List(t.Context(), caller, q))(t)
		for _, u := range page {
			ids = append(ids, u.ID)
		}
		pages++
		if len(page) > q.Limit {
			t.Errorf("a page of %d has %d", q.Limit, len(page))
		}
		if q.Before = next; next == 0 {
			return ids, pages
		}
	}
}

func TestPlayersAreListedOnceNewestFirst(t *testing.T) {
	redistest.Each(t, func(t *testing.T, db *redisdb.DB) {
		s := users.New(db, users.Options{})
		if ids, _ := listAll(t, s, operator, users.ListQuery{Limit: 2}); ids != nil {
			t.Errorf("an empty installation has %v", ids)
		}
		for game := range int64(9) { // the games 1, 2, 3, in turns
			newPlayer(t, s, game%3+1)
		}
		gone := principal.Caller{Role: principal.Player, UserID: 4, GameID: 1}
		testkit.Check(t, s.Delete(t.Context(), gone))
		server := principal.Caller{Role: principal.Server, GameID: 2}
		for _, c := range []struct {
			caller principal.Caller
			game   int64
			want   []int64
		}{
			{operator, 0, []int64{9, 8, 7, 6, 5, 3, 2, 1}},
			{operator, 1, []int64{7, 1}},
			{server, 0, []int64{8, 5, 2}},
			{server, 2, []int64{8, 5, 2}},
			{operator, 4, nil},
		} {
			for limit := 1; limit <= 10; limit++ {
				ids, _ := listAll(t, s, c.caller, users.ListQuery{GameID: c.game, Limit: limit})
				if !slices.Equal(ids, c.want) {
					t.Errorf("%s of game %d, %d a page: %v; want %v", c.caller.Role, c.game, limit, ids, c.want)
				}
			}
		}
		for _, caller := range []principal.Caller{gone, {}, {Role: principal.Server, GameID: 1}} {
			_, _, err := s.List(t.Context(), caller, users.ListQuery{GameID: 2, Limit: 1})
			testkit.WantError(t, err, apierror.Forbidden, "%+v gets", caller)
		}
	})
}

// A page is bounded though the game that is asked for is rare.
func TestAListOfPlayersReadsABoundedNumber(t *testing.T) {
	s := users.New(redistest.Single(t), users.Options{})
	for range 1200 {
		newPlayer(t, s, 1)
	}
	ids, pages := listAll(t, s, operator, users.ListQuery{GameID: 2, Limit: 100})
	if len(ids) != 0 || pages != 3 {
		t.Errorf("%d players in %d pages", len(ids), pages)
	}
}
