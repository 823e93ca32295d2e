package tournaments

import (
	"slices"
	"testing"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/testkit"
)

// listed returns the ids of the tournaments that a caller finds, a page of two after the other.
func (f *fixture) listed(caller principal.Caller) (ids []int64) {
	f.t.Helper()
	for after := int64(0); ; {
		page, next := testkit.Must2(f.List(f.t.Context(), caller, ListQuery{GameID: f.gameID, Limit: 2, After: after}))(f.t)
		for _, v := range page {
			ids = append(ids, v.ID)
		}
		if after = next; after == 0 {
			slices.Sort(ids)
			return ids
		}
	}
}

func TestPlayersAreNotShownUnlistedTournaments(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	var public, all []int64
	for i := range 7 {
		id := f.create(f.swiss(func(in *CreateInput) {
			if i%3 != 0 {
				in.Visibility = Unlisted
			}
		}))
		if all = append(all, id); i%3 == 0 {
			public = append(public, id)
		}
	}
	if got := f.listed(f.player(1)); !slices.Equal(got, public) {
		t.Errorf("a player finds %v; want %v", got, public)
	}
	for _, staff := range []principal.Caller{operator, {Role: principal.Server, GameID: f.gameID}} {
		if got := f.listed(staff); !slices.Equal(got, all) {
			t.Errorf("staff finds %v; want %v", got, all)
		}
	}
	testkit.Report(t, testkit.ErrorOf(f.Get(t.Context(), f.player(1), f.gameID, all[1])), "by its id a player gets")
}
