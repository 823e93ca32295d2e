package tournaments

import (
	"cmp"
	"slices"

	"github.com/parlor-games/parlor/competition/leaderboards"
)

// result is a player's place in a tournament with matches.
type result struct {
	contestant
	Place               int // from 1; equal places are a tie
	Wins, Draws, Losses int // a bye is a win
	HalfPoints          int

	// The tiebreaks in their order. Buchholz cut 1 is the sum of the opponents' points except those
	// of the weakest; a round without an opponent adds 0. DirectHalves are the points against the
	// tied players, or 0 for all of them unless each has met each. SonnebornBerger is the points of
	// beaten opponents plus half of those in draws, in quarters.
	BuchholzHalves, DirectHalves, SonnebornBergerQuarters int
}

// rankPlayers returns the standings, best first. Places of Swiss and round robin are strict: the
// seed decides last. Players who reached the same round of a bracket are tied. Disqualified players
// come last.
func rankPlayers(format Format, players []contestant, decided []outcome) []*result {
	t := newTable(players, decided)
	switch format {
	case FormatElimination:
		t.sort(byWins)
		t.countPlaces(byWins)
		return t.results
	case FormatSwiss:
		t.addBuchholz()
	}
	t.addSonnebornBerger()
	t.sort(byPointsAndBuchholz)
	t.addDirectEncounters()
	t.sort(byAllTiebreaks)
	t.countPlaces(byAllTiebreaks)
	return t.results
}

// table is standings in the making.
type table struct {
	results []*result
	games   map[int64][]game // by user id
	rounds  int              // that were played
}

// game is a match as one of its two players sees it.
type game struct {
	opponent   int64
	halfPoints int // that the player got
}

func newTable(players []contestant, decided []outcome) *table {
	t := &table{results: make([]*result, len(players)), games: make(map[int64][]game, len(players))}
	points := map[int64]int{}
	wins, draws, losses := map[int64]int{}, map[int64]int{}, map[int64]int{}
	for _, o := range decided {
		addPoints(points, o)
		t.rounds = max(t.rounds, o.Round)
		for _, side := range [2]struct{ player, opponent int64 }{{o.A, o.B}, {o.B, o.A}} {
			if side.player == 0 {
				continue
			}
			halves := 0
			switch {
			case o.Winner == side.player:
				wins[side.player]++
				halves = 2
			case o.IsDraw:
				draws[side.player]++
				halves = 1
			default:
				losses[side.player]++
			}
			if side.opponent != 0 {
				t.games[side.player] = append(t.games[side.player], game{side.opponent, halves})
			}
		}
	}
	for i, p := range players {
		t.results[i] = &result{
			contestant: p, HalfPoints: points[p.UserID],
			Wins: wins[p.UserID], Draws: draws[p.UserID], Losses: losses[p.UserID],
		}
	}
	return t
}

// byWins compares how far two players got in a bracket.
func byWins(a, b *result) int {
	return cmp.Or(compareQualified(a, b), cmp.Compare(b.Wins, a.Wins))
}

func byPointsAndBuchholz(a, b *result) int {
	return cmp.Or(compareQualified(a, b),
		cmp.Compare(b.HalfPoints, a.HalfPoints), cmp.Compare(b.BuchholzHalves, a.BuchholzHalves))
}

func byAllTiebreaks(a, b *result) int {
	return cmp.Or(byPointsAndBuchholz(a, b), cmp.Compare(b.DirectHalves, a.DirectHalves),
		cmp.Compare(b.SonnebornBergerQuarters, a.SonnebornBergerQuarters), cmp.Compare(a.Seed, b.Seed))
}

func compareQualified(a, b *result) int {
	switch {
	case a.IsDisqualified == b.IsDisqualified:
		return 0
	case a.IsDisqualified:
		return 1
	default:
		return -1
	}
}

// sort sorts the results; equal ones are sorted by seed.
func (t *table) sort(compare func(a, b *result) int) {
	slices.SortFunc(t.results, func(a, b *result) int { return cmp.Or(compare(a, b), cmp.Compare(a.Seed, b.Seed)) })
}

// countPlaces numbers sorted results; who is equal by the comparison has the same place: 1, 1, 3.
func (t *table) countPlaces(compare func(a, b *result) int) {
	for i, r := range t.results {
		r.Place = i + 1
		if i > 0 && compare(t.results[i-1], r) == 0 {
			r.Place = t.results[i-1].Place
		}
	}
}

func (t *table) halfPoints() map[int64]int {
	points := make(map[int64]int, len(t.results))
	for _, r := range t.results {
		points[r.UserID] = r.HalfPoints
	}
	return points
}

// addBuchholz adds the points of each player's opponents except the weakest. A round without an
// opponent counts as the weakest.
func (t *table) addBuchholz() {
	points := t.halfPoints()
	for _, r := range t.results {
		games := t.games[r.UserID]
		weakest := 0
		for k, g := range games {
			r.BuchholzHalves += points[g.opponent]
			if k == 0 || points[g.opponent] < weakest {
				weakest = points[g.opponent]
			}
		}
		if len(games) == t.rounds {
			r.BuchholzHalves -= weakest
		}
	}
}

func (t *table) addSonnebornBerger() {
	points := t.halfPoints()
	for _, r := range t.results {
		for _, g := range t.games[r.UserID] {
			r.SonnebornBergerQuarters += g.halfPoints * points[g.opponent]
		}
	}
}

// addDirectEncounters counts the games among players who are tied on points and Buchholz, if each
// has met each. results must be sorted by points and Buchholz.
func (t *table) addDirectEncounters() {
	for first := 0; first < len(t.results); {
		last := first
		for last < len(t.results) && byPointsAndBuchholz(t.results[first], t.results[last]) == 0 {
			last++
		}
		t.addDirectEncountersOf(t.results[first:last])
		first = last
	}
}

func (t *table) addDirectEncountersOf(tied []*result) {
	isTied := make(map[int64]bool, len(tied))
	for _, r := range tied {
		isTied[r.UserID] = true
	}
	halves := make([]int, len(tied))
	for i, r := range tied {
		met := map[int64]bool{}
		for _, g := range t.games[r.UserID] {
			if isTied[g.opponent] {
				met[g.opponent] = true
				halves[i] += g.halfPoints
			}
		}
		if len(met) < len(tied)-1 {
			return
		}
	}
	for i, r := range tied {
		r.DirectHalves = halves[i]
	}
}

// tiebreaks returns the tiebreaks of a format as they are on the wire.
func (r *result) tiebreaks(format Format) Tiebreaks {
	breaks := Tiebreaks{Seed: r.Seed}
	if format == FormatElimination {
		return breaks
	}
	breaks.DirectEncounter = new(halfPoints(r.DirectHalves))
	breaks.SonnebornBerger = &leaderboards.Score{Units: int64(r.SonnebornBergerQuarters) * 25, Decimals: 2}
	if format == FormatSwiss {
		breaks.Buchholz = new(halfPoints(r.BuchholzHalves))
	}
	return breaks
}

// halfPoints returns a number of half points as points.
func halfPoints(n int) leaderboards.Score {
	return leaderboards.Score{Units: int64(n) * 5, Decimals: 1}
}
