package main

import (
	"github.com/parlor-games/parlor/internal/config"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs,
		Short: "Run a node for production: all settings checked, a store that loses nothing",
		Long: "serve listens at once. Until it has reached the store it answers /healthz with 200 and everything else\n" +
			"with 503, and goes on trying. A store that cannot keep the promise of the settings ends it with status 78.",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeServe)
			if err != nil {
				return err
			}
			log := newLog(s, c.ErrOrStderr())
			for _, warning := range s.Warnings() {
				log.Warn(warning)
			}
			db, err := openStore(s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			n, err := newNode(db, s, config.ModeServe, log, nil)
			if err != nil {
				return err
			}
			return n.run(c.Context(), func(string) companions { return nil })
		},
	}
	return settingFlags(c)
}
