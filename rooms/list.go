package rooms

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/parlor-games/parlor/internal/apierror"
)

// Bounds of a list: what a page holds, how many rooms are read in one go, and how many at most for one page. A page that met the last
// bound may be short and still have a next one.
const (
	defaultLimit = 20
	longestLimit = 100
	listChunk    = 100
	listScan     = 1_000
)

// List answers rooms, newest first. To a player it shows public rooms of the own game: with a status those in it, without one those
// before their start that the player may join now. To a game's server and the operator it is AdminList. It refuses invalid_request,
// game_not_found (another game), token_not_found.
func (s *Service) List(ctx context.Context, caller principal.Caller, q ListQuery) (Page, error) {
	if caller.Role != principal.Player {
		return s.AdminList(ctx, caller, q)
	}
	if q.GameID != 0 && q.GameID != caller.Game {
		return Page{}, apierror.GameNotFound
	}
	q.GameID = caller.Game
	if q.Status != "" {
		return s.page(ctx, q, strings.ToLower(string(q.Status)), nil)
	}
	return s.page(ctx, q, open, func(rooms []Room) (func(*Room) bool, error) { return s.joinable(ctx, caller.User, rooms) })
}

// AdminList answers rooms of every visibility and, unless the query has one, status, newest first: those of a game, or of all
// games to the operator. It refuses what List refuses.
func (s *Service) AdminList(ctx context.Context, caller principal.Caller, q ListQuery) (Page, error) {
	switch {
	case caller.Role == principal.Player:
		return Page{}, apierror.Forbidden
	case caller.Role == principal.Server && q.GameID != 0 && q.GameID != caller.Game:
		return Page{}, apierror.GameNotFound
	case caller.Role == principal.Server:
		q.GameID = caller.Game
	}
	return s.page(ctx, q, all, nil)
}

// joinable tells which of some open rooms a player may join, apart from the money.
func (s *Service) joinable(ctx context.Context, user int64, rooms []Room) (func(*Room) bool, error) {
	var creators []int64
	for i := range rooms {
		if rooms[i].FriendsOnly && rooms[i].Creator != user {
			creators = append(creators, rooms[i].Creator)
		}
	}
	friends := map[int64]bool{}
	if len(creators) > 0 {
		var err error
		if friends, err = s.players.AreFriends(ctx, user, creators...); err != nil {
			return nil, err
		}
	}
	return func(r *Room) bool {
		_, seated := r.Seat(user)
		return !r.banned[user] && (!r.FriendsOnly || seated || r.Creator == user || friends[r.Creator])
	}, nil
}

// page walks one list of ids and answers the rooms that fit. admit, where there is one, judges a chunk of rooms.
func (s *Service) page(ctx context.Context, q ListQuery, state string, admit func([]Room) (func(*Room) bool, error)) (Page, error) {
	fits, before, limit, err := s.filter(ctx, q)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: []Room{}}
	for scanned := 0; scanned < listScan; scanned += listChunk {
		ids, err := s.store.list(ctx, q.GameID, state, before, listChunk)
		if err != nil || len(ids) == 0 {
			return page, err
		}
		rooms, err := s.store.rooms(ctx, ids)
		if err != nil {
			return Page{}, err
		}
		admitted := func(*Room) bool { return true }
		if admit != nil {
			if admitted, err = admit(rooms); err != nil {
				return Page{}, err
			}
		}
		for i := range rooms {
			if !fits(&rooms[i]) || !admitted(&rooms[i]) {
				continue
			}
			if len(page.Items) == limit {
				page.NextCursor = cursor(page.Items[limit-1].RoomID)
				return page, nil
			}
			page.Items = append(page.Items, rooms[i])
		}
		if len(ids) < listChunk {
			return page, nil
		}
		before = ids[len(ids)-1]
	}
	page.NextCursor = cursor(before)
	return page, nil
}

// filter reads a query. It refuses invalid_request with every fault.
func (s *Service) filter(ctx context.Context, q ListQuery) (fits func(*Room) bool, before string, limit int, err error) {
	var f apierror.FieldErrors
	switch q.Status {
	case "", Created, Started, Finished, Cancelled:
	default:
		f.Add("status", "unknown", "must be CREATED, STARTED, FINISHED or CANCELLED")
	}
	limit = q.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if limit < 1 || limit > longestLimit {
		f.Add("limit", "range", fmt.Sprintf("must be 1 to %d", longestLimit))
	}
	if q.Cursor != "" {
		id, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		if before = string(id); err != nil || !isRoomID(before) {
			f.Add("cursor", "format", "must be the nextCursor of the page before")
		}
	}
	if err := f.Err(); err != nil {
		return nil, "", 0, err
	}
	most, err := exact(q.MaxEntry)
	if err != nil {
		return nil, "", 0, err
	}
	token := ""
	if q.EntryTokenID != 0 {
		t, err := s.tokens.TokenByID(ctx, q.EntryTokenID)
		if err != nil {
			return nil, "", 0, err
		}
		token = t.TokenID
	}
	return func(r *Room) bool {
		switch {
		case q.Status != "" && r.Status != q.Status, token != "" && r.Token != token:
			return false
		case q.HasSeat != nil && *q.HasSeat != (r.Status == Created && r.TakenSeats() < r.MaxPlayers):
			return false
		}
		return q.MaxEntry == "" || entryOf(r).Cmp(most) <= 0
	}, before, limit, nil
}

func entryOf(r *Room) *big.Rat {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r.Decimals)), nil)
	return new(big.Rat).SetFrac(big.NewInt(int64(r.Entry)), scale)
}

func cursor(roomID string) string { return base64.RawURLEncoding.EncodeToString([]byte(roomID)) }
