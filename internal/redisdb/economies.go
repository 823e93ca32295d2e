package redisdb

import (
	"slices"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/scripts"
)

// economyHooks is what others want to know of scripts that change money, before they run.
type economyHooks struct {
	gate         atomic.Pointer[func() error]
	observer     atomic.Pointer[func(gameID int64)]
	acknowledged atomic.Pointer[func(gameID int64, nonce string)]
}

// GateMoney makes every script that changes something in an economy return the error of allow while
// that has one. It is one gate for all domains, so that none can be forgotten. allow must not
// block.
func (db *DB) GateMoney(allow func() error) { db.economies.gate.Store(&allow) }

// ObserveMoney calls observe with the game of every script that changes something in an economy.
// observe must not block.
func (db *DB) ObserveMoney(observe func(gameID int64)) { db.economies.observer.Store(&observe) }

// ObserveEntries calls observe with the game and the nonce of every ledger entry that a reply has
// acknowledged, of the scripts in entryScripts. observe must not block.
func (db *DB) ObserveEntries(observe func(gameID int64, nonce string)) {
	db.economies.acknowledged.Store(&observe)
}

// entryScripts append an entry with their nonce to the ledger whenever they succeed, unless they
// returned before or moved nothing. A reply with values says so for those in mayHaveMovedNothing.
var (
	entryScripts = []*scripts.Script{
		scripts.RoomCreate, scripts.RoomJoin, scripts.RoomLeave, scripts.RoomCancel, scripts.RoomFinish,
		scripts.AssetPurchase, scripts.WalletCredit, scripts.WalletDebit,
	}
	mayHaveMovedNothing = []*scripts.Script{scripts.RoomJoin, scripts.RoomLeave, scripts.RoomFinish}
)

// acknowledge tells the observer of a reply. The nonce is the second argument of each of the
// scripts.
func (h *economyHooks) acknowledge(s *scripts.Script, names []string, args []any, reply Reply) {
	observe := h.acknowledged.Load()
	if observe == nil || reply.Status != scripts.OK || !slices.Contains(entryScripts, s) ||
		len(reply.Values) > 0 && slices.Contains(mayHaveMovedNothing, s) {
		return
	}
	gameID, isEconomy := keys.ParseEconomy(names[0])
	if nonce, ok := args[1].(string); ok && isEconomy {
		(*observe)(gameID, nonce)
	}
}

// admit returns the error with which a script may not run.
func (h *economyHooks) admit(s *scripts.Script, names []string) error {
	if len(names) == 0 {
		return nil
	}
	gameID, ok := keys.ParseEconomy(names[0])
	if !ok || slices.Contains(s.Flags, scripts.NoWrites) {
		return nil
	}
	if gate := h.gate.Load(); gate != nil {
		if err := (*gate)(); err != nil {
			return err
		}
	}
	if observe := h.observer.Load(); observe != nil {
		(*observe)(gameID)
	}
	return nil
}
