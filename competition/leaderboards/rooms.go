package leaderboards

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/idempotency"
)

// RoomResult is a room that was finished, for the boards that the settings of its game name.
type RoomResult struct {
	GameID        int64
	RoomID        string
	EndedAt       time.Time // names the season
	ByConsensus   bool      // the result is the word of the players: it feeds wins alone
	TokenDecimals int       // of the payouts
	Players       []RoomPlayer
	Fed           string // what an earlier call has added, as PartlyFed says; "" for nothing
}

// PartlyFed is the error of a room that has fed some boards or players and not all. A score of a
// room is remembered for receiptTTL; a later repetition of the room must have Fed, so that nobody
// counts twice.
type PartlyFed struct {
	Fed string // "<board>:<user>,<user>;…" in their order
	Err error
}

func (e *PartlyFed) Error() string { return e.Err.Error() }

func (e *PartlyFed) Unwrap() error { return e.Err }

// fedScores is for which boards and players a room has added its score.
type fedScores map[string][]int64

// parseFed returns what String made. What it cannot read is not there.
func parseFed(text string) fedScores {
	fed := fedScores{}
	for one := range strings.SplitSeq(text, ";") {
		board, list, _ := strings.Cut(one, ":")
		for user := range strings.SplitSeq(list, ",") {
			if id, err := strconv.ParseInt(user, 10, 64); err == nil {
				fed[board] = append(fed[board], id)
			}
		}
	}
	return fed
}

// String returns the form of PartlyFed.
func (f fedScores) String() string {
	var b strings.Builder
	for _, board := range slices.Sorted(maps.Keys(f)) {
		if b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(board)
		separator := byte(':')
		for _, user := range slices.Sorted(slices.Values(f[board])) {
			b.WriteByte(separator)
			b.WriteString(strconv.FormatInt(user, 10))
			separator = ','
		}
	}
	return b.String()
}

// RoomPlayer is the result of one player of a room.
type RoomPlayer struct {
	UserID      int64
	Place       int    // from 1; 0 for a player who forfeited, who feeds nothing
	Score       string // a JSON number; "" for none
	PayoutUnits int64  // minor units of the token
}

// roomCaller is the caller in the receipts of scores of rooms.
const roomCaller = "room"

// AddRoomResult adds a score for each player of a finished room to each board that the game's
// settings currently name. Repeating it for a room changes nothing.
//
// A walkover counts where the feed says so. A board with prizes takes no walkover of one player, no
// payout and no result by consensus: one person with two accounts could have any number of them.
//
// A late result counts in the season in which the room ended until the season's grace time ends,
// and after that in the current season. A room that ended before the first season of a board does
// not count there, and neither does a deleted player.
//
// A board or a player that cannot be fed holds up no other. AddRoomResult returns game_not_found,
// and of the boards board_not_found, forbidden (its writers do not name rooms), score_rejected,
// board_full and season_closed, but an outage before any of these. When it has added something, the
// error is a PartlyFed.
func (s *Service) AddRoomResult(ctx context.Context, r RoomResult) error {
	game, err := s.games.Find(ctx, r.GameID)
	if err != nil {
		return err
	}
	var errs feedErrors
	isWalkover := r.isWalkover()
	fed := parseFed(r.Fed)
	for _, feed := range game.Settings.Boards {
		if r.ByConsensus && feed.From != games.FromWin || isWalkover && !feed.Walkovers {
			continue
		}
		s.feedBoard(ctx, feed, &r, fed, &errs)
	}
	if err = errs.first(); err != nil && len(fed) > 0 {
		err = &PartlyFed{fed.String(), err}
	}
	return err
}

// isWalkover reports whether all players but one had left before the room ended. With consensus the
// last player alone reports the result, also in a room in which nobody else ever sat.
func (r *RoomResult) isWalkover() bool {
	placed := 0
	for _, p := range r.Players {
		if p.Place > 0 {
			placed++
		}
	}
	return placed < 2 && (r.ByConsensus || placed < len(r.Players))
}

// mayFeed reports whether the result may count on a board, which may have prizes.
func (r *RoomResult) mayFeed(b *board, feed games.BoardFeed) bool {
	return !b.hasStakes() || len(r.Players) > 1 && !r.ByConsensus && feed.From != games.FromPayout
}

// hasStakes reports whether money hangs on the board: its seasons to come have prizes, or one that
// may still take scores has.
func (b *board) hasStakes() bool {
	if _, d := b.newest(); d.Prizes != nil {
		return true
	}
	return slices.ContainsFunc(b.seasons, func(s season) bool {
		return !s.isSealed && b.definitionOf(&s).Prizes != nil
	})
}

// HasStakes reports whether money depends on a board, as of at most a second ago. It has no Caller,
// because players do not see its result. It returns false for a board that does not exist, and
// store_unavailable.
func (s *Service) HasStakes(ctx context.Context, gameID int64, key string) (bool, error) {
	b, err := s.load(ctx, gameID, key)
	if errors.Is(err, apierror.BoardNotFound) {
		return false, nil
	}
	return err == nil && b.hasStakes(), err
}

// checkFeeds adds an error to prizes of a board that the rooms of its game feed in a way for which
// nobody may be paid.
func (s *Service) checkFeeds(ctx context.Context, errs *apierror.FieldErrors, gameID int64, key string) error {
	game, err := s.games.Find(ctx, gameID)
	if err != nil {
		return err
	}
	for _, feed := range game.Settings.Boards {
		switch {
		case feed.Board != key || game.Settings.MayFeedPrizes(feed):
		case feed.From == games.FromPayout:
			errs.Add("prizes", "forbidden", "must be absent: settings.boards feeds the leaderboard from payout")
		default:
			errs.Add("prizes", "forbidden", "must be absent: only rooms by consensus feed the leaderboard")
		}
	}
	return nil
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

// feedBoard adds the scores of a room to a board, of those players who are not fed yet.
func (s *Service) feedBoard(
	ctx context.Context, feed games.BoardFeed, r *RoomResult, fed fedScores, errs *feedErrors,
) {
	b, err := s.load(ctx, r.GameID, feed.Board)
	if errors.Is(err, apierror.BoardNotFound) {
		err = apierror.BoardNotFound.WithReason("the game has no leaderboard %q", feed.Board)
	}
	if err != nil {
		errs.add(err)
		return
	}
	b, one, err := s.likelySeason(ctx, b, r.EndedAt.UnixMilli())
	if err != nil {
		errs.add(err)
		return
	}
	d := b.definitionOf(one)
	first := b.seasons[0]
	switch {
	case !d.mayWrite(WriterRooms):
		errs.add(apierror.Forbidden.WithReason("the leaderboard %q takes no scores of rooms", feed.Board))
		return
	case first.number == 1 && r.EndedAt.UnixMilli() < first.opens, !r.mayFeed(b, feed):
		return
	}
	for _, p := range r.Players {
		score, ok := r.scoreOf(p, feed.From, d.Decimals)
		if !ok || slices.Contains(fed[feed.Board], p.UserID) {
			continue
		}
		if err := s.feedPlayer(ctx, b, d, r, p.UserID, score); err != nil {
			errs.add(err)
		} else {
			fed[feed.Board] = append(fed[feed.Board], p.UserID)
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
	a := scoreDraft{
		writer: WriterRooms, userID: userID, playedMS: r.EndedAt.UnixMilli(), caller: roomCaller,
		in: SubmitInput{Score: score, Evidence: &Evidence{RoomID: r.RoomID}},
		receipt: idempotency.Receipt{
			Fingerprint: roomCaller, KeyDigest: r.RoomID + ":" + strconv.FormatInt(userID, 10),
		},
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
