package rooms

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
)

// Status is where a room stands; doc.go draws the machine.
type Status string

// The states of contract 4.
const (
	Created   Status = "CREATED"
	Started   Status = "STARTED"
	Finished  Status = "FINISHED"
	Cancelled Status = "CANCELLED"
)

// Ended tells whether nothing can change the room any more.
func (s Status) Ended() bool { return s == Finished || s == Cancelled }

// Visibility says who finds a room.
type Visibility string

// Public rooms are listed. Unlisted ones open to whoever has the id or the code. Private ones exist only for
// those who are seated, hold a reserved seat or are friends of the creator.
const (
	Public   Visibility = "public"
	Unlisted Visibility = "unlisted"
	Private  Visibility = "private"
)

// SeatState is what a seat is to its player.
type SeatState string

// The states of a seat.
const (
	Active    SeatState = "active"    // plays
	Forfeited SeatState = "forfeited" // left after the start; the stake is still in the pot
	Reserved  SeatState = "reserved"  // held for a player of the room before, until the start
)

// Tie says what becomes of equal places.
type Tie string

// TieSplit shares what the tied places would get; TieRefund gives every stake back when the first place is tied.
const (
	TieSplit  Tie = "split"
	TieRefund Tie = "refund"
)

// Seat is one player's place in a room.
type Seat struct {
	UserID   int64
	State    SeatState
	Ready    bool
	JoinedAt time.Time    // when the seat was taken, or reserved
	Stake    wallet.Units // what the player has in the pot

	profile string // users.Profile as JSON, as of sitting down
}

// Profile is the player as of sitting down.
func (s Seat) Profile() users.Profile { return profileOf(s.profile) }

// Placement is what one player reached.
type Placement struct {
	UserID int64    `json:"userId"`
	Place  int      `json:"place"` // from 1; equal places are a tie
	Score  *float64 `json:"score,omitempty"`
}

// Payout is what one player got out of the pot.
type Payout struct {
	UserID int64
	Place  int
	Amount wallet.Units
}

// Room is a game session as the store had it at one instant. It is a value: nothing in it changes.
type Room struct {
	ID         int64  // unique in the installation
	RoomID     string // UUID that tells the room's home
	Code       string // short name to say aloud; a name, not a permission
	GameID     int64
	Token      string       // code of the entry token, "" for a free room
	Decimals   int          // of the entry token
	Entry      wallet.Units // per player, 0 for a free room
	Pot        wallet.Units // sum of the live stakes; as of its end once the room has ended
	MaxPlayers int
	MinPlayers int

	FriendsOnly bool
	Visibility  Visibility
	AutoStart   bool
	Settlement  string // "server"
	RakeBps     int
	Payout      []int // basis points per place, sum 10,000
	Tie         Tie

	Status     Status
	Host       int64
	Creator    int64
	Version    int64  // one more with every change
	Seq        int64  // number of the last event
	Position   string // "<seq>-<nonce>" of the last event
	CreatedAt  time.Time
	StartedAt  time.Time // zero before the start
	FinishedAt time.Time // zero before the end, of either kind
	Reason     string    // why it was cancelled, or ""
	Rake       wallet.Units
	RematchID  string // id of the room that a rematch opened, or ""

	Seats []Seat // in seating order

	creator, host string // profiles as JSON
	entryToken    string // as of the opening, JSON or ""
	metadata      string // JSON object
	results       string // JSON array or ""
	payouts       string
	refunds       string
	banned        map[int64]bool
}

// ActivePlayers lists the players in seating order, without the forfeited and the reserved.
func (r *Room) ActivePlayers() []int64 {
	var ids []int64
	for _, s := range r.Seats {
		if s.State == Active {
			ids = append(ids, s.UserID)
		}
	}
	return ids
}

// TakenSeats counts the seats that nobody else can take: active ones, and reserved ones before the start.
func (r *Room) TakenSeats() int {
	n := 0
	for _, s := range r.Seats {
		if s.State != Forfeited {
			n++
		}
	}
	return n
}

// Seat finds a player's seat.
func (r *Room) Seat(user int64) (Seat, bool) {
	i := slices.IndexFunc(r.Seats, func(s Seat) bool { return s.UserID == user })
	if i < 0 {
		return Seat{}, false
	}
	return r.Seats[i], true
}

// Placements is the result with which the room was finished, best place first.
func (r *Room) Placements() []Placement {
	var list []Placement
	_ = json.Unmarshal([]byte(r.results), &list)
	return list
}

// staked lists the players whose stakes are in the pot.
func (r *Room) staked() []int64 {
	var ids []int64
	for _, s := range r.Seats {
		if s.Stake > 0 {
			ids = append(ids, s.UserID)
		}
	}
	return ids
}

// MarshalJSON is AppendJSON.
func (r Room) MarshalJSON() ([]byte, error) { return r.AppendJSON(make([]byte, 0, 2048)), nil }

// AppendJSON appends the Room object of the wire.
func (r *Room) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, r.ID, 10)
	b = append(b, `,"roomId":"`...)
	b = append(b, r.RoomID...)
	b = append(b, `","code":"`...)
	b = append(b, r.Code...)
	b = append(b, `","gameId":`...)
	b = strconv.AppendInt(b, r.GameID, 10)
	b = append(b, `,"entryToken":`...)
	b = appendRaw(b, r.entryToken, "null")
	b = r.appendAmount(b, "roomEntry", r.Entry)
	b = r.appendAmount(b, "totalWager", r.Pot)
	b = append(b, `,"creator":`...)
	b = append(b, r.creator...)
	b = append(b, `,"host":`...)
	b = append(b, r.host...)
	b = append(b, `,"participants":[`...)
	first := true
	for i := range r.Seats {
		if r.Seats[i].State == Active {
			b = appendComma(b, &first)
			b = append(b, r.Seats[i].profile...)
		}
	}
	b = append(b, `],"seats":[`...)
	first = true
	for i := range r.Seats {
		s := &r.Seats[i]
		b = appendComma(b, &first)
		b = append(b, `{"userId":`...)
		b = strconv.AppendInt(b, s.UserID, 10)
		b = append(b, `,"state":"`...)
		b = append(b, s.State...)
		b = append(b, `","ready":`...)
		b = strconv.AppendBool(b, s.Ready)
		b = append(b, `,"joinedAt":`...)
		b = appendTime(b, s.JoinedAt)
		b = append(b, '}')
	}
	b = append(b, `],"maxPlayers":`...)
	b = strconv.AppendInt(b, int64(r.MaxPlayers), 10)
	b = append(b, `,"minPlayers":`...)
	b = strconv.AppendInt(b, int64(r.MinPlayers), 10)
	b = append(b, `,"isFriendsOnly":`...)
	b = strconv.AppendBool(b, r.FriendsOnly)
	b = append(b, `,"visibility":"`...)
	b = append(b, r.Visibility...)
	b = append(b, `","autoStart":`...)
	b = strconv.AppendBool(b, r.AutoStart)
	b = append(b, `,"settlement":"`...)
	b = append(b, r.Settlement...)
	b = append(b, `","rakeBps":`...)
	b = strconv.AppendInt(b, int64(r.RakeBps), 10)
	b = append(b, `,"payout":[`...)
	for i, bps := range r.Payout {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(bps), 10)
	}
	b = append(b, `],"tie":"`...)
	b = append(b, r.Tie...)
	b = append(b, `","metadata":`...)
	b = appendRaw(b, r.metadata, "{}")
	b = append(b, `,"status":"`...)
	b = append(b, r.Status...)
	b = append(b, `","reason":`...)
	b = appendText(b, r.Reason)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, r.Version, 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, r.Seq, 10)
	b = append(b, `,"position":"`...)
	b = append(b, r.Position...)
	b = append(b, `","createdAt":`...)
	b = appendTime(b, r.CreatedAt)
	b = append(b, `,"startedAt":`...)
	b = appendTime(b, r.StartedAt)
	b = append(b, `,"finishedAt":`...)
	b = appendTime(b, r.FinishedAt)
	b = append(b, `,"results":`...)
	b = appendRaw(b, r.results, "null")
	b = append(b, `,"payouts":`...)
	b = appendRaw(b, r.payouts, "null")
	b = append(b, `,"refunds":`...)
	b = appendRaw(b, r.refunds, "null")
	b = r.appendAmount(b, "rake", r.Rake)
	b = append(b, `,"rematchRoomId":`...)
	b = appendText(b, r.RematchID)
	return append(b, '}')
}

// appendAmount appends a member and its twin in minor units: "roomEntry":2.5,"roomEntryAmount":"2500000".
func (r *Room) appendAmount(b []byte, name string, u wallet.Units) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	b = u.AppendDecimal(b, r.Decimals)
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `Amount":"`...)
	b = strconv.AppendInt(b, int64(u), 10)
	return append(b, '"')
}

func appendRaw(b []byte, raw, absent string) []byte {
	if raw == "" {
		return append(b, absent...)
	}
	return append(b, raw...)
}

// appendText is for words and ids, which need no escapes.
func appendText(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendComma(b []byte, first *bool) []byte {
	if *first {
		*first = false
		return b
	}
	return append(b, ',')
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	return append(b, '"')
}

func profileOf(text string) users.Profile {
	var p users.Profile
	_ = json.Unmarshal([]byte(text), &p)
	return p
}

// Result is what a change of a room answers.
type Result struct {
	Room     Room
	Replayed bool // the room is as it was answered to the first request with this key
}

// Page is one page of a list.
type Page struct {
	Items      []Room
	NextCursor string // "" on the last page
}

// MarshalJSON gives {"items":[…],"nextCursor":"…"|null}.
func (p Page) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64+1536*len(p.Items)), `{"items":[`...)
	for i := range p.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Items[i].AppendJSON(b)
	}
	b = append(b, `],"nextCursor":`...)
	return append(appendText(b, p.NextCursor), '}'), nil
}
