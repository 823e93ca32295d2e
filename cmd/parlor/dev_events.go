package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// eventFeed prints a line for a person for each event of rooms and purchases.
type eventFeed struct {
	domains
	game   games.Game // whose assets have names
	out    io.Writer
	colors bool
	codes  map[string]roomLabel // by room id
	names  map[int64]string     // of players
}

// roomLabel has the short name of a room, and the token of its entry.
type roomLabel struct{ code, token string }

// maxFeedNames bounds what a feed remembers.
const maxFeedNames = 10_000

func newEventFeed(d domains, game games.Game, out io.Writer) *eventFeed {
	return &eventFeed{
		domains: d, game: game, out: out, colors: hasColors(out),
		codes: map[string]roomLabel{}, names: map[int64]string{},
	}
}

// run prints until ctx ends. On a Cluster it prints nothing.
func (f *eventFeed) run(ctx context.Context) error {
	if f.db.Kind() == redisdb.KindCluster {
		return nil
	}
	return f.db.WatchEvents(ctx, func(p redisdb.PublishedEntry) {
		rendered, err := events.Render(p.Entry, p.RoomID)
		if err != nil {
			return // of a newer node
		}
		var spent string
		for _, e := range rendered {
			var event feedEvent
			if wire.Unmarshal(e.JSON, &event) != nil {
				continue
			}
			if e.Type == events.UserBalance.Name {
				spent = strings.TrimPrefix(string(event.Data.Delta), "-") + " " + event.Data.TokenID
			}
			if text := f.describe(ctx, e.Type, p, &event, spent); text != "" {
				at := styled(f.colors, dim, event.At.Local().Format(time.TimeOnly))
				_, _ = fmt.Fprintf(f.out, "%s  %s\n", at, text)
			}
		}
	})
}

// feedEvent is an event as far as its line needs it.
type feedEvent struct {
	At   time.Time `json:"at"`
	Data struct {
		Code    string       `json:"code"`
		Creator feedUser     `json:"creator"`
		User    feedUser     `json:"user"`
		UserID  int64        `json:"userId"`
		TokenID string       `json:"tokenId"`
		By      wire.RawJSON `json:"by"`
		Reason  string       `json:"reason"`

		MaxPlayers int          `json:"maxPlayers"`
		RoomEntry  wire.RawJSON `json:"roomEntry"` // a decimal, like the other amounts
		TotalWager wire.RawJSON `json:"totalWager"`
		Delta      wire.RawJSON `json:"delta"`
		Payouts    []struct {
			UserID int64        `json:"userId"`
			Payout wire.RawJSON `json:"payout"`
		} `json:"payouts"`

		AssetID  int64 `json:"assetId"`
		Quantity int64 `json:"quantity"`
	} `json:"data"`
}

type feedUser struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// describe returns the line of an event, "" for one without a line.
func (f *eventFeed) describe(
	ctx context.Context, kind string, p redisdb.PublishedEntry, e *feedEvent, spent string,
) string {
	d := &e.Data
	switch kind {
	case events.RoomCreated.Name:
		if len(f.codes) >= maxFeedNames {
			clear(f.codes)
		}
		f.codes[p.RoomID] = roomLabel{d.Code, d.TokenID}
		f.remember(d.Creator)
		entry := "free"
		if d.TokenID != "" {
			entry = fmt.Sprintf("entry %s %s", d.RoomEntry, d.TokenID)
		}
		return fmt.Sprintf("%s opened room %s: %d seats, %s", d.Creator.Username, d.Code, d.MaxPlayers, entry)
	case events.UserAsset.Name:
		asset := fmt.Sprintf("asset %d", d.AssetID)
		if a, err := f.assets.Get(ctx, operator, f.game.ID, d.AssetID); err == nil {
			asset = a.Name
		}
		return fmt.Sprintf("%s bought %d × %s for %s", f.name(ctx, p.UserID), d.Quantity, asset, spent)
	}
	if p.RoomID == "" {
		return ""
	}
	label := f.label(ctx, p.RoomID)
	amount := func(n wire.RawJSON) string { return strings.TrimSpace(string(n) + " " + label.token) }
	switch kind {
	case events.RoomJoined.Name:
		f.remember(d.User)
		if label.token == "" {
			return fmt.Sprintf("%s joined room %s", d.User.Username, label.code)
		}
		return fmt.Sprintf("%s joined room %s: the pot is %s", d.User.Username, label.code, amount(d.TotalWager))
	case events.RoomLeft.Name:
		return fmt.Sprintf("%s left room %s (%s)", f.name(ctx, d.UserID), label.code, d.Reason)
	case events.RoomStarted.Name:
		return fmt.Sprintf("room %s started", label.code)
	case events.RoomResult.Name:
		return fmt.Sprintf("%s reported the result of room %s", f.name(ctx, d.UserID), label.code)
	case events.RoomDisputed.Name:
		return fmt.Sprintf("room %s is disputed: the pot is frozen until the console decides", label.code)
	case events.RoomCancelled.Name:
		return fmt.Sprintf("room %s was cancelled (%s): every stake is back", label.code, d.Reason)
	case events.RoomFinished.Name:
		var won []string
		for _, payout := range d.Payouts {
			if n := string(payout.Payout); label.token != "" && n != "" && n != "0" {
				won = append(won, f.name(ctx, payout.UserID)+" won "+amount(payout.Payout))
			}
		}
		if len(won) == 0 {
			return fmt.Sprintf("room %s finished", label.code)
		}
		return fmt.Sprintf("room %s finished: %s", label.code, strings.Join(won, ", "))
	default:
		return ""
	}
}

func (f *eventFeed) remember(u feedUser) {
	if len(f.names) >= maxFeedNames {
		clear(f.names)
	}
	f.names[u.ID] = u.Username
}

// name returns what a player is called.
func (f *eventFeed) name(ctx context.Context, id int64) string {
	if name, ok := f.names[id]; ok {
		return name
	}
	u, err := f.users.Find(ctx, id)
	if err != nil {
		return fmt.Sprintf("player %d", id)
	}
	f.remember(feedUser{u.ID, u.Username})
	return u.Username
}

// label returns what a room is called: one that is older than the feed is read.
func (f *eventFeed) label(ctx context.Context, roomID string) roomLabel {
	label, ok := f.codes[roomID]
	if ok {
		return label
	}
	label.code = roomID
	if room, err := f.rooms.Get(ctx, operator, roomID); err == nil {
		label.code = room.Code
		label.token = room.TokenCode
		f.codes[roomID] = label
	}
	return label
}
