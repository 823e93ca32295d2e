package redisdb

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// MasterSample is a random sample of the keys of one server.
type MasterSample struct {
	Name       string // of the server
	Keys       int64  // that it has
	LimitBytes int64  // of its memory, 0 when that is not known
	Samples    []KeySample
}

// KeySample is a key and the memory that it takes.
type KeySample struct {
	Key   string
	Bytes int64
}

// SampleKeys draws up to count keys of each server at random. The store has estimated the memory of
// a large key from some of its members. It returns nothing of an embedded store, which has no
// limit.
func (db *DB) SampleKeys(ctx context.Context, count int) ([]MasterSample, error) {
	if db.kind == KindEmbedded {
		return nil, nil
	}
	var mu sync.Mutex
	var list []MasterSample
	err := db.forEachServer(ctx, func(ctx context.Context, server *redis.Client) error {
		sample, err := sampleServer(ctx, server, count)
		if err == nil {
			mu.Lock()
			list = append(list, sample)
			mu.Unlock()
		}
		return err
	})
	return list, WrapError("sample the keys", err)
}

func sampleServer(ctx context.Context, server *redis.Client, count int) (MasterSample, error) {
	sample := MasterSample{Name: server.Options().Addr}
	drawn := make([]*redis.StringCmd, count)
	p := server.Pipeline()
	info, size := p.Info(ctx, "memory"), p.DBSize(ctx)
	for i := range drawn {
		drawn[i] = p.RandomKey(ctx)
	}
	if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // Nil: there is no key
		return sample, err
	}
	sample.Keys = size.Val()
	sample.LimitBytes, _ = memoryLimit(parseInfo(info.Val()))
	p = server.Pipeline()
	sizes := make([]*redis.IntCmd, 0, count)
	for _, d := range drawn {
		if d.Err() == nil {
			sample.Samples = append(sample.Samples, KeySample{Key: d.Val()})
			sizes = append(sizes, p.MemoryUsage(ctx, d.Val()))
		}
	}
	if _, err := p.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) { // Nil: it has expired
		return sample, err
	}
	for i, s := range sizes {
		sample.Samples[i].Bytes = s.Val()
	}
	return sample, nil
}
