package scripts_test

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/scripts"
	"github.com/parlor-games/parlor/tests/testkit"
)

var (
	roomSettings = redisdb.PackedLayout{
		Name: "the settings", Separator: '|', Layout: scripts.RoomSettings,
	}
	roomState = redisdb.PackedLayout{Name: "the state", Separator: '|', Layout: scripts.RoomState}
	roomTurn  = redisdb.PackedLayout{Name: "the turn", Separator: '|', Layout: scripts.RoomTurn}
	roomSeat  = redisdb.PackedLayout{Name: "a seat", Separator: '|', Layout: scripts.RoomSeat}
)

// checkRooms compares what a shard stores about its rooms: the counts of a room with its seats, its
// pot with the stakes, its position with its last event, and every list of rooms with the rooms.
func checkRooms(t testkit.T, shard keys.Shard, game int64, now redistest.Snapshot) {
	t.Helper()
	want := map[string][]string{}
	add := func(key, room string) { want[key] = append(want[key], room) }
	for key, stored := range now {
		_, id, _ := strings.Cut(key, "room:")
		if stored.Type != "hash" || key != keys.Room(shard, id) || stored.Field("settings") == "" {
			continue
		}
		settings, live := roomSettings.Split(stored.Field("settings")), roomLive.Split(stored.Field("live"))
		isOpen, isOver := live.Text("status") == "CREATED", stored.Field("finished") != ""
		seats, players := countSeats(stored)
		if !isOver {
			for name, count := range seats {
				if got := live.Text(name); got != count && (name != "ready" || isOpen) {
					t.Fatalf("%s has %s %s; its seats have %s", id, got, name, count)
				}
			}
			for _, player := range players {
				add(keys.PlayerRooms(shard, player), id)
			}
		}
		if seats["reserved"] != "0" && live.Text("status") == "STARTED" {
			t.Fatalf("%s is started and has reserved seats", id)
		}
		events := now[keys.RoomEvents(shard, id)].Values
		position := live.Text("seq") + "-" + live.Text("nonce") + "|"
		if len(events) > 0 && !strings.HasPrefix(events[len(events)-1], position) {
			t.Fatalf("%s is at %s and its last event is %s", id, position, events[len(events)-1])
		}
		checkState(t, id, stored)
		turns := now[keys.RoomTurns(shard)]
		if turn := stored.Field("turn"); turn != "" && live.Text("status") == "STARTED" {
			record := roomTurn.Split(turn)
			if due := turns.Field(id); due != record.Text("deadline") {
				t.Fatalf("the turn of %s is %s and due at %q", id, turn, due)
			}
		} else if live.Text("status") == "STARTED" && turns.Field(id) != "" {
			t.Fatalf("%s has no turn and is due at %s", id, turns.Field(id))
		}
		add(keys.RoomIndex(shard, game, "all"), id)
		add(keys.RoomsDue(shard), id)
		if !shard.Paid() {
			add(keys.FreeRooms(shard), id)
		}
		if live.Text("status") == "DISPUTED" {
			add(keys.DisputedRooms(shard), id)
		} else if settings.Text("visibility") == "public" {
			add(keys.RoomIndex(shard, game, strings.ToLower(live.Text("status"))), id)
			if isOpen && live.Int("active")+live.Int("reserved") < settings.Int("max_players") {
				add(keys.RoomIndex(shard, game, "open"), id)
			}
		}
	}
	for key, stored := range now {
		if strings.HasSuffix(key, ":made") || key == keys.RoomTurns(shard) { // it may name rooms that have ended
			continue
		}
		if _, listed := want[key]; stored.Type == "zset" && !listed {
			want[key] = nil
		}
	}
	for key, rooms := range want {
		if got := now[key].Names(); !slices.Equal(got, slices.Sorted(slices.Values(rooms))) {
			t.Fatalf("%s names %v; want %v", key, got, rooms)
		}
	}
}

// checkState compares the head of a room's shared state with its values.
func checkState(t testkit.T, id string, room redistest.StoredKey) {
	t.Helper()
	bytes, names := 2, 0 // of "{}"
	for _, field := range room.Names() {
		if name, ok := strings.CutPrefix(field, "k:"); ok {
			bytes, names = bytes+len(name)+len(room.Field(field))+4, names+1
		}
	}
	if text := room.Field("state"); text != "" || names > 0 {
		head := roomState.Split(text)
		if head.Int("bytes") != int64(bytes) || head.Int("names") != int64(names) {
			t.Fatalf("the state of %s is %s; its values have %d bytes and %d names", id, text, bytes, names)
		}
	}
}

// countSeats returns what a room's live values must have by its seats, and who has a seat.
func countSeats(stored redistest.StoredKey) (counts map[string]string, players []int64) {
	number := map[string]int{}
	pot := new(big.Int)
	for _, field := range stored.Names() {
		user, err := strconv.ParseInt(strings.TrimPrefix(field, "s"), 10, 64)
		if err != nil {
			continue
		}
		players = append(players, user)
		seat := roomSeat.Split(stored.Field(field))
		number[seat.Text("state")]++
		if seat.Text("state") == "active" && seat.Bool("ready") {
			number["ready"]++
		}
		pot.Add(pot, big.NewInt(seat.Int("stake")))
	}
	counts = map[string]string{"pot": pot.String()}
	for _, name := range []string{"active", "reserved", "ready"} {
		counts[name] = fmt.Sprint(number[name])
	}
	return counts, players
}
