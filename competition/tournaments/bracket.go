package tournaments

import (
	"cmp"
	"math/bits"
	"slices"
)

// pairElimination returns a round of a bracket. In the first one the best seed meets the last, and
// so on; the places that nobody has are byes for the highest seeds. In a later one the winners of
// two neighbouring matches meet. A player without an opponent has a bye.
func pairElimination(round int, players []contestant, decided []outcome) []pairing {
	bySeed := slices.Clone(players)
	slices.SortFunc(bySeed, func(a, b contestant) int { return cmp.Compare(a.Seed, b.Seed) })
	byUser := make(map[int64]contestant, len(players))
	for _, p := range players {
		byUser[p.UserID] = p
	}
	rounds := bits.Len(uint(max(len(players), 1) - 1))
	reached := make([]contestant, 1<<max(rounds-round+1, 0)) // who plays in this round, by place in the bracket
	if round == 1 {
		for place, seed := range bracketSeeds(rounds) {
			if seed <= len(bySeed) {
				reached[place] = bySeed[seed-1]
			}
		}
	} else {
		for _, o := range decided {
			if o.Round == round-1 {
				reached[o.Number-1] = byUser[o.Winner]
			}
		}
	}
	pairs := make([]pairing, len(reached)/2)
	for i := range pairs {
		a, b := reached[2*i], reached[2*i+1]
		pairs[i] = pairing{Number: i + 1}
		switch aPlays, bPlays := a.canPlay(), b.canPlay(); {
		case aPlays && bPlays && b.Seed < a.Seed:
			pairs[i].A, pairs[i].B = b.UserID, a.UserID
		case aPlays && bPlays:
			pairs[i].A, pairs[i].B = a.UserID, b.UserID
		case aPlays:
			pairs[i].A = a.UserID
		case bPlays:
			pairs[i].A = b.UserID
		}
	}
	return pairs
}

func (c contestant) canPlay() bool { return c.UserID != 0 && !c.IsOut }

// bracketSeeds returns the seeds of the first round by place in the bracket: neighbours meet, and
// the first two seeds can only meet in the last round.
func bracketSeeds(rounds int) []int {
	seeds := []int{1}
	for range rounds {
		next := make([]int, 0, 2*len(seeds))
		for _, seed := range seeds {
			next = append(next, seed, 2*len(seeds)+1-seed)
		}
		seeds = next
	}
	return seeds
}
