package keys

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Shard is where a room is stored: in the economy of its game when it takes a stake, under one of R
// hash tags for free rooms otherwise. A room never moves, and its id names its shard, so that no
// lookup precedes a script.
type Shard struct {
	paid  bool
	place uint32 // below 2^24: the game's id, or the number of the free shard
}

const (
	placeBits = 24
	// MaxGameID is the largest id of a game that can have rooms with a stake.
	MaxGameID = 1<<placeBits - 1
	// MaxShards is the largest number of shards for free rooms.
	MaxShards = 1 << 14
)

// EconomyShard returns the shard of a game's rooms that take a stake, 0 < gameID ≤ MaxGameID.
func EconomyShard(gameID int64) Shard { return Shard{paid: true, place: uint32(gameID)} }

// FreeShard returns the n-th shard for free rooms, 0 ≤ n < MaxShards.
func FreeShard(n int) Shard { return Shard{place: uint32(n)} }

// Paid reports whether the rooms of this shard take a stake.
func (s Shard) Paid() bool { return s.paid }

// GameID returns the game of a Paid shard, 0 for a free one.
func (s Shard) GameID() int64 {
	if s.paid {
		return int64(s.place)
	}
	return 0
}

// Number returns 0 for the shards with a stake and n+1 for free shard n.
func (s Shard) Number() int {
	if s.paid {
		return 0
	}
	return int(s.place) + 1
}

// String returns the hash tag without its braces.
func (s Shard) String() string {
	number := strconv.FormatUint(uint64(s.place), 10)
	if s.paid {
		return "e:" + number
	}
	return "r" + number
}

// ParseShard returns the shard of a String. It returns false for other texts.
func ParseShard(text string) (Shard, bool) {
	number, paid := strings.CutPrefix(text, "e:")
	if !paid {
		number = strings.TrimPrefix(text, "r")
	}
	place, err := strconv.ParseUint(number, 10, placeBits)
	s := Shard{paid: paid, place: uint32(place)}
	return s, err == nil && s.String() == text
}

// key returns a key of the shard.
func (s Shard) key(parts ...string) string {
	if s.paid {
		return taggedKey('e', int64(s.place), parts...)
	}
	return taggedKey('r', int64(s.place), parts...)
}

// NewRoomID returns the id of a new room on a shard: a UUID of version 8 (RFC 9562, 5.8).
//
//	48 bits  Unix time in milliseconds, so that ids sort by age as text
//	 4 bits  version, 8
//	 1 bit   1: the room takes a stake
//	11 bits  place, high part: the game of a room with a stake, else the free shard
//	 2 bits  variant
//	13 bits  place, low part
//	 1 bit   1: the room feeds the server of its game; random in rooms of builds before 2026-11-28
//	48 bits  random
func NewRoomID(s Shard, at time.Time, feeds bool) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	return RoomIDOf(s, at, WithFeedBit(random, feeds))
}

// feedBit is the bit of the random ones that says whether a room feeds the server of its game.
const feedBit = 1 << 48

// WithFeedBit returns random bits for RoomIDOf, of a room that feeds the server of its game or does
// not.
func WithFeedBit(random [8]byte, feeds bool) [8]byte {
	bits := binary.BigEndian.Uint64(random[:]) &^ feedBit
	if feeds {
		bits |= feedBit
	}
	binary.BigEndian.PutUint64(random[:], bits)
	return random
}

// RoomFeeds reports whether the id of a room says that its events also go to the Feed of its game.
func RoomFeeds(roomID string) bool {
	return len(roomID) == 36 && hexDigits[roomID[22]] > 0 && (hexDigits[roomID[22]]-1)&1 == 1
}

// RoomIDOf is NewRoomID with given random bits, so that the same room gets the same id again.
func RoomIDOf(s Shard, at time.Time, random [8]byte) string {
	var b [16]byte
	copy(b[8:], random[:])
	high := s.place >> 13
	if s.paid {
		high |= 1 << 11
	}
	binary.BigEndian.PutUint64(b[0:8], uint64(at.UnixMilli())<<16|8<<12|uint64(high))
	low := binary.BigEndian.Uint64(b[8:])
	low = low&(1<<49-1) | uint64(s.place&(1<<13-1))<<49 | 2<<62
	binary.BigEndian.PutUint64(b[8:], low)
	return formatUUID(b)
}

// RoomShard returns the shard that a room id names. It returns false for anything that NewRoomID
// cannot have made, so that a malformed id costs no round trip. Upper-case digits are invalid: a
// room id has one spelling.
func RoomShard(roomID string) (Shard, bool) {
	b, ok := parseUUID(roomID)
	if !ok {
		return Shard{}, false
	}
	high, low := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	if high>>12&0xf != 8 || low>>62 != 2 {
		return Shard{}, false
	}
	s := Shard{paid: high>>11&1 == 1, place: uint32(high&(1<<11-1))<<13 | uint32(low>>49&(1<<13-1))}
	if s.paid {
		return s, s.place > 0
	}
	return s, s.place < MaxShards
}

// parseUUID returns what formatUUID has made a text of, and false for any other text.
func parseUUID(text string) (b [16]byte, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return b, false
	}
	at := 0 // in text
	for i := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 { // behind a hyphen
			at++
		}
		high, low := hexDigits[text[at]], hexDigits[text[at+1]]
		if high == 0 || low == 0 {
			return b, false
		}
		b[i] = (high-1)<<4 | (low - 1)
		at += 2
	}
	return b, true
}

// hexDigits has the value of each digit and 1, and 0 for what is no digit in lower case.
var hexDigits = func() (values [256]byte) {
	for value, digit := range []byte("0123456789abcdef") {
		values[digit] = byte(value + 1)
	}
	return values
}()

func formatUUID(b [16]byte) string {
	var text [36]byte
	hex.Encode(text[0:8], b[0:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:36], b[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
