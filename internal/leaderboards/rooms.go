package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/wire"
)

// RoomResult is a room that was finished, for the boards that the settings of its game name.
type RoomResult struct {
	GameID        int64
	RoomID        string
	EndedAt       time.Time // names the season
	ByConsensus   bool      // the result is the word of the players: it feeds wins alone
	TokenDecimals int       // of the payouts
	Players       []RoomPlayer
}

// RoomPlayer is what a player reached in a room.
type RoomPlayer struct {
	UserID      int64
	Place       int    // from 1; 0 for a player who forfeited, who feeds nothing
	Score       string // a JSON number; "" for none
	PayoutUnits int64  // minor units of the token
}

// roomCaller is the caller in the receipts of scores of rooms.
const roomCaller = "room"

// AddRoomResult adds a score for each player of a finished room to each board that the settings of
// the game name now. The same room adds it once, however often it comes.
//
// A result that is late counts in the season in which the room ended, until its grace time is over;
// then in the current one. A room that ended before the first season of a board does not count
// there, and neither does a player who is gone.
//
// A board or a player that cannot be fed holds up no other. AddRoomResult returns game_not_found,
// and of the boards board_not_found, forbidden (its writers do not name rooms), score_rejected,
// board_full and season_closed, but an outage before any of these.
func (s *Service) AddRoomResult(ctx context.Context, r RoomResult) error {
	game, err := s.games.Find(ctx, r.GameID)
	if err != nil {
		return err
	}
	var errs feedErrors
	for _, feed := range game.Settings.Boards {
		if r.ByConsensus && feed.From != games.FromWin {
			continue
		}
		s.feedBoard(ctx, feed, &r, &errs)
	}
	return errs.first()
}

// feedErrors keeps the first error of each kind.
type feedErrors struct{ final, other error }

func (e *feedErrors) add(err error) {
	if apierror.IsFinal(err) {
		e.final = cmp.Or(e.final, err)
	} else {
		e.other = cmp.Or(e.other, err)
	}
}

// first returns an error after which the room has to come again before one that stays.
func (e *feedErrors) first() error { return cmp.Or(e.other, e.final) }

// feedBoard adds the scores of a room to a board.
func (s *Service) feedBoard(ctx context.Context, feed games.BoardFeed, r *RoomResult, errs *feedErrors) {
	b, err := s.load(ctx, r.GameID, feed.Board)
	if errors.Is(err, apierror.BoardNotFound) {
		err = apierror.BoardNotFound.WithReason("the game has no leaderboard %q", feed.Board)
	}
	if err != nil {
		errs.add(err)
		return
	}
	_, d := b.newest()
	first := b.seasons[0]
	switch {
	case !d.mayWrite(WriterRooms):
		errs.add(apierror.Forbidden.WithReason("the leaderboard %q takes no scores of rooms", feed.Board))
		return
	case first.number == 1 && r.EndedAt.UnixMilli() < first.opens:
		return
	}
	for _, p := range r.Players {
		if score, ok := r.scoreOf(p, feed.From, d.Decimals); ok {
			errs.add(s.feedPlayer(ctx, b, d, r, p.UserID, score))
		}
	}
}

// scoreOf returns the score of a player for a board, and false when there is none. A payout is
// rounded down to the decimals of the board.
func (r *RoomResult) scoreOf(p RoomPlayer, from games.FeedSource, decimals int) (score ScoreInput, ok bool) {
	switch {
	case p.Place == 0:
		return "", false
	case from == games.FromScore:
		return ScoreInput(p.Score), p.Score != ""
	case from == games.FromWin && p.Place == 1:
		return "1", true
	case from == games.FromWin:
		return "0", true
	}
	paid := int64(0)
	for _, other := range r.Players {
		paid += other.PayoutUnits
	}
	units, digits := p.PayoutUnits, r.TokenDecimals
	for ; digits > decimals; digits-- {
		units /= 10
	}
	return ScoreInput(wire.AppendDecimal(nil, units, digits)), paid > 0 // else it was a free room
}

// feedPlayer adds the score of a player of a room to a board.
func (s *Service) feedPlayer(
	ctx context.Context, b *board, d *Definition, r *RoomResult, userID int64, score ScoreInput,
) error {
	if _, problem := score.toUnits(d.Decimals); problem != "" {
		return apierror.ScoreRejected.WithReason("the score %s of player %d %s", score, userID, problem)
	}
	game, err := s.players.Game(ctx, userID)
	if errors.Is(err, apierror.UserNotFound) || err == nil && game != r.GameID {
		return nil
	}
	if err != nil {
		return err
	}
	a := attempt{
		writer: WriterRooms, userID: userID, playedMS: r.EndedAt.UnixMilli(), caller: roomCaller,
		in: SubmitInput{Score: score, Evidence: &Evidence{RoomID: r.RoomID}},
		receipt: idempotency.Receipt{
			Fingerprint: roomCaller, KeyDigest: r.RoomID + ":" + strconv.FormatInt(userID, 10),
		},
	}
	var fieldErrors apierror.FieldErrors
	if a.checkDetails(&fieldErrors); fieldErrors.Err() != nil {
		return fieldErrors.Err()
	}
	_, _, err = s.addScore(ctx, b, a)
	if errors.Is(err, apierror.SeasonClosed) { // too late for its own
		a.playedMS = 0
		_, _, err = s.addScore(ctx, b, a)
	}
	if errors.Is(err, apierror.SeasonNotFound) { // it counted in a season that is gone
		return nil
	}
	return err
}
