package rooms

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

// rankPlacements returns placements sorted by place, tied players in seating order, with the places
// counted as a ranking: 1, 1, 2 and 1, 1, 5 become 1, 1, 3. Placements without a first place keep
// their places.
func rankPlacements(placements []Placement, active []int64) []Placement {
	list := slices.Clone(placements)
	sortPlacements(list, active)
	if len(list) == 0 || list[0].Place != 1 {
		return list // invalid; validatePlacements reports it
	}
	countPlaces(list)
	return list
}

// sortPlacements sorts placements by place, tied players in seating order.
func sortPlacements(list []Placement, active []int64) {
	slices.SortStableFunc(list, func(a, b Placement) int {
		return cmp.Or(
			cmp.Compare(a.Place, b.Place),
			cmp.Compare(slices.Index(active, a.UserID), slices.Index(active, b.UserID)),
		)
	})
}

// countPlaces counts the places of sorted placements as a ranking, from 1.
func countPlaces(list []Placement) {
	given := 0 // the place of the player before, as it was given
	for i := range list {
		tied := i > 0 && list[i].Place == given
		given = list[i].Place
		if tied {
			list[i].Place = list[i-1].Place
		} else {
			list[i].Place = i + 1
		}
	}
}

// validatePlacements checks that placements name each active player once and that somebody is
// first. It returns every error in one invalid_request.
func validatePlacements(placements []Placement, active []int64) error {
	var fieldErrors apierror.FieldErrors
	placed := map[int64]bool{}
	for i, p := range placements {
		add := func(member, code, message string) {
			fieldErrors.Add(fmt.Sprintf("results[%d].%s", i, member), code, message)
		}
		if !slices.Contains(active, p.UserID) {
			add("userId", "unknown", "does not play in this room")
		}
		if placed[p.UserID] {
			add("userId", "duplicate", "is named twice")
		}
		placed[p.UserID] = true
		if p.Place < 1 {
			add("place", "range", "must be 1 or more")
		}
	}
	for _, id := range active {
		if !placed[id] {
			fieldErrors.Add("results", "incomplete", fmt.Sprintf("player %d is missing", id))
		}
	}
	isFirst := func(p Placement) bool { return p.Place == 1 }
	if fieldErrors.Err() == nil && !slices.ContainsFunc(placements, isFirst) {
		fieldErrors.Add("results", "ranking", "nobody is first: places count from 1")
	}
	return fieldErrors.Err()
}

// splitPot divides the pot, less the rake, among players in ranked order by the shares of their
// places. Tied players divide what their places get together; the units that cannot be divided go
// one each to the earliest seats.
func splitPot(
	pot wallet.Units, rakeBps int, payoutBps []int, ranked []Placement,
) (payouts []Payout, rake wallet.Units) {
	rake = wallet.ApplyBps(pot, rakeBps)
	places := make([]int, len(ranked))
	for i, p := range ranked {
		places[i] = p.Place
	}
	amounts := wallet.SplitTies(wallet.SharesByPlace(pot-rake, payoutBps, len(ranked)), places)
	for i, p := range ranked {
		payouts = append(payouts, Payout{UserID: p.UserID, Place: p.Place, Amount: amounts[i]})
	}
	return payouts, rake
}

// settlement has the arguments of a script that finishes a room.
type settlement struct {
	users       []int64 // of the seats; in a paid room in the order of the placements
	placements  string  // "<user>:<place>:<units>:<score>;" for each, see encodePlacements
	rake        wallet.Units
	roomVersion int64  // of the room from which it was computed, 0 for none
	consumer    string // of the room; "" without one
}

// computeSettlement computes the settlement of a room for ranked placements, which must be valid.
// A free room pays nothing. When the first place is tied in a room that refunds ties, every stake
// goes back, those of forfeited seats too, without rake.
func (r *Room) computeSettlement(ranked []Placement) settlement {
	l := settlement{roomVersion: r.Version, consumer: r.consumer}
	if r.Pot == 0 {
		l.users, l.placements = r.seatedUsers(), encodePlacements(ranked, nil)
		return l
	}
	all := slices.Clone(ranked)
	for _, seat := range r.Seats {
		if seat.State == SeatForfeited {
			all = append(all, Placement{UserID: seat.UserID}) // place 0
		}
	}
	amounts := make([]wallet.Units, len(all))
	if r.Tie == TieRefund && len(ranked) > 1 && ranked[1].Place == 1 {
		for i, p := range all {
			seat, _ := r.Seat(p.UserID)
			amounts[i] = seat.Stake
		}
	} else {
		var payouts []Payout
		payouts, l.rake = splitPot(r.Pot, r.RakeBps, r.PayoutBps, ranked)
		for i, p := range payouts {
			amounts[i] = p.Amount
		}
	}
	for _, p := range all {
		l.users = append(l.users, p.UserID)
	}
	l.placements = encodePlacements(all, amounts)
	return l
}

// settleWithout returns the script input for a player who leaves. It has the keys of all seats and
// the settlement if one other player is left in a match or in a game with a pot, or if all
// remaining players have reported.
func (r *Room) settleWithout(leaver int64) settlement {
	others := slices.DeleteFunc(r.ActivePlayers(), func(id int64) bool { return id == leaver })
	reports := r.activeReports(others)
	var ranked []Placement
	switch {
	case r.Status != Started || len(others) == 0:
	case (r.Pot > 0 || r.isMatch()) && len(others) == 1:
		ranked = []Placement{{UserID: others[0], Place: 1}}
	case len(reports) == len(others): // they agree, else the room is disputed
		ranked = rankAmong(reports[0].Placements, others)
	}
	if ranked == nil {
		return settlement{users: r.seatedUsers(), roomVersion: r.Version, consumer: r.consumer}
	}
	left := *r
	left.Seats = slices.Clone(r.Seats)
	for i := range left.Seats {
		if left.Seats[i].UserID == leaver {
			left.Seats[i].State = SeatForfeited
		}
	}
	return left.computeSettlement(ranked)
}

// encodePlacements returns placements with the amounts that they get as one text; without amounts
// their place in it is empty. Two results of a room are the same when their texts are equal.
func encodePlacements(list []Placement, amounts []wallet.Units) string {
	var b []byte
	for i, p := range list {
		b = strconv.AppendInt(b, p.UserID, 10)
		b = strconv.AppendInt(append(b, ':'), int64(p.Place), 10)
		if b = append(b, ':'); amounts != nil {
			b = strconv.AppendInt(b, int64(amounts[i]), 10)
		}
		if b = append(b, ':'); p.Score != nil {
			score, err := wire.Marshal(*p.Score)
			if err != nil {
				panic("rooms: encode a score: " + err.Error()) // a score that is not finite; JSON has none
			}
			b = append(b, score...)
		}
		b = append(b, ';')
	}
	return string(b)
}
