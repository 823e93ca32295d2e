package assets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store is all that the catalogue says to Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
}

// assetFields is what an asset's hash holds, in the order in which scripts answer it.
var assetFields = []string{"game", "token", "decimals", "price", "on", "stock", "limit", "sold", "ver", "name", "meta", "created"}

// fields reads texts one after the other and remembers the first fault.
type fields struct {
	rest []string
	err  error
}

func (f *fields) text() string {
	if len(f.rest) == 0 {
		f.err = cmp.Or(f.err, errors.New("too few fields"))
		return ""
	}
	text := f.rest[0]
	f.rest = f.rest[1:]
	return text
}

func (f *fields) number() int64 {
	n, err := strconv.ParseInt(f.text(), 10, 64)
	f.err = cmp.Or(f.err, err)
	return n
}

// optional reads a number or "" for none.
func (f *fields) optional() *int64 {
	if len(f.rest) > 0 && f.rest[0] == "" {
		f.text()
		return nil
	}
	return new(f.number())
}

func (f *fields) asset(id int64) Asset {
	a := Asset{ID: id, GameID: f.number(), TokenID: f.text()}
	decimals := int(f.number())
	a.PriceAmount = wallet.Units(f.number())
	a.Price = wallet.Amount{Units: a.PriceAmount, Decimals: decimals}
	a.Active = f.text() == "1"
	a.Stock, a.PerUserLimit = f.optional(), f.optional()
	a.Sold, a.Version = f.number(), f.number()
	a.Name, a.Metadata = f.text(), json.RawMessage(f.text())
	a.CreatedAt = time.UnixMilli(f.number()).UTC()
	return a
}

func optionalText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func (s store) create(ctx context.Context, a Asset) (Asset, error) {
	id, err := s.db.Client.Incr(ctx, keys.AssetNext()).Result() // one more than needed, when it is resent, does no harm
	if err != nil {
		return Asset{}, redisdb.WrapError("draw an asset id", err)
	}
	word, rest, err := s.db.Run(ctx, scripts.AssetCreate, []string{keys.Asset(id), keys.Assets(a.GameID)},
		id, a.GameID, a.TokenID, a.Price.Decimals, a.PriceAmount.String(), optionalText(a.Stock), optionalText(a.PerUserLimit), a.Name, string(a.Metadata))
	return s.answered(scripts.AssetCreate, id, word, rest, err)
}

func (s store) patch(ctx context.Context, a Asset, p Patch, price *wallet.Units) (Asset, error) {
	args := []any{idempotency.NewNonce()}
	if p.Name != nil {
		args = append(args, "name", *p.Name)
	}
	if p.Active != nil {
		on := "0"
		if *p.Active {
			on = "1"
		}
		args = append(args, "on", on)
	}
	if price != nil {
		args = append(args, "price", price.String())
	}
	if p.Stock != nil {
		args = append(args, "stock", optionalText(*p.Stock))
	}
	if p.PerUserLimit != nil {
		args = append(args, "limit", optionalText(*p.PerUserLimit))
	}
	if p.Metadata != nil {
		args = append(args, "meta", string(p.Metadata))
	}
	word, rest, err := s.db.Run(ctx, scripts.AssetPatch, []string{keys.Asset(a.ID)}, args...)
	return s.answered(scripts.AssetPatch, a.ID, word, rest, err)
}

func (s store) answered(script *scripts.Script, id int64, word string, rest []string, err error) (Asset, error) {
	if err != nil {
		return Asset{}, err
	}
	if word != "ok" {
		return Asset{}, redisdb.StatusError(script, word)
	}
	f := fields{rest: rest}
	a := f.asset(id)
	if f.err != nil {
		return Asset{}, fmt.Errorf("read the asset %d: %w", id, f.err)
	}
	return a, nil
}

// read reads those of the assets that exist, in the order asked.
func (s store) read(ctx context.Context, ids ...int64) ([]Asset, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies := make([]*redis.SliceCmd, len(ids))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HMGet(ctx, keys.Asset(id), assetFields...)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read assets", err)
	}
	found := make([]Asset, 0, len(ids))
	for i, id := range ids {
		values := replies[i].Val()
		if values[0] == nil {
			continue
		}
		f := fields{rest: make([]string, len(values))}
		for j, v := range values {
			f.rest[j], _ = v.(string)
		}
		a := f.asset(id)
		if f.err != nil {
			return nil, fmt.Errorf("read the asset %d: %w", id, f.err)
		}
		found = append(found, a)
	}
	return found, nil
}

func (s store) ids(ctx context.Context, game, after int64, count int) ([]int64, error) {
	members, err := s.db.Client.ZRangeByScore(ctx, keys.Assets(game), &redis.ZRangeBy{
		Min: "(" + strconv.FormatInt(after, 10), Max: "+inf", Count: int64(count),
	}).Result()
	if err != nil {
		return nil, redisdb.WrapError("list assets", err)
	}
	f := fields{rest: members}
	ids := make([]int64, len(members))
	for i := range ids {
		ids[i] = f.number()
	}
	return ids, f.err
}

func (s store) inventory(ctx context.Context, user int64) (map[int64]int64, error) {
	all, err := s.db.Client.HGetAll(ctx, keys.Inventory(user)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read an inventory", err)
	}
	counts := make(map[int64]int64, len(all))
	for id, count := range all {
		f := fields{rest: []string{id, count}}
		counts[f.number()] = f.number()
		if f.err != nil {
			return nil, fmt.Errorf("read an inventory: %w", f.err)
		}
	}
	return counts, nil
}

// order is one call of the purchase script.
type order struct {
	caller   principal.Caller
	asset    int64
	quantity int64
	expected string // units, or "" for any price
	terms    terms  // empty while this node has not sold the asset
	receipt  idempotency.Receipt
	nonce    string
}

// purchase runs the purchase. Where the order's terms are not the asset's it changes nothing and answers the right ones.
func (s store) purchase(ctx context.Context, o order) (Purchase, *terms, error) {
	user := o.caller.User
	receipt, ttl := o.receipt.OrPerCall(o.nonce, s.receiptTTL)
	reply, err := s.db.RunScript(ctx, scripts.AssetPurchase,
		[]string{
			keys.Asset(o.asset), keys.Wallet(user), keys.WalletLines(user), keys.WalletEvents(user), keys.Inventory(user),
			keys.Totals(), keys.Ledger(), keys.Token(o.terms.token), keys.MoneyReceipt(o.caller.ActorID(), receipt.Key),
		},
		s.db.PublishCommand, o.nonce, receipt.Fingerprint, ttl.Milliseconds(), user, o.asset, o.caller.Game, o.quantity, o.expected, o.terms.token)
	if err != nil {
		return Purchase{}, nil, err
	}
	f := fields{rest: reply.Values}
	if reply.Status == scripts.Stale {
		learnt := terms{token: f.text(), decimals: int(f.number())}
		if f.err != nil {
			return Purchase{}, nil, fmt.Errorf("read the terms of asset %d: %w", o.asset, f.err)
		}
		return Purchase{}, &learnt, nil
	}
	var sale Purchase
	reply, sale.Replayed = idempotency.FirstReply(o.nonce, reply)
	word := reply.Status
	f.rest = reply.Values
	var refusal error
	if word == "ok" && len(f.rest) == 1 {
		f.rest = strings.Split(f.rest[0], "\n") // one text, since parsing many costs; no value has a line break
		f.sale(o, &sale)
	} else {
		refusal = f.refusal(o, word)
	}
	if f.err != nil {
		return Purchase{}, nil, fmt.Errorf("read a purchase of asset %d: %w", o.asset, f.err)
	}
	return sale, nil, refusal
}

func (f *fields) sale(o order, sale *Purchase) {
	sale.PurchaseID, sale.Owned, sale.TotalAmount = f.number(), f.number(), wallet.Units(f.number())
	free, held, supply := f.text(), f.text(), f.text()
	sale.Asset = f.asset(o.asset)
	sale.Quantity = o.quantity
	sale.Price, sale.PriceAmount = sale.Asset.Price, sale.Asset.PriceAmount
	sale.Total = wallet.Amount{Units: sale.TotalAmount, Decimals: sale.Price.Decimals}
	var err error
	sale.Balance, err = wallet.DecodeBalance(sale.Asset.TokenID, f.rest, supply, free, held)
	sale.EntryToken = sale.Balance.Token
	f.err = cmp.Or(f.err, err)
}

func (f *fields) refusal(o order, word string) error {
	amount := func(units wallet.Units) wallet.Amount { return wallet.Amount{Units: units, Decimals: o.terms.decimals} }
	switch word {
	case apierror.PriceChanged.Code:
		price := wallet.Units(f.number())
		return apierror.PriceChanged.WithReason("the price of one is %s", price.Decimal(o.terms.decimals)).
			WithMember("price", amount(price)).WithMember("priceAmount", price.String())
	case apierror.SoldOut.Code:
		stock := f.number()
		return apierror.SoldOut.WithReason("%d are left", stock).WithMember("stock", stock)
	case apierror.AlreadyOwned.Code:
		owned, limit := f.number(), f.number()
		return apierror.AlreadyOwned.WithReason("%d are owned of at most %d", owned, limit).WithMember("owned", owned).WithMember("perUserLimit", limit)
	case apierror.InvalidAmount.Code:
		return apierror.InvalidAmount.WithReason("the total is more than %s minor units", wallet.MaxUnits)
	case apierror.InsufficientFunds.Code:
		available, required := wallet.Units(f.number()), wallet.Units(f.number())
		return wallet.InsufficientFunds(o.terms.token, o.terms.decimals, available, required)
	default:
		return redisdb.StatusError(scripts.AssetPurchase, word)
	}
}
