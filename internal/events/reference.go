package events

import (
	"fmt"
	"strings"
)

//go:generate go test . -run TestTheReferenceIsFresh -update

// Members lists the names in Data; one that may be absent ends with "?".
func (t Type) Members() []string {
	var names []string
	depth, start := 0, 0
	add := func(member string) {
		if end := strings.IndexAny(member, ":("); end >= 0 {
			member = member[:end]
		}
		names = append(names, strings.TrimSpace(member))
	}
	for i, c := range t.Data {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				add(t.Data[start:i])
				start = i + 1
			}
		}
	}
	add(t.Data[start:])
	return names
}

// Reference is docs/events.md.
func Reference() string {
	var b strings.Builder
	b.WriteString("<!-- generated from events/events.go by `make generate`; do not edit -->\n# Events\n\n" +
		"What a client may hear on `/api/v1/realtime`. The exact schema of each stands in `handlers/asyncapi.yaml`, served at `/asyncapi.yaml`.\n\n" +
		"```json\n" + `{"type":"room.ready","roomId":"0190a1b2-…","seq":4,"position":"4-201928374650","at":"2026-11-20T17:32:26.123Z","data":{"userId":7,"ready":true,"version":4}}` +
		"\n```\n\nUnknown types and members are to be ignored: there will be more. Several events may come as one JSON array.\n")
	for _, section := range []struct {
		to    Audience
		title string
		about string
	}{
		{ToRoom, "To everybody who follows a room", "They carry `roomId`, and a `seq` that is gap-free and ascending in the room. The script that changes the room writes them, " +
			"in the same step, into the room's stream; `position` is where a subscription resumes."},
		{ToUser, "To one player", "They come without being asked for, on every connection of the player. Their `seq` is gap-free and ascending in the player's stream: " +
			"one for balances and assets, one for progress."},
		{ToConnection, "To one connection", "They stand in no stream; only `room.snapshot` has a `seq`, that of the last event in it."},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| type | when | data |\n|---|---|---|\n", section.title, section.about)
		for _, t := range All() {
			if t.Audience == section.to {
				fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", t.Name, t.Meaning, strings.ReplaceAll(t.Data, "|", `\|`))
			}
		}
	}
	return b.String()
}
