package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/internal/store/history"
	"github.com/spf13/cobra"
)

func tokenCommand() *cobra.Command {
	var game, user int64
	var ttl time.Duration
	c := &cobra.Command{
		Use: "token", Short: "Sign an access token for a player, to investigate as that player", Args: cobra.NoArgs,
		Example: "  curl -H \"Authorization: Bearer $(parlor token --game 1 --user 2)\" http://127.0.0.1:8080/api/v1/me",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := loadSettings(c, config.ModeTool, "redis-url", "signing-key")
			if err != nil {
				return err
			}
			if game < 1 || user < 1 || ttl <= 0 {
				return errors.New("token needs --game and --user, and a --ttl above 0")
			}
			db, err := openToolStore(c.Context(), s)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			status, err := history.ReadStatus(c.Context(), db)
			if err != nil {
				return err
			}
			auth := newDomains(db, nil, s, config.ModeTool).auth
			auth.SetAcceptedEpoch(status.Accepted)
			token, err := auth.IssueAccessToken(c.Context(), game, user, ttl)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), token)
			return err
		},
	}
	c.Flags().Int64Var(&game, "game", 0, "the player's game")
	c.Flags().Int64Var(&user, "user", 0, "the player")
	c.Flags().DurationVar(&ttl, "ttl", 15*time.Minute, "how long the token is valid")
	return settingFlags(c, "redis-url", "signing-key", "config")
}
