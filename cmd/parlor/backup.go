package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/archiver"
	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/backup"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/spf13/cobra"
)

func backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "backup", Short: "Copy the whole store into a folder, while nodes go on serving", Args: cobra.NoArgs,
		Long: "backup copies every master of the store, as a replica does, each at one instant, and checks what it got.\n" +
			"A game is on one master, so its money is whole in the copy. It connects with PARLOR_BACKUP_URL, whose user\n" +
			"needs no right but to copy, and reads with PARLOR_REDIS_URL how far each ledger was. The manifest that it\n" +
			"writes last has the sums of the files. A store that must be migrated is copied too, without its ledgers in the\n" +
			"manifest. Whoever has the folder has every balance and save: encrypt it.",
		Example: "  parlor backup --to /backups/monday",
		RunE: func(c *cobra.Command, _ []string) error {
			to, _ := c.Flags().GetString("to")
			if to == "" {
				return errors.New("backup needs --to: a folder that is empty or does not exist")
			}
			s, err := loadSettings(c, config.ModeTool, "redis-url")
			if err != nil {
				return err
			}
			db, found, err := openAnyStore(c.Context(), s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			readLedgers := ledgerstore.New(db, nil).LastEntries
			switch {
			case found.CanMigrate(): // it has no ledger that this release reads, and needs a copy first
				readLedgers = func(context.Context) (map[int64]int64, error) { return nil, nil }
			case found.Problem() != "":
				return storeError{found}
			}
			source, err := redisdb.Open(cmp.Or(s.BackupURL.Reveal(), s.RedisURL.Reveal()))
			if err != nil {
				return err
			}
			defer func() { _ = source.Close() }()
			m, err := backup.Create(c.Context(), source, to, readLedgers)
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), m)
		},
	}
	c.Flags().String("to", "", "the folder for the copy")
	return settingFlags(c, "redis-url", "backup-url", "config")
}

func restoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "restore", Short: "Write a backup into the data folder of a Redis server that is not running",
		Args: cobra.NoArgs,
		Long: "restore checks a backup and writes it where a server with \"appendonly yes\" loads it at its next start:\n" +
			"as the base of an append-only file. A dump.rdb would be ignored there. The data folder must have no data. In a\n" +
			"Cluster each master has a folder of its own, and --slots names which copy it gets.\n\n" +
			"Stop the nodes before. Then start Redis, run \"parlor ledger rewind\" where there is an archive, and prove the\n" +
			"result with \"parlor audit --deep\" and \"parlor ledger verify\" before nodes serve again.",
		Example: "  parlor restore --from /backups/monday --data /data",
		RunE: func(c *cobra.Command, _ []string) error {
			from, _ := c.Flags().GetString("from")
			data, _ := c.Flags().GetString("data")
			slots, _ := c.Flags().GetString("slots")
			if from == "" || data == "" {
				return errors.New("restore needs --from, the folder of a backup, and --data, the data folder of a server")
			}
			if err := backup.Restore(from, slots, data); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s has the backup; start Redis, then: parlor ledger rewind, "+
				"parlor audit --deep, parlor ledger verify\n", data)
			return err
		},
	}
	c.Flags().String("from", "", "the folder of the backup")
	c.Flags().String("data", "", "the data folder of the server, its \"dir\"")
	c.Flags().String("slots", "", "in a Cluster: the slots of the master, as in backup.json")
	return c
}

func ledgerRewindCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rewind", Short: "After a restore or a failover: set aside what the archive has of the lost history",
		Args: cobra.NoArgs,
		Long: "rewind compares the archive with the store. Segments, checkpoints and lines that the store has not let go\n" +
			"yet belong to the history that it lost: they move into the folder superseded of the archive, and the\n" +
			"ledger goes on from what the store has. Without it nodes archive nothing, since their entries differ from\n" +
			"those in the archive. Run it while no node runs. To run it again is harmless.",
		RunE: func(c *cobra.Command, _ []string) error {
			label := "rewind-" + time.Now().UTC().Format("20060102T150405Z")
			return withBooks(c, func(ctx context.Context, b books) error {
				rewound, err := archiver.Rewind(ctx, b.ledgers, label)
				if errors.Is(err, apierror.StoreUnavailable) {
					return fmt.Errorf("%w; nothing was lost, run it again", err)
				}
				if err == nil {
					err = printJSON(c.OutOrStdout(), rewound)
				}
				return err
			})
		},
	}
	return settingFlags(c, ledgerSettings...)
}
