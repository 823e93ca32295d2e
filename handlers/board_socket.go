package handlers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/realtime"
)

const (
	realtimePath = "/api/v1/realtime"

	boardsPerConnection = 8 // that it may watch
)

// Run shows the watchers of leaderboards what changes, until ctx ends.
func (s *Server) Run(ctx context.Context) error { return s.liveBoards.Run(ctx) }

// boardTopic returns the name of a leaderboard among the state topics of the hub.
func boardTopic(gameID int64, board string) string {
	return "board:" + strconv.FormatInt(gameID, 10) + "." + board
}

// boardInput names a leaderboard.
type boardInput struct {
	Board string `json:"board" required:"true"`
}

// watchBoardInput says what to show of a leaderboard.
type watchBoardInput struct {
	boardInput
	Top    int  `json:"top"`    // entries from the first on
	Around *int `json:"around"` // entries around the player's own; absent: none
}

func (in *watchBoardInput) Validate() error {
	var errs apierror.FieldErrors
	if in.Top < 1 || in.Top > leaderboards.MaxLiveTop {
		errs.Add("top", "range", fmt.Sprintf("must be 1 to %d", leaderboards.MaxLiveTop))
	}
	if in.Around != nil && (*in.Around < 1 || *in.Around > leaderboards.MaxLiveAround) {
		errs.Add("around", "range", fmt.Sprintf("must be 1 to %d", leaderboards.MaxLiveAround))
	}
	return errs.Err()
}

// boardStateData is the data of the reply to board.subscribe, and of board.changed.
type boardStateData struct {
	Mode realtime.SubscribeMode `json:"mode"`
	leaderboards.LiveSnapshot
}

// watchBoard subscribes to what a leaderboard shows.
func watchBoard(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *watchBoardInput,
) (any, error) {
	game, view := s.caller.GameID, leaderboards.View{Top: in.Top}
	if in.Around != nil {
		view.Around, view.UserID = *in.Around, s.caller.UserID
	}
	begin := func(now leaderboards.LiveSnapshot) error {
		reply := socketReply{ReplyTo: m.replyTo(), OK: true, Data: boardStateData{realtime.ModeSnapshot, now}}
		return client.SubscribeState(realtime.StateSubscription{
			Topic: boardTopic(game, in.Board), Variant: view, Reply: reply.encode(),
		})
	}
	return noReply, s.server.liveBoards.Watch(ctx, s.caller, game, in.Board, view, begin) // begin has sent it
}

func unwatchBoard(
	_ context.Context, s *clientHandler, client *realtime.Client, _ *message, in *boardInput,
) (any, error) {
	client.UnsubscribeState(boardTopic(s.caller.GameID, in.Board))
	return struct{}{}, nil
}

// boardEvent is an event to those who watch a leaderboard.
type boardEvent struct {
	Type  string    `json:"type"`
	Board string    `json:"board"`
	At    time.Time `json:"at"`
	Data  any       `json:"data"`
}

type seasonData struct {
	Season leaderboards.Season `json:"season"`
}

func encodeBoardEvent(t events.Type, board string, data any) []byte {
	frame, err := wire.Marshal(boardEvent{t.Name, board, time.Now(), data})
	if err != nil {
		panic(err) // what a leaderboard shows is always encodable
	}
	return frame
}

// boardAudience is the watchers of leaderboards on the sockets of this node.
type boardAudience struct{ hub *realtime.Hub }

func (a boardAudience) Views(gameID int64, board string) []leaderboards.View {
	variants := a.hub.StateVariants(boardTopic(gameID, board))
	views := make([]leaderboards.View, len(variants))
	for i, v := range variants {
		views[i] = v.(leaderboards.View)
	}
	return views
}

func (a boardAudience) Show(gameID int64, board string, v leaderboards.View, now leaderboards.LiveSnapshot) {
	frame := encodeBoardEvent(events.BoardChanged, board, boardStateData{realtime.ModeSnapshot, now})
	a.hub.PublishState(boardTopic(gameID, board), v, frame)
}

func (a boardAudience) ShowSeasonEnded(gameID int64, board string, s leaderboards.Season) {
	a.hub.PublishStateEvent(boardTopic(gameID, board), encodeBoardEvent(events.BoardSeasonEnded, board, seasonData{s}))
}

func (a boardAudience) ShowSeasonStarted(gameID int64, board string, s leaderboards.Season) {
	a.hub.PublishStateEvent(boardTopic(gameID, board), encodeBoardEvent(events.BoardSeasonStarted, board, seasonData{s}))
}

// End sends an error without replyTo, as to those who may no longer see a room.
func (a boardAudience) End(gameID int64, board string, reason error) {
	apiErr, _ := toAPIError(reason)
	refused := socketReply{Error: newProblem(apiErr.WithMember("board", board), realtimePath, uuid.NewString())}
	a.hub.EndStates(boardTopic(gameID, board), refused.encode())
}
