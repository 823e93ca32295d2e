package rooms

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/validate"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
)

// Why the room of a match is cancelled by its tournament.
const (
	ReasonTournament = "tournament" // it goes on without the match
	ReasonNoShow     = "no_show"    // somebody was not there at the deadline
)

// Why a room that has started is cancelled by staff, or without a decision of it.
const (
	ReasonServer          = "server"
	ReasonOperator        = "operator"
	ReasonDisputeRefunded = "dispute_refunded"
)

// MatchInput describes the free room of a match. Its id follows from GameID, TournamentID, MatchID,
// Attempt, RoundStart and HasFeed.
type MatchInput struct {
	GameID       int64
	TournamentID int64
	MatchID      string // 1 to 32 of A-Z, a-z, 0-9, _ and -
	Attempt      int    // from 1; each has a room of its own
	RoundStart   time.Time
	Players      []int64       // 2 to MaxRoomPlayers, for each of whom a seat is reserved; the first is the host
	Metadata     wire.RawJSON  // a JSON object of at most 4 KiB; default: {}
	SettledBy    SettledBy     // default: server
	Visibility   Visibility    // default: public
	Deadline     time.Time     // until which the players may sit down
	MatchTimeout time.Duration // from the start to the end of a room without a result
	HasStakes    bool          // the tournament has a fee or a prize
	HasFeed      *bool         // its events also go to the game's server; nil: as the random bits of its id say
	Dispute      time.Duration // from a contradiction to the end of a room that nobody decides; 0: that of all rooms
}

// matchReserve is the time after its deadline at which the sweep cancels a match that nobody
// closed.
const matchReserve = time.Hour

var matchIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// consumer returns the result consumer of the room.
func (in *MatchInput) consumer() string {
	return MatchConsumerPrefix + strconv.FormatInt(in.TournamentID, 10) + "." + in.MatchID + "." + strconv.Itoa(in.Attempt)
}

// draft returns the room, or invalid_request with every faulty field.
func (in *MatchInput) draft(now time.Time, retention time.Duration) (roomDraft, error) {
	var fieldErrors apierror.FieldErrors
	for _, m := range []struct {
		field   string
		isValid bool
		must    string
	}{
		{"gameId", in.GameID > 0, "must be a game"},
		{"tournamentId", in.TournamentID > 0, "must be a tournament"},
		{"matchId", matchIDPattern.MatchString(in.MatchID), "must be 1 to 32 of A-Z, a-z, 0-9, _ and -"},
		{"attempt", in.Attempt > 0, "must be 1 or more"},
		{"roundStart", !in.RoundStart.IsZero(), "is required"},
		{"deadline", !in.Deadline.IsZero(), "is required"},
		{"matchTimeout", in.MatchTimeout >= time.Millisecond, "must be a millisecond or more"},
		{
			"players", len(in.Players) >= 2 && len(in.Players) <= MaxRoomPlayers,
			fmt.Sprintf("must be 2 to %d", MaxRoomPlayers),
		},
		{"players", slices.IndexFunc(in.Players, func(id int64) bool { return id < 1 }) < 0, "must be players"},
		{"players", len(slices.Compact(slices.Sorted(slices.Values(in.Players)))) == len(in.Players), "must differ"},
	} {
		if !m.isValid {
			fieldErrors.Add(m.field, "range", m.must)
		}
	}
	wait := max(0, in.Deadline.Sub(now)) + matchReserve
	n := roomDraft{
		gameID: in.GameID, maxPlayers: len(in.Players), minPlayers: len(in.Players),
		friendsOnly: true, // of nobody: nobody has made the room
		autoStart:   true, visibility: in.Visibility, settledBy: in.SettledBy, payoutBps: []int{wallet.FullBps},
		idleTimeout: wait, maxAge: wait, matchTimeout: in.MatchTimeout, retention: retention, consumer: in.consumer(),
		stakes: withoutStakes,
	}
	if in.HasStakes {
		n.stakes = withStakes
	}
	n.prepareVisibility(&fieldErrors)
	n.prepareSettledBy(&fieldErrors)
	n.metadataJSON = string(validate.Object(&fieldErrors, "metadata", in.Metadata, maxMetadataKiB))
	return n, fieldErrors.Err()
}

// isMatch reports whether the room is that of a match.
func (r *Room) isMatch() bool { return strings.HasPrefix(r.consumer, MatchConsumerPrefix) }

// authorizeServer returns forbidden if a server key would end the match of a tournament with stakes
// whose players report the result. By a result, or by ending the matches of others without one, it
// could steer its own players to a prize that the operator promised. The tournament lets the server
// decide matches where that is allowed.
func (r *Room) authorizeServer(caller principal.Caller) error {
	if caller.Role == principal.Server && r.isMatch() && r.HasStakes && r.SettledBy == SettledByConsensus {
		return apierror.Forbidden.WithReason("the players report the result of the match: only its tournament ends it")
	}
	return nil
}

// seatedPlayers returns the user ids of those who sat down, in seating order.
func (r *Room) seatedPlayers() []int64 {
	ids := []int64{}
	for _, s := range r.Seats {
		if s.State != SeatReserved {
			ids = append(ids, s.UserID)
		}
	}
	return ids
}

// MatchRoomID returns the id of the room of a match: the same for the same match, on every node. It
// returns store_unavailable.
func (s *Service) MatchRoomID(ctx context.Context, in MatchInput) (string, error) {
	return s.store.matchRoomID(ctx, in)
}

// OpenMatch opens the room of a match, which starts when all of its players have taken their seats.
// Repeating it returns the same room unchanged.
//
// The room counts against no player's quota. Its seats are for its players only, and a player who
// gives a seat up does not get it back. Before the start only its deadline, staff and its
// tournament can end it. After the start it is finished when one player is left. It has no rematch.
//
// OpenMatch returns invalid_request with every faulty field, and store_full.
func (s *Service) OpenMatch(ctx context.Context, in MatchInput) (Room, error) {
	n, err := in.draft(time.Now(), s.retention)
	if err == nil {
		err = s.admitNew(in.GameID)
	}
	if err != nil {
		return Room{}, err
	}
	profiles := make([]string, len(in.Players))
	for i, id := range in.Players {
		profiles[i], err = s.readProfileJSON(ctx, id)
		if errors.Is(err, apierror.UserNotFound) { // who is gone does not sit down
			profiles[i], err = string(users.AppendProfile(nil, users.Profile{ID: id})), nil
		}
		if err != nil {
			return Room{}, err
		}
	}
	n.creatorProfileJSON = profiles[0]
	r, err := retryStale(func(scriptResult) (scriptResult, error) { return s.store.openMatch(ctx, in, n, profiles) })
	return roomOf(r, err)
}

// roomOf returns the room of a result, or the error of its status.
func roomOf(r scriptResult, err error) (Room, error) {
	if err == nil {
		err = scriptError(r)
	}
	if err != nil {
		return Room{}, err
	}
	return *r.room, nil
}

// CloseMatch cancels the room of a match with ReasonNoShow if it has not started by its deadline,
// by the store's clock. Before the deadline, and when the room has started or ended, it changes
// nothing. It returns the status of the room after that, and the players who took their seats. It
// returns room_not_found.
func (s *Service) CloseMatch(
	ctx context.Context, gameID int64, roomID string,
) (status Status, present []int64, err error) {
	c, room, err := s.matchCommand(ctx, gameID, roomID)
	if err != nil {
		return "", nil, err
	}
	for range maxScriptAttempts {
		if room.Status != Created {
			return room.Status, room.seatedPlayers(), nil
		}
		r, err := s.store.closeMatch(ctx, c, room.seatedUsers())
		if err != nil {
			return "", nil, err
		}
		if !r.isStale() {
			room, err = roomOf(r, nil)
			return room.Status, room.seatedPlayers(), err
		}
		room = *r.room
	}
	return "", nil, apierror.VersionConflict
}

// CancelMatch ends the room of a match without a result, for ReasonTournament or ReasonNoShow. A
// room that has ended stays as it is. It returns room_not_found.
func (s *Service) CancelMatch(ctx context.Context, gameID int64, roomID, reason string) error {
	if reason != ReasonTournament && reason != ReasonNoShow {
		return fmt.Errorf("cancel a match: there is no reason %q", reason)
	}
	c, room, err := s.matchCommand(ctx, gameID, roomID)
	if err != nil {
		return err
	}
	for range maxScriptAttempts {
		if room.Status.Ended() {
			return nil
		}
		r, err := s.store.cancel(ctx, c, &room, reason)
		if err != nil {
			return err
		}
		if !r.isStale() {
			if err := scriptError(r); !errors.Is(err, apierror.RoomEnded) {
				return err
			}
			return nil
		}
		room = *r.room
	}
	return apierror.VersionConflict
}

// MatchState is the stage of the room of a match.
type MatchState struct {
	Status      Status
	ReportUntil time.Time // until when a player may contradict a report; zero without one
	DisputedAt  time.Time // zero unless it is disputed
	Ended       Ended     // the end of a room that has ended
}

// ReadMatch returns the state of the room of a match. If the time for reports has passed, it first
// closes the report window. It returns room_not_found.
func (s *Service) ReadMatch(ctx context.Context, gameID int64, roomID string) (MatchState, error) {
	c, room, err := s.matchCommand(ctx, gameID, roomID)
	if err != nil {
		return MatchState{}, err
	}
	for range maxScriptAttempts {
		if !room.hasWindow() {
			return room.matchState(), nil
		}
		r, err := s.store.closeWindow(ctx, c, &room)
		if err != nil {
			return MatchState{}, err
		}
		if room = *r.room; !r.isStale() {
			return room.matchState(), nil
		}
	}
	return MatchState{}, apierror.VersionConflict
}

func (r *Room) matchState() MatchState {
	state := MatchState{Status: r.Status}
	switch {
	case r.Status == Started:
		state.ReportUntil = r.ReportUntil
	case r.Status == Disputed:
		state.DisputedAt = r.DisputedAt
	case r.Status.Ended():
		state.Ended = Ended{
			RoomID: r.RoomID, GameID: r.GameID, Consumer: r.consumer, Status: r.Status, Reason: r.CancelReason,
			SettledBy: r.SettledBy, StartedAt: r.StartedAt, EndedAt: r.FinishedAt,
		}
		for _, p := range r.Placements() {
			state.Ended.Places = append(state.Ended.Places, Place{UserID: p.UserID, Place: p.Place})
		}
	}
	return state
}

// matchCommand returns a command of a tournament on the room of a match, and the room.
func (s *Service) matchCommand(ctx context.Context, gameID int64, roomID string) (command, Room, error) {
	tournament := principal.Caller{Role: principal.Server, GameID: gameID}
	c, err := s.store.newCommand(tournament, roomID, idempotency.Receipt{})
	if err != nil {
		return command{}, Room{}, err
	}
	room, err := s.store.read(ctx, roomID)
	if err == nil && (room.GameID != gameID || !room.isMatch()) {
		err = apierror.RoomNotFound
	}
	return c, room, err
}
