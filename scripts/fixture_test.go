package scripts_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

// values are arguments or settings by name.
type values map[string]any

// fixture is a game with an economy, a shard of free rooms and a player of its own, in a store that
// other fixtures use too: no two of them share a hash tag.
type fixture struct {
	t  testkit.T
	db *redisdb.DB
	id int64 // of the game, the free shard and the player

	feeds bool // rooms and tournaments feed
}

var fixtureCount atomic.Int64

func newFixture(t testkit.T, db *redisdb.DB) *fixture {
	return &fixture{t: t, db: db, id: fixtureCount.Add(1) % keys.MaxShards}
}

// call is one run of a script, with arguments by the names of its header.
type call struct {
	f      *fixture
	script *scripts.Script
	shard  keys.Shard
	args   values
	rest   []any // arguments behind those with a number
	feeds  bool  // the script with a feed runs
}

// newCall returns a run of a script on the fixture's economy. Arguments that are not given have a
// default.
func (f *fixture) newCall(s *scripts.Script, given values, rest ...any) call {
	f.t.Helper()
	args := values{
		"publish": f.db.PublishCommand, "nonce": idempotency.NewNonce(), "fingerprint": "", "ttl_ms": 86_400_000,
		"user": "7", "game": f.id, "token": "GOLD", "decimals": "2", "units": "250", "reason": "test", "ref": "why",
		"key": "key", "max_seats": "0", "max_rooms": "0", "ended": "", "games": "", "granted_ms": 0,
		"node_ms": time.Now().UnixMilli(),
		"over":    "", "stakes": "", "least_ms": 0, "most": 1_000, "limit": "4000000000000000000",
		"source": "board:top:1", "from": "mint", "most_entries": 100, "before": 0, "digest": "digest",
		"board": "top", "funded_at": 1000, "until_ms": 2000,
	}
	c := call{f: f, script: s, shard: keys.EconomyShard(f.id), args: args, rest: rest}
	c.feeds = f.feeds && s.WithFeed() != nil
	if slices.Contains(s.Keys.Names, "receipt") { // a call without a key has a receipt of its own
		args["fingerprint"], args["key"] = args["nonce"], fmt.Sprint("call:", args["nonce"])
	}
	args["caller_game"] = args["game"]
	return c.with(given)
}

// with returns the call with other arguments.
func (c call) with(given values) call {
	c.args = maps.Clone(c.args)
	maps.Copy(c.args, given)
	return c
}

// keyed returns the call with a key and a fingerprint, as long as those of a request.
func (c call) keyed() call {
	return c.with(values{"key": strings.Repeat("k", 22), "fingerprint": strings.Repeat("f", 22)})
}

func (c call) text(name string) string {
	value, ok := c.args[name]
	if !ok {
		c.f.t.Fatalf("%s: no value for %q", c.script.Name, name)
	}
	return fmt.Sprint(value)
}

func (c call) number(name string) int64 {
	n, err := strconv.ParseInt(c.text(name), 10, 64)
	if err != nil {
		c.f.t.Fatalf("%s: %s: %v", c.script.Name, name, err)
	}
	return n
}

// isPaid reports whether the call is about money, which has more keys.
func (c call) isPaid() bool { return c.shard.Paid() }

// hasArg reports whether the script has an argument.
func (c call) hasArg(name string) bool {
	return slices.Contains(c.script.Args.Names, name)
}

// receipt returns the key of the call's receipt.
func (c call) receipt() string {
	if c.script == scripts.BoardSubmit {
		return keys.BoardReceipt(c.f.boardShard(), "u"+c.text("user"), c.text("key"))
	}
	return keys.RoomReceipt(c.shard, "u"+c.text("user"), c.text("key"))
}

// keyOf returns the key that a header names.
func (c call) keyOf(name string) string {
	switch c.script.Name + " " + name {
	case "ledger_fold fence":
		return keys.TotalsFence(c.f.id)
	case "ledger_trim archive":
		return keys.LedgerArchive(c.f.id)
	case "presence_set lease", "presence_end lease":
		return keys.PresenceLease(c.shard, c.text("lease"))
	case "migration_write target", "migration_remove target":
		return keys.Friends(c.f.id)
	case "migration_close old_totals":
		return fmt.Sprintf("{h%d}:total", c.f.id) // the real ones are one for all fixtures
	case "migration_close old_ledger":
		return fmt.Sprintf("{h%d}:ledger", c.f.id)
	case "fencing_token_issue lock", "lock_acquire lock", "migration_lease lock":
		return keys.Lock(c.text("lock"))
	case "layout_raise nodes":
		return fmt.Sprintf("{h%d}:nodes", c.f.id)
	case "history_stop meta", "history_accept meta", "history_advance meta", "layout_raise meta":
		return fmt.Sprintf("{h%d}:meta", c.f.id)
	case "history_advance losses", "history_stop losses":
		return fmt.Sprintf("{h%d}:losses", c.f.id)
	case "probe_write probe":
		return keys.Probe("p")
	case "fencing_token_issue fence":
		return keys.FenceCounter(c.text("lock"))
	case "board_list due", "board_schedule due":
		return keys.BoardsDue(c.f.id)
	case "webhook_define webhooks":
		return keys.Webhooks(c.f.id)
	case "webhook_commit state", "webhook_rewind state", "webhook_unpark state":
		return keys.WebhookState(c.f.id, "wh_a")
	case "webhook_commit attempts":
		return keys.WebhookAttempts(c.f.id, "wh_a")
	case "webhook_commit parked", "webhook_unpark parked":
		return keys.WebhookParked(c.f.id, "wh_a")
	case "webhook_unpark again":
		return keys.WebhookAgain(c.f.id, "wh_a")
	case "save_write events", "user_match events":
		return keys.UserEvents(c.f.id)
	}
	if strings.HasPrefix(c.script.Name, "tour_") {
		if key := c.tourKey(name); key != "" {
			return key
		}
	}
	if strings.HasPrefix(c.script.Name, "board_") {
		if key := c.boardKey(name); key != "" {
			return key
		}
	}
	switch name {
	case "ledger_or_free_rooms":
		if c.isPaid() {
			return keys.Ledger(c.f.id)
		}
		return keys.FreeRooms(c.shard)
	case "room":
		return keys.Room(c.shard, c.text("room_id"))
	case "events":
		return keys.RoomEvents(c.shard, c.text("room_id"))
	case "code":
		return keys.RoomCode(c.shard, c.text("code"))
	case "next_id":
		return keys.RoomCounter(c.shard)
	case "due":
		return keys.RoomsDue(c.shard)
	case "turns":
		return keys.RoomTurns(c.shard)
	case "outbox":
		return keys.RoomOutbox(c.shard)
	case "parked":
		return keys.DeadLetters(c.shard)
	case "fence":
		return keys.RoomsFence(c.shard)
	case "all", "created", "started", "finished", "cancelled", "open":
		if name == "started" && c.args["was_disputed"] == 1 {
			return keys.DisputedRooms(c.shard)
		}
		return keys.RoomIndex(c.shard, c.f.id, name)
	case "disputed":
		return keys.DisputedRooms(c.shard)
	case "disputes_lost":
		return keys.DisputesLost(c.shard, c.f.id)
	case "free_rooms":
		return keys.FreeRooms(c.shard)
	case "player_rooms":
		return keys.PlayerRooms(c.shard, c.number("user"))
	case "rooms_made":
		return keys.RoomsMade(c.shard, c.number("user"))
	case "wallet":
		return keys.Wallet(c.f.id, c.number("user"))
	case "lines":
		return keys.WalletLines(c.f.id, c.number("user"))
	case "inventory":
		return keys.Inventory(c.f.id, c.number("user"))
	case "totals":
		return keys.Totals(c.f.id)
	case "ledger":
		return keys.Ledger(c.f.id)
	case "prize":
		return keys.Prize(c.f.id, c.text("source"))
	case "plan":
		return keys.PrizePlan(c.f.id, c.text("source"))
	case "ledger_base":
		return keys.LedgerBase(c.f.id)
	case "asset":
		return keys.Asset(c.f.id, c.number("asset_id"))
	case "assets":
		return keys.Assets(c.f.id)
	case "receipt":
		return c.receipt()
	case "token":
		return keys.Token(c.text("token"))
	case "tokens":
		return keys.Tokens()
	case "user":
		return keys.User(c.f.id)
	case "game":
		return keys.Game(c.f.id)
	case "issuers":
		return keys.Issuers()
	case "prize_budgets":
		return keys.PrizeBudgets(c.f.id)
	case "identity":
		return keys.Identity(c.f.id, "device", "digest")
	case "granted_identity":
		return keys.GrantedIdentity(c.f.id, "issuer", "digest")
	case "pair":
		return keys.PlayerPair(c.f.id, c.f.id+1)
	case "friends":
		return keys.Friends(c.f.id)
	case "incoming_requests":
		return keys.FriendRequests(c.f.id)
	case "blocked":
		return keys.BlockedPlayers(c.f.id)
	case "family":
		return keys.RefreshFamily(c.f.id, c.text("name"))
	case "families":
		return keys.RefreshFamilies(c.f.id)
	case "first_use":
		return keys.ExternalTokenUse("token" + strconv.FormatInt(c.f.id, 10))
	case "save":
		return keys.Save(c.f.id, 1, c.text("slot"))
	case "slots":
		return keys.Saves(c.f.id, 1)
	case "progress":
		return keys.UserEventSeq(c.f.id)
	case "rate":
		return keys.RateLimit("class", "caller"+strconv.FormatInt(c.f.id, 10))
	case "boards_of_tournaments":
		return keys.TournamentBoards(c.f.id)
	case "mints_by_grants":
		return keys.GrantMints(c.f.id)
	case "boards":
		return keys.Boards(c.f.id)
	case "new_players":
		return keys.NewPlayers(c.f.id)
	case "games_with_work":
		return keys.GamesWithWork("work" + strconv.FormatInt(c.f.id, 10))
	case "records":
		return keys.Trail("operator")
	case "number_of_the_last_record":
		return keys.TrailNumber()
	case "games_with_records":
		return keys.TrailGames()
	case "mark_of_the_call":
		return keys.TrailMark(c.text("nonce"))
	case "leases":
		return keys.PresenceLeases()
	case "shards_of_the_lease":
		return keys.PresenceShards(c.text("lease"))
	case "ended_sessions":
		return keys.EndedSessions()
	case "record":
		return keys.StoredResponse("caller"+strconv.FormatInt(c.f.id, 10), "digest")
	}
	c.f.t.Fatalf("%s: no key is known by the name %q", c.script.Name, name)
	return ""
}

// moreKeys returns the keys behind those with a number, in the order that the header describes.
func (c call) moreKeys() []string {
	if c.script.Keys.Rest == "" {
		return nil
	}
	var more []string
	add := func(names ...string) {
		for _, name := range names {
			more = append(more, c.keyOf(name))
		}
	}
	players := func(withMoney bool) {
		for _, user := range c.players() {
			player := c.with(values{"user": user})
			more = append(more, player.keyOf("player_rooms"))
			if withMoney {
				more = append(more, player.keyOf("wallet"), player.keyOf("lines"))
			}
		}
	}
	switch c.script.Name {
	case "room_create":
		if c.isPaid() {
			add("wallet", "lines", "ledger")
		} else {
			add("free_rooms")
		}
	case "room_join":
		if c.text("may_start") == "1" {
			add("created", "started", "due")
		}
		if c.isPaid() {
			add("wallet", "lines", "ledger")
		}
	case "room_rematch":
		opened := c.with(values{"room_id": c.text("new_room_id"), "fingerprint": ""})
		opened.script, opened.feeds = scripts.RoomCreate, false
		more, _ = opened.build()
		players(false)
	case "room_start", "room_ready", "room_open_match", "room_close_match":
		players(false)
	case "board_define", "board_schedule":
		return nil
	case "board_submit", "board_hide", "board_remove", "board_play_start":
		more = c.boardKeys()
	case "prize_plan":
		return nil
	case "prize_pay":
		return c.winnerKeys()
	case "wallet_credit", "prize_fund":
		if len(c.rest) > 0 {
			more = append(more, keys.ServerMints(c.f.id))
		}
		return more
	case "tour_settle", "tour_refund":
		for _, user := range c.players() {
			player := c.with(values{"user": user})
			more = append(more, player.keyOf("wallet"), player.keyOf("lines"))
		}
		return more
	case "room_sweep":
		players(c.isPaid())
		if c.text("feeds") != "" {
			add("outbox")
		}
	case "room_leave", "room_cancel", "room_kick", "room_finish", "room_report", "room_resolve", "room_window_close":
		if c.isPaid() {
			add("ledger")
		}
		players(c.isPaid())
		if c.text("feeds") != "" {
			add("outbox")
		}
	}
	if c.hasArg("fingerprint") && c.text("fingerprint") != "" {
		add("receipt")
	}
	return more
}

// players returns the ids of the players whose keys a room script gets.
func (c call) players() []string {
	names := slices.Contains([]*scripts.Script{scripts.RoomFinish, scripts.RoomReport, scripts.RoomWindowClose}, c.script)
	if names && c.text("users") == "" && c.text("placements") != "" {
		var users []string
		for placement := range strings.SplitSeq(strings.TrimSuffix(c.text("placements"), ";"), ";") {
			user, _, _ := strings.Cut(placement, ":")
			users = append(users, user)
		}
		return users
	}
	if c.text("users") == "" {
		return nil
	}
	return strings.Split(c.text("users"), ",")
}

// build returns the KEYS and the ARGV of the call.
func (c call) build() (keyNames []string, args []any) {
	for _, name := range c.script.Keys.Names {
		keyNames = append(keyNames, c.keyOf(name))
	}
	for _, name := range c.script.Args.Names {
		args = append(args, c.text(name))
	}
	keyNames = append(keyNames, c.moreKeys()...)
	if c.feeds {
		keyNames = append(keyNames, keys.FeedHead(c.shard, c.f.id), keys.Feed(c.shard, c.f.id))
	}
	return keyNames, append(args, c.rest...)
}

// run runs the call.
func (c call) run() redisdb.Reply {
	c.f.t.Helper()
	keyNames, args := c.build()
	s := c.script
	if c.feeds {
		s = s.WithFeed()
	}
	return testkit.Must(c.f.db.RunScript(c.f.t.Context(), s, keyNames, args...))(c.f.t)
}

// want runs the call and compares its status.
func (c call) want(status scripts.Status) redisdb.Reply {
	c.f.t.Helper()
	reply := c.run()
	if reply.Status != status {
		c.f.t.Fatalf("%s: %v; want %s", c.script.Name, reply, status)
	}
	return reply
}

// tag returns the hash tag of the call's keys with the colon that follows it.
func (c call) tag() string {
	keyNames, _ := c.build()
	tag, _, _ := strings.Cut(keyNames[0], "}")
	return tag + "}:"
}

// snapshot reads every key of the call's hash tag.
func (c call) snapshot() redistest.Snapshot {
	c.f.t.Helper()
	return redistest.TakeSnapshot(c.f.t, c.f.db, c.tag())
}

// changesNothing runs the call, which must return a status, and compares all keys of its hash tag.
func (c call) changesNothing(status scripts.Status) {
	c.f.t.Helper()
	before := c.snapshot()
	reply := c.run()
	if reply.Status != status {
		c.f.t.Errorf("%s: %v; want %s", c.script.Name, reply, status)
	}
	if diff := before.Diff(c.snapshot()); diff != "" {
		c.f.t.Errorf("%s, %s, changed\n%s", c.script.Name, status, diff)
	}
}

// setBalance gives a player of the fixture's game a balance out of nothing.
func (f *fixture) setBalance(user int64, free, held string) {
	f.t.Helper()
	f.set(keys.Wallet(f.id, user), "GOLD", free+"|"+held)
}

// set writes a field of a hash.
func (f *fixture) set(key, field string, value any) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.HSet(f.t.Context(), key, field, value).Err())
}

// drop removes a record.
func (f *fixture) drop(key string) {
	f.t.Helper()
	testkit.Check(f.t, f.db.Client.Del(f.t.Context(), key).Err())
}

// field reads a field of a hash, "" when it is absent.
func (f *fixture) field(key, field string) string {
	f.t.Helper()
	all := testkit.Must(f.db.Client.HGetAll(f.t.Context(), key).Result())(f.t)
	return all[field]
}

// list reads a list.
func (f *fixture) list(key string) []string {
	f.t.Helper()
	return testkit.Must(f.db.Client.LRange(f.t.Context(), key, 0, -1).Result())(f.t)
}

// balance reads what a player can spend and what is held.
func (f *fixture) balance(user int64) (free, held string) {
	f.t.Helper()
	free, held, _ = strings.Cut(f.field(keys.Wallet(f.id, user), "GOLD"), "|")
	return free, held
}

// onEveryStore runs a test on a single server, on a Cluster and on the embedded store.
func onEveryStore(t *testing.T, test func(t *testing.T, db *redisdb.DB)) {
	t.Helper()
	redistest.Each(t, test)
	t.Run("embedded", func(t *testing.T) { test(t, openEmbedded(t)) })
}

func openEmbedded(t *testing.T) *redisdb.DB {
	t.Helper()
	db := testkit.Must(redisdb.Open(redisdb.EmbeddedURL))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// room is a room of a fixture. Its players are numbered from 1, who created it.
type room struct {
	*fixture
	shard keys.Shard
	id    string
	code  string
	feeds string
}

var roomLive = redisdb.PackedLayout{Name: "the live values", Separator: '|', Layout: scripts.RoomLive}

// newRoom returns a room that is not open yet, and the call that opens it. Settings that are not
// given have a default.
func (f *fixture) newRoom(settings values) (*room, call) {
	f.t.Helper()
	all := values{
		"entry": 250, "token": "GOLD", "decimals": 2, "max_players": 4, "game": f.id, "creator": 1, "visibility": "public",
		"friends_only": 0, "auto_start": 0, "min_players": 2, "match_ms": 3_600_000, "idle_ms": 3_600_000,
		"age_ms": 3_600_000, "keep_ms": 86_400_000, "feeds": "",
	}
	maps.Copy(all, settings)
	var packed []string
	for _, name := range scripts.RoomSettings.Names {
		value, ok := all[name]
		if !ok {
			f.t.Fatalf("no value for the setting %s of a room", name)
		}
		packed = append(packed, fmt.Sprint(value))
	}
	shard := keys.EconomyShard(f.id)
	if fmt.Sprint(all["entry"]) == "0" {
		shard = keys.FreeShard(int(f.id))
	}
	n := fixtureCount.Add(1)
	r := &room{
		fixture: f, shard: shard, id: f.roomID(shard, fmt.Sprintf("room-%d", n)), code: fmt.Sprintf("CODE%d", n),
		feeds: fmt.Sprint(all["feeds"]),
	}
	return r, r.call(scripts.RoomCreate, all["creator"].(int), values{"settings": strings.Join(packed, "|")})
}

// roomID returns the id of a new room: a name, or an id that says that the room feeds.
func (f *fixture) roomID(shard keys.Shard, name string) string {
	if f.feeds {
		return keys.NewRoomID(shard, time.Now(), true)
	}
	return name
}

// openRoom opens a room with the player 1, and gives the players 1 to 9 what they may need.
func (f *fixture) openRoom(settings values) *room {
	f.t.Helper()
	for user := range int64(9) {
		f.setBalance(user+1, "1000", "0")
	}
	r, create := f.newRoom(settings)
	create.want(scripts.OK)
	return r
}

// newMatch returns the room of a match of the players 1 and 2, and the call that opens it. The time
// until which they may sit down is over, or an hour is left.
func (f *fixture) newMatch(settings values, isOver bool) (*room, call) {
	f.t.Helper()
	all := values{
		"entry": 0, "token": "", "max_players": 2, "creator": 0, "friends_only": 1, "auto_start": 1,
		"feeds": "t.12.r2m5.1",
	}
	maps.Copy(all, settings)
	r, create := f.newRoom(all)
	deadline := time.Now().Add(time.Hour)
	if isOver {
		deadline = time.Now().Add(-time.Second)
	}
	open := r.call(scripts.RoomOpenMatch, 0, values{
		"settings": create.text("settings"), "users": "1,2", "deadline": deadline.UnixMilli(), "stakes": 1,
	})
	open.rest = []any{`{"id":1,"name":"a|b"}`, `{"id":2,"name":"a|b"}`}
	return r, open
}

// openMatch opens the room of a match.
func (f *fixture) openMatch(isOver bool) *room {
	f.t.Helper()
	r, open := f.newMatch(nil, isOver)
	open.want(scripts.OK)
	return r
}

// sit seats players of a match; the second one starts it.
func (r *room) sit(users ...int) *room {
	r.t.Helper()
	for _, user := range users {
		r.call(scripts.RoomJoin, user, values{"may_start": 1}).want(scripts.OK)
	}
	return r
}

// call returns a run of a script on the room. User 0 is the game's server.
func (r *room) call(s *scripts.Script, user int, given values) call {
	r.t.Helper()
	name := strconv.Itoa(user)
	if user == 0 {
		name = ""
	}
	c := r.newCall(s, values{
		"user": name, "room_id": r.id, "code": r.code, "settings": "", "document": "{}", "id_step": 16, "id_offset": 1,
		"profile": fmt.Sprintf(`{"id":%d,"name":"a|b"}`, user), "may_start": 0, "friend": "", "is_ready": 1, "target": "",
		"ban": 0, "users": name, "placements": "", "rake": 0, "computed_for": "", "fence": 1, "events_ms": 600_000,
		"new_room_id":  r.roomID(r.shard, "rematch-of-"+r.id),
		"was_disputed": 0, "dispute_ms": 259_200_000, "compared": "", "report": "",
		"window_ms": 120_000, "losers": "", "effect": "", "seen": "", "outcome": "", "feeds": r.feeds, "has_outbox": 1,
	})
	c.shard = r.shard
	switch s {
	case scripts.RoomRematch:
		c = c.with(values{"code": "RE" + r.code, "users": ""})
	case scripts.RoomKick:
		c = c.with(values{"users": given["target"]})
	case scripts.RoomStart, scripts.RoomReady, scripts.RoomReport, scripts.RoomWindowClose:
		c = c.with(values{"users": ""})
	}
	return c.with(given)
}

func (r *room) key() string { return keys.Room(r.shard, r.id) }

// live reads one of the values that change.
func (r *room) live(name string) string {
	r.t.Helper()
	record := roomLive.Split(r.field(r.key(), "live"))
	return record.Text(name)
}

// join seats players.
func (r *room) join(users ...int) *room {
	r.t.Helper()
	for _, user := range users {
		r.call(scripts.RoomJoin, user, nil).want(scripts.OK)
	}
	return r
}

// start starts the room.
func (r *room) start() *room {
	r.t.Helper()
	r.call(scripts.RoomStart, 0, nil).want(scripts.OK)
	return r
}

// finish returns the call that ends the room with a result, computed for its version now.
func (r *room) finish(placements string, rake any) call {
	r.t.Helper()
	return r.call(scripts.RoomFinish, 0, values{"placements": placements, "rake": rake, "computed_for": r.live("version")})
}

// report returns the call by which a player reports places in seating order, "1,2", found to have
// an effect by comparing it with the report of a player, 0 for none. placements are what ends the
// room.
func (r *room) report(user int, effect, places string, compared int, placements string) call {
	r.t.Helper()
	given := values{
		"effect": effect, "report": places, "placements": placements, "seen": r.live("status") + "|" + r.live("active"),
	}
	if compared != 0 {
		given["compared"] = compared
	}
	return r.call(scripts.RoomReport, user, given)
}

// dispute lets the players 1 and 2 of a game contradict each other.
func (r *room) dispute() *room {
	r.t.Helper()
	r.report(1, "add", "1,2", 0, "").want(scripts.OK)
	r.report(2, "contradict", "2,1", 1, "").want(scripts.OK)
	return r
}

// silence returns the call that ends the window of a game whose player 1 has reported, with
// placements. The players named are connected, and the window is over, or has a minute left.
func (r *room) silence(isOver bool, outcome, placements string, connected ...int) call {
	r.t.Helper()
	for _, user := range connected {
		seat := roomSeat.Split(r.field(r.key(), fmt.Sprintf("s%d", user)))
		record := seat.Text("order") + "||lease000,"
		testkit.Check(r.t, r.db.Client.HSet(r.t.Context(), r.key(), fmt.Sprintf("p%d", user), record).Err())
	}
	windowMS := 60_000
	if isOver {
		windowMS = 0
	}
	r.report(1, "add", "1,2", 0, "").with(values{"window_ms": windowMS}).want(scripts.OK)
	return r.call(scripts.RoomWindowClose, 0, values{
		"outcome": outcome, "placements": placements, "computed_for": r.live("version"),
	})
}

// resolve returns the call by which the operator ends a disputed room as it is now: with
// placements, or by a refund when these are "".
func (r *room) resolve(users, placements string) call {
	r.t.Helper()
	outcome := "finish"
	if placements == "" {
		outcome = "cancel"
	}
	return r.call(scripts.RoomResolve, 0, values{
		"users": users, "outcome": outcome, "placements": placements, "computed_for": r.live("version"),
	})
}

// cancel ends the room for the players who are named.
func (r *room) cancel(users string) *room {
	r.t.Helper()
	r.call(scripts.RoomCancel, 0, values{"users": users}).want(scripts.OK)
	return r
}
