package feed

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// Start is the position before the first entry that a feed ever had.
const Start = "0-0"

// Fields of keys.FeedHead. lib_feed.lua writes and reads them too.
const (
	sinceField = "since"
	keptField  = "kept"
)

// Head is where a feed ends.
type Head struct {
	Position string    // of the last entry, Start without one
	Since    time.Time // when the first entry was written; zero without one
}

// ReadHeads returns the heads of a game's feeds on several shards, in their order.
func ReadHeads(ctx context.Context, db *redisdb.DB, gameID int64, shards []keys.Shard) ([]Head, error) {
	last, since := make([]*redis.StringCmd, len(shards)), make([]*redis.StringCmd, len(shards))
	_, _ = db.Client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, shard := range shards {
			last[i] = p.LIndex(ctx, keys.Feed(shard, gameID), -1)
			since[i] = p.HGet(ctx, keys.FeedHead(shard, gameID), sinceField)
		}
		return nil
	})
	heads := make([]Head, len(shards))
	for i := range shards {
		position, err := positionOf(last[i])
		if err != nil {
			return nil, err
		}
		heads[i].Position = position
		ms, err := since[i].Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.WrapError("read the head of a feed", err)
		}
		if ms != 0 {
			heads[i].Since = time.UnixMilli(ms)
		}
	}
	return heads, nil
}

// positionOf returns the position of an entry that was read, Start for an empty feed.
func positionOf(read *redis.StringCmd) (string, error) {
	text, err := read.Result()
	if errors.Is(err, redis.Nil) {
		return Start, nil
	}
	position, _, _ := strings.Cut(text, "|")
	return position, redisdb.WrapError("read a feed", err)
}

// Name returns the name of a shard's feed on the wire, where the game is known: "e" in its economy,
// the hash tag on a free shard.
func Name(s keys.Shard) string {
	name, _, _ := strings.Cut(s.String(), ":")
	return name
}

// Shards returns the shards on which a game has feeds.
func Shards(gameID int64, freeShardCount int) []keys.Shard {
	shards := []keys.Shard{keys.EconomyShard(gameID)}
	for n := range freeShardCount {
		shards = append(shards, keys.FreeShard(n))
	}
	return shards
}

// maxReads bounds how often a list is read again because it was trimmed meanwhile.
const maxReads = 4

// Read returns at most limit entries of a feed that follow a position, and the position of the
// feed's last entry; with "" those from the oldest on that is stored. gap says that the store does
// not have the position any more, or never had it: what followed it is unknown. Entries without
// Data are those that this build cannot read.
func Read(
	ctx context.Context, db *redisdb.DB, shard keys.Shard, gameID int64, after string, limit int,
) (entries []Entry, gap bool, head string, err error) {
	list := keys.Feed(shard, gameID)
	for range maxReads {
		pipeline := db.Client.Pipeline()
		first, last := pipeline.LIndex(ctx, list, 0), pipeline.LIndex(ctx, list, -1)
		_, _ = pipeline.Exec(ctx) // each command has its own error
		oldest, err := positionOf(first)
		if err != nil {
			return nil, false, "", err
		}
		if head, err = positionOf(last); err != nil {
			return nil, false, "", err
		}
		if head == Start || after == head { // nothing follows
			return nil, after != "" && after != head, head, nil
		}
		skip := numberOf(after) - numberOf(oldest)
		if after == "" || after == Start && numberOf(oldest) == 1 {
			skip = -1
		} else if skip < 0 || numberOf(after) > numberOf(head) {
			return nil, true, head, nil
		}
		found, err := db.Client.LRange(ctx, list, max(skip, 0), skip+int64(limit)).Result()
		if err != nil {
			return nil, false, "", redisdb.WrapError("read a feed", err)
		}
		expected := after
		if skip < 0 {
			expected = oldest
		}
		switch {
		case len(found) == 0 || numberOf(found[0]) != numberOf(expected):
			continue // it was trimmed meanwhile
		case !strings.HasPrefix(found[0], expected+"|"): // the store lost it and has another one since
			return nil, true, head, nil
		}
		if skip >= 0 {
			found = found[1:]
		}
		return parseAll(ctx, found), false, head, nil
	}
	return nil, true, head, nil
}

// numberOf returns the number of a position, or of an entry, 0 for what is neither.
func numberOf(position string) int64 {
	text, _, _ := strings.Cut(position, "-")
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}

func parseAll(ctx context.Context, texts []string) []Entry {
	entries := make([]Entry, 0, len(texts))
	for _, text := range texts {
		e, err := Parse(text)
		if err != nil {
			slog.WarnContext(ctx, "an event of a feed cannot be read", "error", err)
		}
		if e.Position != "" {
			entries = append(entries, e)
		}
	}
	return entries
}

// SetKept notes the number of the last entry of a feed that every active webhook of its game has
// delivered: what follows it is kept. The caller must hold the lead of the deliveries.
func SetKept(ctx context.Context, db *redisdb.DB, shard keys.Shard, gameID, number int64) error {
	err := db.Client.HSet(ctx, keys.FeedHead(shard, gameID), keptField, number).Err()
	return redisdb.WrapError("note what a feed must keep", err)
}

// ClearKept notes that no webhook waits for entries of a feed.
func ClearKept(ctx context.Context, db *redisdb.DB, shard keys.Shard, gameID int64) error {
	err := db.Client.HDel(ctx, keys.FeedHead(shard, gameID), keptField).Err()
	return redisdb.WrapError("note that a feed must keep nothing", err)
}
