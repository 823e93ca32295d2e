package assets

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/internal/wire"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes assets and inventories in Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
}

// decodeAsset returns the asset in the next values, which are those of keys.AssetFields.
func decodeAsset(id int64, v *redisdb.Values) Asset {
	a := Asset{ID: id, GameID: v.NextInt(), TokenCode: v.NextText()}
	decimals := int(v.NextInt())
	a.PriceUnits = wallet.Units(v.NextInt())
	a.Price = wallet.Amount{Units: a.PriceUnits, Decimals: decimals}
	a.Active = v.NextText() == "1"
	a.Stock, a.PerUserLimit = v.NextOptionalInt(), v.NextOptionalInt()
	a.Sold, a.Version = v.NextInt(), v.NextInt()
	a.Name, a.Metadata = v.NextText(), wire.RawJSON(v.NextText())
	a.CreatedAt = v.NextTime()
	return a
}

// optionalText returns the number as text, "" for nil.
func optionalText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func (s store) create(ctx context.Context, a Asset) (Asset, error) {
	id, err := s.db.Client.Incr(ctx, keys.AssetIDCounter()).Result() // a resend leaves a gap, which does no harm
	if err != nil {
		return Asset{}, redisdb.WrapError("draw an asset id", err)
	}
	reply, err := s.db.RunScript(ctx, scripts.AssetCreate, []string{keys.Asset(id), keys.Assets(a.GameID)},
		id, a.GameID, a.TokenCode, a.Price.Decimals, a.PriceUnits.String(),
		optionalText(a.Stock), optionalText(a.PerUserLimit), a.Name, string(a.Metadata))
	return assetFromReply(scripts.AssetCreate, id, reply, err)
}

// patch changes an asset; price is that of the patch in minor units, or nil.
func (s store) patch(ctx context.Context, id int64, p PatchInput, price *wallet.Units) (Asset, error) {
	args := []any{idempotency.NewNonce()}
	if p.Name != nil {
		args = append(args, keys.AssetNameField, *p.Name)
	}
	if p.Active != nil {
		active := "0"
		if *p.Active {
			active = "1"
		}
		args = append(args, keys.AssetActiveField, active)
	}
	if price != nil {
		args = append(args, keys.AssetPriceField, price.String())
	}
	if p.Stock != nil {
		args = append(args, keys.AssetStockField, optionalText(*p.Stock))
	}
	if p.PerUserLimit != nil {
		args = append(args, keys.AssetPerUserLimitField, optionalText(*p.PerUserLimit))
	}
	if p.Metadata != nil {
		args = append(args, keys.AssetMetadataField, string(p.Metadata))
	}
	reply, err := s.db.RunScript(ctx, scripts.AssetPatch, []string{keys.Asset(id)}, args...)
	return assetFromReply(scripts.AssetPatch, id, reply, err)
}

// assetFromReply returns the asset in the reply of a script, or its error.
func assetFromReply(script *scripts.Script, id int64, reply redisdb.Reply, err error) (Asset, error) {
	if err != nil {
		return Asset{}, err
	}
	if err := reply.Err(script); err != nil {
		return Asset{}, err
	}
	v := redisdb.NewValues("an asset", reply.Values)
	a := decodeAsset(id, v)
	return a, v.Err()
}

// readAssets returns those of the assets that exist, in the order of the ids.
func (s store) readAssets(ctx context.Context, ids ...int64) ([]Asset, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	replies := make([]*redis.SliceCmd, len(ids))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HMGet(ctx, keys.Asset(id), keys.AssetFields...)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read assets", err)
	}
	found := make([]Asset, 0, len(ids))
	for i, id := range ids {
		if replies[i].Val()[0] == nil {
			continue
		}
		v := redisdb.NewValuesFromHMGet("asset "+strconv.FormatInt(id, 10), replies[i].Val())
		found = append(found, decodeAsset(id, v))
		if v.Err() != nil {
			return nil, v.Err()
		}
	}
	return found, nil
}

func (s store) listIDs(ctx context.Context, gameID, after int64, count int) ([]int64, error) {
	members, err := s.db.Client.ZRangeByScore(ctx, keys.Assets(gameID), &redis.ZRangeBy{
		Min: "(" + strconv.FormatInt(after, 10), Max: "+inf", Count: int64(count),
	}).Result()
	if err != nil {
		return nil, redisdb.WrapError("list assets", err)
	}
	v := redisdb.NewValues("the assets of a game", members)
	ids := make([]int64, len(members))
	for i := range ids {
		ids[i] = v.NextInt()
	}
	return ids, v.Err()
}

// readInventory returns how many pieces of each asset a player owns, by asset id.
func (s store) readInventory(ctx context.Context, userID int64) (map[int64]int64, error) {
	hash, err := s.db.Client.HGetAll(ctx, keys.Inventory(userID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read an inventory", err)
	}
	counts := make(map[int64]int64, len(hash))
	for id, count := range hash {
		v := redisdb.NewValues("an inventory", []string{id, count})
		counts[v.NextInt()] = v.NextInt()
		if v.Err() != nil {
			return nil, v.Err()
		}
	}
	return counts, nil
}

// purchaseCall is one run of the purchase script.
type purchaseCall struct {
	caller        principal.Caller
	assetID       int64
	quantity      int64       // pieces
	expectedPrice string      // of one piece in minor units, "" for any
	fixed         fixedFields // zero while this node does not know the asset
	receipt       idempotency.Receipt
	nonce         string
}

// purchase runs the purchase script. Where the fixed fields of the call are not the asset's, it
// changes nothing and returns the current ones.
func (s store) purchase(
	ctx context.Context, c purchaseCall,
) (purchase PurchaseResult, current *fixedFields, err error) {
	userID := c.caller.UserID
	receipt, ttl := c.receipt.OrPerCall(c.nonce, s.receiptTTL)
	reply, err := s.db.RunScript(ctx, scripts.AssetPurchase,
		[]string{
			keys.Asset(c.assetID), keys.Wallet(userID), keys.WalletLines(userID), keys.WalletEvents(userID),
			keys.Inventory(userID), keys.Totals(), keys.Ledger(), keys.Token(c.fixed.tokenCode),
			keys.MoneyReceipt(c.caller.ActorID(), receipt.KeyDigest),
		},
		s.db.PublishCommand, c.nonce, receipt.Fingerprint, ttl.Milliseconds(), userID, c.assetID, c.caller.GameID,
		c.quantity, c.expectedPrice, c.fixed.tokenCode)
	if err != nil {
		return PurchaseResult{}, nil, err
	}
	if reply.Status == scripts.Stale {
		v := redisdb.NewValues("the token of an asset", reply.Values)
		current = &fixedFields{tokenCode: v.NextText(), decimals: int(v.NextInt())}
		if v.Err() != nil {
			return PurchaseResult{}, nil, v.Err()
		}
		return PurchaseResult{}, current, nil
	}
	reply, replayed := idempotency.FirstReply(c.nonce, reply)
	if reply.Status == scripts.OK {
		purchase, err = c.decodePurchase(reply.Values)
	} else {
		err = c.errorOf(reply)
	}
	purchase.Replayed = replayed
	return purchase, nil, err
}

// decodePurchase decodes the one value of the reply, whose parts are joined by line breaks: it
// costs less than many values, and no part has a line break.
func (c purchaseCall) decodePurchase(values []string) (PurchaseResult, error) {
	v := redisdb.NewValues("a purchase", strings.Split(strings.Join(values, "\n"), "\n"))
	p := PurchaseResult{
		PurchaseID: v.NextInt(), OwnedAfter: v.NextInt(), TotalUnits: wallet.Units(v.NextInt()), Quantity: c.quantity,
	}
	free, held, supply := wallet.Units(v.NextInt()), wallet.Units(v.NextInt()), wallet.Units(v.NextInt())
	p.Asset = decodeAsset(c.assetID, v)
	p.EntryToken = wallet.DecodeToken(p.Asset.TokenCode, supply, v)
	p.Balance = p.EntryToken.BalanceOf(free, held)
	p.Price, p.PriceUnits = p.Asset.Price, p.Asset.PriceUnits
	p.Total = p.EntryToken.AmountOf(p.TotalUnits)
	return p, v.Err()
}

// errorOf returns the error of a reply whose status is not ok, with its members.
func (c purchaseCall) errorOf(reply redisdb.Reply) error {
	v := redisdb.NewValues("an error of a purchase", reply.Values)
	err := c.decodeError(reply, v)
	if v.Err() != nil {
		return v.Err()
	}
	return err
}

func (c purchaseCall) decodeError(reply redisdb.Reply, v *redisdb.Values) error {
	switch reply.Status {
	case apierror.PriceChanged.Code:
		price := wallet.Amount{Units: wallet.Units(v.NextInt()), Decimals: c.fixed.decimals}
		return apierror.PriceChanged.WithReason("the price of one is %s", price.Units.Decimal(price.Decimals)).
			WithMember("price", price).WithMember("priceAmount", price.Units.String())
	case apierror.StockTooSmall.Code:
		stock := v.NextInt()
		return apierror.StockTooSmall.WithReason("%d are left", stock).WithMember("stock", stock)
	case apierror.PerUserLimitReached.Code:
		owned, limit := v.NextInt(), v.NextInt()
		return apierror.PerUserLimitReached.WithReason("%d are owned of at most %d", owned, limit).
			WithMember("owned", owned).WithMember("perUserLimit", limit)
	case apierror.InvalidAmount.Code:
		return apierror.InvalidAmount.WithReason("the total is more than %s minor units", wallet.MaxUnits)
	case apierror.InsufficientFunds.Code:
		available, required := wallet.Units(v.NextInt()), wallet.Units(v.NextInt())
		return wallet.InsufficientFunds(c.fixed.tokenCode, c.fixed.decimals, available, required)
	default:
		return reply.Err(scripts.AssetPurchase)
	}
}
