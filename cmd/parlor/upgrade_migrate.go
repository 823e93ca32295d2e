package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/ops/migrate"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

func migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate", Args: cobra.NoArgs,
		Short: "Rewrite a store of layout 1 for this release, while Redis goes on serving others",
		Long: "migrate writes the keys of today's layout beside the old ones, compares all of them, and removes the\n" +
			"old ones. Stop every node before, and make a backup. No node starts until it is done. It works in small\n" +
			"steps and can be killed at any time: run it again, and it goes on. It changes nothing when the old store\n" +
			"cannot be read or its money does not add up, and says why. Two at once are impossible: one has a lease,\n" +
			"the other ends with exit 1.",
		Example: "  parlor upgrade migrate --dry-run\n  parlor upgrade migrate",
		RunE: func(c *cobra.Command, _ []string) error {
			dryRun, _ := c.Flags().GetBool("dry-run")
			lease, _ := c.Flags().GetDuration("lease")
			if lease < migrate.MinLease || lease > time.Hour {
				return fmt.Errorf("--lease must be %s to 1h", migrate.MinLease)
			}
			s, err := loadSettings(c, config.ModeTool, "redis-url")
			if err != nil {
				return err
			}
			db, installation, err := openAnyStore(c.Context(), s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			if installation.Problem() != "" && !installation.CanMigrate() {
				return storeError{installation}
			}
			if db.Kind() == redisdb.KindEmbedded {
				return errors.New("the embedded store keeps nothing that could be migrated")
			}
			out := c.OutOrStdout()
			if installation.Problem() == "" {
				_, err = fmt.Fprintf(out, "the store has layout %s, which this release reads; there is nothing to migrate\n",
					installation.Layout)
				return err
			}
			result, err := migrate.Run(c.Context(), db, migrate.Options{
				DryRun: dryRun, Lease: lease, Out: out,
				CreateInstallation: func(ctx context.Context) error { // an audit needs no node
					return history.CreateInstallation(ctx, db)
				},
			})
			switch {
			case err != nil:
				return err
			case result.WasDone:
				_, err = fmt.Fprintln(out, "the store has the layout of this release; there is nothing to migrate")
				return err
			}
			if err := result.Print(out); err != nil {
				return err
			}
			text := "migrated; now prove it with: parlor audit --full"
			if dryRun {
				text = "nothing was written; amounts are minor units"
			}
			_, err = fmt.Fprintln(out, text)
			return err
		},
	}
	c.Flags().Bool("dry-run", false, "read and count everything, and write nothing")
	c.Flags().Duration("lease", migrate.DefaultLease,
		"after which another process may go on when this one was killed or paused")
	return settingFlags(c, "redis-url", "config")
}
