package wallet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report says whether money is conserved: for every token minted == wallets + escrow + house.
type Report struct {
	Balanced  bool         `json:"balanced"`
	Tokens    []TokenTotal `json:"tokens"`
	CheckedAt time.Time    `json:"checkedAt"`
}

// TokenTotal is where the units of one token are. Totals may pass what a browser's number holds, so each has its minor
// units beside it.
type TokenTotal struct {
	TokenID       string `json:"tokenId"`
	Minted        Amount `json:"minted"`
	MintedAmount  Units  `json:"mintedAmount,string"`
	Wallets       Amount `json:"wallets"` // what players can spend
	WalletsAmount Units  `json:"walletsAmount,string"`
	Escrow        Amount `json:"escrow"` // stakes in rooms that have not ended
	EscrowAmount  Units  `json:"escrowAmount,string"`
	House         Amount `json:"house"` // takings from purchases and rake
	HouseAmount   Units  `json:"houseAmount,string"`
	Delta         Amount `json:"delta"` // minted - wallets - escrow - house; anything but 0 is a fault of Parlor
	DeltaAmount   Units  `json:"deltaAmount,string"`
}

// DeepReport is what a recount found.
type DeepReport struct {
	Report
	Entries     int64        `json:"entries"`     // ledger entries replayed
	Wallets     int          `json:"wallets"`     // wallets recounted
	HeldCounted bool         `json:"heldCounted"` // false when the store was too busy to sum up what is held at one instant
	Differences []Difference `json:"differences"`
}

// Difference is an account that is not what the ledger says.
type Difference struct {
	Account string `json:"account"` // "w:<user>", "h", "m", "wallets", "escrow", "held", or "ledger" for an entry
	TokenID string `json:"tokenId"`
	Stored  string `json:"stored"`
	Counted string `json:"counted"` // what the ledger, or the sum of the wallets, says instead
}

// report weighs the totals of one instant.
func (s *Service) report(ctx context.Context, t totals) (Report, error) {
	tokens, err := s.lookup(ctx, slices.Collect(maps.Keys(t.accounts))...)
	if err != nil {
		return Report{}, err
	}
	r := Report{Balanced: true, Tokens: make([]TokenTotal, 0, len(t.accounts)), CheckedAt: time.Now().UTC()}
	for code, a := range t.accounts {
		of := tokens[code]
		delta := a["minted"] - a["wallets"] - a["escrow"] - a["house"]
		if delta != 0 || min(a["minted"], a["wallets"], a["escrow"], a["house"]) < 0 {
			r.Balanced = false
		}
		r.Tokens = append(r.Tokens, TokenTotal{
			TokenID: code,
			Minted:  of.Amount(a["minted"]), MintedAmount: a["minted"],
			Wallets: of.Amount(a["wallets"]), WalletsAmount: a["wallets"],
			Escrow: of.Amount(a["escrow"]), EscrowAmount: a["escrow"],
			House: of.Amount(a["house"]), HouseAmount: a["house"],
			Delta: of.Amount(delta), DeltaAmount: delta,
		})
	}
	slices.SortFunc(r.Tokens, func(a, b TokenTotal) int {
		return cmp.Or(cmp.Compare(tokens[a.TokenID].ID, tokens[b.TokenID].ID), cmp.Compare(a.TokenID, b.TokenID))
	})
	return r, nil
}

// A busy store is swept this often in the hope of an instant at which no money moved, to sum up what is held.
const deepSweeps = 5

// AuditDeep replays the ledger from its first entry, recounts every wallet, and compares both with the totals.
//
// It needs no standstill: wallets are read together with the ledger's number, and the replay is brought exactly there
// before they are compared. Only the sum of what is held needs one instant for all wallets, so it is tried a few times.
func (s *Service) AuditDeep(ctx context.Context) (DeepReport, error) {
	re := replay{wallets: map[string]map[string]Units{}, others: map[string]map[string]Units{}}
	var d DeepReport
	for range deepSweeps {
		d = DeepReport{Differences: []Difference{}}
		first, held, err := s.sweep(ctx, &re, &d)
		if err != nil {
			return DeepReport{}, err
		}
		t, err := s.store.totals(ctx)
		if err != nil {
			return DeepReport{}, err
		}
		if err := s.advance(ctx, &re, t.seq); err != nil {
			return DeepReport{}, err
		}
		if d.Report, err = s.report(ctx, t); err != nil {
			return DeepReport{}, err
		}
		d.HeldCounted = t.seq == first
		re.compareTotals(&d, t, held)
		if d.HeldCounted {
			break
		}
	}
	d.Entries = re.seq
	d.Differences = append(d.Differences, re.faults...)
	d.Balanced = d.Balanced && len(d.Differences) == 0
	return d, nil
}

// sweep compares every wallet with the replay. It answers the number of the ledger at its start and the sums of what is held.
func (s *Service) sweep(ctx context.Context, re *replay, d *DeepReport) (first int64, held map[string]Units, err error) {
	counted := map[string]bool{}
	held = map[string]Units{}
	first = -1
	count := func(users []string) error {
		users = slices.DeleteFunc(users, func(user string) bool { return counted[user] })
		at, err := s.store.snapshot(ctx, users)
		if err != nil {
			return err
		}
		if err := s.advance(ctx, re, at.seq); err != nil {
			return err
		}
		if first < 0 {
			first = at.seq
		}
		for _, user := range users {
			counted[user] = true
			re.compareWallet(d, user, at.purses[user])
			for code, p := range at.purses[user] {
				held[code] += p.held
			}
		}
		return nil
	}
	for cursor := "0"; ; {
		users, next, err := s.store.scanWallets(ctx, cursor)
		if err != nil {
			return 0, nil, err
		}
		if err := count(users); err != nil {
			return 0, nil, err
		}
		if cursor = next; cursor == "0" {
			break
		}
	}
	// Whom the ledger knows and the scan did not find: wallets made meanwhile, and lost ones.
	for users := range slices.Chunk(slices.Collect(maps.Keys(re.wallets)), 1000) {
		if err := count(users); err != nil {
			return 0, nil, err
		}
	}
	d.Wallets = len(counted)
	return first, held, nil
}

func (s *Service) advance(ctx context.Context, re *replay, to int64) error {
	for re.seq < to {
		entries, err := s.store.entries(ctx, re.seq, to)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			re.fault("ledger", "", "nothing after "+strconv.FormatInt(re.seq, 10), "entries up to "+strconv.FormatInt(to, 10))
			re.seq = to
		}
		for _, e := range entries {
			re.apply(e)
		}
	}
	return nil
}

// replay is what the ledger says, up to entry number seq.
type replay struct {
	seq     int64
	wallets map[string]map[string]Units // user → token → units
	others  map[string]map[string]Units // "m", "h" and "e", all rooms together → token → units
	faults  []Difference                // of the ledger itself
}

func (re *replay) fault(account, token, stored, counted string) {
	re.faults = append(re.faults, Difference{Account: account, TokenID: token, Stored: stored, Counted: counted})
}

// apply books one entry: postings "<account>:<±units>" joined by ";", which must sum to zero.
func (re *replay) apply(e entry) {
	if e.seq != re.seq+1 {
		re.fault("ledger", e.token, "entry "+strconv.FormatInt(e.seq, 10), "entry "+strconv.FormatInt(re.seq+1, 10))
	}
	re.seq = e.seq
	var sum Units
	for posting := range strings.SplitSeq(e.post, ";") {
		if posting == "" {
			continue // something free
		}
		colon := strings.LastIndexByte(posting, ':')
		units, err := ParseUnits(posting[colon+1:])
		if err != nil || colon < 1 {
			re.fault("ledger", e.token, posting, "a posting")
			continue
		}
		sum += units
		account := posting[:colon]
		kind, owner, _ := strings.Cut(account, ":")
		book, name := re.others, kind
		if kind == "w" {
			book, name = re.wallets, owner
		}
		if book[name] == nil {
			book[name] = map[string]Units{}
		}
		book[name][e.token] += units
	}
	if sum != 0 {
		re.fault("ledger", e.token, "entry "+strconv.FormatInt(e.seq, 10)+" sums to "+sum.String(), "0")
	}
}

func (re *replay) compareWallet(d *DeepReport, user string, purse map[string]pocket) {
	differ := func(code string, stored, counted Units) {
		d.Differences = append(d.Differences, Difference{Account: "w:" + user, TokenID: code, Stored: stored.String(), Counted: counted.String()})
	}
	for code, p := range purse {
		if counted := re.wallets[user][code]; p.free != counted {
			differ(code, p.free, counted)
		}
		if p.free < 0 || p.held < 0 {
			differ(code, min(p.free, p.held), 0)
		}
	}
	for code, counted := range re.wallets[user] {
		if _, ok := purse[code]; !ok && counted != 0 {
			differ(code, 0, counted)
		}
	}
}

func (re *replay) compareTotals(d *DeepReport, t totals, held map[string]Units) {
	counted := map[string]map[string]Units{} // token → account → units
	book := func(code, account string, units Units) {
		if counted[code] == nil {
			counted[code] = map[string]Units{}
		}
		counted[code][account] += units
	}
	for _, purse := range re.wallets {
		for code, units := range purse {
			book(code, "wallets", units)
		}
	}
	for kind, units := range re.others {
		for code, u := range units {
			switch kind {
			case "m":
				book(code, "minted", -u)
			case "h":
				book(code, "house", u)
			case "e":
				book(code, "escrow", u)
			default:
				book(code, kind, u)
			}
		}
	}
	for code := range t.accounts {
		book(code, "wallets", 0)
	}
	for code := range counted {
		names := map[string]bool{}
		for _, accounts := range []map[string]Units{counted[code], t.accounts[code]} {
			for name := range accounts {
				names[name] = true
			}
		}
		for name := range names {
			if stored, units := t.accounts[code][name], counted[code][name]; stored != units {
				d.Differences = append(d.Differences, Difference{Account: name, TokenID: code, Stored: stored.String(), Counted: units.String()})
			}
		}
		if escrow := t.accounts[code]["escrow"]; d.HeldCounted && held[code] != escrow {
			d.Differences = append(d.Differences, Difference{Account: "held", TokenID: code, Stored: held[code].String(), Counted: escrow.String()})
		}
	}
}
