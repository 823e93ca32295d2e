package redisdb

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

const scanPageSize = 1000

// ScanKeys calls visit with the keys that match a pattern, some at a time and never two at once. A
// key may come twice; one that is created or deleted meanwhile may come or not. It reads the names
// of all keys of the store, in small steps. It returns store_unavailable when a server cannot be
// reached.
func (db *DB) ScanKeys(ctx context.Context, pattern string, visit func(keys []string)) error {
	var mu sync.Mutex
	scan := func(ctx context.Context, server *redis.Client) error {
		for cursor := uint64(0); ; {
			page, next, err := server.Scan(ctx, cursor, pattern, scanPageSize).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			visit(page)
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	var err error
	switch client := db.Client.(type) {
	case *redis.ClusterClient:
		err = client.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, client)
	}
	return WrapError("list the keys "+pattern, err)
}
