package scripts

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Layout is the list of the values that a packed field of a hash holds, in their order, with "|"
// between them. It is the one source of a layout: Go code packs and unpacks by these names, and
// scripts name the values that they want, which Load turns into Lua:
//
//	UNPACK(text, list)          the statement that unpacks a text into local variables of the names;
//	UNPACK(text, list: a c)     of these, and
//	UNPACK(text, list without b)  of all but these
//	PATTERN(list: a c)          the pattern, quoted, that captures the values a and c
//	PACK(list)                  the expression that packs the local variables of those names
//	REPLACE(list: a in x by y)  the expression that is the packed text x with y, which has no "%",
//	                            as the value a
//
// The captures of a pattern are in the order of the list, and so must be the names in it.
//
// A layout grows at its end only, so that two releases can share a store. A text that ends before a
// value that was added later is read as if the value were "". What a text has behind the values
// that a build knows is ignored by PATTERN and kept by REPLACE. PACK would lose it: therefore a
// value that has a layout number in Since is written only while the store has that layout, which
// every build that serves can read.
type Layout struct {
	Name  string   // as scripts write it: "room_live"
	Names []string // of the values
	// Since has the layout of the store since which each value is written; 0 for always.
	Since []int
	// Required is the number of values in every text. The others were added later and may be absent.
	Required int
	// FreeText means that the last value may contain the separator. Such a layout cannot grow: a
	// new value must get its own field.
	FreeText bool
}

// The layouts. defineLayout explains what may stand behind a name. tests/versions has a copy of
// them for each layout of the store, and fails when one changes.
var (
	// RoomSettings is what never changes in a room, as far as scripts read it. Booleans are 0 and 1;
	// match, idle, age and keep are milliseconds. feeds names the consumer of the result: "" none,
	// "boards" the leaderboards of its game, "t.<tournament>.<match>.<attempt>" a match. creator is 0
	// in the room of a match. Rooms of builds before 2026-11-22 have no feeds.
	RoomSettings = defineLayout("room_settings", "entry", "token", "decimals", "max_players", "game", "creator",
		"visibility", "friends_only", "auto_start", "min_players", "match_ms", "idle_ms", "age_ms", "keep_ms", "feeds?")
	// RoomLive is what changes with a room: seq and nonce are the position of the last event; active,
	// reserved and ready count seats; host is a user id; changed is the time of the last change.
	RoomLive = defineLayout("room_live", "status", "version", "seq", "nonce", "pot", "active", "reserved", "ready", "host",
		"changed")
	// RoomEnd is how a room with a result consumer ended: ended and started are ms, started "" when it
	// was not; reason and placements are those of the room, "" for none.
	RoomEnd = defineLayout("room_end", "ended", "game", "feeds", "status", "reason", "settled_by", "started", "decimals",
		"placements")
	// RoomSeat is one seat. Seats sort by order.
	RoomSeat = defineLayout("room_seat", "state", "ready", "joined", "stake", "order", "profile*")
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
	// RoomWindow is the time in which the players of a room with consensus may report: window_ends
	// is ms; absent has ";<user>:<until>;" for each player who was not connected when it began.
	// until is as in RoomPresence, or "late" for a player who connected after the window ended.
	RoomWindow = defineLayout("room_window", "window_ends", "absent")
	// TourSettings has the values of a tournament that scripts read and that never change. Amounts
	// are minor units; registers, checks_in, starts and ends are ms since 1970, of which checks_in
	// and ends may be empty; added is the added prize; no_check_in is "refund" or "forfeit".
	TourSettings = defineLayout("tour_settings", "fee", "token", "decimals", "added", "min", "max", "registers",
		"checks_in", "starts", "ends", "late_rounds", "no_check_in")
	// TourLive has the values of a tournament that change: seq and nonce are the position of the
	// last event, and call the nonce of the last call. escrow is the sum of the held fees. open
	// counts the undecided matches of the round. cursor counts the entrants that were processed in
	// this status. roll is 1 if there was a time to check in, and funded is 1 once the added prize
	// is set aside.
	TourLive = defineLayout("tour_live", "status", "version", "seq", "nonce", "call", "escrow", "entrants", "checked_in",
		"round", "open", "cursor", "roll", "funded")
	// TourEntrant is a player in a tournament: joined and checked are ms, checked empty before the
	// check-in; stake is the fee in minor units, 0 once it went back.
	TourEntrant = defineLayout("tour_entrant", "state", "joined", "checked", "stake", "profile*")
	// TourMatch is a match: deadline is ms, empty once it is decided; room, winner and reason may be
	// empty; players are "<user>:<seed>" with a comma between them.
	TourMatch = defineLayout("tour_match", "deadline", "state", "attempt", "room", "winner", "reason", "players")
	// AssetLive is what changes in an asset; stock and limit are empty without a bound.
	AssetLive = defineLayout("asset_live", "version", "on_sale", "price", "stock", "limit", "sold")
	// WalletLimits has a player's limits for the stakes of a token: the highest stake, the number
	// of open rooms and tournaments with a stake, and the loss within 24 hours; empty without a
	// limit. The values named _next are a looser limit, which takes effect at the _from of the same
	// name (ms; empty if there is none). open is the number of rooms and tournaments with a stake.
	// hours has "<hour since 1970>:<units staked minus units returned>," for each of the last hours
	// with a change.
	WalletLimits = defineLayout("wallet_limits", "stake", "stake_next", "stake_from", "rooms", "rooms_next", "rooms_from",
		"loss", "loss_next", "loss_from", "open", "hours")

	// RoomDocument is what never changes in a room and only nodes read, with a tab between the values,
	// which JSON does not contain.
	RoomDocument = defineLayout("room_document", "settlement", "rakeBps", "payout", "tie", "metadata", "entryToken",
		"creatorProfile")
	// BoardSeason is a season of a leaderboard, which only nodes read: opens and closes are ms since
	// 1970, closes "" for never; grace and review are ms.
	BoardSeason = defineLayout("board_season", "opens", "closes", "grace", "definition", "buckets", "sealed", "funded",
		"review", "outcome")
)

var layouts = map[string]Layout{}

// Layouts returns every layout by its name.
func Layouts() map[string]Layout { return layouts }

// defineLayout returns a layout. Behind a name, "@4" means that the value is written since layout 4
// of the store, and "?" that texts of older builds lack it though their store has the same layout.
// "*" behind the last name means free text.
func defineLayout(name string, names ...string) Layout {
	l := Layout{Name: name, Names: names, Since: make([]int, len(names)), Required: len(names)}
	for i := range l.Names {
		var later, old bool
		l.Names[i], l.FreeText = strings.CutSuffix(l.Names[i], "*")
		l.Names[i], old = strings.CutSuffix(l.Names[i], "?")
		if before, number, found := strings.Cut(l.Names[i], "@"); found {
			later = true
			since, err := strconv.Atoi(number)
			if err != nil {
				panic("scripts: " + name + ": " + l.Names[i] + " has no number of a layout")
			}
			l.Names[i], l.Since[i] = before, since
		}
		switch {
		case (old || later) && l.Required > i:
			l.Required = i
		case !old && !later && l.Required < i, i > 0 && l.Since[i] < l.Since[i-1]:
			panic("scripts: " + name + ": " + l.Names[i] + " stands behind a newer value")
		}
		if l.FreeText && (i != len(names)-1 || l.Required != len(names)) {
			panic("scripts: " + name + " has a free text and cannot grow")
		}
	}
	layouts[name] = l
	return l
}

// Written returns how many of the values are written while the store has a layout.
func (l Layout) Written(storeLayout int) int {
	n := len(l.Since)
	for n > 0 && l.Since[n-1] > storeLayout {
		n--
	}
	return n
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
		if i >= l.Required {
			b.WriteByte('?') // behind the "|"
		}
		value := l.valuePattern(i)
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

// valuePattern returns the Lua pattern of a value.
func (l Layout) valuePattern(i int) string {
	if l.FreeText && i == len(l.Names)-1 {
		return ".*"
	}
	return "[^|]*"
}

// layoutCall matches a call at the start of a text.
var layoutCall = regexp.MustCompile(
	`^(?:UNPACK\((.+), (\w+)(?:(:| without)\s+([\w\s]+))?\)|` +
		`PATTERN\(\s*(\w+):\s*([\w\s]+)\)|PACK\((\w+)\)|REPLACE\((\w+): (\w+) in (\w+) by (\w+)\))`,
)

// layoutCallStarts are the texts with which calls start. UNPACK ends with the first.
var layoutCallStarts = []string{"PACK(", "PATTERN(", "REPLACE("}

// eachLayoutCall yields where each call in a source starts, and its groups. It looks for the names
// before it matches: the regular expression alone would take most of the time that a process needs
// to start, because it would read every source.
func eachLayoutCall(source string) iter.Seq2[int, []string] {
	return func(yield func(start int, groups []string) bool) {
		for from := 0; ; {
			at := -1
			for _, text := range layoutCallStarts {
				if i := strings.Index(source[from:], text); i >= 0 && (at < 0 || from+i < at) {
					at = from + i
				}
			}
			if at < 0 {
				return
			}
			start := at
			if strings.HasSuffix(source[from:at], "UN") {
				start -= len("UN")
			}
			groups := layoutCall.FindStringSubmatch(source[start:])
			if groups == nil && start < at {
				start = at
				groups = layoutCall.FindStringSubmatch(source[start:])
			}
			if groups == nil {
				from = at + 1
				continue
			}
			if !yield(start, groups) {
				return
			}
			from = start + len(groups[0])
		}
	}
}

// ExpandLayouts returns a source with Lua in the place of the calls of layouts, as it is for a
// store that has a layout. It returns an error for a call that no layout fits.
func ExpandLayouts(source string, storeLayout int) (expanded string, err error) {
	var b strings.Builder
	end := 0
	for start, m := range eachLayoutCall(source) {
		lua, callErr := expandCall(m, storeLayout)
		if callErr != nil && err == nil {
			err = fmt.Errorf("%s: %w", m[0], callErr)
		}
		b.WriteString(source[end:start])
		b.WriteString(lua)
		end = start + len(m[0])
	}
	b.WriteString(source[end:])
	return b.String(), err
}

// packedSince returns the layouts of the store at which a source packs more values, in their order.
func packedSince(source string) (numbers []int) {
	for _, m := range eachLayoutCall(source) {
		for _, since := range layouts[m[packCall]].Since {
			if since != 0 && !slices.Contains(numbers, since) {
				numbers = append(numbers, since)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// The groups of layoutCall.
const (
	unpackCall  = 1 + iota // the text
	unpackList             // the layout
	unpackHow              // ":", " without" or ""
	unpackNames            // the values
	patternCall
	patternNames
	packCall
	replaceCall
	replaceName
	replaceText
	replaceValue
)

func expandCall(m []string, storeLayout int) (string, error) {
	name := m[unpackList] + m[patternCall] + m[packCall] + m[replaceCall]
	layout, ok := layouts[name]
	if !ok {
		return "", fmt.Errorf("there is no layout %s", name)
	}
	switch {
	case m[unpackCall] != "":
		names := strings.Fields(m[unpackNames])
		if m[unpackHow] != ":" {
			without := names
			isLeftOut := func(name string) bool { return slices.Contains(without, name) }
			names = slices.DeleteFunc(slices.Clone(layout.Names), isLeftOut)
			if len(names)+len(without) != len(layout.Names) {
				return "", fmt.Errorf("the layout %s does not have each of %v", name, without)
			}
		}
		pattern, err := layout.pattern(names)
		return fmt.Sprintf("local %s = string.match(%s, %s)", strings.Join(names, ", "), m[unpackCall], pattern), err
	case m[patternCall] != "":
		return layout.pattern(strings.Fields(m[patternNames]))
	case m[packCall] != "":
		return strings.Join(layout.Names[:layout.Written(storeLayout)], " .. '|' .. "), nil
	}
	i := slices.Index(layout.Names, m[replaceName])
	if i < 0 || i >= layout.Required {
		return "", fmt.Errorf("the layout %s has no %s that every text has", layout.Name, m[replaceName])
	}
	value := layout.valuePattern(i)
	// The parentheses drop the second result of gsub.
	if i == 0 {
		return fmt.Sprintf("(string.gsub(%s, '^%s', %s))", m[replaceText], value, m[replaceValue]), nil
	}
	before := strings.Repeat("[^|]*|", i)
	return fmt.Sprintf("(string.gsub(%s, '^(%s)%s', '%%1' .. %s))", m[replaceText], before, value, m[replaceValue]), nil
}
