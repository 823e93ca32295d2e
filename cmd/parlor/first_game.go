package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/players/games"
)

// firstGame returns the definition of the game that an installation begins with, for dev as for
// serve. The templates of create-parlor can be played in it.
func firstGame(name string, origins []string) games.Definition {
	return games.Definition{
		Name: name, Origins: origins, SignupGrant: &games.SignupGrantInput{
			TokenCode: seededTokens[0].Code, DecimalAmount: "100.00", For: games.GrantForAny,
		},
		Settings: games.SettingsPatch{
			Settlements: &[]games.Settlement{games.SettledByServer, games.SettledByConsensus},
			// Those of the templates and of the examples in the documents.
			StateKeys: &games.StateKeys{"moves.": games.WriterOwner, "cells.": games.WriterOwner},
			Feed:      new(true),
		},
	}
}

// makeFirstGame makes the game of the settings where the store has none, with its token.
func (n *node) makeFirstGame(ctx context.Context) error {
	s := n.settings
	if s.FirstGame == "" {
		return nil
	}
	if existing, _, err := n.games.List(ctx, operator, 0, 1); err != nil || len(existing) > 0 {
		return err
	}
	token := seededTokens[0]
	if _, err := n.wallet.CreateToken(ctx, operator, token); err != nil && !errors.Is(err, apierror.TokenCodeTaken) {
		return fmt.Errorf("make the token of the first game: %w", err)
	}
	definition := firstGame(s.FirstGame, splitOrigins(s.FirstGameOrigins))
	game, made, err := n.games.CreateFirst(ctx, operator, definition, s.FirstGameKey.Reveal())
	if err != nil {
		return fmt.Errorf("make the first game: %w", err)
	}
	if made {
		n.log.Info("made the first game", "game", game.ID, "name", game.Name, "origins", game.Origins)
	}
	return nil
}

// splitOrigins returns the origins of a setting or flag, which commas or spaces separate.
func splitOrigins(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
