package assets

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
)

// Service is the verbs of the catalogue. It is safe for concurrent use. Whether a game exists is for its caller to know.
type Service struct {
	store   store
	wallets *wallet.Service
	terms   sync.Map // asset id → terms, only of assets that exist
}

// terms are what never changes about an asset's price: knowing them, a purchase is one round trip.
type terms struct {
	token    string
	decimals int
}

// Options are the catalogue's settings.
type Options struct {
	ReceiptTTL time.Duration // how long the first answer to a keyed purchase is kept; 0 means 24 h
}

// New makes the verbs of the catalogue on an open store.
func New(db *redisdb.DB, wallets *wallet.Service, o Options) *Service {
	return &Service{store: store{db: db, receiptTTL: cmp.Or(o.ReceiptTTL, 24*time.Hour)}, wallets: wallets}
}

// Create puts an asset on sale in a game. It refuses token_not_found and invalid_amount.
func (s *Service) Create(ctx context.Context, game int64, in CreateInput) (Asset, error) {
	if err := in.validate(); err != nil {
		return Asset{}, err
	}
	t, err := s.wallets.Token(ctx, in.TokenID)
	if err != nil {
		return Asset{}, err
	}
	price, err := in.Price.Units(t.Decimals)
	if err != nil {
		return Asset{}, err
	}
	return s.store.create(ctx, Asset{
		GameID: game, Name: in.Name, TokenID: t.TokenID, Price: t.Amount(price), PriceAmount: price,
		Stock: in.Stock, PerUserLimit: in.PerUserLimit, Metadata: compact(in.Metadata),
	})
}

// Patch changes an asset of a game, and answers it as it is then.
func (s *Service) Patch(ctx context.Context, game, assetID int64, p Patch) (Asset, error) {
	if err := p.validate(); err != nil {
		return Asset{}, err
	}
	a, err := s.Get(ctx, game, assetID)
	if err != nil {
		return Asset{}, err
	}
	var price *wallet.Units
	if p.Price != nil {
		units, err := p.Price.Units(a.Price.Decimals)
		if err != nil {
			return Asset{}, err
		}
		price = &units
	}
	if p.Metadata != nil {
		p.Metadata = compact(p.Metadata)
	}
	return s.store.patch(ctx, a, p, price)
}

// Get finds an asset of a game, on sale or not; one of another game is asset_not_found.
func (s *Service) Get(ctx context.Context, game, assetID int64) (Asset, error) {
	found, err := s.store.read(ctx, assetID)
	if err != nil {
		return Asset{}, err
	}
	if len(found) == 0 || found[0].GameID != game {
		return Asset{}, apierror.AssetNotFound
	}
	return found[0], nil
}

// ListQuery asks for a page of a game's catalogue.
type ListQuery struct {
	After           int64 // only ids above this: where the last page ended
	Limit           int   // 1 … 100
	IncludeInactive bool  // also what is not on sale
}

// List is a page of a game's catalogue by id, and the id to go on after, 0 at the end.
func (s *Service) List(ctx context.Context, game int64, q ListQuery) ([]Asset, int64, error) {
	page := make([]Asset, 0, q.Limit)
	for after := q.After; ; {
		ids, err := s.store.ids(ctx, game, after, q.Limit+1)
		if err != nil {
			return nil, 0, err
		}
		found, err := s.store.read(ctx, ids...)
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

// ListOwned is a page of what a player has, by asset id, and the id to go on after, 0 at the end.
func (s *Service) ListOwned(ctx context.Context, user, after int64, limit int) ([]Owned, int64, error) {
	counts, err := s.store.inventory(ctx, user)
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
	var next int64
	if len(ids) > limit {
		ids = ids[:limit]
		next = ids[limit-1]
	}
	found, err := s.store.read(ctx, ids...)
	if err != nil {
		return nil, 0, err
	}
	page := make([]Owned, 0, len(found))
	for _, a := range found {
		page = append(page, Owned{Asset: a, Owned: counts[a.ID]})
	}
	return page, next, nil
}

// Purchase sells a player so many of an asset of the player's game, in one script and, once this node has sold the asset,
// one round trip. It refuses asset_not_found, price_changed, sold_out, already_owned, invalid_amount, insufficient_funds; with the
// members that help, and under the same receipt for ever after.
func (s *Service) Purchase(ctx context.Context, caller principal.Caller, assetID int64, in PurchaseInput, rc idempotency.Receipt) (Purchase, error) {
	if caller.Role != principal.Player {
		return Purchase{}, apierror.Forbidden.WithReason("only a player can buy")
	}
	if err := in.validate(); err != nil {
		return Purchase{}, err
	}
	if assetID < 1 {
		return Purchase{}, apierror.AssetNotFound
	}
	o := order{caller: caller, asset: assetID, quantity: in.Quantity, receipt: rc, nonce: idempotency.NewNonce()}
	for {
		if known, ok := s.terms.Load(assetID); ok {
			o.terms = known.(terms)
			if in.ExpectedPrice != "" {
				expected, err := in.ExpectedPrice.Units(o.terms.decimals)
				if err != nil {
					return Purchase{}, err
				}
				o.expected = expected.String()
			}
		}
		sale, learnt, err := s.store.purchase(ctx, o)
		if learnt == nil {
			return sale, err
		}
		s.terms.Store(assetID, *learnt)
	}
}

// compact is the metadata without white space; none is an empty object.
func compact(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if text == nil || json.Compact(&b, text) != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}
