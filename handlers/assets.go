package handlers

import (
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/wallet"
)

type purchaseInput struct {
	Quantity      *int64             `json:"quantity"`
	ExpectedPrice wallet.AmountInput `json:"expectedPrice"`
}

// normal says what no quantity means, so that saying it or not is the same request.
func (in *purchaseInput) normal() {
	if in.Quantity == nil {
		in.Quantity = new(int64(1))
	}
}

func (e *Server) purchase(c *call, in *purchaseInput) (reply, error) {
	asset, err := c.pathID("gameAssetId", apierror.AssetNotFound)
	if err != nil {
		return reply{}, err
	}
	ask := assets.PurchaseInput{Quantity: *in.Quantity, ExpectedPrice: in.ExpectedPrice}
	sale, err := e.Assets.Purchase(c.ctx(), c.caller, asset, ask, c.receipt)
	return created(&sale).again(sale.Replayed), err
}

func (e *Server) ownedAssets(c *call) (reply, error) {
	q := c.query()
	after, limit := q.after(), q.limit()
	if err := q.err(); err != nil {
		return reply{}, err
	}
	owned, next, err := e.Assets.ListOwned(c.ctx(), c.caller, after, limit)
	return ok(pageOf(owned, next)), err
}

// catalogue is what a game sells: the caller's own, or the one that an operator names.
func (e *Server) catalogue(c *call) (reply, error) {
	q := c.query()
	game := q.id("gameId")
	ask := assets.ListQuery{After: q.after(), Limit: q.limit()}
	switch {
	case game == 0 && c.caller.Role == principal.Operator:
		q.refuse("gameId", "required", "is required")
	case game == 0:
		game = c.caller.Game
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	return e.assetPage(c, game, ask)
}

func (e *Server) assetPage(c *call, game int64, ask assets.ListQuery) (reply, error) {
	if err := e.ownGame(c, game); err != nil {
		return reply{}, err
	}
	list, next, err := e.Assets.List(c.ctx(), c.caller, game, ask)
	return ok(pageOf(list, next)), err
}
