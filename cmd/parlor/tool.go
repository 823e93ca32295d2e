package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

// storeError is why a command does not read a store: it is empty, or has another layout.
type storeError struct {
	installation redisdb.Installation
}

func (e storeError) Error() string { return e.installation.Problem() }

// openToolStore opens the store of the settings for a command. It returns a storeError for a store
// that has no installation of this layout. Every command opens its store here, unless an empty one
// is right for it too.
func openToolStore(ctx context.Context, s config.Settings) (*redisdb.DB, error) {
	db, installation, err := openAnyStore(ctx, s)
	if err == nil && installation.Problem() != "" {
		err = errors.Join(storeError{installation}, db.Close())
	}
	return db, err
}

// openAnyStore opens the store of the settings, also one that is empty or has another layout.
func openAnyStore(ctx context.Context, s config.Settings) (*redisdb.DB, redisdb.Installation, error) {
	db, err := redisdb.Open(s.RedisURL.Reveal())
	if err != nil {
		return nil, redisdb.Installation{}, err
	}
	installation, err := db.ReadInstallation(ctx)
	if err != nil {
		return nil, redisdb.Installation{}, errors.Join(err, db.Close())
	}
	return db, installation, nil
}

// withDomains calls work with the domains on the store of the settings, for a tool. more are the
// settings that the tool needs in addition to that of the store.
func withDomains(c *cobra.Command, work func(d domains) error, more ...string) error {
	s, err := loadSettings(c, config.ModeTool, append([]string{"redis-url"}, more...)...)
	if err != nil {
		return err
	}
	db, err := openToolStore(c.Context(), s)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return work(newDomains(db, nil, s, config.ModeTool))
}

// gameFlags adds the flags of a tool that looks at one game.
func gameFlags(c *cobra.Command) *cobra.Command {
	c.Flags().Int64("game", 0, "the id of the game")
	c.Flags().Bool("json", false, "print JSON")
	_ = c.MarkFlagRequired("game")
	return settingFlags(c, "redis-url", "config")
}

// withGame calls work with the domains and the game of a tool that has gameFlags.
func withGame(c *cobra.Command, work func(d domains, game int64) error) error {
	game, _ := c.Flags().GetInt64("game")
	if game < 1 {
		return errors.New("--game must be the id of a game")
	}
	return withDomains(c, func(d domains) error { return work(d, game) })
}

// addLimitFlag adds the flag for how many of something are printed.
func addLimitFlag(c *cobra.Command, limit *int, what string) {
	c.Flags().IntVarP(limit, "limit", "n", *limit, "how many "+what)
}

func checkLimit(limit int) error {
	if limit < 1 || limit > wire.MaxPageSize {
		return fmt.Errorf("--limit must be 1 to %d", wire.MaxPageSize)
	}
	return nil
}

// addReasonFlag adds the flag for why an operator does something.
func addReasonFlag(c *cobra.Command) { c.Flags().String("reason", "", "why, for the trail") }

// readReason returns why an operator does something.
func readReason(c *cobra.Command) (string, error) {
	reason, _ := c.Flags().GetString("reason")
	if strings.TrimSpace(reason) == "" {
		return "", errors.New("--reason must say why")
	}
	return reason, nil
}

// recordInTrail records a change that the operator made by a command, as the node records staff
// writes. A refused command is not recorded. One that failed halfway is, because it may have taken
// effect.
func (d domains) recordInTrail(ctx context.Context, err error, w trail.Write) {
	w.Caller, w.Outcome = operator, trail.Done
	if err != nil {
		if _, expected := apierror.As(err); expected && apierror.IsFinal(err) {
			return
		}
		w.Outcome = trail.Unknown
	}
	trail.New(d.db, slog.Default()).Record(ctx, w)
}
