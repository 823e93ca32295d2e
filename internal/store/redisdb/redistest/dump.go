package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// EachMaster calls visit for every server that holds a part of the store, one after the other.
func EachMaster(t testing.TB, db *redisdb.DB, visit func(ctx context.Context, server *redis.Client) error) {
	t.Helper()
	var err error
	switch client := db.Client.(type) {
	case *redis.Client:
		err = visit(t.Context(), client)
	case *redis.ClusterClient:
		var mu sync.Mutex
		err = client.ForEachMaster(t.Context(), func(ctx context.Context, server *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			return visit(ctx, server)
		})
	default:
		err = fmt.Errorf("a client of type %T", client)
	}
	if err != nil {
		t.Fatalf("visit the masters: %v", err)
	}
}

// ReadInfo returns the numbers of INFO by their names.
func ReadInfo(ctx context.Context, server *redis.Client) (map[string]float64, error) {
	text, err := server.Info(ctx).Result()
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = number
		}
	}
	return values, err
}

// CPUTime returns the CPU time in µs that the main threads of the store have taken.
func CPUTime(t testing.TB, db *redisdb.DB) (us float64) {
	t.Helper()
	EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
		info, err := ReadInfo(ctx, server)
		us += (info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]) * 1e6
		return err
	})
	return us
}

// Dump returns all strings and hashes of the store as text, for tests that search it for secrets
// that must not be stored.
func Dump(t testing.TB, db *redisdb.DB) string {
	t.Helper()
	var text strings.Builder
	EachMaster(t, db, func(ctx context.Context, server *redis.Client) error {
		names, err := server.Keys(ctx, "*").Result()
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintln(&text, name)
			switch kind := server.Type(ctx, name).Val(); kind {
			case "string":
				fmt.Fprintln(&text, server.Get(ctx, name).Val())
			case "hash":
				for field, value := range server.HGetAll(ctx, name).Val() {
					fmt.Fprintln(&text, field+"="+value)
				}
			}
		}
		return nil
	})
	return text.String()
}
