package keys

import "strings"

// The tournaments of a game lie in its economy, since they hold fees.

// TourCounter (string counter, no expiry) is the last tournament id that was given in a game.
func TourCounter(gameID int64) string { return economyKey(gameID, "tour:next") }

// Tour (hash, no expiry) is a tournament; tournaments/doc.go lists the fields.
func Tour(gameID, tourID int64) string { return economyKey(gameID, "tour:", id(tourID)) }

// TourEvents (list of the newest 256 to 319, no expiry; and a channel of the same name) carries the
// events of a tournament, in the form of package events.
func TourEvents(gameID, tourID int64) string {
	return economyKey(gameID, "tour:", id(tourID), tourEventsSuffix)
}

const tourEventsSuffix = ":events"

// ParseTourEvents returns the tournament of a TourEvents as text. It returns false for other keys.
func ParseTourEvents(key string) (tourID string, ok bool) {
	_, name, found := strings.Cut(key, "}:tour:")
	if !found {
		return "", false
	}
	return strings.CutSuffix(name, tourEventsSuffix)
}

// TourEntrants (hash, no expiry) maps user ids to entrants, packed as scripts.TourEntrant.
func TourEntrants(gameID, tourID int64) string {
	return economyKey(gameID, "tour:", id(tourID), ":entrants")
}

// TourOrder (zset of user ids by the number of the join, no expiry) lists the entrants, except
// those who left before the start.
func TourOrder(gameID, tourID int64) string { return economyKey(gameID, "tour:", id(tourID), ":order") }

// TourMatches (hash, no expiry) maps match ids to matches, packed as scripts.TourMatch.
func TourMatches(gameID, tourID int64) string {
	return economyKey(gameID, "tour:", id(tourID), ":matches")
}

// TourAttempts (hash, no expiry) maps user ids to "<plays begun>|<nonce of the last call>".
func TourAttempts(gameID, tourID int64) string {
	return economyKey(gameID, "tour:", id(tourID), ":attempts")
}

// Tours (zset of tournament ids, scored by id, no expiry) lists a game's tournaments.
func Tours(gameID int64) string { return economyKey(gameID, "tours") }

// ToursDue (zset of tournament ids by ms, no expiry) is the latest time at which the leader checks
// each tournament that has not ended.
func ToursDue(gameID int64) string { return economyKey(gameID, "tours:due") }

// ToursFence (string, no expiry) is the fence of the newest leader that changed a tournament.
func ToursFence(gameID int64) string { return economyKey(gameID, "tours:fence") }

const tourRefPrefix = "tour:"

// TourRef names a tournament in ledger entries, in lines and as the source of a prize: "tour:12".
func TourRef(tourID int64) string { return tourRefPrefix + id(tourID) }

// boardSourcePrefix starts the source of the prizes of a leaderboard's season.
const boardSourcePrefix = "board:"

// CountsInLimits reports whether a player's own limits count the ledger entries of a ref: of a
// room, a tournament, or a season of a leaderboard, whose prizes are payouts.
func CountsInLimits(ref string) bool {
	_, isRoom := RoomShard(ref)
	return isRoom || strings.HasPrefix(ref, tourRefPrefix) || strings.HasPrefix(ref, boardSourcePrefix)
}

// TourRoundField is the field of Tour with a round: "<started ms>|<matches>".
func TourRoundField(round int) string { return "round:" + id(int64(round)) }
