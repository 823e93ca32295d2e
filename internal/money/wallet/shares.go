package wallet

import (
	"cmp"
	"math/bits"
	"slices"
)

// FullBps is 100 % in basis points.
const FullBps = 10_000

// ApplyBps returns floor(u × bps / 10000), exact for every u that is not negative.
func ApplyBps(u Units, bps int) Units {
	hi, lo := bits.Mul64(uint64(u), uint64(bps))
	q, _ := bits.Div64(hi, lo, FullBps)
	return Units(q)
}

// SharesByPlace divides units among the places that somebody has, in proportion to their basis
// points; when these are all 0, the first place gets everything. Shares are rounded down. The units
// that are left go one each to the largest fractions, of equal ones to the better place.
func SharesByPlace(units Units, bps []int, places int) []Units {
	if places == 0 {
		return nil
	}
	weights := make([]int, places)
	total := 0
	for i := range min(len(bps), places) {
		weights[i] = bps[i]
		total += bps[i]
	}
	if total == 0 {
		weights[0], total = 1, 1
	}
	shares, fractions := make([]Units, places), make([]uint64, places)
	left := units
	for i, weight := range weights {
		hi, lo := bits.Mul64(uint64(units), uint64(weight))
		share, fraction := bits.Div64(hi, lo, uint64(total))
		shares[i], fractions[i] = Units(share), fraction
		left -= shares[i]
	}
	byFraction := make([]int, places) // indexes of places
	for i := range byFraction {
		byFraction[i] = i
	}
	slices.SortStableFunc(byFraction, func(a, b int) int { return cmp.Compare(fractions[b], fractions[a]) })
	for _, i := range byFraction[:left] {
		shares[i]++
	}
	return shares
}

// SplitTies returns the share of each player when tied players divide the shares of their places.
// places has the place of each player, best first, such as 1, 1, 3. shares has the share of each
// place; a place beyond its end gets nothing. The units that cannot be divided go one each to the
// first of the tied players.
func SplitTies(shares []Units, places []int) []Units {
	split := make([]Units, len(places))
	for first := 0; first < len(places); {
		last, sum := first, Units(0)
		for ; last < len(places) && places[last] == places[first]; last++ {
			if last < len(shares) {
				sum += shares[last]
			}
		}
		tied := Units(last - first)
		for i := first; i < last; i++ {
			split[i] = sum / tied
			if Units(i-first) < sum%tied {
				split[i]++
			}
		}
		first = last
	}
	return split
}
