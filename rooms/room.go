package rooms

import (
	"slices"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/users"
)

// Status is the state of a room; the package comment draws the state machine.
type Status string

// All statuses.
const (
	Created   Status = "CREATED"
	Started   Status = "STARTED"
	Finished  Status = "FINISHED"
	Cancelled Status = "CANCELLED"
	Disputed  Status = "DISPUTED"
)

// Ended reports whether the room is finished or cancelled.
func (s Status) Ended() bool { return s == Finished || s == Cancelled }

// SettledBy says whether the server or the players report the result of a room.
type SettledBy string

// By default the game's server reports the result. In a room with consensus every active player
// reports it; the server may still do so for all.
const (
	SettledByServer    SettledBy = "server"
	SettledByConsensus SettledBy = "consensus"
)

// Visibility says which players can find a room.
type Visibility string

// Public rooms are listed. Unlisted rooms are open to anybody who has the id or the code. Private
// rooms exist only for seated players, players with a reserved seat, the creator and the creator's
// friends.
const (
	Public   Visibility = "public"
	Unlisted Visibility = "unlisted"
	Private  Visibility = "private"
)

// SeatState is the state of one seat.
type SeatState string

// All states of a seat.
const (
	SeatActive    SeatState = "active"    // the player is in the game
	SeatForfeited SeatState = "forfeited" // the player left after the start; the stake is still in the pot
	SeatReserved  SeatState = "reserved"  // kept until the start for a player of the room before
)

// Tie is the rule for the payout of equal places.
type Tie string

// TieSplit divides the shares of the tied places. TieRefund gives every stake back when the first
// place is tied.
const (
	TieSplit  Tie = "split"
	TieRefund Tie = "refund"
)

// Seat is one player's place in a room.
type Seat struct {
	UserID   int64
	State    SeatState
	Ready    bool
	JoinedAt time.Time    // when the seat was taken or reserved, to the millisecond
	Stake    wallet.Units // the player's part of the pot, minor units of the room's token

	order       int64  // of the seats among each other
	profileJSON string // users.Profile as JSON, as of joining
}

// Profile returns the player's profile as of joining.
func (s Seat) Profile() users.Profile {
	var p users.Profile
	_ = wire.Unmarshal([]byte(s.profileJSON), &p)
	return p
}

// Presence says whether a player has a socket that follows the room. Package presence stores it.
type Presence struct {
	UserID     int64
	Connected  bool
	GraceUntil time.Time // until when the others should wait; zero while connected, and before the first time
}

// Placement is the place that one player reached: what the game's server or a player reports.
type Placement struct {
	UserID int64    `json:"userId"`
	Place  int      `json:"place"`           // from 1; equal places are a tie
	Score  *float64 `json:"score,omitempty"` // in the game's own unit; nil when there is none
}

// Payout is the amount that one player gets out of the pot for a Placement.
type Payout struct {
	UserID int64
	Place  int          // from 1; 0 for a forfeited seat
	Amount wallet.Units // minor units of the room's token
}

// Room is a game session as the store had it at one instant. It is a value: nothing in it changes.
type Room struct {
	ID            int64        // unique in its game
	RoomID        string       // UUID in lower case; it contains the room's shard
	Code          string       // 7 letters and digits, unique in its game; a short name, not a permission
	GameID        int64        //
	TokenCode     string       // code of the entry token, "" for a free room
	TokenDecimals int          // fraction digits of the entry token, 0 to 18
	Entry         wallet.Units // stake of each player, minor units; 0 for a free room
	Pot           wallet.Units // sum of the stakes, minor units; after the end as it was at the end
	MaxPlayers    int
	MinPlayers    int // active players that a start needs
	// HasStakes reports whether money hangs on the room: it takes an entry, is a match of a tournament
	// with a fee or a prize, or feeds a leaderboard with prizes. It never changes.
	HasStakes bool

	FriendsOnly bool
	Visibility  Visibility
	AutoStart   bool
	SettledBy   SettledBy // who reports the result
	RakeBps     int       // the operator's part of the pot, basis points
	PayoutBps   []int     // basis points of the pot less the rake, by place; the sum is 10,000
	Tie         Tie

	Status       Status
	HostID       int64         // user id
	CreatorID    int64         // user id; never changes; 0 in the room of a match
	Version      int64         // from 1; each change adds 1
	Seq          int64         // number of the last event, from 1 without gaps
	Position     string        // "<seq>-<nonce>" of the last event
	CreatedAt    time.Time     // all times to the millisecond
	StartedAt    time.Time     // zero before the start
	FinishedAt   time.Time     // zero before the end; also set when the room was cancelled
	DisputedAt   time.Time     // when the players' reports contradicted each other; zero when they did not
	ReportUntil  time.Time     // of consensus: until when players may report; zero before a report, and after the end
	RefundAt     time.Time     // when a disputed room gives every stake back; zero for any other room
	CancelReason string        // why the room was cancelled: "host", "idle", …; "" when it was not
	Rake         wallet.Units  // what the operator got, minor units; 0 before the end
	RematchID    string        // RoomID of the rematch, "" when there is none
	MatchTimeout time.Duration // from the start to the end of a room without a result
	Shared       *SharedState  // nil when nobody has set any; lists have it only with Mine
	Turn         *Turn         // of a room that has started; nil when nobody has the turn

	Seats []Seat // in seating order

	// Presence is which players with an active seat are connected, in seating order. It is nil while
	// nobody follows the room, and once the room has ended. It changes without Version.
	Presence []Presence

	// Reports are the reports of the players of a room with consensus, in seating order. AppendJSON
	// shows which players have reported; only the operator sees the results.
	Reports     []Report
	showReports bool // for the operator, when the room is disputed or has ended

	consumer string // the result consumer, value feeds of scripts.RoomSettings; "" for none

	creatorProfileJSON, hostProfileJSON      string // users.Profile as JSON
	entryTokenJSON                           string // wallet.Token as JSON as of the creation, "" for a free room
	metadataJSON                             string // JSON object
	placementsJSON, payoutsJSON, refundsJSON string // JSON arrays, "" when there are none
	bannedUsers                              map[int64]bool
}

// MarshalJSON calls AppendJSON.
func (r Room) MarshalJSON() ([]byte, error) { return r.AppendJSON(make([]byte, 0, 2048)), nil }

// AppendJSON appends the Room object of the wire. It is written by hand because every response of a
// room carries it: reflection takes several times as long and allocates.
func (r *Room) AppendJSON(b []byte) []byte {
	o := objectAppender{b}
	o.openBracket('{')
	o.intMember("id", r.ID)
	o.textMember("roomId", r.RoomID)
	o.textMember("code", r.Code)
	o.intMember("gameId", r.GameID)
	o.rawMember("entryToken", r.entryTokenJSON)
	o.amountMembers("roomEntry", "roomEntryAmount", r.Entry, r.TokenDecimals)
	o.amountMembers("totalWager", "totalWagerAmount", r.Pot, r.TokenDecimals)
	o.rawMember("creator", r.creatorProfileJSON)
	o.rawMember("host", r.hostProfileJSON)
	o.participantsMember(r.Seats)
	o.seatsMember(r.Seats)
	if r.Presence != nil {
		o.presenceMember(r.Presence)
	}
	o.intMember("maxPlayers", int64(r.MaxPlayers))
	o.intMember("minPlayers", int64(r.MinPlayers))
	o.boolMember("isFriendsOnly", r.FriendsOnly)
	o.textMember("visibility", string(r.Visibility))
	o.boolMember("autoStart", r.AutoStart)
	o.textMember("settlement", string(r.SettledBy))
	o.intMember("rakeBps", int64(r.RakeBps))
	o.intListMember("payout", r.PayoutBps)
	o.textMember("tie", string(r.Tie))
	o.rawMember("metadata", r.metadataJSON)
	o.textMember("status", string(r.Status))
	o.textOrNullMember("reason", r.CancelReason)
	o.intMember("version", r.Version)
	o.intMember("seq", r.Seq)
	o.textMember("position", r.Position)
	o.timeMember("createdAt", r.CreatedAt)
	o.timeMember("startedAt", r.StartedAt)
	o.timeMember("finishedAt", r.FinishedAt)
	o.rawMember("results", r.placementsJSON)
	o.rawMember("payouts", r.payoutsJSON)
	o.rawMember("refunds", r.refundsJSON)
	o.amountMembers("rake", "rakeAmount", r.Rake, r.TokenDecimals)
	o.textOrNullMember("rematchRoomId", r.RematchID)
	if r.SettledBy == SettledByConsensus {
		o.reportMembers(r)
	}
	o.clockMembers(r)
	o.closeBracket('}')
	return o.b
}

// ActivePlayers returns the user ids of the active seats in seating order.
func (r *Room) ActivePlayers() []int64 {
	var ids []int64
	for _, s := range r.Seats {
		if s.State == SeatActive {
			ids = append(ids, s.UserID)
		}
	}
	return ids
}

// TakenSeats returns the number of seats that count against MaxPlayers: active and reserved ones.
func (r *Room) TakenSeats() int {
	n := 0
	for _, s := range r.Seats {
		if s.State != SeatForfeited {
			n++
		}
	}
	return n
}

// Seat returns a player's seat and reports whether there is one.
func (r *Room) Seat(userID int64) (Seat, bool) {
	i := slices.IndexFunc(r.Seats, func(s Seat) bool { return s.UserID == userID })
	if i < 0 {
		return Seat{}, false
	}
	return r.Seats[i], true
}

// Placements returns the result of a finished room, best place first, and nil for any other room.
func (r *Room) Placements() []Placement {
	var list []Placement
	_ = wire.Unmarshal([]byte(r.placementsJSON), &list)
	return list
}

// seatedUsers returns the user ids of all seats in seating order.
func (r *Room) seatedUsers() []int64 {
	ids := make([]int64, len(r.Seats))
	for i, s := range r.Seats {
		ids[i] = s.UserID
	}
	return ids
}

// reservedUsers returns the user ids of the reserved seats in seating order. A nil room has none.
func (r *Room) reservedUsers() []int64 {
	if r == nil {
		return nil
	}
	var ids []int64
	for _, s := range r.Seats {
		if s.State == SeatReserved {
			ids = append(ids, s.UserID)
		}
	}
	return ids
}

// ChangeResult is the result of a change of a room.
type ChangeResult struct {
	Room     *Room // as it is now, which may be later than right after the change; not with an error
	Replayed bool  // an earlier request with the same key made the change
}

// Page is one page of a list.
type Page struct {
	Items      []Room
	NextCursor string // "" at the end; the page that it leads to may be empty
	Scanned    int    // rooms that were read for the page; not on the wire
}
