package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/parlor-games/parlor/internal/money/ledgerstore"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// store reads the wallets of games.
type store struct {
	db      *redisdb.DB
	ledgers *ledgerstore.Store
}

// The totals.
const (
	totalMinted  = keys.TotalMinted
	totalWallets = keys.TotalWallets
	totalEscrow  = keys.TotalEscrow
	totalPrizes  = keys.TotalPrizes
	totalHouse   = keys.TotalHouse
)

// linesPageSize bounds how many lines one round trip reads.
const linesPageSize = 1000

// newestLines is how many lines are read with a wallet. The last line of a token that is further
// back is searched for.
const newestLines = 20

// walletsRead is some wallets and the number of the last ledger entry, at one instant.
type walletsRead struct {
	sequence int64
	wallets  map[int64]storedWallet // by user id
}

// storedWallet is a wallet with the player's newest lines.
type storedWallet struct {
	balances  map[string]wallet.StoredBalance // by code
	seq       int64                           // number of the last event
	lineCount int64                           // in the list
	base      int64                           // how many lines were removed before those
	newest    []string                        // oldest first
	defect    error                           // why the wallet or its lines cannot be read; nil when they can
}

// readSnapshot reads wallets and the length of the ledger.
func (s store) readSnapshot(ctx context.Context, gameID int64, userIDs []int64) (walletsRead, error) {
	type replies struct {
		wallet *redis.MapStringStringCmd
		count  *redis.IntCmd
		newest *redis.StringSliceCmd
	}
	reads := make([]replies, len(userIDs))
	var length *redis.IntCmd
	var base *redis.StringCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		base = p.Get(ctx, keys.LedgerBase(gameID))
		length = p.LLen(ctx, keys.Ledger(gameID))
		for i, id := range userIDs {
			lines := keys.WalletLines(gameID, id)
			reads[i] = replies{
				p.HGetAll(ctx, keys.Wallet(gameID, id)), p.LLen(ctx, lines), p.LRange(ctx, lines, -newestLines, -1),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) { // Nil: no entry was removed yet
		return walletsRead{}, redisdb.WrapError("read wallets", err)
	}
	removed, err := redisdb.OptionalInt(base)
	if err = errors.Join(err, length.Err()); err != nil {
		return walletsRead{}, redisdb.WrapError("read the ledger", err)
	}
	at := walletsRead{sequence: removed + length.Val(), wallets: make(map[int64]storedWallet, len(userIDs))}
	for i, id := range userIDs {
		fields := redisdb.NewFields("the wallet of "+strconv.FormatInt(id, 10), reads[i].wallet.Val())
		w := storedWallet{
			seq: fields.Int(keys.WalletSeqField), base: fields.Int(keys.WalletBaseField),
			lineCount: reads[i].count.Val(), newest: reads[i].newest.Val(),
			defect: cmp.Or(reads[i].wallet.Err(), reads[i].count.Err()),
		}
		if w.balances, err = wallet.DecodeBalances(redisdb.HashOf(reads[i].wallet.Val())); err != nil || fields.Err() != nil {
			return walletsRead{}, fmt.Errorf("wallet of %d: %w", id, errors.Join(err, fields.Err()))
		}
		at.wallets[id] = w
	}
	return at, nil
}

// readLinesUpTo returns the lines before a place in the list, oldest first, a page of them at most.
func (s store) readLinesUpTo(ctx context.Context, gameID, userID, place int64) ([]string, error) {
	entries, err := s.db.Client.LRange(ctx, keys.WalletLines(gameID, userID),
		max(0, place-linesPageSize), place-1).Result()
	return entries, redisdb.WrapError("read a player's lines", err)
}

func walletAccount(userID int64) string { return keys.WalletAccount(strconv.FormatInt(userID, 10)) }
