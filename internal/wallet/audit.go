package wallet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Report shows whether money is conserved: for every token minted == wallets + escrow + house, and
// none of them is negative.
type Report struct {
	Balanced  bool         `json:"balanced"`
	Tokens    []TokenTotal `json:"tokens"`    // by token id
	CheckedAt time.Time    `json:"checkedAt"` // UTC
}

// TokenTotal shows where the units of one token are. Totals may be larger than a browser's number
// holds exactly, so each has its minor units beside it.
type TokenTotal struct {
	TokenCode    string `json:"tokenId"` // code of the token
	Minted       Amount `json:"minted"`  // what was brought in, less what was taken out
	MintedUnits  Units  `json:"mintedAmount,string"`
	Wallets      Amount `json:"wallets"` // what players can spend
	WalletsUnits Units  `json:"walletsAmount,string"`
	Escrow       Amount `json:"escrow"` // stakes in rooms that have not ended
	EscrowUnits  Units  `json:"escrowAmount,string"`
	House        Amount `json:"house"` // the operator's account: income from purchases and rake
	HouseUnits   Units  `json:"houseAmount,string"`
	Delta        Amount `json:"delta"` // minted - wallets - escrow - house; anything but 0 is a defect of Parlor
	DeltaUnits   Units  `json:"deltaAmount,string"`
}

// DeepReport is a Report with the results of a recount.
type DeepReport struct {
	Report
	Entries     int64        `json:"entries"`     // ledger entries replayed
	Wallets     int          `json:"wallets"`     // wallets recounted
	HeldCounted bool         `json:"heldCounted"` // false: money always moved while the held stakes were summed up
	Differences []Difference `json:"differences"` // empty when all accounts are as the ledger has them
}

// Difference is an account that differs from the ledger.
type Difference struct {
	Account   string `json:"account"` // "w:<user>", a total, "held", or "ledger" for a defect of the ledger itself
	TokenCode string `json:"tokenId"` // code of the token
	Stored    string `json:"stored"`  // minor units; for "ledger" a text
	Counted   string `json:"counted"` // minor units by the ledger or the sum of the wallets; for "ledger" a text
}

// Audit compares the running totals. It reads one hash that every money script keeps, so it is
// exact at every instant and takes the same time however many players there are.
func (s *Service) Audit(ctx context.Context) (Report, error) {
	t, err := s.store.readTotals(ctx)
	if err != nil {
		return Report{}, err
	}
	return s.reportOf(ctx, t)
}

// reportOf compares the totals of one instant.
func (s *Service) reportOf(ctx context.Context, t totals) (Report, error) {
	tokens, err := s.findTokens(ctx, slices.Collect(maps.Keys(t.tokens))...)
	if err != nil {
		return Report{}, err
	}
	r := Report{Balanced: true, Tokens: make([]TokenTotal, 0, len(t.tokens)), CheckedAt: time.Now().UTC()}
	for code, of := range t.tokens {
		token := tokens[code]
		minted, wallets, escrow, house := of[totalMinted], of[totalWallets], of[totalEscrow], of[totalHouse]
		delta := minted - wallets - escrow - house
		if delta != 0 || min(wallets, escrow, house) < 0 {
			r.Balanced = false
		}
		r.Tokens = append(r.Tokens, TokenTotal{
			TokenCode: code,
			Minted:    token.AmountOf(minted), MintedUnits: minted,
			Wallets: token.AmountOf(wallets), WalletsUnits: wallets,
			Escrow: token.AmountOf(escrow), EscrowUnits: escrow,
			House: token.AmountOf(house), HouseUnits: house,
			Delta: token.AmountOf(delta), DeltaUnits: delta,
		})
	}
	slices.SortFunc(r.Tokens, func(a, b TokenTotal) int {
		return cmp.Or(cmp.Compare(tokens[a.TokenCode].ID, tokens[b.TokenCode].ID), cmp.Compare(a.TokenCode, b.TokenCode))
	})
	return r, nil
}

// maxRecounts is how often a busy store is recounted, in search of a time without changes in which
// the held stakes can be summed up.
const maxRecounts = 5

// AuditDeep replays the ledger from its first entry, recounts every wallet, and compares both with
// the totals.
//
// Money may move meanwhile: wallets are read together with the number of the last ledger entry, and
// the replay is brought to exactly that entry before they are compared. Only the sum of held stakes
// needs one instant for all wallets, so it is tried a few times.
func (s *Service) AuditDeep(ctx context.Context) (DeepReport, error) {
	re := ledgerReplay{wallets: map[string]map[string]Units{}, others: map[string]map[string]Units{}}
	var d DeepReport
	for range maxRecounts {
		d = DeepReport{Differences: []Difference{}}
		counted, err := s.recountWallets(ctx, &re, &d)
		if err != nil {
			return DeepReport{}, err
		}
		t, err := s.store.readTotals(ctx)
		if err != nil {
			return DeepReport{}, err
		}
		if err := s.replayTo(ctx, &re, t.sequence); err != nil {
			return DeepReport{}, err
		}
		if d.Report, err = s.reportOf(ctx, t); err != nil {
			return DeepReport{}, err
		}
		d.HeldCounted = t.sequence == counted.firstSequence
		re.compareTotals(&d, t)
		if d.HeldCounted {
			compareHeld(&d, t, counted.held)
			break
		}
	}
	d.Entries = re.sequence
	d.Differences = append(d.Differences, re.defects...)
	d.Balanced = d.Balanced && len(d.Differences) == 0
	return d, nil
}

// recount is the result of reading all wallets once.
type recount struct {
	firstSequence   int64            // number of the last ledger entry when the first wallets were read
	held            map[string]Units // sum of the held stakes by token
	comparedUserIDs map[string]bool  // user ids of the wallets that were compared
}

// recountWallets compares every wallet with the replay.
func (s *Service) recountWallets(ctx context.Context, re *ledgerReplay, d *DeepReport) (recount, error) {
	c := recount{firstSequence: -1, held: map[string]Units{}, comparedUserIDs: map[string]bool{}}
	for cursor := scanStartCursor; ; {
		userIDs, next, err := s.store.scanWallets(ctx, cursor)
		if err != nil {
			return recount{}, err
		}
		if err := s.compareWallets(ctx, userIDs, re, &c, d); err != nil {
			return recount{}, err
		}
		if cursor = next; cursor == scanStartCursor {
			break
		}
	}
	// Wallets that the scan did not find: created meanwhile, or lost.
	for userIDs := range slices.Chunk(slices.Collect(maps.Keys(re.wallets)), scanPageSize) {
		if err := s.compareWallets(ctx, userIDs, re, &c, d); err != nil {
			return recount{}, err
		}
	}
	d.Wallets = len(c.comparedUserIDs)
	return c, nil
}

// compareWallets compares those wallets that have not been compared before.
func (s *Service) compareWallets(
	ctx context.Context, userIDs []string, re *ledgerReplay, c *recount, d *DeepReport,
) error {
	userIDs = slices.DeleteFunc(userIDs, func(userID string) bool { return c.comparedUserIDs[userID] })
	at, err := s.store.readSnapshot(ctx, userIDs)
	if err != nil {
		return err
	}
	if err := s.replayTo(ctx, re, at.sequence); err != nil {
		return err
	}
	if c.firstSequence < 0 {
		c.firstSequence = at.sequence
	}
	for _, userID := range userIDs {
		c.comparedUserIDs[userID] = true
		re.compareWallet(d, userID, at.wallets[userID])
		for code, b := range at.wallets[userID] {
			c.held[code] += b.held
		}
	}
	return nil
}

// replayTo replays the ledger up to an entry.
func (s *Service) replayTo(ctx context.Context, re *ledgerReplay, sequence int64) error {
	for re.sequence < sequence {
		entries, err := s.store.readEntries(ctx, re.sequence, sequence)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			re.addDefect("", fmt.Sprintf("nothing after %d", re.sequence), fmt.Sprintf("entries up to %d", sequence))
			re.sequence = sequence
		}
		for _, e := range entries {
			re.apply(e)
		}
	}
	return nil
}

// ledgerReplay is the state of all accounts by the ledger, up to an entry.
type ledgerReplay struct {
	sequence int64                       // number of that entry
	wallets  map[string]map[string]Units // user id → token → units
	others   map[string]map[string]Units // kind of account, all rooms together → token → units
	defects  []Difference                // of the ledger itself
}

func (re *ledgerReplay) addDefect(code, stored, counted string) {
	re.defects = append(re.defects, Difference{Account: "ledger", TokenCode: code, Stored: stored, Counted: counted})
}

// apply adds the postings of the next entry, which must sum to zero.
func (re *ledgerReplay) apply(e ledgerEntry) {
	if e.number != re.sequence+1 {
		re.addDefect(e.code, fmt.Sprintf("entry %d", e.number), fmt.Sprintf("entry %d", re.sequence+1))
	}
	re.sequence = e.number
	var sum Units
	for _, p := range e.postings {
		if p.invalid != "" {
			re.addDefect(e.code, p.invalid, "a posting")
			continue
		}
		sum += p.units
		accounts, name := re.others, p.kind
		if p.kind == accountWallet {
			accounts, name = re.wallets, p.owner
		}
		if accounts[name] == nil {
			accounts[name] = map[string]Units{}
		}
		accounts[name][e.code] += p.units
	}
	if sum != 0 {
		re.addDefect(e.code, "entry "+strconv.FormatInt(e.number, 10)+" sums to "+sum.String(), "0")
	}
}

func (d *DeepReport) addDifference(account, code string, stored, counted Units) {
	d.Differences = append(d.Differences,
		Difference{Account: account, TokenCode: code, Stored: stored.String(), Counted: counted.String()})
}

func (re *ledgerReplay) compareWallet(d *DeepReport, userID string, balances map[string]tokenBalance) {
	account := walletAccount(userID)
	for code, b := range balances {
		if counted := re.wallets[userID][code]; b.free != counted {
			d.addDifference(account, code, b.free, counted)
		}
		if b.free < 0 || b.held < 0 {
			d.addDifference(account, code, min(b.free, b.held), 0)
		}
	}
	for code, counted := range re.wallets[userID] {
		if _, ok := balances[code]; !ok && counted != 0 {
			d.addDifference(account, code, 0, counted)
		}
	}
}

// totals returns the totals by the ledger. Accounts of an unknown kind are totals of their own.
func (re *ledgerReplay) totals() map[string]tokenTotals {
	all := map[string]tokenTotals{}
	add := func(code, total string, units Units) {
		if all[code] == nil {
			all[code] = tokenTotals{}
		}
		all[code][total] += units
	}
	for _, balances := range re.wallets {
		for code, units := range balances {
			add(code, totalWallets, units)
		}
	}
	for kind, balances := range re.others {
		for code, units := range balances {
			switch kind {
			case accountMint:
				add(code, totalMinted, -units)
			case accountHouse:
				add(code, totalHouse, units)
			case accountEscrow:
				add(code, totalEscrow, units)
			default:
				add(code, kind, units)
			}
		}
	}
	return all
}

func (re *ledgerReplay) compareTotals(d *DeepReport, t totals) {
	counted := re.totals()
	for code := range union(t.tokens, counted) {
		for name := range union(t.tokens[code], counted[code]) {
			if stored, units := t.tokens[code][name], counted[code][name]; stored != units {
				d.addDifference(name, code, stored, units)
			}
		}
	}
}

// compareHeld compares the held stakes of all wallets with what is in escrow.
func compareHeld(d *DeepReport, t totals, held map[string]Units) {
	for code := range union(t.tokens, held) {
		if escrow := t.tokens[code][totalEscrow]; held[code] != escrow {
			d.addDifference("held", code, held[code], escrow)
		}
	}
}

// union returns the keys that are in either map.
func union[K comparable, A, B any](a map[K]A, b map[K]B) map[K]struct{} {
	all := map[K]struct{}{}
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	return all
}
