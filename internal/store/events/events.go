package events

// Audience is who receives an event.
type Audience string

// The audiences.
const (
	ToRoom       Audience = "room"       // every subscriber of the room, with a gap-free seq
	ToTournament Audience = "tournament" // every subscriber of the tournament, with a gap-free seq
	ToUser       Audience = "user"       // the player alone, on every connection, with a gap-free seq
	ToBoard      Audience = "board"      // who watches the leaderboard, without a seq
	ToConnection Audience = "connection" // this connection, without a seq
	ToServer     Audience = "server"     // the game's server, on its own socket
)

// Type is one kind of event.
type Type struct {
	Name     string   // noun.past_verb, never renamed
	Audience Audience // who receives it
	Meaning  string   // when it happens
	// DataMembers are the members of "data": "a, b: possible values, c (when it is null), d?"; d may
	// be absent. "" is an event without data.
	DataMembers string
}

// The events of rooms. Each is in the room's list with its seq, written by the script that made the
// change.
var (
	RoomCreated = define("room.created", ToRoom, "the room was opened; its creator is seated",
		"code, gameId, creator, maxPlayers, tokenId (null: free), roomEntry, roomEntryAmount, participantCount, "+
			"totalWager, totalWagerAmount, version")
	RoomJoined = define("room.joined", ToRoom, "a player took a seat",
		"user, participantCount, totalWager, totalWagerAmount, version")
	RoomLeft = define("room.left", ToRoom, "a seat, reserved ones included, was vacated or forfeited",
		"userId, reason: left|kicked|banned|forfeited|expired, participantCount, totalWager, totalWagerAmount, "+
			"version")
	RoomReady = define("room.ready", ToRoom, "a player became ready or not ready",
		"userId, ready, version")
	RoomHostChanged = define("room.host_changed", ToRoom, "another player is the host now",
		"userId, version")
	RoomStarted = define("room.started", ToRoom, "the game began; stakes are locked, reserved seats are removed",
		"by: host|server|auto, startedAt, matchDeadline, version")
	RoomResult = define("room.result", ToRoom, "a player of a room with settlement consensus reported what happened",
		"userId, version, until?")
	RoomDisputed = define("room.disputed", ToRoom, "the players reported different results: the pot is frozen until "+
		"the operator decides, or is returned at refundAt",
		"refundAt, version")
	RoomFinished = define("room.finished", ToRoom, "the room ended with a result and paid out",
		"results: [{userId, place, score?}], payouts: [{userId, place (null: forfeited), payout, amount}], rake, "+
			"rakeAmount, version")
	RoomCancelled = define("room.cancelled", ToRoom, "the room ended without a result; every stake was returned",
		"reason: host|operator|server|empty|idle|expired|timeout|dispute_refunded|no_show|tournament, "+
			"refunds: [{userId, refund, amount}], version")
	RoomState = define("room.state", ToRoom, "values of the shared state changed; version is that of the state",
		"version, patch: {name: value}, delete: [name]")
	RoomTurn = define("room.turn", ToRoom, "a player has the turn: it was set, the time of the player before was over, "+
		"or that player left; nobody has it when the host or the server ended it, or when it went on by itself for too long",
		"userId (null: nobody), deadline (null: nobody), reason: set|skipped|left, version")
	RoomConnected = define("room.connected", ToRoom, "a seated player has the first socket that follows the room",
		"userId")
	RoomDisconnected = define("room.disconnected", ToRoom, "a seated player has lost the last socket that followed the "+
		"room; the seat stays, and the others should wait until graceUntil",
		"userId, graceUntil")
	RoomRematch = define("room.rematch", ToRoom, "a room with the same settings and reserved seats was opened",
		"newRoomId, code, by, version")
)

// The events of tournaments. Each is in the tournament's list with its seq, written by the script
// that made the change.
var (
	TournamentOpened = define("tournament.opened", ToTournament, "the tournament was announced, or its registration or "+
		"check-in began",
		"status: ANNOUNCED|REGISTRATION|CHECK_IN, version")
	TournamentJoined = define("tournament.joined", ToTournament, "a player entered and paid the fee",
		"user, entrants, fees, feesAmount, version")
	TournamentLeft = define("tournament.left", ToTournament, "a player is out; before the start, and "+
		"after a match that staff did not decide (disputed), the fee was returned",
		"userId, reason: left|disqualified|no_check_in|disputed, entrants, fees, feesAmount, version")
	TournamentCheckedIn = define("tournament.checked_in", ToTournament, "a player checked in",
		"userId, checkedIn, version")
	TournamentStarted = define("tournament.started", ToTournament, "the tournament began; fees are locked",
		"players, version")
	TournamentRoundStarted = define("tournament.round_started", ToTournament, "a round was drawn",
		"round, matches, deadline, version")
	TournamentMatchReady = define("tournament.match_ready", ToTournament, "the room of a match is open; its players take "+
		"their seats until the deadline",
		"matchId, roomId, attempt, deadline, players: [{userId, seed}], version")
	TournamentMatchDecided = define("tournament.match_decided", ToTournament,
		"a match has a result; refunded: nobody decided it, and both players are out with their fees back",
		"matchId, winnerId (null: a draw, or nobody came), reason: played|walkover|double_forfeit|bye|disqualified|"+
			"resolved|refunded, players: [{userId, seed}], version")
	TournamentSettled = define("tournament.settled", ToTournament, "the tournament is over and paid out",
		"pot, potAmount, rake, rakeAmount, payouts: [{userId, place, payout, amount}], version")
	TournamentCancelled = define("tournament.cancelled", ToTournament, "the tournament ended without a result; every fee "+
		"was returned",
		"reason: operator|server|undersubscribed|expired|unplayed, version")
)

// The events to one player.
var (
	UserBalance = define("user.balance", ToUser, "what the player can spend or holds in stakes changed",
		"tokenId, volume, amount, held, heldAmount, delta, deltaAmount, reason, ref")
	UserAsset = define("user.asset", ToUser, "the player owns more of an asset",
		"assetId, quantity, owned, purchaseId")

	UserPrize = define("user.prize", ToUser, "the player has won a prize of a leaderboard's season or of a tournament; "+
		"it comes behind the user.balance of its units",
		"source, place, tokenId (null: an asset), prize, amount, assetId (null: units), quantity, owned")

	UserProgress = define("user.progress", ToUser, "a save slot has a new version",
		"gameId, slot, version, savedAt, size, restoredFrom?")
	UserMatch = define("user.match", ToUser, "the room of the player's match is open; without the player in it at the "+
		"deadline, the match is lost",
		"tournamentId, matchId, roomId, deadline")
)

// The events to those who watch a leaderboard. They are in no list: the node makes them.
var (
	BoardChanged = define("board.changed", ToBoard,
		"the first entries, or the player's place, changed; it has all that the client asked for, and takes the place of "+
			"what came before",
		"mode: snapshot, season, version, entries, me (null: not asked for)")
	BoardSeasonStarted = define("board.season_started", ToBoard, "a season began; its entries follow", "season")
	BoardSeasonEnded   = define("board.season_ended", ToBoard, "the season that was shown is over", "season")
)

// The events to one connection. They are in no list: the node makes them.
var (
	Hello = define("hello", ToConnection, "the connection is open; the first frame",
		"connectionId, userId, serverTime, protocol, limits: {frameBytes, framesPerSecond, burst, subscriptions, "+
			"roomsPerSubscribe, sockets, boards}")
	ServerDraining = define("server.draining", ToConnection, "this node stops; reconnect to another one",
		"reconnectInMs")
	ServerStale = define("server.stale", ToConnection,
		"this node hears nothing from its store, so events are late; with 0 it hears the store again, and what was "+
			"missed follows",
		"sinceMs")
	RoomSnapshot = define(
		"room.snapshot",
		ToConnection,
		"the current room, instead of the events that this connection missed",
		"mode: snapshot, room, position",
	)
	TournamentSnapshot = define(
		"tournament.snapshot",
		ToConnection,
		"the current tournament, instead of the events that this connection missed",
		"mode: snapshot, tournament, position",
	)
	RoomMessage = define(
		"room.message",
		ToConnection,
		"another participant, or the game's server, sent a message; delivered at most once, in the sender's order",
		"from (null: the game's server), op, payload, encoding?",
	)
	UserMessage = define("user.message", ToConnection,
		"the game's server or the operator sent the player a message; delivered at most once, on every connection",
		"op, payload")
)

// The frames that only a game's server gets, beside the events of rooms and tournaments in the
// form of the feed: feed and position are those of the feed, and time takes the place of at.
var (
	LedgerEntry = define("ledger.entry", ToServer, "the game's ledger has another entry, of any reason but entry, refund "+
		"and payout; feed is money", "gameId, id, at, tokenId, reason, ref, postings")
	GamePosition = define("game.position", ToServer, "the feed went on with at least 512 events that this subscription "+
		"does not get", "")
	GameGap  = define("game.gap", ToServer, "events of the feed are gone; it goes on after position", "")
	RoomCall = define("room.call", ToServer, "a player asks the server, which answers with room.reply; delivered at most "+
		"once, in the player's order", "callId, from, op, payload")
)

var types []Type

func define(name string, to Audience, meaning, data string) Type {
	t := Type{Name: name, Audience: to, Meaning: meaning, DataMembers: data}
	types = append(types, t)
	return t
}

// All returns the events in the order of this file.
func All() []Type { return types }
