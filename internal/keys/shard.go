package keys

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Shard is where a room is stored: under the economy's hash tag for rooms that take a stake, under
// one of R hash tags for free rooms. A room never moves, and its id names its shard, so that no
// lookup precedes a script.
type Shard struct {
	economy bool
	index   uint16 // 0 … 16383: number of the free shard, 0 in the economy
}

// MaxShards is the largest number of shards for free rooms: the room id has 14 bits for it.
const MaxShards = 1 << 14

// Economy is the shard of all rooms that take a stake.
var Economy = Shard{economy: true}

// FreeShard returns the n-th shard for free rooms, 0 ≤ n < MaxShards.
func FreeShard(n int) Shard { return Shard{index: uint16(n)} }

// Number returns 0 for the economy and n+1 for free shard n.
func (s Shard) Number() int {
	if s.economy {
		return 0
	}
	return int(s.index) + 1
}

// Paid reports whether the rooms of this shard take a stake.
func (s Shard) Paid() bool { return s.economy }

// String returns the hash tag without its braces.
func (s Shard) String() string {
	if s.economy {
		return "e:main"
	}
	return "r" + strconv.Itoa(int(s.index))
}

// tag returns the hash tag with its braces and the colon that follows it.
func (s Shard) tag() string {
	if s.economy {
		return economyPrefix
	}
	return "{" + s.String() + "}:"
}

// NewRoomID returns the id of a new room on a shard: a UUID of version 8 (RFC 9562, 5.8).
//
//	48 bits  Unix time in milliseconds, so that ids sort by age as text
//	 4 bits  version, 8
//	 4 bits  kind: 0 free, 1 economy
//	 8 bits  index of the shard, high part
//	 2 bits  variant
//	 6 bits  index of the shard, low part
//	56 bits  random
func NewRoomID(s Shard, at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[0:8], uint64(at.UnixMilli())<<16)
	b[6] = 0x80
	if s.economy {
		b[6] |= 1
	}
	b[7] = byte(s.index >> 6)
	_, _ = rand.Read(b[9:]) // never fails: crypto/rand ends the process instead
	b[8] = 0x80 | byte(s.index&0x3f)
	return formatUUID(b)
}

// RoomShard returns the shard that a room id names. It returns false for anything that NewRoomID
// cannot have made, so that a malformed id costs no round trip. Upper-case digits are invalid: a
// room id has one spelling.
func RoomShard(roomID string) (Shard, bool) {
	if len(roomID) != 36 || roomID[8] != '-' || roomID[13] != '-' || roomID[18] != '-' || roomID[23] != '-' {
		return Shard{}, false
	}
	digits := strings.ReplaceAll(roomID, "-", "")
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 16 || strings.ToLower(digits) != digits {
		return Shard{}, false
	}
	if b[6]>>4 != 8 || b[8]>>6 != 2 || b[6]&0x0f > 1 {
		return Shard{}, false
	}
	s := Shard{economy: b[6]&1 == 1, index: uint16(b[7])<<6 | uint16(b[8]&0x3f)}
	return s, !s.economy || s.index == 0
}

func formatUUID(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[0:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:32]
}
