package redisdb

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// defaultUser is the user as which Redis replays the transactions of its append-only file. It is
// also the user of a client that names no other.
const defaultUser = "default"

// replayedCommands are the commands that write, as the append-only file has them in the
// transactions of scripts, with arguments after the key. Redis does not write messages there.
// Expiries are stored as times, and a key that expired meanwhile as DEL or UNLINK.
var replayedCommands = map[string][]any{
	"DEL": {}, "UNLINK": {}, "PEXPIREAT": {1}, "PERSIST": {},
	"SET": {1}, "INCR": {}, "INCRBY": {1},
	"HSET": {"f", 1}, "HSETNX": {"f", 1}, "HINCRBY": {"f", 1}, "HDEL": {"f"},
	"LPUSH": {1}, "RPUSH": {1}, "RPOP": {}, "LREM": {0, 1}, "LTRIM": {0, 1},
	"SADD": {1}, "SREM": {1},
	"ZADD": {1, 1}, "ZREM": {1}, "ZREMRANGEBYRANK": {0, 1}, "ZREMRANGEBYSCORE": {0, 1},
	"XADD": {"*", "f", 1}, "XTRIM": {"MAXLEN", 1},
}

// checkReplay returns why a server could not read back its append-only file, or nil. Up to Redis
// 7.2 a restart skips every transaction that the user "default" may not run, and so loses the
// ledger. It skips the check if there is no such file, or if the nodes sign in as that user.
func checkReplay(ctx context.Context, server *redis.Client, info map[string]string) (problems []string, err error) {
	user, _ := credentialsFor(server.Options())
	if info["aof_enabled"] != "1" || user == "" || user == defaultUser {
		return nil, nil
	}
	key := keys.Probe(rand.Text()) // no pattern names it, unless it names all keys
	pipeline := server.Pipeline()
	replies := map[string]*redis.Cmd{}
	for command, args := range replayedCommands {
		dryRun := append([]any{"ACL", "DRYRUN", defaultUser, command, key}, args...)
		replies[command] = pipeline.Do(ctx, dryRun...)
	}
	_, err = pipeline.Exec(ctx)
	switch {
	case err == nil, errors.Is(err, redis.Nil):
	case redis.HasErrorPrefix(err, "NOPERM"):
		return []string{"does not tell the user " + user + " whether it can read back its append-only file; " +
			"give that user +acl|dryrun, as in deploy/redis/users.acl"}, nil
	default:
		return nil, WrapError("ask "+server.Options().Addr+" for the rights of the user "+defaultUser, err)
	}
	var refused []string
	for command, reply := range replies {
		if text, _ := reply.Text(); text != "OK" {
			refused = append(refused, command)
		}
	}
	if len(refused) == 0 {
		return nil, nil
	}
	slices.Sort(refused)
	what := strings.Join(refused, ", ")
	if len(refused) == len(replayedCommands) {
		what = "write any key"
	} else {
		what = "run " + what + " on any key"
	}
	return []string{"loses acknowledged money when it restarts: it replays its append-only file as the user " +
		defaultUser + ", who may not " + what + "; set \"user default off ~* &* +@all\", as in deploy/redis/users.acl"}, nil
}
