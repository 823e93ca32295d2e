package rooms

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// Tokens finds what a room can be entered with. *wallet.Service is one.
type Tokens interface {
	TokenByID(ctx context.Context, id int64) (wallet.Token, error)
}

// Players tells how a player looks to others, and who are friends. *users.Service is one.
type Players interface {
	Profiles(ctx context.Context, ids ...int64) (map[int64]users.Profile, error)
	AreFriends(ctx context.Context, me int64, others ...int64) (map[int64]bool, error)
}

// Games tells what a game allows its rooms. *games.Service is one.
type Games interface {
	Find(ctx context.Context, id int64) (games.Game, error)
}

// Options are the settings of rooms.
type Options struct {
	Shards     int           // homes for free rooms, fixed at installation; 0 means 1
	Retention  time.Duration // how long an ended room can be read; 0 means 24 h
	ReceiptTTL time.Duration // how long the first answer to a keyed request is kept; 0 means 24 h
}

// Service is the verbs of rooms. It is safe for concurrent use.
//
// Every verb takes the caller and judges by role: what a player may not do with an existing room of another game is
// room_not_found. Every change can be refused with forbidden, store_unavailable and idempotency_key_reused; version_conflict means
// that others changed the room so fast that the call found no moment for itself.
type Service struct {
	store     store
	tokens    Tokens
	players   Players
	games     Games
	retention time.Duration
}

// New makes the verbs of rooms on an open store.
func New(db *redisdb.DB, tokens Tokens, players Players, games Games, o Options) *Service {
	return &Service{
		store:  store{db: db, homes: cmp.Or(o.Shards, 1), receiptTTL: cmp.Or(o.ReceiptTTL, 24*time.Hour)},
		tokens: tokens, players: players, games: games,
		retention: cmp.Or(o.Retention, 24*time.Hour),
	}
}

// tries bounds how often a call is made again because the room changed under it.
const tries = 16

// Create opens a room; the calling player is seated and has paid. It refuses invalid_request with every faulty field,
// invalid_amount, token_not_found, insufficient_funds.
func (s *Service) Create(ctx context.Context, caller principal.Caller, in CreateInput, rc idempotency.Receipt) (Result, error) {
	if caller.Role != principal.Player {
		return Result{}, apierror.Forbidden
	}
	n, err := s.plan(ctx, caller, in)
	if err != nil {
		return s.recall(ctx, caller, in, rc, err)
	}
	if n.profile, err = s.profile(ctx, caller.User); err != nil {
		return Result{}, err
	}
	for range tries {
		o, err := s.store.create(ctx, caller, rc, n)
		if err != nil || o.word != "stale" {
			return o.answer(err)
		}
	}
	return Result{}, apierror.VersionConflict
}

// recall answers what was answered first to a keyed request that cannot be done now, say because the game's limits
// have changed; a request that was never done is refused with err.
func (s *Service) recall(ctx context.Context, caller principal.Caller, in CreateInput, rc idempotency.Receipt, err error) (Result, error) {
	if _, refused := apierror.As(err); !refused || rc.Key == "" {
		return Result{}, err
	}
	o, failure := s.store.recall(ctx, caller, in.EntryTokenID != 0, rc)
	if failure != nil || o.word != "stale" {
		return o.answer(failure)
	}
	return Result{}, err
}

// Join seats the calling player and takes the stake. Who is seated already gets the same room. It refuses
// room_not_found, room_closed, already_started, banned, friends_only, room_full, insufficient_funds.
func (s *Service) Join(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (Result, error) {
	d, err := s.asPlayer(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	profile, err := s.profile(ctx, caller.User)
	if err != nil {
		return Result{}, err
	}
	o, err := s.store.join(ctx, d, profile, "")
	if err == nil && o.word == "stale" { // the room admits friends of its creator only
		friends, err := s.players.AreFriends(ctx, caller.User, o.room.Creator)
		if err != nil {
			return Result{}, err
		}
		o, err = s.store.join(ctx, d, profile, flag(friends[o.room.Creator]))
		return o.answer(err)
	}
	return o.answer(err)
}

// Leave takes the calling player out: before the start with the stake, after it without. It refuses room_not_found, room_closed,
// not_participant.
func (s *Service) Leave(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (Result, error) {
	d, err := s.asPlayer(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	purses, last := []int64{caller.User}, settlement{}
	for range tries {
		o, err := s.store.leave(ctx, d, purses, last)
		if err != nil || o.word != "stale" {
			return o.answer(err)
		}
		// The room ends by this: it takes the wallets of all, and what the last player gets.
		purses, last = o.room.staked(), settlement{}
		if rest := slices.DeleteFunc(o.room.ActivePlayers(), func(id int64) bool { return id == caller.User }); len(rest) == 1 {
			last = o.room.settle([]Placement{{UserID: rest[0], Place: 1}})
		}
	}
	return Result{}, apierror.VersionConflict
}

// Ready notes whether the calling player is ready. It refuses room_not_found, room_closed, already_started, not_participant.
func (s *Service) Ready(ctx context.Context, caller principal.Caller, roomID string, ready bool, rc idempotency.Receipt) (Result, error) {
	d, err := s.asPlayer(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	o, err := s.store.ready(ctx, d, ready)
	return o.answer(err)
}

// KickInput says whom to take out, and whether for ever.
type KickInput struct {
	RoomID string `json:"roomId"`
	UserID int64  `json:"userId"`
	Ban    bool   `json:"ban"`
}

// Kick takes a player out before the start, with the stake; the host or the game's server may. It refuses room_not_found,
// room_closed, not_host, already_started, not_participant, and invalid_request for the host's own seat.
func (s *Service) Kick(ctx context.Context, caller principal.Caller, in KickInput, rc idempotency.Receipt) (Result, error) {
	d, err := s.asHost(caller, in.RoomID, rc)
	if err != nil {
		return Result{}, err
	}
	if in.UserID < 1 || in.UserID == caller.User {
		return Result{}, apierror.InvalidRequest.WithField("userId", "range", "must be another player")
	}
	o, err := s.store.kick(ctx, d, in.UserID, in.Ban)
	return o.answer(err)
}

// TransferHost makes another seated player the host; the host or the game's server may. It refuses room_not_found, room_closed, not_host,
// not_participant.
func (s *Service) TransferHost(ctx context.Context, caller principal.Caller, roomID string, user int64, rc idempotency.Receipt) (Result, error) {
	d, err := s.asHost(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	if user < 1 {
		return Result{}, apierror.InvalidRequest.WithField("userId", "range", "must be a player")
	}
	o, err := s.store.transfer(ctx, d, user)
	return o.answer(err)
}

// Start begins the game and locks the stakes; the host or the game's server may. It refuses room_not_found, room_closed, not_host,
// already_started, not_enough_players.
func (s *Service) Start(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (Result, error) {
	d, err := s.asHost(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	o, err := s.store.start(ctx, d)
	return o.answer(err)
}

// Finish ends the game with a result and pays out the pot; only the game's server may. Results name every active player once, their
// places are a ranking. The same result again answers the same room. It refuses room_not_found, not_started, room_closed,
// result_conflict, and invalid_request with every faulty result.
func (s *Service) Finish(ctx context.Context, caller principal.Caller, roomID string, results []Placement, rc idempotency.Receipt) (Result, error) {
	if caller.Role != principal.Server {
		return Result{}, apierror.Forbidden
	}
	d, room, err := s.look(ctx, caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	for range tries {
		ranked := ordered(results, room.ActivePlayers())
		report, wrong := settlement{results: canonical(ranked)}, error(nil)
		if room.Status == Started && room.GameID == caller.Game {
			if wrong = rank(results, room.ActivePlayers()); wrong == nil {
				report = room.settle(ranked)
			}
		}
		// The script is asked even when the results are wrong: an earlier request with this key has its first answer.
		o, err := s.store.finish(ctx, d, room.staked(), report)
		if err != nil || o.word != "stale" {
			return o.answer(err)
		}
		if wrong != nil && o.room.Version == room.Version {
			return Result{}, wrong
		}
		room = o.room
	}
	return Result{}, apierror.VersionConflict
}

// Cancel ends the room without a result and gives every stake back; the host may before the start, the game's server and the operator
// until the end. It refuses room_not_found, room_closed, not_host, already_started.
func (s *Service) Cancel(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (Result, error) {
	d, room, err := s.look(ctx, caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	reason := map[principal.Role]string{principal.Player: "host", principal.Server: "server", principal.Operator: "operator"}[caller.Role]
	for range tries {
		o, err := s.store.cancel(ctx, d, room.staked(), reason)
		if err != nil || o.word != "stale" {
			return o.answer(err)
		}
		room = o.room
	}
	return Result{}, apierror.VersionConflict
}

// Rematch opens a room with the settings of one that ended: the calling player, who played in it to the end, is its creator and
// pays; seats are held for the others who did. There is one rematch of a room: whoever asks later gets it as it is, and has a held seat to join.
// It refuses room_not_found, not_participant, not_started and already_started (the room has not ended), insufficient_funds.
func (s *Service) Rematch(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (Result, error) {
	d, err := s.asPlayer(caller, roomID, rc)
	if err != nil {
		return Result{}, err
	}
	profile, err := s.profile(ctx, caller.User)
	if err != nil {
		return Result{}, err
	}
	known := ""
	for range tries {
		o, err := s.store.rematch(ctx, d, known, profile)
		if err != nil || o.word != "stale" {
			return o.answer(err)
		}
		known = o.room.RematchID
	}
	return Result{}, apierror.VersionConflict
}

// Get answers a room, or refuses room_not_found when it is not there or not the caller's to see.
func (s *Service) Get(ctx context.Context, caller principal.Caller, roomID string) (Room, error) {
	room, err := s.store.read(ctx, roomID)
	if err != nil {
		return Room{}, err
	}
	if !caller.CanAccessGame(room.GameID) {
		return Room{}, apierror.RoomNotFound
	}
	if caller.Role != principal.Player || room.Visibility != Private || room.Creator == caller.User {
		return room, nil
	}
	if _, seated := room.Seat(caller.User); seated {
		return room, nil
	}
	friends, err := s.players.AreFriends(ctx, caller.User, room.Creator)
	if err != nil {
		return Room{}, err
	}
	if !friends[room.Creator] {
		return Room{}, apierror.RoomNotFound
	}
	return room, nil
}

// GetByCode is Get by the room's code, in capitals or not. A code is a name and no permission: it is short enough to be guessed.
func (s *Service) GetByCode(ctx context.Context, caller principal.Caller, code string) (Room, error) {
	id, err := s.store.byCode(ctx, code)
	if err != nil {
		return Room{}, err
	}
	return s.Get(ctx, caller, id)
}

// Sweep looks once at every room whose time may be over, cancels those whose time is, removes those that ended long ago, and
// answers how many it looked at. Homes that another node is sweeping are left to it.
func (s *Service) Sweep(ctx context.Context) (int, error) { return s.store.sweep(ctx) }

// sweepEvery is how often a node offers to sweep.
const sweepEvery = time.Second

// Run sweeps until ctx ends. One node at a time does each home; any node may be lost at any instant.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		n, err := s.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "rooms could not be swept", "error", err)
		}
		if n > 0 && err == nil && ctx.Err() == nil {
			continue // there may be more than one batch
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// asPlayer prepares what only players do.
func (s *Service) asPlayer(caller principal.Caller, roomID string, rc idempotency.Receipt) (deed, error) {
	if caller.Role != principal.Player {
		return deed{}, apierror.Forbidden
	}
	return s.store.deed(caller, roomID, rc)
}

// asHost prepares what the host and the game's server do.
func (s *Service) asHost(caller principal.Caller, roomID string, rc idempotency.Receipt) (deed, error) {
	if caller.Role == principal.Operator {
		return deed{}, apierror.Forbidden
	}
	return s.store.deed(caller, roomID, rc)
}

// look prepares what ends a room for all, and reads the room for it. A room that is gone may still have a receipt.
func (s *Service) look(ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt) (deed, Room, error) {
	d, err := s.store.deed(caller, roomID, rc)
	if err != nil {
		return deed{}, Room{}, err
	}
	room, err := s.store.read(ctx, roomID)
	if err != nil && (rc.Key == "" || !errors.Is(err, apierror.RoomNotFound)) {
		return deed{}, Room{}, err
	}
	if caller.Role == principal.Operator {
		d.game = room.GameID
	}
	return d, room, nil
}

func (s *Service) profile(ctx context.Context, user int64) (string, error) {
	profiles, err := s.players.Profiles(ctx, user)
	if err != nil {
		return "", err
	}
	p, ok := profiles[user]
	if !ok {
		return "", apierror.UserNotFound
	}
	text, err := json.Marshal(p)
	return string(text), err
}

// answer makes of what a script said what the service says.
func (o outcome) answer(err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	answer := Result{Room: o.room, Replayed: o.replayed}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(o.rest[i], 10, 64)
		return n
	}
	switch {
	case o.word == "ok":
		return answer, nil
	case o.word == "stale":
		return answer, apierror.VersionConflict
	case o.word == apierror.InsufficientFunds.Code && len(o.rest) == 4:
		return answer, wallet.InsufficientFunds(o.rest[2], int(number(3)), wallet.Units(number(0)), wallet.Units(number(1)))
	case o.word == apierror.NotEnoughPlayers.Code && len(o.rest) == 2:
		return answer, apierror.NotEnoughPlayers.WithReason("%s are seated and %s are needed", o.rest[0], o.rest[1]).
			WithMember("players", number(0)).WithMember("minPlayers", number(1))
	}
	refusal, ok := apierror.Lookup(o.word)
	if !ok {
		return answer, errors.New("a room script answers " + strconv.Quote(o.word))
	}
	return answer, refusal
}
