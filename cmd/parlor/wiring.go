package main

import (
	"context"
	"errors"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/rooms"
)

// boardsConsumer returns the consumer that adds the results of rooms to leaderboards, which know no
// rooms. A room that was cancelled has no result.
func boardsConsumer(boards *leaderboards.Service) rooms.ResultConsumer {
	return func(ctx context.Context, e rooms.Ended) error {
		if e.Status != rooms.Finished {
			return nil
		}
		result := leaderboards.RoomResult{
			GameID: e.GameID, RoomID: e.RoomID, EndedAt: e.EndedAt, TokenDecimals: e.TokenDecimals,
			ByConsensus: e.SettledBy == rooms.SettledByConsensus, Players: make([]leaderboards.RoomPlayer, len(e.Places)),
			Fed: e.Applied,
		}
		for i, p := range e.Places {
			result.Players[i] = leaderboards.RoomPlayer{
				UserID: p.UserID, Place: p.Place, Score: p.Score, PayoutUnits: int64(p.Payout),
			}
		}
		err := boards.AddRoomResult(ctx, result)
		if partly, ok := errors.AsType[*leaderboards.PartlyFed](err); ok {
			return &rooms.PartlyApplied{Applied: partly.Fed, Err: partly.Err}
		}
		return err
	}
}

// signupGrants lets sign-ins credit the grant of a game; they know no wallets.
type signupGrants struct{ wallets *wallet.Service }

// GiveSignupGrant implements auth.SignupGrants.
func (g signupGrants) GiveSignupGrant(ctx context.Context, game games.Game, userID int64) error {
	return g.wallets.Grant(ctx, principal.Caller{Role: principal.System}, wallet.GrantInput{
		UserID: userID, GameID: game.ID,
		TokenCode: game.SignupGrant.TokenCode, Units: wallet.Units(game.SignupGrant.Units),
		LimitPerDay: wallet.AmountInput(game.Settings.GrantLimitPerDay),
	})
}
