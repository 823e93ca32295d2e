package handlers

import (
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

type purchaseInput struct {
	Quantity      *int64             `json:"quantity"`
	ExpectedPrice wallet.AmountInput `json:"expectedPrice"`
}

// Validate sets the default quantity.
func (in *purchaseInput) Validate() error {
	if in.Quantity == nil {
		in.Quantity = new(int64(1))
	}
	return nil
}

func (s *Server) purchaseAsset(r *request, in *purchaseInput) (response, error) {
	input := assets.PurchaseInput{Quantity: *in.Quantity, ExpectedPrice: in.ExpectedPrice}
	sale, err := s.Assets.Purchase(r.ctx(), r.caller, r.id("gameAssetId"), input, r.receipt)
	return createdResponse(&sale).withReplayed(sale.Replayed), err
}

func (s *Server) listOwnedAssets(r *request) (response, error) {
	q := r.query()
	after, limit := q.afterID(), q.limit()
	if err := q.err(); err != nil {
		return response{}, err
	}
	owned, next, err := s.Assets.ListOwned(r.ctx(), r.caller, after, limit)
	return okResponse(newPage(owned, next)), err
}

// listCatalogue returns the assets that a game sells: the caller's own game, or the one that an
// operator names.
func (s *Server) listCatalogue(r *request) (response, error) {
	q := r.query()
	game := q.id("gameId")
	query := assets.ListQuery{After: q.afterID(), Limit: q.limit()}
	switch {
	case game == 0 && r.caller.Role == principal.Operator:
		q.addError("gameId", "required", "is required")
	case game == 0:
		game = r.caller.GameID
	}
	if err := q.err(); err != nil {
		return response{}, err
	}
	return s.assetPageResponse(r, game, query)
}

func (s *Server) assetPageResponse(r *request, game int64, query assets.ListQuery) (response, error) {
	if err := s.checkGameAccess(r, game); err != nil {
		return response{}, err
	}
	list, next, err := s.Assets.List(r.ctx(), r.caller, game, query)
	return okResponse(newPage(list, next)), err
}
