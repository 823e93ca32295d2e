package keys

import "strings"

// The webhooks of a game have a tag of their own, since they read the feeds of all shards.

func webhookKey(gameID int64, parts ...string) string { return taggedKey('s', gameID, parts...) }

// WebhookGames (set of game ids, no expiry) names the games that may have active webhooks.
func WebhookGames() string { return "{p}:webhooks" }

// Webhooks (hash, no expiry) maps the id of each webhook of a game to its definition, as JSON. Its
// secrets are encrypted under a signing key.
func Webhooks(gameID int64) string { return webhookKey(gameID, "webhooks") }

// WebhookState (hash, no expiry) is how far the leader has got with a webhook:
//
//	"fence"                  of the newest leader that stored something
//	"round"                  changes when staff puts positions elsewhere
//	WebhookPosition          for each feed what was delivered, or waits in "behind"
//	WebhookBehind            for each room that has failed: where its first undelivered event is
//	"failing"                ms since which all attempts have failed, absent while they do not
//	"error"                  what was wrong with the last attempt that failed, absent after a success
//	"oldest"                 ms of the oldest event that is not delivered, absent for none
//	"revived"                ms at which staff made it active again: failures of before do not count
//	"parked"                 how many events were given up
func WebhookState(gameID int64, webhookID string) string {
	return webhookKey(gameID, "webhook:", webhookID)
}

const (
	webhookPosition = "pos:"
	webhookBehind   = "behind:"
)

// WebhookPosition returns the field of WebhookState with the position in a feed.
func WebhookPosition(feed string) string { return webhookPosition + feed }

// WebhookBehind returns the field of WebhookState for a room that is behind the position of its
// feed.
func WebhookBehind(room string) string { return webhookBehind + room }

// ParseWebhookField returns the feed or the room of a field of WebhookState, "" for the others.
func ParseWebhookField(field string) (feed, room string) {
	if name, ok := strings.CutPrefix(field, webhookPosition); ok {
		return name, ""
	}
	room, _ = strings.CutPrefix(field, webhookBehind)
	if room == field {
		room = ""
	}
	return "", room
}

// WebhookAttempts (list of the newest 200, no expiry) has the attempts to deliver, newest first, as
// JSON.
func WebhookAttempts(gameID int64, webhookID string) string {
	return webhookKey(gameID, "webhook:", webhookID, ":attempts")
}

// WebhookParked (list of the newest 1,000, no expiry) has the events that were given up, newest
// first, as JSON with their bodies.
func WebhookParked(gameID int64, webhookID string) string {
	return webhookKey(gameID, "webhook:", webhookID, ":parked")
}

// WebhookAgain (list, until the next call that makes it) has the events of WebhookParked that staff
// wants to be sent again, oldest first. WebhookPosition of "again" counts those that are done.
func WebhookAgain(gameID int64, webhookID string) string {
	return webhookKey(gameID, "webhook:", webhookID, ":again")
}
