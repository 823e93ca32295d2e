package events

import (
	"fmt"
	"strings"
)

//go:generate go test . -run TestTheReferenceIsUpToDate -update

// MemberNames returns the names of the members of Data. The name of one that may be absent ends
// with "?".
func (t Type) MemberNames() []string {
	if t.DataMembers == "" {
		return nil
	}
	var names []string
	depth, start := 0, 0
	add := func(member string) {
		if end := strings.IndexAny(member, ":("); end >= 0 {
			member = member[:end]
		}
		names = append(names, strings.TrimSpace(member))
	}
	for i, c := range t.DataMembers {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				add(t.DataMembers[start:i])
				start = i + 1
			}
		}
	}
	add(t.DataMembers[start:])
	return names
}

// Reference returns the content of docs/events.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- generated from internal/store/events/events.go by `make generate`; do not edit -->\n# Events\n\n" +
		"What a client can receive on `/api/v1/realtime`. The schema of each event is in `handlers/asyncapi.yaml`, " +
		"served at `/asyncapi.yaml`.\n\n" +
		"```json\n" + `{"type":"room.ready","roomId":"0190a1b2-…","seq":4,"position":"4-0k3f9zq1",` +
		`"at":"2026-11-20T17:32:26.123Z","data":{"userId":7,"ready":true,"version":4}}` +
		"\n```\n\nClients must ignore unknown types and members: there will be more. " +
		"One frame may hold several events, as a JSON array.\n")
	for _, section := range []struct {
		to    Audience
		title string
		about string
	}{
		{ToRoom, "To the subscribers of a room", "They have `roomId`, and a `seq` that counts without gaps in the room. " +
			"The script that changes " +
			"the room writes them, in the same step, to the room's list of events. A subscription resumes after a `position`."},
		{ToTournament, "To the subscribers of a tournament", "They have `tournamentId`, and `seq` and `position` as " +
			"those of a room: `tournament.subscribe` begins with the current tournament, or resumes after a `position`. " +
			"The newest 256 events can be resumed."},
		{ToUser, "To one player", "They need no subscription and are sent on every connection of the player. " +
			"Their `seq` counts " +
			"without gaps in each of the player's lists: one for balances and assets, one for progress and matches. " +
			"A client that was away resumes both with `user.subscribe` `{after: {money, progress}}`, the positions " +
			"of the last events that it has, as the first thing after `hello`: new events wait half a second for it. " +
			"The reply says where the events begin, `{mode, position: {money, progress}}`; with `mode: snapshot`, " +
			"`read` names what to read anew after the reply: `wallet` (balances and owned assets), `saves`. Of each " +
			"list the newest 256 events can be resumed, of progress the newest 32 of the last hour."},
		{ToBoard, "To those who watch a leaderboard", "They have `board`, and neither `seq` nor `position`: " +
			"`board.subscribe` `{board, top, around?}` gets a reply with the same data as `board.changed`, and from then " +
			"on the newest state. A client that reads slowly, or was away, gets that alone. `top` is how many entries " +
			"it gets from the first on, `around` how many around the player's own, as `me`. A change arrives within " +
			"some 300 ms, a change of the player's place within some two seconds, later where more than a hundred players " +
			"watch theirs on the node. `season` is the season as in `GET /api/v1/leaderboards/{board}/seasons`."},
		{ToConnection, "To one connection", "They are in no list. " +
			"Only `room.snapshot` and `tournament.snapshot` have a `seq`: that of the last event that they include."},
		{ToServer, "To the game's server", "It has a server key in place of an access token. After `game.subscribe` it " +
			"gets the events of rooms and tournaments of its game in the form of the feed, " +
			"`{type, feed, position, roomId, seq, time, data}`, and these. [The game's server](game-server.md) is the guide."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| type | when | data |\n|---|---|---|\n", section.title, section.about)
		for _, t := range All() {
			if t.Audience == section.to {
				data := "none"
				if t.DataMembers != "" {
					data = "`" + strings.ReplaceAll(t.DataMembers, "|", `\|`) + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", t.Name, t.Meaning, data)
			}
		}
	}
	return b.String()
}
