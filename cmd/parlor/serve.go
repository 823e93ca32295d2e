package main

import (
	"github.com/parlor-games/parlor/internal/config"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs,
		Short: "Run a node for production: all settings checked, a store that loses nothing",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeServe)
			if err != nil {
				return err
			}
			log := newLog(s, c.ErrOrStderr())
			for _, warning := range s.Warnings() {
				log.Warn(warning)
			}
			db, err := openStore(c.Context(), s)
			if err != nil {
				return ignoreStop(err) // stopped while it waited for the store
			}
			defer func() { _ = db.Close() }()
			warnings, err := db.Warnings(c.Context())
			if err != nil {
				return ignoreStop(err)
			}
			for _, warning := range warnings {
				log.Warn(warning)
			}
			n, err := newNode(db, s, config.ModeServe, log)
			if err != nil {
				return err
			}
			return n.run(c.Context(), func(string) {})
		},
	}
	return settingFlags(c)
}
