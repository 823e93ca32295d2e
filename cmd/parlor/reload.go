package main

import (
	"context"
	"errors"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// runReloads reads the settings again for each signal, until ctx ends.
func (n *node) runReloads(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.reloads:
			n.notifySystemdOfReload(func() { n.reload(ctx) })
		}
	}
}

// storeAccessTimeout bounds the try of another password or certificate.
const storeAccessTimeout = 3 * time.Second

// reload takes what has changed in the settings and in the files that they name. A fault changes
// nothing, and is logged; so is what only a restart can change.
func (n *node) reload(ctx context.Context) {
	next, err := n.load()
	var faults config.SettingErrors
	if errors.As(err, &faults) {
		for _, fault := range faults {
			n.log.Error("the reload changed nothing", "setting", fault.Setting, "problem", fault.Problem)
		}
		return
	}
	if err != nil {
		n.log.Error("the reload changed nothing", "problem", err)
		return
	}
	merged, changed, kept := config.Reload(*n.current.Load(), next)
	tryCtx, cancel := context.WithTimeout(ctx, storeAccessTimeout)
	defer cancel()
	// First of all: only this can fail. The files of its certificates may differ under the same URL.
	switch err := n.db.SetAccess(tryCtx, next.RedisURL.Reveal()); {
	case errors.Is(err, redisdb.ErrOtherStore):
		const name = "PARLOR_REDIS_URL"
		changed = without(changed, name)
		kept = append(kept, name)
		merged.RedisURL = n.current.Load().RedisURL
	case err != nil:
		n.log.Error("the reload changed nothing", "setting", "PARLOR_REDIS_URL", "problem", err)
		return
	}
	n.apply(merged)
	n.current.Store(&merged)
	n.log.Info("reloaded", "changed", changed)
	if len(kept) > 0 {
		n.log.Warn("settings have changed that a node takes at its start only; restart it", "settings", kept)
	}
}

func without(list []string, name string) (rest []string) {
	for _, one := range list {
		if one != name {
			rest = append(rest, one)
		}
	}
	return rest
}

// apply hands the settings that can be reloaded to what uses them. The times of a drain are read
// when it begins.
func (n *node) apply(s config.Settings) {
	signing := revealKeys(s.SigningKeys)
	n.auth.SetSigningAndAdminKeys(signing, revealKeys(s.AdminKeys))
	n.idempotency.SetSigningKeys(signing)
	n.history.SetSigningKeys(signing)
	n.webhooks.SetSigningKeys(signing)
	if err := n.saves.SetSigningKeys(saveKeys(s)); err != nil {
		n.log.Error("the keys of saves were not changed", "cause", err) // a key of any length can be derived from
	}
	n.limiter.SetLimits(requestLimits(s))
	n.rooms.SetQuotas(roomQuotas(s))
	n.logLevel.Set(s.LogLevel)
}
