package rooms_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/rooms"
)

// A lobby lives for a day and is entered by thousands.
func TestPassersByLeaveNothingInARoom(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	host := f.newPlayer(0)
	id := must(t)(f.service.Create(ctx, host, rooms.CreateInput{MaxPlayers: 8}, noKey)).RoomID
	shard, _ := keys.RoomShard(id)
	for range 1200 {
		passerBy := f.newPlayer(0)
		must(t)(f.service.Join(ctx, passerBy, id, noKey))
		must(t)(f.service.Leave(ctx, passerBy, id, noKey))
	}
	fields := f.db.Client.HGetAll(ctx, keys.Room(shard, id)).Val()
	bytes := 0
	for field, value := range fields {
		bytes += len(field) + len(value)
	}
	if len(fields) > 24 || bytes > 4096 {
		t.Errorf("the room has %d fields of %d bytes", len(fields), bytes)
	}
}

// An event carries the change, not the room: otherwise filling a room costs O(seats²) bytes.
func TestFillingALargeRoomLeavesSmallEvents(t *testing.T) {
	f := newFixture(t, redistest.Single(t))
	ctx := t.Context()
	f.Settings.MaxPlayers = rooms.MaxRoomPlayers
	id := must(t)(f.service.Create(ctx, f.newPlayer(0), rooms.CreateInput{MaxPlayers: 256}, noKey)).RoomID
	for range 255 {
		must(t)(f.service.Join(ctx, f.newPlayer(0), id, noKey))
	}
	shard, _ := keys.RoomShard(id)
	entries := f.db.Client.LRange(ctx, keys.RoomEvents(shard, id), 0, -1).Val()
	bytes := 0
	for _, entry := range entries {
		bytes += len(entry)
	}
	last, err := events.Render(entries[len(entries)-1], id)
	if err != nil || len(entries) < 200 || bytes > 100_000 ||
		!strings.Contains(string(last[0].JSON), `"participantCount":256`) {
		t.Errorf("%d entries of %d bytes, the last is %s, %v", len(entries), bytes, last[0].JSON, err)
	}
}
