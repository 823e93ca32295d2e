package handlers

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/rooms"
)

// staffWrite is a write of staff while it runs.
type staffWrite struct {
	route  *route
	input  any  // decoded; nil for an operation without a body
	before any  // what read returned
	begun  bool // the request was valid and new, so that it may change something
}

// recordInTrail makes a route leave a record of what staff changed by it.
func (s *Server) recordInTrail(rt *route) {
	handle, hasBody := rt.handle, rt.method != http.MethodDelete
	rt.handle = func(r *request) (resp response, err error) {
		if !r.caller.HasRole(principal.Server, principal.Operator) {
			return handle(r)
		}
		w := &staffWrite{route: rt}
		if hasBody {
			r.staffWrite = w // decodeThen calls begin when the request is valid and new
		} else if err := w.begin(r, nil); err != nil {
			return response{}, err
		}
		finished := false
		defer func() {
			if !finished { // a panic
				err = apierror.Internal
			}
			if w.begun {
				s.recordStaffWrite(r, w, resp, err)
			}
		}()
		resp, err = handle(r)
		finished = true
		return resp, err
	}
}

// begin reads the state that the write is about to change. It returns only errors of the store; the
// operation itself reports a missing or forbidden target.
func (w *staffWrite) begin(r *request, input any) error {
	w.input = input
	if w.route.readBefore != nil {
		resp, err := w.route.readBefore(r)
		if err == nil {
			w.before = resp.body
		} else if apiErr, _ := toAPIError(err); apiErr.Status >= http.StatusInternalServerError {
			return err
		}
	}
	w.begun = true
	return nil
}

// recordStaffWrite records a write that changed something or may have. It does not record a failed
// request or one that got a stored response by its Idempotency-Key.
func (s *Server) recordStaffWrite(r *request, w *staffWrite, resp response, err error) {
	if resp.replayed || err != nil && !mayHaveChanged(err) {
		return
	}
	if session, ok := resp.body.(*sessionView); ok && err == nil && !session.isChange {
		return // a player who was known signed in
	}
	outcome := trail.Done
	describe := func() (before, after any) { return w.describe(resp.body) }
	if err != nil {
		outcome, resp.body = trail.Unknown, nil
		describe = w.describeRequested
	}
	before, after := describe()
	// A client that goes away does not cancel the record.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.ctx()), r.startedAt.Add(storeResponseTimeout))
	defer cancel()
	s.Trail.Record(ctx, trail.Write{
		Caller: r.caller, Action: w.route.action, Target: w.target(r, resp.body), Before: before, After: after,
		RequestID: r.requestID, Outcome: outcome, IsRoutine: w.route.isRoutine,
	})
}

// mayHaveChanged reports whether an error leaves open if the request has changed something.
func mayHaveChanged(err error) bool {
	apiErr, _ := toAPIError(err)
	return apiErr.Status >= http.StatusInternalServerError && apiErr.Code != apierror.StoreFull.Code
}

// target returns what a write changed, by the body of its response or by its path.
func (w *staffWrite) target(r *request, body any) string {
	switch b := body.(type) {
	case *gameWithKeyView:
		return targetOf("game", b.Game.ID)
	case *sessionView:
		return targetOf("user", b.User.ID)
	case accountView:
		return targetOf("user", b.ID)
	case *assets.Asset:
		return targetOf("asset", b.ID)
	case *tokenView:
		return "token:" + b.Code
	case *rooms.Room:
		return "room:" + b.RoomID
	case *leaderboards.Leaderboard:
		return boardTarget(strconv.FormatInt(b.GameID, 10), b.Board)
	}
	if target := tournamentTargetOf(r, body); target != "" {
		return target
	}
	if board := r.Param("board"); board != "" {
		game := cmp.Or(r.Param("gameId"), r.Request.URL.Query().Get("gameId"), strconv.FormatInt(r.caller.GameID, 10))
		return boardTarget(game, board)
	}
	if strings.HasPrefix(r.route.path, consoleAdminPath) {
		return consoleTarget
	}
	for _, p := range []struct{ param, kind string }{
		{"assetId", "asset"}, {"gameId", "game"}, {"userId", "user"}, {"tokenId", "token"},
	} {
		if value := r.Param(p.param); value != "" {
			return p.kind + ":" + value
		}
	}
	switch in := w.input.(type) {
	case inputWithRoom:
		return "room:" + in.roomID()
	case *linkInput:
		if in.UserID != nil {
			return targetOf("user", *in.UserID)
		}
	}
	return ""
}

func targetOf(kind string, id int64) string { return kind + ":" + strconv.FormatInt(id, 10) }

// describe returns the members that a write changed, as the response of the operation shows them.
// It ignores bodies of unknown types, so that no secret is recorded.
func (w *staffWrite) describe(body any) (before, after any) {
	if strings.Contains(w.route.path, "/leaderboards") {
		return w.describeBoardWrite(body)
	}
	if strings.Contains(w.route.path, "/tournaments") {
		return w.describeTournamentWrite(body)
	}
	switch b := body.(type) {
	case *gameWithKeyView: // the key is not part of the game
		return changedMembers(w.before, &b.Game)
	case *gameView, *assets.Asset, *tokenView, *playerView, *limits.Limits:
		return changedMembers(w.before, b)
	case *sessionView:
		return nil, &b.User
	case accountView:
		return nil, &b
	case *progress.SaveInfo:
		return map[string]any{"version": b.Version - 1}, b
	case *wallet.ChangeResult:
		return w.describeBalance(b)
	case *rooms.Room:
		return w.describeRoom(b)
	case *acceptedAuditView:
		in, _ := w.input.(*acceptAuditInput)
		return nil, map[string]any{"accepted": b.Accepted, "reason": in.Reason}
	case *consoleLinkView: // the link is a secret
		return nil, map[string]any{"expiresIn": b.ExpiresIn}
	case nil: // of endUserSessions, closeConsoleSessions, deleteAsset and sendUserMessage
		if in, ok := w.input.(*userMessageInput); ok { // what a player reads is not kept
			return nil, map[string]any{"op": in.Op}
		}
		if w.route.action == "deleteAsset" {
			return w.before, map[string]any{"deleted": true}
		}
		return nil, map[string]any{"sessions": "ended"}
	default:
		return nil, nil
	}
}

// describeRequested is describe of what may have happened or not.
func (w *staffWrite) describeRequested() (before, after any) {
	if in, ok := w.input.(*adjustmentInput); ok {
		return nil, map[string]any{"requested": in}
	}
	return nil, nil
}

// describeBalance returns the player's available balance before and after. The amount of the
// request is valid because the wallet accepted it.
func (w *staffWrite) describeBalance(change *wallet.ChangeResult) (before, after any) {
	in, balance := w.input.(*adjustmentInput), change.Balance
	units, _ := in.Amount.ToUnits(balance.Decimals)
	if w.route.action == "credit" {
		units = -units
	}
	return map[string]any{"volume": balance.AmountOf(balance.SpendableUnits + units)},
		map[string]any{
			"volume": balance.Spendable, "tokenId": balance.Code, "amount": in.Amount, "reason": in.Reason,
		}
}

// inputWithRoom is the body of an operation on a room.
type inputWithRoom interface{ roomID() string }

func (in *roomInput) roomID() string         { return in.RoomID }
func (in *kickInput) roomID() string         { return in.RoomID }
func (in *transferHostInput) roomID() string { return in.RoomID }
func (in *finishInput) roomID() string       { return in.RoomID }

// roomChange has the values of a room that staff can change.
type roomChange struct {
	Status       rooms.Status  `json:"status"`
	HostID       int64         `json:"hostId"`
	Participants []int64       `json:"participants"` // user ids of the active seats
	Version      int64         `json:"version"`
	TotalWager   wallet.Amount `json:"totalWager"`
	Rake         wallet.Amount `json:"rake"`
	Reason       string        `json:"reason"`

	Results []rooms.Placement `json:"results"`
}

func newRoomChange(r *rooms.Room) *roomChange {
	return &roomChange{
		Status: r.Status, HostID: r.HostID, Participants: r.ActivePlayers(), Version: r.Version, Reason: r.CancelReason,
		TotalWager: wallet.Amount{Units: r.Pot, Decimals: r.TokenDecimals},
		Rake:       wallet.Amount{Units: r.Rake, Decimals: r.TokenDecimals}, Results: r.Placements(),
	}
}

func (w *staffWrite) describeRoom(room *rooms.Room) (before, after any) {
	if was, ok := w.before.(*rooms.Room); ok {
		return changedMembers(newRoomChange(was), newRoomChange(room))
	}
	return map[string]any{"status": rooms.Started}, newRoomChange(room)
}

// changedMembers returns the members in which two states differ, those inside of "settings" each by
// its own path. Without a state before it returns the whole state after.
func changedMembers(before, after any) (was, is any) {
	if before == nil {
		return nil, after
	}
	b, a := flatten(before), flatten(after)
	for name, value := range a {
		if bytes.Equal(b[name], value) {
			delete(a, name)
			delete(b, name)
		}
	}
	return b, a
}

// flatten returns the members of a state by name, those of its settings as "settings.<name>". It
// returns none if the state cannot be encoded, which is not expected because a response encoded it.
func flatten(state any) map[string]wire.RawJSON {
	members := map[string]wire.RawJSON{}
	text, _ := wire.Marshal(state)
	_ = wire.Unmarshal(text, &members)
	var settings map[string]wire.RawJSON
	if wire.Unmarshal(members["settings"], &settings) == nil && settings != nil {
		delete(members, "settings")
		for name, value := range settings {
			members["settings."+name] = value
		}
	}
	return members
}

func (s *Server) readInputRoom(r *request) (response, error) {
	room, err := s.Rooms.Get(r.ctx(), r.caller, r.staffWrite.input.(inputWithRoom).roomID())
	return okResponse(&room), err
}

func (s *Server) readPathRoom(r *request) (response, error) {
	room, err := s.Rooms.Get(r.ctx(), r.caller, r.Param("roomId"))
	return okResponse(&room), err
}

func (s *Server) readPathPlayer(r *request) (response, error) {
	u, err := s.visiblePathUser(r)
	return okResponse(newPlayerView(u)), err
}

// listTrail lists what staff changed, newest first.
func (s *Server) listTrail(r *request) (response, error) {
	q := r.query()
	query := trail.Query{
		Actor: q.text("actor"), Target: q.text("target"), GameID: q.id("gameId"), From: q.time("from"),
		BeforeID: q.afterID(), Limit: q.limit(),
	}
	if err := q.err(); err != nil {
		return response{}, err
	}
	page, err := s.Trail.List(r.ctx(), r.caller, query)
	return okResponse(newPage(page.Records, page.NextBefore)), err
}

// time returns a time in the form of RFC 3339, or the zero time when it is not given.
func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.addError(name, "format", "must be a time such as 2026-11-20T17:32:26Z")
	}
	return t
}
