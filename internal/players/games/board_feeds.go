package games

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// BoardFeed names a leaderboard of the game that its rooms feed when they are finished.
type BoardFeed struct {
	Board string     `json:"board"` // key of the leaderboard
	From  FeedSource `json:"from"`
	// Walkovers makes rooms count that ended because all players but one had left. By default they
	// feed nothing: one person with two accounts could win as often as they like.
	Walkovers bool `json:"walkovers,omitzero"`
}

// FeedSource is the source of a player's score for a finished room.
type FeedSource string

// The sources. A room with consensus feeds FromWin alone, and no leaderboard with prizes: its
// result is the word of players.
const (
	FromScore  FeedSource = "score"  // the score of the result; nothing for a player without one
	FromWin    FeedSource = "win"    // 1 for the first place, 0 for the others
	FromPayout FeedSource = "payout" // what the player got of the pot; nothing in a free room
)

// MayFeedPrizes reports whether a feed may go to a leaderboard with prizes. Payouts, and results
// by consensus, may not: one person with two accounts can produce any number of them for nothing,
// since nobody else has to be paid.
func (s Settings) MayFeedPrizes(feed BoardFeed) bool {
	return feed.From != FromPayout && slices.Contains(s.Settlements, SettledByServer)
}

// checkPrizeFeeds returns invalid_request with each feed that a leaderboard with prizes must not
// have. Settings and prizes may change at the same time: the leaderboard also checks each room.
func (s *Service) checkPrizeFeeds(ctx context.Context, gameID int64, changed Settings, p SettingsPatch) error {
	if s.options.HasPrizes == nil || p.Boards == nil && p.Settlements == nil {
		return nil
	}
	var errs apierror.FieldErrors
	for i, feed := range changed.Boards {
		if changed.MayFeedPrizes(feed) {
			continue
		}
		hasStakes, err := s.options.HasPrizes(ctx, gameID, feed.Board)
		if err != nil {
			return err
		}
		switch field := fmt.Sprintf("settings.boards[%d].from", i); {
		case !hasStakes:
		case feed.From == FromPayout:
			errs.Add(field, "forbidden", "must not be payout: the leaderboard has prizes")
		default:
			errs.Add(field, "forbidden", "needs the settlement server: the leaderboard has prizes")
		}
	}
	return errs.Err()
}

// maxBoardFeeds bounds Settings.Boards: each costs a finished room a call for every player.
const maxBoardFeeds = 8

var boardKeyPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,47}$`)

func checkBoardFeeds(errs *apierror.FieldErrors, feeds []BoardFeed) {
	if len(feeds) > maxBoardFeeds {
		errs.Add("settings.boards", "range", fmt.Sprintf("must be at most %d", maxBoardFeeds))
		return
	}
	for i, feed := range feeds {
		field := fmt.Sprintf("settings.boards[%d]", i)
		if !boardKeyPattern.MatchString(feed.Board) {
			errs.Add(field+".board", "format", "must be the key of a leaderboard")
		}
		if slices.ContainsFunc(feeds[:i], func(f BoardFeed) bool { return f.Board == feed.Board }) {
			errs.Add(field+".board", "duplicate", "stands here twice")
		}
		switch feed.From {
		case FromScore, FromWin, FromPayout:
		default:
			errs.Add(field+".from", "unknown", "must be score, win or payout")
		}
	}
}
