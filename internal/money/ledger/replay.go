package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/store/keys"
)

// Balances are minor units by code of the token.
type Balances = map[string]int64

// totalOf is the total that a kind of account is summed up in; what was minted has the other sign.
var totalOf = map[string]string{
	keys.AccountWallet: keys.TotalWallets, keys.AccountEscrow: keys.TotalEscrow,
	keys.AccountPrizes: keys.TotalPrizes, keys.AccountHouse: keys.TotalHouse, keys.AccountMint: keys.TotalMinted,
}

// Totals are the sums of all accounts of a kind: by code of the token, then by name of the total.
type Totals map[string]Balances

// Add adds the postings of an entry. Accounts of an unknown kind are totals of their own.
func (t Totals) Add(e Entry) {
	for _, p := range e.Postings {
		if p.Invalid != "" {
			continue
		}
		units := p.Units
		if p.Kind == keys.AccountMint {
			units = -units
		}
		addTo(t, e.Code, cmp.Or(totalOf[p.Kind], p.Kind), units)
	}
}

// AddFolded is Add without accounts of an unknown kind and without minted units, because the
// scripts that mint count these.
func (t Totals) AddFolded(e Entry) {
	for _, p := range e.Postings {
		if total, ok := totalOf[p.Kind]; ok && p.Kind != keys.AccountMint {
			addTo(t, e.Code, total, p.Units)
		}
	}
}

// Difference is a total that is not the same in two Totals.
type Difference struct {
	Code, Total string // of the token; name of the total
	Has, Wants  int64  // minor units
}

// Compare returns the totals that differ from those of want. One that is missing is 0.
func (t Totals) Compare(want Totals) []Difference {
	var differences []Difference
	for _, code := range unionOfKeys(t, want) {
		for _, total := range unionOfKeys(t[code], want[code]) {
			if has, wants := t[code][total], want[code][total]; has != wants {
				differences = append(differences, Difference{code, total, has, wants})
			}
		}
	}
	return differences
}

// unionOfKeys returns the keys that are in either map, sorted.
func unionOfKeys[K cmp.Ordered, V any](a, b map[K]V) []K {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// AddBounded returns a + b, and the largest or smallest int64 where that is out of its range: sums
// over many games may be.
func AddBounded[N ~int64](a, b N) N {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}

// Stakes are what a room holds of one token.
type Stakes struct {
	Escrow int64           // minor units
	ByUser map[int64]int64 // minor units that each player has staked and may still get back
}

// RoomToken names the stakes of one token in a room.
type RoomToken struct{ RoomID, Code string }

// Replay is the state of all accounts of a game by its ledger, up to an entry.
type Replay struct {
	Number  int64                 // of that entry
	Wallets map[int64]Balances    // what each player can spend, by user id
	Others  map[string]Balances   // by kind of account
	Rooms   map[RoomToken]*Stakes // rooms with something in escrow
	Defects []Defect
}

// Defect is an entry that is not as it must be.
type Defect struct {
	Code          string // of the token; "" when it is unknown
	Stored, Wants string // texts
}

// NewReplay returns the state before the first entry.
func NewReplay() *Replay {
	return &Replay{Wallets: map[int64]Balances{}, Others: map[string]Balances{}, Rooms: map[RoomToken]*Stakes{}}
}

// AddDefect notes what is wrong with the ledger.
func (r *Replay) AddDefect(code, stored, wants string) {
	r.Defects = append(r.Defects, Defect{Code: code, Stored: stored, Wants: wants})
}

// Apply adds the postings of the next entry, which must sum to zero.
func (r *Replay) Apply(e Entry) {
	if e.Number != r.Number+1 {
		r.AddDefect(e.Code, fmt.Sprintf("entry %d", e.Number), fmt.Sprintf("entry %d", r.Number+1))
	}
	r.Number = e.Number
	var sum, escrow int64
	for _, p := range e.Postings {
		userID, isPlayer := p.UserID()
		if p.Invalid != "" || p.Kind == keys.AccountWallet && !isPlayer {
			r.AddDefect(e.Code, p.Invalid+p.Account, "a posting")
			continue
		}
		sum += p.Units
		if isPlayer {
			addTo(r.Wallets, userID, e.Code, p.Units)
			continue
		}
		addTo(r.Others, p.Kind, e.Code, p.Units)
		if p.Kind == keys.AccountEscrow {
			escrow += p.Units
		}
	}
	if sum != 0 {
		r.AddDefect(e.Code, "entry "+strconv.FormatInt(e.Number, 10)+" sums to "+strconv.FormatInt(sum, 10), "0")
	}
	if escrow != 0 {
		r.moveStakes(e, escrow)
	}
}

// moveStakes adds what came into the escrow of a room, or left it, to the stakes there. When
// nothing is left the room has ended, and with it every stake.
func (r *Replay) moveStakes(e Entry, escrow int64) {
	room := r.Room(e.Ref, e.Code)
	if room.Escrow += escrow; room.Escrow == 0 {
		delete(r.Rooms, RoomToken{e.Ref, e.Code})
		return
	}
	for _, p := range e.Postings {
		userID, isPlayer := p.UserID()
		if !isPlayer || (p.Units < 0) != (escrow > 0) { // in a stake players pay, in a refund they get
			continue
		}
		if room.ByUser[userID] = max(0, room.ByUser[userID]-p.Units); room.ByUser[userID] == 0 {
			delete(room.ByUser, userID)
		}
	}
}

// Totals returns the sums of all accounts.
func (r *Replay) Totals() Totals {
	all := Totals{}
	for _, balances := range r.Wallets {
		for code, units := range balances {
			addTo(all, code, keys.TotalWallets, units)
		}
	}
	for kind, balances := range r.Others {
		for code, units := range balances {
			if kind == keys.AccountMint {
				units = -units
			}
			addTo(all, code, cmp.Or(totalOf[kind], kind), units)
		}
	}
	return all
}

// Held returns what each player has staked, by user id.
func (r *Replay) Held() map[int64]Balances {
	held := map[int64]Balances{}
	for name, room := range r.Rooms {
		for userID, units := range room.ByUser {
			addTo(held, userID, name.Code, units)
		}
	}
	return held
}

// addTo adds units to one token of one account.
func addTo[K comparable](accounts map[K]Balances, name K, code string, units int64) {
	if accounts[name] == nil {
		accounts[name] = Balances{}
	}
	accounts[name][code] += units
}

// Set sets one total.
func (t Totals) Set(code, total string, units int64) {
	addTo(t, code, total, 0)
	t[code][total] = units
}

// Clone returns a copy; nil becomes empty totals.
func (t Totals) Clone() Totals {
	c := make(Totals, len(t))
	for code, of := range t {
		c[code] = maps.Clone(of)
	}
	return c
}

// Room returns the stakes of a token in a room, which it adds when there are none.
func (r *Replay) Room(roomID, code string) *Stakes {
	name := RoomToken{roomID, code}
	if r.Rooms[name] == nil {
		r.Rooms[name] = &Stakes{ByUser: map[int64]int64{}}
	}
	return r.Rooms[name]
}

// AddToWallet adds units to what a player can spend.
func (r *Replay) AddToWallet(userID int64, code string, units int64) {
	addTo(r.Wallets, userID, code, units)
}

// Add adds units to an account of no player.
func (r *Replay) Add(kind, code string, units int64) { addTo(r.Others, kind, code, units) }
