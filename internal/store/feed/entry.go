package feed

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/events"
)

// Entry is an event in a feed.
type Entry struct {
	Position string // "<number>-<nonce>" in the feed
	Number   int64  // in the feed, from 1
	Type     string // "room.started"
	At       time.Time
	ID       string // of the room or the tournament
	Seq      int64  // in the list of the room or the tournament
	Data     []byte // JSON; nil for what this build cannot read, such as an event of a newer one
}

// Kind returns the kind of the event, "" for one that this build does not know.
func (e Entry) Kind() string { return events.FeedKind(e.Type) }

// Parse reads an entry as it is stored and published. An error says that the event cannot be read;
// the entry has its position then, unless that cannot be read either.
func Parse(text string) (Entry, error) {
	h, ok := events.ParseHeader(text)
	if !ok {
		return Entry{}, fmt.Errorf("read an entry of a feed of %d bytes: it has no position or no type", len(text))
	}
	e := Entry{Position: h.Position, Number: h.Seq, Type: h.Type}
	// What follows the type: <ms>|<id>|<seq>|<values>
	rest := text[len(h.Position)+1+len(h.Type)+1:]
	ms, rest, _ := strings.Cut(rest, "|")
	id, rest, _ := strings.Cut(rest, "|")
	seq, values, found := strings.Cut(rest, "|")
	at, msErr := strconv.ParseInt(ms, 10, 64)
	number, seqErr := strconv.ParseInt(seq, 10, 64)
	if !found || id == "" || msErr != nil || seqErr != nil || number <= 0 {
		return e, fmt.Errorf("read the entry %s of a feed: it has no time, no room or no number", h.Position)
	}
	e.At, e.ID, e.Seq = time.UnixMilli(at), id, number
	data, err := events.AppendData(nil, h.Type, ms+"|"+values)
	if err != nil {
		return e, fmt.Errorf("read the entry %s of a feed: %w", h.Position, err)
	}
	e.Data = data
	return e, nil
}

// AppendJSON appends the event as a game's server gets it from the feed with a Name. The entry must
// have Data.
func (e Entry) AppendJSON(b []byte, feedName string) []byte {
	b = append(append(b, `{"type":"`...), e.Type...)
	b = append(append(b, `","feed":"`...), feedName...)
	b = append(append(b, `","position":"`...), e.Position...)
	if e.Kind() == events.TournamentsKind {
		b = append(append(b, `","tournamentId":`...), e.ID...)
	} else {
		b = wire.AppendString(append(b, `","roomId":`...), e.ID)
	}
	b = strconv.AppendInt(append(b, `,"seq":`...), e.Seq, 10)
	b = wire.AppendTime(append(b, `,"time":`...), e.At)
	b = append(append(b, `,"data":`...), e.Data...)
	return append(b, '}')
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ShareOf returns which of several servers a room belongs to, from 0 on: the CRC-32C of the text of
// its id, modulo their number.
func ShareOf(roomID string, of int) int { return int(ShareNumber(roomID) % uint32(of)) }

// ShareNumber is what ShareOf takes modulo the number of servers.
func ShareNumber(roomID string) uint32 { return crc32.Checksum([]byte(roomID), castagnoli) }
