package wallet

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
)

// Halter halts the money of games. *moneyhalt.Service implements it; without one nothing is halted.
type Halter interface {
	// Check returns store_unavailable when the money of a game is halted.
	Check(gameID int64) error
	Add(ctx context.Context, gameID int64, cause, detail string) error
	Lift(ctx context.Context, gameID int64, cause string) error
}

// conservationCause is the cause of a halt by the audit.
const conservationCause = "conservation"

// The audit that runs all the time looks at the totals of each game whose ledger has grown, and of
// every game once a minute. In each look it also compares some wallets with their last lines, one
// player after the other.
const (
	watchedWallets = 100 // of a game in one look
	watchedGames   = 16  // games of which wallets are compared in one look
	deltaLife      = 3 * time.Minute
)

// GameDelta is what a game has too much or too little of a token, as this node audited it last as
// the leader. Anything but 0 that no operator has accepted stops the money of the game.
type GameDelta struct {
	GameID    int64
	TokenCode string
	Units     Units // minted less all there is; 0 for a difference that an operator accepted
}

// alarm is what the leader knows of the games that it audits.
type alarm struct {
	mu     sync.Mutex
	deltas map[int64]gameDeltas
	next   map[int64]int64          // the player before the next one to compare, by game
	broken map[int64]map[int64]bool // players whose wallet was found to differ, by game
	turn   int                      // which game is the first whose wallets are compared
}

// gameDeltas are the deltas of a game and when they were found.
type gameDeltas struct {
	at      time.Time
	byToken map[string]Units
	stopped bool // the money of the game was stopped for them
}

func newAlarm() *alarm {
	return &alarm{deltas: map[int64]gameDeltas{}, next: map[int64]int64{}, broken: map[int64]map[int64]bool{}}
}

// Deltas returns the deltas of the games that this node audited in the last minutes, by game. The
// nodes take turns: another one may have audited a game since, after an operator accepted it.
func (s *Service) Deltas() []GameDelta {
	s.alarm.mu.Lock()
	defer s.alarm.mu.Unlock()
	var list []GameDelta
	for game, found := range s.alarm.deltas {
		if time.Since(found.at) > deltaLife {
			delete(s.alarm.deltas, game)
			continue
		}
		isAccepted := found.stopped && s.CheckMoney(game) == nil
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

// CheckMoney returns store_unavailable when the money of a game is halted. It must be called
// before every script that moves money.
func (s *Service) CheckMoney(gameID int64) error {
	if s.halter == nil {
		return nil
	}
	return s.halter.Check(gameID)
}

// auditGames audits games as their leader, and stops those whose money is not conserved.
func (s *Service) auditGames(ctx context.Context, gameIDs []int64) error {
	if s.halter == nil || len(gameIDs) == 0 {
		return nil
	}
	all, err := s.store.readTotals(ctx, gameIDs)
	if err != nil {
		return err
	}
	s.alarm.mu.Lock()
	turn := s.alarm.turn
	s.alarm.turn += watchedGames
	s.alarm.mu.Unlock()
	var errs []error
	for i, t := range all {
		if t.defect != nil { // logged by the audit of an operator; the scripts that need it fail
			continue
		}
		withWallets := (i-turn%len(all)+len(all))%len(all) < watchedGames
		errs = append(errs, s.auditGame(ctx, t, withWallets))
	}
	return errors.Join(errs...)
}

// moneyDefect is a difference that an operator can accept.
type moneyDefect struct {
	account string // "total", or "w7" for a wallet
	code    string // of the token
	units   Units  // too little where it is positive
}

func (d moneyDefect) field() string { return d.account + ":" + d.code }

func (s *Service) auditGame(ctx context.Context, t totals, withWallets bool) error {
	found := gameDeltas{at: time.Now(), byToken: map[string]Units{}}
	var defects []moneyDefect
	for code, of := range t.tokens {
		found.byToken[code] = 0
		if delta := deltaOf(of); delta != 0 {
			defects = append(defects, moneyDefect{"total", code, delta})
		}
	}
	if withWallets {
		wallets, err := s.compareSomeWallets(ctx, t.gameID)
		if err != nil {
			return err
		}
		defects = append(defects, wallets...)
	}
	if len(defects) > 0 {
		accepted, err := s.store.readDefects(ctx, t.gameID)
		if err != nil {
			return err
		}
		defects = slices.DeleteFunc(defects, func(d moneyDefect) bool { return accepted.isAccepted(d) })
	}
	for _, d := range defects {
		found.byToken[d.code] = addUnits(found.byToken[d.code], d.units)
	}
	s.alarm.mu.Lock()
	s.alarm.deltas[t.gameID] = found
	s.alarm.mu.Unlock()
	if len(defects) == 0 {
		return nil
	}
	if err := s.store.saveFoundDefects(ctx, t.gameID, defects); err != nil {
		return err
	}
	first := defects[0]
	detail := fmt.Sprintf("%d accounts differ from the ledger, the first %s by %s units of %s", len(defects),
		first.account, first.units, first.code)
	if err := s.halter.Add(ctx, t.gameID, conservationCause, detail); err != nil {
		return err
	}
	found.stopped = true
	s.alarm.mu.Lock()
	s.alarm.deltas[t.gameID] = found
	s.alarm.mu.Unlock()
	// An operator may have accepted them between the look and the halt, and lifted nothing.
	accepted, err := s.store.readDefects(ctx, t.gameID)
	if err != nil || slices.ContainsFunc(defects, func(d moneyDefect) bool { return !accepted.isAccepted(d) }) {
		return err
	}
	return s.halter.Lift(ctx, t.gameID, conservationCause)
}

// compareSomeWallets compares the next wallets of a game, and those that differed before, with
// their last lines.
func (s *Service) compareSomeWallets(ctx context.Context, gameID int64) ([]moneyDefect, error) {
	last, err := s.store.readLastUserID(ctx)
	if err != nil {
		return nil, err
	}
	s.alarm.mu.Lock()
	after := s.alarm.next[gameID]
	if after >= last {
		after = 0
	}
	upTo := min(last, after+watchedWallets)
	s.alarm.next[gameID] = upTo
	players := slices.Collect(maps.Keys(s.alarm.broken[gameID]))
	s.alarm.mu.Unlock()
	for id := after + 1; id <= upTo; id++ {
		players = append(players, id)
	}
	slices.Sort(players)
	players = slices.Compact(players)
	at, err := s.store.readSnapshot(ctx, gameID, players)
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
	s.alarm.mu.Lock()
	s.alarm.broken[gameID] = broken
	s.alarm.mu.Unlock()
	return defects, nil
}

// differences returns by token what a wallet has too little of, compared with the newest lines. A
// token that they do not have is not compared, unless there is no line at all.
func (w storedWallet) differences() map[string]Units {
	if w.defect != nil {
		return nil
	}
	last := map[string]tokenBalance{}
	for _, entry := range slices.Backward(w.newest) {
		line, err := decodeLineBalance(entry)
		if err != nil {
			return nil // an operator's audit shows it
		}
		if _, ok := last[line.code]; !ok {
			last[line.code] = line.tokenBalance
		}
	}
	all := int64(len(w.newest)) == w.lineCount && w.base == 0
	found := map[string]Units{}
	for code, b := range w.balances {
		line, ok := last[code]
		if units := line.free + line.held - b.free - b.held; units != 0 && (ok || all) {
			found[code] = units
		}
	}
	for code, line := range last {
		if _, ok := w.balances[code]; !ok && line.free+line.held != 0 {
			found[code] = line.free + line.held
		}
	}
	return found
}

// AcceptedDefect is a difference that an operator has accepted: it stops the money no more, as long
// as it stays what it is.
type AcceptedDefect struct {
	Account   string `json:"account"` // "total" or "w<user>"
	TokenCode string `json:"tokenId"`
	Units     Units  `json:"deltaAmount,string"` // too little where it is positive
}

// AcceptAudit accepts what the audit has found in a game, so that its money goes on. The caller
// must be an operator, the reason 1 to 200 characters. It returns forbidden, invalid_request.
func (s *Service) AcceptAudit(
	ctx context.Context, caller principal.Caller, gameID int64, reason string,
) ([]AcceptedDefect, error) {
	if caller.Role != principal.Operator {
		return nil, apierror.Forbidden
	}
	var v validator
	v.checkReason(reason)
	if v.Err() != nil {
		return nil, v.Err()
	}
	defects, err := s.store.acceptDefects(ctx, gameID)
	if err != nil {
		return nil, err
	}
	if s.halter != nil {
		if err := s.halter.Lift(ctx, gameID, conservationCause); err != nil {
			return nil, err
		}
	}
	slog.WarnContext(ctx, "an operator accepted the money of a game as it is", "game", gameID, "reason", reason)
	return defects, nil
}

// errGrantWaits returns the error of a grant in a game whose money is stopped. It is not retryable,
// so that the player is let in; the next sign-in gives the grant.
func errGrantWaits(stopped error) error {
	e, ok := apierror.As(stopped)
	if !ok {
		return stopped
	}
	waits := *e
	waits.Retryable = false
	return &waits
}
