package tournaments

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/cache"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/prizes"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/leader"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/rooms"
)

// Wallets finds the token of a fee and keeps the books. *wallet.Service implements it.
type Wallets interface {
	TokenByID(ctx context.Context, gameID, id int64) (wallet.Token, error)
	// LedgerChanged is called after each script that may have appended to the ledger of a game.
	LedgerChanged(gameID int64)
	// CheckMoney returns store_unavailable for a game whose money is stopped.
	CheckMoney(gameID int64) error
}

// Players returns profiles. *users.Service implements it.
type Players interface {
	RecentProfile(ctx context.Context, id int64) (users.Profile, error)
	CreatedAt(ctx context.Context, id int64) (time.Time, error)
	Profiles(ctx context.Context, ids ...int64) (map[int64]users.Profile, error)
}

// Games returns the settings of games. *games.Service implements it.
type Games interface {
	Find(ctx context.Context, id int64) (games.Game, error)
}

// Rooms opens and closes the rooms of matches. *rooms.Service implements it.
type Rooms interface {
	OpenMatch(ctx context.Context, in rooms.MatchInput) (rooms.Room, error)
	CloseMatch(ctx context.Context, gameID int64, roomID string) (status rooms.Status, present []int64, err error)
	CancelMatch(ctx context.Context, gameID int64, roomID, reason string) error
	ReadMatch(ctx context.Context, gameID int64, roomID string) (rooms.MatchState, error)
}

// Prizes holds and pays the pot. *prizes.Service implements it.
type Prizes interface {
	Fund(ctx context.Context, gameID int64, source string, token wallet.Token, units wallet.Units, from prizes.Funds,
		actor string) (isFunded bool, err error)
	Plan(ctx context.Context, gameID int64, source string, lines []prizes.Line) error
	Pay(ctx context.Context, gameID int64, source string) (done bool, err error)
	Void(ctx context.Context, gameID int64, source, reason string) error
	Forget(ctx context.Context, gameID int64, source string) error
}

// Options are the settings of tournaments.
type Options struct {
	ReceiptTTL time.Duration            // how long the first reply to a request with a key is kept; 0 means 24 h
	AdmitNew   func(gameID int64) error // is called before each new tournament, which fails with its error; nil admits all
}

// Deps are what tournaments use.
type Deps struct {
	Wallets Wallets
	Players Players
	Games   Games
	Rooms   Rooms
	Prizes  Prizes
	Boards  Boards
}

// Service has the methods of tournaments. It is safe for concurrent use.
//
// Every method decides by the caller's role what the caller may do: staff is the operator and the
// game's server. Beside the codes that its comment lists, every method returns forbidden (wrong
// role), game_not_found (another game than the caller's), tournament_not_found and
// store_unavailable; those with a receipt return idempotency_key_reused.
type Service struct {
	Deps
	store    *store
	admitNew func(gameID int64) error
	tablesMu sync.Mutex // is held while a maker is found or added, so that a tournament has one
	tables   *cache.Cache[tableID, *tableMaker]
	work     *leader.Work
}

// tableID names the standings of a tournament.
type tableID struct {
	gameID, id int64
}

// tournamentWork is the kind of the background work for package leader, and the name of its lock.
const tournamentWork = "tours"

// maxTries bounds how often something is done again that others changed meanwhile.
const maxTries = 16

// maxCachedTables bounds the standings that a node keeps; the largest are about a megabyte.
const maxCachedTables = 32

// New returns the service on an open store.
func New(db *redisdb.DB, deps Deps, o Options) *Service {
	if o.AdmitNew == nil {
		o.AdmitNew = func(int64) error { return nil }
	}
	s := &Service{
		Deps: deps, admitNew: o.AdmitNew,
		store: &store{
			db: db, receiptTTL: cmp.Or(o.ReceiptTTL, 24*time.Hour), ledgerChanged: deps.Wallets.LedgerChanged,
			checkMoney: deps.Wallets.CheckMoney,
			feeding:    cache.New[tourID, bool]("tournament_feeds", maxCachedFeeding, 0),
		},
		tables: cache.New[tableID, *tableMaker]("tournament_standings", maxCachedTables, time.Hour),
	}
	s.work = leader.New(db, tournamentWork, leader.EndsByTime, s.driveGames)
	return s
}

// EventTopic returns the topic of a tournament's events: the list and the channel of the same name.
func (s *Service) EventTopic(gameID, id int64) string { return s.store.eventTopic(gameID, id) }

// authorizeRead returns nil when the caller may see the tournaments of a game.
func (s *Service) authorizeRead(ctx context.Context, caller principal.Caller, gameID int64) error {
	return games.AuthorizeRead(ctx, s.Games, caller, gameID)
}

// authorizeStaff returns nil when the caller is staff of a game.
func (s *Service) authorizeStaff(ctx context.Context, caller principal.Caller, gameID int64) error {
	return games.AuthorizeStaff(ctx, s.Games, caller, gameID, "tournaments")
}

// authorizeJudge is authorizeStaff that returns forbidden to a server key that would decide about a
// prize that the operator promised: every such act where the operator has left the results to the
// players, else none but to cancel the tournament.
func (s *Service) authorizeJudge(
	ctx context.Context, caller principal.Caller, gameID, id int64, act string, isCancel bool,
) error {
	err := s.authorizeStaff(ctx, caller, gameID)
	if err != nil || caller.Role == principal.Operator {
		return err
	}
	t, err := s.store.load(ctx, gameID, id)
	if err != nil {
		return err
	}
	d := &t.definition
	byPlayers := d.Room != nil && d.Room.SettledBy == rooms.SettledByConsensus
	if d.AddedPrize == nil || prizes.IsServer(t.actor) || !byPlayers && !isCancel {
		return nil
	}
	return apierror.Forbidden.WithReason("the operator promised the prize: only the operator can %s", act)
}

// Create makes a tournament and sets its added prize aside. Only staff may call it.
//
// It returns invalid_request (with every faulty field), invalid_amount, token_not_found,
// store_full, limit_reached when the game has as many open tournaments as it may;
// insufficient_funds when the house has less than the added prize, and limit_reached when the
// game's server may not mint so much: then the tournament is cancelled.
func (s *Service) Create(
	ctx context.Context, caller principal.Caller, gameID int64, in CreateInput, rc idempotency.Receipt,
) (ChangeResult, error) {
	if err := s.authorizeStaff(ctx, caller, gameID); err != nil {
		return ChangeResult{}, err
	}
	d, token, err := s.prepare(ctx, caller, gameID, in)
	if err == nil {
		err = s.admitNew(gameID)
	}
	if err != nil {
		return s.replayCreate(ctx, caller, gameID, rc, err)
	}
	id, err := s.store.newID(ctx, gameID)
	if err != nil {
		return ChangeResult{}, err
	}
	game, err := s.Games.Find(ctx, gameID)
	if err != nil {
		return ChangeResult{}, err
	}
	quotas := game.Settings.Quotas
	id, replayed, err := s.store.create(ctx, s.store.newCommand(caller, gameID, id, rc), &d, game.HasFeed(), token,
		quotas.OpenTournaments)
	if errors.Is(err, apierror.LimitReached) {
		err = quotas.Reached(games.QuotaTours)
	}
	if err != nil {
		return ChangeResult{Replayed: replayed}, err
	}
	return s.created(ctx, gameID, id, replayed)
}

// prepare returns the definition and the token of a new tournament.
func (s *Service) prepare(
	ctx context.Context, caller principal.Caller, gameID int64, in CreateInput,
) (Definition, *wallet.Token, error) {
	game, err := s.Games.Find(ctx, gameID)
	if err != nil {
		return Definition{}, nil, err
	}
	terms := Terms{
		RakeBps: game.Settings.RakeBps, MatchTimeout: game.Settings.MatchTimeout,
		IsOperator: caller.Role == principal.Operator,
	}
	if terms.Now, err = s.store.db.ReadClock(ctx); err != nil {
		return Definition{}, nil, err
	}
	if in.EntryTokenID != 0 {
		token, err := s.Wallets.TokenByID(ctx, gameID, in.EntryTokenID)
		switch {
		case err == nil:
			terms.Token = &token
		case !errors.Is(err, apierror.TokenNotFound): // Prepare reports that, behind other faults
			return Definition{}, nil, err
		}
	}
	d, err := in.Prepare(terms)
	return d, terms.Token, err
}

// replayCreate returns the first reply to a request with a key that is invalid now, for example
// because its start has passed. When there is no first reply, it returns err.
func (s *Service) replayCreate(
	ctx context.Context, caller principal.Caller, gameID int64, rc idempotency.Receipt, err error,
) (ChangeResult, error) {
	if !rc.MayReplay(err) {
		return ChangeResult{}, err
	}
	id, replayed, replayErr := s.store.create(ctx, s.store.newCommand(caller, gameID, 0, rc), nil, false, nil, 0)
	switch {
	case errors.Is(replayErr, redisdb.ErrStale):
		return ChangeResult{}, err
	case errors.Is(replayErr, apierror.LimitReached):
		game, err := s.Games.Find(ctx, gameID)
		return ChangeResult{Replayed: replayed}, cmp.Or(err, game.Settings.Quotas.Reached(games.QuotaTours))
	case replayErr != nil:
		return ChangeResult{Replayed: replayed}, replayErr
	}
	return s.created(ctx, gameID, id, replayed)
}

// created returns the tournament that tour_create made, now or before, with its added prize set
// aside.
func (s *Service) created(
	ctx context.Context, gameID, id int64, replayed bool,
) (ChangeResult, error) {
	s.work.Changed(gameID)
	t, err := s.store.load(ctx, gameID, id)
	if err != nil {
		return ChangeResult{}, err
	}
	switch {
	case t.status == Announced:
		if err := s.openTour(ctx, noFence, t); err != nil {
			return ChangeResult{}, err
		}
	case !t.isFunded: // it was cancelled for that, by the first request or by the leader
		return ChangeResult{Replayed: replayed}, errNotFunded
	}
	return s.changed(ctx, gameID, id, replayed, nil)
}

// errNotFunded is the error of a tournament whose added prize the house cannot pay.
var errNotFunded = apierror.InsufficientFunds.WithReason("the house has less than the added prize")

// openTour sets aside the prizes of an announced tournament and opens it. If the added prize cannot
// be set aside, openTour cancels the tournament and returns the reason.
func (s *Service) openTour(ctx context.Context, by leaderFence, t *tour) error {
	if err := s.fund(ctx, t); err != nil {
		if e, expected := apierror.As(err); !expected || e.Retryable || t.isFunded {
			return err
		}
		reason := CancelledByServer
		if t.actor == (principal.Caller{Role: principal.Operator}).ActorID() {
			reason = CancelledByOperator
		}
		return errors.Join(err, s.store.cancel(ctx, by, t.gameID, t.id, reason))
	}
	return s.store.open(ctx, by, t.gameID, t.id, true)
}

// fund sets the added prize aside; a tournament with fees alone gets an empty account for them. It
// does so once. It returns insufficient_funds, limit_reached, invalid_amount, forbidden.
func (s *Service) fund(ctx context.Context, t *tour) error {
	if t.tokenCode == "" {
		return nil
	}
	token, err := s.Wallets.TokenByID(ctx, t.gameID, *t.definition.EntryTokenID)
	if err != nil {
		return err
	}
	from := prizes.House
	if p := t.definition.AddedPrize; p != nil {
		from = prizes.Funds(p.From)
	}
	actor := t.actor
	if t.definition.AddedPrize == nil {
		actor = "" // an account without units is no server's to be forbidden
	}
	isFunded, err := s.Prizes.Fund(ctx, t.gameID, t.ref(), token, t.definition.AddedPrizeUnits(), from, actor)
	if err == nil && !isFunded {
		err = errNotFunded
	}
	return err
}

// changed returns a tournament after a change, or the error of the change.
func (s *Service) changed(ctx context.Context, gameID, id int64, replayed bool, err error) (ChangeResult, error) {
	if err != nil {
		return ChangeResult{Replayed: replayed}, err
	}
	s.work.Changed(gameID)
	t, err := s.store.load(ctx, gameID, id)
	if err != nil {
		return ChangeResult{}, err
	}
	view, err := s.view(ctx, t)
	return ChangeResult{Tournament: view, Replayed: replayed}, err
}

// Join enters the calling player and takes the fee. A player who is an entrant already gets the
// tournament unchanged. In a Swiss tournament players may join late, and players who left may come
// back.
//
// It returns registration_closed, tournament_closed, tournament_full, disqualified,
// insufficient_funds, stake_limit, open_rooms_limit, loss_limit, self_excluded.
func (s *Service) Join(
	ctx context.Context, caller principal.Caller, gameID, id int64, rc idempotency.Receipt,
) (ChangeResult, error) {
	if err := caller.Authorize(gameID, principal.Player); err != nil {
		return ChangeResult{}, err
	}
	t, err := s.store.load(ctx, gameID, id)
	if err != nil {
		return ChangeResult{}, err
	}
	if t.definition.EntryFeeUnits > 0 {
		err := games.CheckStakeAge(ctx, s.Games, s.Players.CreatedAt, caller, "tournaments with a fee")
		if err != nil {
			return ChangeResult{}, err
		}
	}
	profile, err := s.Players.RecentProfile(ctx, caller.UserID)
	if err != nil {
		return ChangeResult{}, err
	}
	profileJSON := string(users.AppendProfile(nil, profile))
	replayed, err := s.store.join(ctx, s.store.newCommand(caller, gameID, id, rc), profileJSON)
	return s.changed(ctx, gameID, id, replayed, err)
}

// Leave takes the calling player out. Before the start the fee goes back; after it the player is
// not paired any more.
//
// It returns not_entrant, disqualified, tournament_closed.
func (s *Service) Leave(
	ctx context.Context, caller principal.Caller, gameID, id int64, rc idempotency.Receipt,
) (ChangeResult, error) {
	if err := caller.Authorize(gameID, principal.Player); err != nil {
		return ChangeResult{}, err
	}
	c := s.store.newCommand(caller, gameID, id, rc)
	replayed, err := s.store.leave(ctx, c, caller.UserID, EntrantOut)
	return s.changed(ctx, gameID, id, replayed, err)
}

// Disqualify takes a player out for good: the player cannot join again and is last. Before the
// start the fee goes back. Only staff may call it. Repeating it changes nothing.
//
// It returns not_entrant, tournament_closed.
func (s *Service) Disqualify(
	ctx context.Context, caller principal.Caller, gameID, id, userID int64, rc idempotency.Receipt,
) (ChangeResult, error) {
	if err := s.authorizeJudge(ctx, caller, gameID, id, "disqualify a player", false); err != nil {
		return ChangeResult{}, err
	}
	c := s.store.newCommand(caller, gameID, id, rc)
	replayed, err := s.store.leave(ctx, c, userID, EntrantDisqualified)
	return s.changed(ctx, gameID, id, replayed, err)
}

// CheckIn notes that the calling player is there. A player who has checked in already gets the
// tournament unchanged.
//
// It returns not_entrant, disqualified, check_in_closed, tournament_closed.
func (s *Service) CheckIn(
	ctx context.Context, caller principal.Caller, gameID, id int64, rc idempotency.Receipt,
) (ChangeResult, error) {
	if err := caller.Authorize(gameID, principal.Player); err != nil {
		return ChangeResult{}, err
	}
	replayed, err := s.store.checkIn(ctx, s.store.newCommand(caller, gameID, id, rc))
	return s.changed(ctx, gameID, id, replayed, err)
}

// Start starts a tournament before its time; with too few players it is cancelled. Only staff may
// call it. If the operator promised a prize and the players report results themselves, only the
// operator may. Repeating it changes nothing.
//
// It returns tournament_closed.
func (s *Service) Start(
	ctx context.Context, caller principal.Caller, gameID, id int64, _ idempotency.Receipt,
) (ChangeResult, error) {
	if err := s.authorizeJudge(ctx, caller, gameID, id, "start the tournament", false); err != nil {
		return ChangeResult{}, err
	}
	err := s.store.start(ctx, noFence, gameID, id, rand.Uint64())
	return s.changed(ctx, gameID, id, false, err)
}

// Cancel ends a tournament that is not being settled, and gives every fee back. Only staff may call
// it. Repeating it changes nothing.
//
// It returns tournament_closed.
func (s *Service) Cancel(
	ctx context.Context, caller principal.Caller, gameID, id int64, _ idempotency.Receipt,
) (ChangeResult, error) {
	if err := s.authorizeJudge(ctx, caller, gameID, id, "cancel the tournament", true); err != nil {
		return ChangeResult{}, err
	}
	reason := CancelledByServer
	if caller.Role == principal.Operator {
		reason = CancelledByOperator
	}
	err := s.store.cancel(ctx, noFence, gameID, id, reason)
	return s.changed(ctx, gameID, id, false, err)
}

// Delete removes a tournament that has ended, with its board. What was paid stays in the ledger.
// Only staff may call it. It returns forbidden, also for a tournament that has not ended.
func (s *Service) Delete(ctx context.Context, caller principal.Caller, gameID, id int64) error {
	if err := s.authorizeStaff(ctx, caller, gameID); err != nil {
		return err
	}
	t, err := s.store.load(ctx, gameID, id)
	if err != nil {
		return err
	}
	if t.status != Finished && t.status != Cancelled {
		return errNotEnded
	}
	// The tournament last, so that repeating a call that failed completes it.
	if t.definition.Format == FormatScore {
		// A server key may not delete the board by itself: the tournament could still run.
		owner := principal.Caller{Role: principal.Operator}
		err := s.Boards.Delete(ctx, owner, gameID, leaderboards.TournamentBoard(id))
		if err != nil && !errors.Is(err, apierror.BoardNotFound) {
			return err
		}
	}
	if err := s.Prizes.Forget(ctx, gameID, t.ref()); err != nil {
		return err
	}
	err = s.store.remove(ctx, gameID, id)
	if errors.Is(err, apierror.Forbidden) {
		err = errNotEnded
	}
	return err
}

var errNotEnded = apierror.Forbidden.WithReason("the tournament has not ended: cancel it first")

// Get returns a tournament.
func (s *Service) Get(ctx context.Context, caller principal.Caller, gameID, id int64) (Tournament, error) {
	t, err := s.read(ctx, caller, gameID, id)
	if err != nil {
		return Tournament{}, err
	}
	return s.view(ctx, t)
}

// read returns a tournament that the caller may see.
func (s *Service) read(ctx context.Context, caller principal.Caller, gameID, id int64) (*tour, error) {
	if err := s.authorizeRead(ctx, caller, gameID); err != nil {
		return nil, err
	}
	return s.store.load(ctx, gameID, id)
}

// view returns a tournament as it is on the wire.
func (s *Service) view(ctx context.Context, t *tour) (Tournament, error) {
	v := Tournament{
		ID: t.id, GameID: t.gameID, Definition: t.definition, Status: t.status, Version: t.version, Seq: t.seq,
		Position: strconv.FormatInt(t.seq, 10) + "-" + t.nonce, Entrants: t.entrants, CheckedIn: t.checkedIn,
		Round: t.round, CreatedAt: t.createdAt, StartedAt: t.startedAt, EndedAt: t.endedAt,
	}
	if t.reason != "" {
		v.CancelReason = &t.reason
	}
	if t.startedAt != nil && t.definition.Format == FormatSwiss {
		v.Rounds = t.rounds()
	}
	var token *wallet.Token
	if t.definition.EntryTokenID != nil {
		found, err := s.Wallets.TokenByID(ctx, t.gameID, *t.definition.EntryTokenID)
		if err != nil {
			return Tournament{}, err
		}
		token = &found
	}
	v.setAmounts(token, t.potNow(), t.rake)
	return v, nil
}

// potNow returns the fees and the added prize.
func (t *tour) potNow() wallet.Units {
	switch t.status {
	case Settling, Finished:
		return t.pot
	case Cancelling, Cancelled:
		return t.escrow
	default:
		return t.escrow + t.definition.AddedPrizeUnits()
	}
}

// maxScanned bounds how many tournaments a page of a filtered list looks at. Such a page may be
// short and still have a next one.
const maxScanned = 200

// List returns tournaments, newest first, and after which one the next page begins, 0 for none.
// Players see public ones. One whose added prize could not be set aside is in no list.
func (s *Service) List(
	ctx context.Context, caller principal.Caller, q ListQuery,
) (items []Tournament, next int64, err error) {
	if err := s.authorizeRead(ctx, caller, q.GameID); err != nil {
		return nil, 0, err
	}
	if err := q.check(); err != nil {
		return nil, 0, err
	}
	items = []Tournament{}
	for scanned := 0; scanned < maxScanned; {
		ids, err := s.store.listIDs(ctx, q.GameID, q.After, q.Limit+1)
		if err != nil {
			return nil, 0, err
		}
		isLast := len(ids) <= q.Limit
		if !isLast {
			ids = ids[:q.Limit]
		}
		list, err := s.store.loadEach(ctx, q.GameID, ids)
		if err != nil {
			return nil, 0, err
		}
		for i, t := range list {
			q.After = t.id
			// Without its added prize it is not open yet, or the request that made it has failed.
			isHidden := !t.isFunded || caller.Role == principal.Player && t.definition.Visibility != Public
			if isHidden || q.Status != "" && t.status != q.Status {
				continue
			}
			v, err := s.view(ctx, t)
			if err != nil {
				return nil, 0, err
			}
			items = append(items, v)
			if len(items) == q.Limit && (i < len(list)-1 || !isLast) {
				return items, t.id, nil
			}
		}
		if isLast {
			return items, 0, nil
		}
		scanned += len(ids)
	}
	return items, q.After, nil
}

// Entrants returns a page of entrants in the order of joining, and where the next one begins, ""
// for none. It returns invalid_request for an invalid cursor.
func (s *Service) Entrants(
	ctx context.Context, caller principal.Caller, gameID, id int64, cursor string, limit int,
) (list []Entrant, next string, err error) {
	t, err := s.read(ctx, caller, gameID, id)
	if err != nil {
		return nil, "", err
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	stored, last, err := s.store.readEntrants(ctx, t, after, limit)
	if err != nil {
		return nil, "", err
	}
	table, err := s.table(ctx, t)
	if err != nil {
		return nil, "", err
	}
	payouts, err := t.payoutsByUser()
	if err != nil {
		return nil, "", err
	}
	list = make([]Entrant, 0, len(stored))
	for i := range stored {
		e := &stored[i]
		user, err := e.user()
		if err != nil {
			return nil, "", err
		}
		one := Entrant{User: user, JoinedAt: e.joinedAt, CheckedInAt: e.checkedAt, Status: e.state}
		if r, ok := table.byUser[e.userID]; ok && r.Seed > 0 {
			one.Seed = &r.Seed
			if t.definition.Format == FormatElimination && r.Losses > 0 && !e.isOut() {
				one.Status = EntrantOut
			}
		}
		if t.startedAt != nil && t.status == Running && !e.isOut() && one.Status != EntrantOut &&
			(t.cursor == t.entrants || e.state == EntrantCheckedIn) {
			one.Status = EntrantPlaying
		}
		one.setPlace(t, table.byUser[e.userID], payouts[e.userID])
		list = append(list, one)
	}
	if last > 0 {
		next = strconv.FormatInt(last, 10)
	}
	return list, next, nil
}

// setPlace sets the player's result once it is decided. r is nil for a player who never played, and
// in a score tournament.
func (e *Entrant) setPlace(t *tour, r *result, paid payout) {
	if !t.hasPlaces() {
		return
	}
	e.Payout, e.Units = &wallet.Amount{Units: paid.units, Decimals: t.decimals}, &paid.units
	switch {
	case r != nil:
		e.Place = &r.Place
	case paid.place > 0:
		e.Place = &paid.place
	}
}

// parseCursor returns the number that a cursor is, 0 for "".
func parseCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, apierror.InvalidRequest.WithField("cursor", "format", "must be a nextCursor of this list")
	}
	return n, nil
}

// Matches returns a page of the matches of a round, of all rounds for 0, in their order, and where
// the next one begins, "" for none. It returns invalid_request for an invalid cursor.
func (s *Service) Matches(
	ctx context.Context, caller principal.Caller, gameID, id int64, round int, cursor string, limit int,
) (list []Match, next string, err error) {
	t, err := s.read(ctx, caller, gameID, id)
	if err != nil {
		return nil, "", err
	}
	first, last, number := 1, t.round, 1
	if round > 0 {
		first, last = round, min(round, t.round)
	}
	if cursor != "" {
		r, n, ok := ParseMatchID(cursor)
		if !ok || r < first {
			return nil, "", apierror.InvalidRequest.WithField("cursor", "format", "must be a nextCursor of this list")
		}
		first, number = r, n+1
	}
	list = []Match{}
	for r := first; r <= last; r, number = r+1, 1 {
		info, err := s.store.readRound(ctx, t, r)
		if err != nil {
			return nil, "", err
		}
		page, err := s.store.readMatches(ctx, t, r, number, min(info.matches-number+1, limit-len(list)))
		if err != nil {
			return nil, "", err
		}
		list = append(list, page...)
		if len(list) == limit && (number+len(page) <= info.matches || r < last) {
			return list, list[limit-1].ID, nil
		}
	}
	return list, "", nil
}

// Resolve decides an undecided match. Only staff may call it, and names one of the players as the
// winner.
//
// It returns match_not_found, match_decided, tournament_closed, and invalid_request when the winner
// is no player of the match.
func (s *Service) Resolve(
	ctx context.Context, caller principal.Caller, gameID, id int64, matchID string, winnerID int64,
	_ idempotency.Receipt,
) (Match, bool, error) {
	if err := s.authorizeJudge(ctx, caller, gameID, id, "decide a match", false); err != nil {
		return Match{}, false, err
	}
	m, err := redisdb.RetryStale(maxTries, func() (Match, error) {
		t, err := s.store.load(ctx, gameID, id)
		if err != nil {
			return Match{}, err
		}
		m, found, err := s.store.readMatch(ctx, t, matchID)
		switch {
		case err != nil:
			return Match{}, err
		case !found:
			return Match{}, apierror.MatchNotFound
		case m.isDecided() && m.WinnerID != nil && *m.WinnerID == winnerID && *m.Reason == ResolvedByHand:
			return m, nil // sent again
		case !m.has(winnerID):
			return Match{}, apierror.InvalidRequest.WithField("winnerId", "unknown", "does not play in this match")
		}
		states, err := s.store.readStates(ctx, t, []Match{m})
		if err != nil {
			return Match{}, err
		}
		if states[winnerID] == EntrantOut || states[winnerID] == EntrantDisqualified {
			return Match{}, apierror.InvalidRequest.WithField("winnerId", "out", "is out of the tournament")
		}
		err = s.store.report(ctx, noFence, t, decision(&m, winnerID, ResolvedByHand))
		if err != nil {
			return Match{}, err
		}
		s.work.Changed(gameID)
		s.closeRoom(ctx, t, &m)
		m, _, err = s.store.readMatch(ctx, t, matchID)
		return m, err
	})
	return m, false, err
}

// closeRoom cancels the room of a match that was decided without it. A room that stays open does no
// harm: it is free, and ends by its own time.
func (s *Service) closeRoom(ctx context.Context, t *tour, m *Match) {
	if m.RoomID == nil {
		return
	}
	if err := s.Rooms.CancelMatch(ctx, t.gameID, *m.RoomID, rooms.ReasonTournament); err != nil {
		slog.WarnContext(ctx, "the room of a match that is decided stays open", "room", *m.RoomID, "error", err)
	}
}
