package redisdb

import (
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/scripts"
)

// economyHooks is what others want to know of scripts that change money, before they run.
type economyHooks struct {
	gate         atomic.Pointer[func() error]
	observer     atomic.Pointer[func(gameID int64)]
	acknowledged atomic.Pointer[func(gameID int64, nonce string, began time.Time)]
}

// GateMoney makes every script that changes something in an economy return the error of allow while
// that has one. It is one gate for all domains, so that none can be forgotten. allow must not
// block.
func (db *DB) GateMoney(allow func() error) { db.economies.gate.Store(&allow) }

// ObserveMoney calls observe with the game of every script that changes something in an economy.
// observe must not block.
func (db *DB) ObserveMoney(observe func(gameID int64)) { db.economies.observer.Store(&observe) }

// ObserveEntries calls observe with the game and the nonce of every ledger entry that a reply has
// acknowledged, and with a time before the call was sent. observe must not block.
func (db *DB) ObserveEntries(observe func(gameID int64, nonce string, began time.Time)) {
	db.economies.acknowledged.Store(&observe)
}

// began returns the time for acknowledge, the zero time when nobody needs it.
func (h *economyHooks) began(s *scripts.Script) time.Time {
	if !postsEntries(s) || h.acknowledged.Load() == nil {
		return time.Time{}
	}
	return time.Now()
}

func postsEntries(s *scripts.Script) bool {
	return s.Ledger.When == scripts.LedgerAlways || s.Ledger.When == scripts.LedgerIf
}

// acknowledge notifies the observer of a reply. The header of the script lists the replies for
// which the ledger has an entry with the nonce of the call. Background work counts too, because its
// leader relies on the reply and players have received the event.
func (h *economyHooks) acknowledge(s *scripts.Script, began time.Time, names []string, args []any, reply Reply) {
	if began.IsZero() || !hasEntry(s, args, reply) {
		return
	}
	gameID, isEconomy := keys.ParseEconomy(names[0])
	if nonce, ok := args[s.NonceArg].(string); ok && isEconomy {
		(*h.acknowledged.Load())(gameID, nonce, began)
	}
}

// hasEntry reports whether a reply says that the ledger has an entry with the nonce of the call.
func hasEntry(s *scripts.Script, args []any, reply Reply) bool {
	switch {
	case s.Ledger.When == scripts.LedgerIf:
		return reply.Status == scripts.OK && len(reply.Values) == 0
	case reply.Status == scripts.Replay: // of a call whose reply was lost and that go-redis sent again
		return len(reply.Values) > 1 && reply.Values[0] == scripts.OK && reply.Values[1] == args[s.NonceArg]
	default:
		return reply.Status == scripts.OK
	}
}

// allow returns nil when a script may change money, else why not.
func (h *economyHooks) allow(s *scripts.Script, names []string) error {
	if len(names) == 0 {
		return nil
	}
	gameID, ok := keys.ParseEconomy(names[0])
	if !ok || !s.Writes() {
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
