package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Halter stops the money of games. *moneyhalt.Service implements it.
type Halter interface {
	// Check returns store_unavailable when the money of a game is stopped.
	Check(gameID int64) error
	Add(ctx context.Context, gameID int64, cause, detail string) error
	Lift(ctx context.Context, gameID int64, cause string) error
}

// conservationCause is the cause of a halt by the audit.
const conservationCause = "conservation"

// The running audit checks the totals of a game whenever its ledger has grown, and of every game
// once a minute. Each check also compares watchedWallets wallets with their last lines, going
// through the players in turn.
const (
	watchedWallets = 100 // of a game in one look
	watchedGames   = 16  // games of which wallets are compared in one look
	deltaLife      = 3 * time.Minute
)

// GameDelta is the difference of a token in a game at this node's last audit as the leader: units
// missing or too many. A difference other than 0 stops the money of the game until an operator
// accepts it.
type GameDelta struct {
	GameID    int64
	TokenCode string
	Units     wallet.Units // minted less all there is; 0 for a difference that an operator accepted
}

// Alarm audits games all the time, and stops the money of those where it is not conserved. It is
// safe for concurrent use.
type Alarm struct {
	store
	halter Halter

	mu     sync.Mutex
	deltas map[int64]gameDeltas
	next   map[int64]int64          // the player before the next one to compare, by game
	broken map[int64]map[int64]bool // players whose wallet was found to differ, by game
	turn   int                      // which game is the first whose wallets are compared
}

// gameDeltas are the deltas of a game and when they were found.
type gameDeltas struct {
	at      time.Time
	byToken map[string]wallet.Units
	stopped bool // the money of the game was stopped for them
}

// NewAlarm returns an alarm on an open store.
func NewAlarm(db *redisdb.DB, ledgers *ledgerstore.Store, halter Halter) *Alarm {
	return &Alarm{
		store: store{db, ledgers}, halter: halter, deltas: map[int64]gameDeltas{}, next: map[int64]int64{},
		broken: map[int64]map[int64]bool{},
	}
}

// Deltas returns the deltas of the games that this node audited in the last minutes, by game. The
// nodes take turns: another one may have audited a game since, after an operator accepted it.
func (a *Alarm) Deltas() []GameDelta {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []GameDelta
	for game, found := range a.deltas {
		if time.Since(found.at) > deltaLife {
			delete(a.deltas, game)
			continue
		}
		isAccepted := found.stopped && a.halter.Check(game) == nil
		for code, units := range found.byToken {
			if isAccepted {
				units = 0
			}
			list = append(list, GameDelta{GameID: game, TokenCode: code, Units: units})
		}
	}
	slices.SortFunc(list, func(a, b GameDelta) int {
		return cmp.Or(cmp.Compare(a.GameID, b.GameID), cmp.Compare(a.TokenCode, b.TokenCode))
	})
	return list
}

// AuditGames audits games as their leader, and stops those whose money is not conserved.
func (a *Alarm) AuditGames(ctx context.Context, gameIDs []int64) error {
	if len(gameIDs) == 0 {
		return nil
	}
	all, err := a.ledgers.ReadTotals(ctx, gameIDs)
	if err != nil {
		return err
	}
	a.mu.Lock()
	turn := a.turn
	a.turn += watchedGames
	a.mu.Unlock()
	var errs []error
	for i, t := range all {
		if t.Defect != nil { // logged by the audit of an operator; the scripts that need it fail
			continue
		}
		withWallets := (i-turn%len(all)+len(all))%len(all) < watchedGames
		errs = append(errs, a.auditGame(ctx, t, withWallets))
	}
	return errors.Join(errs...)
}

// moneyDefect is a difference that an operator can accept.
type moneyDefect struct {
	account string       // "total", or "w7" for a wallet
	code    string       // of the token
	units   wallet.Units // too little where it is positive
}

func (d moneyDefect) field() string { return d.account + ":" + d.code }

func (a *Alarm) auditGame(ctx context.Context, t ledgerstore.Totals, withWallets bool) error {
	found := gameDeltas{at: time.Now(), byToken: map[string]wallet.Units{}}
	var defects []moneyDefect
	for code, of := range t.Tokens {
		found.byToken[code] = 0
		if delta := deltaOf(of); delta != 0 {
			defects = append(defects, moneyDefect{"total", code, wallet.Units(delta)})
		}
	}
	if withWallets {
		wallets, err := a.compareSomeWallets(ctx, t.GameID)
		if err != nil {
			return err
		}
		defects = append(defects, wallets...)
	}
	if len(defects) > 0 {
		accepted, err := a.readDefects(ctx, t.GameID)
		if err != nil {
			return err
		}
		defects = slices.DeleteFunc(defects, func(d moneyDefect) bool { return accepted.isAccepted(d) })
	}
	for _, d := range defects {
		found.byToken[d.code] = ledger.AddBounded(found.byToken[d.code], d.units)
	}
	a.mu.Lock()
	a.deltas[t.GameID] = found
	a.mu.Unlock()
	if len(defects) == 0 {
		return nil
	}
	if err := a.saveFoundDefects(ctx, t.GameID, defects); err != nil {
		return err
	}
	first := defects[0]
	detail := fmt.Sprintf("%d accounts differ from the ledger, the first %s by %s units of %s", len(defects),
		first.account, first.units, first.code)
	if err := a.halter.Add(ctx, t.GameID, conservationCause, detail); err != nil {
		return err
	}
	found.stopped = true
	a.mu.Lock()
	a.deltas[t.GameID] = found
	a.mu.Unlock()
	// An operator may have accepted them between the look and the stop, and lifted nothing.
	accepted, err := a.readDefects(ctx, t.GameID)
	if err != nil || slices.ContainsFunc(defects, func(d moneyDefect) bool { return !accepted.isAccepted(d) }) {
		return err
	}
	return a.halter.Lift(ctx, t.GameID, conservationCause)
}

// compareSomeWallets compares the next wallets of a game, and those that differed before, with
// their last lines.
func (a *Alarm) compareSomeWallets(ctx context.Context, gameID int64) ([]moneyDefect, error) {
	last, err := a.readLastUserID(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	after := a.next[gameID]
	if after >= last {
		after = 0
	}
	upTo := min(last, after+watchedWallets)
	a.next[gameID] = upTo
	players := slices.Collect(maps.Keys(a.broken[gameID]))
	a.mu.Unlock()
	for id := after + 1; id <= upTo; id++ {
		players = append(players, id)
	}
	slices.Sort(players)
	players = slices.Compact(players)
	at, err := a.readSnapshot(ctx, gameID, players)
	if err != nil {
		return nil, err
	}
	var defects []moneyDefect
	broken := map[int64]bool{}
	for id, w := range at.wallets {
		for code, units := range w.differences() {
			defects = append(defects, moneyDefect{walletAccount(id), code, units})
			broken[id] = true
		}
	}
	slices.SortFunc(defects, func(a, b moneyDefect) int { return cmp.Compare(a.field(), b.field()) })
	a.mu.Lock()
	a.broken[gameID] = broken
	a.mu.Unlock()
	return defects, nil
}

// differences returns, by token, the units that a wallet lacks compared with its newest lines. A
// token without a line is compared only if the wallet has no line at all.
func (w storedWallet) differences() map[string]wallet.Units {
	if w.defect != nil {
		return nil
	}
	last := map[string]wallet.StoredBalance{}
	for _, entry := range slices.Backward(w.newest) {
		line, err := wallet.DecodeLineBalance(entry)
		if err != nil {
			return nil // an operator's audit shows it
		}
		if _, ok := last[line.Code]; !ok {
			last[line.Code] = line.StoredBalance
		}
	}
	all := int64(len(w.newest)) == w.lineCount && w.base == 0
	found := map[string]wallet.Units{}
	for code, b := range w.balances {
		line, ok := last[code]
		if units := line.Free + line.Held - b.Free - b.Held; units != 0 && (ok || all) {
			found[code] = units
		}
	}
	for code, line := range last {
		if _, ok := w.balances[code]; !ok && line.Free+line.Held != 0 {
			found[code] = line.Free + line.Held
		}
	}
	return found
}

// AcceptedDefect is a difference that an operator has accepted. It does not stop the money as long
// as it does not change.
type AcceptedDefect struct {
	Account   string       `json:"account"` // "total" or "w<user>"
	TokenCode string       `json:"tokenId"`
	Units     wallet.Units `json:"deltaAmount,string"` // too little where it is positive
}

// Accept accepts the differences that the audit found in a game, so that its money moves again. The
// caller must be an operator, the reason 1 to 200 characters. It returns forbidden,
// invalid_request.
func (a *Alarm) Accept(
	ctx context.Context, caller principal.Caller, gameID int64, reason string,
) ([]AcceptedDefect, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	if err := wallet.CheckReason(reason); err != nil {
		return nil, err
	}
	defects, err := a.acceptDefects(ctx, gameID)
	if err != nil {
		return nil, err
	}
	if err := a.halter.Lift(ctx, gameID, conservationCause); err != nil {
		return nil, err
	}
	slog.WarnContext(ctx, "an operator accepted the money of a game as it is", "game", gameID, "reason", reason)
	return defects, nil
}
