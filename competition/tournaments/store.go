package tournaments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// store reads tournaments from Redis and runs their scripts.
type store struct {
	db            *redisdb.DB
	receiptTTL    time.Duration
	ledgerChanged func(gameID int64)
	checkMoney    func(gameID int64) error // returns store_unavailable for a game whose money is stopped
	feeding       *cache.Cache[tourID, bool]
}

// tourID names a tournament of an installation.
type tourID struct{ gameID, id int64 }

// maxCachedFeeding bounds of how many tournaments it is remembered whether they feed.
const maxCachedFeeding = 4096

var (
	settingsLayout = redisdb.PackedLayout{
		Name: "the settings of a tournament", Separator: '|', Layout: scripts.TourSettings,
	}
	liveLayout = redisdb.PackedLayout{
		Name: "the state of a tournament", Separator: '|', Layout: scripts.TourLive,
	}
)

// tour is a tournament as it is stored.
type tour struct {
	gameID, id   int64
	definition   Definition
	hasFeed      *bool  // its events also go to the game's server; nil: it is of a build before feeds
	tokenCode    string // "" without a token
	decimals     int
	actor        string // who made it
	status       Status
	version, seq int64
	nonce        string // of the last event
	escrow       wallet.Units
	entrants     int
	checkedIn    int
	needsCheckIn bool // it started with a check-in: players who did not check in are out
	round, open  int  // open: undecided matches of the round
	cursor       int  // entrants that were gone through
	isFunded     bool
	createdAt    time.Time
	startedAt    *time.Time
	endedAt      *time.Time
	reason       CancelReason
	draw         uint64
	pot, rake    wallet.Units // 0 before SETTLING
	payouts      string       // "<user>:<place>:<units>:;" each
}

// ref names the tournament in the ledger.
func (t *tour) ref() string { return keys.TourRef(t.id) }

// tourFields are the fields of a tournament that decodeTour reads.
var tourFields = []string{
	"settings", "definition", "live", "actor", "created", "started", "ended", "reason", "draw", "pot", "rake", "payouts",
}

func decodeTour(gameID, id int64, values []any) (*tour, error) {
	name := "tournament " + strconv.FormatInt(id, 10)
	f := redisdb.NewFieldsFromHMGet(name, tourFields, values)
	settings, live := settingsLayout.Split(f.Text("settings")), liveLayout.Split(f.Text("live"))
	t := &tour{
		gameID: gameID, id: id, actor: f.Text("actor"), createdAt: f.Time("created"), startedAt: optionalTime(f, "started"),
		endedAt: optionalTime(f, "ended"), reason: CancelReason(f.Text("reason")), payouts: f.Text("payouts"),
		pot: wallet.Units(f.Int("pot")), rake: wallet.Units(f.Int("rake")),
		tokenCode: settings.Text("token"), decimals: int(settings.Int("decimals")),
		status: Status(live.Text("status")), version: live.Int("version"), seq: live.Int("seq"), nonce: live.Text("nonce"),
		escrow: wallet.Units(live.Int("escrow")), entrants: int(live.Int("entrants")),
		checkedIn: int(live.Int("checked_in")), needsCheckIn: live.Text("roll") == "1",
		round: int(live.Int("round")), open: int(live.Int("open")), cursor: int(live.Int("cursor")),
		isFunded: live.Bool("funded"),
	}
	var drawErr error
	if f.Has("draw") {
		t.draw, drawErr = strconv.ParseUint(f.Text("draw"), 10, 64)
	}
	var definition storedDefinition
	err := errors.Join(f.Err(), settings.Err(), live.Err(), drawErr,
		wire.Unmarshal([]byte(f.Text("definition")), &definition))
	t.definition, t.hasFeed = definition.Definition, definition.HasFeed
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return t, nil
}

// storedDefinition is a definition as it is stored.
type storedDefinition struct {
	Definition
	HasFeed *bool `json:"feed,omitzero"` // nil: it is of a build before feeds
}

func optionalTime(f *redisdb.Fields, field string) *time.Time {
	if !f.Has(field) {
		return nil
	}
	return new(f.Time(field))
}

// eventTopic returns the topic of a tournament's events.
func (s *store) eventTopic(gameID, id int64) string { return keys.TourEvents(gameID, id) }

// load returns a tournament, or tournament_not_found.
func (s *store) load(ctx context.Context, gameID, id int64) (*tour, error) {
	values, err := s.db.Client.HMGet(ctx, keys.Tour(gameID, id), tourFields...).Result()
	switch {
	case err != nil:
		return nil, redisdb.WrapError("read a tournament", err)
	case values[0] == nil:
		return nil, apierror.TournamentNotFound
	}
	return decodeTour(gameID, id, values)
}

// newID draws the id of a new tournament. A number that is not used does no harm.
func (s *store) newID(ctx context.Context, gameID int64) (int64, error) {
	id, err := s.db.Client.Incr(ctx, keys.TourCounter(gameID)).Result()
	return id, redisdb.WrapError("draw a tournament id", err)
}

// feeds reports whether the events of a tournament also go to the game's server, which never
// changes. It returns false for one that does not exist.
func (s *store) feeds(ctx context.Context, of tourID) (bool, error) {
	if feeds, ok := s.feeding.Get(of); ok {
		return feeds, nil
	}
	text, err := s.db.Client.HGet(ctx, keys.Tour(of.gameID, of.id), "definition").Bytes()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	var definition storedDefinition
	if err == nil {
		err = wire.Unmarshal(text, &definition)
	}
	if err != nil {
		return false, redisdb.WrapError("read whether a tournament has a feed", err)
	}
	feeds := definition.HasFeed != nil && *definition.HasFeed
	s.feeding.Add(of, feeds)
	return feeds, nil
}

// run runs a script of a tournament, unless the money of the game is stopped.
func (s *store) run(
	ctx context.Context, script *scripts.Script, gameID, id int64, names []string, args ...any,
) (redisdb.Reply, error) {
	if err := s.checkMoney(gameID); err != nil {
		return redisdb.Reply{}, err
	}
	if with := script.WithFeed(); with != nil {
		feeds, err := s.feeds(ctx, tourID{gameID, id})
		if err != nil {
			return redisdb.Reply{}, err
		}
		if feeds {
			shard := keys.EconomyShard(gameID)
			script, names = with, append(names, keys.FeedHead(shard, gameID), keys.Feed(shard, gameID))
		}
	}
	reply, err := s.db.RunScript(ctx, script, names, args...)
	s.ledgerChanged(gameID)
	return reply, err
}

// command is one call of a method with a receipt.
type command struct {
	caller     principal.Caller
	gameID, id int64
	receipt    idempotency.Receipt
	ttl        time.Duration
	nonce      string
}

func (s *store) newCommand(caller principal.Caller, gameID, id int64, rc idempotency.Receipt) command {
	c := command{caller: caller, gameID: gameID, id: id, nonce: idempotency.NewNonce()}
	c.receipt, c.ttl = rc.OrPerCall(c.nonce, s.receiptTTL)
	return c
}

// callArgs returns the arguments with which every script of a command begins.
func (s *store) callArgs(c command) scripts.CallWithReceiptArgs {
	return scripts.CallWithReceiptArgs{
		Publish: s.db.PublishCommand, Nonce: c.nonce, Fingerprint: c.receipt.Fingerprint, TTLMS: c.ttl.Milliseconds(),
	}
}

// runCommand runs a script that leaves a receipt, and returns the values of its first reply. names
// are its keys without the receipt, which is the first one. replayed is true, also with an error,
// when an earlier request with the key got the reply.
func (s *store) runCommand(
	ctx context.Context, script *scripts.Script, c command, names []string, args ...any,
) (values []string, replayed bool, err error) {
	receiptKey := keys.MoneyReceipt(c.gameID, c.caller.ActorID(), c.receipt.KeyDigest)
	if err := c.receipt.CheckNew(ctx, s.db, receiptKey); err != nil {
		return nil, false, err
	}
	reply, err := s.run(ctx, script, c.gameID, c.id, append([]string{receiptKey}, names...), args...)
	if err != nil {
		return nil, false, err
	}
	first, replayed := idempotency.FirstReply(c.nonce, reply)
	return first.Values, replayed, errorOf(script, first)
}

// errorOf returns the error of a reply, with what the values behind its status mean.
func errorOf(script *scripts.Script, reply redisdb.Reply) error {
	values := redisdb.NewValues("the reply of "+script.Name, reply.Values)
	switch reply.Status {
	case apierror.InsufficientFunds.Code:
		available, required := wallet.Units(values.NextInt()), wallet.Units(values.NextInt())
		tokenID, decimals := values.NextText(), int(values.NextInt())
		if values.Err() != nil {
			return values.Err()
		}
		return wallet.InsufficientFunds(tokenID, decimals, available, required)
	case apierror.StakeLimit.Code, apierror.OpenRoomsLimit.Code, apierror.LossLimit.Code, apierror.SelfExcluded.Code:
		detailed := limits.Error(reply.Status, values)
		if values.Err() != nil {
			return values.Err()
		}
		return detailed
	}
	return reply.Err(script)
}

// create stores a new tournament with an id that newID has drawn, and returns its id, or that of an
// earlier request. A nil definition looks for that only; then redisdb.ErrStale means that there was
// none.
func (s *store) create(
	ctx context.Context, c command, d *Definition, hasFeed bool, token *wallet.Token, mostOpen int64,
) (id int64, replayed bool, err error) {
	settings, definition := "", ""
	if d != nil {
		text, err := wire.Marshal(storedDefinition{*d, &hasFeed})
		if err != nil {
			return 0, false, fmt.Errorf("encode a tournament: %w", err)
		}
		s.feeding.Add(tourID{c.gameID, c.id}, hasFeed)
		settings, definition = encodeSettings(s.db.Layout(), d, token), string(text)
	}
	values, replayed, err := s.runCommand(ctx, scripts.TourCreate, c,
		[]string{
			keys.Tour(c.gameID, c.id), keys.TourEvents(c.gameID, c.id), keys.Tours(c.gameID), keys.ToursDue(c.gameID),
		},
		scripts.TourCreateArgs{
			CallWithReceiptArgs: s.callArgs(c), TourID: c.id, Settings: settings, Definition: definition,
			Actor: c.caller.ActorID(), Most: mostOpen,
		}.List()...)
	if err != nil {
		return 0, replayed, err
	}
	v := redisdb.NewValues("the reply of tour_create", values)
	id = v.NextInt()
	return id, replayed, v.Err()
}

// encodeSettings returns the settings as they are stored while the store has a layout.
func encodeSettings(storeLayout int, d *Definition, token *wallet.Token) string {
	code, decimals := "", 0
	if token != nil {
		code, decimals = token.Code, token.Decimals
	}
	ms := func(name string, at *time.Time) redisdb.PackedValue {
		if at == nil {
			return redisdb.PackedText(name, "")
		}
		return redisdb.PackedInt(name, at.UnixMilli())
	}
	return settingsLayout.Join(
		storeLayout,
		redisdb.PackedInt("fee", int64(d.EntryFeeUnits)), redisdb.PackedText("token", code),
		redisdb.PackedInt("decimals", int64(decimals)), redisdb.PackedInt("added", int64(d.AddedPrizeUnits())),
		redisdb.PackedInt("min", int64(d.MinEntrants)), redisdb.PackedInt("max", int64(d.MaxEntrants)),
		ms("registers", &d.RegistrationOpensAt), ms("checks_in", d.CheckInOpensAt), ms("starts", &d.StartsAt),
		ms("ends", d.EndsAt), redisdb.PackedInt("late_rounds", int64(d.LateJoinRounds)),
		redisdb.PackedText("no_check_in", string(d.NoCheckIn)))
}

func (s *store) join(ctx context.Context, c command, profileJSON string) (replayed bool, err error) {
	walletKey, lines := keys.WalletWithLines(c.gameID, c.caller.UserID)
	_, replayed, err = s.runCommand(ctx, scripts.TourJoin, c,
		[]string{
			keys.Tour(c.gameID, c.id), keys.TourEvents(c.gameID, c.id), keys.TourEntrants(c.gameID, c.id),
			keys.TourOrder(c.gameID, c.id), walletKey, lines, keys.Ledger(c.gameID),
		},
		scripts.TourJoinArgs{
			CallWithReceiptArgs: s.callArgs(c), User: c.caller.UserID, Ref: keys.TourRef(c.id),
			Profile: profileJSON,
		}.List()...)
	return replayed, err
}

// leave takes a player out: state is EntrantOut or EntrantDisqualified.
func (s *store) leave(ctx context.Context, c command, userID int64, state EntrantStatus) (replayed bool, err error) {
	walletKey, lines := keys.WalletWithLines(c.gameID, userID)
	_, replayed, err = s.runCommand(ctx, scripts.TourLeave, c,
		[]string{
			keys.Tour(c.gameID, c.id), keys.TourEvents(c.gameID, c.id), keys.TourEntrants(c.gameID, c.id),
			keys.TourOrder(c.gameID, c.id), keys.ToursDue(c.gameID), walletKey, lines, keys.Ledger(c.gameID),
		},
		scripts.TourLeaveArgs{
			CallWithReceiptArgs: s.callArgs(c), User: userID, Ref: keys.TourRef(c.id), TourID: c.id,
			NewState: string(state),
		}.List()...)
	return replayed, err
}

func (s *store) checkIn(ctx context.Context, c command) (replayed bool, err error) {
	_, replayed, err = s.runCommand(ctx, scripts.TourCheckIn, c,
		[]string{keys.Tour(c.gameID, c.id), keys.TourEvents(c.gameID, c.id), keys.TourEntrants(c.gameID, c.id)},
		scripts.TourCheckInArgs{CallWithReceiptArgs: s.callArgs(c), User: c.caller.UserID}.List()...)
	return replayed, err
}

// leaderFence is the fence of the leader that changes a tournament; noFence where it is not the
// leader.
type leaderFence string

// formatFence returns a fence as scripts take it.
func formatFence(fence int64) leaderFence { return leaderFence(strconv.FormatInt(fence, 10)) }

// noFence is passed for a call by staff and for the result of a room.
const noFence leaderFence = ""

// errLeaderReplaced means that another node leads now.
var errLeaderReplaced = errors.New("another leader has taken over")

// stepError returns the error of a script without a receipt: redisdb.ErrStale, errLeaderReplaced
// and redisdb.ErrSkewed for stale.
func stepError(script *scripts.Script, reply redisdb.Reply) error {
	switch {
	case reply.IsSkewed():
		return redisdb.ErrSkewed
	case reply.IsFromReplacedLeader():
		return errLeaderReplaced
	}
	return reply.Err(script)
}

// open opens what is to be opened, and notes that the added prize is there.
func (s *store) open(ctx context.Context, by leaderFence, gameID, id int64, hasPrize bool) error {
	reply, err := s.run(ctx, scripts.TourOpen, gameID, id,
		[]string{keys.Tour(gameID, id), keys.TourEvents(gameID, id), keys.ToursDue(gameID), keys.ToursFence(gameID)},
		scripts.TourOpenArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: id,
			Prize: formatBool(hasPrize), NodeMS: s.db.Clock.NowMS(),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourOpen, reply)
}

func formatBool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// start starts a tournament, or cancels one with too few players.
func (s *store) start(ctx context.Context, by leaderFence, gameID, id int64, draw uint64) error {
	reply, err := s.run(ctx, scripts.TourStart, gameID, id,
		[]string{keys.Tour(gameID, id), keys.TourEvents(gameID, id), keys.ToursDue(gameID), keys.ToursFence(gameID)},
		scripts.TourStartArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: id,
			Draw: strconv.FormatUint(draw, 10), NodeMS: s.db.Clock.NowMS(),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourStart, reply)
}

// cancel begins to cancel a tournament.
func (s *store) cancel(ctx context.Context, by leaderFence, gameID, id int64, why CancelReason) error {
	reply, err := s.run(ctx, scripts.TourCancel, gameID, id,
		[]string{keys.Tour(gameID, id), keys.ToursDue(gameID), keys.ToursFence(gameID)},
		scripts.TourCancelArgs{
			Nonce: idempotency.NewNonce(), Fence: string(by), TourID: id, Why: string(why),
			NodeMS: s.db.Clock.NowMS(),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourCancel, reply)
}

// entrantsAtOnce bounds the entrants of one call of tour_settle.
const entrantsAtOnce = 100

// settle goes through the next entrants.
func (s *store) settle(ctx context.Context, by leaderFence, t *tour) error {
	list, err := s.db.Client.ZRange(ctx, keys.TourOrder(t.gameID, t.id),
		int64(t.cursor), int64(t.cursor)+entrantsAtOnce-1).Result()
	if err != nil {
		return redisdb.WrapError("read the next entrants", err)
	}
	names := []string{
		keys.Tour(t.gameID, t.id), keys.TourEvents(t.gameID, t.id), keys.TourEntrants(t.gameID, t.id),
		keys.TourOrder(t.gameID, t.id), keys.Prize(t.gameID, t.ref()), keys.Ledger(t.gameID), keys.ToursFence(t.gameID),
	}
	for _, text := range list {
		userID, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("tournament %d has the entrant %q: %w", t.id, text, err)
		}
		walletKey, lines := keys.WalletWithLines(t.gameID, userID)
		names = append(names, walletKey, lines)
	}
	reply, err := s.run(ctx, scripts.TourSettle, t.gameID, t.id, names,
		scripts.TourSettleArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), Ref: t.ref(),
			Users: strings.Join(list, ","),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourSettle, reply)
}

// advance takes a tournament that was read to its next status. rake and payouts are for SETTLING.
func (s *store) advance(
	ctx context.Context, by leaderFence, t *tour, next Status, rake wallet.Units, payouts string,
) error {
	reply, err := s.run(ctx, scripts.TourAdvance, t.gameID, t.id,
		[]string{
			keys.Tour(t.gameID, t.id), keys.TourEvents(t.gameID, t.id), keys.ToursDue(t.gameID), keys.ToursFence(t.gameID),
		},
		scripts.TourAdvanceArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: t.id,
			NextStatus: string(next), MadeFor: t.version, Rake: rake.String(), Payouts: payouts,
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourAdvance, reply)
}

// pair begins the next round of a tournament that was read.
func (s *store) pair(ctx context.Context, by leaderFence, t *tour, seeds []int64, matches []Match) error {
	texts := make([]string, len(seeds))
	for i, userID := range seeds {
		texts[i] = strconv.FormatInt(userID, 10)
	}
	undecided := 0
	pairs := make([]any, 0, 2*len(matches))
	for i := range matches {
		if !matches[i].isDecided() {
			undecided++
		}
		pairs = append(pairs, matches[i].ID, encodeNewMatch(&matches[i]))
	}
	args := scripts.TourPairArgs{
		Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: t.id,
		NewRound: t.round + 1, MadeFor: t.version, Seeds: strings.Join(texts, ","), Undecided: undecided,
		WaitMS: t.definition.roundWait().Milliseconds(), Count: len(matches), NodeMS: s.db.Clock.NowMS(),
	}.List(pairs...)
	reply, err := s.run(ctx, scripts.TourPair, t.gameID, t.id,
		[]string{
			keys.Tour(t.gameID, t.id), keys.TourEvents(t.gameID, t.id), keys.TourMatches(t.gameID, t.id),
			keys.ToursDue(t.gameID), keys.ToursFence(t.gameID),
		}, args...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourPair, reply)
}

// report stores what became of a match. It returns match_not_found, match_decided,
// tournament_closed.
func (s *store) report(ctx context.Context, by leaderFence, t *tour, c matchChange) error {
	winner := ""
	if c.winnerID != 0 {
		winner = strconv.FormatInt(c.winnerID, 10)
	}
	reply, err := s.run(ctx, scripts.TourReport, t.gameID, t.id,
		[]string{
			keys.Tour(t.gameID, t.id), keys.TourEvents(t.gameID, t.id), keys.TourMatches(t.gameID, t.id),
			keys.ToursDue(t.gameID), keys.ToursFence(t.gameID), keys.TourEntrants(t.gameID, t.id),
		},
		scripts.TourReportArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: t.id,
			MatchID: c.id, MadeFor: c.attempt, Was: string(c.was), NewState: string(c.status),
			NewAttempt: c.newAttempt, NewRoom: c.roomID, NewWinner: winner, NewReason: string(c.reason),
			WaitMS: c.wait.Milliseconds(), Over: formatBool(c.isOver), NodeMS: s.db.Clock.NowMS(),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourReport, reply)
}

// refund takes both players of a match out, with their fees, and decides it so. It returns
// match_not_found, match_decided, tournament_closed.
func (s *store) refund(ctx context.Context, by leaderFence, t *tour, m *Match, c matchChange) error {
	names := []string{
		keys.Tour(t.gameID, t.id), keys.TourEvents(t.gameID, t.id), keys.TourMatches(t.gameID, t.id),
		keys.ToursDue(t.gameID), keys.ToursFence(t.gameID), keys.TourEntrants(t.gameID, t.id), keys.Ledger(t.gameID),
	}
	users := make([]string, len(m.Players))
	for i, p := range m.Players {
		users[i] = strconv.FormatInt(p.UserID, 10)
		walletKey, lines := keys.WalletWithLines(t.gameID, p.UserID)
		names = append(names, walletKey, lines)
	}
	reply, err := s.run(ctx, scripts.TourRefund, t.gameID, t.id, names,
		scripts.TourRefundArgs{
			Publish: s.db.PublishCommand, Nonce: idempotency.NewNonce(), Fence: string(by), TourID: t.id,
			MatchID: c.id, MadeFor: c.attempt, Ref: t.ref(), Users: strings.Join(users, ","),
			Over: formatBool(c.isOver), NodeMS: s.db.Clock.NowMS(),
		}.List()...)
	if err != nil {
		return err
	}
	return stepError(scripts.TourRefund, reply)
}

// remove removes a tournament. It returns tournament_not_found, and forbidden if it has not ended.
func (s *store) remove(ctx context.Context, gameID, id int64) error {
	reply, err := s.db.RunScript(ctx, scripts.TourRemove, []string{
		keys.Tour(gameID, id), keys.TourEvents(gameID, id), keys.TourEntrants(gameID, id), keys.TourOrder(gameID, id),
		keys.TourMatches(gameID, id), keys.TourAttempts(gameID, id), keys.Tours(gameID),
	}, scripts.TourRemoveArgs{TourID: id}.List()...)
	if err != nil {
		return err
	}
	return reply.Err(scripts.TourRemove)
}

// dropDue makes the leader look at a tournament no more.
func (s *store) dropDue(ctx context.Context, gameID, id int64) error {
	return redisdb.WrapError("drop a tournament that is gone",
		s.db.Client.ZRem(ctx, keys.ToursDue(gameID), id).Err())
}

// beginAttempt counts a play and returns how many the player has begun. It returns not_entrant,
// disqualified, tournament_closed, attempts_exhausted.
func (s *store) beginAttempt(ctx context.Context, t *tour, userID int64) (used int, err error) {
	reply, err := s.run(ctx, scripts.TourAttempt, t.gameID, t.id,
		[]string{
			keys.Tour(t.gameID, t.id), keys.TourEntrants(t.gameID, t.id), keys.TourAttempts(t.gameID, t.id),
		},
		scripts.TourAttemptArgs{
			Nonce: idempotency.NewNonce(), User: userID, Most: t.definition.Attempts,
		}.List()...)
	if err == nil {
		err = reply.Err(scripts.TourAttempt)
	}
	if err != nil {
		return 0, err
	}
	v := redisdb.NewValues("the attempts of a player", reply.Values)
	used = int(v.NextInt())
	return used, v.Err()
}
