package keys

import "strconv"

const economy = "{e:main}:"

func id(n int64) string { return strconv.FormatInt(n, 10) }

// The installation.

// Meta (hash, for ever) is what was fixed when the store was first used: "layout", "shards".
// A node refuses to start on a mismatch.
func Meta() string { return "{p}:meta" }

// UserNext (string counter, for ever) gives the next user id.
func UserNext() string { return "{p}:user:next" }

// GameNext (string counter, for ever) gives the next game id.
func GameNext() string { return "{p}:game:next" }

// Issuers (hash, for ever) maps the digest of an outside issuer and audience to the game that accepts it: a hint, the truth is the game.
func Issuers() string { return "{p}:issuers" }

// Pepper (string, for ever) is the installation's random key for the digests of what players prove.
func Pepper() string { return "{p}:pepper" }

// Lock (string, seconds) is a redsync lock: who leads the sweep of one home, who edits
// what takes more than one script.
func Lock(name string) string { return "{l:" + name + "}:lock" }

// Fence (string counter, for ever) numbers the holders of a lock, beside it.
func Fence(name string) string { return "{l:" + name + "}:fence" }

// Ticket (string, 60 s) is a one-use admission to a socket, by the SHA-256 of its secret.
func Ticket(digest string) string { return "{t:" + digest + "}:ticket" }

// Rate (string, until full again) is the state of one rate limit for one caller.
func Rate(class, who string) string { return "{q:" + who + "}:rate:" + class }

// Probe (a channel; nothing is stored) lies on the same server as the topics of a hash tag: a message to oneself on it
// proves that theirs arrive.
func Probe(tag string, number uint64) string {
	return "{" + tag + "}:probe:" + strconv.FormatUint(number, 36)
}

// Answer (hash, at least 24 h; 30 s while it runs) is the first answer to a POST that carried an Idempotency-Key
// and is not a script with a receipt: "fp" fingerprint, "owner" the run, "answer" sealed, absent while it runs.
func Answer(who, key string) string { return "{i:" + who + "}:answer:" + key }

// A game.

// Game (hash, for ever): "doc" its definition as JSON, "ver", "created" (ms), "nonce" of the last change, and for each server key
// "key:<SHA-256>" when it was made (ms).
func Game(gameID int64) string { return "{g:" + id(gameID) + "}:game" }

// Identity (string, for ever) maps the digest of what a player proves (kind "device", "external",
// "issuer") to a user id, within one game.
func Identity(gameID int64, kind, digest string) string {
	return "{g:" + id(gameID) + "}:identity:" + kind + ":" + digest
}

// A player.

// User (hash, for ever): "username", "avatar", "game", "kind", "created" (ms), "granted".
func User(userID int64) string { return "{u:" + id(userID) + "}:user" }

// Friends (set, for ever) names the players with whom this one has something: a hint, the truth is the pair.
func Friends(userID int64) string { return "{u:" + id(userID) + "}:friends" }

// Refresh (hash, until the family expires) is a family of refresh tokens: "current" digest, "game", "until" (ms) when
// it ends at the latest, "nonce" of the last rotation, "reused" when a token was used twice: then it is revoked.
func Refresh(userID int64, family string) string {
	return "{u:" + id(userID) + "}:refresh:" + family
}

// Save (hash, for ever) is one save slot and its last versions: "ver" the newest version, and for each version kept "<ver>"
// its state as JSON and "<ver>:mark" what stands beside it: "<message> <at ms> <size> <key id> <signature> <pace as JSON>".
func Save(userID, gameID int64, slot string) string {
	return "{u:" + id(userID) + "}:save:" + id(gameID) + ":" + slot
}

// Saves (hash, for ever) lists a player's slots in one game: slot to "<ver> <at ms> <size>".
func Saves(userID, gameID int64) string { return "{u:" + id(userID) + "}:saves:" + id(gameID) }

// Progress (hash, for ever): "seq" the number of the last event in UserEvents.
func Progress(userID int64) string { return "{u:" + id(userID) + "}:progress" }

// UserEvents (stream of about 32, 1 h; and a channel of the same name) tells the player user.progress: entries "<seq>-<nonce>"
// with "e" the event as JSON. It is beside the saves, as WalletEvents is beside the money.
func UserEvents(userID int64) string { return "{u:" + id(userID) + "}:events" }

// Pair (hash, for ever) is what two players are to each other; the lower id comes first: "rel" is "friends" or the id of who
// asked, "since" (ms), "block:<id>" (ms) when that one blocked the other.
func Pair(a, b int64) string {
	if a > b {
		a, b = b, a
	}
	return "{f:" + id(a) + ":" + id(b) + "}:pair"
}

// Money, all under the economy's tag.

// Wallet (hash, for ever): "free:<token>" what can be spent, "held:<token>" stakes in rooms that have
// not ended, both minor units; "line" number of the last ledger line, "seq" of the last event; "grant:<game>" the welcome grant, once given.
func Wallet(userID int64) string { return economy + "wallet:" + id(userID) }

// WalletLines (stream, for ever) is the player's own ledger, one entry "<line>-0" each:
// "at" (ms), "tok", "delta", "after", "why", "ref".
func WalletLines(userID int64) string { return economy + "wallet:" + id(userID) + ":lines" }

// WalletEvents (stream of about 32, 1 h; and a channel of the same name) tells the player user.balance and
// user.asset: entries "<seq>-<nonce>" with "e" the event as JSON.
func WalletEvents(userID int64) string { return economy + "wallet:" + id(userID) + ":events" }

// Totals (hash, for ever): "minted:<token>", "wallets:<token>", "escrow:<token>", "house:<token>" in minor units,
// and "seq", the number of the last ledger entry.
func Totals() string { return economy + "total" }

// Ledger (stream, for ever) is the double entry of every money script, "<seq>-0" each: "at" (ms), "tok", "why", "ref", "post"
// postings "<account>:<±units>" joined by ";" that sum to zero, accounts w:<user> e:<room> h m.
func Ledger() string { return economy + "ledger" }

// Token (hash, for ever): "id", "decimals", "name", "logo" ("" for none), "asset" and "policy" hexadecimal, "nonce" of the call that made it.
func Token(code string) string { return economy + "token:" + code }

// Tokens (hash, for ever) maps the integer id of a token to its code; field "next" counts.
func Tokens() string { return economy + "tokens" }

// Asset (hash, for ever): "game", "token", "decimals" of the token, "price" (minor units), "on" 1 or 0, "stock" ("": no limit),
// "limit" per user ("": none), "sold", "ver", "name", "meta" JSON, "created" (ms), "patch" nonce of the last patch.
func Asset(assetID int64) string { return economy + "asset:" + id(assetID) }

// AssetNext (string counter, for ever) gives the next asset id.
func AssetNext() string { return economy + "asset:next" }

// Assets (zset, for ever) lists a game's asset ids, scored by id.
func Assets(gameID int64) string { return economy + "assets:" + id(gameID) }

// Inventory (hash, for ever) maps asset id to the number owned.
func Inventory(userID int64) string { return economy + "inventory:" + id(userID) }

// MoneyReceipt (string, at least 24 h) is the outcome of one keyed money request of one caller ("u<id>", "g<id>", "op"):
// fingerprint and the parts of the script's answer, "\x1f" behind each.
func MoneyReceipt(who, key string) string { return economy + "receipt:" + who + ":" + key }

// Rooms, at their home.

// Room (hash, until the sweep finds it 24 h after its end) is the room and its seats; rooms/doc.go lists the fields.
func Room(h Shard, roomID string) string { return h.tag() + "room:" + roomID }

// RoomEvents (stream of about 256, as the room; and a channel of the same name): entries "<seq>-<nonce>" with
// "e" the event as JSON.
func RoomEvents(h Shard, roomID string) string { return h.tag() + "room:" + roomID + ":events" }

// RoomNext (string counter, for ever) counts the rooms made at a home.
func RoomNext(h Shard) string { return h.tag() + "room:next" }

// RoomCode (string, as the room) maps a short code to a room id.
func RoomCode(h Shard, code string) string { return h.tag() + "code:" + code }

// RoomIndex (zset of room ids, all scores 0: ids sort by age) lists a game's rooms in one state. The room scripts keep it.
// State is "open" (created, public, a seat free) or a status in lower case, both of public rooms only; or "all", whatever their
// status and visibility. Game 0 has "all" only: the rooms of every game.
func RoomIndex(h Shard, gameID int64, state string) string {
	return h.tag() + "rooms:" + id(gameID) + ":" + state
}

// RoomsDue (zset of room ids by ms) says when each room is next to be looked at by the sweep, never later than its time is over.
func RoomsDue(h Shard) string { return h.tag() + "rooms:due" }

// RoomsFence (string, for ever) is the number of the newest leader of a home's sweep that changed something there.
func RoomsFence(h Shard) string { return h.tag() + "rooms:fence" }

// RoomReceipt (string, at least 24 h) is MoneyReceipt for the rooms of a home; in the economy it is the same record.
func RoomReceipt(h Shard, who, key string) string { return h.tag() + "receipt:" + who + ":" + key }
