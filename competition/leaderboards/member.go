package leaderboards

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The layout of a member, in bytes; scripts/lib_board.lua makes it.
const (
	scoreBytes  = 7
	timeBytes   = 6
	userBytes   = 6
	prefixBytes = 2 * scoreBytes // of equal entries
	keyBytes    = prefixBytes + timeBytes
	memberBytes = keyBytes + userBytes
)

var errBadMember = errors.New("a member of a leaderboard does not have its form")

// standing is the content of a member: the score of its player.
type standing struct {
	member     string
	score, sub int64 // units; sub is 0 on a board without one
	reachedAt  time.Time
	userID     int64
}

// prefix returns what equal entries have in common.
func (s standing) prefix() string { return s.member[:prefixBytes] }

func bigEndian(text string) uint64 {
	var b [8]byte
	copy(b[8-len(text):], text)
	return binary.BigEndian.Uint64(b[:])
}

func appendBigEndian(b []byte, value uint64, count int) []byte {
	var bytes [8]byte
	binary.BigEndian.PutUint64(bytes[:], value)
	return append(b, bytes[8-count:]...)
}

func decodeScore(text string, order Order) int64 {
	value := int64(bigEndian(text))
	if order == Ascending {
		return value - scoreBound
	}
	return scoreBound - value
}

// decodeMember returns what a member says, on a board with a definition.
func decodeMember(d *Definition, member string) (standing, error) {
	if len(member) != memberBytes {
		return standing{}, errBadMember
	}
	s := standing{
		member: member, score: decodeScore(member[:scoreBytes], d.Order),
		reachedAt: time.UnixMilli(int64(bigEndian(member[prefixBytes:keyBytes]))).UTC(),
		userID:    int64(bigEndian(member[keyBytes:])),
	}
	if d.Subscore != nil {
		s.sub = decodeScore(member[scoreBytes:prefixBytes], d.Subscore.Order)
	}
	return s, nil
}

// record is the stored entry of a player, without its place in the order.
type record struct {
	standing
	submissions                       int64
	isHidden, hasDetails, hasSegments bool
}

// decodeRecord returns a player's record.
func decodeRecord(d *Definition, userID int64, text string) (record, error) {
	if len(text) < keyBytes {
		return record{}, errBadMember
	}
	place, err := decodeMember(d, string(appendBigEndian([]byte(text[:keyBytes]), uint64(userID), userBytes)))
	if err != nil {
		return record{}, err
	}
	rest, _, _ := strings.Cut(text[keyBytes:], "-")
	flags := strings.TrimLeft(rest, "0123456789")
	r := record{
		standing: place, submissions: 1, isHidden: strings.Contains(flags, "h"),
		hasDetails: strings.Contains(flags, "d"), hasSegments: strings.Contains(flags, "s"),
	}
	if count := strings.TrimSuffix(rest, flags); count != "" {
		r.submissions, err = strconv.ParseInt(count, 10, 64)
	}
	return r, err
}
