package rooms_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
	"pgregory.net/rapid"
)

// TestTheStoreHasThePayoutsOfTheContract finishes rooms of any entry up to the largest pot, with
// any table, rake and ties, and compares what the script has posted with what the contract says
// about it, in fractions: the places that are reached share the pot less the rake in proportion
// to their weights, rounded down; the units left over go to the largest fractions, of equal ones
// to the better place; tied players divide what their places get, the units left over to the
// earliest.
func TestTheStoreHasThePayoutsOfTheContract(t *testing.T) {
	check := func(t *testing.T, db *redisdb.DB) {
		rapid.Check(t, func(rt *rapid.T) {
			f := newCase(t, db)
			n := rapid.IntRange(1, 6).Draw(rt, "players")
			most := int64(wallet.MaxUnits) / int64(n)
			entry := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, most), rapid.Int64Range(most-5, most)).
				Draw(rt, "entry")
			var payout []int // may have more places than are reached, and places without a weight
			left := 10_000
			for len(payout) < n-1 && left > 0 && rapid.Bool().Draw(rt, "another place") {
				payout = append(payout, rapid.IntRange(0, left).Draw(rt, "weight"))
				left -= payout[len(payout)-1]
			}
			payout = append(payout, left)
			rakeBps := rapid.SampledFrom([]int{0, 1, 333, 9_999, 10_000}).Draw(rt, "rake")
			in := rooms.CreateInput{
				EntryTokenID: f.token.ID, RoomEntry: wallet.AmountInput(wallet.Units(entry).Decimal(2)), MaxPlayers: n,
				MinPlayers: new(1), PayoutBps: payout, RakeBps: &rakeBps,
			}
			players := []principal.Caller{f.newPlayer(entry)}
			room := must(t)(f.service.Create(t.Context(), players[0], in, noKey))
			for len(players) < n {
				players = append(players, f.newPlayer(entry))
				must(t)(f.service.Join(t.Context(), players[len(players)-1], room.RoomID, noKey))
			}
			must(t)(f.service.Start(t.Context(), f.Server(), room.RoomID, noKey))
			leavers := 0
			if n > 2 {
				leavers = rapid.IntRange(0, n-2).Draw(rt, "leavers") // so that fewer places are reached
			}
			for _, p := range players[:leavers] {
				must(t)(f.service.Leave(t.Context(), p, room.RoomID, noKey))
			}
			var placements []rooms.Placement
			place := map[int64]int{}
			order := rapid.Permutation(players[leavers:]).Draw(rt, "order")
			for i, p := range order {
				place[p.UserID] = i + 1
				if i > 0 && rapid.Bool().Draw(rt, "tied") {
					place[p.UserID] = place[order[i-1].UserID]
				}
				placements = append(placements, rooms.Placement{UserID: p.UserID, Place: place[p.UserID]})
			}
			must(t)(f.service.Finish(t.Context(), f.Server(), room.RoomID, placements, noKey))

			pot := new(big.Int).Mul(big.NewInt(entry), big.NewInt(int64(n)))
			rake := new(big.Int).Mul(pot, big.NewInt(int64(rakeBps)))
			rake.Quo(rake, big.NewInt(10_000))
			want := map[string]string{"e:": "-" + pot.String()}
			if rake.Sign() > 0 {
				want["h:"] = rake.String()
			}
			shares := contractShares(new(big.Int).Sub(pot, rake), payout, len(order))
			for first := range order {
				if first > 0 && place[order[first].UserID] == place[order[first-1].UserID] {
					continue
				}
				tied, sum := []int{}, new(big.Int) // indexes of players: their seating order
				for i, p := range players {
					if place[p.UserID] == first+1 {
						tied = append(tied, i)
						sum.Add(sum, shares[first+len(tied)-1])
					}
				}
				part, rest := new(big.Int).QuoRem(sum, big.NewInt(int64(len(tied))), new(big.Int))
				for i, player := range tied {
					units := new(big.Int).Set(part)
					if int64(i) < rest.Int64() {
						units.Add(units, big.NewInt(1))
					}
					if units.Sign() > 0 {
						want[fmt.Sprintf("w%d:", players[player].UserID)] = units.String()
					}
				}
			}
			entries := db.Client.LRange(t.Context(), keys.Ledger(f.GameID), -1, -1).Val()
			got := map[string]string{}
			for posting := range strings.SplitSeq(entries[0][strings.LastIndex(entries[0], "|")+1:], ";") {
				account, units, _ := strings.Cut(posting, ":")
				got[account+":"] = units
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("%d of %d by %v, rake %d: the ledger has %v, want %v", n, entry, payout, rakeBps, got, want)
			}
			f.requireBooksBalance()
		})
	}
	check(t, redistest.Single(t))
}

// contractShares divides units among places by their weights, as the contract says.
func contractShares(net *big.Int, weights []int, places int) []*big.Int {
	shares, fractions := make([]*big.Int, places), make([]*big.Rat, places)
	all := int64(0)
	for _, weight := range weights[:min(len(weights), places)] {
		all += int64(weight)
	}
	left := new(big.Int).Set(net)
	for i := range places {
		exact := new(big.Rat)
		switch {
		case all == 0 && i == 0:
			exact.SetInt(net)
		case all > 0 && i < len(weights):
			exact.SetFrac(new(big.Int).Mul(net, big.NewInt(int64(weights[i]))), big.NewInt(all))
		}
		shares[i] = new(big.Int).Quo(exact.Num(), exact.Denom())
		fractions[i] = exact.Sub(exact, new(big.Rat).SetInt(shares[i]))
		left.Sub(left, shares[i])
	}
	byFraction := make([]int, places)
	for i := range byFraction {
		byFraction[i] = i
	}
	slices.SortStableFunc(byFraction, func(a, b int) int { return fractions[b].Cmp(fractions[a]) })
	for _, i := range byFraction[:left.Int64()] {
		shares[i].Add(shares[i], big.NewInt(1))
	}
	return shares
}
