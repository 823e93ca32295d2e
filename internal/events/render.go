package events

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/wire"
)

// An entry of a numbered list is the compact text of an event: what the scripts store and publish, and what no client ever
// sees. The node renders it to JSON once, however many clients get it.
//
//	<seq>-<nonce>|<type>|<ms since 1970>|<values of the type, see render below>
//
// A purchase is one entry of type user.asset that stands for two events: user.balance with the number before its own, and
// user.asset.

// Rendered is one event as clients get it.
type Rendered struct {
	Type     string // "room.joined"
	Position string // "<seq>-<nonce>"
	Seq      int64  // number of the event in its list
	JSON     []byte // the whole event
}

// EntryPosition returns the position of an entry and its number, and reports whether it has one.
func EntryPosition(entry string) (position string, seq int64, ok bool) {
	position, _, ok = strings.Cut(entry, "|")
	if !ok {
		return "", 0, false
	}
	number, _, ok := strings.Cut(position, "-")
	if !ok {
		return "", 0, false
	}
	seq, err := strconv.ParseInt(number, 10, 64)
	return position, seq, err == nil && seq > 0
}

// Render returns the events of an entry, in order. roomID is the room of the list, "" for a player's list.
func Render(entry, roomID string) ([]Rendered, error) {
	position, seq, ok := EntryPosition(entry)
	if !ok {
		return nil, fmt.Errorf("the entry %q has no position", entry)
	}
	_, nonce, _ := strings.Cut(position, "-")
	v := values{rest: entry[len(position)+1:]}
	kind, ms := v.next(), v.int()
	data := appenders[kind]
	if data == nil {
		return nil, fmt.Errorf("an entry has the unknown type %q", kind)
	}
	if kind != UserAsset.Name {
		body := data(nil, &v)
		if v.err != nil {
			return nil, fmt.Errorf("render %q: %w", entry, v.err)
		}
		return []Rendered{envelope(kind, roomID, seq, nonce, ms, body)}, nil
	}
	balance := appendBalance(nil, &v)
	asset := data(nil, &v)
	if v.err != nil {
		return nil, fmt.Errorf("render %q: %w", entry, v.err)
	}
	return []Rendered{
		envelope(UserBalance.Name, "", seq-1, nonce, ms, balance),
		envelope(kind, "", seq, nonce, ms, asset),
	}, nil
}

func envelope(kind, roomID string, seq int64, nonce string, ms int64, data []byte) Rendered {
	position := strconv.FormatInt(seq, 10) + "-" + nonce
	b := append(make([]byte, 0, 160+len(data)), `{"type":"`...)
	b = append(b, kind...)
	if roomID != "" {
		b = append(append(b, `","roomId":"`...), roomID...)
	}
	b = strconv.AppendInt(append(b, `","seq":`...), seq, 10)
	b = append(append(b, `,"position":"`...), position...)
	b = wire.AppendTime(append(b, `","at":`...), msTime(ms))
	b = append(append(b, `,"data":{`...), data...)
	return Rendered{Type: kind, Position: position, Seq: seq, JSON: append(b, "}}"...)}
}

// appenders append the members of "data" from the values of an entry.
var appenders = map[string]func(b []byte, v *values) []byte{
	RoomCreated.Name: func(b []byte, v *values) []byte { // version|code|game|max|token|decimals|entry|profile
		version := v.next()
		b = member(b, "code", quote(v.next()))
		b = member(b, "gameId", v.next())
		maxPlayers, token, decimals, entry, profile := v.next(), v.next(), v.next(), v.next(), v.tail()
		b = member(b, "creator", profile)
		b = member(b, "maxPlayers", maxPlayers)
		if token == "" {
			b = member(b, "tokenId", "null")
		} else {
			b = member(b, "tokenId", quote(token))
		}
		b = v.amounts(b, "roomEntry", "roomEntryAmount", entry, decimals)
		b = member(b, "participantCount", "1")
		b = v.amounts(b, "totalWager", "totalWagerAmount", entry, decimals)
		return member(b, "version", version)
	},
	RoomJoined.Name: func(b []byte, v *values) []byte { // version|count|pot|decimals|profile
		version, count, pot, decimals := v.next(), v.next(), v.next(), v.next()
		b = member(b, "user", v.tail())
		b = member(b, "participantCount", count)
		b = v.amounts(b, "totalWager", "totalWagerAmount", pot, decimals)
		return member(b, "version", version)
	},
	RoomLeft.Name: func(b []byte, v *values) []byte { // version|user|reason|count|pot|decimals
		version := v.next()
		b = member(b, "userId", v.next())
		b = member(b, "reason", quote(v.next()))
		b = member(b, "participantCount", v.next())
		pot, decimals := v.next(), v.next()
		b = v.amounts(b, "totalWager", "totalWagerAmount", pot, decimals)
		return member(b, "version", version)
	},
	RoomReady.Name: func(b []byte, v *values) []byte { // version|user|ready
		version := v.next()
		b = member(b, "userId", v.next())
		b = member(b, "ready", strconv.FormatBool(v.next() == "1"))
		return member(b, "version", version)
	},
	RoomHostChanged.Name: func(b []byte, v *values) []byte { // version|user
		version := v.next()
		b = member(b, "userId", v.next())
		return member(b, "version", version)
	},
	RoomStarted.Name: func(b []byte, v *values) []byte { // version|by
		version := v.next()
		b = member(b, "by", quote(v.next()))
		b = member(b, "startedAt", string(wire.AppendTime(nil, msTime(v.at))))
		return member(b, "version", version)
	},
	RoomFinished.Name: func(b []byte, v *values) []byte { // version|decimals|rake|placements
		version, decimals, rake, placements := v.next(), v.next(), v.next(), v.next()
		b = member(b, "results", string(AppendResults(nil, placements)))
		payouts, err := AppendPayouts(nil, placements, decimals)
		v.keep(err)
		b = member(b, "payouts", string(payouts))
		b = v.amounts(b, "rake", "rakeAmount", rake, decimals)
		return member(b, "version", version)
	},
	RoomCancelled.Name: func(b []byte, v *values) []byte { // version|decimals|reason|refunds
		version, decimals := v.next(), v.next()
		b = member(b, "reason", quote(v.next()))
		refunds, err := AppendRefunds(nil, v.next(), decimals)
		v.keep(err)
		b = member(b, "refunds", string(refunds))
		return member(b, "version", version)
	},
	RoomRematch.Name: func(b []byte, v *values) []byte { // version|by|new room|code
		version, by := v.next(), v.next()
		b = member(b, "newRoomId", quote(v.next()))
		b = member(b, "code", quote(v.next()))
		b = member(b, "by", by)
		return member(b, "version", version)
	},
	UserBalance.Name: appendBalance,
	UserAsset.Name: func(b []byte, v *values) []byte { // asset|quantity|owned|purchase, behind those of user.balance
		b = member(b, "assetId", v.next())
		b = member(b, "quantity", v.next())
		b = member(b, "owned", v.next())
		return member(b, "purchaseId", v.next())
	},
	UserProgress.Name: func(b []byte, v *values) []byte { // the members as JSON
		return append(b, v.tail()...)
	},
}

// appendBalance: token|decimals|delta|free|held|reason|ref.
func appendBalance(b []byte, v *values) []byte {
	token, decimals, delta, free, held := v.next(), v.next(), v.next(), v.next(), v.next()
	b = member(b, "tokenId", quote(token))
	b = v.amounts(b, "volume", "amount", free, decimals)
	b = v.amounts(b, "held", "heldAmount", held, decimals)
	b = v.amounts(b, "delta", "deltaAmount", delta, decimals)
	b = member(b, "reason", quote(Unescape(v.next())))
	return member(b, "ref", quote(Unescape(v.next())))
}

// AppendResults appends the results of placements, "<user>:<place>:<units>:<score>;…", as JSON. Place 0 is a forfeited seat,
// which is no result.
func AppendResults(b []byte, placements string) []byte {
	b = append(b, '[')
	first := true
	for one := range strings.SplitSeq(placements, ";") {
		parts := strings.Split(one, ":")
		if len(parts) != 4 || parts[1] == "0" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(b, `{"userId":`...), parts[0]...)
		b = append(append(b, `,"place":`...), parts[1]...)
		if parts[3] != "" {
			b = append(append(b, `,"score":`...), parts[3]...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// AppendPayouts appends the payouts of placements as JSON: payout is a number of the token, amount its minor units; the place of
// a forfeited seat is null. A forfeited seat that gets nothing is left out.
func AppendPayouts(b []byte, placements, decimals string) ([]byte, error) {
	b = append(b, '[')
	first := true
	for one := range strings.SplitSeq(placements, ";") {
		parts := strings.Split(one, ":")
		if len(parts) != 4 || parts[2] == "" || parts[1] == "0" && parts[2] == "0" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		place := parts[1]
		if place == "0" {
			place = "null"
		}
		b = append(append(b, `{"userId":`...), parts[0]...)
		b = append(append(b, `,"place":`...), place...)
		var err error
		if b, err = appendAmounts(b, "payout", "amount", parts[2], decimals); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// AppendRefunds appends refunds, "<user>:<units>;…", as JSON.
func AppendRefunds(b []byte, refunds, decimals string) ([]byte, error) {
	b = append(b, '[')
	first := true
	for one := range strings.SplitSeq(refunds, ";") {
		user, units, ok := strings.Cut(one, ":")
		if !ok {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(b, `{"userId":`...), user...)
		var err error
		if b, err = appendAmounts(b, "refund", "amount", units, decimals); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}
