package keys

import (
	"strconv"
	"strings"
)

func id(n int64) string { return strconv.FormatInt(n, 10) }

// economyKey returns a key of a game's economy.
func economyKey(gameID int64, parts ...string) string { return taggedKey('e', gameID, parts...) }

// taggedKey returns "{<kind><number>}:<parts>"; a hash tag of an economy has a colon after its
// kind. A busy node makes a dozen keys for each request, so a key is made at once.
func taggedKey(kind byte, number int64, parts ...string) string {
	var buffer [160]byte
	key := append(buffer[:0], '{', kind)
	if kind == 'e' {
		key = append(key, ':')
	}
	key = append(strconv.AppendInt(key, number, 10), '}', ':')
	for _, part := range parts {
		key = append(key, part...)
	}
	return string(key)
}

// The installation.

// Meta (hash, no expiry) has MetaLayoutField and MetaShardsField, which must match every node that
// starts. The other fields are the state of the history of the money.
func Meta() string { return "{p}:meta" }

// The fields of Meta.
const (
	MetaLayoutField       = "layout"   // number of the schema in this package; `parlor upgrade finish` raises it
	MetaShardsField       = "shards"   // number of shards for free rooms
	MetaInstallationField = "id"       // random name of the installation
	MetaEpochField        = "epoch"    // from 1, higher each time that the history went back
	MetaAcceptedField     = "accepted" // last epoch that an operator accepted, absent before
	MetaFormerField       = "former"   // names of installations that an operator let this one follow, "a,b"
	MetaStoppedField      = "stopped"  // why money is stopped, as JSON; absent while it is not
)

// HistoryLosses (hash, no expiry) has the known losses of the store. HistoryLossField is "<number
// of the last entry before the loss>|<number of the last entry after it>|<at ms>|<counts>". counts
// has "<process>=<number of lost entries that it had acknowledged>;" for each node that noticed the
// loss.
func HistoryLosses() string { return "{p}:losses" }

// HistoryLossField is the field of HistoryLosses for one epoch and one game.
func HistoryLossField(epoch, gameID int64) string { return id(epoch) + ":" + id(gameID) }

// HistoryMark (string, no expiry) is a signed mark of the end of each game's history. On a Cluster
// there is one in each third of the slots, so that it does not fail over with the games.
func HistoryMark(tag string) string { return "{" + tag + "}:mark" }

// Probe (string, a minute) is written by nodes each second to find out whether the server of a hash
// tag accepts writes.
func Probe(tag string) string { return "{" + tag + "}:alive" }

// UserIDCounter (string counter, no expiry) is the last user id that was given.
func UserIDCounter() string { return "{p}:user:next" }

// GameIDCounter (string counter, no expiry) is the last game id that was given.
func GameIDCounter() string { return "{p}:game:next" }

// Issuers (hash, no expiry) maps the digest of an outside issuer and audience to the game that
// accepts it. It is an index: the game's definition decides.
func Issuers() string { return "{p}:issuers" }

// Token (hash, no expiry) has "id", "decimals", "name", "logo" (may be ""), "asset" and "policy" in
// hexadecimal, and "nonce" of the call that made it. "games" lists the games whose server keys may
// credit and debit it: "<game>:<units a day>", joined by ",". The units that exist are counted in
// each economy.
func Token(code string) string { return "{p}:token:" + code }

// Tokens (hash, no expiry) maps the integer id of a token to its code; "next" is the last id that
// was given.
func Tokens() string { return "{p}:tokens" }

// AssetIDCounter (string counter, no expiry) is the last asset id that was given.
func AssetIDCounter() string { return "{p}:asset:next" }

// GameBytes (hash, no expiry) maps game ids to how many bytes they have in the store, as some node
// estimated last. Games with little are absent.
func GameBytes() string { return "{p}:games:bytes" }

// GamesOverShare (string, half a minute) names the games that have more of the store than their
// share, the one that is most over it first, and those over a quota of bytes that the operator set:
// "<game>,…|<game>:<bytes>,…".
func GamesOverShare() string { return "{p}:games:over" }

// GamesWithWork (set of game ids, no expiry) lists the games that may need one kind of background
// work. Nodes add the games that they changed, and the elected leader for that kind moves them to
// GamesInWork.
func GamesWithWork(kind string) string { return "{p}:work:" + kind }

// GamesInWork (set of game ids, no expiry) has the games of GamesWithWork that the leader looks at.
// It removes them afterwards; the next leader goes on with those of one that died.
func GamesInWork(kind string) string { return "{p}:work:" + kind + ":now" }

// GamesLookedAt (string, a minute) is there while every game was looked at for one kind of
// background work in the last minute.
func GamesLookedAt(kind string) string { return "{p}:work:" + kind + ":all" }

// LinesLookedAt (string, a day) is there while the lines of every player were looked at for the
// archive in the last day.
func LinesLookedAt() string { return "{p}:work:lines:all" }

// MoneyHalts (hash, no expiry) names the games whose money is halted: "<game>:<cause>", game 0 for
// all, to "<ms>|<sentence for operators>".
func MoneyHalts() string { return "{p}:stops" }

// Pepper (string, no expiry) is the installation's random key for the digests of players'
// credentials.
func Pepper() string { return "{p}:pepper" }

// EndedSessions (stream, trimmed to the last 25 h) has one entry for each end of sessions that are
// not over by themselves: "what" they are, "at" (ms) the time by which they had begun, or "" for
// all, "code" the close code of their sockets; for a suspension "until" (ms), 0 for no end.
func EndedSessions() string { return "{p}:sessions:ended" }

// Trail (stream of the last 10,000, no expiry) has the staff writes of a role, "operator" or
// "server": the entry "<number>-0" has "at" (ms) and "act", a trail.Act as JSON of at most 6 KiB.
// Nodes of older releases also wrote the acts of game servers here, which now go to ServerTrail.
func Trail(role string) string { return "{p}:trail:" + role }

const (
	serverTrail  = "trail:server"
	routineTrail = "trail:routine"
)

// ServerTrail (stream of the last 5,000, no expiry) is Trail for the server keys of one game.
func ServerTrail(gameID int64) string { return "{p}:" + serverTrail + ":" + id(gameID) }

// RoutineTrail (stream of the last 1,000, no expiry) is ServerTrail for acts that a game's server
// repeats for each player or round. They have their own stream so that they do not push out other
// acts.
func RoutineTrail(gameID int64) string { return "{p}:" + routineTrail + ":" + id(gameID) }

// TrailGames (set of game ids, no expiry) names the games that may have a ServerTrail or a
// RoutineTrail.
func TrailGames() string { return "{p}:trail:games" }

// TrailNumber (string counter, no expiry) is the number of the last record of every Trail.
func TrailNumber() string { return "{p}:trail:next" }

// TrailMark (string, a minute) is there when the call with a nonce has appended its record.
func TrailMark(nonce string) string { return "{p}:trail:mark:" + nonce }

// ExternalTokenUse (string, until the token expires) is when a token of an outside issuer was first
// used, in milliseconds.
func ExternalTokenUse(digest string) string { return "{x:" + digest + "}:first" }

// Lock (string, seconds) is a lock by name: of the leader of one kind of background work, or of a
// command that must run alone.
func Lock(name string) string { return "{l:" + name + "}:lock" }

// FenceCounter (string counter, no expiry) numbers the holders of a lock. It shares the lock's hash
// tag.
func FenceCounter(name string) string { return "{l:" + name + "}:fence" }

// Ticket (string, 60 s) is a one-time ticket that opens a socket, by the SHA-256 of its secret.
func Ticket(digest string) string { return "{t:" + digest + "}:ticket" }

// ConsoleLink (string, 60 s; a day in development) is a one-time link to the console. Its id is the
// SHA-256 of the link's secret, and its value the fingerprint of the operator's key that made it.
func ConsoleLink(digest string) string { return "{t:" + digest + "}:console" }

// ConsoleSessions (hash, 8 h after the last sign-in) maps the SHA-256 of a console session's secret
// to "<start ms>|<end ms>|<fingerprint of the operator's key>".
func ConsoleSessions() string { return "{p}:console" }

// Nodes (hash, a minute after the last write) maps the id of each node to the node's last report
// about itself, as JSON.
func Nodes() string { return "{p}:nodes" }

// PresenceLeases (zset of lease ids by ms, no expiry) is until when the lease of each node lasts; 0
// for one that has ended and whose players are not all announced yet; and for a day the negative
// time at which they were.
func PresenceLeases() string { return "{p}:presence" }

// PresenceShards (set of hash tags, until the players of an ended lease are announced) is where
// PresenceLease may be.
func PresenceShards(lease string) string { return "{p}:presence:" + lease + ":shards" }

// RateLimit (string, until the bucket is full again) is the state of one rate limit for one caller.
func RateLimit(class, caller string) string { return "{q:" + caller + "}:rate:" + class }

// ProbeChannel (a channel; nothing is stored) is on the same server as the topics of a hash tag:
// when a node receives its own message there, the topics' messages arrive too.
func ProbeChannel(tag string, number uint64) string {
	return "{" + tag + "}:probe:" + strconv.FormatUint(number, 36)
}

// NodeChannel (a channel; nothing is stored) carries what other nodes send to one node: calls of
// players to servers that are connected there, and replies to calls of players there.
func NodeChannel(node string) string { return "{n:" + node + "}:calls" }

// GameServers (hash, ten minutes after the last renewal) maps the connection id of each server that
// listens to rooms of a game to its lease: "<channel of the node>|<connected at
// ms>|<of>|<index>|<expires ms>|<rooms>". of is 0 for a server that listens to no share, and rooms
// is how many rooms it has in GameServerRooms.
func GameServers(gameID int64) string { return serversKey(gameID, "servers") }

// GameServerRooms (set of room ids, until the lease of the connection is over) has the rooms to
// which one server listens beside its share.
func GameServerRooms(gameID int64, connectionID string) string {
	return serversKey(gameID, "servers:rooms:"+connectionID)
}

func serversKey(gameID int64, name string) string { return "{s:" + id(gameID) + "}:" + name }

// StoredResponse (hash, at least 24 h; 30 s while the request runs) is the first response to a POST
// that carried an Idempotency-Key and has no receipt in a script: "fp" fingerprint, "owner" the
// execution, "answer" the encrypted response, absent while the request runs.
func StoredResponse(caller, keyDigest string) string { return "{i:" + caller + "}:answer:" + keyDigest }

// A game.

// Game (hash, no expiry): "doc" its definition as JSON, "ver", "created" (ms), "nonce" of the last
// change, and for each server key "key:<SHA-256>" when it was made (ms); "webhooks" how many
// webhooks are active, absent for 0.
func Game(gameID int64) string { return "{g:" + id(gameID) + "}:game" }

// NewPlayers (string, two days) counts the players that a game got in a day: "<day>|<players>".
// Days are counted from 1970, in UTC.
func NewPlayers(gameID int64) string { return "{g:" + id(gameID) + "}:players:day" }

// GameActivity (list of the newest 288, 25 h after somebody played) has a sample of how
// busy a game was each five minutes: "<ms>|<rooms>|<players>|<token>:<units at stake>,…".
func GameActivity(gameID int64) string { return "{g:" + id(gameID) + "}:activity" }

// Identity (string, no expiry) maps the digest of a player's credential (kind "device", "external",
// "issuer") to a user id, within one game.
func Identity(gameID int64, kind, digest string) string {
	return "{g:" + id(gameID) + "}:identity:" + kind + ":" + digest
}

// GrantedIdentity (string, 366 days) marks an Identity whose deleted player had received the signup
// grant, so that the next player with this Identity gets none.
func GrantedIdentity(gameID int64, kind, digest string) string {
	return "{g:" + id(gameID) + "}:granted:" + kind + ":" + digest
}

// A player.

// User (hash, no expiry): "username", "avatar", "game", "kind", "created" (ms), "granted", "ended"
// (ms) when the sessions that had begun were ended, "suspended" "<until ms, 0 for no end>|<reason>"
// or "" when the player is not, and UserIdentityField for each identity.
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

// Friends (zset of user ids by id, no expiry) lists a player's friends and the players to whom the
// player sent a request. Like the two below it is only an index: the PlayerPair has the relation.
func Friends(userID int64) string { return "{u:" + id(userID) + "}:friends" }

// FriendRequests (zset of user ids by ms, no expiry) lists the senders of the player's newest
// requests, at most 200.
func FriendRequests(userID int64) string { return "{u:" + id(userID) + "}:friend-requests" }

// BlockedPlayers (zset of user ids by id, no expiry) lists those whom the player blocked.
func BlockedPlayers(userID int64) string { return "{u:" + id(userID) + "}:blocked" }

// RefreshFamily (hash, until the family expires) is a family of refresh tokens: "current" digest,
// "game", "start" (ms), "until" (ms) its latest end, "by" the id of the server key that made it,
// "prev" the digest before the current one, "rotated" (ms) when that was replaced, "reused" when a
// token was used twice: then the family is revoked.
func RefreshFamily(userID int64, family string) string {
	return "{u:" + id(userID) + "}:refresh:" + family
}

// RefreshFamilies (zset of families by ms, 180 days after the last sign-in) has the time at which
// each RefreshFamily of a player expires. It is an index and may name families that no longer
// exist.
func RefreshFamilies(userID int64) string { return "{u:" + id(userID) + "}:refreshes" }

// Save (hash, no expiry) is one save slot and its last versions: SaveVersion the newest version,
// and for each kept version SaveStateField, its state as JSON, and SaveMarkField, "<message> <at
// ms> <size> <key id> <signature> <rate state as JSON>".
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

// SavesBytesField is the field of Saves with the bytes of all versions' states. No slot has an
// empty name.
const SavesBytesField = ""

// Saves (hash, no expiry) lists a player's slots in one game: slot to "<ver> <at ms> <size>", and
// SavesBytesField.
func Saves(userID, gameID int64) string { return "{u:" + id(userID) + "}:saves:" + id(gameID) }

// UserEventSeq (hash, no expiry): "seq" the number of the last event in UserEvents.
func UserEventSeq(userID int64) string { return "{u:" + id(userID) + "}:progress" }

// UserEvents (list of the newest 32, 1 h; and a channel of the same name) carries user.progress and
// user.match to the player, in the form of package events. It shares the tag of the saves, as
// WalletLines shares that of the money.
func UserEvents(userID int64) string { return "{u:" + id(userID) + "}:events" }

// PlayerPair (hash, no expiry) is the relation of two players, with the lower id first in the key.
// "rel" is "friends", or the id of the player who sent a friend request; "since" (ms) is its time.
// "block:<id>" (ms) is when that player blocked the other.
func PlayerPair(a, b int64) string {
	if a > b {
		a, b = b, a
	}
	return "{f:" + id(a) + ":" + id(b) + "}:pair"
}

// The economy of a game: all its money, its catalogue, its prizes, its tournaments (tour.go) and
// its rooms that take a stake.

// Wallet (hash, no expiry): for each token "<free>|<held>", what can be spent, and the stakes in
// rooms and the fees in tournaments that have not ended, in minor units; WalletSeqField the number
// of the player's last event; WalletGrantField "1" once the sign-up grant was given;
// WalletBaseField how many entries were removed from the front of WalletLines, absent for 0. Once
// the player has set limits, "|L" follows the balance of each token, WalletExcludedField is the
// time (ms) until which the player pays no entry and no fee, "0" for none, and WalletLimitsField
// the limits of a token, packed as scripts.WalletLimits.
func Wallet(gameID, userID int64) string { return economyKey(gameID, "wallet:", id(userID)) }

// WalletLines (list, no expiry; and a channel of the same name) is the player's own ledger, and
// what carries user.balance, user.asset and user.prize to the player: entries in the form of
// package events. The id of a line is WalletBaseField and its place in the list, from 1.
func WalletLines(gameID, userID int64) string {
	return economyKey(gameID, "wallet:", id(userID), walletLinesSuffix)
}

const walletLinesSuffix = ":lines"

// WalletWithLines returns Wallet and WalletLines, made at once.
func WalletWithLines(gameID, userID int64) (wallet, lines string) {
	lines = WalletLines(gameID, userID)
	return strings.TrimSuffix(lines, walletLinesSuffix), lines
}

// ParseWalletLines returns the player of a WalletLines. It returns false for other keys.
func ParseWalletLines(key string) (userID int64, ok bool) {
	_, name, found := strings.Cut(key, "}:wallet:")
	number, isLines := strings.CutSuffix(name, ":lines")
	userID, err := strconv.ParseInt(number, 10, 64)
	return userID, found && isLines && err == nil
}

// Totals (hash, no expiry): "minted:<token>", "wallets:<token>", "escrow:<token>", "house:<token>",
// "prizes:<token>" in minor units, and TotalsFoldedField. "minted" is exact at every instant; the
// others are the sums of the ledger up to its entry number "folded".
func Totals(gameID int64) string { return economyKey(gameID, "totals") }

// TotalsFence (string, no expiry) is the fence of the newest leader that folded the ledger.
func TotalsFence(gameID int64) string { return economyKey(gameID, "totals:fence") }

// Ledger (list, no expiry) has one double entry for each money script,
// "<ms>|<nonce>|<token>|<reason>|<ref>|<postings>". Postings are "<account><±units>" joined by ";"
// that sum to zero; accounts are "w<user>:" (wallet), "e:" (escrow of the room or the tournament in
// ref), "h:" (operator's account), "p:" (prizes of the source in ref), "m:" (minted). The number of
// an entry is LedgerBase and its place in the list, from 1.
func Ledger(gameID int64) string { return economyKey(gameID, "ledger") }

// AuditDefects (hash, no expiry) has the differences that the audit found in a game, in minor
// units: DefectFound the difference from the ledger, DefectAccepted the part that an operator
// accepted.
func AuditDefects(gameID int64) string { return economyKey(gameID, "audit:defects") }

// ServerMints (hash, no expiry) maps a token to "<day>|<units>": the units that the game's server
// keys minted on the last day on which they minted any. Days are counted from 1970, in UTC.
func ServerMints(gameID int64) string { return economyKey(gameID, "mints:server") }

// PrizeBudgets (hash, no expiry) maps a leaderboard to the time (ms) before which no further season
// gets prizes: the scheduled end of the season that was funded last.
func PrizeBudgets(gameID int64) string { return economyKey(gameID, "prizes:budgets") }

// GrantMints (hash, no expiry) is ServerMints for the sign-up grants of the game.
func GrantMints(gameID int64) string { return economyKey(gameID, "mints:grants") }

// LedgerBase (string, absent for 0) is how many entries were removed from the front of Ledger.
func LedgerBase(gameID int64) string { return economyKey(gameID, "ledger:base") }

// LedgerArchive (hash, no expiry) is what left Ledger last: LedgerArchiveSumField the SHA-256 of
// the archive's segment that ends with entry number LedgerBase, "fence" that of the newest leader
// that removed entries.
func LedgerArchive(gameID int64) string { return economyKey(gameID, "ledger:archive") }

// Asset (hash, no expiry): AssetLiveField what changes with a sale, packed as scripts.AssetLive;
// "token", "decimals" of the token, "name", "meta" JSON, "created" (ms), "patch" nonce of the last
// patch, "prize" "1" once it was promised as a prize.
func Asset(gameID, assetID int64) string { return economyKey(gameID, "asset:", id(assetID)) }

// Assets (zset, no expiry) lists a game's asset ids, scored by id.
func Assets(gameID int64) string { return economyKey(gameID, "assets") }

// Inventory (hash, no expiry) maps asset id to the number owned.
func Inventory(gameID, userID int64) string { return economyKey(gameID, "inventory:", id(userID)) }

// Prize (hash, until a minute after its board or tournament was removed) is the pool of a source of
// prizes, "board:<key>:<season>" or "tour:<id>". Its fields are:
//
//	PrizeTokenField, "decimals"   the token of the pool
//	PrizePoolField                units that came in
//	"from", "funded"              "house" or "mint", and the units that came from there
//	PrizePaidField                units that were paid out
//	PrizeStateField               PLANNED, PAID or VOID; absent before the plan
//	PrizeLinesField, "digest"     the number of lines of the plan, and the digest of all of them
//	PrizeNextField                the number of lines that are paid
//	"planned"                     the units of the lines that are stored
//	"reason"                      why it was voided
//
// The account of the source has the pool less the units that were paid; it is empty when PAID or
// VOID.
func Prize(gameID int64, source string) string { return economyKey(gameID, "prize:", source) }

// The fields of Prize that Go code reads.
const (
	PrizeTokenField = "token"
	PrizePoolField  = "pool"
	PrizePaidField  = "paid"
	PrizeStateField = "state"
	PrizeLinesField = "lines"
	PrizeNextField  = "next"
)

// PrizePlan (list, until the source is removed) has a line for each prize, packed as
// "<user, 0 for the house>:<place>:<units>:<asset, empty for none>:<quantity, likewise>".
func PrizePlan(gameID int64, source string) string {
	return economyKey(gameID, "prize:", source, ":plan")
}

// MoneyReceipt (string, at least 24 h) is the first outcome of one request about money or a
// tournament with an Idempotency-Key, of one caller ("u<id>", "g<id>", "op"): fingerprint and the
// parts of the script's reply, each followed by "\x1f".
func MoneyReceipt(gameID int64, caller, key string) string {
	return economyKey(gameID, "receipt:", caller, ":", key)
}

// Rooms, on their shard.

// Room (hash, until the sweep finds it 24 h after its end) is the room and its seats; rooms/doc.go
// lists the fields.
func Room(s Shard, roomID string) string { return s.key("room:", roomID) }

const roomEventsSuffix = ":events"

// RoomEvents (list of the newest 256 to 319, until 10 minutes after the room's end; and a channel
// of the same name) carries the events of a room, in the form of package events.
func RoomEvents(s Shard, roomID string) string { return s.key("room:", roomID, roomEventsSuffix) }

// RoomWithEvents returns Room and RoomEvents, made at once.
func RoomWithEvents(s Shard, roomID string) (room, events string) {
	events = RoomEvents(s, roomID)
	return strings.TrimSuffix(events, roomEventsSuffix), events
}

// ParseRoomEvents returns the room of a RoomEvents. It returns false for other keys.
func ParseRoomEvents(key string) (roomID string, ok bool) {
	_, name, found := strings.Cut(key, "}:room:")
	if !found {
		return "", false
	}
	return strings.CutSuffix(name, roomEventsSuffix)
}

// RoomCounter (string counter, no expiry) counts the rooms that were made on a shard.
func RoomCounter(s Shard) string { return s.key("room:next") }

// RoomCode (string, as the room) maps a short code to a room id.
func RoomCode(s Shard, code string) string { return s.key("code:", code) }

// RoomIndex (zset of room ids, all scores 0: ids sort by age) lists a game's rooms in one state.
// The room scripts maintain it. State is "open" (created, public, a free seat) or a status in lower
// case, both of public rooms only; or "all", whatever their status and visibility.
func RoomIndex(s Shard, gameID int64, state string) string {
	return s.key("rooms:", id(gameID), ":", state)
}

// FreeRooms (zset as RoomIndex) lists the rooms of a free shard, those of every game.
func FreeRooms(s Shard) string { return s.key("rooms") }

// DisputedRooms (zset as RoomIndex) lists the disputed rooms of a shard, those of every visibility
// and, on a free shard, of every game.
func DisputedRooms(s Shard) string { return s.key("rooms:disputed") }

// DisputesLost (hash, no expiry) counts, for each player of a game, the disputed rooms of a shard
// in which staff decided against the player's report.
func DisputesLost(s Shard, gameID int64) string { return s.key("disputes_lost:", id(gameID)) }

// PlayerRooms (zset as RoomIndex) lists the rooms of a shard that have not ended and in which a
// player has a seat.
func PlayerRooms(s Shard, userID int64) string { return s.key("player:", id(userID), ":rooms") }

// RoomsMade (zset as RoomIndex, until the room that was made last must have ended) lists the rooms
// of a shard that a player made and that may not have ended. A reader must check each of them.
// Ended rooms are removed when the list is full. A node without limits does not write it.
func RoomsMade(s Shard, userID int64) string { return s.key("player:", id(userID), ":made") }

// RoomsDue (zset of room ids by ms) is when the sweep checks each room next. That is never later
// than the end of the room's time.
func RoomsDue(s Shard) string { return s.key("rooms:due") }

// RoomTurns (zset of room ids by ms) is when the turn of each room ends. It may name ended rooms;
// the sweep of turns removes them.
func RoomTurns(s Shard) string { return s.key("rooms:turns") }

// RoomOutbox (hash, no expiry) maps the rooms that have ended and feed something to how they ended,
// packed as scripts.RoomEnd, until their result consumer has applied that.
func RoomOutbox(s Shard) string { return s.key("rooms:outbox") }

// DeadLetters (hash of at most 1,000, no expiry) has the entries of RoomOutbox that their consumer
// rejected for good, until staff apply them again: the entry, a tab and the error; and when a
// part was applied, a tab and that part.
func DeadLetters(s Shard) string { return s.key("rooms:parked") }

// RoomsFence (string, no expiry) is the fence of the newest leader of the sweep that changed
// something on a shard.
func RoomsFence(s Shard) string { return s.key("rooms:fence") }

// Feed (list, no expiry; and a channel of the same name) has the events of a game's rooms and
// tournaments on a shard, of those that were made while the game had a feed. Package feed has their
// form. The newest 4,096 to 5,119 stay, and what waits for a webhook, up to 100,000.
func Feed(s Shard, gameID int64) string { return s.key(feedName(s, gameID)) }

// FeedHead (hash, no expiry) is what is known of a Feed: "seq" the number of its last entry,
// "since" (ms) when its first one was written, "kept" the number of the last entry that every
// active webhook has delivered, absent when none waits.
func FeedHead(s Shard, gameID int64) string { return s.key(feedName(s, gameID), ":head") }

func feedName(s Shard, gameID int64) string {
	if s.paid {
		return "feed"
	}
	return "feed:" + id(gameID)
}

// ParseFeed returns the shard and the game of a Feed. It returns false for other keys.
func ParseFeed(key string) (s Shard, gameID int64, ok bool) {
	tag, name, found := strings.Cut(strings.TrimPrefix(key, "{"), "}:feed")
	s, isShard := ParseShard(tag)
	if gameID = s.GameID(); !s.paid {
		gameID = leadingID(strings.TrimPrefix(name, ":"))
	}
	return s, gameID, found && isShard && key == Feed(s, gameID)
}

// PresenceLease (hash, until a day after the lease has ended) is the lease of a node for its
// players, on one shard. The id of each room in which the lease has a player maps to "1". "call"
// is the number of the last call that changed something, and "ended" is "1" once the lease has
// ended.
func PresenceLease(s Shard, lease string) string { return s.key("presence:", lease) }

// RoomReceipt (string, at least 24 h) is MoneyReceipt for the rooms of a shard; in an economy it is
// the same record.
func RoomReceipt(s Shard, caller, key string) string {
	return s.key("receipt:", caller, ":", key)
}
