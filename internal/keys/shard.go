package keys

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Shard is the place of a room: the economy's tag for rooms that take a stake, one of R tags
// for free rooms. A room never moves, and its id tells its home, so no lookup precedes a script.
type Shard struct {
	economy bool
	index   uint16 // 0 … 16383; which free home, 0 in the economy
}

// MaxShards bounds the number of homes for free rooms: the room id has 14 bits for it.
const MaxShards = 1 << 14

// Economy is the home of all rooms that take a stake.
var Economy = Shard{economy: true}

// FreeShard is the n-th home for free rooms, 0 ≤ n < MaxHomes.
func FreeShard(n int) Shard { return Shard{index: uint16(n)} }

// Number counts homes from 0 (the economy) up; free home n has number n+1.
func (h Shard) Number() int {
	if h.economy {
		return 0
	}
	return int(h.index) + 1
}

// Paid tells whether rooms at this home take a stake.
func (h Shard) Paid() bool { return h.economy }

// String is the hash tag without its braces.
func (h Shard) String() string {
	if h.economy {
		return "e:main"
	}
	return "r" + strconv.Itoa(int(h.index))
}

// tag is the hash tag with its braces and the colon that follows it.
func (h Shard) tag() string {
	if h.economy {
		return economy
	}
	return "{" + h.String() + "}:"
}

// NewRoomID makes the id of a room that lives at h: a UUID of version 8 (RFC 9562, 5.8).
//
//	48 bits  Unix time in milliseconds, so that ids sort by age as text
//	 4 bits  version, 8
//	 4 bits  kind: 0 free, 1 economy
//	 8 bits  index of the home, high part
//	 2 bits  variant
//	 6 bits  index of the home, low part
//	56 bits  random
func NewRoomID(h Shard, at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[0:8], uint64(at.UnixMilli())<<16)
	b[6] = 0x80
	if h.economy {
		b[6] |= 1
	}
	b[7] = byte(h.index >> 6)
	_, _ = rand.Read(b[9:]) // never fails: crypto/rand ends the process instead
	b[8] = 0x80 | byte(h.index&0x3f)
	return formatUUID(b)
}

// RoomShard reads the home out of a room id. It answers false for anything that NewRoomID
// cannot have made, so a malformed id costs no round trip. Upper-case digits are refused:
// a room has one spelling.
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
	h := Shard{economy: b[6]&1 == 1, index: uint16(b[7])<<6 | uint16(b[8]&0x3f)}
	return h, !h.economy || h.index == 0
}

func formatUUID(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[0:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:32]
}
