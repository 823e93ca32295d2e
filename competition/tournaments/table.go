package tournaments

import (
	"context"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// standingsTable is the standings of a tournament with matches. All readers share it.
type standingsTable struct {
	results []*result
	byUser  map[int64]*result

	version int64 // of the tournament, or of one before it
	madeAt  time.Time
}

// tableInterval is the shortest time between two tables of a tournament. The table of the largest
// tournament costs 3 MB of reads and 15 ms on a node, and a single entrant who joins and leaves can
// make a hundred versions a second.
const tableInterval = 250 * time.Millisecond

// tableMaker makes the standings of one tournament on this node, one table after the other.
type tableMaker struct {
	turn   chan struct{}   // has a token; who takes it may read and replace newest
	newest *standingsTable // nil: none was made
}

// isFor reports whether a table is new enough for a reader who has seen a version of the
// tournament. It does not trust the version of an old table, because a store that lost its last
// seconds counts again from a lower version.
func (table *standingsTable) isFor(version int64) bool {
	return table != nil && (table.version == version ||
		table.version > version && time.Since(table.madeAt) < tableInterval)
}

// table returns the standings of a tournament at the version that was read or a newer one. They are
// empty before the first round and for a score tournament. It waits until tableInterval has passed
// since the last table, because a reader who knows a result must not get standings without it.
func (s *Service) table(ctx context.Context, t *tour) (*standingsTable, error) {
	if !t.definition.Format.HasMatches() || t.round == 0 {
		return &standingsTable{}, nil
	}
	maker := s.tableMaker(tableID{t.gameID, t.id})
	select {
	case token := <-maker.turn:
		defer func() { maker.turn <- token }()
	case <-ctx.Done():
		return nil, redisdb.WrapError("wait for standings", ctx.Err())
	}
	if maker.newest.isFor(t.version) {
		return maker.newest, nil
	}
	if maker.newest != nil {
		waited, err := waitUntil(ctx, maker.newest.madeAt.Add(tableInterval))
		if err != nil {
			return nil, err
		}
		if waited { // the table is for those as well who have come meanwhile
			if t, err = s.store.load(ctx, t.gameID, t.id); err != nil {
				return nil, err
			}
		}
	}
	table := &standingsTable{version: t.version, madeAt: time.Now()}
	f, err := s.readParticipants(ctx, t)
	if err != nil {
		return nil, err
	}
	table.results = rankPlayers(t.definition.Format, f.contestants, f.decided)
	table.byUser = make(map[int64]*result, len(table.results))
	for _, r := range table.results {
		table.byUser[r.UserID] = r
	}
	maker.newest = table
	return table, nil
}

// tableMaker returns the one of a tournament.
func (s *Service) tableMaker(id tableID) *tableMaker {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	maker, ok := s.tables.Get(id)
	if !ok {
		maker = &tableMaker{turn: make(chan struct{}, 1)}
		maker.turn <- struct{}{}
		s.tables.Add(id, maker)
	}
	return maker
}

// waitUntil waits until a time, and reports whether it had to.
func waitUntil(ctx context.Context, at time.Time) (waited bool, err error) {
	wait := time.Until(at)
	if wait <= 0 {
		return false, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return true, redisdb.WrapError("wait for standings", ctx.Err())
	}
}

// Standings returns a page of the standings, best first, and where the next one begins, "" for
// none. Nobody is in it before the first round. It returns invalid_request for an invalid cursor.
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
