package keys

import (
	"strconv"
	"strings"
)

// Owner is the game, player or room to which the memory of a key is attributed. The store knows the
// game of a player or room. All fields are zero for a key of the installation.
type Owner struct {
	GameID int64
	UserID int64
	Room   string // its key
}

// OwnerOf returns the owner of a key. Every key that a game or a player can make has one, except
// those that live for seconds.
func OwnerOf(key string) Owner {
	tag, name, ok := strings.Cut(strings.TrimPrefix(key, "{"), "}:")
	if !ok || tag == "" {
		return Owner{}
	}
	switch kind, rest := tag[0], strings.TrimPrefix(tag[1:], ":"); kind {
	case 'e', 'g', 'b', 'm', 'd', 's':
		return Owner{GameID: leadingID(rest)}
	case 'f': // the first of two players, who are of one game
		return Owner{UserID: leadingID(rest)}
	case 'u':
		return ownerOfUserKey(leadingID(rest), name)
	case 'q', 'i':
		return ownerOfCaller(rest)
	case 'r':
		return ownerOfRoomKey(tag, name)
	case 'p':
		game, ofServer := strings.CutPrefix(name, serverTrail+":")
		routine, isRoutine := strings.CutPrefix(name, routineTrail+":")
		if ofServer || isRoutine {
			return Owner{GameID: max(leadingID(game), leadingID(routine))}
		}
	}
	return Owner{}
}

// ownerOfUserKey returns the game of what a player has in one, else the player.
func ownerOfUserKey(userID int64, name string) Owner {
	for _, prefix := range []string{"save:", "saves:"} {
		if game, ok := strings.CutPrefix(name, prefix); ok {
			return Owner{GameID: leadingID(game)}
		}
	}
	return Owner{UserID: userID}
}

// ownerOfRoomKey returns the owner of a key of a shard of free rooms.
func ownerOfRoomKey(tag, name string) Owner {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "room":
		id, _, _ := strings.Cut(rest, ":")
		return Owner{Room: "{" + tag + "}:room:" + id}
	case "rooms", "feed":
		return Owner{GameID: leadingID(rest)}
	case "player":
		return Owner{UserID: leadingID(rest)}
	case "receipt":
		return ownerOfCaller(rest)
	}
	return Owner{}
}

// ownerOfCaller returns the owner of keys that are stored for a caller, from the caller's ActorID.
func ownerOfCaller(text string) Owner {
	switch {
	case strings.HasPrefix(text, "u"):
		return Owner{UserID: leadingID(text[1:])}
	case strings.HasPrefix(text, "g"):
		return Owner{GameID: leadingID(text[1:])}
	}
	return Owner{}
}

// leadingID returns the number with which a text starts, 0 for none.
func leadingID(text string) int64 {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseInt(text[:end], 10, 64)
	return n
}
