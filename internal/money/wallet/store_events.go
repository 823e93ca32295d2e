package wallet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// ReasonResync is the reason of a user.balance without a change. It replaces the balances that the
// player received before, because the store has lost something.
const ReasonResync = "resync"

// SnapshotBalances returns the player's balances as a JSON array of user.balance events, and the
// position "<seq>-<nonce>" of the last event that they contain. The array is nil if the player has
// no balance. The position of a player without events is "0-0". It returns store_unavailable.
func (s *Service) SnapshotBalances(
	ctx context.Context, gameID, userID int64,
) (position string, array []byte, err error) {
	balances, last, err := s.store.readWalletAndLastLine(ctx, gameID, userID)
	if err != nil {
		return "", nil, err
	}
	header, ok := events.ParseHeader(last)
	switch {
	case !ok:
		return "0-0", nil, nil
	case len(balances) == 0:
		return header.Position, nil, nil
	}
	codes := slices.Sorted(maps.Keys(balances))
	definitions, err := s.FindDefinitions(ctx, codes...)
	if err != nil {
		return "", nil, err
	}
	var list [][]byte
	for _, code := range codes {
		entry := fmt.Sprintf("%s|%s|%d|%s|%d|0|%d|%d|%s|", header.Position, events.UserBalance.Name,
			time.Now().UnixMilli(), code, definitions[code].Decimals, balances[code].Free, balances[code].Held, ReasonResync)
		rendered, err := events.Render(entry, "")
		if err != nil {
			return "", nil, err
		}
		list = append(list, rendered[0].JSON)
	}
	return header.Position, slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]")), nil
}

// readWalletAndLastLine returns a wallet and the player's last line at one instant, "" for none.
func (s store) readWalletAndLastLine(
	ctx context.Context, gameID, userID int64,
) (balances map[string]StoredBalance, last string, err error) {
	var wallet *redis.MapStringStringCmd
	var line *redis.StringCmd
	_, err = s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		wallet = p.HGetAll(ctx, keys.Wallet(gameID, userID))
		line = p.LIndex(ctx, keys.WalletLines(gameID, userID), -1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, "", redisdb.WrapError("read the wallet of "+strconv.FormatInt(userID, 10), err)
	}
	balances, err = DecodeBalances(redisdb.HashOf(wallet.Val()))
	return balances, line.Val(), err
}
