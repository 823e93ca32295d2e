package keys

import (
	"strconv"
	"strings"
)

const economyPrefix = "{e:main}:"

func id(n int64) string { return strconv.FormatInt(n, 10) }

// The installation.

// Meta (hash, no expiry) is what was fixed when the store was first used: MetaLayout, MetaShards.
// A node does not start when they differ from its own.
func Meta() string { return "{p}:meta" }

// The fields of Meta.
const (
	MetaLayoutField = "layout" // number of the schema in this package
	MetaShardsField = "shards" // number of shards for free rooms
)

// UserIDCounter (string counter, no expiry) is the last user id that was given.
func UserIDCounter() string { return "{p}:user:next" }

// GameIDCounter (string counter, no expiry) is the last game id that was given.
func GameIDCounter() string { return "{p}:game:next" }

// Issuers (hash, no expiry) maps the digest of an outside issuer and audience to the game that
// accepts it. It is an index: the game's definition decides.
func Issuers() string { return "{p}:issuers" }

// Pepper (string, no expiry) is the installation's random key for the digests of players'
// credentials.
func Pepper() string { return "{p}:pepper" }

// EndedSessions (stream, trimmed to the last 25 h) has one entry for each end of sessions that are
// not over by themselves: "what" they are, "at" (ms) the time by which they had begun, or "" for
// all, "code" the close code of their sockets.
func EndedSessions() string { return "{p}:sessions:ended" }

// ExternalTokenUse (string, until the token expires) is when a token of an outside issuer was first
// used, in milliseconds.
func ExternalTokenUse(digest string) string { return "{x:" + digest + "}:first" }

// Lock (string, seconds) is a redsync lock, held by the node that sweeps the rooms of a shard, or
// that makes a change which takes more than one script.
func Lock(name string) string { return "{l:" + name + "}:lock" }

// FenceCounter (string counter, no expiry) numbers the holders of a lock. It shares the lock's hash
// tag.
func FenceCounter(name string) string { return "{l:" + name + "}:fence" }

// Ticket (string, 60 s) is a one-time ticket that opens a socket, by the SHA-256 of its secret.
func Ticket(digest string) string { return "{t:" + digest + "}:ticket" }

// RateLimit (string, until the bucket is full again) is the state of one rate limit for one caller.
func RateLimit(class, caller string) string { return "{q:" + caller + "}:rate:" + class }

// ProbeChannel (a channel; nothing is stored) is on the same server as the topics of a hash tag:
// when a node receives its own message there, the topics' messages arrive too.
func ProbeChannel(tag string, number uint64) string {
	return "{" + tag + "}:probe:" + strconv.FormatUint(number, 36)
}

// StoredResponse (hash, at least 24 h; 30 s while the request runs) is the first response to a POST
// that carried an Idempotency-Key and has no receipt in a script: "fp" fingerprint, "owner" the
// execution, "answer" the encrypted response, absent while the request runs.
func StoredResponse(caller, keyDigest string) string { return "{i:" + caller + "}:answer:" + keyDigest }

// A game.

// Game (hash, no expiry): "doc" its definition as JSON, "ver", "created" (ms), "nonce" of the last
// change, and for each server key "key:<SHA-256>" when it was made (ms).
func Game(gameID int64) string { return "{g:" + id(gameID) + "}:game" }

// Identity (string, no expiry) maps the digest of a player's credential (kind "device", "external",
// "issuer") to a user id, within one game.
func Identity(gameID int64, kind, digest string) string {
	return "{g:" + id(gameID) + "}:identity:" + kind + ":" + digest
}

// A player.

// User (hash, no expiry): "username", "avatar", "game", "kind", "created" (ms), "granted", "ended"
// (ms) when the sessions that had begun were ended, and UserIdentityField for each identity.
func User(userID int64) string { return "{u:" + id(userID) + "}:user" }

const userIdentityPrefix = "identity:"

// UserIdentityField returns the field of User that names one Identity of the player. It is an
// index: the identity decides.
func UserIdentityField(kind, digest string) string { return userIdentityPrefix + kind + ":" + digest }

// ParseUserIdentityField returns the identity of a UserIdentityField. It returns false for other
// fields.
func ParseUserIdentityField(field string) (kind, digest string, ok bool) {
	rest, ok := strings.CutPrefix(field, userIdentityPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// Friends (zset of user ids by id, no expiry) lists a player's friends and those whom the player
// asked. It is an index, as the two below: the PlayerPair decides.
func Friends(userID int64) string { return "{u:" + id(userID) + "}:friends" }

// FriendRequests (zset of user ids by ms, no expiry) lists those who asked the player last, at most
// 200.
func FriendRequests(userID int64) string { return "{u:" + id(userID) + "}:friend-requests" }

// BlockedPlayers (zset of user ids by id, no expiry) lists those whom the player blocked.
func BlockedPlayers(userID int64) string { return "{u:" + id(userID) + "}:blocked" }

// RefreshFamily (hash, until the family expires) is a family of refresh tokens: "current" digest,
// "game", "start" (ms), "until" (ms) when it ends at the latest, "by" the id of the server key that
// made it, "prev" the digest before the current one, "rotated" (ms) when that was replaced,
// "reused" when a token was used twice: then the family is revoked.
func RefreshFamily(userID int64, family string) string {
	return "{u:" + id(userID) + "}:refresh:" + family
}

// RefreshFamilies (zset of families by ms, 180 days after the last sign-in) is when the record of
// each family of a player expires. It is an index: it may name families that are gone.
func RefreshFamilies(userID int64) string { return "{u:" + id(userID) + "}:refreshes" }

// Save (hash, no expiry) is one save slot and its last versions: SaveVersion the newest version,
// and for each kept version SaveStateField its state as JSON and SaveMarkField what is stored
// beside it: "<message> <at ms> <size> <key id> <signature> <rate state as JSON>".
func Save(userID, gameID int64, slot string) string {
	return "{u:" + id(userID) + "}:save:" + id(gameID) + ":" + slot
}

// SaveVersionField is the field of Save with the newest version.
const SaveVersionField = "ver"

const saveMarkSuffix = ":mark"

// SaveStateField returns the field of Save with the state of a version.
func SaveStateField(version int64) string { return id(version) }

// SaveMarkField returns the field of Save with what is stored beside the state of a version.
func SaveMarkField(version int64) string { return id(version) + saveMarkSuffix }

// ParseSaveMarkField returns the version of a SaveMarkField. It returns false for other fields.
func ParseSaveMarkField(field string) (version int64, ok bool) {
	number, ok := strings.CutSuffix(field, saveMarkSuffix)
	if !ok {
		return 0, false
	}
	version, err := strconv.ParseInt(number, 10, 64)
	return version, err == nil
}

// Saves (hash, no expiry) lists a player's slots in one game: slot to "<ver> <at ms> <size>".
func Saves(userID, gameID int64) string { return "{u:" + id(userID) + "}:saves:" + id(gameID) }

// UserEventSeq (hash, no expiry): "seq" the number of the last event in UserEvents.
func UserEventSeq(userID int64) string { return "{u:" + id(userID) + "}:progress" }

// UserEvents (stream of about 32, 1 h; and a channel of the same name) carries user.progress to the
// player: entries "<seq>-<nonce>" with "t" its type and "e" the event as JSON. It shares the tag of
// the saves, as WalletEvents shares that of the money.
func UserEvents(userID int64) string { return "{u:" + id(userID) + "}:events" }

// PlayerPair (hash, no expiry) is the relation of two players; the lower id comes first: "rel" is
// "friends" or the id of the player who sent the request, "since" (ms), "block:<id>" (ms) when that
// player blocked the other.
func PlayerPair(a, b int64) string {
	if a > b {
		a, b = b, a
	}
	return "{f:" + id(a) + ":" + id(b) + "}:pair"
}

// Money, all under the economy's hash tag.

// Wallet (hash, no expiry): "free:<token>" what can be spent, "held:<token>" stakes in rooms that
// have not ended, both in minor units; "line" number of the last ledger line, "seq" of the last
// event; "grant:<game>" the signup grant, once given.
func Wallet(userID int64) string { return economyPrefix + "wallet:" + id(userID) }

// WalletLines (stream, no expiry) is the player's own ledger, one entry "<line>-0" each:
// "at" (ms), "tok", "delta", "after", "why", "ref".
func WalletLines(userID int64) string { return economyPrefix + "wallet:" + id(userID) + ":lines" }

// WalletEvents (stream of about 32, 1 h; and a channel of the same name) carries user.balance and
// user.asset to the player: entries "<seq>-<nonce>" with "t" its type, "e" the event as JSON.
func WalletEvents(userID int64) string { return economyPrefix + "wallet:" + id(userID) + ":events" }

// Totals (hash, no expiry): "minted:<token>", "wallets:<token>", "escrow:<token>", "house:<token>"
// in minor units, and "seq", the number of the last ledger entry.
func Totals() string { return economyPrefix + "total" }

// Ledger (stream, no expiry) has one double entry for each money script, "<seq>-0" each: "at" (ms),
// "tok", "why", "ref", "post" postings "<account>:<±units>" joined by ";" that sum to zero.
// Accounts are w:<user> (wallet), e:<room> (escrow), h (operator's account), m (minted).
func Ledger() string { return economyPrefix + "ledger" }

// Token (hash, no expiry): "id", "decimals", "name", "logo" ("" for none), "asset" and "policy"
// hexadecimal, "nonce" of the call that made it.
func Token(code string) string { return economyPrefix + "token:" + code }

// Tokens (hash, no expiry) maps the integer id of a token to its code; "next" is the last id that
// was given.
func Tokens() string { return economyPrefix + "tokens" }

// Asset (hash, no expiry): "game", "token", "decimals" of the token, "price" (minor units), "on" 1
// or 0, "stock" ("": no limit), "limit" per user ("": none), "sold", "ver", "name", "meta" JSON,
// "created" (ms), "patch" nonce of the last patch.
func Asset(assetID int64) string { return economyPrefix + "asset:" + id(assetID) }

// AssetIDCounter (string counter, no expiry) is the last asset id that was given.
func AssetIDCounter() string { return economyPrefix + "asset:next" }

// Assets (zset, no expiry) lists a game's asset ids, scored by id.
func Assets(gameID int64) string { return economyPrefix + "assets:" + id(gameID) }

// Inventory (hash, no expiry) maps asset id to the number owned.
func Inventory(userID int64) string { return economyPrefix + "inventory:" + id(userID) }

// MoneyReceipt (string, at least 24 h) is the result of one money request with an Idempotency-Key,
// of one caller ("u<id>", "g<id>", "op"): fingerprint and the parts of the script's reply, each
// followed by "\x1f".
func MoneyReceipt(caller, key string) string { return economyPrefix + "receipt:" + caller + ":" + key }

// Rooms, on their shard.

// Room (hash, until the sweep finds it 24 h after its end) is the room and its seats; rooms/doc.go
// lists the fields.
func Room(s Shard, roomID string) string { return s.tag() + "room:" + roomID }

// RoomEvents (stream of about 256, as the room; and a channel of the same name): entries
// "<seq>-<nonce>" with "t" its type, "e" the event as JSON.
func RoomEvents(s Shard, roomID string) string { return s.tag() + "room:" + roomID + ":events" }

// RoomCounter (string counter, no expiry) counts the rooms that were made on a shard.
func RoomCounter(s Shard) string { return s.tag() + "room:next" }

// RoomCode (string, as the room) maps a short code to a room id.
func RoomCode(s Shard, code string) string { return s.tag() + "code:" + code }

// RoomIndex (zset of room ids, all scores 0: ids sort by age) lists a game's rooms in one state.
// The room scripts maintain it. State is "open" (created, public, a free seat) or a status in lower
// case, both of public rooms only; or "all", whatever their status and visibility. Game 0 has "all"
// only: the rooms of every game.
func RoomIndex(s Shard, gameID int64, state string) string {
	return s.tag() + "rooms:" + id(gameID) + ":" + state
}

// RoomsDue (zset of room ids by ms) is when the sweep checks each room next, never later than the
// room's time is over.
func RoomsDue(s Shard) string { return s.tag() + "rooms:due" }

// RoomsFence (string, no expiry) is the fence of the newest leader of a shard's sweep that changed
// something there.
func RoomsFence(s Shard) string { return s.tag() + "rooms:fence" }

// RoomReceipt (string, at least 24 h) is MoneyReceipt for the rooms of a shard; in the economy it
// is the same record.
func RoomReceipt(s Shard, caller, key string) string {
	return s.tag() + "receipt:" + caller + ":" + key
}
