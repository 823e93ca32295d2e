package handlers_test

import (
	"context"

	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/progress"
)

// gameValidator is the games.Validator of a node, see cmd/parlor.
type gameValidator struct{ wallet *wallet.Service }

func (gameValidator) CheckProgressRules(rules []byte) error {
	_, err := progress.ParseRules(rules)
	return err
}

func (gameValidator) CheckKeySet(keySet []byte) error { return auth.CheckKeySet(keySet) }

func (v gameValidator) ParseAmount(ctx context.Context, tokenID, amount string) (int64, error) {
	t, err := v.wallet.FindToken(ctx, 0, tokenID)
	if err != nil {
		return 0, err
	}
	units, err := wallet.AmountInput(amount).ToPositiveUnits(t.Decimals)
	return int64(units), err
}
