package activity

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// lockName is the name of the lock of the node that takes samples.
const lockName = "activity"

// leadFor is for how long no other node takes samples: not quite until the next time.
const leadFor = Interval * 9 / 10

// keptFor is for how long the samples of a game are kept that nobody plays.
const keptFor = 25 * time.Hour

type store struct{ db *redisdb.DB }

// lead runs work unless another node did in this interval.
func (s store) lead(ctx context.Context, work func(context.Context) error) error {
	leads, err := s.db.TryAcquire(ctx, keys.Lock(lockName), rand.Text(), leadFor)
	if err != nil || !leads {
		return err
	}
	return work(ctx)
}

// readPots returns what is at stake in a game.
func (s store) readPots(ctx context.Context, gameID int64) ([]Pot, error) {
	totals, err := s.db.Client.HGetAll(ctx, keys.Totals(gameID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read what is at stake", err)
	}
	var pots []Pot
	for field, text := range totals {
		token, isPot := strings.CutPrefix(field, keys.TotalEscrow+":")
		if !isPot || text == "0" {
			continue
		}
		units, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("total %s of game %d: %w", field, gameID, err)
		}
		pots = append(pots, Pot{token, units})
	}
	slices.SortFunc(pots, func(a, b Pot) int { return cmp.Compare(a.TokenID, b.TokenID) })
	return pots, nil
}

// append stores a sample. A sample of nothing is only stored behind others.
func (s store) append(ctx context.Context, gameID int64, one Sample) error {
	key := keys.GameActivity(gameID)
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if one.Rooms == 0 && len(one.Pots) == 0 {
			p.RPushX(ctx, key, encode(one))
		} else {
			p.RPush(ctx, key, encode(one))
			p.Expire(ctx, key, keptFor)
		}
		p.LTrim(ctx, key, int64(-keptSamples), -1)
		return nil
	})
	return redisdb.WrapError("store how busy a game is", err)
}

func (s store) read(ctx context.Context, gameID int64) ([]Sample, error) {
	texts, err := s.db.Client.LRange(ctx, keys.GameActivity(gameID), 0, -1).Result()
	if err != nil {
		return nil, redisdb.WrapError("read how busy a game is", err)
	}
	samples := make([]Sample, len(texts))
	for i, text := range texts {
		if samples[i], err = decode(text); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// encode returns "<ms>|<rooms>|<players>|<token>:<units>,…".
func encode(s Sample) string {
	var pots []string
	for _, p := range s.Pots {
		pots = append(pots, fmt.Sprintf("%s:%d", p.TokenID, p.Units))
	}
	return fmt.Sprintf("%d|%d|%d|%s", s.At.UnixMilli(), s.Rooms, s.Players, strings.Join(pots, ","))
}

func decode(text string) (Sample, error) {
	numbers, pots := text, ""
	if i := strings.LastIndexByte(text, '|'); i >= 0 {
		numbers, pots = text[:i], text[i+1:]
	}
	v := redisdb.NewValues("a sample of a game", strings.Split(numbers, "|"))
	s := Sample{At: v.NextTime(), Rooms: int(v.NextInt()), Players: int(v.NextInt())}
	if pots == "" {
		return s, v.Err()
	}
	for pair := range strings.SplitSeq(pots, ",") {
		token, units, _ := strings.Cut(pair, ":")
		v := redisdb.NewValues("a pot in a sample of a game", []string{token, units})
		s.Pots = append(s.Pots, Pot{v.NextText(), v.NextInt()})
		if v.Err() != nil {
			return s, v.Err()
		}
	}
	return s, v.Err()
}
