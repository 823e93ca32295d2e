package handlers

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/rooms"
)

// roomResponse returns a room with its version as ETag. An error keeps only whether it was
// replayed.
func roomResponse(status int, result rooms.ChangeResult, err error) (response, error) {
	if err != nil {
		return response{replayed: result.Replayed}, err
	}
	return response{status: status, body: result.Room, etag: roomETag(result.Room), replayed: result.Replayed}, nil
}

// roomETag returns the room's version, with that of its shared state behind it where it has any.
func roomETag(r *rooms.Room) string {
	tag := strconv.FormatInt(r.Version, 10)
	if r.Shared != nil {
		tag += "." + strconv.FormatInt(r.Shared.Version, 10)
	}
	return `"` + tag + `"`
}

func roomChangedResponse(result rooms.ChangeResult, err error) (response, error) {
	return roomResponse(http.StatusOK, result, err)
}

func roomCreatedResponse(result rooms.ChangeResult, err error) (response, error) {
	return roomResponse(http.StatusCreated, result, err)
}

func (s *Server) createRoom(r *request, in *rooms.CreateInput) (response, error) {
	if err := r.countNew(ratelimit.Rooms, "rooms_a_day"); err != nil {
		return response{}, err
	}
	return roomCreatedResponse(s.Rooms.Create(r.ctx(), r.caller, *in, r.receipt))
}

func (s *Server) getRoom(r *request) (response, error) {
	q := r.query()
	id, code, game := q.text("roomId"), q.text("code"), q.id("gameId")
	if (id == "") == (code == "") {
		q.addError("roomId", "required", "is required, or code instead of it")
	}
	if err := q.err(); err != nil {
		return response{}, err
	}
	var room rooms.Room
	var err error
	if id != "" {
		room, err = s.Rooms.Get(r.ctx(), r.caller, id)
	} else {
		room, err = s.Rooms.GetByCode(r.ctx(), r.caller, game, code)
	}
	if err != nil {
		return response{}, err
	}
	r.Writer.Header()["Cache-Control"] = headerRevalidate
	if etag := roomETag(&room); r.hasVersion(etag) {
		return response{status: http.StatusNotModified, etag: etag}, nil
	}
	return roomResponse(http.StatusOK, rooms.ChangeResult{Room: &room}, nil)
}

var headerRevalidate = []string{"private, no-cache"}

// roomListOf reads the parameters of both lists of rooms.
func roomListOf(r *request) (rooms.ListQuery, error) {
	q := r.query()
	mine := q.flag("mine")
	query := rooms.ListQuery{
		Mine:   mine != nil && *mine,
		GameID: q.id("gameId"), Status: rooms.Status(q.text("status")), EntryTokenID: q.id("entryTokenId"),
		MaxEntry: wallet.AmountInput(q.text("maxEntry")), HasFreeSeat: q.flag("hasSeat"), Limit: q.limit(),
		Cursor: q.text("cursor"),
	}
	return query, q.err()
}

// A list that reads more than longScan rooms counts as longScanPermits requests: its filter fits so
// few rooms that it costs the store as much as several other lists.
const (
	longScan        = 100 // rooms
	longScanPermits = 5
)

// roomPage returns a page, and charges the caller for a long scan.
func (r *request) roomPage(page rooms.Page, err error) (response, error) {
	if page.Scanned > longScan {
		r.chargeRateLimit(longScanPermits - 1)
	}
	return okResponse(&page), err
}

func (s *Server) listRooms(r *request, query rooms.ListQuery) (response, error) {
	return r.roomPage(s.Rooms.List(r.ctx(), r.caller, query))
}

func (s *Server) listRoomsAsAdmin(r *request, query rooms.ListQuery) (response, error) {
	return r.roomPage(s.Rooms.AdminList(r.ctx(), r.caller, query))
}

// roomInput is the body of the operations that need only a room.
type roomInput struct {
	RoomID string `json:"roomId" required:"true"`
}

// decodePlain decodes {"roomId":"…"} with letters, digits and hyphens.
func (in *roomInput) decodePlain(body []byte) bool {
	id, ok := bytes.CutPrefix(body, []byte(`{"roomId":"`))
	if ok {
		id, ok = bytes.CutSuffix(id, []byte(`"}`))
	}
	if !ok || bytes.ContainsFunc(id, isNotPlain) {
		return false
	}
	in.RoomID = string(id)
	return true
}

func isNotPlain(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

func (s *Server) joinRoom(r *request, in *roomInput) (response, error) {
	if err := r.countNew(ratelimit.Joins, "joins_a_day"); err != nil {
		return response{}, err
	}
	return roomChangedResponse(r.chargeRoom(s.Rooms.Join(r.ctx(), r.caller, in.RoomID, r.receipt)))
}

func (s *Server) leaveRoom(r *request, in *roomInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.Leave(r.ctx(), r.caller, in.RoomID, r.receipt)))
}

func (s *Server) startRoom(r *request, in *roomInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.Start(r.ctx(), r.caller, in.RoomID, r.receipt)))
}

func (s *Server) cancelRoom(r *request, in *roomInput) (response, error) {
	return roomChangedResponse(r.chargeSeats(s.Rooms.Cancel(r.ctx(), r.caller, in.RoomID, r.receipt)))
}

func (s *Server) rematchRoom(r *request, in *roomInput) (response, error) {
	if err := r.countNew(ratelimit.Rooms, "rooms_a_day"); err != nil {
		return response{}, err
	}
	return roomCreatedResponse(r.chargeSeats(s.Rooms.Rematch(r.ctx(), r.caller, in.RoomID, r.receipt)))
}

type readyInput struct {
	RoomID string `json:"roomId" required:"true"`
	Ready  *bool  `json:"ready" required:"true"`
}

func (s *Server) setReady(r *request, in *readyInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.Ready(r.ctx(), r.caller, in.RoomID, *in.Ready, r.receipt)))
}

type kickInput rooms.KickInput

func (s *Server) kickPlayer(r *request, in *kickInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.Kick(r.ctx(), r.caller, rooms.KickInput(*in), r.receipt)))
}

type transferHostInput struct {
	RoomID string `json:"roomId" required:"true"`
	UserID int64  `json:"userId" required:"true"`
}

func (s *Server) transferHost(r *request, in *transferHostInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.TransferHost(r.ctx(), r.caller, in.RoomID, in.UserID, r.receipt)))
}

type stateInput rooms.StateInput

func (s *Server) setSharedState(r *request, in *stateInput) (response, error) {
	isPlayer := r.caller.Role == principal.Player
	if isPlayer {
		if err := r.takeRateLimit(ratelimit.StateBytes); err != nil {
			return response{}, err
		}
	}
	result, err := r.chargeRoom(s.Rooms.SetState(r.ctx(), r.caller, rooms.StateInput(*in), r.receipt))
	if isPlayer && err == nil {
		r.chargeClass(ratelimit.StateBytes, in.sizeBytes()-1)
	}
	return roomChangedResponse(result, err)
}

type turnInput rooms.TurnInput

func (s *Server) setTurn(r *request, in *turnInput) (response, error) {
	return roomChangedResponse(r.chargeRoom(s.Rooms.SetTurn(r.ctx(), r.caller, rooms.TurnInput(*in), r.receipt)))
}

type finishInput struct {
	RoomID  string            `json:"roomId" required:"true"`
	Results []rooms.Placement `json:"results" required:"true"`
}

func (in *finishInput) Validate() error { return checkPlacements(in.Results) }

// checkPlacements returns invalid_request for players and places that no room has.
func checkPlacements(results []rooms.Placement) error {
	var errs apierror.FieldErrors
	for i, r := range results {
		if r.UserID < 1 {
			errs.Add(fmt.Sprintf("results[%d].userId", i), "range", "must be a positive integer")
		}
		if r.Place < 1 {
			errs.Add(fmt.Sprintf("results[%d].place", i), "range", "must be 1 or more")
		}
	}
	return errs.Err()
}

// resolveInput has either results or refund.
type resolveInput struct {
	Results []rooms.Placement `json:"results"`
	Refund  bool              `json:"refund"`
}

func (in *resolveInput) Validate() error {
	if in.Refund && len(in.Results) > 0 {
		return apierror.InvalidRequest.WithField("refund", "conflict", "must not be true where there are results")
	}
	if !in.Refund && len(in.Results) == 0 {
		return missing("results")
	}
	return checkPlacements(in.Results)
}

func (s *Server) resolveRoom(r *request, in *resolveInput) (response, error) {
	decision := rooms.ResolveInput{Placements: in.Results, Refund: in.Refund}
	return roomChangedResponse(r.chargeSeats(s.Rooms.Resolve(r.ctx(), r.caller, r.Param("roomId"), decision, r.receipt)))
}

func (s *Server) finishRoom(r *request, in *finishInput) (response, error) {
	return roomChangedResponse(r.chargeSeats(s.Rooms.Finish(r.ctx(), r.caller, in.RoomID, in.Results, r.receipt)))
}
