package keys

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// This file names the keys of layout 1, the last one before each game had an economy of its own.
// Only package migrate reads them. Layout 2 had the same keys and was never released.

// OldKind is what a key of layout 1 holds.
type OldKind string

// The kinds. Keys that layout 3 has under the same name and with the same values are OldKept.
const (
	OldForeign OldKind = ""        // of somebody else, or of today's layout only
	OldUnknown OldKind = "unknown" // in a hash tag of layout 1, which has no such key
	OldKept    OldKind = "kept"

	OldWallet       OldKind = "wallet"         // hash
	OldWalletLines  OldKind = "wallet lines"   // stream
	OldTotals       OldKind = "totals"         // hash
	OldLedger       OldKind = "ledger"         // stream
	OldToken        OldKind = "token"          // hash
	OldTokens       OldKind = "tokens"         // hash
	OldAsset        OldKind = "asset"          // hash
	OldAssetCounter OldKind = "asset counter"  // string
	OldAssets       OldKind = "assets"         // zset
	OldInventory    OldKind = "inventory"      // hash
	OldReceipt      OldKind = "receipt"        // string
	OldRoom         OldKind = "room"           // hash
	OldRoomCounter  OldKind = "room counter"   // string
	OldRoomCode     OldKind = "room code"      // string
	OldRoomIndex    OldKind = "room index"     // zset
	OldRoomsDue     OldKind = "rooms due"      // zset
	OldEvents       OldKind = "events"         // stream
	OldUser         OldKind = "user"           // hash
	OldIdentity     OldKind = "identity"       // string
	OldFriends      OldKind = "friends"        // set
	OldPair         OldKind = "pair"           // hash
	OldRefresh      OldKind = "refresh family" // hash
	OldSaves        OldKind = "saves"          // hash
	OldSweepLock    OldKind = "sweep lock"     // string
	OldSweepFence   OldKind = "sweep fence"    // string
)

// OldKey is a key of layout 1.
type OldKey struct {
	Name   string
	Kind   OldKind
	IsPaid bool   // in the economy
	Shard  Shard  // of a key of free rooms
	ID     int64  // the user, game or asset that the name has
	Other  int64  // the second user of a pair, the game of saves
	Text   string // what else the name has: a token, a room id, a code, "<kind>:<digest>", a family, "<caller>:<key>"
}

// Digests in names are longer than today's: of identities in hexadecimal digits, of receipts in
// base64.
const (
	oldIdentityDigits = 64
	oldReceiptDigits  = 22
)

// oldEconomy is the hash tag of the one economy.
const oldEconomy = "e:main"

// OldTotalsKey and OldLedgerKey are keys of which layout 1 has one.
func OldTotalsKey() string { return "{" + oldEconomy + "}:total" }

// OldLedgerKey is the stream of all entries.
func OldLedgerKey() string { return "{" + oldEconomy + "}:ledger" }

// OldWalletLinesKey is the stream with the lines of a player.
func OldWalletLinesKey(userID int64) string {
	return "{" + oldEconomy + "}:wallet:" + id(userID) + ":lines"
}

// OldTotalsSeqField is the field of the totals with the number of the last ledger entry.
const OldTotalsSeqField = "seq"

// tag returns the hash tag of the room shard of a key.
func (k OldKey) tag() string {
	if k.IsPaid {
		return "{" + oldEconomy + "}:"
	}
	return "{" + k.Shard.String() + "}:"
}

// DueKey returns the zset in which the room of a key is due.
func (k OldKey) DueKey() string { return k.tag() + "rooms:due" }

// RoomKey returns the name of a room on the shard of a key. Free rooms of layout 3 have the same
// names there.
func (k OldKey) RoomKey(roomID string) string { return k.tag() + "room:" + roomID }

// ParseOldKey says what a key is in layout 1.
func ParseOldKey(name string) OldKey {
	k := OldKey{Name: name, Kind: OldForeign}
	tag, rest, found := strings.Cut(strings.TrimPrefix(name, "{"), "}:")
	if !found || name[0] != '{' {
		return k
	}
	if tag == oldEconomy {
		k.IsPaid, k.Kind = true, OldUnknown
		if !k.parseRooms(rest) {
			k.parseEconomy(rest)
		}
		return k
	}
	if shard, ok := ParseShard(tag); ok && !shard.Paid() {
		k.Shard = shard
		if !k.parseRooms(rest) {
			k.Kind = OldForeign
		}
		return k
	}
	switch {
	case strings.HasPrefix(tag, "u:"):
		k.parseUser(tag[2:], rest)
	case strings.HasPrefix(tag, "f:") && rest == "pair":
		a, b, _ := strings.Cut(tag[2:], ":")
		if k.setID(a) {
			if k.Other, _ = strconv.ParseInt(b, 10, 64); k.Other > 0 {
				k.Kind = OldPair
			}
		}
	case strings.HasPrefix(tag, "g:"):
		text, isIdentity := strings.CutPrefix(rest, "identity:")
		_, digest, _ := strings.Cut(text, ":")
		if isIdentity && len(digest) == oldIdentityDigits && k.setID(tag[2:]) {
			k.Kind, k.Text = OldIdentity, text
		} else if rest == "game" {
			k.Kind = OldKept
		}
	case strings.HasPrefix(tag, "l:rooms:"):
		switch rest {
		case "lock":
			k.Kind = OldSweepLock
		case "fence":
			k.Kind = OldSweepFence
		}
	}
	return k
}

func (k *OldKey) setID(text string) bool {
	number, err := strconv.ParseInt(text, 10, 64)
	k.ID = number
	return err == nil && number > 0 && id(number) == text
}

// parseEconomy parses what only the economy has.
func (k *OldKey) parseEconomy(rest string) {
	thing, part, _ := strings.Cut(rest, ":")
	switch {
	case rest == "total":
		k.Kind = OldTotals
	case rest == "ledger":
		k.Kind = OldLedger
	case rest == "tokens":
		k.Kind = OldTokens
	case rest == "asset:next":
		k.Kind = OldAssetCounter
	case thing == "token":
		k.Kind, k.Text = OldToken, part
	case thing == "asset" && k.setID(part):
		k.Kind = OldAsset
	case thing == "assets" && k.setID(part):
		k.Kind = OldAssets
	case thing == "inventory" && k.setID(part):
		k.Kind = OldInventory
	case thing == "wallet":
		user, list, _ := strings.Cut(part, ":")
		kinds := map[string]OldKind{"": OldWallet, "lines": OldWalletLines, "events": OldEvents}
		if kind, ok := kinds[list]; ok && k.setID(user) {
			k.Kind = kind
		}
	}
}

// parseRooms parses what every shard of rooms has. It reports whether the key is one of these.
func (k *OldKey) parseRooms(rest string) bool {
	thing, part, _ := strings.Cut(rest, ":")
	switch {
	case rest == "room:next":
		k.Kind = OldRoomCounter
	case thing == "room":
		roomID, list, isList := strings.Cut(part, ":")
		if !isOldRoomID(roomID) && !isList {
			return false
		}
		k.Kind, k.Text = OldRoom, roomID
		if isList && list == "events" {
			k.Kind = OldEvents
		}
	case rest == "rooms:due":
		k.Kind = OldRoomsDue
	case rest == "rooms:fence":
		k.Kind = OldSweepFence
	case thing == "rooms" && strings.Contains(part, ":"):
		k.Kind, k.Text = OldRoomIndex, part
	case thing == "code":
		k.Kind, k.Text = OldRoomCode, part
	case thing == "receipt":
		_, digest, _ := strings.Cut(part, ":")
		if len(digest) != oldReceiptDigits && !strings.HasPrefix(digest, "call:") {
			return false
		}
		k.Kind, k.Text = OldReceipt, part
	default:
		return false
	}
	return true
}

func (k *OldKey) parseUser(user, rest string) {
	if !k.setID(user) {
		return
	}
	thing, part, _ := strings.Cut(rest, ":")
	switch {
	case rest == "user":
		k.Kind = OldUser
	case rest == "friends":
		k.Kind = OldFriends
	case rest == "events":
		k.Kind = OldEvents
	case rest == "progress", thing == "save":
		k.Kind = OldKept
	case thing == "refresh":
		k.Kind, k.Text = OldRefresh, part
	case thing == "saves":
		if k.Other, _ = strconv.ParseInt(part, 10, 64); k.Other > 0 {
			k.Kind = OldSaves
		}
	}
}

// isOldRoomID reports whether a text has the form of a room id of layout 1.
func isOldRoomID(roomID string) bool {
	b, ok := parseUUID(roomID)
	return ok && b[6]>>4 == 8 && b[8]>>6 == 2 && b[6]&0x0f <= 1
}

// MigrateRoomID returns the id that a room of layout 1 has on a shard of layout 3: its time and the
// last 49 of its 56 random bits, so that the same room gets the same id again. It is never the old
// id, because both rooms would have the same key on the free shard 0. It returns false for anything
// that is not an id of layout 1.
func MigrateRoomID(roomID string, to Shard) (string, bool) {
	b, ok := parseUUID(roomID)
	if !ok || !isOldRoomID(roomID) {
		return "", false
	}
	var random [8]byte
	copy(random[1:], b[9:])
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(b[:8]) >> 16))
	migrated := RoomIDOf(to, at, random)
	if migrated == roomID { // of one in 128 rooms of the free shard 0
		random[7] ^= 1
		migrated = RoomIDOf(to, at, random)
	}
	return migrated, true
}
