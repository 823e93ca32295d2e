package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
)

// maxShares bounds how many servers divide the rooms of a game.
const maxShares = 64

// feedKind is a set of kinds of events in the feeds of a game.
type feedKind uint8

const (
	roomsKind feedKind = 1 << iota
	seatsKind
	tournamentsKind
	moneyKind

	// listKinds are those whose events are in the lists of package feed.
	listKinds = roomsKind | seatsKind | tournamentsKind
)

// moneyName is the name of the kind of the ledger's entries, and of their feed.
const moneyName = "money"

var feedKinds = map[string]feedKind{
	events.RoomsKind: roomsKind, events.SeatsKind: seatsKind, events.TournamentsKind: tournamentsKind,
	moneyName: moneyKind,
}

// shareInput is the part of the rooms that a server hears: those whose rooms.ShareNumber modulo of
// is the index.
type shareInput struct {
	Of    int `json:"of"`
	Index int `json:"index"`
}

type gameSubscribeInput struct {
	Kinds []string          `json:"kinds" required:"true"`
	Share *shareInput       `json:"share"` // nil: all rooms
	After map[string]string `json:"after"` // by feed: the last position that the server has
	Calls *bool             `json:"calls"` // false: it takes no calls of these rooms; nil: it does
}

func (in *gameSubscribeInput) Validate() error {
	var errs apierror.FieldErrors
	if len(in.Kinds) == 0 {
		errs.Add("kinds", "range", "must have a kind")
	}
	for i, kind := range in.Kinds {
		field := fmt.Sprintf("kinds[%d]", i)
		if _, known := feedKinds[kind]; !known {
			errs.Add(field, "unknown", "must be rooms, seats, tournaments or money")
		} else if slices.Contains(in.Kinds[:i], kind) {
			errs.Add(field, "duplicate", "is in the list more than once")
		}
	}
	if s := in.Share; s != nil {
		if s.Of < 1 || s.Of > maxShares {
			errs.Add("share.of", "range", fmt.Sprintf("must be 1 to %d", maxShares))
		} else if s.Index < 0 || s.Index >= s.Of {
			errs.Add("share.index", "range", "must be 0 or more, and less than of")
		}
	}
	return errs.Err()
}

// feedFilter selects events by their kind and their share. It is comparable.
type feedFilter struct {
	kinds     feedKind
	of, index uint32
}

func (in *gameSubscribeInput) filter() feedFilter {
	f := feedFilter{of: 1}
	for _, kind := range in.Kinds {
		f.kinds |= feedKinds[kind]
	}
	if in.Share != nil {
		f.of, f.index = uint32(in.Share.Of), uint32(in.Share.Index)
	}
	return f
}

// callShare returns the share of the rooms whose calls the subscriber gets: none without events of
// rooms, since a server that does the books alone cannot answer them.
func (f feedFilter) callShare() servers.Share {
	if f.kinds&(roomsKind|seatsKind) == 0 {
		return servers.Share{}
	}
	return servers.Share{Of: int(f.of), Index: int(f.index)}
}

// forRealtime returns the filter for events whose tag is their rooms.ShareNumber. A gap is selected
// by every filter.
func (f feedFilter) forRealtime() realtime.Filter {
	return realtime.Filter{Key: f, Match: func(eventType string, share uint32) bool {
		if eventType == ledgerEntryType {
			return f.kinds&moneyKind != 0 && share%f.of == f.index
		}
		kind, known := feedKinds[events.FeedKind(eventType)]
		return !known || f.kinds&kind != 0 && share%f.of == f.index
	}}
}

// gameSubscribedData is the data of the reply to game.subscribe, by the names of feeds.
type gameSubscribedData struct {
	Mode     realtime.SubscribeMode `json:"mode"`
	Position map[string]string      `json:"position"` // where each begins
	Since    map[string]*time.Time  `json:"since"`    // of its first event; null: it has none yet
}

// subscribeToGame subscribes to the feeds of the server's game. It replaces the last subscription.
func subscribeToGame(
	ctx context.Context, s *clientHandler, client *realtime.Client, m *message, in *gameSubscribeInput,
) (any, error) {
	feeds, err := s.server.Rooms.ListFeeds(ctx, s.caller)
	if err != nil {
		return nil, err
	}
	filter := in.filter()
	// Before the subscription, since its reply promises the calls of the share's rooms.
	share := filter.callShare()
	if in.Calls != nil && !*in.Calls {
		share = servers.Share{} // another server, or a subscription to single rooms, has the calls
	}
	if err := s.server.Servers.Listen(ctx, client.ID(), share); err != nil {
		return nil, err
	}
	data := gameSubscribedData{Position: map[string]string{}, Since: map[string]*time.Time{}}
	var names []string
	var subscriptions []realtime.Subscription
	subscribe := func(name, topic string, of *realtime.Feed) {
		names = append(names, name)
		subscriptions = append(subscriptions, realtime.Subscription{
			Topic: topic, AfterPosition: in.After[name], Feed: of, Filter: filter.forRealtime(), Implicit: true,
		})
	}
	for _, f := range feeds {
		if filter.kinds&listKinds == 0 {
			client.Unsubscribe(f.Topic)
			continue
		}
		if data.Since[f.Name] = nil; !f.Since.IsZero() {
			data.Since[f.Name] = new(f.Since.UTC())
		}
		subscribe(f.Name, f.Topic, newFeed(f))
	}
	if money := moneyTopic(s.caller.GameID); filter.kinds&moneyKind != 0 {
		subscribe(moneyName, money, s.server.newMoneyFeed(s.caller.GameID))
	} else {
		client.Unsubscribe(money)
	}
	return noReply, client.SubscribeAll(ctx, subscriptions, func(outcomes []realtime.SubscribeOutcome) []byte {
		modes := map[realtime.SubscribeMode]bool{}
		for i, outcome := range outcomes {
			if outcome.Err != nil {
				return s.errorReply(m, outcome.Err).encode()
			}
			data.Position[names[i]] = outcome.Position
			modes[outcome.Mode] = true
		}
		switch {
		case modes[realtime.ModeGap]:
			data.Mode = realtime.ModeGap
		case modes[realtime.ModeResume]:
			data.Mode = realtime.ModeResume
		default:
			data.Mode = realtime.ModeLive
		}
		return (&socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}).encode()
	})
}

func unsubscribeFromGame(
	ctx context.Context, s *clientHandler, client *realtime.Client, _ *message, _ *struct{},
) (any, error) {
	feeds, err := s.server.Rooms.ListFeeds(ctx, s.caller)
	for _, f := range feeds {
		client.Unsubscribe(f.Topic)
	}
	client.Unsubscribe(moneyTopic(s.caller.GameID))
	return struct{}{}, errors.Join(err, s.server.Servers.Listen(ctx, client.ID(), servers.Share{}))
}

// newFeed returns how the entries of a feed become events. An entry that this node cannot read is a
// gap: the server reads the rooms anew.
func newFeed(of rooms.Feed) *realtime.Feed {
	return &realtime.Feed{
		Render: func(b []byte, entry string) (json []byte, eventType string, tag uint32, err error) {
			e, err := of.AppendEvent(b, entry)
			if err != nil {
				return append(b, feedFrame(gapType, of.Name)(e.Position)...), gapType, 0, err
			}
			return e.JSON, e.Type, e.Share, nil
		},
		EncodePosition: feedFrame(positionType, of.Name), EncodeGap: feedFrame(gapType, of.Name),
	}
}

// The types of frames in a feed that are no events of a room.
const (
	positionType    = "game.position"
	gapType         = "game.gap"
	ledgerEntryType = "ledger.entry"
)

// feedFrame returns what encodes a frame with no more than a position.
func feedFrame(eventType, name string) func(position string) []byte {
	return func(position string) []byte {
		return fmt.Appendf(nil, `{"type":"%s","feed":"%s","position":"%s"}`, eventType, name, position)
	}
}

// moneyTopic returns the name of the feed of a game's ledger. It is no key of the store.
func moneyTopic(gameID int64) string { return "money:" + strconv.FormatInt(gameID, 10) }

// newMoneyFeed returns the feed of a game's ledger.
func (e *Server) newMoneyFeed(gameID int64) *realtime.Feed {
	return &realtime.Feed{
		Source:         moneySource{e.Wallet, principal.Caller{Role: principal.Server, GameID: gameID}},
		EncodePosition: feedFrame(positionType, moneyName), EncodeGap: feedFrame(gapType, moneyName),
	}
}

// moneySource reads the ledger of a game. Stakes, refunds and payouts are entries that no server
// gets: rooms tell of them.
type moneySource struct {
	wallets *wallet.Service
	caller  principal.Caller
}

func (m moneySource) Last(ctx context.Context) (int64, error) {
	return m.wallets.LastEntry(ctx, m.caller)
}

func (m moneySource) ReadFrom(ctx context.Context, number int64, count int) ([]realtime.SourceEntry, error) {
	stored, err := m.wallets.ReadStoredEntries(ctx, m.caller, number, count)
	if err != nil {
		return nil, err
	}
	entries := make([]realtime.SourceEntry, len(stored))
	for i := range stored {
		e := &stored[i]
		entries[i] = realtime.SourceEntry{Position: e.Position, Type: ledgerEntryType}
		if e.IsOfARoom {
			continue
		}
		entries[i].Tag = rooms.ShareNumber(strconv.FormatInt(playerOf(&e.Entry), 10))
		entries[i].JSON, err = wire.Marshal(ledgerEntryEvent{
			ledgerEntryType, moneyName, e.Position, e.Entry.At,
			wallet.ExportedEntry{GameID: m.caller.GameID, Entry: e.Entry},
		})
		if err != nil {
			return nil, fmt.Errorf("encode an entry of the ledger: %w", err)
		}
	}
	return entries, nil
}

// playerOf returns the player by whom an entry belongs to a share: the first one whose wallet it
// changes, 0 for none.
func playerOf(e *wallet.Entry) int64 {
	for _, p := range e.Postings {
		if p.UserID != nil {
			return *p.UserID
		}
	}
	return 0
}

// ledgerEntryEvent is an entry of the ledger as an event.
type ledgerEntryEvent struct {
	Type     string               `json:"type"`
	Feed     string               `json:"feed"`
	Position string               `json:"position"`
	Time     time.Time            `json:"time"`
	Data     wallet.ExportedEntry `json:"data"`
}
