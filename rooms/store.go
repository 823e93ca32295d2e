package rooms

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/principal"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads rooms from Redis and runs the room scripts.
type store struct {
	db             *redisdb.DB
	freeShardCount int // for free rooms
	receiptTTL     time.Duration
}

// location is where a room is stored.
type location struct {
	shard  keys.Shard
	roomID string
}

// locate returns the location of a room. It returns room_not_found for an id that no room can have.
func (st *store) locate(roomID string) (location, error) {
	roomID = strings.ToLower(roomID) // RFC 9562, section 4: upper case is the same id
	shard, ok := keys.RoomShard(roomID)
	if !ok || shard.Number() > st.freeShardCount {
		return location{}, apierror.RoomNotFound
	}
	return location{shard, roomID}, nil
}

func (l location) roomKey() string { return keys.Room(l.shard, l.roomID) }

// eventTopic is the stream of the room's events and the channel of the same name.
func (l location) eventTopic() string { return keys.RoomEvents(l.shard, l.roomID) }

// command is one call of a verb: who changes which room, under which receipt.
type command struct {
	location
	caller  principal.Caller
	gameID  int64 // of the room
	receipt idempotency.Receipt
	nonce   string
}

// newCommand returns a command on a room. It returns room_not_found for an id that no room can
// have.
func (st *store) newCommand(caller principal.Caller, roomID string, rc idempotency.Receipt) (command, error) {
	at, err := st.locate(roomID)
	if err != nil {
		return command{}, err
	}
	return command{at, caller, caller.GameID, rc, idempotency.NewNonce()}, nil
}

// scriptInput is what one script takes beside what every room script takes.
type scriptInput struct {
	walletUserIDs []int64  // user ids of the players whose wallets the script may change; ignored for a free room
	ownKeys       []string // keys of this script alone
	ownArgs       []any    // arguments of this script alone
}

// scriptResult is what a room script returned.
type scriptResult struct {
	script   *scripts.Script
	reply    redisdb.Reply // the first reply when replayed; without the nonce
	room     Room          // after ok, and after stale when the room exists
	replayed bool          // by an earlier request with the same key
}

func (r scriptResult) isOK() bool    { return r.reply.Status == scripts.OK }
func (r scriptResult) isStale() bool { return r.reply.Status == scripts.Stale }

// hasRoom reports whether the script returned a room.
func (r scriptResult) hasRoom() bool { return (r.isOK() || r.isStale()) && len(r.reply.Values) > 0 }

// runScript runs a room script.
func (st *store) runScript(ctx context.Context, s *scripts.Script, c command, in scriptInput) (scriptResult, error) {
	if !c.shard.Paid() {
		in.walletUserIDs = nil
	}
	reply, err := st.db.RunScript(ctx, s, c.scriptKeys(in), st.scriptArgs(c, in)...)
	if err != nil {
		return scriptResult{}, err
	}
	r := scriptResult{script: s}
	r.reply, r.replayed = idempotency.FirstReply(c.nonce, reply)
	if r.hasRoom() {
		if r.room, err = decodeRoom(decodeHashReply(r.reply.Values[0])); err != nil {
			return scriptResult{}, err
		}
	}
	return r, nil
}

// scriptKeys returns the keys in the order in which every room script reads them.
func (c command) scriptKeys(in scriptInput) []string {
	room := c.roomKey()
	totals, ledger := room, room // placeholders: a free room moves no money, but all keys must be of one slot
	if c.shard.Paid() {
		totals, ledger = keys.Totals(), keys.Ledger()
	}
	list := make([]string, 0, 13+len(in.ownKeys)+3*len(in.walletUserIDs))
	receipt := keys.RoomReceipt(c.shard, c.caller.ActorID(), c.receipt.KeyDigest)
	list = append(list, room, c.eventTopic(), receipt, keys.RoomsDue(c.shard))
	for _, name := range indexNames {
		list = append(list, keys.RoomIndex(c.shard, c.gameID, name))
	}
	list = append(list, keys.RoomIndex(c.shard, 0, allIndex), totals, ledger)
	list = append(list, in.ownKeys...)
	for _, id := range in.walletUserIDs {
		list = append(list, keys.Wallet(id), keys.WalletLines(id), keys.WalletEvents(id))
	}
	return list
}

// scriptArgs returns the arguments in the order in which every room script reads them.
func (st *store) scriptArgs(c command, in scriptInput) []any {
	actor, player := c.caller.ActorID(), ""
	switch c.caller.Role {
	case principal.Player:
		player = strconv.FormatInt(c.caller.UserID, 10)
	case principal.System:
		actor = "" // its calls are not remembered in the room
	}
	list := make([]any, 0, 8+len(in.ownArgs))
	list = append(list, st.db.PublishCommand, c.nonce, c.receipt.Fingerprint, st.receiptTTL.Milliseconds(),
		actor, player, c.gameID, joinInts(in.walletUserIDs))
	return append(list, in.ownArgs...)
}

// Two of the indexes that each shard has for each game. The others are named after a status.
const (
	openIndex = "open"
	allIndex  = "all"
)

// indexNames lists the indexes in the order in which the scripts get them.
var indexNames = []string{openIndex, "created", "started", "finished", "cancelled", allIndex}

// tryCreate tries one id and one code. Stale means that the code is taken.
func (st *store) tryCreate(
	ctx context.Context, caller principal.Caller, rc idempotency.Receipt, n roomDraft,
) (scriptResult, error) {
	c, code := st.newRoomCommand(caller, st.shardFor(n.entry > 0, rc), rc)
	settings, document := n.encode(c.roomID, caller.UserID)
	return st.runCreate(ctx, c, code, n.creatorProfileJSON, settings, document)
}

// replayCreate returns the first reply to a create. Stale means that there was none.
func (st *store) replayCreate(
	ctx context.Context, caller principal.Caller, paid bool, rc idempotency.Receipt,
) (scriptResult, error) {
	c, code := st.newRoomCommand(caller, st.shardFor(paid, rc), rc)
	return st.runCreate(ctx, c, code, "", "", "") // without settings the script only looks for a receipt
}

func (st *store) runCreate(
	ctx context.Context, c command, code, profile, settings, document string,
) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomCreate, c, scriptInput{
		walletUserIDs: []int64{c.caller.UserID},
		ownKeys:       []string{keys.RoomCode(c.shard, code), keys.RoomCounter(c.shard)},
		ownArgs:       []any{st.freeShardCount + 1, c.shard.Number(), profile, code, settings, document},
	})
}

// newRoomCommand returns a command on a new room, and a code for the room.
func (st *store) newRoomCommand(
	caller principal.Caller, shard keys.Shard, rc idempotency.Receipt,
) (c command, code string) {
	at := location{shard, keys.NewRoomID(shard, time.Now())}
	return command{at, caller, caller.GameID, rc, idempotency.NewNonce()}, newCode(shard.Number(), st.freeShardCount)
}

// shardFor returns the shard for a new room. Free rooms are spread over the shards; a request with
// a key always gets the same one, where its receipt is.
func (st *store) shardFor(paid bool, rc idempotency.Receipt) keys.Shard {
	switch {
	case paid:
		return keys.Economy
	case rc.KeyDigest == "":
		return keys.FreeShard(rand.IntN(st.freeShardCount))
	default:
		h := fnv.New32a()
		_, _ = h.Write([]byte(rc.KeyDigest))
		return keys.FreeShard(int(h.Sum32() % uint32(st.freeShardCount)))
	}
}

// join seats the caller. friend is "1" or "0" for whether the creator is a friend, "" when it is
// not known; then stale means that the script must know.
func (st *store) join(ctx context.Context, c command, profile, friend string) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomJoin, c, scriptInput{
		walletUserIDs: []int64{c.caller.UserID}, ownArgs: []any{profile, friend},
	})
}

func (st *store) leave(ctx context.Context, c command, wallets []int64, l settlement) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomLeave, c, scriptInput{walletUserIDs: wallets, ownArgs: l.scriptArgs()})
}

func (st *store) finish(ctx context.Context, c command, wallets []int64, l settlement) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomFinish, c, scriptInput{walletUserIDs: wallets, ownArgs: l.scriptArgs()})
}

func (l settlement) scriptArgs() []any {
	return []any{l.placementsJSON, l.encodePayouts(), int64(l.rake), l.roomVersion}
}

func (st *store) ready(ctx context.Context, c command, ready bool) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomReady, c, scriptInput{ownArgs: []any{formatBool(ready)}})
}

func (st *store) kick(ctx context.Context, c command, user int64, ban bool) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomKick, c, scriptInput{walletUserIDs: []int64{user}, ownArgs: []any{
		user,
		formatBool(ban),
	}})
}

func (st *store) transferHost(ctx context.Context, c command, user int64) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomTransfer, c, scriptInput{ownArgs: []any{user}})
}

func (st *store) start(ctx context.Context, c command) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomStart, c, scriptInput{})
}

func (st *store) cancel(ctx context.Context, c command, wallets []int64, reason string) (scriptResult, error) {
	return st.runScript(ctx, scripts.RoomCancel, c, scriptInput{walletUserIDs: wallets, ownArgs: []any{reason}})
}

// tryRematch tries one id and one code, or the id of the known rematch. Stale with a room means
// that the room has another rematch; stale without a room means that the code is taken.
func (st *store) tryRematch(ctx context.Context, c command, known, profile string) (scriptResult, error) {
	next, code := st.newRoomCommand(c.caller, c.shard, c.receipt)
	if known != "" {
		next.roomID = known
	}
	return st.runScript(ctx, scripts.RoomRematch, c, scriptInput{
		walletUserIDs: []int64{c.caller.UserID},
		ownKeys:       []string{next.roomKey(), next.eventTopic(), keys.RoomCode(c.shard, code), keys.RoomCounter(c.shard)},
		ownArgs:       []any{next.roomID, code, st.freeShardCount + 1, c.shard.Number(), profile},
	})
}

// read returns a room. It returns room_not_found.
func (st *store) read(ctx context.Context, roomID string) (Room, error) {
	at, err := st.locate(roomID)
	if err != nil {
		return Room{}, err
	}
	hash, err := st.db.AutoPipelined.HGetAll(ctx, at.roomKey()).Result()
	if err != nil {
		return Room{}, redisdb.WrapError("read a room", err)
	}
	if len(hash) == 0 {
		return Room{}, apierror.RoomNotFound
	}
	return decodeRoom(hash)
}

// roomIDByCode returns the id of the room with a code. It returns room_not_found.
func (st *store) roomIDByCode(ctx context.Context, code string) (string, error) {
	code, number, ok := parseCode(code, st.freeShardCount)
	if !ok {
		return "", apierror.RoomNotFound
	}
	shard := keys.Economy
	if number > 0 {
		shard = keys.FreeShard(number - 1)
	}
	id, err := st.db.Client.Get(ctx, keys.RoomCode(shard, code)).Result()
	if err = redisdb.WrapError("read a room's code", err); errors.Is(err, redis.Nil) {
		return "", apierror.RoomNotFound
	}
	return id, err
}

// allShards returns the shards, that of paid rooms first.
func (st *store) allShards() []keys.Shard {
	shards := []keys.Shard{keys.Economy}
	for n := range st.freeShardCount {
		shards = append(shards, keys.FreeShard(n))
	}
	return shards
}

// listRoomIDs returns at most n room ids of an index over all shards, newest first. They are older
// than before, or the newest when before is "".
func (st *store) listRoomIDs(ctx context.Context, game int64, index, before string, n int) ([]string, error) {
	newest := "+"
	if before != "" {
		newest = "(" + before
	}
	var parts []*redis.StringSliceCmd
	_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, shard := range st.allShards() {
			by := &redis.ZRangeBy{Max: newest, Min: "-", Count: int64(n)}
			parts = append(parts, p.ZRevRangeByLex(ctx, keys.RoomIndex(shard, game, index), by))
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("list rooms", err)
	}
	var ids []string
	for _, part := range parts {
		ids = append(ids, part.Val()...)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
	return ids[:min(n, len(ids))], nil
}

// readMany returns the rooms with these ids, without those that do not exist any more.
func (st *store) readMany(ctx context.Context, ids []string) ([]Room, error) {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		at, err := st.locate(id)
		if err != nil {
			return nil, errors.New("an index contains " + strconv.Quote(id) + ", which is no room id")
		}
		names = append(names, at.roomKey())
	}
	hashes, err := st.db.ReadHashes(ctx, names)
	if err != nil {
		return nil, err
	}
	list := make([]Room, 0, len(hashes))
	for _, hash := range hashes {
		if len(hash) == 0 {
			continue
		}
		room, err := decodeRoom(hash)
		if err != nil {
			return nil, err
		}
		list = append(list, room)
	}
	return list, nil
}

func isRoomID(text string) bool {
	_, ok := keys.RoomShard(text)
	return ok
}
