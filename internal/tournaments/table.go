package tournaments

import (
	"context"

	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// standingsTable is the standings of a tournament with matches. All readers share it.
type standingsTable struct {
	results []*result
	byUser  map[int64]*result
}

// table returns the standings of a tournament with matches as it was read; empty ones before the
// first round, and of a score tournament.
func (s *Service) table(ctx context.Context, t *tour) (*standingsTable, error) {
	if !t.definition.Format.HasMatches() || t.round == 0 {
		return &standingsTable{}, nil
	}
	key := tableID{t.gameID, t.id, t.version}
	if table, ok := s.tables.Get(key); ok {
		return table, nil
	}
	f, err := s.readField(ctx, t)
	if err != nil {
		return nil, err
	}
	table := &standingsTable{results: rankPlayers(t.definition.Format, f.contestants, f.decided)}
	table.byUser = make(map[int64]*result, len(table.results))
	for _, r := range table.results {
		table.byUser[r.UserID] = r
	}
	s.tables.Add(key, table)
	return table, nil
}

// Standings returns a page of the standings, best first, and where the next one begins, "" for
// none. Nobody is in it before the first round. It returns invalid_request for a cursor that is
// none.
func (s *Service) Standings(
	ctx context.Context, caller principal.Caller, gameID, id int64, cursor string, limit int,
) (list []Standing, next string, err error) {
	t, err := s.read(ctx, caller, gameID, id)
	if err != nil {
		return nil, "", err
	}
	paid, err := t.payoutsByUser()
	if err != nil {
		return nil, "", err
	}
	if t.definition.Format == FormatScore {
		return s.scoreStandings(ctx, t, paid, cursor, limit)
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	table, err := s.table(ctx, t)
	if err != nil {
		return nil, "", err
	}
	first := min(int(after), len(table.results))
	last := min(first+limit, len(table.results))
	page := table.results[first:last]
	profiles, err := s.store.readProfiles(ctx, t, page)
	if err != nil {
		return nil, "", err
	}
	list = make([]Standing, len(page))
	for i, r := range page {
		list[i] = Standing{
			Place: r.Place, User: profiles[r.UserID], Points: halfPoints(r.HalfPoints), Wins: r.Wins, Draws: r.Draws,
			Losses: r.Losses, Tiebreaks: r.tiebreaks(t.definition.Format),
		}
		list[i].setPayout(t, paid[r.UserID].units)
	}
	if last < len(table.results) {
		next = formatCursor(last)
	}
	return list, next, nil
}

// setPayout sets what a player gets once that is decided.
func (st *Standing) setPayout(t *tour, units wallet.Units) {
	if t.hasPlaces() {
		st.Payout, st.Units = &wallet.Amount{Units: units, Decimals: t.decimals}, &units
	}
}

// readProfiles returns the profiles of players as of their joining.
func (s *store) readProfiles(ctx context.Context, t *tour, page []*result) (map[int64]users.Profile, error) {
	ids := make([]int64, len(page))
	for i := range page {
		ids[i] = page[i].UserID
	}
	entrants, err := s.readEntrantsOf(ctx, t, ids)
	if err != nil {
		return nil, err
	}
	profiles := make(map[int64]users.Profile, len(entrants))
	for i := range entrants {
		if profiles[entrants[i].userID], err = entrants[i].user(); err != nil {
			return nil, err
		}
	}
	return profiles, nil
}
