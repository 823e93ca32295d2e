package assets

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Service has the methods of the catalogue. It is safe for concurrent use.
type Service struct {
	store      store
	wallets    *wallet.Service
	quotas     Quotas
	admitNew   func(gameID int64) error
	tokenCodes *cache.Cache[assetKey, string] // what an asset costs, which never changes
}

// assetKey names an asset in the economy of a game.
type assetKey struct{ gameID, assetID int64 }

// maxCachedAssets bounds the memory of the cache to about a megabyte.
const maxCachedAssets = 10_000

// Quotas knows the quotas of games. *games.Service implements it.
type Quotas interface {
	// AssetQuota returns the most assets of a game.
	AssetQuota(ctx context.Context, gameID int64) (int64, error)
}

// Options are the settings of the catalogue.
type Options struct {
	Quotas   Quotas                   // nil bounds no game
	AdmitNew func(gameID int64) error // is called before each new asset, which fails with its error; nil admits all

	ReceiptTTL time.Duration // how long the first result of a purchase with a key is kept; 0 means 24 h
}

// New returns the catalogue's methods on an open store.
func New(db *redisdb.DB, wallets *wallet.Service, o Options) *Service {
	if o.AdmitNew == nil {
		o.AdmitNew = func(int64) error { return nil }
	}
	return &Service{
		quotas: o.Quotas, admitNew: o.AdmitNew,
		store:      store{db: db, receiptTTL: cmp.Or(o.ReceiptTTL, 24*time.Hour)},
		wallets:    wallets,
		tokenCodes: cache.New[assetKey, string]("asset_tokens", maxCachedAssets, 0),
	}
}

// authorizeRead returns nil when the caller may see what is on sale in the game.
func authorizeRead(caller principal.Caller, gameID int64) error {
	return caller.Authorize(gameID, principal.Operator, principal.Server, principal.Player)
}

// authorizeManage returns nil when the caller may see and change the whole catalogue of the game.
func authorizeManage(caller principal.Caller, gameID int64) error {
	return caller.AuthorizeStaff(gameID, "assets")
}

// Create puts an asset on sale in a game. The caller must be an operator or the server of the game.
// It returns forbidden, game_not_found, invalid_request, token_not_found, invalid_amount,
// store_full, and limit_reached when the game has as many assets as its quota allows.
func (s *Service) Create(ctx context.Context, caller principal.Caller, gameID int64, in CreateInput) (Asset, error) {
	if err := authorizeManage(caller, gameID); err != nil {
		return Asset{}, err
	}
	if err := in.validate(); err != nil {
		return Asset{}, err
	}
	t, err := s.wallets.FindToken(ctx, gameID, in.TokenCode)
	if err != nil {
		return Asset{}, err
	}
	price, err := in.Price.ToUnits(t.Decimals)
	if err != nil {
		return Asset{}, apierror.InField("price", err)
	}
	if err := s.admitNew(gameID); err != nil {
		return Asset{}, err
	}
	most, err := s.assetQuota(ctx, gameID)
	if err != nil {
		return Asset{}, err
	}
	a, err := s.store.create(ctx, Asset{
		GameID: gameID, Name: in.Name, TokenCode: t.Code, Price: t.AmountOf(price), PriceUnits: price,
		Stock: in.Stock, PerUserLimit: in.PerUserLimit, Metadata: compact(in.Metadata),
	}, most)
	if errors.Is(err, apierror.LimitReached) {
		err = apierror.ReachedQuota(quotaName, most)
	}
	return a, err
}

// quotaName is the quota of assets in the settings of a game.
const quotaName = "assets"

// assetQuota returns the most assets of a game.
func (s *Service) assetQuota(ctx context.Context, gameID int64) (int64, error) {
	if s.quotas == nil {
		return math.MaxInt64, nil
	}
	return s.quotas.AssetQuota(ctx, gameID)
}

// Patch changes an asset of a game and returns the asset after it. The caller must be an operator
// or the server of the game. It returns forbidden, game_not_found, invalid_request,
// asset_not_found, invalid_amount.
func (s *Service) Patch(
	ctx context.Context, caller principal.Caller, gameID, assetID int64, p PatchInput,
) (Asset, error) {
	if err := authorizeManage(caller, gameID); err != nil {
		return Asset{}, err
	}
	if err := p.validate(); err != nil {
		return Asset{}, err
	}
	a, err := s.find(ctx, gameID, assetID)
	if err != nil {
		return Asset{}, err
	}
	var price *wallet.Units
	if p.Price != nil {
		units, err := p.Price.ToUnits(a.Price.Decimals)
		if err != nil {
			return Asset{}, apierror.InField("price", err)
		}
		price = &units
	}
	if p.Metadata != nil {
		p.Metadata = compact(p.Metadata)
	}
	return s.store.patch(ctx, gameID, a.ID, p, price)
}

// Delete removes an asset that was never sold and never promised as a prize. The caller must be an
// operator or the server of the game. It returns forbidden, also if somebody has a piece of the
// asset or may get one; game_not_found, asset_not_found.
func (s *Service) Delete(ctx context.Context, caller principal.Caller, gameID, assetID int64) error {
	if err := authorizeManage(caller, gameID); err != nil {
		return err
	}
	err := s.store.remove(ctx, gameID, assetID)
	if errors.Is(err, apierror.Forbidden) {
		err = apierror.Forbidden.WithReason("the asset was sold or promised as a prize: take it off sale")
	}
	return err
}

// Get returns an asset of a game, on sale or not. The caller must be an operator or the server of
// the game. It returns forbidden, game_not_found; and asset_not_found, also for an asset of another
// game.
func (s *Service) Get(ctx context.Context, caller principal.Caller, gameID, assetID int64) (Asset, error) {
	if err := authorizeManage(caller, gameID); err != nil {
		return Asset{}, err
	}
	return s.find(ctx, gameID, assetID)
}

func (s *Service) find(ctx context.Context, gameID, assetID int64) (Asset, error) {
	found, err := s.store.readAssets(ctx, gameID, assetID)
	if err != nil {
		return Asset{}, err
	}
	if len(found) == 0 {
		return Asset{}, apierror.AssetNotFound
	}
	return found[0], nil
}

// List returns a page of a game's catalogue by id, and the id after which the next page starts, or
// 0 on the last page. Players of the game, its server and operators may list the assets on sale;
// only players may not include inactive ones. It returns forbidden, game_not_found.
func (s *Service) List(
	ctx context.Context, caller principal.Caller, gameID int64, q ListQuery,
) (page []Asset, next int64, err error) {
	authorize := authorizeRead
	if q.IncludeInactive {
		authorize = authorizeManage
	}
	if err := authorize(caller, gameID); err != nil {
		return nil, 0, err
	}
	page = make([]Asset, 0, q.Limit)
	for after := q.After; ; {
		ids, err := s.store.listIDs(ctx, gameID, after, q.Limit+1)
		if err != nil {
			return nil, 0, err
		}
		found, err := s.store.readAssets(ctx, gameID, ids...)
		if err != nil {
			return nil, 0, err
		}
		for _, a := range found {
			if !a.Active && !q.IncludeInactive {
				continue
			}
			if len(page) == q.Limit {
				return page, page[q.Limit-1].ID, nil
			}
			page = append(page, a)
		}
		if len(ids) <= q.Limit {
			return page, 0, nil
		}
		after = ids[len(ids)-1]
	}
}

// ListOwned returns a page of the calling player's assets by asset id, and the id after which the
// next page starts, or 0 on the last page. It returns forbidden for other callers.
func (s *Service) ListOwned(
	ctx context.Context, caller principal.Caller, after int64, limit int,
) (page []OwnedAsset, next int64, err error) {
	if caller.Role != principal.Player {
		return nil, 0, apierror.Forbidden.WithReason("only a player owns assets")
	}
	counts, err := s.store.readInventory(ctx, caller.GameID, caller.UserID)
	if err != nil {
		return nil, 0, err
	}
	ids := make([]int64, 0, len(counts))
	for id := range counts {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) > limit {
		ids = ids[:limit]
		next = ids[limit-1]
	}
	found, err := s.store.readAssets(ctx, caller.GameID, ids...)
	if err != nil {
		return nil, 0, err
	}
	page = make([]OwnedAsset, 0, len(found))
	for _, a := range found {
		page = append(page, OwnedAsset{Asset: a, Quantity: counts[a.ID]})
	}
	return page, next, nil
}

// Purchase sells the calling player some pieces of an asset of the player's game. It is one script
// and, once this node has sold the asset, one round trip. It returns forbidden, invalid_request,
// asset_not_found, price_changed, sold_out, already_owned, invalid_amount, insufficient_funds,
// idempotency_key_reused. Errors carry members that help, and are kept under the receipt as a
// purchase is. A replay has what the first purchase cost and left, with the asset and the supply of
// its token as they are now; the supply comes from the cache of this node.
func (s *Service) Purchase(
	ctx context.Context, caller principal.Caller, assetID int64, in PurchaseInput, receipt idempotency.Receipt,
) (PurchaseResult, error) {
	if caller.Role != principal.Player {
		return PurchaseResult{}, apierror.Forbidden.WithReason("only a player can buy")
	}
	if err := in.validate(); err != nil {
		return PurchaseResult{}, err
	}
	if assetID < 1 {
		return PurchaseResult{}, apierror.AssetNotFound
	}
	call := purchaseCall{
		caller: caller, assetID: assetID, quantity: in.Quantity, receipt: receipt, nonce: idempotency.NewNonce(),
	}
	var err error
	switch call.token, err = s.findAssetToken(ctx, caller.GameID, assetID); {
	case errors.Is(err, apierror.AssetNotFound): // the script stores that under the receipt
	case err != nil:
		return PurchaseResult{}, err
	case in.ExpectedPrice != "":
		expected, err := in.ExpectedPrice.ToUnits(call.token.Decimals)
		if err != nil {
			return PurchaseResult{}, apierror.InField("expectedPrice", err)
		}
		call.expectedPrice = expected.String()
	}
	if err := s.wallets.CheckMoney(caller.GameID); err != nil {
		return PurchaseResult{}, err
	}
	defer s.wallets.LedgerChanged(caller.GameID)
	return s.store.purchase(ctx, call)
}

// findAssetToken returns the token that an asset costs. It returns asset_not_found.
func (s *Service) findAssetToken(ctx context.Context, gameID, assetID int64) (wallet.Token, error) {
	key := assetKey{gameID, assetID}
	code, ok := s.tokenCodes.Get(key)
	if !ok {
		a, err := s.find(ctx, gameID, assetID)
		if err != nil {
			return wallet.Token{}, err
		}
		code = a.TokenCode
		s.tokenCodes.Add(key, code)
	}
	return s.wallets.FindToken(ctx, gameID, code)
}

// compact returns metadata without white space; nil becomes an empty object.
func compact(metadata wire.RawJSON) wire.RawJSON {
	compacted := metadata.Clone()
	if metadata == nil || compacted.Compact() != nil {
		return wire.RawJSON("{}")
	}
	return compacted
}
