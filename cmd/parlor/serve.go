package main

import (
	"runtime"

	"github.com/parlor-games/parlor/internal/config"
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
			defer runtime.KeepAlive(ballast())
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

// ballast is 64 MiB that are never touched, so that they are not in memory, but count as alive: the garbage of a node that keeps
// little is collected when there is about that much of it, rather than at every few MiB, which would cost a tenth of the CPU. How much
// more memory a node with many sockets takes stays a matter of GOGC, and its bound of GOMEMLIMIT.
func ballast() []byte { return make([]byte, 64<<20) }
