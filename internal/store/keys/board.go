package keys

import "strings"

// BoardShard is one of the hash tags of a leaderboard. All that a board keeps of one player lies in
// one of them.
type BoardShard struct {
	gameID int64
	board  string
	number int
}

// NewBoardShard returns the n-th shard of a game's leaderboard.
func NewBoardShard(gameID int64, board string, n int) BoardShard { return BoardShard{gameID, board, n} }

// Number returns n, from 0.
func (s BoardShard) Number() int { return s.number }

func (s BoardShard) key(parts ...string) string {
	return "{b:" + id(s.gameID) + "." + s.board + "." + id(int64(s.number)) + "}:" + strings.Join(parts, "")
}

// Boards (set of board keys, no expiry) lists a game's leaderboards. It is an index and may name
// boards that no longer exist.
func Boards(gameID int64) string { return "{g:" + id(gameID) + "}:boards" }

// BoardsDue (zset of board keys by ms, no expiry) is the latest time at which the leader checks
// each leaderboard of a game. Nodes of older releases do not write it, so the leader also checks
// all boards in turn.
func BoardsDue(gameID int64) string { return "{g:" + id(gameID) + "}:boards:due" }

// TournamentBoards (set of board keys, no expiry) has those of Boards that belong to tournaments.
func TournamentBoards(gameID int64) string { return "{g:" + id(gameID) + "}:boards:tours" }

// UserBoards (set of board keys, no expiry) lists the leaderboards that may have an entry of a
// player.
func UserBoards(userID int64) string { return "{u:" + id(userID) + "}:boards" }

// Board (hash on shard 0, no expiry) is the definition of a leaderboard: "ver", "nonce" of the last
// change, "created" and "deleted" (ms), BoardDefinitionField for each definition that a season has,
// and BoardSeasonField for each season that is kept or to come.
func Board(gameID int64, board string) string { return NewBoardShard(gameID, board, 0).key("board") }

// The fields of Board.
const (
	BoardVersionField = "ver"
	BoardCreatedField = "created"
	BoardDeletedField = "deleted"

	boardDefinitionPrefix = "d:"
	boardSeasonPrefix     = "s:"
)

// BoardDefinitionField is the field of Board with one version of the definition as JSON.
func BoardDefinitionField(version int64) string { return boardDefinitionPrefix + id(version) }

// ParseBoardDefinitionField returns the version of a BoardDefinitionField. It returns false for
// other fields.
func ParseBoardDefinitionField(field string) (version string, ok bool) {
	return strings.CutPrefix(field, boardDefinitionPrefix)
}

// BoardSeasonField is the field of Board with one season, packed: "<opens ms>|<closes ms, empty
// for no end>|<grace ms>|<version of the definition>|<buckets>|<sealed: 1 or 0>|<funded: 1 or 0>|
// <end of the review in ms, -1 for none, 0 before it>|<outcome of the prizes, empty before it>".
func BoardSeasonField(season int64) string { return boardSeasonPrefix + id(season) }

// ParseBoardSeasonField returns the season of a BoardSeasonField. It returns false for other
// fields.
func ParseBoardSeasonField(field string) (season string, ok bool) {
	return strings.CutPrefix(field, boardSeasonPrefix)
}

// BoardSeason (hash, until the season is removed) is the state of a season on a shard:
// BoardStateField, BoardClockField, BoardTopField, BoardHiddenField, "z:<segment>=<value>" for each
// segment that has a zset, and for each tier of a league "l:<tier>" and "o:<tier>", the
// cohorts that have free places: "<number on the shard>:<players>," each.
func BoardSeason(s BoardShard, season int64) string { return s.key("season:", id(season)) }

// The fields of BoardSeason.
const (
	BoardStateField  = "state"  // SEALED once the season takes no scores
	BoardTopField    = "top"    // rises with each change of the first 100 entries
	BoardClockField  = "clock"  // ms of the newest entry
	BoardHiddenField = "hidden" // how many entries are hidden
)

// ParseBoardSegmentField returns the segment and its value of a field of BoardSeason. It returns
// false for other fields.
func ParseBoardSegmentField(field string) (segment, value string, ok bool) {
	text, ok := strings.CutPrefix(field, "z:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(text, "=")
}

// BoardRank (zset of members with score 0, until the season is removed) orders the entries of a
// season on a shard; scripts/lib_board.lua describes a member.
func BoardRank(s BoardShard, season int64) string { return s.key("rank:", id(season)) }

// BoardSegmentRank is BoardRank for the players of one segment.
func BoardSegmentRank(s BoardShard, season int64, segment, value string) string {
	return s.key("rank:", id(season), ":", segment, ":", value)
}

// ParseBoardPlacesField returns the tier of a field of BoardSeason that counts the places of all
// cohorts of a league's tier that were opened. A release before counts those that were given, in
// the order of cohorts. It returns false for other fields.
func ParseBoardPlacesField(field string) (tier string, ok bool) {
	return strings.CutPrefix(field, "l:")
}

// BoardCohort is BoardRank for the players of one cohort of a league, "<tier>:<number>".
func BoardCohort(s BoardShard, season int64, cohort string) string {
	return s.key("cohort:", id(season), ":", cohort)
}

// BoardEntries (hash, until the season is removed) maps the players of a bucket to their records.
// A bucket is small, so that the store packs it tightly.
func BoardEntries(s BoardShard, season, bucket int64) string {
	return s.key("entry:", id(season), ":", id(bucket))
}

// BoardDetails (hash, until the season is removed) has for the players of a bucket what few have:
// the user id with details as JSON, BoardUserSegmentsField, BoardUserCohortField, and the user id
// with ":t" when the last score came (ms).
func BoardDetails(s BoardShard, season, bucket int64) string {
	return s.key("more:", id(season), ":", id(bucket))
}

// BoardUserSegmentsField is the field of BoardDetails with a player's segments:
// "<segment>=<value>,…". The segment "@" is the cohort of a league, and the last one.
func BoardUserSegmentsField(userID int64) string { return id(userID) + ":s" }

// BoardUserCohortField is the field of BoardDetails with the cohort that a player was given,
// "<tier>:<number>".
func BoardUserCohortField(userID int64) string { return id(userID) + ":c" }

// BoardReceipt (string, 7 days) is MoneyReceipt for the scores of a shard; a minute for those
// without a key.
func BoardReceipt(s BoardShard, caller, key string) string { return s.key("did:", caller, ":", key) }

// BoardPlay (string, as long as a play may last and a while) is one play of a player:
// "<user>|<start ms>", or "used" once a score was sent for it.
func BoardPlay(s BoardShard, playID string) string { return s.key("play:", playID) }

// BoardPlays (list, as long as the player's newest play) has the ids of a player's plays, oldest
// first. Some of them may be over. Its length is bounded, and so is the number of open plays.
func BoardPlays(s BoardShard, userID int64) string { return s.key("plays:", id(userID)) }
