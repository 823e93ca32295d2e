package rooms

import (
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/internal/wire"
)

// CreateInput is a request for a new room. An absent member has the default that its comment names.
type CreateInput struct {
	GameID       int64              `json:"gameId"`       // default: the caller's game, the only one allowed
	EntryTokenID int64              `json:"entryTokenId"` // EntryToken.id; default: none, a free room
	RoomEntry    wallet.AmountInput `json:"roomEntry"`    // stake of each player, decimal; required with a token
	MaxPlayers   int                `json:"maxPlayers"`   // 1 to MaxRoomPlayers and to the game's limit; required
	MinPlayers   *int               `json:"minPlayers"`   // 1 to maxPlayers; default: 2 with an entry, else 1
	FriendsOnly  bool               `json:"isFriendsOnly"`
	Visibility   Visibility         `json:"visibility"` // default: public
	Metadata     wire.RawJSON       `json:"metadata"`   // a JSON object of at most 4 KiB; default: {}
	AutoStart    bool               `json:"autoStart"`
	SettledBy    string             `json:"settlement"` // "server", the default and the only one yet
	RakeBps      *int               `json:"rakeBps"`    // basis points of the pot; default: the game's rake
	PayoutBps    []int              `json:"payout"`     // basis points for each place, sum 10,000; default: [10000]
	Tie          Tie                `json:"tie"`        // default: split
}

// ListQuery filters a list of rooms. A zero member does not filter, except that Service.List
// defines what no Status means.
type ListQuery struct {
	GameID       int64
	Status       Status
	EntryTokenID int64              // EntryToken.id
	MaxEntry     wallet.AmountInput // largest entry, decimal, compared in each room's own token
	HasFreeSeat  *bool              // true: rooms before the start with a free seat; false: all others
	Mine         bool               // for players: their rooms that have not ended, see Service.List
	Limit        int                // rooms in the page, 1 to wire.MaxPageSize; 0 means wire.DefaultPageSize
	Cursor       string             // NextCursor of the page before; "" for the first page
}
