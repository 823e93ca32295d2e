package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// oldKey is a key of layout 1.
type oldKey = keys.OldKey

// store reads the old keys and writes the new ones.
type store struct {
	db         *redisdb.DB
	lease      time.Duration
	value      string    // of the lock
	deadlineMS string    // by the store's clock, until which scripts may write
	renewedAt  time.Time // by the clock of this process
}

const (
	lockName      = "migration"
	pageSize      = 200 // old keys that are converted at once
	maxValues     = 400 // in one script
	maxListValues = 200 // entries of a stream in one read, and of a list in one script
	renewals      = 8   // in a lease
)

func (s *store) readLayout(ctx context.Context) (string, error) {
	layout, err := s.db.Client.HGet(ctx, keys.Meta(), keys.MetaLayoutField).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return layout, redisdb.WrapError("read the store's layout", err)
}

func (s *store) setLayout(ctx context.Context, layout string) error {
	return s.write(ctx, []record{{
		key: keys.Meta(), kind: kindHash, values: []string{keys.MetaLayoutField, layout},
	}})
}

// takeLease waits for a lease that is not made longer any more, and returns ErrRunning for one that
// is.
func (s *store) takeLease(ctx context.Context, lease time.Duration, out io.Writer) error {
	s.lease, s.value = lease, newLockValue()
	lastLeft := int64(-1)
	for {
		reply, err := s.setLease(ctx, lease, false)
		if err != nil {
			return err
		}
		if reply.Status == scripts.OK {
			return s.useLease(reply)
		}
		values := redisdb.NewValues("the lease of the migration", reply.Values)
		left := values.NextInt()
		if values.Err() != nil {
			return values.Err()
		}
		if lastLeft >= 0 && left >= lastLeft { // its holder has made it longer
			return ErrRunning
		}
		if lastLeft < 0 {
			_, _ = fmt.Fprintf(out, "waiting %d ms for the lease of a migration that may have been killed\n", left)
		}
		lastLeft = left
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(max(1, min(left, lease.Milliseconds()/renewals))) * time.Millisecond):
		}
	}
}

// setLease takes the lease, or makes the one that this process has longer; 0 gives it up.
func (s *store) setLease(ctx context.Context, lease time.Duration, isHeld bool) (redisdb.Reply, error) {
	held := ""
	if isHeld {
		held = "1"
	}
	return s.db.RunScript(ctx, scripts.MigrationLease, []string{keys.Lock(lockName)},
		scripts.MigrationLeaseArgs{Value: s.value, LeaseMS: lease.Milliseconds(), IsHeld: held}.List()...)
}

func (s *store) useLease(reply redisdb.Reply) error {
	values := redisdb.NewValues("the lease of the migration", reply.Values)
	s.deadlineMS, s.renewedAt = values.NextText(), time.Now()
	return values.Err()
}

// errLeaseLost means that the process was paused, or the store was away, for longer than the lease.
var errLeaseLost = errors.New("the migration has lost its lease; run it again to go on")

// renew extends the lease when an eighth of it has passed. It returns errLeaseLost if the lease has
// expired, because another process may have migrated the store since. A pass without a lease does
// nothing.
func (s *store) renew(ctx context.Context) error {
	if s.value == "" || time.Since(s.renewedAt) < s.lease/renewals {
		return nil
	}
	reply, err := s.setLease(ctx, s.lease, true)
	switch {
	case err != nil:
		return err
	case reply.Status != scripts.OK:
		return errLeaseLost
	}
	return s.useLease(reply)
}

func (s *store) endLease(ctx context.Context) error {
	_, err := s.setLease(context.WithoutCancel(ctx), 0, false)
	return err
}

// eachOldKey calls visit with the keys of layout 1, some at a time. A key may come twice.
func (s *store) eachOldKey(ctx context.Context, visit func(context.Context, []oldKey) error) error {
	var failure error
	err := s.db.ScanKeys(ctx, "{*", func(names []string) {
		for chunk := range slices.Chunk(names, pageSize) {
			var page []oldKey
			for _, name := range chunk {
				if k := keys.ParseOldKey(name); k.Kind != keys.OldForeign {
					page = append(page, k)
				}
			}
			if failure == nil && len(page) > 0 {
				if failure = s.renew(ctx); failure == nil {
					failure = visit(ctx, page)
				}
			}
		}
	})
	return cmp.Or(failure, err)
}

// The kinds of records, as TYPE names them.
const (
	kindString = "string"
	kindHash   = "hash"
	kindZSet   = "zset"
	kindList   = "list"
)

// record is a new key, or what is added to one.
type record struct {
	key         string
	kind        string
	values      []string // one text; fields and values; scores and members; items
	before      int      // of a list: the number of items before these
	isWhole     bool     // the key has nothing else; a list nothing behind the items
	expiresAtMS int64    // 0: never
}

// sink takes records.
type sink interface {
	put(ctx context.Context, records []record) error
}

// discard is the sink of a pass that counts.
type discard struct{}

func (discard) put(context.Context, []record) error { return nil }

// writer is the sink of the pass that writes.
type writer struct{ store *store }

func (w writer) put(ctx context.Context, records []record) error { return w.store.write(ctx, records) }

// write writes records, some in a round trip.
func (s *store) write(ctx context.Context, records []record) error {
	var calls []redisdb.ScriptCall
	flush := func() error {
		if err := s.renew(ctx); err != nil {
			return err
		}
		for i := range calls { // reading may have taken longer than half of the lease
			calls[i].Args[0] = s.deadlineMS
		}
		for i, result := range s.db.RunScriptPipelined(ctx, scripts.MigrationWrite, calls) {
			switch {
			case result.Failure != nil:
				return result.Failure
			case result.Status != scripts.OK:
				return fmt.Errorf("write %s: %w", calls[i].Keys[0], errLeaseLost)
			}
		}
		calls = calls[:0]
		return nil
	}
	for _, r := range records {
		size := maxValues
		if r.kind == kindList {
			size = maxListValues
		}
		before := r.before
		for chunk := range slices.Chunk(r.values, size) {
			args := scripts.MigrationWriteArgs{DeadlineMS: "", Kind: r.kind, ExpiresMS: "", Before: before}
			if r.expiresAtMS > 0 {
				args.ExpiresMS = r.expiresAtMS
			}
			calls = append(calls, redisdb.ScriptCall{Keys: []string{r.key}, Args: args.List(redisdb.Args(chunk)...)})
			before += len(chunk)
		}
		if len(calls) >= 100 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// comparer is the sink of the pass that compares.
type comparer struct{ store *store }

func (c comparer) put(ctx context.Context, records []record) error {
	replies := make([]*redis.Cmd, len(records))
	sizes := make([]*redis.Cmd, len(records))
	expiries := make([]*redis.Cmd, len(records))
	_, err := c.store.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range records {
			replies[i] = p.Do(ctx, r.readCommand()...)
			if r.isWhole && r.kind != kindString {
				sizes[i] = p.Do(ctx, map[string]string{kindHash: "HLEN", kindZSet: "ZCARD", kindList: "LLEN"}[r.kind], r.key)
			}
			expiries[i] = p.Do(ctx, "PEXPIRETIME", r.key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return redisdb.WrapError("compare the new keys", err)
	}
	for i, r := range records {
		got, _ := replies[i].StringSlice()
		if r.kind == kindString {
			text, _ := replies[i].Text()
			got = []string{text}
		}
		size := int64(len(r.values))
		switch r.kind {
		case kindHash, kindZSet:
			size /= 2
		case kindList:
			size += int64(r.before)
		}
		expiry, _ := expiries[i].Int64()
		isSame := slices.Equal(got, r.wanted()) && (r.expiresAtMS == 0 || expiry == r.expiresAtMS)
		if sizes[i] != nil {
			n, _ := sizes[i].Int64()
			isSame = isSame && n == size
		}
		if !isSame && r.expiresAtMS > 0 && expiry == -2 { // it expired meanwhile
			continue
		}
		if !isSame {
			return fmt.Errorf("%s is not what the old keys say; was a node of the older release running? "+
				"Stop all nodes and run the migration again", r.key)
		}
	}
	return nil
}

// readCommand returns the command that reads what wanted returns.
func (r record) readCommand() []any {
	switch r.kind {
	case kindHash:
		command := []any{"HMGET", r.key}
		for i := 0; i < len(r.values); i += 2 {
			command = append(command, r.values[i])
		}
		return command
	case kindZSet:
		command := []any{"ZMSCORE", r.key}
		for i := 1; i < len(r.values); i += 2 {
			command = append(command, r.values[i])
		}
		return command
	case kindList:
		return []any{"LRANGE", r.key, r.before, r.before + len(r.values) - 1}
	}
	return []any{"GET", r.key}
}

func (r record) wanted() []string {
	var wanted []string
	switch r.kind {
	case kindHash:
		for i := 1; i < len(r.values); i += 2 {
			wanted = append(wanted, r.values[i])
		}
	case kindZSet:
		for i := 0; i < len(r.values); i += 2 {
			wanted = append(wanted, r.values[i])
		}
	default:
		return r.values
	}
	return wanted
}

// hashRecord returns a record of a whole hash, the fields in order.
func hashRecord(key string, fields map[string]string) record {
	r := record{key: key, kind: kindHash, isWhole: true}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		r.values = append(r.values, field, fields[field])
	}
	return r
}

// fieldRecord returns a record of one field of a hash.
func fieldRecord(key, field, value string) record {
	return record{key: key, kind: kindHash, values: []string{field, value}}
}

// memberRecord returns a record of one member of a sorted set.
func memberRecord(key, score, member string) record {
	return record{key: key, kind: kindZSet, values: []string{score, member}}
}

// closeLedger closes the old ledger, unless money moved since it was read.
func (s *store) closeLedger(ctx context.Context, entries int64) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	reply, err := s.db.RunScript(ctx, scripts.MigrationClose, []string{keys.OldTotalsKey(), keys.OldLedgerKey()},
		scripts.MigrationCloseArgs{DeadlineMS: s.deadlineMS, Number: entries}.List()...)
	if err == nil && reply.Status != scripts.OK {
		err = errors.New("money moved while the store was migrated: a node of the older release is running; " +
			"stop all nodes and run the migration again")
	}
	return err
}

// oldTypes are the types of old keys that are removed whole.
var oldTypes = map[keys.OldKind]string{
	keys.OldWallet: "hash", keys.OldWalletLines: "stream", keys.OldTotals: "hash", keys.OldLedger: "stream",
	keys.OldToken: "hash", keys.OldTokens: "hash", keys.OldAsset: "hash", keys.OldAssetCounter: "string",
	keys.OldAssets: "zset", keys.OldInventory: "hash", keys.OldEvents: "stream", keys.OldFriends: "set",
	keys.OldSweepFence: "string", keys.OldSweepLock: "string", keys.OldIdentity: "string", keys.OldReceipt: "string",
}

// removeOld removes what is not part of the new layout, and returns how many keys it looked at.
func (s *store) removeOld(ctx context.Context, page []oldKey) (int64, error) {
	var calls []redisdb.ScriptCall
	remove := func(key, kind string, members ...string) {
		args := scripts.MigrationRemoveArgs{DeadlineMS: "", Kind: kind}.List(redisdb.Args(members)...)
		calls = append(calls, redisdb.ScriptCall{Keys: []string{key}, Args: args})
	}
	for _, k := range page {
		kind, isWhole := oldTypes[k.Kind]
		switch {
		case isWhole:
			remove(k.Name, kind)
		case k.Kind == keys.OldRoom:
			isOld, err := s.db.Client.HExists(ctx, k.Name, "set").Result()
			if err != nil {
				return 0, redisdb.WrapError("read a room", err)
			}
			if isOld {
				remove(k.Name, kindHash)
			}
		case k.IsPaid && (k.Kind == keys.OldRoomCode || k.Kind == keys.OldRoomCounter):
			remove(k.Name, kindString)
		case k.Kind == keys.OldRoomIndex || k.Kind == keys.OldRoomsDue:
			gone, err := s.oldMembers(ctx, k)
			if err != nil {
				return 0, err
			}
			for chunk := range slices.Chunk(gone, maxValues) {
				remove(k.Name, kindZSet, chunk...)
			}
		case k.Kind == keys.OldRoomCode:
			roomID, err := s.db.Client.Get(ctx, k.Name).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return 0, redisdb.WrapError("read a room's code", err)
			}
			isNew, err := s.db.Client.HExists(ctx, k.RoomKey(roomID), "settings").Result()
			if err != nil {
				return 0, redisdb.WrapError("read a room", err)
			}
			if !isNew {
				remove(k.Name, kindString)
			}
		}
	}
	if err := s.renew(ctx); err != nil {
		return 0, err
	}
	for i := range calls {
		calls[i].Args[0] = s.deadlineMS
	}
	for _, result := range s.db.RunScriptPipelined(ctx, scripts.MigrationRemove, calls) {
		switch {
		case result.Failure != nil:
			return 0, result.Failure
		case result.Status != scripts.OK:
			return 0, errLeaseLost
		}
	}
	return int64(len(page)), nil
}

// oldMembers returns the members of an index that are no room of the new layout.
func (s *store) oldMembers(ctx context.Context, k oldKey) ([]string, error) {
	var members []string
	for {
		first := int64(len(members))
		some, err := s.db.Client.ZRange(ctx, k.Name, first, first+maxListValues-1).Result()
		if err != nil {
			return nil, redisdb.WrapError("read an index of rooms", err)
		}
		if len(some) == 0 {
			break
		}
		members = append(members, some...)
	}
	isNew := make([]*redis.BoolCmd, len(members))
	_, err := s.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, m := range members {
			isNew[i] = p.HExists(ctx, k.RoomKey(m), "settings")
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read the rooms of an index", err)
	}
	var gone []string
	for i, m := range members {
		if !isNew[i].Val() || k.IsPaid || strings.HasPrefix(k.Text, "0:") {
			gone = append(gone, m)
		}
	}
	return gone, nil
}

// nonceOf returns a nonce of today's form, 8 digits of base 36, that follows from a number.
func nonceOf(number int64) string {
	const values = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36
	digits := strconv.FormatInt(max(1, number%values), 36)
	return strings.Repeat("0", 8-len(digits)) + digits
}
