package wallet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/money/archive"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Report shows whether money is conserved: in every game and for every token minted == wallets +
// escrow + prizes + house, and none of them is negative.
type Report struct {
	// Balanced reports whether the sums agree and Stopped is empty.
	Balanced bool `json:"balanced"`
	// SumsAgree reports whether money is conserved in what the store has, whatever Stopped has.
	SumsAgree bool         `json:"sumsAgree"`
	Tokens    []TokenTotal `json:"tokens"`    // by token id
	Stopped   []Stopped    `json:"stopped"`   // empty while nodes know of nothing wrong
	CheckedAt time.Time    `json:"checkedAt"` // UTC
}

// decide sets Balanced from what was found.
func (r *Report) decide() { r.Balanced = r.SumsAgree && len(r.Stopped) == 0 }

// TokenTotal shows where the units of one token are, in one game or summed over all. Totals may be
// larger than a browser's number holds exactly, so each has its minor units beside it. A sum over
// games stops at 2^63-1.
type TokenTotal struct {
	TokenCode    string `json:"tokenId"` // code of the token
	Minted       Amount `json:"minted"`  // what was brought in, less what was taken out
	MintedUnits  Units  `json:"mintedAmount,string"`
	Wallets      Amount `json:"wallets"` // what players can spend
	WalletsUnits Units  `json:"walletsAmount,string"`
	Escrow       Amount `json:"escrow"` // stakes in rooms and fees in tournaments that have not ended
	EscrowUnits  Units  `json:"escrowAmount,string"`
	Prizes       Amount `json:"prizes"` // promised and not paid yet
	PrizesUnits  Units  `json:"prizesAmount,string"`
	House        Amount `json:"house"` // the operator's account: income from purchases and rake, less prizes
	HouseUnits   Units  `json:"houseAmount,string"`
	Delta        Amount `json:"delta"` // minted less all of these; a defect of Parlor unless it is 0
	DeltaUnits   Units  `json:"deltaAmount,string"`
}

// DeepReport is a Report with the results of a recount.
type DeepReport struct {
	Report
	Entries     int64        `json:"entries"`     // ledger entries replayed, without those in a checkpoint
	Wallets     int          `json:"wallets"`     // wallets recounted
	HeldCounted bool         `json:"heldCounted"` // false: money always moved while the held stakes were summed up
	Differences []Difference `json:"differences"` // empty when all accounts are as the ledger has them
}

// Difference is an account that differs from the ledger.
type Difference struct {
	GameID int64 `json:"gameId"`
	// "w<user>", "lines of w<user>", a total, "held", or "ledger" for a defect of the ledger itself
	Account   string `json:"account"`
	TokenCode string `json:"tokenId"` // code of the token
	Stored    string `json:"stored"`  // minor units; for "ledger" a text
	Counted   string `json:"counted"` // minor units by the ledger or the sum of the wallets; for "ledger" a text
}

// Audit compares the totals of a game, of every game when gameID is 0; then tokens are summed. The
// totals that were folded from the ledger, the entries that were not folded yet and what was minted
// are read at one instant of the game, so the report is exact at every instant and takes the same
// time however many players there are. Then it reads what nodes noticed: halts and losses.
func (s *Service) Audit(ctx context.Context, gameID int64) (Report, error) {
	games, err := s.store.listGames(ctx, gameID)
	if err != nil {
		return Report{}, err
	}
	all, err := s.store.readTotals(ctx, games)
	if err != nil {
		return Report{}, err
	}
	return s.reportOf(ctx, gameID, all)
}

// reportOf compares the totals of games and sums them up, and reads why their money is stopped.
// gameID is that of the audit.
func (s *Service) reportOf(ctx context.Context, gameID int64, games []totals) (Report, error) {
	r := Report{SumsAgree: true, CheckedAt: time.Now().UTC()}
	sums := map[string]tokenTotals{}
	for _, game := range games {
		if game.defect != nil {
			slog.ErrorContext(ctx, "the money of a game cannot be counted", "game", game.gameID, "error", game.defect)
		}
		if game.defect != nil || game.folded > game.sequence { // the ledger has lost entries
			r.SumsAgree = false
		}
		for code, of := range game.tokens {
			if deltaOf(of) != 0 || min(of[totalWallets], of[totalEscrow], of[totalPrizes], of[totalHouse]) < 0 {
				r.SumsAgree = false
			}
			if sums[code] == nil {
				sums[code] = tokenTotals{}
			}
			for total, units := range of {
				sums[code][total] = addUnits(sums[code][total], units)
			}
			sums[code][totalDelta] = addUnits(sums[code][totalDelta], deltaOf(of))
		}
	}
	tokens, err := s.findDefinitions(ctx, slices.Collect(maps.Keys(sums))...)
	if err != nil {
		return Report{}, err
	}
	r.Tokens = make([]TokenTotal, 0, len(sums))
	for code, of := range sums {
		amount := tokens[code].AmountOf
		r.Tokens = append(r.Tokens, TokenTotal{
			TokenCode: code,
			Minted:    amount(of[totalMinted]), MintedUnits: of[totalMinted],
			Wallets: amount(of[totalWallets]), WalletsUnits: of[totalWallets],
			Escrow: amount(of[totalEscrow]), EscrowUnits: of[totalEscrow],
			Prizes: amount(of[totalPrizes]), PrizesUnits: of[totalPrizes],
			House: amount(of[totalHouse]), HouseUnits: of[totalHouse],
			Delta: amount(of[totalDelta]), DeltaUnits: of[totalDelta],
		})
	}
	slices.SortFunc(r.Tokens, func(a, b TokenTotal) int {
		return cmp.Or(cmp.Compare(tokens[a.TokenCode].ID, tokens[b.TokenCode].ID), cmp.Compare(a.TokenCode, b.TokenCode))
	})
	if r.Stopped, err = readStopped(ctx, s.store.db, gameID); err != nil {
		return Report{}, err
	}
	r.decide()
	return r, nil
}

// ledgerAccount is the account of a defect of the ledger itself.
const ledgerAccount = "ledger"

// totalDelta is what is missing, summed over games; no store has it.
const totalDelta = "delta"

// deltaOf returns what was minted and is nowhere.
func deltaOf(of tokenTotals) Units {
	return of[totalMinted] - of[totalWallets] - of[totalEscrow] - of[totalPrizes] - of[totalHouse]
}

// maxRecounts is how often a busy game is recounted, in search of a time without changes in which
// the held stakes can be summed up.
const maxRecounts = 5

// AuditDeep replays the ledger of a game, recounts every wallet and looks at the players' last
// lines, and compares all of that with the totals; of every game when gameID is 0. With an archive
// it starts with the last checkpoint there, else with the first entry.
//
// Money may move meanwhile: wallets are read together with the number of the last ledger entry, and
// the replay is brought to exactly that entry before they are compared. Only the sum of held stakes
// needs one instant for all wallets, so it is tried a few times.
func (s *Service) AuditDeep(ctx context.Context, gameID int64) (DeepReport, error) {
	return s.auditDeep(ctx, gameID, false)
}

// AuditFull is AuditDeep from the first entry of the ledger, with what is in the archive.
func (s *Service) AuditFull(ctx context.Context, gameID int64) (DeepReport, error) {
	return s.auditDeep(ctx, gameID, true)
}

func (s *Service) auditDeep(ctx context.Context, gameID int64, full bool) (DeepReport, error) {
	games, err := s.store.listGames(ctx, gameID)
	if err != nil {
		return DeepReport{}, err
	}
	players, err := s.store.listWallets(ctx, gameID)
	if err != nil {
		return DeepReport{}, err
	}
	sum := DeepReport{HeldCounted: true, Differences: []Difference{}}
	all := make([]totals, 0, len(games))
	for _, id := range games {
		a := gameAudit{Service: s, gameID: id, players: players[id], replay: ledger.NewReplay()}
		err := a.start(ctx, full)
		if err == nil {
			err = a.run(ctx)
		}
		switch {
		case redisdb.IsWrongType(err): // the other games are counted
			a.totals.defect, a.heldCounted = err, false
			a.differences = append(a.differences, Difference{GameID: id, Account: ledgerAccount, Stored: err.Error()})
		case err != nil:
			return DeepReport{}, err
		}
		all = append(all, a.totals)
		sum.Entries += a.replay.Number - a.checkpoint
		sum.Wallets += len(a.compared)
		sum.HeldCounted = sum.HeldCounted && a.heldCounted
		sum.Differences = append(sum.Differences, a.differences...)
	}
	if sum.Report, err = s.reportOf(ctx, gameID, all); err != nil {
		return DeepReport{}, err
	}
	sum.SumsAgree = sum.SumsAgree && len(sum.Differences) == 0
	sum.decide()
	return sum, nil
}

// gameAudit is the deep audit of one game.
type gameAudit struct {
	*Service
	gameID  int64
	players []int64 // who has a wallet
	replay  *ledger.Replay
	// checkpoint is the number of the entry with which the replay's checkpoint ends, 0 for none.
	checkpoint int64

	// What the last recount found.
	differences   []Difference
	totals        totals
	compared      map[int64]bool   // user ids of the wallets that were compared
	held          map[string]Units // sum of the held stakes by token
	firstSequence int64            // number of the last ledger entry when the first wallets were read
	heldCounted   bool
}

// start loads the last checkpoint of what has left the store, when there is one and not the full
// ledger is wanted.
func (a *gameAudit) start(ctx context.Context, full bool) error {
	ends, err := a.store.readLedgerEnds(ctx, []int64{a.gameID})
	if err != nil {
		return err
	}
	if a.store.archive == nil {
		if ends[0].sum != "" {
			return errNoArchive
		}
		return nil
	}
	if full {
		return nil
	}
	number, err := a.store.archive.LastCheckpoint(ctx, a.gameID, ends[0].base)
	if err != nil || number == 0 {
		return err
	}
	checkpoint, err := a.store.archive.ReadCheckpoint(ctx, a.gameID, number)
	if err != nil {
		return err
	}
	last, err := a.store.archive.ReadSegment(ctx, a.gameID, a.store.archive.FirstOf(number))
	if err != nil {
		return err
	}
	if last.Sum != checkpoint.Sum {
		return fmt.Errorf("the checkpoint of game %d at entry %d ends with another segment: %w",
			a.gameID, number, archive.ErrDamaged)
	}
	a.replay, a.checkpoint = checkpoint.Replay, number
	return nil
}

// run recounts the game, again when money moved meanwhile.
func (a *gameAudit) run(ctx context.Context) error {
	for range maxRecounts {
		a.differences, a.compared, a.held, a.firstSequence = nil, map[int64]bool{}, map[string]Units{}, -1
		if err := a.recount(ctx); err != nil {
			return err
		}
		if a.heldCounted {
			break
		}
	}
	if a.totals.folded > a.totals.sequence {
		a.replay.AddDefect("", fmt.Sprintf("%d entries", a.totals.sequence), fmt.Sprintf("%d in the totals", a.totals.folded))
	}
	for _, d := range a.replay.Defects {
		a.addDifference(ledgerAccount, d.Code, d.Stored, d.Wants)
	}
	return nil
}

func (a *gameAudit) recount(ctx context.Context) error {
	if err := a.compareWallets(ctx, a.players); err != nil {
		return err
	}
	// Wallets that the list lacks: created meanwhile, or lost.
	if err := a.compareWallets(ctx, slices.Collect(maps.Keys(a.replay.Wallets))); err != nil {
		return err
	}
	all, err := a.store.readTotals(ctx, []int64{a.gameID})
	if err != nil {
		return err
	}
	a.totals = all[0]
	if a.totals.defect != nil {
		return a.totals.defect
	}
	if err := a.replayTo(ctx, a.totals.sequence); err != nil {
		return err
	}
	a.compareTotals()
	if a.heldCounted = a.firstSequence < 0 || a.firstSequence == a.totals.sequence; a.heldCounted {
		a.compareHeld()
	}
	return nil
}

// compareWallets compares those wallets that have not been compared before.
func (a *gameAudit) compareWallets(ctx context.Context, userIDs []int64) error {
	for some := range slices.Chunk(userIDs, walletPageSize) {
		wanted := slices.DeleteFunc(slices.Clone(some), func(id int64) bool { return a.compared[id] })
		at, err := a.store.readSnapshot(ctx, a.gameID, wanted)
		if err != nil {
			return err
		}
		if err := a.replayTo(ctx, at.sequence); err != nil {
			return err
		}
		if a.firstSequence < 0 {
			a.firstSequence = at.sequence
		}
		for id, w := range at.wallets {
			a.compared[id] = true
			a.compareWallet(id, w.balances)
			if w.defect != nil {
				a.addDifference(walletAccount(id), "", w.defect.Error(), "a wallet and its lines")
				continue
			}
			if err := a.compareLines(ctx, id, w); err != nil {
				return err
			}
			for code, b := range w.balances {
				a.held[code] += b.held
			}
		}
	}
	return nil
}

// replayTo replays the ledger up to an entry.
func (a *gameAudit) replayTo(ctx context.Context, sequence int64) error {
	re := a.replay
	for re.Number < sequence {
		entries, err := a.store.readEntries(ctx, a.gameID, re.Number, sequence)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			re.AddDefect("", fmt.Sprintf("nothing after %d", re.Number), fmt.Sprintf("entries up to %d", sequence))
			re.Number = sequence
		}
		for _, e := range entries {
			re.Apply(e)
		}
	}
	return nil
}

func (a *gameAudit) addDifference(account, code, stored, counted string) {
	a.differences = append(a.differences,
		Difference{GameID: a.gameID, Account: account, TokenCode: code, Stored: stored, Counted: counted})
}

func (a *gameAudit) compareWallet(userID int64, balances map[string]tokenBalance) {
	account, counted := walletAccount(userID), a.replay.Wallets[userID]
	for code, b := range balances {
		if b.free != Units(counted[code]) {
			a.addDifference(account, code, b.free.String(), Units(counted[code]).String())
		}
		if b.free < 0 || b.held < 0 {
			a.addDifference(account, code, min(b.free, b.held).String(), "0")
		}
	}
	for code, units := range counted {
		if _, ok := balances[code]; !ok && units != 0 {
			a.addDifference(account, code, "0", Units(units).String())
		}
	}
}

// compareLines compares a wallet with the last line of each of its tokens, and the number of its
// last event with the last line.
func (a *gameAudit) compareLines(ctx context.Context, userID int64, w storedWallet) error {
	account := "lines of " + walletAccount(userID)
	last := map[string]tokenBalance{} // by code, of the lines that were read
	lines, place := w.newest, w.lineCount
	for {
		for _, entry := range slices.Backward(lines) {
			b, err := decodeLineBalance(entry)
			if err != nil {
				a.addDifference(account, "", err.Error(), "a line")
				return nil
			}
			if place == w.lineCount && len(last) == 0 && b.seq != w.seq {
				a.addDifference(account, "", fmt.Sprintf("event %d", w.seq), fmt.Sprintf("event %d", b.seq))
			}
			if _, later := last[b.code]; !later {
				last[b.code] = b.tokenBalance
			}
		}
		place -= int64(len(lines))
		if len(lines) == 0 || place == 0 || hasAll(last, w.balances) {
			break
		}
		var err error
		if lines, err = a.store.readLinesUpTo(ctx, a.gameID, userID, place); err != nil {
			return err
		}
	}
	if w.lineCount == 0 && w.base == 0 && w.seq != 0 {
		a.addDifference(account, "", fmt.Sprintf("event %d", w.seq), "no event")
	}
	for code := range union(last, w.balances) {
		line, ok := last[code]
		if ok && line != w.balances[code] || !ok && w.base == 0 {
			a.addDifference(account, code, w.balances[code].String(), line.String())
		}
	}
	return nil
}

// hasAll reports whether some has all the keys of all.
func hasAll[K comparable, A, B any](some map[K]A, all map[K]B) bool {
	for key := range all {
		if _, ok := some[key]; !ok {
			return false
		}
	}
	return true
}

func (b tokenBalance) String() string { return b.free.String() + " and " + b.held.String() + " held" }

func (a *gameAudit) compareTotals() {
	counted := a.replay.Totals()
	for code := range union(a.totals.tokens, counted) {
		for name := range union(a.totals.tokens[code], counted[code]) {
			if stored, units := a.totals.tokens[code][name], Units(counted[code][name]); stored != units {
				a.addDifference(name, code, stored.String(), units.String())
			}
		}
	}
}

// compareHeld compares the held stakes of all wallets with what is in escrow.
func (a *gameAudit) compareHeld() {
	for code := range union(a.totals.tokens, a.held) {
		if escrow := a.totals.tokens[code][totalEscrow]; a.held[code] != escrow {
			a.addDifference("held", code, a.held[code].String(), escrow.String())
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
