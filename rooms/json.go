package rooms

import (
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

// MarshalJSON returns {"items":[…],"nextCursor":"…"|null}.
func (p Page) MarshalJSON() ([]byte, error) {
	o := objectAppender{make([]byte, 0, 64+1536*len(p.Items))}
	o.openBracket('{')
	o.memberName("items")
	o.openBracket('[')
	for i := range p.Items {
		o.appendComma()
		o.b = p.Items[i].AppendJSON(o.b)
	}
	o.closeBracket(']')
	o.textOrNullMember("nextCursor", p.NextCursor)
	o.closeBracket('}')
	return o.b, nil
}

// objectAppender appends JSON to a buffer. Its texts are written without escapes: they are ids and
// constants.
type objectAppender struct{ b []byte }

func (o *objectAppender) openBracket(bracket byte)  { o.b = append(o.b, bracket) }
func (o *objectAppender) closeBracket(bracket byte) { o.b = append(o.b, bracket) }

// appendComma appends the comma that a member or an element needs when it is not the first.
func (o *objectAppender) appendComma() {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
}

func (o *objectAppender) memberName(name string) {
	o.appendComma()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *objectAppender) intMember(name string, n int64) {
	o.memberName(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

func (o *objectAppender) boolMember(name string, value bool) {
	o.memberName(name)
	o.b = strconv.AppendBool(o.b, value)
}

func (o *objectAppender) textMember(name, text string) {
	o.memberName(name)
	o.b = append(o.b, '"')
	o.b = append(o.b, text...)
	o.b = append(o.b, '"')
}

func (o *objectAppender) textOrNullMember(name, text string) {
	if text == "" {
		o.rawMember(name, "")
		return
	}
	o.textMember(name, text)
}

// rawMember appends JSON; "" is null.
func (o *objectAppender) rawMember(name, json string) {
	o.memberName(name)
	if json == "" {
		json = "null"
	}
	o.b = append(o.b, json...)
}

func (o *objectAppender) timeMember(name string, t time.Time) {
	if t.IsZero() {
		o.rawMember(name, "")
		return
	}
	o.memberName(name)
	o.b = wire.AppendTime(o.b, t)
}

// amountMembers appends an amount as a decimal number and in minor units:
// "roomEntry":2.5,"roomEntryAmount":"2500000".
func (o *objectAppender) amountMembers(name, unitsName string, u wallet.Units, decimals int) {
	o.memberName(name)
	o.b = u.AppendDecimal(o.b, decimals)
	o.memberName(unitsName)
	o.b = append(o.b, '"')
	o.b = strconv.AppendInt(o.b, int64(u), 10)
	o.b = append(o.b, '"')
}

func (o *objectAppender) intListMember(name string, list []int) {
	o.memberName(name)
	o.openBracket('[')
	for _, n := range list {
		o.appendComma()
		o.b = strconv.AppendInt(o.b, int64(n), 10)
	}
	o.closeBracket(']')
}

func (o *objectAppender) participantsMember(seats []Seat) {
	o.memberName("participants")
	o.openBracket('[')
	for i := range seats {
		if seats[i].State == SeatActive {
			o.appendComma()
			o.b = append(o.b, seats[i].profileJSON...)
		}
	}
	o.closeBracket(']')
}

// reportMembers appends what rooms with consensus have beside the others.
func (o *objectAppender) reportMembers(r *Room) {
	o.timeMember("disputedAt", r.DisputedAt)
	o.timeMember("refundAt", r.RefundAt)
	o.timeMember("reportUntil", r.ReportUntil)
	o.memberName("reportedBy")
	o.openBracket('[')
	for i := range r.Reports {
		o.appendComma()
		o.b = strconv.AppendInt(o.b, r.Reports[i].UserID, 10)
	}
	o.closeBracket(']')
	if !r.showReports {
		return
	}
	o.memberName("reports")
	o.openBracket('[')
	for i := range r.Reports {
		o.appendComma()
		o.openBracket('{')
		o.intMember("userId", r.Reports[i].UserID)
		o.rawMember("results", r.Reports[i].resultsJSON())
		if r.Status == Disputed {
			o.intMember("disputesLost", r.Reports[i].DisputesLost)
		}
		o.closeBracket('}')
	}
	o.closeBracket(']')
}

func (o *objectAppender) presenceMember(list []Presence) {
	o.memberName("presence")
	o.openBracket('[')
	for i := range list {
		o.appendComma()
		o.openBracket('{')
		o.intMember("userId", list[i].UserID)
		o.boolMember("connected", list[i].Connected)
		if !list[i].GraceUntil.IsZero() {
			o.timeMember("graceUntil", list[i].GraceUntil)
		}
		o.closeBracket('}')
	}
	o.closeBracket(']')
}

func (o *objectAppender) seatsMember(seats []Seat) {
	o.memberName("seats")
	o.openBracket('[')
	for i := range seats {
		o.appendComma()
		o.openBracket('{')
		o.intMember("userId", seats[i].UserID)
		o.textMember("state", string(seats[i].State))
		o.boolMember("ready", seats[i].Ready)
		o.timeMember("joinedAt", seats[i].JoinedAt)
		o.closeBracket('}')
	}
	o.closeBracket(']')
}
