package usage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// lockName is the name of the lock of the node that estimates.
const lockName = "usage"

// leadFor is for how long no other node estimates: not quite until the next time.
const leadFor = interval * 9 / 10

// overTTL is for how long an estimate counts.
const overTTL = 30 * time.Second

// store draws keys and has the estimates in Redis.
type store struct {
	db    *redisdb.DB
	games *cache.Cache[int64, int64] // of players, which never change
}

var roomSettings = redisdb.PackedLayout{Name: "the settings of a room", Separator: '|', Layout: scripts.RoomSettings}

// lead runs work unless another node does.
func (s store) lead(ctx context.Context, work func(context.Context) error) error {
	if s.db.Kind() == redisdb.KindEmbedded { // it has no limit
		return nil
	}
	leads, err := s.db.TryAcquire(ctx, keys.Lock(lockName), rand.Text(), leadFor)
	if err != nil || !leads {
		return err
	}
	return work(ctx)
}

// draw draws keys of each server, and returns them by the server's name without the time.
func (s store) draw(ctx context.Context) (map[string]window, error) {
	samples, err := s.db.SampleKeys(ctx, keysAtOnce)
	if err != nil {
		return nil, err
	}
	var owners []keys.Owner
	for _, sample := range samples {
		for _, key := range sample.Samples {
			owners = append(owners, keys.OwnerOf(key.Key))
		}
	}
	gameIDs, err := s.gamesOf(ctx, owners)
	if err != nil {
		return nil, err
	}
	drawn := make(map[string]window, len(samples))
	n := 0
	for _, sample := range samples {
		w := window{keys: sample.Keys, limit: sample.LimitBytes}
		for _, key := range sample.Samples {
			d := drawnKey{gameID: gameIDs[n], bytes: key.Bytes}
			if d.gameID != 0 && key.Key == keys.Ledger(d.gameID) {
				d.bytes = 0 // it is measured by itself
			}
			w.drawn = append(w.drawn, d)
			n++
		}
		drawn[sample.Name] = w
	}
	return drawn, nil
}

// gamesOf returns the games of owners, 0 for those of none and for those that are gone.
func (s store) gamesOf(ctx context.Context, owners []keys.Owner) ([]int64, error) {
	gameIDs := make([]int64, len(owners))
	replies := make([]*redis.StringCmd, len(owners))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, owner := range owners {
			gameIDs[i] = owner.GameID
			known, ok := s.games.Get(owner.UserID)
			switch {
			case ok:
				gameIDs[i] = known
			case owner.UserID != 0:
				replies[i] = p.HGet(ctx, keys.User(owner.UserID), "game")
			case owner.Room != "":
				replies[i] = p.HGet(ctx, owner.Room, "settings")
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) && !redisdb.IsWrongType(err) {
		return nil, redisdb.WrapError("find the games of keys", err)
	}
	for i, reply := range replies {
		if reply == nil || reply.Err() != nil {
			continue
		}
		if owners[i].Room != "" {
			settings := roomSettings.Split(reply.Val())
			gameIDs[i] = settings.Int("game")
			continue
		}
		gameIDs[i], _ = strconv.ParseInt(reply.Val(), 10, 64)
		s.games.Add(owners[i].UserID, gameIDs[i])
	}
	return gameIDs, nil
}

// measureLedgers returns the memory of the ledger of each game.
func (s store) measureLedgers(ctx context.Context, list []*estimate) ([]int64, error) {
	replies := make([]*redis.IntCmd, len(list))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, e := range list {
			replies[i] = p.MemoryUsage(ctx, keys.Ledger(e.gameID))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // Nil: the game has none
		return nil, redisdb.WrapError("measure ledgers", err)
	}
	sizes := make([]int64, len(list))
	for i, reply := range replies {
		sizes[i] = reply.Val()
	}
	return sizes, nil
}

// publish stores an estimate for all nodes.
func (s store) publish(ctx context.Context, list []estimate) error {
	over := overShareOf(list)
	_, err := s.db.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, keys.GameBytes())
		if len(list) > 0 {
			fields := make([]any, 0, 2*len(list))
			for _, e := range list {
				fields = append(fields, e.gameID, e.bytes)
			}
			p.HSet(ctx, keys.GameBytes(), fields...)
		}
		p.Set(ctx, keys.GamesOverShare(), over.encode(), overTTL)
		return nil
	})
	return redisdb.WrapError("publish the use of games", err)
}

// readOver returns what was published, nothing when that is too old.
func (s store) readOver(ctx context.Context) (overShare, error) {
	text, err := s.db.Client.Get(ctx, keys.GamesOverShare()).Result()
	if errors.Is(err, redis.Nil) {
		return overShare{}, nil
	}
	if err != nil {
		return overShare{}, redisdb.WrapError("read the use of games", err)
	}
	return decodeOver(text)
}

// encode returns "<game>,…|<game>:<bytes>,…".
func (o overShare) encode() string {
	var games, bounded []string
	for _, id := range o.games {
		games = append(games, strconv.FormatInt(id, 10))
	}
	for id, bytes := range o.bounded {
		bounded = append(bounded, fmt.Sprintf("%d:%d", id, bytes))
	}
	return strings.Join(games, ",") + "|" + strings.Join(bounded, ",")
}

func decodeOver(text string) (overShare, error) {
	games, bounded, _ := strings.Cut(text, "|")
	over := overShare{bounded: map[int64]int64{}}
	var parts []string
	if games != "" {
		parts = strings.Split(games, ",")
	}
	v := redisdb.NewValues("the games over their share", parts)
	for v.Remaining() > 0 {
		over.games = append(over.games, v.NextInt())
	}
	if bounded == "" {
		return over, v.Err()
	}
	for pair := range strings.SplitSeq(bounded, ",") {
		id, bytes, _ := strings.Cut(pair, ":")
		v := redisdb.NewValues("a game over its quota", []string{id, bytes})
		over.bounded[v.NextInt()] = v.NextInt()
		if v.Err() != nil {
			return over, v.Err()
		}
	}
	return over, v.Err()
}
