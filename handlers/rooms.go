package handlers

import (
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/rooms"
)

// showRoom answers a room with its version as the tag. Of a refusal only whether it was given before is told.
func showRoom(status int, a rooms.Result, err error) (reply, error) {
	if err != nil {
		return reply{replayed: a.Replayed}, err
	}
	return reply{status: status, body: &a.Room, etag: roomTag(&a.Room), replayed: a.Replayed}, nil
}

func roomTag(r *rooms.Room) string { return `"` + strconv.FormatInt(r.Version, 10) + `"` }

func changed(a rooms.Result, err error) (reply, error) { return showRoom(http.StatusOK, a, err) }

func opened(a rooms.Result, err error) (reply, error) { return showRoom(http.StatusCreated, a, err) }

func (e *Server) createRoom(c *call, in *rooms.CreateInput) (reply, error) {
	return opened(e.Rooms.Create(c.ctx(), c.caller, *in, c.receipt))
}

func (e *Server) getRoom(c *call) (reply, error) {
	q := c.query()
	id, code := q.text("roomId"), q.text("code")
	if (id == "") == (code == "") {
		q.refuse("roomId", "required", "is required, or code instead of it")
	}
	if err := q.err(); err != nil {
		return reply{}, err
	}
	var room rooms.Room
	var err error
	if id != "" {
		room, err = e.Rooms.Get(c.ctx(), c.caller, id)
	} else {
		room, err = e.Rooms.GetByCode(c.ctx(), c.caller, code)
	}
	if err != nil {
		return reply{}, err
	}
	c.Writer.Header()["Cache-Control"] = valueRevalidate
	if tag := roomTag(&room); c.unchanged(tag) {
		return reply{status: http.StatusNotModified, etag: tag}, nil
	}
	return showRoom(http.StatusOK, rooms.Result{Room: room}, nil)
}

var valueRevalidate = []string{"private, no-cache"}

// roomQuery reads what both lists of rooms take.
func (c *call) roomQuery() (rooms.ListQuery, error) {
	q := c.query()
	ask := rooms.ListQuery{
		GameID: q.id("gameId"), Status: rooms.Status(q.text("status")), EntryTokenID: q.id("entryTokenId"), MaxEntry: wallet.AmountInput(q.text("maxEntry")),
		HasSeat: q.flag("hasSeat"), Limit: q.limit(), Cursor: q.text("cursor"),
	}
	return ask, q.err()
}

func (e *Server) listRooms(c *call) (reply, error) {
	ask, err := c.roomQuery()
	if err != nil {
		return reply{}, err
	}
	page, err := e.Rooms.List(c.ctx(), c.caller, ask)
	return ok(&page), err
}

func (e *Server) adminRooms(c *call) (reply, error) {
	ask, err := c.roomQuery()
	if err != nil {
		return reply{}, err
	}
	page, err := e.Rooms.AdminList(c.ctx(), c.caller, ask)
	return ok(&page), err
}

// roomInput names a room.
type roomInput struct {
	RoomID string `json:"roomId"`
}

func (in *roomInput) lacks() needs { return needs{}.that(in.RoomID != "", "roomId") }

func (e *Server) joinRoom(c *call, in *roomInput) (reply, error) {
	return changed(e.Rooms.Join(c.ctx(), c.caller, in.RoomID, c.receipt))
}

func (e *Server) leaveRoom(c *call, in *roomInput) (reply, error) {
	return changed(e.Rooms.Leave(c.ctx(), c.caller, in.RoomID, c.receipt))
}

func (e *Server) startRoom(c *call, in *roomInput) (reply, error) {
	return changed(e.Rooms.Start(c.ctx(), c.caller, in.RoomID, c.receipt))
}

func (e *Server) cancelRoom(c *call, in *roomInput) (reply, error) {
	return changed(e.Rooms.Cancel(c.ctx(), c.caller, in.RoomID, c.receipt))
}

func (e *Server) rematch(c *call, in *roomInput) (reply, error) {
	return opened(e.Rooms.Rematch(c.ctx(), c.caller, in.RoomID, c.receipt))
}

type readyInput struct {
	RoomID string `json:"roomId"`
	Ready  *bool  `json:"ready"`
}

func (in *readyInput) lacks() needs {
	return needs{}.that(in.RoomID != "", "roomId").that(in.Ready != nil, "ready")
}

func (e *Server) readyRoom(c *call, in *readyInput) (reply, error) {
	return changed(e.Rooms.Ready(c.ctx(), c.caller, in.RoomID, *in.Ready, c.receipt))
}

type kickInput rooms.KickInput

func (in *kickInput) lacks() needs {
	return needs{}.that(in.RoomID != "", "roomId").that(in.UserID != 0, "userId")
}

func (e *Server) kick(c *call, in *kickInput) (reply, error) {
	return changed(e.Rooms.Kick(c.ctx(), c.caller, rooms.KickInput(*in), c.receipt))
}

type hostInput struct {
	RoomID string `json:"roomId"`
	UserID int64  `json:"userId"`
}

func (in *hostInput) lacks() needs {
	return needs{}.that(in.RoomID != "", "roomId").that(in.UserID != 0, "userId")
}

func (e *Server) transferHost(c *call, in *hostInput) (reply, error) {
	return changed(e.Rooms.TransferHost(c.ctx(), c.caller, in.RoomID, in.UserID, c.receipt))
}

type finishInput struct {
	RoomID  string            `json:"roomId"`
	Results []rooms.Placement `json:"results"`
}

func (in *finishInput) lacks() needs {
	return needs{}.that(in.RoomID != "", "roomId").that(len(in.Results) > 0, "results")
}

func (e *Server) finishRoom(c *call, in *finishInput) (reply, error) {
	return changed(e.Rooms.Finish(c.ctx(), c.caller, in.RoomID, in.Results, c.receipt))
}
