package main

import (
	"github.com/parlor-games/parlor/config"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "Run a node for real: every setting checked, a store that keeps what it is told", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.Serve)
			if err != nil {
				return err
			}
			log := newLog(s, c.ErrOrStderr())
			for _, warning := range s.Warnings() {
				log.Warn(warning)
			}
			db, err := openStore(c.Context(), s)
			if err != nil {
				return ended(err) // told to stop while it waited for the store
			}
			defer func() { _ = db.Close() }()
			n, err := newNode(db, s, config.Serve, log)
			if err != nil {
				return err
			}
			return n.run(c.Context(), func(string) {})
		},
	}
	return settingFlags(c)
}
