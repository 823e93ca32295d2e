package tournaments

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// contestant is an entrant as pairings and standings count it.
type contestant struct {
	UserID         int64
	Seed           int  // from 1; each once
	IsOut          bool // left or disqualified: never paired again
	IsDisqualified bool // behind all others in the standings
	IsRefunded     bool // out of a match that nobody decided, with the fee back: gets nothing of the pot
}

// outcome is a decided match as pairings and standings count it.
type outcome struct {
	Round, Number int   // as MatchID has them
	A, B          int64 // user ids; B is 0 for a bye, both are for a place that nobody reached
	Winner        int64 // 0: a draw, or nobody came
	IsDraw        bool
}

// outcomeOf returns a decided match as pairings and standings count it.
func outcomeOf(m *Match) outcome {
	o := outcome{}
	o.Round, o.Number, _ = ParseMatchID(m.ID)
	if len(m.Players) > 0 {
		o.A = m.Players[0].UserID
	}
	if len(m.Players) > 1 {
		o.B = m.Players[1].UserID
	}
	if m.WinnerID != nil {
		o.Winner = *m.WinnerID
	}
	o.IsDraw = m.WinnerID == nil && m.Reason != nil && *m.Reason == Played
	return o
}

// pairing is a match that a round has.
type pairing struct {
	Number int   // of the match in its round, from 1
	A, B   int64 // the better seed first; B is 0 for a bye, both are for a place that nobody reached
}

// drawSeeds returns the user ids of entrants in the order of their seeds. joined is in the order of
// joining. The same random number gives the same order.
func drawSeeds(joined []int64, seeding Seeding, random uint64) []int64 {
	order := slices.Clone(joined)
	if seeding == SeedRandom {
		rand.New(rand.NewPCG(random, 0)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// roundsFor returns how many rounds a tournament with matches has for a number of entrants. If
// staff set no number, Swiss has as many rounds as an elimination would need. It never has more
// rounds than a player has opponents, unless players may join late.
func roundsFor(d *Definition, entrants int) int {
	if entrants < 2 {
		return 0
	}
	opponents := entrants - 1 + entrants%2 // with an odd number, each sits out once
	switch {
	case d.Format == FormatRoundRobin:
		return opponents
	case d.Format == FormatElimination || d.Rounds == 0:
		return bits.Len(uint(entrants - 1))
	case d.LateJoinRounds > 0:
		return d.Rounds
	default:
		return min(d.Rounds, opponents)
	}
}

// pairRound returns the matches of a round, given the decided matches. It never pairs a player who
// is out.
func pairRound(format Format, round int, players []contestant, decided []outcome) []pairing {
	switch format {
	case FormatElimination:
		return pairElimination(round, players, decided)
	case FormatRoundRobin:
		return pairRoundRobin(round, players)
	default:
		return pairSwiss(players, decided)
	}
}

// pairRoundRobin returns a round by the circle method: the first seed stays, the others move on by
// one place a round. With an odd number of players, one has no match in a round. A player whose
// opponent is out has a bye.
func pairRoundRobin(round int, players []contestant) []pairing {
	seats := slices.Clone(players)
	slices.SortFunc(seats, func(a, b contestant) int { return cmp.Compare(a.Seed, b.Seed) })
	if len(seats)%2 == 1 {
		seats = append(seats, contestant{})
	}
	n := len(seats)
	seatAt := func(place int) contestant { // in this round
		if place == 0 {
			return seats[0]
		}
		return seats[1+(place-1+round-1)%(n-1)]
	}
	var pairs []pairing
	for i := range n / 2 {
		a, b := seatAt(i), seatAt(n-1-i)
		if a.UserID == 0 || b.UserID == 0 || a.IsOut && b.IsOut {
			continue
		}
		if a.IsOut || !b.IsOut && b.Seed < a.Seed {
			a, b = b, a
		}
		p := pairing{Number: len(pairs) + 1, A: a.UserID}
		if !b.IsOut {
			p.B = b.UserID
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// pairSwiss pairs players with equal or nearly equal points. No two players meet twice as long as
// the round can be paired without that. With an odd number of players, the lowest of those with the
// fewest byes so far gets a bye.
func pairSwiss(players []contestant, decided []outcome) []pairing {
	f := newSwissRound(players, decided)
	mate := f.search()
	if mate == nil {
		mate = f.pairGreedily()
		f.swapNear(mate)
		f.augment(mate)
		f.repeatMatches(mate)
	}
	var pairs []pairing
	for i, j := range mate {
		if i < j {
			pairs = append(pairs, f.pairing(len(pairs)+1, i, j))
		}
	}
	return pairs
}

// swissRound has the players of one round by points, then seed. The bye is last.
type swissRound struct {
	order   []contestant
	met     [][]int // indexes of opponents so far
	mayRest []bool  // may have the bye
	hasBye  bool
}

func newSwissRound(players []contestant, decided []outcome) *swissRound {
	f := &swissRound{}
	for _, p := range players {
		if !p.IsOut {
			f.order = append(f.order, p)
		}
	}
	points, byes := map[int64]int{}, map[int64]int{}
	for _, o := range decided {
		addPoints(points, o)
		if o.A != 0 && o.B == 0 {
			byes[o.A]++
		}
	}
	slices.SortFunc(f.order, func(a, b contestant) int {
		return cmp.Or(cmp.Compare(points[b.UserID], points[a.UserID]), cmp.Compare(a.Seed, b.Seed))
	})
	index := make(map[int64]int, len(f.order))
	fewestByes := len(decided)
	for i, p := range f.order {
		index[p.UserID] = i
		fewestByes = min(fewestByes, byes[p.UserID])
	}
	f.met = make([][]int, len(f.order))
	for _, o := range decided {
		a, isAHere := index[o.A]
		b, isBHere := index[o.B]
		if isAHere && isBHere {
			f.met[a], f.met[b] = append(f.met[a], b), append(f.met[b], a)
		}
	}
	f.mayRest = make([]bool, len(f.order))
	for i, p := range f.order {
		f.mayRest[i] = byes[p.UserID] == fewestByes
	}
	if f.hasBye = len(f.order)%2 == 1; f.hasBye {
		f.order = append(f.order, contestant{})
	}
	return f
}

// addPoints adds what a match is worth, in half points.
func addPoints(points map[int64]int, o outcome) {
	switch {
	case o.Winner != 0:
		points[o.Winner] += 2
	case o.IsDraw:
		points[o.A]++
		points[o.B]++
	}
}

// canMeet reports whether two players have not met, or whether a player may have the bye.
func (f *swissRound) canMeet(i, j int) bool {
	if f.hasBye {
		switch bye := len(f.order) - 1; bye {
		case i:
			return f.mayRest[j]
		case j:
			return f.mayRest[i]
		}
	}
	return !slices.Contains(f.met[i], j)
}

func (f *swissRound) pairing(number, i, j int) pairing {
	a, b := f.order[i], f.order[j]
	if b.UserID != 0 && b.Seed < a.Seed {
		a, b = b, a
	}
	return pairing{Number: number, A: a.UserID, B: b.UserID}
}

const (
	searchedField = 16 // players; of more there are too many pairings to look at
	unpaired      = -1
)

// search returns the pairing of a small field without a repeat in which the first has the nearest
// possible opponent, then the next, and so on; nil when there is none, and for a large field.
func (f *swissRound) search() []int {
	n := len(f.order)
	if n > searchedField {
		return nil
	}
	mate := make([]int, n)
	fails := map[uint32]bool{} // sets of players who cannot be paired with each other
	var pair func(left uint32) bool
	pair = func(left uint32) bool {
		if left == 0 {
			return true
		}
		if fails[left] {
			return false
		}
		i := bits.TrailingZeros32(left)
		for j := i + 1; j < n; j++ {
			rest := left &^ (1<<i | 1<<j)
			if left&(1<<j) != 0 && f.canMeet(i, j) && pair(rest) {
				mate[i], mate[j] = j, i
				return true
			}
		}
		fails[left] = true
		return false
	}
	if !pair(1<<n - 1) {
		return nil
	}
	return mate
}

// pairGreedily gives each player in turn the nearest free opponent. It assigns the bye first, while
// players who may have it are still free. Some players may stay unpaired.
func (f *swissRound) pairGreedily() []int {
	n := len(f.order)
	mate := make([]int, n)
	for i := range mate {
		mate[i] = unpaired
	}
	if f.hasBye {
		for i := n - 2; i >= 0; i-- {
			if f.mayRest[i] {
				mate[i], mate[n-1] = n-1, i
				break
			}
		}
	}
	for i := range n {
		for j := i + 1; j < n && mate[i] == unpaired; j++ {
			if mate[j] == unpaired && f.canMeet(i, j) {
				mate[i], mate[j] = j, i
			}
		}
	}
	return mate
}

// swapNear pairs each two unpaired players by splitting the nearest pair with whose players they
// can meet.
func (f *swissRound) swapNear(mate []int) {
	left := unpairedIn(mate)
	for k := 0; k+1 < len(left); k += 2 {
		x, y := left[k], left[k+1]
		for distance := 1; distance < len(mate) && mate[x] == unpaired; distance++ {
			for _, a := range [2]int{x - distance, x + distance} {
				if a < 0 || a >= len(mate) || mate[a] == unpaired {
					continue
				}
				if b := mate[a]; f.canMeet(x, a) && f.canMeet(y, b) {
					mate[x], mate[a], mate[y], mate[b] = a, x, b, y
					break
				}
			}
		}
	}
}

// repeatMatches pairs those who are left with each other. They have met.
func (f *swissRound) repeatMatches(mate []int) {
	left := unpairedIn(mate)
	for k := 0; k+1 < len(left); k += 2 {
		mate[left[k]], mate[left[k+1]] = left[k+1], left[k]
	}
}

func unpairedIn(mate []int) []int {
	var left []int
	for i, m := range mate {
		if m == unpaired {
			left = append(left, i)
		}
	}
	return left
}
