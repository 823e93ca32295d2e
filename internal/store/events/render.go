package events

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// Rendered is one event as clients get it.
type Rendered struct {
	Type     string // "room.joined"
	Position string // "<seq>-<nonce>"
	Seq      int64  // number of the event in its list
	JSON     []byte // the whole event
}

// Header is what an entry says of itself before it is rendered.
type Header struct {
	Position   string // "<seq>-<nonce>"
	Seq        int64  // number of the last event that the entry stands for
	Type       string // of that event; not necessarily one that this node knows
	EventCount int    // how many events the entry stands for: 1 or 2
	nonce      string
	values     string // what follows the type
}

// nonceDigits is the length of a nonce in digits of base 36.
const nonceDigits = 8

// ParseHeader reads the header of an entry. It returns false when the entry has no position or no
// type.
func ParseHeader(entry string) (Header, bool) {
	position, rest, _ := strings.Cut(entry, "|")
	number, nonce, _ := strings.Cut(position, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq <= 0 || !isInteger(number) || !isNonce(nonce) {
		return Header{}, false
	}
	eventType, values, ok := strings.Cut(rest, "|")
	h := Header{Position: position, Seq: seq, Type: eventType, EventCount: 1, nonce: nonce, values: values}
	if eventType == UserAsset.Name || eventType == UserPrize.Name {
		h.EventCount = 2
	}
	return h, ok && seq >= int64(h.EventCount)
}

func isNonce(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return len(text) == nonceDigits
}

// Renderer renders entries one after the other, into memory that it uses again: what Render returns
// is valid until the next call.
type Renderer struct {
	rendered []Rendered
	json     []byte
}

// Render returns the events that an entry stands for, as Renderer.Render does, and may be kept.
func Render(entry, roomID string) ([]Rendered, error) { return new(Renderer).Render(entry, roomID) }

// Render returns the events that an entry stands for, in order. listID is the room or tournament of
// the list, "" for a player's list. Values behind those that this node knows are ignored: a newer
// node may write more of them. It returns an error for an unknown type, and when the JSON would not
// be valid; the error quotes no value.
func (r *Renderer) Render(entry, listID string) ([]Rendered, error) {
	h, ok := ParseHeader(entry)
	if !ok {
		return nil, fmt.Errorf("render an entry of %d bytes: it has no position or no type", len(entry))
	}
	eventType, known := layouts[h.Type]
	if !known {
		return nil, fmt.Errorf("render the entry %s: unknown type %q", h.Position, h.Type)
	}
	b := builder{rest: h.values, json: r.json[:0]}
	b.readTime()
	rendered := r.rendered[:0]
	if h.EventCount == 2 {
		first := strconv.FormatInt(h.Seq-1, 10) + "-" + h.nonce
		rendered = append(rendered, b.build(layouts[UserBalance.Name], listID, first, h.Seq-1))
	}
	rendered = append(rendered, b.build(eventType, listID, h.Position, h.Seq))
	if b.err != nil {
		return nil, fmt.Errorf("render %s %s: %w", h.Type, h.Position, b.err)
	}
	r.rendered, r.json = rendered, b.json
	return rendered, nil
}

// layout is how the values of an entry become the members of an event's data.
type layout struct {
	eventType     string
	audience      Audience
	appendMembers func(*builder)
	nameBytes     int // bytes of the names of the members, and of what surrounds them
}

// layouts has the layout of every event that is stored, by its type.
var layouts = newLayouts(map[string]func(*builder){
	RoomCreated.Name:      (*builder).appendRoomCreated,
	RoomJoined.Name:       (*builder).appendRoomJoined,
	RoomLeft.Name:         (*builder).appendRoomLeft,
	RoomReady.Name:        (*builder).appendRoomReady,
	RoomHostChanged.Name:  (*builder).appendRoomHostChanged,
	RoomStarted.Name:      (*builder).appendRoomStarted,
	RoomResult.Name:       (*builder).appendRoomResult,
	RoomDisputed.Name:     (*builder).appendRoomDisputed,
	RoomFinished.Name:     (*builder).appendRoomFinished,
	RoomCancelled.Name:    (*builder).appendRoomCancelled,
	RoomState.Name:        (*builder).appendRoomState,
	RoomTurn.Name:         (*builder).appendRoomTurn,
	RoomConnected.Name:    (*builder).appendRoomConnected,
	RoomDisconnected.Name: (*builder).appendRoomDisconnected,
	RoomRematch.Name:      (*builder).appendRoomRematch,
	UserBalance.Name:      (*builder).appendUserBalance,
	UserAsset.Name:        (*builder).appendUserAsset,
	UserPrize.Name:        (*builder).appendUserPrize,
	UserProgress.Name:     (*builder).appendUserProgress,

	UserMatch.Name:              (*builder).appendUserMatch,
	TournamentOpened.Name:       (*builder).appendTournamentOpened,
	TournamentJoined.Name:       (*builder).appendTournamentJoined,
	TournamentLeft.Name:         (*builder).appendTournamentLeft,
	TournamentCheckedIn.Name:    (*builder).appendTournamentCheckedIn,
	TournamentStarted.Name:      (*builder).appendTournamentStarted,
	TournamentRoundStarted.Name: (*builder).appendTournamentRoundStarted,
	TournamentMatchReady.Name:   (*builder).appendTournamentMatchReady,
	TournamentMatchDecided.Name: (*builder).appendTournamentMatchDecided,
	TournamentSettled.Name:      (*builder).appendTournamentSettled,
	TournamentCancelled.Name:    (*builder).appendTournamentCancelled,
})

func newLayouts(appenders map[string]func(*builder)) map[string]layout {
	layouts := map[string]layout{}
	for _, t := range All() {
		l := layout{eventType: t.Name, audience: t.Audience, appendMembers: appenders[t.Name]}
		for _, name := range t.MemberNames() {
			l.nameBytes += len(name) + len(`"":,""`)
		}
		if l.appendMembers != nil {
			layouts[t.Name] = l
		}
	}
	return layouts
}

// build returns one event. It reads the values of the event from b.
func (b *builder) build(l layout, listID, position string, seq int64) Rendered {
	const envelope = `{"type":"","tournamentId":,"seq":,"position":"","at":"2026-11-20T17:32:26.123Z","data":{}}`
	const spare = 32 // for what JSON writes longer than the entry: times, amounts
	size := len(envelope) + len(l.eventType) + len(listID) + 2*len(position) + l.nameBytes + len(b.rest) + spare
	b.json = slices.Grow(b.json, size)
	start := len(b.json)
	b.json = append(b.json, `{"type":"`...)
	b.json = append(append(b.json, l.eventType...), '"')
	switch {
	case l.audience == ToTournament:
		b.integer("tournamentId", listID)
	case listID != "":
		b.json = wire.AppendString(append(b.json, `,"roomId":`...), listID)
	}
	b.json = strconv.AppendInt(append(b.json, `,"seq":`...), seq, 10)
	b.json = append(append(b.json, `,"position":"`...), position...)
	b.json = append(b.json, `","at":`...)
	b.json = wire.AppendTime(b.json, b.at)
	b.json = append(b.json, `,"data":{`...)
	l.appendMembers(b)
	b.json = append(b.json, "}}"...)
	return Rendered{Type: l.eventType, Position: position, Seq: seq, JSON: b.json[start:len(b.json):len(b.json)]}
}

// room.created: version|code|game|max players|token|decimals|entry|profile. The profile is JSON.
func (b *builder) appendRoomCreated() {
	version, code, game, maxPlayers := b.next(), b.next(), b.next(), b.next()
	token, decimals, entry, profile := b.next(), b.next(), b.next(), b.last()
	b.text("code", code)
	b.integer("gameId", game)
	b.document("creator", profile)
	b.integer("maxPlayers", maxPlayers)
	if token == "" {
		b.literal("tokenId", "null")
	} else {
		b.text("tokenId", token)
	}
	b.amount("roomEntry", "roomEntryAmount", entry, decimals)
	b.literal("participantCount", "1")
	b.amount("totalWager", "totalWagerAmount", entry, decimals)
	b.integer("version", version)
}

// room.joined: version|count|pot|decimals|profile.
func (b *builder) appendRoomJoined() {
	version, count, pot, decimals := b.next(), b.next(), b.next(), b.next()
	b.document("user", b.last())
	b.integer("participantCount", count)
	b.amount("totalWager", "totalWagerAmount", pot, decimals)
	b.integer("version", version)
}

// joinedUser stands before the profile in the JSON of room.joined.
const joinedUser = `,"data":{"user":{"id":`

// JoinedUserID returns the player of a rendered room.joined event. It parses only that member,
// because a node calls it for each event of a busy room.
func JoinedUserID(joined []byte) (userID int64, ok bool) {
	_, rest, found := bytes.Cut(joined, []byte(joinedUser))
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	userID, err := strconv.ParseInt(string(rest[:digits]), 10, 64)
	return userID, found && err == nil
}

// room.left: version|user|reason|count|pot|decimals.
func (b *builder) appendRoomLeft() {
	version := b.next()
	b.integer("userId", b.next())
	b.text("reason", b.next())
	b.integer("participantCount", b.next())
	pot, decimals := b.next(), b.next()
	b.amount("totalWager", "totalWagerAmount", pot, decimals)
	b.integer("version", version)
}

// room.ready: version|user|ready, which is 1 or 0.
func (b *builder) appendRoomReady() {
	version := b.next()
	b.integer("userId", b.next())
	switch b.next() {
	case "1":
		b.literal("ready", "true")
	case "0":
		b.literal("ready", "false")
	default:
		b.fail("ready is neither 1 nor 0")
	}
	b.integer("version", version)
}

// room.host_changed: version|user.
func (b *builder) appendRoomHostChanged() {
	version := b.next()
	b.integer("userId", b.next())
	b.integer("version", version)
}

// room.started: version|by|ms of the match deadline.
func (b *builder) appendRoomStarted() {
	version := b.next()
	b.text("by", b.next())
	b.name("startedAt")
	b.json = wire.AppendTime(b.json, b.at)
	b.name("matchDeadline")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
	b.integer("version", version)
}

// room.result: version|user|ms of the end of the window, "" when none runs. What the player
// reported is not in it.
func (b *builder) appendRoomResult() {
	version := b.next()
	b.integer("userId", b.next())
	b.integer("version", version)
	if until := b.nextIfGiven(); until != "" {
		b.name("until")
		b.json = wire.AppendTime(b.json, b.parseTime(until))
	}
}

// room.disputed: version|ms of the refund.
func (b *builder) appendRoomDisputed() {
	version := b.next()
	b.name("refundAt")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
	b.integer("version", version)
}

// room.finished: version|decimals|rake|placements.
func (b *builder) appendRoomFinished() {
	version, decimals, rake, placements := b.next(), b.next(), b.next(), b.next()
	var err error
	b.name("results")
	b.json, err = AppendResults(b.json, placements)
	b.keepError(err)
	b.name("payouts")
	b.json, err = AppendPayouts(b.json, placements, decimals)
	b.keepError(err)
	b.amount("rake", "rakeAmount", rake, decimals)
	b.integer("version", version)
}

// room.cancelled: version|decimals|reason|refunds.
func (b *builder) appendRoomCancelled() {
	version, decimals := b.next(), b.next()
	b.text("reason", b.next())
	b.name("refunds")
	var err error
	b.json, err = AppendRefunds(b.json, b.next(), decimals)
	b.keepError(err)
	b.integer("version", version)
}

// room.state: version of the state|deleted names with commas|patch, which is JSON.
func (b *builder) appendRoomState() {
	version, deleted := b.next(), b.next()
	b.integer("version", version)
	b.document("patch", b.last())
	b.name("delete")
	b.json = append(b.json, '[')
	if deleted != "" {
		for name := range strings.SplitSeq(deleted, ",") {
			b.json = wire.AppendString(appendComma(b.json), name)
		}
	}
	b.json = append(b.json, ']')
}

// room.turn: version|user|ms of the deadline|reason. User and deadline are empty for nobody.
func (b *builder) appendRoomTurn() {
	version, user, deadline := b.next(), b.next(), b.next()
	if user == "" {
		b.literal("userId", "null")
		b.literal("deadline", "null")
	} else {
		b.integer("userId", user)
		b.name("deadline")
		b.json = wire.AppendTime(b.json, b.parseTime(deadline))
	}
	b.text("reason", b.next())
	b.integer("version", version)
}

// room.connected: user.
func (b *builder) appendRoomConnected() { b.integer("userId", b.next()) }

// room.disconnected: user|ms of the end of the grace.
func (b *builder) appendRoomDisconnected() {
	b.integer("userId", b.next())
	b.name("graceUntil")
	b.json = wire.AppendTime(b.json, b.parseTime(b.next()))
}

// room.rematch: version|by|new room|code.
func (b *builder) appendRoomRematch() {
	version, by := b.next(), b.next()
	b.text("newRoomId", b.next())
	b.text("code", b.next())
	b.integer("by", by)
	b.integer("version", version)
}

// user.balance: token|decimals|delta|free|held|reason|ref. Reason and ref are escaped.
func (b *builder) appendUserBalance() {
	token, decimals, delta, free, held := b.next(), b.next(), b.next(), b.next(), b.next()
	b.text("tokenId", token)
	b.amount("volume", "amount", free, decimals)
	b.amount("held", "heldAmount", held, decimals)
	b.amount("delta", "deltaAmount", delta, decimals)
	b.text("reason", Unescape(b.next()))
	ref := Unescape(b.next())
	b.text("ref", ref)
	b.balance = balanceChange{token, decimals, delta, ref}
}

// user.asset: asset|quantity|owned|purchase, behind the values of user.balance.
func (b *builder) appendUserAsset() {
	b.integer("assetId", b.next())
	b.integer("quantity", b.next())
	b.integer("owned", b.next())
	b.integer("purchaseId", b.next())
}

// user.progress: the members as JSON, without braces.
func (b *builder) appendUserProgress() {
	start := len(b.json) - len("{")
	b.json = append(b.json, b.last()...)
	if data := append(b.json, '}')[start:]; !wire.RawJSON(data).IsValid() {
		b.fail("the members are not JSON")
	}
}

// AppendResults appends the results of placements as JSON. Placements are
// "<user>:<place>:<units>:<score>;…"; place 0 is a forfeited seat, which has no result, and the
// score is a JSON number, or absent.
func AppendResults(b []byte, placements string) ([]byte, error) {
	b = append(b, '[')
	for one := range splitList(placements) {
		parts, err := splitPlacement(one)
		if err != nil {
			return b, err
		}
		user, place, score := parts[0], parts[1], parts[3]
		if place == "0" {
			continue
		}
		b = append(append(appendComma(b), `{"userId":`...), user...)
		b = append(append(b, `,"place":`...), place...)
		if score != "" {
			b = append(append(b, `,"score":`...), score...)
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// AppendPayouts appends the payouts of placements as JSON: payout is a number of the token, amount
// its minor units as a string. The place of a forfeited seat is null. A placement without units has
// no payout, nor has a forfeited seat that gets nothing.
func AppendPayouts(b []byte, placements, decimals string) ([]byte, error) {
	b = append(b, '[')
	for one := range splitList(placements) {
		parts, err := splitPlacement(one)
		if err != nil {
			return b, err
		}
		user, place, units := parts[0], parts[1], parts[2]
		if units == "" || place == "0" && units == "0" {
			continue
		}
		if place == "0" {
			place = "null"
		}
		b = append(append(appendComma(b), `{"userId":`...), user...)
		b = append(append(b, `,"place":`...), place...)
		if b, err = appendAmount(b, "payout", "amount", units, decimals); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// AppendRefunds appends refunds, "<user>:<units>;…", as JSON, in the form of AppendPayouts.
func AppendRefunds(b []byte, refunds, decimals string) ([]byte, error) {
	b = append(b, '[')
	for one := range splitList(refunds) {
		user, units, _ := strings.Cut(one, ":")
		if !isInteger(user) {
			return b, fmt.Errorf("a refund of %d bytes has no user", len(one))
		}
		b = append(append(appendComma(b), `{"userId":`...), user...)
		var err error
		if b, err = appendAmount(b, "refund", "amount", units, decimals); err != nil {
			return b, err
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}
