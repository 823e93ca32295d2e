package rooms

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/money/wallet"
)

// A list reads as many rooms as the page shall have. While they do not fill it, it reads twice as
// many as before, at least minChunk, and at most maxScanned for one page. A page that meets this
// bound may be short, or empty, and still have a next page.
const (
	minChunk        = 32  // rooms
	maxScannedRooms = 300 // rooms
)

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

// List returns rooms, newest first. A player gets public rooms of the own game: those with the
// status, or without a status those before the start that the player may join now. With Mine a
// player gets the rooms, of every visibility, that have not ended and in which the player has a
// seat, be it active, reserved or forfeited. For a game's server and the operator it is AdminList.
//
// It returns invalid_request, invalid_amount, game_not_found (another game), token_not_found.
func (s *Service) List(ctx context.Context, caller principal.Caller, q ListQuery) (Page, error) {
	if caller.Role != principal.Player {
		return s.AdminList(ctx, caller, q)
	}
	if q.GameID != 0 && q.GameID != caller.GameID {
		return Page{}, apierror.GameNotFound
	}
	q.GameID = caller.GameID
	switch {
	case q.Mine:
		isMine := func(rooms []Room) ([]Room, error) { return selectMine(caller.UserID, rooms), nil }
		return s.readPage(ctx, q, s.store.playerIndexes(q.GameID, caller.UserID), isMine)
	case q.Status == Disputed: // these indexes have rooms of every visibility
		indexes, err := s.store.disputedIndexes(ctx, q.GameID)
		if err != nil {
			return Page{}, err
		}
		return s.readPage(ctx, q, indexes, func(rooms []Room) ([]Room, error) { return selectPublic(rooms), nil })
	case q.Status != "":
		return s.readPage(ctx, q, s.store.gameIndexes(q.GameID, strings.ToLower(string(q.Status))), nil)
	}
	isJoinable := func(rooms []Room) ([]Room, error) { return s.selectJoinable(ctx, caller.UserID, rooms) }
	return s.readPage(ctx, q, s.store.gameIndexes(q.GameID, openIndex), isJoinable)
}

// AdminList returns rooms of every visibility, newest first: those of the server's game, or of all
// games for the operator. It returns the codes of List, forbidden for a player, and invalid_request
// with Mine.
func (s *Service) AdminList(ctx context.Context, caller principal.Caller, q ListQuery) (Page, error) {
	switch {
	case !caller.HasRole(principal.Server, principal.Operator):
		return Page{}, apierror.Forbidden
	case caller.Role == principal.Server && q.GameID != 0 && q.GameID != caller.GameID:
		return Page{}, apierror.GameNotFound
	case caller.Role == principal.Server:
		q.GameID = caller.GameID
	}
	if q.Mine {
		return Page{}, apierror.InvalidRequest.WithField("mine", "unsupported", "is for players, who have seats")
	}
	var indexes []string
	var err error
	switch {
	case q.Status == Disputed:
		indexes, err = s.store.disputedIndexes(ctx, q.GameID)
	case q.GameID != 0:
		indexes = s.store.gameIndexes(q.GameID, allIndex)
	default:
		indexes, err = s.store.allIndexes(ctx)
	}
	if err != nil {
		return Page{}, err
	}
	page, err := s.readPage(ctx, q, indexes, nil)
	if err != nil {
		return Page{}, err
	}
	list := make([]*Room, len(page.Items))
	for i := range page.Items {
		list[i] = &page.Items[i]
		list[i].revealReports(caller)
	}
	return page, s.store.addDisputesLost(ctx, list...)
}

// selectPublic returns those rooms that are public.
func selectPublic(rooms []Room) []Room {
	return slices.DeleteFunc(rooms, func(r Room) bool { return r.Visibility != Public })
}

// readPage reads indexes from the cursor on until it has a page of rooms that match the query and
// that choose returns, when it is not nil.
func (s *Service) readPage(
	ctx context.Context, q ListQuery, indexes []string, choose func([]Room) ([]Room, error),
) (Page, error) {
	filter, err := s.parseQuery(ctx, q)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: []Room{}}
	before := filter.beforeRoomID
	for chunk := filter.limit; page.Scanned < maxScannedRooms; chunk = max(2*chunk, minChunk) {
		chunk = min(chunk, maxScannedRooms-page.Scanned)
		ids, err := s.store.listRoomIDs(ctx, indexes, before, chunk+1) // one more shows whether there are more
		if err != nil {
			return Page{}, err
		}
		hasMore := len(ids) > chunk
		ids = ids[:min(chunk, len(ids))]
		rooms, err := s.store.readMany(ctx, ids)
		if err != nil {
			return Page{}, err
		}
		page.Scanned += len(ids)
		if choose != nil {
			if rooms, err = choose(rooms); err != nil {
				return Page{}, err
			}
		}
		for i := range rooms {
			if !filter.matches(&rooms[i]) {
				continue
			}
			if !q.Mine {
				rooms[i].Shared = nil // a page of 100 rooms could have 1.6 MB of it
			}
			page.Items = append(page.Items, rooms[i])
			if len(page.Items) < filter.limit {
				continue
			}
			if hasMore || i < len(rooms)-1 {
				page.NextCursor = encodeCursor(rooms[i].RoomID)
			}
			return page, nil
		}
		if !hasMore {
			return page, nil
		}
		before = ids[chunk-1]
	}
	page.NextCursor = encodeCursor(before)
	return page, nil
}

// maxCountedRooms bounds how many rooms of a game CountOpen reads.
const maxCountedRooms = 3_000

// CountOpen returns how many rooms of a game have not ended, and how many players are in them. It
// looks at the newest 3,000 rooms. Its caller must have checked who may see the game. It returns
// store_unavailable.
func (s *Service) CountOpen(ctx context.Context, gameID int64) (open, players int, err error) {
	q := ListQuery{GameID: gameID, Limit: wire.MaxPageSize}
	indexes := s.store.gameIndexes(gameID, allIndex)
	for scanned := 0; scanned < maxCountedRooms; {
		page, err := s.readPage(ctx, q, indexes, func(rooms []Room) ([]Room, error) { return selectOpen(rooms), nil })
		if err != nil {
			return 0, 0, err
		}
		open += len(page.Items)
		for i := range page.Items {
			players += len(page.Items[i].ActivePlayers())
		}
		if page.NextCursor == "" {
			break
		}
		scanned += page.Scanned
		q.Cursor = page.NextCursor
	}
	return open, players, nil
}

// selectOpen returns those rooms that have not ended.
func selectOpen(rooms []Room) []Room {
	return slices.DeleteFunc(rooms, func(r Room) bool { return r.Status.Ended() })
}

// selectMine returns the rooms that have not ended and in which a player has a seat: a room may
// have changed since its id was read.
func selectMine(user int64, rooms []Room) []Room {
	return slices.DeleteFunc(rooms, func(r Room) bool {
		_, seated := r.Seat(user)
		return !seated || r.Status.Ended()
	})
}

// selectJoinable returns those open rooms that a player may join. It does not look at the player's
// balance.
func (s *Service) selectJoinable(ctx context.Context, user int64, rooms []Room) ([]Room, error) {
	var creators []int64
	for i := range rooms {
		if rooms[i].FriendsOnly && rooms[i].CreatorID != user {
			creators = append(creators, rooms[i].CreatorID)
		}
	}
	friends := map[int64]bool{}
	if len(creators) > 0 {
		var err error
		if friends, err = s.players.AreFriends(ctx, user, creators...); err != nil {
			return nil, err
		}
	}
	var joinable []Room
	for i := range rooms {
		r := &rooms[i]
		_, seated := r.Seat(user)
		admitted := !r.FriendsOnly || seated || r.CreatorID == user || friends[r.CreatorID]
		if admitted && !r.bannedUsers[user] {
			joinable = append(joinable, *r)
		}
	}
	return joinable, nil
}

// listFilter is a valid ListQuery.
type listFilter struct {
	gameID       int64 // 0 for any
	status       Status
	tokenCode    string // code of the entry token, "" for any
	maxEntry     *big.Rat
	hasFreeSeat  *bool
	beforeRoomID string // room id of the cursor, "" for the first page
	limit        int
}

// parseQuery validates a query. It returns every faulty field in one invalid_request.
func (s *Service) parseQuery(ctx context.Context, q ListQuery) (listFilter, error) {
	var fieldErrors apierror.FieldErrors
	filter := listFilter{
		gameID: q.GameID, status: q.Status, hasFreeSeat: q.HasFreeSeat, limit: cmp.Or(q.Limit, wire.DefaultPageSize),
	}
	switch q.Status {
	case "", Created, Started, Disputed, Finished, Cancelled:
	default:
		fieldErrors.Add("status", "unknown", "must be CREATED, STARTED, DISPUTED, FINISHED or CANCELLED")
	}
	if filter.limit < 1 || filter.limit > wire.MaxPageSize {
		fieldErrors.Add("limit", "range", fmt.Sprintf("must be 1 to %d", wire.MaxPageSize))
	}
	if q.Cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if filter.beforeRoomID = string(id); err != nil || !isRoomID(filter.beforeRoomID) {
			fieldErrors.Add("cursor", "format", "must be the nextCursor of the page before")
		}
	}
	if err := fieldErrors.Err(); err != nil {
		return listFilter{}, err
	}
	if q.MaxEntry != "" {
		var err error
		if filter.maxEntry, err = parseDecimal(q.MaxEntry); err != nil {
			return listFilter{}, apierror.InField("maxEntry", err)
		}
	}
	if q.EntryTokenID != 0 {
		token, err := s.wallets.TokenByID(ctx, q.GameID, q.EntryTokenID)
		if err != nil {
			return listFilter{}, err
		}
		filter.tokenCode = token.Code
	}
	return filter, nil
}

func (f *listFilter) matches(r *Room) bool {
	switch {
	case f.gameID != 0 && r.GameID != f.gameID:
		return false
	case f.status != "" && r.Status != f.status:
		return false
	case f.tokenCode != "" && r.TokenCode != f.tokenCode:
		return false
	case f.hasFreeSeat != nil && *f.hasFreeSeat != (r.Status == Created && r.TakenSeats() < r.MaxPlayers):
		return false
	}
	return f.maxEntry == nil || decimalEntry(r).Cmp(f.maxEntry) <= 0
}

// decimalEntry returns the entry in whole tokens.
func decimalEntry(r *Room) *big.Rat {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r.TokenDecimals)), nil)
	return new(big.Rat).SetFrac(big.NewInt(int64(r.Entry)), scale)
}

func encodeCursor(roomID string) string { return base64.RawURLEncoding.EncodeToString([]byte(roomID)) }
