package ledgerstore

import (
	"context"
	"errors"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// ListPlayers returns the players who have a wallet, by game; of one game unless gameID is 0. A
// player may come twice.
func (s *Store) ListPlayers(ctx context.Context, gameID int64) (map[int64][]int64, error) {
	players := map[int64][]int64{}
	err := s.db.ScanKeys(ctx, keys.WalletPattern(gameID), func(names []string) {
		for _, name := range names {
			if game, user, ok := keys.ParseWallet(name); ok {
				players[game] = append(players[game], user)
			}
		}
	})
	return players, err
}

// LineCount is how many lines a player has.
type LineCount struct {
	UserID int64
	Base   int64 // lines that left the store
	Length int64 // lines in the store
}

// CountLines returns how many lines each of the players has, without those whose lines cannot be
// read.
func (s *Store) CountLines(ctx context.Context, gameID int64, userIDs []int64) ([]LineCount, error) {
	type replies struct {
		base   *redis.StringCmd
		length *redis.IntCmd
	}
	reads := make([]replies, len(userIDs))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range userIDs {
			reads[i] = replies{
				p.HGet(ctx, keys.Wallet(gameID, id), keys.WalletBaseField), p.LLen(ctx, keys.WalletLines(gameID, id)),
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) { // Nil: no line was removed yet
		return nil, redisdb.WrapError("count the lines of players", err)
	}
	counts := make([]LineCount, 0, len(userIDs))
	for i, id := range userIDs {
		base, err := redisdb.OptionalInt(reads[i].base)
		if err != nil || reads[i].length.Err() != nil {
			continue // the audit shows what is wrong with this player
		}
		counts = append(counts, LineCount{id, base, reads[i].length.Val()})
	}
	return counts, nil
}

// ReadLines is ReadTexts for the lines of a player.
func (s *Store) ReadLines(ctx context.Context, gameID, userID, base, skip, count int64) ([]string, error) {
	var baseReply *redis.StringCmd
	var page *redis.StringSliceCmd
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		baseReply = p.HGet(ctx, keys.Wallet(gameID, userID), keys.WalletBaseField)
		page = p.LRange(ctx, keys.WalletLines(gameID, userID), skip, skip+count-1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: no line was removed yet
		return nil, redisdb.WrapError("read a player's lines", err)
	}
	found, err := redisdb.OptionalInt(baseReply)
	if err == nil && found != base {
		err = ErrStale
	}
	return page.Val(), err
}

// ReadArchivedLines returns at most count lines of a player that are in the archive, the last of
// them with the id last; oldest first. firstID is the id of the first one.
func (s *Store) ReadArchivedLines(
	ctx context.Context, gameID, userID, last, count int64,
) (entries []string, firstID int64, err error) {
	if s.archive == nil {
		return nil, 0, ErrNoArchive
	}
	firstID = s.archive.FirstLineOf(last)
	name := archivedLines{gameID, userID, firstID}
	lines, ok := s.oldLines.Get(name)
	if !ok {
		if lines, err = s.archive.ReadLines(ctx, gameID, userID, firstID); err != nil {
			return nil, 0, WrapArchiveError(err)
		}
		s.oldLines.Add(name, lines)
	}
	lines = lines[:last-firstID+1]
	skipped := max(0, int64(len(lines))-count)
	return lines[skipped:], firstID + skipped, nil
}

// archivedLines names the lines of one object.
type archivedLines struct{ gameID, userID, first int64 }
