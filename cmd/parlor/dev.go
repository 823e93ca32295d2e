package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/parlor-games/parlor/internal/config"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/spf13/cobra"
)

func devCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "dev", Args: cobra.NoArgs,
		Short: "Run a node for development: nothing to install, an example game, nothing stored",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeDev)
			if err != nil {
				return err
			}
			if len(s.AdminKeys) == 0 {
				s.AdminKeys = []config.Secret{randomDevKey()}
			}
			if len(s.SigningKeys) == 0 {
				s.SigningKeys = []config.Secret{randomDevKey()}
			}
			log := newLog(s, c.ErrOrStderr())
			db, err := openStore(s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			required := requirements(s)
			required.MaxWait = s.StoreWait
			if err := db.CheckRequirements(c.Context(), required); err != nil {
				return ignoreStop(err) // stopped while it waited for the store
			}
			n, err := newNode(db, s, config.ModeDev, log)
			if err != nil {
				return err
			}
			var origins []string
			if db.Kind() == redisdb.KindEmbedded {
				origins = []string{games.AnyOriginPattern}
			}
			example, err := n.seed(c.Context(), origins...)
			if err != nil {
				return err
			}
			tokens := make([]string, len(example.players))
			for i, p := range example.players {
				if tokens[i], err = n.auth.IssueAccessToken(c.Context(), example.game.ID, p.id, devTokenTTL); err != nil {
					return err
				}
			}
			return n.run(c.Context(), func(public string) {
				url := "http://" + dialAddress(public)
				console, err := n.devConsoleLink(c.Context(), url)
				if err != nil {
					console = "parlor console --url " + url
				}
				n.printExamples(c.OutOrStdout(), url, console, example, tokens)
			})
		},
	}
	return settingFlags(c)
}

// devTokenTTL is longer than the 15 minutes of other access tokens, so that the printed commands
// work all day.
const devTokenTTL = 24 * time.Hour

// randomDevKey returns a random key for one start. serve rejects such keys.
func randomDevKey() config.Secret {
	return config.Secret(config.DevKeyPrefix + rand.Text() + rand.Text())
}

// printExamples prints commands to paste: at most 16 lines, each a comment or a complete command.
func (n *node) printExamples(out io.Writer, url, console string, s seedResult, tokens []string) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	if n.db.Kind() == redisdb.KindEmbedded {
		line("# Parlor is at %s  ·  ALL DATA IS LOST when this process ends; keep it with --redis-url", url)
	} else {
		line("# Parlor is at %s  ·  for development, on the store of --redis-url", url)
	}
	line("# API: %s/openapi.yaml", url)
	line("# console, a link for one use within ten minutes: %s", console)
	line("export URL=%s ADMIN_KEY=%s", url, n.settings.AdminKeys[0].Reveal())
	if s.serverKey != "" {
		line("export SERVER_KEY=%s  # of game %d, %q", s.serverKey, s.game.ID, s.game.Name)
	}
	for i, p := range s.players {
		line("export %s=%s  # player %d", p.tokenVariable(), tokens[i], p.id)
	}
	ada, token := s.players[0], tokens[0]
	line("# balances of %s, a room with a stake, and the audit of all money:", ada.name)
	line("curl -s %s/api/v1/user-balance/token-balances -H 'Authorization: Bearer %s'", url, token)
	line(`curl -s %s/api/v1/game-session/create -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' `+
		`-d '{"entryTokenId":%d,"roomEntry":2.5,"maxPlayers":2}'`, url, token, s.stakeTokenID)
	line("curl -s %s/api/v1/admin/audit -H 'Authorization: Bearer %s'", url, n.settings.AdminKeys[0].Reveal())
}
