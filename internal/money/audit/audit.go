package audit

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
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
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
	Stopped   []StopReason `json:"stopped"`   // empty while nodes know of nothing wrong
	CheckedAt time.Time    `json:"checkedAt"` // UTC
}

// decide sets Balanced from what was found.
func (r *Report) decide() { r.Balanced = r.SumsAgree && len(r.Stopped) == 0 }

// TokenTotal shows where the units of one token are, in one game or summed over all. Totals may be
// too large for a JavaScript number, so each is also given in minor units as text. A sum over games
// stops at 2^63-1.
type TokenTotal struct {
	TokenCode    string        `json:"tokenId"` // code of the token
	Minted       wallet.Amount `json:"minted"`  // what was brought in, less what was taken out
	MintedUnits  wallet.Units  `json:"mintedAmount,string"`
	Wallets      wallet.Amount `json:"wallets"` // what players can spend
	WalletsUnits wallet.Units  `json:"walletsAmount,string"`
	Escrow       wallet.Amount `json:"escrow"` // stakes in rooms and fees in tournaments that have not ended
	EscrowUnits  wallet.Units  `json:"escrowAmount,string"`
	Prizes       wallet.Amount `json:"prizes"` // promised and not paid yet
	PrizesUnits  wallet.Units  `json:"prizesAmount,string"`
	House        wallet.Amount `json:"house"` // the operator's account: income from purchases and rake, less prizes
	HouseUnits   wallet.Units  `json:"houseAmount,string"`
	Delta        wallet.Amount `json:"delta"` // minted less all of these; a defect of Parlor unless it is 0
	DeltaUnits   wallet.Units  `json:"deltaAmount,string"`
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

// Service audits games when it is asked to. It is safe for concurrent use.
type Service struct {
	store
	tokens Tokens
}

// Tokens knows the tokens that reports name. *wallet.Service implements it.
type Tokens interface {
	// FindDefinitions returns those of the tokens that exist, by code, without their supply.
	FindDefinitions(ctx context.Context, codes ...string) (map[string]wallet.Token, error)
}

// New returns the audit of an open store.
func New(db *redisdb.DB, ledgers *ledgerstore.Store, tokens Tokens) *Service {
	return &Service{store{db, ledgers}, tokens}
}

// Audit compares the totals of a game, or of every game when gameID is 0 and sums them by token. It
// reads the folded totals, the entries that are not folded yet and the minted units at one instant.
// So the report is exact, and its time does not depend on the number of players. Then it reads the
// halts and losses that nodes noticed.
func (s *Service) Audit(ctx context.Context, gameID int64) (Report, error) {
	games, err := s.ledgers.Games(ctx, gameID)
	if err != nil {
		return Report{}, err
	}
	all, err := s.ledgers.ReadTotals(ctx, games)
	if err != nil {
		return Report{}, err
	}
	return s.reportOf(ctx, gameID, all)
}

// reportOf compares the totals of games and sums them up, and reads why their money is stopped.
// gameID is that of the audit.
func (s *Service) reportOf(ctx context.Context, gameID int64, games []ledgerstore.Totals) (Report, error) {
	r := Report{SumsAgree: true, CheckedAt: time.Now().UTC()}
	sums := ledger.Totals{}
	for _, game := range games {
		if game.Defect != nil {
			slog.ErrorContext(ctx, "the money of a game cannot be counted", "game", game.GameID, "error", game.Defect)
		}
		if game.Defect != nil || game.Folded > game.Sequence { // the ledger has lost entries
			r.SumsAgree = false
		}
		for code, of := range game.Tokens {
			if deltaOf(of) != 0 || min(of[totalWallets], of[totalEscrow], of[totalPrizes], of[totalHouse]) < 0 {
				r.SumsAgree = false
			}
			if sums[code] == nil {
				sums[code] = ledger.Balances{}
			}
			for total, units := range of {
				sums[code][total] = ledger.AddBounded(sums[code][total], units)
			}
			sums[code][totalDelta] = ledger.AddBounded(sums[code][totalDelta], deltaOf(of))
		}
	}
	tokens, err := s.tokens.FindDefinitions(ctx, slices.Collect(maps.Keys(sums))...)
	if err != nil {
		return Report{}, err
	}
	r.Tokens = make([]TokenTotal, 0, len(sums))
	for code, of := range sums {
		units := func(total string) wallet.Units { return wallet.Units(of[total]) }
		amount := func(total string) wallet.Amount { return tokens[code].AmountOf(units(total)) }
		r.Tokens = append(r.Tokens, TokenTotal{
			TokenCode: code,
			Minted:    amount(totalMinted), MintedUnits: units(totalMinted),
			Wallets: amount(totalWallets), WalletsUnits: units(totalWallets),
			Escrow: amount(totalEscrow), EscrowUnits: units(totalEscrow),
			Prizes: amount(totalPrizes), PrizesUnits: units(totalPrizes),
			House: amount(totalHouse), HouseUnits: units(totalHouse),
			Delta: amount(totalDelta), DeltaUnits: units(totalDelta),
		})
	}
	slices.SortFunc(r.Tokens, func(a, b TokenTotal) int {
		return cmp.Or(cmp.Compare(tokens[a.TokenCode].ID, tokens[b.TokenCode].ID), cmp.Compare(a.TokenCode, b.TokenCode))
	})
	if r.Stopped, err = readStopped(ctx, s.db, gameID); err != nil {
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
func deltaOf(of ledger.Balances) int64 {
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

// AuditFromFirstEntry is AuditDeep from the first entry of the ledger, including the archived ones,
// instead of the last checkpoint.
func (s *Service) AuditFromFirstEntry(ctx context.Context, gameID int64) (DeepReport, error) {
	return s.auditDeep(ctx, gameID, true)
}

func (s *Service) auditDeep(ctx context.Context, gameID int64, full bool) (DeepReport, error) {
	games, err := s.ledgers.Games(ctx, gameID)
	if err != nil {
		return DeepReport{}, err
	}
	players, err := s.ledgers.ListPlayers(ctx, gameID)
	if err != nil {
		return DeepReport{}, err
	}
	sum := DeepReport{HeldCounted: true, Differences: []Difference{}}
	all := make([]ledgerstore.Totals, 0, len(games))
	for _, id := range games {
		a := gameAudit{Service: s, gameID: id, players: players[id], replay: ledger.NewReplay()}
		err := a.start(ctx, full)
		if err == nil {
			err = a.run(ctx)
		}
		switch {
		case redisdb.IsWrongType(err): // the other games are counted
			a.totals.Defect, a.heldCounted = err, false
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
	totals        ledgerstore.Totals
	compared      map[int64]bool          // user ids of the wallets that were compared
	held          map[string]wallet.Units // sum of the held stakes by token
	firstSequence int64                   // number of the last ledger entry when the first wallets were read
	heldCounted   bool
}

// start loads the last checkpoint of the archived entries, unless there is none or full is set.
func (a *gameAudit) start(ctx context.Context, full bool) error {
	ends, err := a.ledgers.ReadEnds(ctx, []int64{a.gameID})
	if err != nil {
		return err
	}
	if a.ledgers.Archive() == nil {
		if ends[0].Sum != "" {
			return ledgerstore.ErrNoArchive
		}
		return nil
	}
	if full {
		return nil
	}
	number, err := a.ledgers.Archive().LastCheckpoint(ctx, a.gameID, ends[0].Base)
	if err != nil || number == 0 {
		return err
	}
	checkpoint, err := a.ledgers.Archive().ReadCheckpoint(ctx, a.gameID, number)
	if err != nil {
		return err
	}
	last, err := a.ledgers.Archive().ReadSegment(ctx, a.gameID, a.ledgers.Archive().FirstOf(number))
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
		a.differences, a.compared, a.held, a.firstSequence = nil, map[int64]bool{}, map[string]wallet.Units{}, -1
		if err := a.recount(ctx); err != nil {
			return err
		}
		if a.heldCounted {
			break
		}
	}
	if a.totals.Folded > a.totals.Sequence {
		a.replay.AddDefect("", fmt.Sprintf("%d entries", a.totals.Sequence), fmt.Sprintf("%d in the totals", a.totals.Folded))
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
	all, err := a.ledgers.ReadTotals(ctx, []int64{a.gameID})
	if err != nil {
		return err
	}
	a.totals = all[0]
	if a.totals.Defect != nil {
		return a.totals.Defect
	}
	if err := a.replayTo(ctx, a.totals.Sequence); err != nil {
		return err
	}
	a.compareTotals()
	if a.heldCounted = a.firstSequence < 0 || a.firstSequence == a.totals.Sequence; a.heldCounted {
		a.compareHeld()
	}
	return nil
}

// compareWallets compares those wallets that have not been compared before.
func (a *gameAudit) compareWallets(ctx context.Context, userIDs []int64) error {
	for some := range slices.Chunk(userIDs, ledgerstore.PlayersAtOnce) {
		wanted := slices.DeleteFunc(slices.Clone(some), func(id int64) bool { return a.compared[id] })
		at, err := a.readSnapshot(ctx, a.gameID, wanted)
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
				a.held[code] += b.Held
			}
		}
	}
	return nil
}

// replayTo replays the ledger up to an entry.
func (a *gameAudit) replayTo(ctx context.Context, sequence int64) error {
	re := a.replay
	for re.Number < sequence {
		entries, err := a.ledgers.ReadEntries(ctx, a.gameID, re.Number, sequence)
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

func (a *gameAudit) compareWallet(userID int64, balances map[string]wallet.StoredBalance) {
	account, counted := walletAccount(userID), a.replay.Wallets[userID]
	for code, b := range balances {
		if b.Free != wallet.Units(counted[code]) {
			a.addDifference(account, code, b.Free.String(), wallet.Units(counted[code]).String())
		}
		if b.Free < 0 || b.Held < 0 {
			a.addDifference(account, code, min(b.Free, b.Held).String(), "0")
		}
	}
	for code, units := range counted {
		if _, ok := balances[code]; !ok && units != 0 {
			a.addDifference(account, code, "0", wallet.Units(units).String())
		}
	}
}

// compareLines compares a wallet with the last line of each of its tokens, and the number of its
// last event with the last line.
func (a *gameAudit) compareLines(ctx context.Context, userID int64, w storedWallet) error {
	account := "lines of " + walletAccount(userID)
	last := map[string]wallet.StoredBalance{} // by code, of the lines that were read
	lines, place := w.newest, w.lineCount
	for {
		for _, entry := range slices.Backward(lines) {
			b, err := wallet.DecodeLineBalance(entry)
			if err != nil {
				a.addDifference(account, "", err.Error(), "a line")
				return nil
			}
			if place == w.lineCount && len(last) == 0 && b.Seq != w.seq {
				a.addDifference(account, "", fmt.Sprintf("event %d", w.seq), fmt.Sprintf("event %d", b.Seq))
			}
			if _, later := last[b.Code]; !later {
				last[b.Code] = b.StoredBalance
			}
		}
		place -= int64(len(lines))
		if len(lines) == 0 || place == 0 || hasAll(last, w.balances) {
			break
		}
		var err error
		if lines, err = a.readLinesUpTo(ctx, a.gameID, userID, place); err != nil {
			return err
		}
	}
	if w.lineCount == 0 && w.base == 0 && w.seq != 0 {
		a.addDifference(account, "", fmt.Sprintf("event %d", w.seq), "no event")
	}
	for code := range union(last, w.balances) {
		line, ok := last[code]
		if ok && line != w.balances[code] || !ok && w.base == 0 {
			a.addDifference(account, code, describe(w.balances[code]), describe(line))
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

// describe returns a balance as a difference shows it.
func describe(b wallet.StoredBalance) string {
	return b.Free.String() + " and " + b.Held.String() + " held"
}

func (a *gameAudit) compareTotals() {
	counted := a.replay.Totals()
	for _, d := range a.totals.Tokens.Compare(counted) {
		a.addDifference(d.Total, d.Code, wallet.Units(d.Has).String(), wallet.Units(d.Wants).String())
	}
}

// compareHeld compares the held stakes of all wallets with what is in escrow.
func (a *gameAudit) compareHeld() {
	for code := range union(a.totals.Tokens, a.held) {
		if escrow := wallet.Units(a.totals.Tokens[code][totalEscrow]); a.held[code] != escrow {
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
