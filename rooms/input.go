package rooms

import (
	"encoding/json"

	"github.com/parlor-games/parlor/internal/wallet"
)

// CreateInput is what a player asks for when opening a room. The tags are the names of contract 4; absent members
// have the defaults that the comments tell.
type CreateInput struct {
	GameID       int64              `json:"gameId"`       // the caller's game
	EntryTokenID int64              `json:"entryTokenId"` // EntryToken.id; none: a free room
	RoomEntry    wallet.AmountInput `json:"roomEntry"`    // per player; 0
	MaxPlayers   int                `json:"maxPlayers"`   // 1 to 256, and to the game's limit
	MinPlayers   *int               `json:"minPlayers"`   // 2 with an entry, else 1
	FriendsOnly  bool               `json:"isFriendsOnly"`
	Visibility   Visibility         `json:"visibility"` // public
	Metadata     json.RawMessage    `json:"metadata"`   // a JSON object of up to 4 KiB; {}
	AutoStart    bool               `json:"autoStart"`
	Settlement   string             `json:"settlement"` // server
	RakeBps      *int               `json:"rakeBps"`    // the game's
	Payout       []int              `json:"payout"`     // basis points per place; the first takes all
	Tie          Tie                `json:"tie"`        // split
}

// ListQuery says which rooms to list. Zero members do not filter, but see Service.List for Status.
type ListQuery struct {
	GameID       int64
	Status       Status
	EntryTokenID int64              // EntryToken.id
	MaxEntry     wallet.AmountInput // rooms whose entry is at most this, each by its own token's decimals
	HasSeat      *bool              // rooms that have a free seat before the start, or have not
	Limit        int                // 1 to 100; 20
	Cursor       string             // NextCursor of the page before
}
