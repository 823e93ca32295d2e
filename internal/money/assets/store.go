package assets

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads and writes assets and inventories in Redis.
type store struct {
	db         *redisdb.DB
	receiptTTL time.Duration
}

var livePacked = redisdb.PackedLayout{Name: "an asset", Separator: '|', Layout: scripts.AssetLive}

// decodeAsset returns the asset in the fields of keys.Asset, which are not empty.
func decodeAsset(gameID, id int64, hash redisdb.Hash) (Asset, error) {
	name := "asset " + strconv.FormatInt(id, 10)
	f, live := redisdb.NewFieldsOfHash(name, hash), livePacked.Split(hash.Text(keys.AssetLiveField))
	bounds := redisdb.NewValues(name, []string{live.Text("stock"), live.Text("limit")})
	a := Asset{
		ID: id, GameID: gameID, Name: f.Text(keys.AssetNameField), TokenCode: f.Text(keys.AssetTokenField),
		PriceUnits: wallet.Units(live.Int("price")), Stock: bounds.NextOptionalInt(), PerUserLimit: bounds.NextOptionalInt(),
		Sold: live.Int("sold"), Active: live.Bool("on_sale"), Metadata: wire.RawJSON(f.Text(keys.AssetMetadataField)),
		Version: live.Int("version"), CreatedAt: f.Time(keys.AssetCreatedField),
	}
	a.Price = wallet.Amount{Units: a.PriceUnits, Decimals: int(f.Int(keys.AssetDecimalsField))}
	return a, errors.Join(f.Err(), live.Err(), bounds.Err())
}

// optionalText returns the number as text, "" for nil.
func optionalText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// create stores an asset of a game that may have a number of them. It returns limit_reached.
func (s store) create(ctx context.Context, a Asset, most int64) (Asset, error) {
	id, err := s.db.Client.Incr(ctx, keys.AssetIDCounter()).Result() // a resend leaves a gap, which does no harm
	if err != nil {
		return Asset{}, redisdb.WrapError("draw an asset id", err)
	}
	return s.runAndRead(ctx, scripts.AssetCreate, a.GameID, id,
		[]string{keys.Asset(a.GameID, id), keys.Assets(a.GameID)},
		scripts.AssetCreateArgs{
			AssetID: id, Price: a.PriceUnits.String(), Stock: optionalText(a.Stock),
			Limit: optionalText(a.PerUserLimit), Token: a.TokenCode, Decimals: a.Price.Decimals, Name: a.Name,
			Metadata: string(a.Metadata), Most: most,
		}.List()...)
}

// unchanged stands for a value that a patch leaves as it is.
const unchanged = "="

// patch changes an asset; price is that of the patch in minor units, or nil.
func (s store) patch(ctx context.Context, gameID, id int64, p PatchInput, price *wallet.Units) (Asset, error) {
	active, priceText, stock, limit := unchanged, unchanged, unchanged, unchanged
	if p.Active != nil {
		active = "0"
		if *p.Active {
			active = "1"
		}
	}
	if price != nil {
		priceText = price.String()
	}
	if p.Stock.IsGiven {
		stock = optionalText(p.Stock.Value)
	}
	if p.PerUserLimit.IsGiven {
		limit = optionalText(p.PerUserLimit.Value)
	}
	var fields []any
	if p.Name != nil {
		fields = append(fields, keys.AssetNameField, *p.Name)
	}
	if p.Metadata != nil {
		fields = append(fields, keys.AssetMetadataField, string(p.Metadata))
	}
	args := scripts.AssetPatchArgs{
		Nonce: idempotency.NewNonce(), NewOnSale: active, NewPrice: priceText, NewStock: stock, NewLimit: limit,
	}.List(fields...)
	return s.runAndRead(ctx, scripts.AssetPatch, gameID, id, []string{keys.Asset(gameID, id)}, args...)
}

// remove removes an asset. It returns asset_not_found, and forbidden for one that must stay.
func (s store) remove(ctx context.Context, gameID, id int64) error {
	reply, err := s.db.RunScript(ctx, scripts.AssetRemove, []string{keys.Asset(gameID, id), keys.Assets(gameID)},
		scripts.AssetRemoveArgs{AssetID: id}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.AssetRemove)
}

// runAndRead runs a script and returns the asset after it, or the script's error.
func (s store) runAndRead(
	ctx context.Context, script *scripts.Script, gameID, id int64, names []string, args ...any,
) (Asset, error) {
	reply, hash, err := s.db.RunScriptAndRead(ctx, script, keys.Asset(gameID, id), names, args...)
	if err != nil {
		return Asset{}, err
	}
	if err := reply.Err(script); err != nil {
		return Asset{}, err
	}
	return decodeAsset(gameID, id, hash)
}

// readAssets returns those of a game's assets that exist, in the order of the ids.
func (s store) readAssets(ctx context.Context, gameID int64, ids ...int64) ([]Asset, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = keys.Asset(gameID, id)
	}
	found := make([]Asset, 0, len(ids))
	for i, hash := range s.db.ReadHashes(ctx, names) {
		switch {
		case redisdb.IsWrongType(hash.Err): // the others are shown
			slog.ErrorContext(ctx, "an asset cannot be read", "game", gameID, "asset", ids[i], "error", hash.Err)
			continue
		case hash.Err != nil:
			return nil, hash.Err
		case len(hash.Fields) == 0:
			continue
		}
		a, err := decodeAsset(gameID, ids[i], hash.Fields)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
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

// readInventory returns how many pieces of each asset of a game a player owns, by asset id.
func (s store) readInventory(ctx context.Context, gameID, userID int64) (map[int64]int64, error) {
	hash, err := s.db.Client.HGetAll(ctx, keys.Inventory(gameID, userID)).Result()
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
	caller        principal.Caller // a player; the asset is of the player's game
	assetID       int64
	quantity      int64        // pieces
	expectedPrice string       // of one piece in minor units, "" for any
	token         wallet.Token // that the asset costs; zero when there is no such asset
	receipt       idempotency.Receipt
	nonce         string
}

// purchase runs the purchase script and reads the asset behind it.
func (s store) purchase(ctx context.Context, c purchaseCall) (purchase PurchaseResult, err error) {
	gameID, userID := c.caller.GameID, c.caller.UserID
	receipt, ttl := c.receipt.OrPerCall(c.nonce, s.receiptTTL)
	asset := keys.Asset(gameID, c.assetID)
	reply, hash, err := s.db.RunScriptAndRead(ctx, scripts.AssetPurchase, asset,
		[]string{
			keys.MoneyReceipt(gameID, c.caller.ActorID(), receipt.KeyDigest), asset, keys.Wallet(gameID, userID),
			keys.WalletLines(gameID, userID), keys.Inventory(gameID, userID), keys.Ledger(gameID), keys.LedgerBase(gameID),
		},
		scripts.AssetPurchaseArgs{
			CallWithReceiptArgs: scripts.CallWithReceiptArgs{
				Publish: s.db.PublishCommand, Nonce: c.nonce, Fingerprint: receipt.Fingerprint, TTLMS: ttl.Milliseconds(),
			},
			User: userID, AssetID: c.assetID, Quantity: c.quantity,
			ExpectedPrice: c.expectedPrice, Token: c.token.Code, Decimals: c.token.Decimals,
		}.List()...)
	if err != nil {
		return PurchaseResult{}, err
	}
	reply, replayed := idempotency.FirstReply(c.nonce, reply)
	if reply.Status == scripts.OK {
		purchase, err = c.decodePurchase(reply.Values, hash)
	} else {
		err = c.errorOf(reply)
	}
	purchase.Replayed = replayed
	return purchase, err
}

// decodePurchase returns the purchase in the values of the reply, with the asset in a hash.
func (c purchaseCall) decodePurchase(values []string, hash redisdb.Hash) (PurchaseResult, error) {
	v := redisdb.NewValues("a purchase", values)
	p := PurchaseResult{
		PurchaseID: v.NextInt(), PriceUnits: wallet.Units(v.NextInt()), OwnedAfter: v.NextInt(), Quantity: c.quantity,
		EntryToken: c.token,
	}
	p.Balance = c.token.BalanceOf(wallet.Units(v.NextInt()), wallet.Units(v.NextInt()))
	p.TotalUnits = p.PriceUnits * wallet.Units(c.quantity) // at most wallet.MaxUnits: the script has checked it
	p.Price, p.Total = c.token.AmountOf(p.PriceUnits), c.token.AmountOf(p.TotalUnits)
	var err error
	p.Asset, err = decodeAsset(c.caller.GameID, c.assetID, hash)
	return p, errors.Join(v.Err(), err)
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
		price := wallet.Amount{Units: wallet.Units(v.NextInt()), Decimals: c.token.Decimals}
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
		return wallet.InsufficientFunds(c.token.Code, c.token.Decimals, available, required)
	default:
		return reply.Err(scripts.AssetPurchase)
	}
}
