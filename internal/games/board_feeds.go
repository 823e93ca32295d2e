package games

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/parlor-games/parlor/internal/apierror"
)

// BoardFeed names a leaderboard of the game that its rooms feed when they are finished.
type BoardFeed struct {
	Board string     `json:"board"` // key of the leaderboard
	From  FeedSource `json:"from"`
}

// FeedSource is what the score of a player of a finished room is.
type FeedSource string

// The sources. A room with consensus feeds FromWin alone: its scores are the word of players.
const (
	FromScore  FeedSource = "score"  // the score of the result; nothing for a player without one
	FromWin    FeedSource = "win"    // 1 for the first place, 0 for the others
	FromPayout FeedSource = "payout" // what the player got of the pot; nothing in a free room
)

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
