package rooms_test

import (
	"errors"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
)

// The routes check roles as well; a second transport or a job would not.
func TestWhichRoleMayCallWhat(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	host, guest := f.newPlayer(0), f.newPlayer(0)
	room := must(t)(f.service.Create(ctx, host, rooms.CreateInput{MaxPlayers: 3}, noKey))
	must(t)(f.service.Join(ctx, guest, room.RoomID, noKey))
	verbs := map[string]struct {
		call    func(c principal.Caller) error
		allowed []principal.Role // that are not forbidden; the room's state may still be against it
	}{
		"Create": {func(c principal.Caller) error {
			_, err := f.service.Create(ctx, c, rooms.CreateInput{MaxPlayers: 2}, noKey)
			return err
		}, []principal.Role{principal.Player}},
		"Get": {func(c principal.Caller) error {
			_, err := f.service.Get(ctx, c, room.RoomID)
			return err
		}, []principal.Role{principal.Player, principal.Server, principal.Operator}},
		"GetHeads": {func(c principal.Caller) error {
			return f.service.GetHeads(ctx, c, room.RoomID)[0].Err
		}, []principal.Role{principal.Player, principal.Server, principal.Operator}},
		"GetByCode": {func(c principal.Caller) error {
			_, err := f.service.GetByCode(ctx, c, 0, room.Code)
			return err
		}, []principal.Role{principal.Player, principal.Server, principal.Operator}},
		"List": {func(c principal.Caller) error {
			_, err := f.service.List(ctx, c, rooms.ListQuery{})
			return err
		}, []principal.Role{principal.Player, principal.Server, principal.Operator}},
		"AdminList": {func(c principal.Caller) error {
			_, err := f.service.AdminList(ctx, c, rooms.ListQuery{})
			return err
		}, []principal.Role{principal.Server, principal.Operator}},
		"Join": {func(c principal.Caller) error {
			_, err := f.service.Join(ctx, c, room.RoomID, noKey)
			return err
		}, []principal.Role{principal.Player}},
		"Resolve": {func(c principal.Caller) error {
			_, err := f.service.Resolve(ctx, c, room.RoomID, rooms.ResolveInput{Refund: true}, noKey)
			return err
		}, []principal.Role{principal.Operator}},
		"Ready": {func(c principal.Caller) error {
			_, err := f.service.Ready(ctx, c, room.RoomID, true, noKey)
			return err
		}, []principal.Role{principal.Player}},
		"Kick": {func(c principal.Caller) error {
			_, err := f.service.Kick(ctx, c, rooms.KickInput{RoomID: room.RoomID, UserID: 1}, noKey)
			return err
		}, []principal.Role{principal.Player, principal.Server}},
		"TransferHost": {func(c principal.Caller) error {
			_, err := f.service.TransferHost(ctx, c, room.RoomID, 1, noKey)
			return err
		}, []principal.Role{principal.Player, principal.Server}},
		"Rematch": {func(c principal.Caller) error {
			_, err := f.service.Rematch(ctx, c, room.RoomID, noKey)
			return err
		}, []principal.Role{principal.Player}},
		"Leave": {func(c principal.Caller) error {
			_, err := f.service.Leave(ctx, c, room.RoomID, noKey)
			return err
		}, []principal.Role{principal.Player}},
		"Finish": {func(c principal.Caller) error {
			_, err := f.service.Finish(ctx, c, room.RoomID, []rooms.Placement{{UserID: guest.UserID, Place: 1}}, noKey)
			return err
		}, []principal.Role{principal.Server}},
		"Start": {func(c principal.Caller) error {
			_, err := f.service.Start(ctx, c, room.RoomID, noKey)
			return err
		}, []principal.Role{principal.Player, principal.Server}},
		"Cancel": {func(c principal.Caller) error {
			_, err := f.service.Cancel(ctx, c, room.RoomID, noKey)
			return err
		}, []principal.Role{principal.Player, principal.Server, principal.Operator}},
	}
	stranger := f.newPlayer(0)
	for _, c := range []principal.Caller{
		{},
		{GameID: f.GameID},
		{Role: "x", GameID: f.GameID, UserID: guest.UserID},
		{Role: principal.System, GameID: f.GameID},
		{Role: principal.Operator},
		{Role: principal.Server, GameID: f.GameID + 1_000_000},
		stranger,
	} {
		for verb, v := range verbs {
			allowed := c.HasRole(v.allowed...)
			if err := v.call(c); errors.Is(err, apierror.Forbidden) == allowed {
				t.Errorf("%s by %+v returned %v", verb, c, err)
			}
			if verb == "Cancel" && c.Role == principal.Operator {
				room = must(t)(f.service.Create(ctx, host, rooms.CreateInput{MaxPlayers: 3}, noKey))
				must(t)(f.service.Join(ctx, guest, room.RoomID, noKey))
			}
		}
	}
}
