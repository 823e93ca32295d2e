package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Layout is the list of the values that a packed field of a hash holds, in their order, with "|"
// between them. Only the last value may contain "|". It is the one source of a layout: Go code
// packs and unpacks by these names, and scripts name the values that they want, which Load turns
// into Lua:
//
//	PATTERN(list: a c)          the pattern, quoted, that captures the values a and c
//	PACK(list)                  the expression that packs the local variables of those names
//	REPLACE(list: a in x by y)  the expression that is the packed text x with y, which has no "%",
//	                            as the value a
//
// The captures of a pattern are in the order of the list, and so must be the names in it.
type Layout struct {
	Name  string   // as scripts write it: "room_live"
	Names []string // of the values
	// LastMayLack means that texts of older builds end before the last value and its "|". It is
	// read as "" there, and an empty one is not written: so older and newer nodes read each other.
	LastMayLack bool
}

// The layouts. A value that is added stands before the last one only where the last may contain
// "|".
var (
	// RoomSettings is what never changes in a room, as far as scripts read it. Booleans are 0 and 1;
	// match, idle, age and keep are milliseconds. feeds is who waits for the end of the room: ""
	// nobody, "boards" the leaderboards of its game, "t.<tournament>.<match>.<attempt>" a match.
	// creator is 0 in the room of a match. Rooms of builds before 2026-11-22 have no feeds.
	RoomSettings = defineLayout("room_settings", "entry", "token", "decimals", "max_players", "game", "creator",
		"visibility", "friends_only", "auto_start", "min_players", "match_ms", "idle_ms", "age_ms", "keep_ms", "feeds?")
	// RoomLive is what changes with a room: seq and nonce are the position of the last event; active,
	// reserved and ready count seats; host is a user id; changed is the time of the last change.
	RoomLive = defineLayout("room_live", "status", "version", "seq", "nonce", "pot", "active", "reserved", "ready", "host",
		"changed")
	// RoomEnd is how a room ended that feeds something: ended and started are ms, started "" when it
	// was not; reason and placements are those of the room, "" for none.
	RoomEnd = defineLayout("room_end", "ended", "game", "feeds", "status", "reason", "settled_by", "started", "decimals",
		"placements")
	// RoomSeat is one seat. Seats sort by order.
	RoomSeat = defineLayout("room_seat", "state", "ready", "joined", "stake", "order", "profile")
	// RoomState is the head of a room's shared state, whose values are fields of their own: bytes is
	// the size of all names and values; logged counts the bytes of its events until the list of events
	// is cut.
	RoomState = defineLayout("room_state", "state_version", "bytes", "names", "logged")
	// RoomTurn is whose turn it is: user is a user id, deadline is ms since 1970; timeout is what
	// happens at the deadline, "skip" or "forfeit".
	RoomTurn = defineLayout("room_turn", "turn_user", "deadline", "seconds", "timeout")
	// RoomPresence is whether a player is connected: order is that of the seat that was told of, until
	// the time (ms) until which the others wait, "" while connected; leases are the ids of the leases
	// of package presence on which the player has sockets, each with a comma behind it.
	RoomPresence = defineLayout("room_presence", "order", "until", "leases")
	// TourSettings is what never changes in a tournament, as far as scripts read it. Amounts are minor
	// units; registers, checks_in, starts and ends are ms since 1970, of which checks_in and ends may
	// be empty; added is the added prize; no_check_in is "refund" or "forfeit".
	TourSettings = defineLayout("tour_settings", "fee", "token", "decimals", "added", "min", "max", "registers",
		"checks_in", "starts", "ends", "late_rounds", "no_check_in")
	// TourLive is what changes with a tournament: seq and nonce are the position of the last event,
	// call the nonce of the last call; escrow is the sum of the fees that are held; open counts the
	// undecided matches of the round; cursor counts the entrants that were gone through in this
	// status; roll is 1 when there was a time to check in; funded is 1 when the added prize is there.
	TourLive = defineLayout("tour_live", "status", "version", "seq", "nonce", "call", "escrow", "entrants", "checked_in",
		"round", "open", "cursor", "roll", "funded")
	// TourEntrant is a player in a tournament: joined and checked are ms, checked empty before the
	// check-in; stake is the fee in minor units, 0 once it went back.
	TourEntrant = defineLayout("tour_entrant", "state", "joined", "checked", "stake", "profile")
	// TourMatch is a match: deadline is ms, empty once it is decided; room, winner and reason may be
	// empty; players are "<user>:<seed>" with a comma between them.
	TourMatch = defineLayout("tour_match", "deadline", "state", "attempt", "room", "winner", "reason", "players")
	// AssetLive is what changes in an asset; stock and limit are empty without a bound.
	AssetLive = defineLayout("asset_live", "version", "on_sale", "price", "stock", "limit", "sold")
	// WalletLimits is what a player set for the stakes of a token: the highest stake, how many rooms
	// with a stake at once, and the loss within 24 hours; empty without a limit. A looser limit,
	// "next", counts "from" (ms) on; from is empty when there is none. open counts the rooms with a
	// stake; hours is "<hour since 1970>:<units staked less those that came back>," for each of the
	// last hours with a change.
	WalletLimits = defineLayout("wallet_limits", "stake", "stake_next", "stake_from", "rooms", "rooms_next", "rooms_from",
		"loss", "loss_next", "loss_from", "open", "hours")
)

var layouts = map[string]Layout{}

// defineLayout returns a layout. "?" behind the last name means that the value may lack.
func defineLayout(name string, names ...string) Layout {
	l := Layout{Name: name, Names: names}
	last := &l.Names[len(names)-1]
	*last, l.LastMayLack = strings.CutSuffix(*last, "?")
	layouts[name] = l
	return l
}

// pattern returns the Lua pattern, quoted, that captures the wanted values.
func (l Layout) pattern(wanted []string) (string, error) {
	var b strings.Builder
	b.WriteString("'^")
	found := 0
	for i, name := range l.Names {
		if found == len(wanted) {
			break
		}
		if i > 0 {
			b.WriteByte('|')
		}
		value := "[^|]*"
		if i == len(l.Names)-1 {
			value = ".*"
			if l.LastMayLack {
				b.WriteByte('?') // behind the "|"
			}
		}
		if name == wanted[found] {
			value = "(" + value + ")"
			found++
		}
		b.WriteString(value)
	}
	if found < len(wanted) {
		return "", fmt.Errorf("the layout %s has no %s after the values before it", l.Name, wanted[found])
	}
	b.WriteByte('\'')
	return b.String(), nil
}

var layoutCall = regexp.MustCompile(
	`PATTERN\(\s*(\w+):\s*([\w\s]+)\)|PACK\((\w+)\)|REPLACE\((\w+): (\w+) in (\w+) by (\w+)\)`,
)

// ExpandLayouts returns a source with Lua in the place of the calls of layouts. It returns an error
// for a call that no layout fits.
func ExpandLayouts(source string) (expanded string, err error) {
	expanded = layoutCall.ReplaceAllStringFunc(source, func(call string) string {
		lua, callErr := expandCall(layoutCall.FindStringSubmatch(call))
		if callErr != nil && err == nil {
			err = fmt.Errorf("%s: %w", call, callErr)
		}
		return lua
	})
	return expanded, err
}

func expandCall(m []string) (string, error) {
	layout, ok := layouts[m[1]+m[3]+m[4]]
	if !ok {
		return "", fmt.Errorf("there is no layout %s", m[1]+m[3]+m[4])
	}
	switch {
	case m[1] != "":
		return layout.pattern(strings.Fields(m[2]))
	case m[3] != "":
		return strings.Join(layout.Names, " .. '|' .. "), nil
	}
	i := slices.Index(layout.Names, m[5])
	if i < 0 || layout.LastMayLack && i == len(layout.Names)-1 {
		return "", fmt.Errorf("the layout %s has no %s that every text has", layout.Name, m[5])
	}
	value := "[^|]*"
	if i == len(layout.Names)-1 {
		value = ".*"
	}
	// The parentheses drop the second result of gsub.
	if i == 0 {
		return fmt.Sprintf("(string.gsub(%s, '^%s', %s))", m[6], value, m[7]), nil
	}
	return fmt.Sprintf("(string.gsub(%s, '^(%s)%s', '%%1' .. %s))", m[6], strings.Repeat("[^|]*|", i), value, m[7]), nil
}
