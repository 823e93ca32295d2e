package rooms

import (
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/internal/wire"
)

// MarshalJSON calls AppendJSON.
func (r Room) MarshalJSON() ([]byte, error) { return r.AppendJSON(make([]byte, 0, 2048)), nil }

// AppendJSON appends the Room object of the wire. It is written by hand because every response of a
// room carries it: reflection takes several times as long and allocates.
func (r *Room) AppendJSON(b []byte) []byte {
	o := appender{b}
	o.open('{')
	o.int("id", r.ID)
	o.text("roomId", r.RoomID)
	o.text("code", r.Code)
	o.int("gameId", r.GameID)
	o.raw("entryToken", r.entryTokenJSON)
	o.amount("roomEntry", "roomEntryAmount", r.Entry, r.TokenDecimals)
	o.amount("totalWager", "totalWagerAmount", r.Pot, r.TokenDecimals)
	o.raw("creator", r.creatorProfileJSON)
	o.raw("host", r.hostProfileJSON)
	o.participants(r.Seats)
	o.seats(r.Seats)
	o.int("maxPlayers", int64(r.MaxPlayers))
	o.int("minPlayers", int64(r.MinPlayers))
	o.bool("isFriendsOnly", r.FriendsOnly)
	o.text("visibility", string(r.Visibility))
	o.bool("autoStart", r.AutoStart)
	o.text("settlement", r.SettledBy)
	o.int("rakeBps", int64(r.RakeBps))
	o.ints("payout", r.PayoutBps)
	o.text("tie", string(r.Tie))
	o.raw("metadata", r.metadataJSON)
	o.text("status", string(r.Status))
	o.textOrNull("reason", r.CancelReason)
	o.int("version", r.Version)
	o.int("seq", r.Seq)
	o.text("position", r.Position)
	o.time("createdAt", r.CreatedAt)
	o.time("startedAt", r.StartedAt)
	o.time("finishedAt", r.FinishedAt)
	o.raw("results", r.placementsJSON)
	o.raw("payouts", r.payoutsJSON)
	o.raw("refunds", r.refundsJSON)
	o.amount("rake", "rakeAmount", r.Rake, r.TokenDecimals)
	o.textOrNull("rematchRoomId", r.RematchID)
	o.close('}')
	return o.b
}

// MarshalJSON returns {"items":[…],"nextCursor":"…"|null}.
func (p Page) MarshalJSON() ([]byte, error) {
	o := appender{make([]byte, 0, 64+1536*len(p.Items))}
	o.open('{')
	o.name("items")
	o.open('[')
	for i := range p.Items {
		o.separate()
		o.b = p.Items[i].AppendJSON(o.b)
	}
	o.close(']')
	o.textOrNull("nextCursor", p.NextCursor)
	o.close('}')
	return o.b, nil
}

// appender appends JSON to a buffer. Its texts are written without escapes: they are ids and
// constants.
type appender struct{ b []byte }

func (o *appender) open(bracket byte)  { o.b = append(o.b, bracket) }
func (o *appender) close(bracket byte) { o.b = append(o.b, bracket) }

// separate appends the comma that a member or an element needs when it is not the first.
func (o *appender) separate() {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
}

func (o *appender) name(name string) {
	o.separate()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *appender) int(name string, n int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *appender) bool(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

func (o *appender) text(name, text string) {
	o.name(name)
	o.b = append(o.b, '"')
	o.b = append(o.b, text...)
	o.b = append(o.b, '"')
}

func (o *appender) textOrNull(name, text string) {
	if text == "" {
		o.raw(name, "")
		return
	}
	o.text(name, text)
}

// raw appends JSON; "" is null.
func (o *appender) raw(name, json string) {
	o.name(name)
	if json == "" {
		json = "null"
	}
	o.b = append(o.b, json...)
}

func (o *appender) time(name string, t time.Time) {
	if t.IsZero() {
		o.raw(name, "")
		return
	}
	o.name(name)
	o.b = wire.AppendTime(o.b, t)
}

// amount appends an amount as a decimal number and in minor units:
// "roomEntry":2.5,"roomEntryAmount":"2500000".
func (o *appender) amount(name, unitsName string, u wallet.Units, decimals int) {
	o.name(name)
	o.b = u.AppendDecimal(o.b, decimals)
	o.name(unitsName)
	o.b = append(o.b, '"')
	o.b = strconv.AppendInt(o.b, int64(u), 10)
	o.b = append(o.b, '"')
}

func (o *appender) ints(name string, list []int) {
	o.name(name)
	o.open('[')
	for _, n := range list {
		o.separate()
		o.b = strconv.AppendInt(o.b, int64(n), 10)
	}
	o.close(']')
}

func (o *appender) participants(seats []Seat) {
	o.name("participants")
	o.open('[')
	for i := range seats {
		if seats[i].State == SeatActive {
			o.separate()
			o.b = append(o.b, seats[i].profileJSON...)
		}
	}
	o.close(']')
}

func (o *appender) seats(seats []Seat) {
	o.name("seats")
	o.open('[')
	for i := range seats {
		o.separate()
		o.open('{')
		o.int("userId", seats[i].UserID)
		o.text("state", string(seats[i].State))
		o.bool("ready", seats[i].Ready)
		o.time("joinedAt", seats[i].JoinedAt)
		o.close('}')
	}
	o.close(']')
}
