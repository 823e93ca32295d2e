package rooms

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// eventsRetention is how long the events of a room outlive it. A later client reads the room.
const eventsRetention = 10 * time.Minute

// The packed fields of a room's hash. Go and the scripts read the values by the names in package
// scripts. doc.go describes them.
var (
	settingsLayout = redisdb.PackedLayout{
		Name: "the settings of a room", Separator: '|', Layout: scripts.RoomSettings,
	}
	liveLayout   = redisdb.PackedLayout{Name: "the state of a room", Separator: '|', Layout: scripts.RoomLive}
	seatLayout   = redisdb.PackedLayout{Name: "a seat of a room", Separator: '|', Layout: scripts.RoomSeat}
	windowLayout = redisdb.PackedLayout{
		Name: "the window of a room for reports", Separator: '|', Layout: scripts.RoomWindow,
	}
	documentLayout = redisdb.PackedLayout{
		Name: "the document of a room", Separator: '\t', Layout: scripts.RoomDocument,
	}
	presenceLayout = redisdb.PackedLayout{
		Name: "the presence of a player", Separator: '|', Layout: scripts.RoomPresence,
	}
)

// store reads rooms from Redis and runs the room scripts.
type store struct {
	db             *redisdb.DB
	freeShardCount int // for free rooms
	receiptTTLMS   int64
	quotas         atomic.Pointer[Quotas] // of a player, on a shard
	disputeTimeout time.Duration
	ledgerChanged  func(gameID int64)
	sweeping       *leader.Work
	timing         *leader.Work
	pace           turnPace                 // of timing, which is one goroutine
	checkMoney     func(gameID int64) error // returns store_unavailable for a game whose money is stopped
	keyedHash      func(ctx context.Context, label, text string) ([]byte, error)

	boardsConsumer  ResultConsumer // nil: results for leaderboards wait
	matchConsumer   ResultConsumer // nil: results of matches wait
	endedQueue      chan location  // rooms with a consumer that this node has ended
	applying        *leader.Work
	delayedRooms    *cache.Cache[string, struct{}] // ids of rooms that are not to be applied yet
	deadLetterCount atomic.Int64

	sharedKeysCache *cache.Cache[sharedKeysID, *sharedKeys]
	endedRooms      *cache.Cache[creatorID, string] // ids of rooms whose end this node saw, "," behind each
}

// creatorID names a player who makes rooms on a shard.
type creatorID struct {
	shard  keys.Shard
	userID int64
}

const (
	endedRoomsCacheSize = 4096 // creators
	endedRoomsMaxBytes  = 1024 // of the ids for one of them
)

func newStore(db *redisdb.DB, freeShardCount int, receiptTTL time.Duration, ledgerChanged func(int64)) *store {
	st := &store{
		db: db, freeShardCount: freeShardCount, receiptTTLMS: receiptTTL.Milliseconds(), ledgerChanged: ledgerChanged,
		checkMoney:      func(int64) error { return nil },
		sharedKeysCache: cache.New[sharedKeysID, *sharedKeys]("room_keys", sharedKeysCacheSize, 0),
		endedRooms:      cache.New[creatorID, string]("ended_rooms", endedRoomsCacheSize, time.Hour),
		endedQueue:      make(chan location, outboxQueueSize),
		pace:            turnPace{rooms: map[int64]map[string]time.Time{}},
		delayedRooms:    cache.New[string, struct{}]("delayed_rooms", outboxQueueSize, outboxRetryDelay),
	}
	st.sweeping = leader.New(db, sweepWork, leader.EndsByTime, st.sweepGames)
	st.timing = leader.NewTimed(db, turnWork, leader.EndsByTime, turnTiming, st.endTurns)
	st.applying = leader.New(db, outboxWork, leader.EndsNothing, st.applyGames)
	return st
}

// changed marks a shard for background work. It is called after each script that may have changed a
// room there, also when its reply was lost.
func (st *store) changed(shard keys.Shard) {
	st.sweeping.Changed(shard.GameID()) // freeRooms for a free shard
	if shard.Paid() {
		st.ledgerChanged(shard.GameID())
	}
}

// location has the shard and the keys of a room. newLocation makes it.
type location struct {
	shard      keys.Shard
	roomID     string
	roomKey    string
	eventTopic string // the list of the room's events and the channel of the same name
}

func newLocation(shard keys.Shard, roomID string) location {
	room, events := keys.RoomWithEvents(shard, roomID)
	return location{shard, roomID, room, events}
}

// locate returns the location of a room. It returns invalid_request for an id that is not a UUID,
// and room_not_found for one that no room can have.
func (st *store) locate(roomID string) (location, error) {
	roomID = strings.ToLower(roomID) // RFC 9562, section 4: upper case is the same id
	shard, ok := keys.RoomShard(roomID)
	if !ok && !isUUID(roomID) {
		return location{}, apierror.InvalidRequest.WithField("roomId", "format", "must be a UUID")
	}
	if !ok || shard.Number() > st.freeShardCount {
		return location{}, apierror.RoomNotFound
	}
	return newLocation(shard, roomID), nil
}

// isUUID reports whether a text has the form of a UUID.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return false
			}
		} else if !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return true
}

// command is one call of a method: who changes which room, under which receipt.
type command struct {
	location
	caller  principal.Caller
	gameID  int64 // of the room
	receipt idempotency.Receipt
	nonce   string
}

// newCommand returns a command on a room. It returns the codes of locate, and room_not_found for a
// room of another game's economy.
func (st *store) newCommand(caller principal.Caller, roomID string, rc idempotency.Receipt) (command, error) {
	at, err := st.locate(roomID)
	if err != nil {
		return command{}, err
	}
	c := command{at, caller, caller.GameID, rc, idempotency.NewNonce()}
	if at.shard.Paid() {
		if !caller.CanAccessGame(at.shard.GameID()) {
			return command{}, apierror.RoomNotFound
		}
		c.gameID = at.shard.GameID()
	}
	return c, nil
}

// playerText returns the user id of a player as text, "" for other callers.
func (c command) playerText() string {
	if c.caller.Role != principal.Player {
		return ""
	}
	return strconv.FormatInt(c.caller.UserID, 10)
}

// callArgs returns the arguments with which every script of a command begins.
func (st *store) callArgs(c command) scripts.CallArgs {
	// A pointer is no allocation, as the value in an interface is: 279 instead of 287 for a room with
	// a join and two leaves (BenchmarkCreateJoinLeave).
	return scripts.CallArgs{Nonce: c.nonce, Fingerprint: c.receipt.Fingerprint, TTLMS: &st.receiptTTLMS}
}

// sharedKeys are the keys that all rooms of a game on a shard share. They are made once: every
// change of a room names several of them.
type sharedKeys struct {
	indexes                     map[string]string // by openIndex, …
	due, turns, counter, outbox string            //
	ledger                      string            // "" on a shard of free rooms
	feed                        [2]string         // its head and the feed
}

// sharedKeysID is whose sharedKeys they are.
type sharedKeysID struct {
	shard  keys.Shard
	gameID int64
}

// sharedKeysCacheSize is for how many games and shards the keys are kept; they are some 500 bytes.
const sharedKeysCacheSize = 4096

// sharedKeys returns the keys that the command's room shares with others.
func (st *store) sharedKeys(c *command) *sharedKeys {
	of := sharedKeysID{c.shard, c.gameID}
	if found, ok := st.sharedKeysCache.Get(of); ok {
		return found
	}
	shared := &sharedKeys{
		indexes: map[string]string{}, due: keys.RoomsDue(c.shard), turns: keys.RoomTurns(c.shard),
		counter: keys.RoomCounter(c.shard), outbox: keys.RoomOutbox(c.shard),
		feed: [2]string{keys.FeedHead(c.shard, c.gameID), keys.Feed(c.shard, c.gameID)},
	}
	for _, state := range []string{openIndex, createdIndex, startedIndex, finishedIndex, cancelledIndex, allIndex} {
		shared.indexes[state] = keys.RoomIndex(c.shard, c.gameID, state)
	}
	shared.indexes[disputedIndex] = keys.DisputedRooms(c.shard)
	if c.shard.Paid() {
		shared.ledger = keys.Ledger(c.shard.GameID())
	}
	st.sharedKeysCache.Add(of, shared)
	return shared
}

// keyList collects the keys of a script in the order of its header.
type keyList struct {
	command
	shared *sharedKeys
	names  []string
}

// newKeyList starts with the room and its events.
func (st *store) newKeyList(c command) *keyList {
	return &keyList{c, st.sharedKeys(&c), append(make([]string, 0, 24), c.roomKey, c.eventTopic)}
}

func (k *keyList) add(names ...string) *keyList {
	k.names = append(k.names, names...)
	return k
}

// addIndexes adds the game's indexes with these names.
func (k *keyList) addIndexes(states ...string) *keyList {
	for _, state := range states {
		k.names = append(k.names, k.shared.indexes[state])
	}
	return k
}

func (k *keyList) addDue() *keyList { return k.add(k.shared.due) }

func (k *keyList) addTurns() *keyList { return k.add(k.shared.turns) }

// addOutbox adds the outbox of a room with a consumer.
func (k *keyList) addOutbox(consumer string) *keyList {
	if consumer != "" {
		k.names = append(k.names, k.shared.outbox)
	}
	return k
}

// addLedger adds the ledger of a paid room.
func (k *keyList) addLedger() *keyList {
	if k.shard.Paid() {
		k.names = append(k.names, k.shared.ledger)
	}
	return k
}

// addPlayers adds the keys of each player that a script may change: the list of rooms and, in a
// paid room, the wallet with its lines.
func (k *keyList) addPlayers(userIDs []int64) *keyList {
	for _, id := range userIDs {
		k.names = append(k.names, keys.PlayerRooms(k.shard, id))
		k.addWallet(id)
	}
	return k
}

// addPlayerRooms adds the list of rooms of each player.
func (k *keyList) addPlayerRooms(userIDs []int64) *keyList {
	for _, id := range userIDs {
		k.names = append(k.names, keys.PlayerRooms(k.shard, id))
	}
	return k
}

// addWallet adds, in a paid room, a player's wallet and its lines.
func (k *keyList) addWallet(userID int64) {
	if game := k.shard.GameID(); k.shard.Paid() {
		wallet, lines := keys.WalletWithLines(game, userID)
		k.names = append(k.names, wallet, lines)
	}
}

// addNewRoom adds the keys from the third on with which a room is opened.
func (k *keyList) addNewRoom(code string) *keyList {
	k.add(keys.RoomCode(k.shard, code), k.shared.counter).addDue()
	k.addIndexes(allIndex, createdIndex, startedIndex, openIndex)
	k.add(keys.PlayerRooms(k.shard, k.caller.UserID), keys.RoomsMade(k.shard, k.caller.UserID))
	if !k.shard.Paid() {
		return k.add(keys.FreeRooms(k.shard))
	}
	k.addWallet(k.caller.UserID)
	return k.addLedger()
}

// withReceipt returns the keys, with the receipt of a call with a key behind them.
func (k *keyList) withReceipt() []string {
	if k.receipt.Fingerprint == "" {
		return k.names
	}
	return append(k.names, keys.RoomReceipt(k.shard, k.caller.ActorID(), k.receipt.KeyDigest))
}

// The indexes that each shard has for each game. Those of a status have its name in lower case.
// disputedIndex is DisputedRooms, which a shard has once.
const (
	openIndex      = "open"
	createdIndex   = "created"
	startedIndex   = "started"
	finishedIndex  = "finished"
	cancelledIndex = "cancelled"
	disputedIndex  = "disputed"
	allIndex       = "all"
)

// scriptResult is the reply of a room script.
type scriptResult struct {
	script   *scripts.Script
	reply    redisdb.Reply // the first reply when replayed; without the nonce
	room     *Room         // after ok, stale and version_conflict, else nil; the zero Room when there is none
	replayed bool          // by an earlier request with the same key
}

func (r scriptResult) isOK() bool    { return r.reply.Status == scripts.OK }
func (r scriptResult) isStale() bool { return r.reply.Status == scripts.Stale }

// maxScriptAttempts bounds how often a script is run again because the room changed after it was
// read.
const maxScriptAttempts = 16

// retryStale runs a script until it is not stale, each time with the stale result before, at first
// with the zero one. It returns version_conflict when every run was stale.
func retryStale(run func(last scriptResult) (scriptResult, error)) (last scriptResult, err error) {
	for range maxScriptAttempts {
		if last, err = run(last); err != nil || !last.isStale() {
			return last, err
		}
	}
	return scriptResult{}, apierror.VersionConflict
}

// runScript runs a room script and reads the room in the same round trip. If the reply is ok and
// names a room, it returns that room. It returns room_not_found if the room no longer exists, and
// redisdb.ErrSkewed if a difference of clocks kept the script from ending the room.
func (st *store) runScript(
	ctx context.Context, s *scripts.Script, c command, read location, names []string, args []any,
) (scriptResult, error) {
	if c.shard.Paid() {
		if err := st.checkMoney(c.shard.GameID()); err != nil {
			return scriptResult{}, err
		}
	}
	if err := c.receipt.CheckNew(ctx, st.db, names[len(names)-1]); err != nil {
		return scriptResult{}, err
	}
	running := s
	if keys.RoomFeeds(c.roomID) || keys.RoomFeeds(read.roomID) {
		running, names = st.withFeed(s, &c, names)
	}
	reply, hash, err := st.db.RunScriptAndRead(ctx, running, read.roomKey, names, args...)
	st.changed(c.shard)
	if err != nil {
		st.applying.Changed(c.shard.GameID()) // it may have ended the room
		return scriptResult{}, err
	}
	if reply.IsSkewed() {
		return scriptResult{}, redisdb.ErrSkewed
	}
	r := scriptResult{script: s}
	r.reply, r.replayed = idempotency.FirstReply(c.nonce, reply)
	if !r.isOK() && !r.isStale() && r.reply.Status != apierror.VersionConflict.Code {
		return r, nil
	}
	if r.isOK() && len(r.reply.Values) > 0 && r.reply.Values[0] != read.roomID {
		read = newLocation(read.shard, r.reply.Values[0])
		if hash, err = st.db.AutoPipelined.HGetAll(ctx, read.roomKey).Result(); err != nil {
			return scriptResult{}, redisdb.WrapError("read a room", err)
		}
	}
	if r.isOK() && len(hash) == 0 {
		r.reply = redisdb.Reply{Status: apierror.RoomNotFound.Code}
		return r, nil
	}
	if r.room, err = decodeRoom(read.roomID, hash); err == nil && r.room.Status.Ended() {
		st.addEndedRoom(read.shard, r.room)
		if r.isOK() && !r.replayed {
			st.queueEnded(read, r.room)
		}
	}
	return r, err
}

// withFeed returns a script of a room that feeds, and its keys with those of the feed.
func (st *store) withFeed(s *scripts.Script, c *command, names []string) (*scripts.Script, []string) {
	if s.WithFeed() == nil {
		return s, names
	}
	feed := st.sharedKeys(c).feed
	return s.WithFeed(), append(names, feed[:]...)
}

// addEndedRoom keeps the id of a room that has ended for the next script that opens one of its
// creator: else that has to ask which of the creator's rooms have ended whenever the quota is
// reached: 431 instead of 415 allocations for a cycle (BenchmarkCycle).
func (st *store) addEndedRoom(shard keys.Shard, room *Room) {
	creator := creatorID{shard, room.CreatorID}
	ids, _ := st.endedRooms.Get(creator)
	if st.quotas.Load().OpenRooms != 0 && room.CreatorID != 0 && len(ids) < endedRoomsMaxBytes {
		st.endedRooms.Add(creator, ids+room.RoomID+",")
	}
}

// takeEndedRooms returns what addEndedRoom kept, for scripts that open a room. It may lack rooms,
// also those of a script that fails.
func (st *store) takeEndedRooms(shard keys.Shard, userID int64) string {
	creator := creatorID{shard, userID}
	ids, found := st.endedRooms.Get(creator)
	if found {
		st.endedRooms.Remove(creator)
	}
	return ids
}

// run runs a script that changes the command's room.
func (st *store) run(ctx context.Context, s *scripts.Script, k *keyList, args ...any) (scriptResult, error) {
	return st.runScript(ctx, s, k.command, k.location, k.withReceipt(), args)
}

// tryCreate tries one id and one code. Stale means that the code is taken, or that the script must
// know what findEnded returns for the values behind it.
func (st *store) tryCreate(
	ctx context.Context, caller principal.Caller, rc idempotency.Receipt, n roomDraft, ended string,
) (scriptResult, error) {
	settings, document := n.encode(st.db.Layout(), caller.UserID)
	c := st.newRoomCommand(caller, n.entry > 0, n.hasFeed, rc)
	if ended == "" {
		ended = st.takeEndedRooms(c.shard, caller.UserID)
	}
	return st.runCreate(ctx, c, n.creatorProfileJSON, settings, document, ended, n.stakes)
}

// findEnded returns which of these rooms have ended or no longer exist, in the form of the scripts
// that open a room. An ended room never goes on, so the result stays true. It returns "" for no
// rooms.
func (st *store) findEnded(ctx context.Context, roomIDs []string) (string, error) {
	if len(roomIDs) == 0 {
		return "", nil
	}
	names := make([]string, len(roomIDs))
	for i, id := range roomIDs {
		at, err := st.locate(id)
		if err != nil {
			return "", errors.New("a list of rooms contains " + strconv.Quote(id) + ", which is no room id")
		}
		names[i] = at.roomKey
	}
	live := make([]redisdb.Pending[string], len(names))
	for i, name := range names {
		live[i] = st.db.AutoPipelined.HGet(ctx, name, "live")
	}
	ended := ","
	for i, id := range roomIDs {
		text, err := live[i].Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return "", redisdb.WrapError("find the rooms that have ended", err)
		}
		now := liveLayout.Split(text)
		if err != nil || Status(now.Text("status")).Ended() { // redis.Nil: it was removed
			ended += id + ","
		}
	}
	return ended, nil
}

// replayCreate returns the first reply to a create. Stale means that there was none.
func (st *store) replayCreate(
	ctx context.Context, caller principal.Caller, paid bool, rc idempotency.Receipt,
) (scriptResult, error) {
	// Without settings the script only looks for a receipt.
	return st.runCreate(ctx, st.newRoomCommand(caller, paid, false, rc), "", "", "", "", "")
}

func (st *store) runCreate(
	ctx context.Context, c command, profile, settings, document, ended, stakes string,
) (scriptResult, error) {
	code := newCode(c.shard.Number(), st.freeShardCount)
	return st.run(ctx, scripts.RoomCreate, st.newKeyList(c).addNewRoom(code),
		scripts.RoomCreateArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.caller.UserID, RoomID: c.roomID,
			IDStep: st.freeShardCount + 1, IDOffset: c.shard.Number(), Code: code, Settings: settings,
			Document: document, Profile: profile, MaxSeats: st.quotas.Load().Seats,
			MaxRooms: st.quotas.Load().OpenRooms, Ended: ended, Stakes: stakes,
		}.List()...)
}

// newRoomCommand returns a command on a new room of a player.
func (st *store) newRoomCommand(caller principal.Caller, paid, hasFeed bool, rc idempotency.Receipt) command {
	shard := keys.EconomyShard(caller.GameID)
	if !paid {
		// A player opens all free rooms in one shard, so that a request with a key finds its receipt.
		shard = keys.FreeShard(int(caller.UserID % int64(st.freeShardCount)))
	}
	at := newLocation(shard, keys.NewRoomID(shard, time.Now(), hasFeed))
	return command{at, caller, caller.GameID, rc, idempotency.NewNonce()}
}

// joinOptions has the arguments of a join that the room lacks.
type joinOptions struct {
	profileJSON string
	friend      string // "1" or "0" for whether the creator is a friend, "" when it is not known
	mayStart    bool   // whether the join may start the room
}

// join seats the caller. Stale means that the script must know more of the options.
func (st *store) join(ctx context.Context, c command, o joinOptions) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex).addPlayerRooms([]int64{c.caller.UserID})
	if o.mayStart {
		k.addIndexes(createdIndex, startedIndex).addDue()
	}
	k.addWallet(c.caller.UserID)
	return st.run(ctx, scripts.RoomJoin, k.addLedger(),
		scripts.RoomJoinArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, MayStart: formatBool(o.mayStart), Profile: o.profileJSON, Friend: o.friend,
			MaxSeats: st.quotas.Load().Seats,
		}.List()...)
}

// leave takes the caller out. If the deadline of a turn is given (ms since 1970), it does so only
// if the caller had that turn and its time has passed. Stale means that the script also needs the
// keys of the other seats and, if one player is left, that player's payout.
func (st *store) leave(ctx context.Context, c command, l settlement, deadline string) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, startedIndex, finishedIndex, cancelledIndex).addDue()
	return st.run(ctx, scripts.RoomLeave, k.addTurns().addLedger().addPlayers(l.users).addOutbox(l.consumer),
		scripts.RoomLeaveArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Users: joinInts(l.users), Placements: l.placements, Rake: int64(l.rake),
			ComputedFor: l.roomVersion, EventsMS: eventsRetention.Milliseconds(), Over: deadline,
			NodeMS: st.db.Clock.NowMS(),
		}.List()...)
}

func (st *store) finish(ctx context.Context, c command, l settlement) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(startedIndex, finishedIndex).addDue()
	return st.run(ctx, scripts.RoomFinish, k.addLedger().addPlayers(l.users).addOutbox(l.consumer),
		scripts.RoomFinishArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, CallerGame: c.gameID, RoomID: c.roomID,
			Placements: l.placements, Rake: int64(l.rake), ComputedFor: l.roomVersion,
			EventsMS: eventsRetention.Milliseconds(),
		}.List()...)
}

// report stores the caller's report and applies its effect to the room. Stale means that the room
// has changed so that the effect may differ; isWindowOver reports whether the end of the window is
// the cause.
func (st *store) report(ctx context.Context, c command, rp reporting) (scriptResult, error) {
	compared := ""
	if rp.compared != 0 {
		compared = strconv.FormatInt(rp.compared, 10)
	}
	k := st.newKeyList(c).addIndexes(startedIndex, finishedIndex, disputedIndex).addDue()
	return st.run(ctx, scripts.RoomReport, k.addLedger().addPlayers(rp.users).addOutbox(rp.consumer),
		scripts.RoomReportArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Effect: string(rp.effect), Seen: rp.seen, Compared: compared, Report: rp.text,
			Placements: rp.placements, Rake: int64(rp.rake), DisputeMS: st.disputeTimeout.Milliseconds(),
			EventsMS: eventsRetention.Milliseconds(), WindowMS: rp.window.Milliseconds(),
		}.List()...)
}

// resolve ends a disputed room. Without an outcome it returns the earlier decision, or stale.
// losers are the players whose reports contradict the decision.
func (st *store) resolve(
	ctx context.Context, c command, outcome resolveOutcome, l settlement, losers []int64,
) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(disputedIndex, finishedIndex, cancelledIndex).addDue()
	k.add(keys.DisputesLost(c.shard, c.gameID))
	return st.run(ctx, scripts.RoomResolve, k.addLedger().addPlayers(l.users).addOutbox(l.consumer),
		scripts.RoomResolveArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, CallerGame: c.gameID, RoomID: c.roomID,
			Users: joinInts(l.users), Outcome: string(outcome), Placements: l.placements, Rake: int64(l.rake),
			ComputedFor: l.roomVersion, EventsMS: eventsRetention.Milliseconds(), Losers: joinInts(losers),
		}.List()...)
}

// ready records whether the caller is ready. Stale means that the room starts and the script needs
// the players with a reserved seat.
func (st *store) ready(ctx context.Context, c command, ready bool, reserved []int64) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, startedIndex).addDue()
	return st.run(ctx, scripts.RoomReady, k.addPlayerRooms(reserved),
		scripts.RoomReadyArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, IsReady: formatBool(ready), Users: joinInts(reserved),
		}.List()...)
}

// start starts the room. Stale means that the script must know who has a reserved seat.
func (st *store) start(ctx context.Context, c command, reserved []int64) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, startedIndex).addDue()
	return st.run(ctx, scripts.RoomStart, k.addPlayerRooms(reserved),
		scripts.RoomStartArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Users: joinInts(reserved),
		}.List()...)
}

// kick takes a user out. Stale means that the script also needs the keys of the other seats and the
// consumer of the room.
func (st *store) kick(
	ctx context.Context, c command, target int64, ban bool, users []int64, consumer string,
) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, startedIndex, cancelledIndex).addDue()
	return st.run(ctx, scripts.RoomKick, k.addLedger().addPlayers(users).addOutbox(consumer),
		scripts.RoomKickArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Users: joinInts(users), Target: target, Ban: formatBool(ban),
			EventsMS: eventsRetention.Milliseconds(), HasOutbox: formatBool(consumer != ""),
		}.List()...)
}

func (st *store) transferHost(ctx context.Context, c command, target int64) (scriptResult, error) {
	return st.run(ctx, scripts.RoomTransfer, st.newKeyList(c), scripts.RoomTransferArgs{
		CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
		Target: target,
	}.List()...)
}

// cancel ends the command's room, which was read. Stale means that it has other seats, or is
// disputed or not as it was not before.
func (st *store) cancel(ctx context.Context, c command, room *Room, reason string) (scriptResult, error) {
	index, wasDisputed := startedIndexOf(room.Status)
	users := room.seatedUsers()
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, index, cancelledIndex).addDue()
	return st.run(ctx, scripts.RoomCancel, k.addLedger().addPlayers(users).addOutbox(room.consumer),
		scripts.RoomCancelArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Users: joinInts(users), Reason: reason, EventsMS: eventsRetention.Milliseconds(),
			WasDisputed: wasDisputed,
		}.List()...)
}

// startedIndexOf returns the index of a room that has started, or the index of disputed rooms if it
// is disputed. wasDisputed is the argument for the script.
func startedIndexOf(status Status) (index, wasDisputed string) {
	if status == Disputed {
		return disputedIndex, "1"
	}
	return startedIndex, "0"
}

// tryRematch tries one id and one code. Stale means that the code is taken, that room is not how
// the command's room is now, or that the script must know what findEnded returns for the values
// behind it.
func (st *store) tryRematch(
	ctx context.Context, c command, room Room, n rematch,
) (scriptResult, error) {
	if n.ended == "" {
		n.ended = st.takeEndedRooms(c.shard, c.caller.UserID)
	}
	next := c
	next.location = newLocation(c.shard, keys.NewRoomID(c.shard, time.Now(), n.hasFeed))
	code := newCode(c.shard.Number(), st.freeShardCount)
	quotas := st.quotas.Load()
	others := slices.DeleteFunc(room.ActivePlayers(), func(id int64) bool { return id == c.caller.UserID })
	k := st.newKeyList(c).add(next.roomKey, next.eventTopic).addNewRoom(code).addPlayerRooms(others)
	return st.runScript(ctx, scripts.RoomRematch, c, next.location, k.withReceipt(),
		scripts.RoomRematchArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			NewRoomID: next.roomID, IDStep: st.freeShardCount + 1, IDOffset: c.shard.Number(), Code: code,
			Document: room.encodeRematchDocument(st.db.Layout(), n.profileJSON), Profile: n.profileJSON,
			Users: joinInts(others), MaxSeats: quotas.Seats, MaxRooms: quotas.OpenRooms, Ended: n.ended, Stakes: n.stakes,
		}.List())
}

// read returns a room. It returns the codes of locate, and room_not_found.
func (st *store) read(ctx context.Context, roomID string) (Room, error) {
	at, err := st.locate(roomID)
	if err != nil {
		return Room{}, err
	}
	hash, err := st.db.AutoPipelined.HGetAll(ctx, at.roomKey).Result()
	if err != nil {
		return Room{}, redisdb.WrapError("read a room", err)
	}
	if len(hash) == 0 {
		return Room{}, apierror.RoomNotFound
	}
	room, err := decodeRoom(at.roomID, hash)
	if err != nil {
		return Room{}, err
	}
	return *room, nil
}

// readHeads begins to read the heads of rooms, which have no players but a user, and returns what
// waits for each. That returns the codes of locate, and room_not_found.
func (st *store) readHeads(ctx context.Context, roomIDs []string, userID int64) []func() (*Room, error) {
	fields := []string{"settings", "live", seatFieldPrefix + strconv.FormatInt(userID, 10)}
	reads := make([]func() (*Room, error), len(roomIDs))
	for i, id := range roomIDs {
		at, err := st.locate(id)
		if err != nil {
			reads[i] = func() (*Room, error) { return nil, err }
			continue
		}
		pending := st.db.AutoPipelined.HMGet(ctx, at.roomKey, fields...)
		reads[i] = func() (*Room, error) {
			values, err := pending.Result()
			if err != nil {
				return nil, redisdb.WrapError("read the head of a room", err)
			}
			return decodeHead(at.roomID, values, userID)
		}
	}
	return reads
}

// listEvents returns the stored events of a room, oldest first.
func (st *store) listEvents(ctx context.Context, roomID string) ([]string, error) {
	at, err := st.locate(roomID)
	if err != nil {
		return nil, err
	}
	entries, err := st.db.Client.LRange(ctx, at.eventTopic, 0, -1).Result()
	return entries, redisdb.WrapError("read the events of a room", err)
}

// roomIDByCode returns the id of the room with a code, which is a free room or one of the game's
// economy; with game 0, a free room. It returns room_not_found.
func (st *store) roomIDByCode(ctx context.Context, gameID int64, code string) (string, error) {
	code, number, ok := parseCode(code, st.freeShardCount)
	if !ok || number == 0 && gameID == 0 {
		return "", apierror.RoomNotFound
	}
	shard := keys.EconomyShard(gameID)
	if number > 0 {
		shard = keys.FreeShard(number - 1)
	}
	id, err := st.db.Client.Get(ctx, keys.RoomCode(shard, code)).Result()
	if err = redisdb.WrapError("read a room's code", err); errors.Is(err, redis.Nil) {
		return "", apierror.RoomNotFound
	}
	return id, err
}

// freeShards returns the shards of free rooms.
func (st *store) freeShards() []keys.Shard {
	shards := make([]keys.Shard, st.freeShardCount)
	for n := range shards {
		shards[n] = keys.FreeShard(n)
	}
	return shards
}

// gameShards returns the shards in which a game's rooms are.
func (st *store) gameShards(gameID int64) []keys.Shard {
	return append([]keys.Shard{keys.EconomyShard(gameID)}, st.freeShards()...)
}

// gameIndexes returns the keys of an index of a game in all shards.
func (st *store) gameIndexes(gameID int64, index string) []string {
	var names []string
	for _, shard := range st.gameShards(gameID) {
		names = append(names, keys.RoomIndex(shard, gameID, index))
	}
	return names
}

// playerIndexes returns the keys of a player's lists of rooms in all shards.
func (st *store) playerIndexes(gameID, userID int64) []string {
	var names []string
	for _, shard := range st.gameShards(gameID) {
		names = append(names, keys.PlayerRooms(shard, userID))
	}
	return names
}

// allIndexes returns the keys of the indexes that have all rooms of all games.
func (st *store) allIndexes(ctx context.Context) ([]string, error) {
	last, err := leader.CountGames(ctx, st.db)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, shard := range st.freeShards() {
		names = append(names, keys.FreeRooms(shard))
	}
	for id := range last {
		names = append(names, keys.RoomIndex(keys.EconomyShard(id+1), id+1, allIndex))
	}
	return names, nil
}

// maxPipelined bounds the commands of one pipeline.
const maxPipelined = 1024

// disputedIndexes returns the keys of the lists of disputed rooms: those of the shards of a game,
// or of all games when gameID is 0.
func (st *store) disputedIndexes(ctx context.Context, gameID int64) ([]string, error) {
	shards := st.gameShards(gameID)
	if gameID == 0 {
		last, err := leader.CountGames(ctx, st.db)
		if err != nil {
			return nil, err
		}
		shards = st.freeShards()
		for id := range last {
			shards = append(shards, keys.EconomyShard(id+1))
		}
	}
	names := make([]string, len(shards))
	for i, shard := range shards {
		names[i] = keys.DisputedRooms(shard)
	}
	return names, nil
}

// listRoomIDs returns at most n room ids of several indexes, newest first. They are older than
// before, or the newest when before is "".
func (st *store) listRoomIDs(ctx context.Context, indexes []string, before string, n int) ([]string, error) {
	by := &redis.ZRangeBy{Max: "+", Min: "-", Count: int64(n)}
	if before != "" {
		by.Max = "(" + before
	}
	var ids []string
	for chunk := range slices.Chunk(indexes, maxPipelined) {
		var parts []*redis.StringSliceCmd
		_, _ = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, index := range chunk {
				parts = append(parts, p.ZRevRangeByLex(ctx, index, by))
			}
			return nil
		})
		for i, part := range parts {
			switch err := redisdb.WrapError("list rooms", part.Err()); {
			case redisdb.IsWrongType(err) && len(indexes) > 1: // the other indexes are listed
				slog.ErrorContext(ctx, "an index of rooms cannot be read", "key", chunk[i], "error", err)
			case err != nil:
				return nil, err
			}
			ids = append(ids, part.Val()...)
		}
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) })
		ids = ids[:min(n, len(ids))]
	}
	return ids, nil
}

// readMany returns the rooms with these ids, without those that do not exist any more. Rooms that
// cannot be read are logged, and the others are returned.
func (st *store) readMany(ctx context.Context, ids []string) ([]Room, error) {
	names, found := make([]string, 0, len(ids)), make([]string, 0, len(ids))
	for _, id := range ids {
		at, err := st.locate(id)
		if err != nil {
			slog.ErrorContext(ctx, "an index of rooms contains what is no room id", "id", id)
			continue
		}
		names, found = append(names, at.roomKey), append(found, id)
	}
	list := make([]Room, 0, len(names))
	for i, hash := range st.db.ReadHashes(ctx, names) {
		room, err := decodeRoom(found[i], hash.Fields)
		switch err = cmp.Or(hash.Err, err); {
		case isOutside(err):
			return nil, err
		case err != nil:
			slog.ErrorContext(ctx, "a room cannot be read", "room", found[i], "error", err)
		case len(hash.Fields) > 0:
			list = append(list, *room)
		}
	}
	return list, nil
}

// isOutside reports whether an error has a cause outside the data of one key, so that it concerns
// other keys too.
func isOutside(err error) bool {
	return errors.Is(err, apierror.StoreUnavailable) || errors.Is(err, apierror.StoreFull) ||
		errors.Is(err, context.Canceled)
}

func isRoomID(text string) bool {
	_, ok := keys.RoomShard(text)
	return ok
}
