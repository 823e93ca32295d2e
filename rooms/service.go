package rooms

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Wallets finds the token of an entry and keeps the books. *wallet.Service implements it.
type Wallets interface {
	TokenByID(ctx context.Context, gameID, id int64) (wallet.Token, error)
	// LedgerChanged is called after each script that may have appended to the ledger of a game.
	LedgerChanged(gameID int64)
}

// Players returns profiles and friendships. *users.Service implements it.
type Players interface {
	// RecentProfile may return a profile that was changed in the last seconds as it was before.
	RecentProfile(ctx context.Context, id int64) (users.Profile, error)
	// CreatedAt returns when a player was made, by the store's clock.
	CreatedAt(ctx context.Context, id int64) (time.Time, error)
	AreFriends(ctx context.Context, me int64, others ...int64) (map[int64]bool, error)
}

// Games returns the limits that a game sets for its rooms. *games.Service implements it.
type Games interface {
	Find(ctx context.Context, id int64) (games.Game, error)
}

// Options are the settings of rooms.
type Options struct {
	Shards     int                      // for free rooms, fixed at installation; 0 means 1
	Retention  time.Duration            // how long an ended room can be read; 0 means 24 h
	Dispute    time.Duration            // after which the stakes of a disputed room are returned; 0 means 72 h
	CheckMoney func(gameID int64) error // is called before each change of a paid room; nil allows all
	AdmitNew   func(gameID int64) error // is called before each new room, which fails with its error; nil admits all
	Quotas     Quotas                   // of each player; the zero Quotas limit nothing
	ReceiptTTL time.Duration            // how long the first reply to a request with a key is kept; 0 means 24 h
	// BoardsConsumer applies results to leaderboards, and MatchConsumer those of matches; nil where no
	// room has such a consumer: its result waits.
	BoardsConsumer, MatchConsumer ResultConsumer
	// HasPrizes reports whether a leaderboard of a game pays prizes, false for one that does not
	// exist; nil where none does.
	HasPrizes func(ctx context.Context, gameID int64, board string) (bool, error)
	// KeyedHash returns a hash, of 16 bytes or more, that nobody outside can compute and that is the
	// same on every node, for the ids of matches; nil where no match is opened.
	KeyedHash func(ctx context.Context, label, text string) ([]byte, error)
}

// Service has the methods of rooms. It is safe for concurrent use.
//
// Every method decides by the caller's role what the caller may do. A room of another game is
// room_not_found. Beside the codes that its comment lists, every method that changes a room returns
// forbidden (wrong role), store_unavailable, idempotency_key_reused, and version_conflict when
// others changed the room before each of 16 attempts.
type Service struct {
	store     *store
	wallets   Wallets
	players   Players
	games     Games
	retention time.Duration
	admitNew  func(gameID int64) error
	hasPrizes func(ctx context.Context, gameID int64, board string) (bool, error)
}

// New returns the service on an open store.
func New(db *redisdb.DB, wallets Wallets, players Players, games Games, o Options) *Service {
	receiptTTL := cmp.Or(o.ReceiptTTL, 24*time.Hour)
	if o.AdmitNew == nil {
		o.AdmitNew = func(int64) error { return nil }
	}
	if o.HasPrizes == nil {
		o.HasPrizes = func(context.Context, int64, string) (bool, error) { return false, nil }
	}
	s := &Service{
		store:   newStore(db, cmp.Or(o.Shards, 1), receiptTTL, wallets.LedgerChanged),
		wallets: wallets, players: players, games: games, retention: cmp.Or(o.Retention, 24*time.Hour),
		admitNew: o.AdmitNew, hasPrizes: o.HasPrizes,
	}
	s.store.disputeTimeout = cmp.Or(o.Dispute, 72*time.Hour)
	s.SetQuotas(o.Quotas)
	if o.CheckMoney != nil {
		s.store.checkMoney = o.CheckMoney
	}
	s.store.keyedHash, s.store.boardsConsumer, s.store.matchConsumer = o.KeyedHash, o.BoardsConsumer, o.MatchConsumer
	return s
}

// SetQuotas replaces the quotas. What a player has already stays.
func (s *Service) SetQuotas(q Quotas) { s.store.quotas.Store(&q) }

// Create opens a room, seats the calling player in it and takes the stake.
//
// It returns invalid_request (with every faulty field), invalid_amount, game_not_found,
// token_not_found, insufficient_funds, limit_reached, store_full, and stake_limit,
// open_rooms_limit, loss_limit and self_excluded, the player's own limits.
func (s *Service) Create(
	ctx context.Context, caller principal.Caller, in CreateInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	if caller.Role != principal.Player {
		return ChangeResult{}, apierror.Forbidden
	}
	n, err := s.prepareCreate(ctx, caller, in)
	if err == nil {
		err = s.admitNew(caller.GameID)
	}
	if err != nil {
		return s.replayCreate(ctx, caller, in, rc, err)
	}
	if err = s.checkStakeAge(ctx, caller, n.token.ID != 0); err != nil {
		return s.replayCreate(ctx, caller, in, rc, err)
	}
	if n.creatorProfileJSON, err = s.readProfileJSON(ctx, caller.UserID); err != nil {
		return ChangeResult{}, err
	}
	ended := "" // of the player's rooms; not looked up yet
	return s.retryStale(ctx, caller, func(last scriptResult) (r scriptResult, err error) {
		if last.isStale() {
			if ended, err = s.store.findEnded(ctx, last.reply.Values); err != nil {
				return r, err
			}
		}
		return s.store.tryCreate(ctx, caller, rc, n, ended)
	})
}

// replayCreate returns the first reply to a request with a key that is invalid now, for example
// because the game's limits have changed. When there is no first reply, it returns err.
func (s *Service) replayCreate(
	ctx context.Context, caller principal.Caller, in CreateInput, rc idempotency.Receipt, err error,
) (ChangeResult, error) {
	if !rc.MayReplay(err) {
		return ChangeResult{}, err
	}
	r, replayErr := s.store.replayCreate(ctx, caller, in.EntryTokenID != 0, rc)
	if replayErr != nil || !r.isStale() {
		return s.toChangeResult(ctx, caller, r, replayErr)
	}
	return ChangeResult{}, err
}

// Join seats the calling player and takes the stake. A player who is seated already gets the room
// unchanged.
//
// It returns room_not_found, room_closed, already_started, banned, friends_only, room_full,
// limit_reached, insufficient_funds, stake_limit, open_rooms_limit, loss_limit, self_excluded.
func (s *Service) Join(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.playerCommand(caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if err := s.checkStakeAge(ctx, caller, c.shard.Paid()); err != nil {
		return ChangeResult{}, err
	}
	var options joinOptions
	if options.profileJSON, err = s.readProfileJSON(ctx, caller.UserID); err != nil {
		return ChangeResult{}, err
	}
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		if room := last.room; room != nil {
			options.mayStart = room.AutoStart
			if room.FriendsOnly || room.Visibility == Private {
				friends, err := s.players.AreFriends(ctx, caller.UserID, room.CreatorID)
				if err != nil {
					return scriptResult{}, err
				}
				options.friend = formatBool(friends[room.CreatorID])
			}
		}
		return s.store.join(ctx, c, options)
	})
}

// Leave takes the calling player out. Before the start the stake goes back; after it the seat is
// forfeited.
//
// When the players who are left have all reported the same result, the room is finished with it.
// Nobody can leave a disputed room: its seats are frozen with the pot. If the report window has
// ended, Leave closes it first, so that no leave after its end changes who is paid.
//
// It returns room_not_found, room_closed, not_participant, room_disputed.
func (s *Service) Leave(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.playerCommand(caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	payouts := settlement{users: []int64{caller.UserID}}
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		if last.room != nil {
			payouts = last.room.settleWithout(caller.UserID)
		}
		r, err := s.store.leave(ctx, c, payouts, "")
		return s.store.closeIfOver(ctx, c, r, err)
	})
}

// Ready sets whether the calling player is ready.
//
// It returns room_not_found, room_closed, already_started, not_participant.
func (s *Service) Ready(
	ctx context.Context, caller principal.Caller, roomID string, ready bool, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.playerCommand(caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		return s.store.ready(ctx, c, ready, last.room.reservedUsers())
	})
}

// KickInput names a player to take out of a room.
type KickInput struct {
	RoomID string `json:"roomId" required:"true"`
	UserID int64  `json:"userId" required:"true"`
	Ban    bool   `json:"ban"` // the player may not join this room again
}

// Kick takes a player out before the start and gives the stake back. Only the host and the game's
// server may call it.
//
// A room has at most 256 bans, so that nobody can make it grow without end; a player may still be
// taken out without one.
//
// It returns room_not_found, room_closed, not_host, already_started, not_participant, limit_reached
// (the 257th ban), and invalid_request when the player is the caller.
func (s *Service) Kick(
	ctx context.Context, caller principal.Caller, in KickInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.hostCommand(caller, in.RoomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if in.UserID < 1 || in.UserID == caller.UserID {
		return ChangeResult{}, apierror.InvalidRequest.WithField("userId", "range", "must be another player")
	}
	users, feeds := []int64{in.UserID}, "" // as long as the room was not read
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		if last.room != nil {
			users, feeds = last.room.seatedUsers(), last.room.consumer
		}
		return s.store.kick(ctx, c, in.UserID, in.Ban, users, feeds)
	})
}

// TransferHost makes another seated player the host. Only the seated host and the game's server may
// call it.
//
// It returns room_not_found, room_closed, not_host, not_participant, and invalid_request for an id
// below 1.
func (s *Service) TransferHost(
	ctx context.Context, caller principal.Caller, roomID string, userID int64, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.hostCommand(caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if userID < 1 {
		return ChangeResult{}, apierror.InvalidRequest.WithField("userId", "range", "must be a player")
	}
	r, err := s.store.transferHost(ctx, c, userID)
	return s.toChangeResult(ctx, caller, r, err)
}

// Start begins the game and locks the stakes. Only the host and the game's server may call it.
//
// It returns room_not_found, room_closed, not_host, already_started, not_enough_players.
func (s *Service) Start(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, err := s.hostCommand(caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		return s.store.start(ctx, c, last.room.reservedUsers())
	})
}

// Finish ends the game with a result and pays out the pot. The placements must name each active
// player once. The same result again returns the room unchanged.
//
// The game's server may end any room that has started, but one: a match of a tournament with
// stakes whose players report the result.
//
// In a room with consensus each active player reports a result, and cannot change the report:
//
//   - When all have reported the same places, the room is finished, with the scores of the last
//     report.
//   - When two reports contradict each other, the room is disputed. Further reports are kept for
//     the operator.
//   - When one of two players reports that the other is first, the room ends at once.
//   - The first report begins a window. When it is over, a player who was connected and has
//     reported nothing counts as agreeing. Reports that come later find a room that has ended.
//
// It returns room_not_found, not_started, room_closed, result_conflict, room_disputed (to the
// server), not_participant (to a player), forbidden (to a player of a room without consensus, and
// to the server in such a match), and invalid_request with every faulty placement.
func (s *Service) Finish(
	ctx context.Context, caller principal.Caller, roomID string, placements []Placement, rc idempotency.Receipt,
) (ChangeResult, error) {
	if !caller.HasRole(principal.Player, principal.Server) {
		return ChangeResult{}, apierror.Forbidden
	}
	c, room, err := s.lookup(ctx, caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if caller.Role == principal.Player {
		return s.report(ctx, c, room, placements)
	}
	if err := room.authorizeServer(caller); err != nil {
		return ChangeResult{}, err
	}
	var invalid error
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		if err := room.follow(last.room, invalid); err != nil {
			return scriptResult{}, err
		}
		payouts := settlement{consumer: room.consumer}
		invalid = nil
		if room.Status == Started || room.Status == Finished {
			active := room.ActivePlayers()
			if invalid = validatePlacements(placements, active); invalid == nil {
				payouts = room.computeSettlement(rankPlacements(placements, active))
			}
		}
		if room.Status == Finished { // placements that are not valid are another result
			payouts.roomVersion = room.Version
		}
		// The script runs even with invalid placements: there may be a first reply to this key. When
		// there is none, it changes nothing: the placements are no result of a finished room, and the
		// version is not that of a started one.
		return s.store.finish(ctx, c, payouts)
	})
}

// follow replaces the room by found, the room that a stale run returned; it is nil before the
// first run. invalid is what was wrong with the input of that run, or nil. follow returns it when
// found has the version of the room, because a new run would fail in the same way.
func (r *Room) follow(found *Room, invalid error) error {
	if found == nil {
		return nil
	}
	if invalid != nil && found.Version == r.Version {
		return invalid
	}
	*r = *found
	return nil
}

// report is Finish by a player.
func (s *Service) report(
	ctx context.Context, c command, room Room, placements []Placement,
) (ChangeResult, error) {
	if room.RoomID != "" && room.SettledBy != SettledByConsensus {
		if err := s.authorizeRead(ctx, c.caller, &room); err != nil {
			return ChangeResult{}, err
		}
		return ChangeResult{}, apierror.Forbidden.WithReason("the game's server reports the result of this room")
	}
	var rp reporting
	var invalid error
	return s.retryStale(ctx, c.caller, func(last scriptResult) (scriptResult, error) {
		if err := room.follow(last.room, invalid); err != nil {
			return scriptResult{}, err
		}
		rp, invalid = room.judgeReport(c.caller.UserID, placements)
		if rp.effect == addReport { // the first one, or the first on a node that knows windows
			game, err := s.games.Find(ctx, c.gameID)
			if err != nil {
				return scriptResult{}, err
			}
			rp.window = game.Settings.ReportWindow
		}
		// As in Finish, the script runs with an invalid report too.
		r, err := s.store.report(ctx, c, rp)
		return s.store.closeIfOver(ctx, c, r, err)
	})
}

// ResolveInput is the operator's decision about a disputed room: a result, or a refund.
type ResolveInput struct {
	Placements []Placement
	Refund     bool // every stake is returned, without rake
}

// resolveOutcome is ResolveInput as room_resolve takes it.
type resolveOutcome string

const (
	resolveFinish resolveOutcome = "finish"
	resolveCancel resolveOutcome = "cancel"
)

// CountDisputesLost returns how often the operator decided a dispute of a game otherwise than the
// player had reported. It returns forbidden to everybody else.
func (s *Service) CountDisputesLost(ctx context.Context, caller principal.Caller, gameID, userID int64) (int64, error) {
	if !caller.HasRole(principal.Operator) {
		return 0, apierror.Forbidden
	}
	return s.store.countDisputesLost(ctx, gameID, userID)
}

// Resolve ends a disputed room: with a result, which must name each active player once, or by
// giving every stake back. Repeating the same decision returns the room unchanged. Only the
// operator may call it.
//
// It returns room_not_found, not_disputed, result_conflict (it was decided otherwise), and
// invalid_request with every faulty placement.
func (s *Service) Resolve(
	ctx context.Context, caller principal.Caller, roomID string, in ResolveInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	if caller.Role != principal.Operator {
		return ChangeResult{}, apierror.Forbidden
	}
	c, room, err := s.lookup(ctx, caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	var invalid error
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		if err := room.follow(last.room, invalid); err != nil {
			return scriptResult{}, err
		}
		outcome, payouts := resolveOutcome(""), settlement{consumer: room.consumer}
		invalid = nil
		var losers []int64
		active := room.ActivePlayers()
		if in.Refund {
			outcome = resolveCancel
			payouts.users, payouts.roomVersion = room.seatedUsers(), room.Version
		} else if invalid = validatePlacements(in.Placements, active); invalid == nil {
			ranked := rankPlacements(in.Placements, active)
			outcome, payouts, losers = resolveFinish, room.computeSettlement(ranked), room.reportedOtherwise(ranked)
		}
		return s.store.resolve(ctx, c, outcome, payouts, losers)
	})
}

// Cancel ends the room without a result and gives every stake back. The host may before the start,
// the game's server and the operator until the end, also when the room is disputed; of the match of
// a tournament with stakes whose players report the result the operator alone.
//
// It returns room_not_found, room_closed, not_host, already_started; forbidden for such a match.
func (s *Service) Cancel(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (ChangeResult, error) {
	c, room, err := s.lookup(ctx, caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if err := room.authorizeServer(caller); err != nil {
		return ChangeResult{}, err
	}
	reasons := map[principal.Role]string{
		principal.Player: "host", principal.Server: ReasonServer, principal.Operator: ReasonOperator,
	}
	return s.retryStale(ctx, caller, func(last scriptResult) (scriptResult, error) {
		return s.store.cancel(ctx, c, cmp.Or(last.room, &room), reasons[caller.Role])
	})
}

// Rematch opens a room with the settings of one that ended. The calling player must have played to
// the end; the caller becomes the creator and pays the entry, and seats are reserved for the others
// who played to the end. A room has one rematch: later callers get it unchanged and join their
// reserved seats.
//
// It returns room_not_found, not_participant, not_started and already_started (the room has not
// ended), insufficient_funds, limit_reached, stake_limit, open_rooms_limit, loss_limit,
// self_excluded, store_full.
func (s *Service) Rematch(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (ChangeResult, error) {
	if caller.Role != principal.Player {
		return ChangeResult{}, apierror.Forbidden
	}
	c, room, err := s.lookup(ctx, caller, roomID, rc)
	if err != nil {
		return ChangeResult{}, err
	}
	if err := s.checkStakeAge(ctx, caller, c.shard.Paid()); err != nil {
		return ChangeResult{}, err
	}
	n, err := s.prepareRematch(ctx, &room)
	if err != nil {
		return ChangeResult{}, err
	}
	if n.profileJSON, err = s.readProfileJSON(ctx, caller.UserID); err == nil {
		err = s.admitNew(caller.GameID)
	}
	if err != nil {
		return ChangeResult{}, err
	}
	return s.retryStale(ctx, caller, func(last scriptResult) (r scriptResult, err error) {
		if last.isStale() {
			if n.ended, err = s.store.findEnded(ctx, last.reply.Values); err != nil {
				return r, err
			}
			// The code was taken, or somebody left while the game was still on.
			if room, err = s.store.read(ctx, roomID); err != nil {
				return r, err
			}
		}
		return s.store.tryRematch(ctx, c, room, n)
	})
}

// rematch has the values of a new room that the settings of the room before lack.
type rematch struct {
	profileJSON string // the creator's users.Profile as JSON
	stakes      string // the field of the room
	ended       string // of the creator's rooms, as findEnded returns it; "" as long as it was not looked up
	hasFeed     bool   // the events of the new room also go to the game's server, as the game is set now
}

// prepareRematch checks the settings of a room that has ended against those of its game now. It
// returns forbidden for a settlement that the game no longer allows.
func (s *Service) prepareRematch(ctx context.Context, room *Room) (n rematch, err error) {
	if room.RoomID == "" {
		return n, nil
	}
	game, err := s.games.Find(ctx, room.GameID)
	if err != nil {
		return n, err
	}
	n.hasFeed = game.HasFeed()
	if room.SettledBy == SettledByConsensus && !room.isMatch() &&
		!slices.Contains(game.Settings.Settlements, games.SettledByConsensus) {
		return n, apierror.Forbidden.WithReason("the game no longer allows rooms that are settled by consensus")
	}
	if room.Entry == 0 && room.consumer == BoardsConsumer {
		n.stakes, err = s.findStakes(ctx, game)
	}
	return n, err
}

// Get returns a room. It returns room_not_found when it does not exist or the caller may not see
// it.
func (s *Service) Get(ctx context.Context, caller principal.Caller, roomID string) (Room, error) {
	if !caller.HasRole(principal.Player, principal.Server, principal.Operator) {
		return Room{}, apierror.Forbidden
	}
	room, err := s.store.read(ctx, roomID)
	if err != nil {
		return Room{}, err
	}
	if err := s.authorizeRead(ctx, caller, &room); err != nil {
		return Room{}, err
	}
	room.revealReports(caller)
	return room, s.store.addDisputesLost(ctx, &room)
}

// Head has the values of a room that its followers need.
type Head struct {
	RoomID     string
	Visibility Visibility
	Position   string // "<seq>-<nonce>" of the last event
}

// HeadRead is the result of GetHeads for one room.
type HeadRead struct {
	Head Head
	Err  error // as Get returns it
}

// GetHeads returns the data that a caller needs to follow rooms, for those that the caller may see,
// in the order of the ids. It is cheaper than Get, which reads all players, and takes at most two
// round trips to each server.
func (s *Service) GetHeads(ctx context.Context, caller principal.Caller, roomIDs ...string) []HeadRead {
	if !caller.HasRole(principal.Player, principal.Server, principal.Operator) {
		return slices.Repeat([]HeadRead{{Err: apierror.Forbidden}}, len(roomIDs))
	}
	heads := make([]HeadRead, len(roomIDs))
	for i, read := range s.store.readHeads(ctx, roomIDs, caller.UserID) {
		room, err := read()
		if err == nil {
			err = s.authorizeRead(ctx, caller, room)
		}
		if heads[i].Err = err; err == nil {
			heads[i].Head = Head{RoomID: room.RoomID, Visibility: room.Visibility, Position: room.Position}
		}
	}
	return heads
}

// authorizeRead returns nil when the caller may see the room, and room_not_found when not.
func (s *Service) authorizeRead(ctx context.Context, caller principal.Caller, room *Room) error {
	if !caller.CanAccessGame(room.GameID) {
		return apierror.RoomNotFound
	}
	if caller.Role != principal.Player || room.Visibility != Private || room.CreatorID == caller.UserID {
		return nil
	}
	if _, seated := room.Seat(caller.UserID); seated {
		return nil
	}
	friends, err := s.players.AreFriends(ctx, caller.UserID, room.CreatorID)
	if err == nil && !friends[room.CreatorID] {
		err = apierror.RoomNotFound
	}
	return err
}

// GetByCode returns the room with a code, in upper or lower case. A code gives no permission: it is
// short enough to be guessed. Each game has its own codes: they are looked up in the caller's game;
// the operator names the game. It returns room_not_found as Get does, game_not_found for another
// game than the caller's, and invalid_request when the operator names none.
func (s *Service) GetByCode(
	ctx context.Context, caller principal.Caller, gameID int64, code string,
) (Room, error) {
	switch {
	case !caller.HasRole(principal.Player, principal.Server, principal.Operator):
		return Room{}, apierror.Forbidden
	case caller.Role == principal.Operator && gameID == 0:
		return Room{}, apierror.InvalidRequest.WithField("gameId", "required", "is required with code")
	case caller.Role != principal.Operator && gameID != 0 && gameID != caller.GameID:
		return Room{}, apierror.GameNotFound
	case caller.Role != principal.Operator:
		gameID = caller.GameID
	}
	id, err := s.store.roomIDByCode(ctx, gameID, code)
	if err != nil {
		return Room{}, err
	}
	room, err := s.Get(ctx, caller, id)
	if err == nil && room.GameID != gameID { // a free room; their codes are in shards of all games
		return Room{}, apierror.RoomNotFound
	}
	return room, err
}

// EventTopic returns the topic of a room's events: the list and the channel of the same name. It
// returns invalid_request for an id that is not a UUID, and room_not_found for one that no room can
// have.
func (s *Service) EventTopic(roomID string) (topic string, err error) {
	at, err := s.store.locate(roomID)
	if err != nil {
		return "", err
	}
	return at.eventTopic, nil
}

// Sweep checks each due room of every game once: it ends turns and cancels rooms whose time has
// passed, drops the events of rooms that ended a while ago and removes rooms that ended long ago.
// It also applies ended rooms for their consumers. It returns how many rooms it swept. It does
// nothing while another node sweeps.
func (s *Service) Sweep(ctx context.Context) (int, error) { return s.store.sweepAll(ctx) }

// Run sweeps, ends turns and applies ended rooms until ctx ends. One node at a time sweeps; any
// node may die at any instant.
func (s *Service) Run(ctx context.Context) error {
	if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "sweeping rooms failed", "error", err)
	}
	timed, applied := make(chan error, 1), make(chan error, 1)
	go func() { timed <- s.store.timing.Run(ctx) }()
	go func() { applied <- s.store.runOutbox(ctx) }()
	err := s.store.sweeping.Run(ctx)
	return errors.Join(err, <-timed, <-applied)
}

// playerCommand returns a command of a method that only players may use.
func (s *Service) playerCommand(caller principal.Caller, roomID string, rc idempotency.Receipt) (command, error) {
	if caller.Role != principal.Player {
		return command{}, apierror.Forbidden
	}
	return s.store.newCommand(caller, roomID, rc)
}

// checkStakeAge returns the error of games.CheckStakeAge for a paid room.
func (s *Service) checkStakeAge(ctx context.Context, caller principal.Caller, paid bool) error {
	if !paid {
		return nil
	}
	return games.CheckStakeAge(ctx, s.games, s.players.CreatedAt, caller, "rooms with an entry")
}

// hostCommand returns a command of a method that the host and the game's server may use.
func (s *Service) hostCommand(caller principal.Caller, roomID string, rc idempotency.Receipt) (command, error) {
	if !caller.HasRole(principal.Player, principal.Server) {
		return command{}, apierror.Forbidden
	}
	return s.store.newCommand(caller, roomID, rc)
}

// lookup returns a command that ends a room for all, and the room. If the room no longer exists and
// the request has a key, it returns the zero Room, because there may be a receipt.
func (s *Service) lookup(
	ctx context.Context, caller principal.Caller, roomID string, rc idempotency.Receipt,
) (command, Room, error) {
	if !caller.HasRole(principal.Player, principal.Server, principal.Operator) {
		return command{}, Room{}, apierror.Forbidden
	}
	c, err := s.store.newCommand(caller, roomID, rc)
	if err != nil {
		return command{}, Room{}, err
	}
	room, err := s.store.read(ctx, roomID)
	if err != nil && (rc.KeyDigest == "" || !errors.Is(err, apierror.RoomNotFound)) {
		return command{}, Room{}, err
	}
	if caller.Role == principal.Operator && !c.shard.Paid() {
		c.gameID = room.GameID
	}
	return c, room, nil
}

// readProfileJSON returns a player's profile as JSON. A seat shows it as of at most 5 s before the
// player sat down, and does not change with it later. It returns user_not_found.
func (s *Service) readProfileJSON(ctx context.Context, userID int64) (string, error) {
	p, err := s.players.RecentProfile(ctx, userID)
	if err != nil {
		return "", err
	}
	return string(users.AppendProfile(make([]byte, 0, 256), p)), nil
}

// retryStale returns the result of a method whose script is run as retryStale does.
func (s *Service) retryStale(
	ctx context.Context, caller principal.Caller, run func(last scriptResult) (scriptResult, error),
) (ChangeResult, error) {
	r, err := retryStale(run)
	return s.toChangeResult(ctx, caller, r, err)
}

// toChangeResult returns the result of a method for that of its script. A replay shows the room as
// it is now, so a caller who may no longer see it gets room_not_found.
func (s *Service) toChangeResult(
	ctx context.Context, caller principal.Caller, r scriptResult, err error,
) (ChangeResult, error) {
	if err != nil {
		return ChangeResult{}, err
	}
	result := ChangeResult{Room: r.room, Replayed: r.replayed}
	if err := scriptError(r); err != nil {
		return result, err
	}
	r.room.revealReports(caller)
	if r.replayed {
		if err := s.authorizeRead(ctx, caller, r.room); err != nil {
			return ChangeResult{Replayed: true}, err
		}
	}
	return result, nil
}

// scriptError returns nil when a script changed the room, and otherwise the error of its status,
// with members from the values after it.
func scriptError(r scriptResult) error {
	if r.isStale() {
		return apierror.VersionConflict
	}
	if r.isOK() {
		return nil
	}
	var detailed error
	values := redisdb.NewValues("the reply of "+r.script.Name, r.reply.Values)
	switch r.reply.Status {
	case apierror.InsufficientFunds.Code:
		available, required := wallet.Units(values.NextInt()), wallet.Units(values.NextInt())
		tokenID, decimals := values.NextText(), int(values.NextInt())
		detailed = wallet.InsufficientFunds(tokenID, decimals, available, required)
	case apierror.StakeLimit.Code, apierror.OpenRoomsLimit.Code, apierror.LossLimit.Code, apierror.SelfExcluded.Code:
		detailed = limits.Error(r.reply.Status, values)
	case apierror.VersionConflict.Code:
		return stateConflict(r, values)
	case apierror.NotEnoughPlayers.Code:
		seated, required := values.NextInt(), values.NextInt()
		detailed = apierror.NotEnoughPlayers.WithReason("%d are seated and %d are needed", seated, required).
			WithMember("players", seated).WithMember("minPlayers", required)
	case apierror.LimitReached.Code:
		if r.script.Name == "room_state_set" {
			limit, most := values.NextText(), values.NextInt()
			return cmp.Or(values.Err(), error(apierror.LimitReached.
				WithReason("the shared state would be more than a room may have").
				WithMember("limit", limit).WithMember("max", most)))
		}
		limit, reason := "seats", "the player has as many seats in rooms that have not ended as one may have"
		most := values.NextInt()
		switch {
		case r.script.Name == "room_kick":
			limit, reason = "bans", "the room has its largest number of bans"
		case values.Remaining() > 0:
			limit, reason = values.NextText(), "the player has made as many rooms that have not ended as one may have"
		}
		detailed = apierror.LimitReached.WithReason("%s", reason).
			WithMember("limit", limit).WithMember("max", most)
	default:
		return r.reply.Err(r.script)
	}
	if err := values.Err(); err != nil {
		return err
	}
	return detailed
}
