package redisdb

import (
	"slices"
	"sync/atomic"

	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/scripts"
)

// economyHooks is what others want to know of scripts that change money, before they run.
type economyHooks struct {
	gate     atomic.Pointer[func() error]
	observer atomic.Pointer[func(gameID int64)]
}

// GateMoney makes every script that changes something in an economy return the error of allow while
// that has one. It is one gate for all domains, so that none can be forgotten. allow must not
// block.
func (db *DB) GateMoney(allow func() error) { db.economies.gate.Store(&allow) }

// ObserveMoney calls observe with the game of every script that changes something in an economy.
// observe must not block.
func (db *DB) ObserveMoney(observe func(gameID int64)) { db.economies.observer.Store(&observe) }

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
