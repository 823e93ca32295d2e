package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Args: cobra.NoArgs,
		Short: "Run a node for production: all settings checked, a store that loses nothing",
		Long: "serve listens at once. Until it has reached the store it answers /healthz with 200 and everything else\n" +
			"with 503, and goes on trying. A store that cannot keep the promise of the settings ends it with status 78.\n\n" +
			"SIGTERM and SIGINT drain the node, and a second one ends it at once. SIGHUP reads the settings file and the\n" +
			"files of secrets again: a fault in them changes nothing, and the log says which settings need a restart.",
		RunE: func(c *cobra.Command, _ []string) error {
			// From the start: without a handler the signal would end the process.
			reloads := make(chan os.Signal, 1)
			signal.Notify(reloads, syscall.SIGHUP)
			defer signal.Stop(reloads)
			load := func() (config.Settings, error) { return loadSettings(c, config.ModeServe) }
			s, err := load()
			if err != nil {
				return err
			}
			log, level, storeErrors := newLog(s, c.ErrOrStderr())
			for _, warning := range s.Warnings() {
				log.Warn(warning)
			}
			db, err := openStore(s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			n, err := newNode(db, s, config.ModeServe, log, storeErrors)
			if err != nil {
				return err
			}
			n.load, n.reloads, n.logLevel = load, reloads, level
			return n.run(c.Context(), func(string) companions { return nil })
		},
	}
	return settingFlags(c)
}
