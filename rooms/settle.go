package rooms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/wallet"
)

// whole is all of it, in basis points.
const whole = 10_000

// portion is floor(u × bps / 10000), exact for every u.
func portion(u wallet.Units, bps int) wallet.Units {
	hi, lo := bits.Mul64(uint64(u), uint64(bps))
	q, _ := bits.Div64(hi, lo, whole)
	return wallet.Units(q)
}

// ordered answers results by place, the tied in seating order, and writes places as a ranking: 1, 1, 2 is read as 1, 1, 3, and so is 1, 1, 5.
func ordered(results []Placement, active []int64) []Placement {
	list := slices.Clone(results)
	slices.SortStableFunc(list, func(a, b Placement) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(slices.Index(active, a.UserID), slices.Index(active, b.UserID)))
	})
	if len(list) == 0 || list[0].Place != 1 {
		return list // no ranking at all; rank says so
	}
	said := 0
	for i := range list {
		tied := i > 0 && list[i].Place == said
		said = list[i].Place
		if tied {
			list[i].Place = list[i-1].Place
		} else {
			list[i].Place = i + 1
		}
	}
	return list
}

// rank checks that results name each active player once, and that somebody is first. It refuses invalid_request with every fault.
func rank(results []Placement, active []int64) error {
	var f apierror.FieldErrors
	named := map[int64]bool{}
	for i, r := range results {
		at := func(member, code, message string) { f.Add(fmt.Sprintf("results[%d].%s", i, member), code, message) }
		if !slices.Contains(active, r.UserID) {
			at("userId", "unknown", "does not play in this room")
		}
		if named[r.UserID] {
			at("userId", "duplicate", "is named twice")
		}
		named[r.UserID] = true
		if r.Place < 1 {
			at("place", "range", "must be 1 or more")
		}
	}
	for _, id := range active {
		if !named[id] {
			f.Add("results", "incomplete", fmt.Sprintf("player %d is missing", id))
		}
	}
	if f.Err() == nil && !slices.ContainsFunc(results, func(r Placement) bool { return r.Place == 1 }) {
		f.Add("results", "ranking", "nobody is first: places count from 1")
	}
	return f.Err()
}

// canonical is the text by which two reports of a result are the same.
func canonical(ranked []Placement) string {
	text, err := json.Marshal(ranked)
	if err != nil {
		panic("rooms: a result that is no JSON: " + err.Error()) // a score that is not finite; JSON cannot bring one
	}
	return string(text)
}

// share divides what is left of the pot after the rake among players in ranked order. Every place of the table gets
// its basis points of it, rounded down; what the rounding leaves, and the shares of places that nobody can reach, go to the first
// place. The tied get together what their places would get: each the same, and the units that cannot be
// divided one each to the earliest seats.
func share(pot wallet.Units, rakeBps int, table []int, ranked []Placement) (payouts []Payout, rake wallet.Units) {
	rake = portion(pot, rakeBps)
	net := pot - rake
	places := make([]wallet.Units, len(ranked))
	rest := net
	for i := 1; i < min(len(table), len(ranked)); i++ {
		places[i] = portion(net, table[i])
		rest -= places[i]
	}
	places[0] = rest
	for first := 0; first < len(ranked); {
		last, sum := first, wallet.Units(0)
		for ; last < len(ranked) && ranked[last].Place == ranked[first].Place; last++ {
			sum += places[last]
		}
		tied := wallet.Units(last - first)
		for i := first; i < last; i++ {
			units := sum / tied
			if wallet.Units(i-first) < sum%tied {
				units++
			}
			payouts = append(payouts, Payout{UserID: ranked[i].UserID, Place: ranked[i].Place, Amount: units})
		}
		first = last
	}
	return payouts, rake
}

// settlement is what a finish hands to the script.
type settlement struct {
	results string // canonical
	payouts []Payout
	rake    wallet.Units
	version int64 // of the room for which it was computed
}

// settle computes the settlement of a room for a ranked result. A free room pays nothing. A tie for the first place in a room
// that refunds ties gives every stake back, those of the forfeited too, and takes no rake.
func (r *Room) settle(ranked []Placement) settlement {
	s := settlement{results: canonical(ranked), version: r.Version}
	if r.Pot == 0 {
		return s
	}
	if r.Tie == TieRefund && len(ranked) > 1 && ranked[1].Place == 1 {
		place := map[int64]int{}
		for _, result := range ranked {
			place[result.UserID] = result.Place
		}
		for _, seat := range r.Seats {
			s.payouts = append(s.payouts, Payout{UserID: seat.UserID, Place: place[seat.UserID], Amount: seat.Stake})
		}
		return s
	}
	s.payouts, s.rake = share(r.Pot, r.RakeBps, r.Payout, ranked)
	return s
}
