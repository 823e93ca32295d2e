package tournaments

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// event is a tournament that a test plays.
type event struct {
	random  *rand.Rand
	format  Format
	players []contestant
	decided []outcome
	round   int
}

func newEvent(random *rand.Rand, format Format, players int) *event {
	e := &event{random: random, format: format}
	for range players {
		e.join()
	}
	return e
}

func (e *event) join() {
	n := len(e.players) + 1
	e.players = append(e.players, contestant{UserID: int64(1000 + n), Seed: n})
}

// withdraw lets a random player leave, unless few are left.
func (e *event) withdraw() {
	if e.active() > 4 {
		e.players[e.random.IntN(len(e.players))].IsOut = true
	}
}

func (e *event) active() int {
	n := 0
	for _, p := range e.players {
		if !p.IsOut {
			n++
		}
	}
	return n
}

// play decides the matches of a round: the first player wins, the second, nobody comes, or it is a
// draw where the format has them.
func (e *event) play(pairs []pairing) {
	for _, p := range pairs {
		o := outcome{Round: e.round, Number: p.Number, A: p.A, B: p.B}
		switch die := e.random.IntN(20); {
		case p.B == 0:
			o.Winner = p.A
		case die < 10:
			o.Winner = p.A
		case die < 17 || e.format == FormatElimination && die < 19:
			o.Winner = p.B
		case die < 19:
			o.IsDraw = true
		}
		e.decided = append(e.decided, o)
	}
}

// check returns what is wrong with the pairs of a round: each player who is not out once, nobody
// else.
func (e *event) check(pairs []pairing) error {
	seen := map[int64]bool{}
	for i, p := range pairs {
		if p.Number != i+1 {
			return fmt.Errorf("match %d has the number %d", i+1, p.Number)
		}
		for _, user := range []int64{p.A, p.B} {
			if user != 0 && seen[user] {
				return fmt.Errorf("player %d is paired twice", user)
			}
			seen[user] = true
		}
	}
	for _, p := range e.players {
		if p.IsOut && seen[p.UserID] {
			return fmt.Errorf("player %d is out and is paired", p.UserID)
		}
	}
	return nil
}

// checkSwiss checks the rules of Swiss beside those of each round.
func (e *event) checkSwiss(pairs []pairing) error {
	if len(pairs) != (e.active()+1)/2 {
		return fmt.Errorf("%d matches for %d players", len(pairs), e.active())
	}
	met, byes := map[[2]int64]bool{}, map[int64]int{}
	for _, o := range e.decided {
		met[[2]int64{o.A, o.B}], met[[2]int64{o.B, o.A}] = true, true
		if o.B == 0 {
			byes[o.A]++
		}
	}
	fewest := len(e.decided)
	var active []contestant
	for _, p := range e.players {
		if !p.IsOut {
			active = append(active, p)
			fewest = min(fewest, byes[p.UserID])
		}
	}
	isRepeated := false
	for _, p := range pairs {
		if p.B == 0 && byes[p.A] > fewest {
			return fmt.Errorf("player %d has bye %d, another one has had %d", p.A, byes[p.A]+1, fewest)
		}
		isRepeated = isRepeated || p.B != 0 && met[[2]int64{p.A, p.B}]
	}
	if !isRepeated {
		return nil
	}
	n := len(active) + len(active)%2
	if hasPerfectMatching(e.random, n, func(i, j int) bool {
		if j >= len(active) { // the bye
			return byes[active[i].UserID] == fewest
		}
		return !met[[2]int64{active[i].UserID, active[j].UserID}]
	}) {
		return fmt.Errorf("a match is repeated, though there is a pairing of %d players without", len(active))
	}
	return nil
}

// hasPerfectMatching reports whether all can be paired. It is exact when it returns true: by
// Tutte's theorem, the determinant of the skew-symmetric matrix with a random number for each
// possible pair is 0 when there is no perfect matching. When it returns false, it is wrong once in
// 10^16 times.
func hasPerfectMatching(random *rand.Rand, n int, canMeet func(i, j int) bool) bool {
	const prime = 1<<61 - 1
	multiply := func(a, b uint64) uint64 {
		high, low := bits.Mul64(a, b)
		_, rest := bits.Div64(high, low, prime)
		return rest
	}
	matrix := make([][]uint64, n)
	for i := range matrix {
		matrix[i] = make([]uint64, n)
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			if canMeet(i, j) {
				matrix[i][j] = 1 + random.Uint64N(prime-1)
				matrix[j][i] = prime - matrix[i][j]
			}
		}
	}
	inverse := func(a uint64) uint64 { // a^(prime-2)
		result := uint64(1)
		for exponent := uint64(prime - 2); exponent > 0; exponent >>= 1 {
			if exponent&1 == 1 {
				result = multiply(result, a)
			}
			a = multiply(a, a)
		}
		return result
	}
	for column := range n {
		pivot := column
		for pivot < n && matrix[pivot][column] == 0 {
			pivot++
		}
		if pivot == n {
			return false
		}
		matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
		scale := inverse(matrix[column][column])
		for row := column + 1; row < n; row++ {
			factor := multiply(matrix[row][column], scale)
			for k := column; k < n && factor != 0; k++ {
				matrix[row][k] = (matrix[row][k] + prime - multiply(factor, matrix[column][k])) % prime
			}
		}
	}
	return true
}

func TestSwissPairsWithoutRepeatsAndSecondByes(t *testing.T) {
	const events = 2_000
	for number := range events {
		random := rand.New(rand.NewPCG(uint64(number), 12))
		e := newEvent(random, FormatSwiss, 8+random.IntN(93))
		rounds := roundsFor(&Definition{Format: FormatSwiss}, len(e.players)) + random.IntN(4)
		if number%4 == 0 { // some play until nobody new is left
			e = newEvent(random, FormatSwiss, 8+random.IntN(20))
			rounds = len(e.players) + 2
		}
		for e.round = 1; e.round <= rounds; e.round++ {
			pairs := pairRound(FormatSwiss, e.round, e.players, e.decided)
			if err := cmp.Or(e.check(pairs), e.checkSwiss(pairs)); err != nil {
				t.Fatalf("event %d, %d players, round %d: %v", number, len(e.players), e.round, err)
			}
			e.play(pairs)
			if random.IntN(4) == 0 {
				e.withdraw()
			}
			if random.IntN(6) == 0 {
				e.join()
			}
		}
		checkStandings(t, e)
	}
}

// checkStandings requires one result for each player, in order and with strict places.
func checkStandings(t *testing.T, e *event) {
	t.Helper()
	results := rankPlayers(e.format, e.players, e.decided)
	if len(results) != len(e.players) {
		t.Fatalf("%d results for %d players", len(results), len(e.players))
	}
	for i, r := range results {
		if r.Place != i+1 {
			t.Fatalf("result %d has the place %d", i, r.Place)
		}
		if i > 0 && results[i-1].HalfPoints < r.HalfPoints && !r.IsDisqualified {
			t.Fatalf("place %d has more points than the one before", r.Place)
		}
	}
}

func TestARepeatIsAvoidedByNearOpponents(t *testing.T) {
	// Nobody came to the first round, so the order is that of the seeds.
	small := newEvent(nil, FormatSwiss, 4)
	met := []outcome{{Round: 1, Number: 1, A: 1003, B: 1004}}
	if got, want := pairSwiss(small.players, met), []pairing{{1, 1001, 1003}, {2, 1002, 1004}}; !slices.Equal(got, want) {
		t.Errorf("4 players: %v, want %v", got, want)
	}
	large := newEvent(nil, FormatSwiss, 18)
	met = []outcome{{Round: 1, Number: 1, A: 1017, B: 1018}}
	got := pairSwiss(large.players, met)
	if want := []pairing{{7, 1013, 1014}, {8, 1015, 1018}, {9, 1016, 1017}}; !slices.Equal(got[6:], want) {
		t.Errorf("18 players: %v, want %v at the end", got, want)
	}
}

func TestTheByeGoesToTheLastOfThoseWithTheFewest(t *testing.T) {
	e := newEvent(nil, FormatSwiss, 3)
	want := []int64{1003, 1002, 1001, 1003}
	for round := 1; round <= 4; round++ {
		pairs := pairSwiss(e.players, e.decided)
		last := pairs[len(pairs)-1]
		if last.B != 0 || last.A != want[round-1] {
			t.Fatalf("round %d: %v, want the bye for %d", round, pairs, want[round-1])
		}
		e.decided = append(e.decided, outcome{Round: round, Number: 2, A: last.A, Winner: last.A})
	}
}

func TestNobodyWhoIsOutIsPairedInAnyFormat(t *testing.T) {
	for _, format := range []Format{FormatElimination, FormatRoundRobin, FormatSwiss} {
		for number := range 300 {
			random := rand.New(rand.NewPCG(uint64(number), 13))
			e := newEvent(random, format, 2+random.IntN(31))
			rounds := roundsFor(&Definition{Format: format}, len(e.players))
			for e.round = 1; e.round <= rounds; e.round++ {
				pairs := pairRound(format, e.round, e.players, e.decided)
				testkit.Check(t, e.check(pairs), "%s, event %d, round %d", format, number, e.round)
				e.play(pairs)
				if random.IntN(3) == 0 {
					e.withdraw()
				}
			}
		}
	}
}

func TestRoundRobinPairsEverybodyWithEverybodyOnce(t *testing.T) {
	for n := 2; n <= 32; n++ {
		e := newEvent(rand.New(rand.NewPCG(1, 1)), FormatRoundRobin, n)
		met := map[[2]int64]int{}
		rounds := roundsFor(&Definition{Format: FormatRoundRobin}, n)
		for e.round = 1; e.round <= rounds; e.round++ {
			pairs := pairRound(FormatRoundRobin, e.round, e.players, e.decided)
			if len(pairs) != n/2 {
				t.Fatalf("%d players, round %d: %d matches", n, e.round, len(pairs))
			}
			for _, p := range pairs {
				met[[2]int64{min(p.A, p.B), max(p.A, p.B)}]++
			}
			e.play(pairs)
		}
		if len(met) != n*(n-1)/2 {
			t.Fatalf("%d players: %d of %d pairs met", n, len(met), n*(n-1)/2)
		}
		for pair, times := range met {
			if times != 1 {
				t.Fatalf("%d players: %v met %d times", n, pair, times)
			}
		}
	}
}

func TestWhoMeetsAPlayerThatIsOutInARoundRobinHasABye(t *testing.T) {
	e := newEvent(nil, FormatRoundRobin, 4)
	e.players[3].IsOut = true
	byes := map[int64]int{}
	for round := 1; round <= 3; round++ {
		for _, p := range pairRoundRobin(round, e.players) {
			if p.B == 0 {
				byes[p.A]++
			}
		}
	}
	if len(byes) != 3 || byes[1001] != 1 || byes[1002] != 1 || byes[1003] != 1 {
		t.Errorf("byes: %v, want one for each of the three", byes)
	}
}

func TestTheFirstRoundOfABracket(t *testing.T) {
	for n, want := range map[int][]pairing{
		2: {{1, 1001, 1002}},
		3: {{1, 1001, 0}, {2, 1002, 1003}},
		6: {{1, 1001, 0}, {2, 1004, 1005}, {3, 1002, 0}, {4, 1003, 1006}},
	} {
		e := newEvent(nil, FormatElimination, n)
		if got := pairRound(FormatElimination, 1, e.players, nil); !slices.Equal(got, want) {
			t.Errorf("%d players: %v, want %v", n, got, want)
		}
	}
}

func TestABracketGoesOnWithoutThoseWhoLeft(t *testing.T) {
	e := newEvent(nil, FormatElimination, 8)
	decided := []outcome{
		{Round: 1, Number: 1, A: 1001, B: 1008, Winner: 1001},
		{Round: 1, Number: 2, A: 1004, B: 1005}, // nobody came
		{Round: 1, Number: 3, A: 1002, B: 1007, Winner: 1007},
		{Round: 1, Number: 4, A: 1003, B: 1006, Winner: 1003},
	}
	e.players[6].IsOut = true // 1007, after the win
	got := pairRound(FormatElimination, 2, e.players, decided)
	if want := []pairing{{1, 1001, 0}, {2, 1003, 0}}; !slices.Equal(got, want) {
		t.Fatalf("semifinals: %v, want %v", got, want)
	}
	e.players[0].IsOut, e.players[2].IsOut = true, true
	decided = append(decided, outcome{Round: 2, Number: 1, A: 1001, Winner: 1001},
		outcome{Round: 2, Number: 2, A: 1003, Winner: 1003})
	if got := pairRound(FormatElimination, 3, e.players, decided); !slices.Equal(got, []pairing{{1, 0, 0}}) {
		t.Errorf("final of nobody: %v", got)
	}
}

func TestABracketHasOneWinnerWhateverHappens(t *testing.T) {
	for n := 2; n <= 64; n++ {
		e := newEvent(rand.New(rand.NewPCG(uint64(n), 3)), FormatElimination, n)
		rounds := roundsFor(&Definition{Format: FormatElimination}, n)
		for e.round = 1; e.round <= rounds; e.round++ {
			pairs := pairRound(FormatElimination, e.round, e.players, e.decided)
			if len(pairs) != 1<<(rounds-e.round) {
				t.Fatalf("%d players, round %d: %d matches", n, e.round, len(pairs))
			}
			for i, p := range pairs { // the better seed always wins
				e.decided = append(e.decided, outcome{Round: e.round, Number: i + 1, A: p.A, B: p.B, Winner: p.A})
			}
		}
		results := rankPlayers(FormatElimination, e.players, e.decided)
		if results[0].UserID != 1001 || results[0].Place != 1 || results[1].Place != 2 {
			t.Fatalf("%d players: first is %d, second at place %d", n, results[0].UserID, results[1].Place)
		}
		if n == 8 {
			var places []int
			for _, r := range results {
				places = append(places, r.Place)
			}
			if want := []int{1, 2, 3, 3, 5, 5, 5, 5}; !slices.Equal(places, want) {
				t.Errorf("places %v, want %v", places, want)
			}
		}
	}
}

func TestRoundsOfATournament(t *testing.T) {
	for _, c := range []struct {
		d        Definition
		entrants int
		want     int
	}{
		{Definition{Format: FormatElimination}, 1, 0},
		{Definition{Format: FormatElimination}, 2, 1},
		{Definition{Format: FormatElimination}, 5, 3},
		{Definition{Format: FormatElimination}, 1024, 10},
		{Definition{Format: FormatRoundRobin}, 4, 3},
		{Definition{Format: FormatRoundRobin}, 5, 5},
		{Definition{Format: FormatSwiss}, 7, 3},
		{Definition{Format: FormatSwiss}, 4096, 12},
		{Definition{Format: FormatSwiss, Rounds: 9}, 100, 9},
		{Definition{Format: FormatSwiss, Rounds: 9}, 4, 3},
		{Definition{Format: FormatSwiss, Rounds: 9}, 5, 5},
		{Definition{Format: FormatSwiss, Rounds: 9, LateJoinRounds: 2}, 4, 9},
	} {
		if got := roundsFor(&c.d, c.entrants); got != c.want {
			t.Errorf("%s with %d rounds, %d entrants: %d, want %d", c.d.Format, c.d.Rounds, c.entrants, got, c.want)
		}
	}
}

func TestTheDrawIsTheSameForTheSameNumber(t *testing.T) {
	joined := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	first, again := drawSeeds(joined, SeedRandom, 7), drawSeeds(joined, SeedRandom, 7)
	other := drawSeeds(joined, SeedRandom, 8)
	if !slices.Equal(first, again) || slices.Equal(first, other) || slices.Equal(first, joined) {
		t.Errorf("draws: %v, %v, other number %v", first, again, other)
	}
	if got := drawSeeds(joined, SeedByJoined, 7); !slices.Equal(got, joined) {
		t.Errorf("by joining: %v", got)
	}
}

func BenchmarkSwissRoundOf4096(b *testing.B) {
	e := newEvent(rand.New(rand.NewPCG(1, 9)), FormatSwiss, 4096)
	for e.round = 1; e.round <= 11; e.round++ {
		e.play(pairSwiss(e.players, e.decided))
	}
	for b.Loop() {
		pairSwiss(e.players, e.decided)
	}
}

func BenchmarkStandingsOf4096(b *testing.B) {
	e := newEvent(rand.New(rand.NewPCG(1, 9)), FormatSwiss, 4096)
	for e.round = 1; e.round <= 12; e.round++ {
		e.play(pairSwiss(e.players, e.decided))
	}
	for b.Loop() {
		rankPlayers(FormatSwiss, e.players, e.decided)
	}
}
