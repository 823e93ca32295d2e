package rooms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store is all that rooms knows of Redis.
type store struct {
	db         *redisdb.DB
	homes      int // for free rooms
	receiptTTL time.Duration
}

// deed is one logical call: who does something to which room, and by which receipt.
type deed struct {
	caller principal.Caller
	game   int64 // of the room
	room   string
	home   keys.Shard
	rc     idempotency.Receipt
	nonce  string
}

// deed prepares a call on a room; an id that no room can have is refused without a look.
func (st *store) deed(caller principal.Caller, roomID string, rc idempotency.Receipt) (deed, error) {
	roomID = strings.ToLower(roomID) // RFC 9562, 4: capitals are the same id
	home, ok := keys.RoomShard(roomID)
	if !ok || home.Number() > st.homes {
		return deed{}, apierror.RoomNotFound
	}
	return deed{caller: caller, game: caller.Game, room: roomID, home: home, rc: rc, nonce: idempotency.NewNonce()}, nil
}

// outcome is what a room script said.
type outcome struct {
	word     string
	rest     []string
	room     Room // after "ok" and, as far as there is one, "stale"
	replayed bool
}

// do runs a room script. purses are the players whose wallets it may move; a free room moves none.
func (st *store) do(ctx context.Context, s *scripts.Script, d deed, purses []int64, more []string, args ...any) (outcome, error) {
	if !d.home.Paid() {
		purses = nil
	}
	room := keys.Room(d.home, d.room)
	k := make([]string, 0, 13+len(more)+3*len(purses))
	k = append(k, room, keys.RoomEvents(d.home, d.room), keys.RoomReceipt(d.home, d.caller.ActorID(), d.rc.Key), keys.RoomsDue(d.home))
	for _, state := range states {
		k = append(k, keys.RoomIndex(d.home, d.game, state))
	}
	k = append(k, keys.RoomIndex(d.home, 0, all))
	if d.home.Paid() {
		k = append(k, keys.Totals(), keys.Ledger())
	} else {
		k = append(k, room, room) // never touched; keys must be of one slot
	}
	k = append(k, more...)
	var ids []byte
	for i, id := range purses {
		k = append(k, keys.Wallet(id), keys.WalletLines(id), keys.WalletEvents(id))
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, id, 10)
	}
	uid, who := "", d.caller.ActorID()
	switch d.caller.Role {
	case principal.Player:
		uid = strconv.FormatInt(d.caller.User, 10)
	case principal.System:
		who = ""
	}
	a := append(make([]any, 0, 8+len(args)), st.db.PublishCommand, d.nonce, d.rc.Fingerprint, st.receiptTTL.Milliseconds(), who, uid, d.game, ids)
	reply, err := st.db.RunScript(ctx, s, k, append(a, args...)...)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	first, replayed := idempotency.FirstReply(d.nonce, reply)
	o.word, o.rest, o.replayed = first.Status, first.Values, replayed
	if (o.word == "ok" || o.word == "stale") && len(o.rest) > 0 {
		if o.room, err = decode(strings.Split(o.rest[0], "\n")); err != nil {
			return outcome{}, err
		}
	}
	return o, nil
}

// The lists of a home, in the order in which scripts get them.
const (
	open = "open"
	all  = "all"
)

var states = []string{open, "created", "started", "finished", "cancelled", all}

// create tries one id and one code; the answer "stale" means that the code is taken.
func (st *store) create(ctx context.Context, caller principal.Caller, rc idempotency.Receipt, n newRoom) (outcome, error) {
	home := st.homeFor(n.entry > 0, rc)
	room := st.name(caller, home, rc)
	set := fmt.Sprintf("%s|%d|%s|%d|%d|%d|%d|%s|%s|%s|%d|%d|%d|%d|%d", room.room, n.game, n.token.TokenID, n.token.Decimals, int64(n.entry), n.maxPlayers, n.minPlayers,
		flag(n.friendsOnly), n.visibility, flag(n.autoStart), n.idle.Milliseconds(), n.age.Milliseconds(), n.match.Milliseconds(), n.keep.Milliseconds(), caller.User)
	var table []byte
	for i, bps := range n.payout {
		if i > 0 {
			table = append(table, ',')
		}
		table = strconv.AppendInt(table, int64(bps), 10)
	}
	doc := fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s", n.settlement, n.rakeBps, table, n.tie, n.metadata, n.entryToken)
	return st.do(ctx, scripts.RoomCreate, room.deed, []int64{caller.User}, []string{keys.RoomCode(home, room.code), keys.RoomNext(home)},
		st.homes+1, home.Number(), n.profile, room.code, set, doc)
}

// recall asks for the receipt of a create; "stale" means that there is none.
func (st *store) recall(ctx context.Context, caller principal.Caller, paid bool, rc idempotency.Receipt) (outcome, error) {
	home := st.homeFor(paid, rc)
	room := st.name(caller, home, rc)
	return st.do(ctx, scripts.RoomCreate, room.deed, nil, []string{keys.RoomCode(home, room.code), keys.RoomNext(home)},
		st.homes+1, home.Number(), "", room.code, "", "")
}

type named struct {
	deed
	code string
}

// name makes an id and a code for a new room.
func (st *store) name(caller principal.Caller, home keys.Shard, rc idempotency.Receipt) named {
	id := keys.NewRoomID(home, time.Now())
	return named{
		deed: deed{caller: caller, game: caller.Game, room: id, home: home, rc: rc, nonce: idempotency.NewNonce()},
		code: newCode(home.Number(), st.homes),
	}
}

// homeFor spreads free rooms over the homes. A keyed request always goes to the same one, where its receipt is.
func (st *store) homeFor(paid bool, rc idempotency.Receipt) keys.Shard {
	switch {
	case paid:
		return keys.Economy
	case rc.Key == "":
		return keys.FreeShard(rand.IntN(st.homes))
	default:
		h := fnv.New32a()
		_, _ = h.Write([]byte(rc.Key))
		return keys.FreeShard(int(h.Sum32() % uint32(st.homes)))
	}
}

func (st *store) join(ctx context.Context, d deed, profile, friend string) (outcome, error) {
	return st.do(ctx, scripts.RoomJoin, d, []int64{d.caller.User}, nil, profile, friend)
}

func (st *store) leave(ctx context.Context, d deed, purses []int64, s settlement) (outcome, error) {
	return st.do(ctx, scripts.RoomLeave, d, purses, nil, s.args()...)
}

func (st *store) finish(ctx context.Context, d deed, purses []int64, s settlement) (outcome, error) {
	return st.do(ctx, scripts.RoomFinish, d, purses, nil, s.args()...)
}

// args are results, plan, rake and version as the scripts want them.
func (s settlement) args() []any {
	var plan []byte
	for _, p := range s.payouts {
		plan = fmt.Appendf(plan, "%d:%d:%d;", p.UserID, p.Place, p.Amount)
	}
	return []any{s.results, plan, int64(s.rake), s.version}
}

func (st *store) ready(ctx context.Context, d deed, ready bool) (outcome, error) {
	return st.do(ctx, scripts.RoomReady, d, nil, nil, flag(ready))
}

func (st *store) kick(ctx context.Context, d deed, user int64, ban bool) (outcome, error) {
	return st.do(ctx, scripts.RoomKick, d, []int64{user}, nil, user, flag(ban))
}

func (st *store) transfer(ctx context.Context, d deed, user int64) (outcome, error) {
	return st.do(ctx, scripts.RoomTransfer, d, nil, nil, user)
}

func (st *store) start(ctx context.Context, d deed) (outcome, error) {
	return st.do(ctx, scripts.RoomStart, d, nil, nil)
}

func (st *store) cancel(ctx context.Context, d deed, purses []int64, reason string) (outcome, error) {
	return st.do(ctx, scripts.RoomCancel, d, purses, nil, reason)
}

// rematch tries one id and one code, or those of the rematch that is known; the answer "stale" with a room means that there is
// another rematch, without one that the code is taken.
func (st *store) rematch(ctx context.Context, d deed, known, profile string) (outcome, error) {
	room := st.name(d.caller, d.home, d.rc)
	if known != "" {
		room.room = known
	}
	return st.do(ctx, scripts.RoomRematch, d, []int64{d.caller.User},
		[]string{keys.Room(d.home, room.room), keys.RoomEvents(d.home, room.room), keys.RoomCode(d.home, room.code), keys.RoomNext(d.home)},
		room.room, room.code, st.homes+1, d.home.Number(), profile)
}

// read answers a room, or refuses room_not_found.
func (st *store) read(ctx context.Context, roomID string) (Room, error) {
	roomID = strings.ToLower(roomID) // RFC 9562, 4: capitals are the same id
	home, ok := keys.RoomShard(roomID)
	if !ok || home.Number() > st.homes {
		return Room{}, apierror.RoomNotFound
	}
	fields, err := st.db.AutoPipelined.HGetAll(ctx, keys.Room(home, roomID)).Result()
	if err != nil {
		return Room{}, redisdb.WrapError("read a room", err)
	}
	if len(fields) == 0 {
		return Room{}, apierror.RoomNotFound
	}
	return decode(flattened(fields))
}

// flattened lists fields and values by turns.
func flattened(fields map[string]string) []string {
	flat := make([]string, 0, 2*len(fields))
	for field, value := range fields {
		flat = append(flat, field, value)
	}
	return flat
}

// EventTopic names the stream of a room's events, which is the channel that tells of them too; false for an id that no room can have.
func (s *Service) EventTopic(roomID string) (string, bool) {
	roomID = strings.ToLower(roomID) // RFC 9562, 4: capitals are the same id
	home, ok := keys.RoomShard(roomID)
	if !ok || home.Number() > s.store.homes {
		return "", false
	}
	return keys.RoomEvents(home, roomID), true
}

// hashes reads many hashes in one go, each flat; an absent one is empty.
func hashes(db *redisdb.DB, ctx context.Context, names []string) ([][]string, error) {
	commands := make([]*redis.MapStringStringCmd, len(names))
	_, err := db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			commands[i] = p.HGetAll(ctx, name)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read rooms", err)
	}
	flat := make([][]string, len(names))
	for i, c := range commands {
		flat[i] = flattened(c.Val())
	}
	return flat, nil
}

// byCode finds the id of a room.
func (st *store) byCode(ctx context.Context, code string) (string, error) {
	code, number, ok := readCode(code, st.homes)
	if !ok {
		return "", apierror.RoomNotFound
	}
	home := keys.Economy
	if number > 0 {
		home = keys.FreeShard(number - 1)
	}
	id, err := st.db.Client.Get(ctx, keys.RoomCode(home, code)).Result()
	if err = redisdb.WrapError("read a room's code", err); errors.Is(err, redis.Nil) {
		return "", apierror.RoomNotFound
	}
	return id, err
}

// everyHome lists the homes, the economy first.
func (st *store) everyHome() []keys.Shard {
	homes := []keys.Shard{keys.Economy}
	for n := range st.homes {
		homes = append(homes, keys.FreeShard(n))
	}
	return homes
}

// list answers up to n ids older than before ("" for the newest), newest first, over all homes.
func (st *store) list(ctx context.Context, game int64, state, before string, n int) ([]string, error) {
	top := "+"
	if before != "" {
		top = "(" + before
	}
	var parts []*redis.StringSliceCmd
	_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, home := range st.everyHome() {
			parts = append(parts, p.ZRevRangeByLex(ctx, keys.RoomIndex(home, game, state), &redis.ZRangeBy{Max: top, Min: "-", Count: int64(n)}))
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

// rooms reads many rooms; those that are gone are left out.
func (st *store) rooms(ctx context.Context, ids []string) ([]Room, error) {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		home, ok := keys.RoomShard(id)
		if !ok {
			return nil, fmt.Errorf("an index names %q, which is no room id", id)
		}
		names = append(names, keys.Room(home, id))
	}
	flat, err := hashes(st.db, ctx, names)
	if err != nil {
		return nil, err
	}
	list := make([]Room, 0, len(flat))
	for _, fields := range flat {
		if len(fields) == 0 {
			continue
		}
		room, err := decode(fields)
		if err != nil {
			return nil, err
		}
		list = append(list, room)
	}
	return list, nil
}

// sweepLease bounds how long one leader sweeps a home; sweepBatch how many rooms it looks at in one go.
const (
	sweepLease = 10 * time.Second
	sweepBatch = 128
)

// sweep looks at every home that has something due, each as its elected leader, and answers how many rooms it looked at.
func (st *store) sweep(ctx context.Context) (int, error) {
	now, err := st.db.Client.Time(ctx).Result()
	if err != nil {
		return 0, redisdb.WrapError("ask the time", err)
	}
	until := strconv.FormatInt(now.UnixMilli(), 10)
	homes := st.everyHome()
	due := make([]*redis.StringSliceCmd, len(homes))
	_, err = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, home := range homes {
			due[i] = p.ZRangeByScore(ctx, keys.RoomsDue(home), &redis.ZRangeBy{Min: "-inf", Max: until, Count: sweepBatch})
		}
		return nil
	})
	if err != nil {
		return 0, redisdb.WrapError("list rooms that are due", err)
	}
	swept := 0
	var troubles []error
	for i, home := range homes {
		ids := due[i].Val()
		if len(ids) == 0 {
			continue
		}
		name := "rooms:" + home.String()
		_, err := st.db.RunAsLeader(ctx, keys.Lock(name), keys.Fence(name), sweepLease, func(ctx context.Context, fence int64) error {
			for _, id := range ids {
				if err := st.sweepRoom(ctx, home, id, fence); err != nil {
					troubles = append(troubles, fmt.Errorf("sweep room %s: %w", id, err))
					if ctx.Err() != nil || errors.Is(err, errFollowed) {
						return nil
					}
					continue
				}
				swept++
			}
			return nil
		})
		troubles = append(troubles, err)
	}
	return swept, errors.Join(troubles...)
}

// errFollowed means that another node leads the sweep of this home by now.
var errFollowed = errors.New("another leader has followed")

func (st *store) sweepRoom(ctx context.Context, home keys.Shard, id string, fence int64) error {
	flat, err := hashes(st.db, ctx, []string{keys.Room(home, id)})
	if err != nil {
		return err
	}
	room, err := decode(flat[0])
	if err != nil {
		return err
	}
	d := deed{caller: principal.Caller{Role: principal.System}, game: room.GameID, room: id, home: home, nonce: idempotency.NewNonce()}
	for range tries {
		o, err := st.do(ctx, scripts.RoomSweep, d, room.staked(), []string{keys.RoomCode(home, room.Code), keys.RoomsFence(home)}, id, fence)
		switch {
		case err != nil:
			return err
		case o.word == "ok":
			return nil
		case len(o.rest) == 0:
			return errFollowed
		}
		room = o.room // somebody joined in between: with the wallets of all this time
	}
	return apierror.VersionConflict
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// decode reads a room from its fields and values by turns; doc.go lists them. No fields are the zero Room.
func decode(flat []string) (Room, error) {
	var r Room
	var n numbers
	for i := 0; i+1 < len(flat); i += 2 {
		field, text := flat[i], flat[i+1]
		switch field {
		case "set":
			r.readSet(&n, text)
		case "doc":
			r.readDoc(&n, text)
		case "created":
			r.CreatedAt = n.time(text)
		case "state":
			r.readState(&n, text)
		case "seq":
			r.Seq = n.read(text)
		case "seats":
			r.Seats = n.seats(text)
		case "started":
			r.StartedAt = n.time(text)
		case "finished":
			r.FinishedAt = n.time(text)
		case "reason":
			r.Reason = text
		case "results":
			r.results = text
		case "payouts":
			r.payouts = text
		case "refunds":
			r.refunds = text
		case "rake":
			r.Rake = wallet.Units(n.read(text))
		case "rematch":
			r.RematchID = text
		default:
			if user, ok := strings.CutPrefix(field, "ban:"); ok {
				if r.banned == nil {
					r.banned = map[int64]bool{}
				}
				r.banned[n.read(user)] = true
			}
		}
	}
	if n.err != nil {
		return Room{}, fmt.Errorf("decode room %s: %w", r.RoomID, n.err)
	}
	return r, nil
}

// readSet reads "room|game|token|decimals|entry|max|min|friends|visibility|auto|idle|age|match|keep|creator".
func (r *Room) readSet(n *numbers, text string) {
	next := func() (part string) { part, text, _ = strings.Cut(text, "|"); return part }
	r.RoomID, r.GameID, r.Token, r.Decimals, r.Entry = next(), n.read(next()), next(), int(n.read(next())), wallet.Units(n.read(next()))
	r.MaxPlayers, r.MinPlayers = int(n.read(next())), int(n.read(next()))
	r.FriendsOnly, r.Visibility, r.AutoStart = next() == "1", Visibility(next()), next() == "1"
	for range 4 { // the times are for scripts
		next()
	}
	r.Creator = n.read(text)
}

// readDoc reads id, code, profile of the creator, settlement, rake, table of payouts, rule for ties, metadata and entry token, with
// tabs between them.
func (r *Room) readDoc(n *numbers, text string) {
	next := func() (part string) { part, text, _ = strings.Cut(text, "\t"); return part }
	r.ID, r.Code, r.creator, r.Settlement, r.RakeBps = n.read(next()), next(), next(), next(), int(n.read(next()))
	table := next()
	r.Payout = make([]int, 0, strings.Count(table, ",")+1)
	for bps := range strings.SplitSeq(table, ",") {
		r.Payout = append(r.Payout, int(n.read(bps)))
	}
	r.Tie, r.metadata, r.entryToken = Tie(next()), next(), next()
}

// readState reads "status|host|version|position|pot|profile of the host".
func (r *Room) readState(n *numbers, text string) {
	next := func() (part string) { part, text, _ = strings.Cut(text, "|"); return part }
	r.Status, r.Host, r.Version, r.Position, r.Pot = Status(next()), n.read(next()), n.read(next()), next(), wallet.Units(n.read(next()))
	r.host = text
}

// numbers reads numbers and keeps the first trouble.
type numbers struct{ err error }

func (n *numbers) read(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil && n.err == nil {
		n.err = err
	}
	return v
}

func (n *numbers) time(text string) time.Time { return time.UnixMilli(n.read(text)).UTC() }

// seats reads "uid|state|ready|since|stake|profile", with tabs between the seats.
func (n *numbers) seats(text string) []Seat {
	if text == "" {
		return nil
	}
	list := make([]Seat, 0, strings.Count(text, "\t")+1)
	for seat := range strings.SplitSeq(text, "\t") {
		user, rest, _ := strings.Cut(seat, "|")
		state, rest, _ := strings.Cut(rest, "|")
		ready, rest, _ := strings.Cut(rest, "|")
		since, rest, _ := strings.Cut(rest, "|")
		stake, profile, _ := strings.Cut(rest, "|")
		list = append(list, Seat{
			UserID: n.read(user), State: SeatState(state), Ready: ready == "1", JoinedAt: n.time(since), Stake: wallet.Units(n.read(stake)), profile: profile,
		})
	}
	return list
}

func isRoomID(text string) bool {
	_, ok := keys.RoomShard(text)
	return ok
}
