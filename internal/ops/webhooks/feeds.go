package webhooks

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/ledger"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/feed"
)

// againFeed is the name of what staff wants to be sent again after it was given up. Its positions
// are "<place in the list>-again", and its rooms have a prefix: a room may also have newer events.
const (
	againFeed  = "again"
	againNonce = "-again"
	againRoom  = "again:"
)

// page is what was read of one feed.
type page struct {
	feed    string
	after   string // the position that was asked for
	gap     bool   // the position is not in the feed any more
	isFull  bool   // there is more
	isOther bool   // with gap: the feed has other entries than before
	resume  string // with isOther: the position behind which nothing can have been missed
	entries []pageEntry
}

// pageEntry is an entry of a feed as a target gets it.
type pageEntry struct {
	position, room string
	wanted         bool
	message        message
}

func (t *target) addPage(p *page, now time.Time) {
	c := t.feeds[p.feed]
	if c == nil || c.read != p.after {
		return
	}
	if p.gap { // it goes on with the oldest entry that is stored
		t.tellGap(c.name, c.read, now)
		c.read, c.endedCatchUp = oldestPosition, false
	}
	for i := range p.entries {
		e := &p.entries[i]
		t.add(c, e.position, e.room, e.message, e.wanted, now)
	}
	t.endCatchUp(c)
}

// readFeeds reads what follows positions in the feeds of a game. It returns no page for a feed
// without anything new.
func (s *Service) readFeeds(ctx context.Context, key targetKey, d definition, from map[string]string) ([]page, error) {
	shards := s.shards(key.gameID)
	heads, err := s.store.readHeads(ctx, key.gameID, shards)
	if err != nil {
		return nil, err
	}
	var pages []page
	for _, shard := range shards {
		name := feed.Name(shard)
		if heads[name] == from[name] {
			continue
		}
		p, err := s.readFeed(ctx, key.gameID, d, name, from[name])
		if err != nil {
			return pages, err
		}
		if p.gap || len(p.entries) > 0 {
			pages = append(pages, p)
		}
	}
	if d.wants(KindMoney) {
		p, err := s.readMoney(ctx, key.gameID, from[KindMoney])
		if err != nil {
			return pages, err
		}
		if p.gap || len(p.entries) > 0 {
			pages = append(pages, p)
		}
	}
	p, err := s.readAgain(ctx, key, from[againFeed])
	if len(p.entries) > 0 {
		pages = append(pages, p)
	}
	return pages, err
}

func (s *Service) readFeed(ctx context.Context, gameID int64, d definition, name, after string) (page, error) {
	p := page{feed: name, after: after}
	shard, _ := s.shardOf(gameID, name)
	if after == oldestPosition {
		after = ""
	}
	entries, gap, _, err := feed.Read(ctx, s.store.db, shard, gameID, after, readLimit)
	if err != nil {
		return p, err
	}
	if p.gap = gap; gap {
		// What was trimmed is gone; else the feed is another one, and what it had before is not known.
		oldest, _, _, err := feed.Read(ctx, s.store.db, shard, gameID, "", 1)
		if err != nil {
			return p, err
		}
		p.isOther = len(oldest) == 0 || oldest[0].Number <= numberOf(after)
		p.resume = oldestPosition
		return p, nil
	}
	p.isFull = len(entries) >= readLimit
	p.entries = make([]pageEntry, len(entries))
	for i, e := range entries {
		p.entries[i] = pageEntry{position: e.Position, room: e.ID, wanted: d.wants(e.Kind())}
		switch {
		case !p.entries[i].wanted:
		case e.Data == nil: // it cannot be read
			p.entries[i].message = gapMessage(gameID, name, e.Position, s.now())
		default:
			p.entries[i].message = feedMessage(gameID, name, e)
		}
	}
	return p, nil
}

// messageID returns the webhook-id of an event. It has no full stop, which separates the parts of
// what is signed.
func messageID(gameID int64, feedName, position string) string {
	return strconv.FormatInt(gameID, 10) + "_" + feedName + "_" + position
}

// appendPlace appends {"gameId","feed","position", without the closing brace.
func appendPlace(b []byte, gameID int64, feedName, position string) []byte {
	b = strconv.AppendInt(append(b, `{"gameId":`...), gameID, 10)
	b = append(append(b, `,"feed":"`...), feedName...)
	return append(wire.AppendString(append(b, `","position":`...), position), ',')
}

func feedMessage(gameID int64, feedName string, e feed.Entry) message {
	data := appendPlace(make([]byte, 0, len(e.Data)+160), gameID, feedName, e.Position)
	if e.Kind() == events.TournamentsKind {
		data = append(append(data, `"tournamentId":`...), e.ID...)
	} else {
		data = wire.AppendString(append(data, `"roomId":`...), e.ID)
	}
	data = strconv.AppendInt(append(data, `,"seq":`...), e.Seq, 10)
	data = append(append(append(data, `,"data":`...), e.Data...), '}')
	return message{
		id: messageID(gameID, feedName, e.Position), kind: e.Type, room: e.ID, at: e.At,
		body: appendMessage(make([]byte, 0, len(data)+80), e.Type, e.At, data),
	}
}

// gapMessage says that the events of a feed that follow a position are gone.
func gapMessage(gameID int64, feedName, after string, now time.Time) message {
	data := appendPlace(nil, gameID, feedName, after)
	data[len(data)-1] = '}'
	return message{
		id: messageID(gameID, feedName, "gap-"+after), kind: "webhook.gap", at: now,
		body: appendMessage(nil, "webhook.gap", now, data),
	}
}

const ledgerEntryType = "ledger.entry"

func (s *Service) readMoney(ctx context.Context, gameID int64, position string) (page, error) {
	p := page{feed: KindMoney, after: position}
	after := numberOf(position)
	last, err := s.deps.Ledger.LastEntry(ctx, gameID)
	if err != nil || last == after {
		return p, err
	}
	entries, isOther, err := s.readEntries(ctx, gameID, position, last)
	if err != nil {
		return p, err
	}
	if isOther {
		p.gap, p.isOther = true, true
		p.resume = moneyPosition(max(0, min(last, after)-lostEntries), "")
		return p, nil
	}
	p.isFull = after+int64(len(entries)) < last
	p.entries = make([]pageEntry, len(entries))
	for i, e := range entries {
		one := pageEntry{position: moneyPosition(e.Number, e.Nonce), wanted: !e.IsOfARoom()}
		if one.wanted {
			entry, err := s.deps.EncodeEntry(ctx, gameID, e)
			if err != nil {
				return page{feed: KindMoney, after: position}, err
			}
			data := appendPlace(make([]byte, 0, len(entry)+120), gameID, KindMoney, one.position)
			data = append(append(append(data, `"data":`...), entry...), '}')
			one.message = message{
				id: messageID(gameID, KindMoney, one.position), kind: ledgerEntryType, at: e.At,
				body: appendMessage(make([]byte, 0, len(data)+80), ledgerEntryType, e.At, data),
			}
			one.room = moneyRoom(e.Postings)
		}
		p.entries[i] = one
	}
	return p, nil
}

// lostEntries is how many of the newest entries of a ledger a failover of the store may lose, and
// replace by others, at most.
const lostEntries = 1000

// readEntries returns the entries of a ledger that follow a position, up to last, a page of them at
// most. isOther says that the ledger does not have the entry of that position.
func (s *Service) readEntries(
	ctx context.Context, gameID int64, position string, last int64,
) (entries []ledger.Entry, isOther bool, err error) {
	after := numberOf(position)
	if after > last {
		return nil, true, nil
	}
	_, nonce, _ := strings.Cut(position, "-")
	if nonce != "" {
		entries, err = s.deps.Ledger.ReadEntries(ctx, gameID, after-1, min(last, after+readLimit))
		if err == nil && len(entries) > 0 && entries[0].Number == after {
			isOther, entries = entries[0].Nonce != nonce, entries[1:]
		}
	}
	if err == nil && !isOther && len(entries) == 0 {
		entries, err = s.deps.Ledger.ReadEntries(ctx, gameID, after, min(last, after+readLimit))
	}
	return entries, isOther, err
}

// readAgain reads what was given up and is to be sent again.
func (s *Service) readAgain(ctx context.Context, key targetKey, position string) (page, error) {
	p := page{feed: againFeed, after: position}
	done := numberOf(position)
	list, err := s.store.readAgain(ctx, key.gameID, key.id, done)
	if err != nil {
		return p, err
	}
	p.entries = make([]pageEntry, len(list))
	for i, one := range list {
		p.entries[i] = pageEntry{
			position: strconv.FormatInt(done+int64(i)+1, 10) + againNonce, room: againRoom + one.Room, wanted: true,
			message: message{id: one.MessageID, kind: one.Type, room: one.Room, at: one.At, body: one.Body},
		}
	}
	return p, nil
}

// moneyRoom returns what the order of ledger entries is kept by: the player, "money" for entries of
// none.
func moneyRoom(postings []ledger.Posting) string {
	for _, p := range postings {
		if id, ok := p.UserID(); ok {
			return "money:" + strconv.FormatInt(id, 10)
		}
	}
	return KindMoney
}
