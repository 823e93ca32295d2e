package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/redis/go-redis/v9"
)

// shape is how many rooms there are and how many sockets each has.
type shape struct{ rooms, members int }

func (s shape) String() string { return fmt.Sprintf("%d × %d", s.rooms, s.members) }

func parseShapes(text string) (shapes []shape, err error) {
	for part := range strings.SplitSeq(text, ",") {
		var s shape
		if _, err := fmt.Sscanf(part, "%dx%d", &s.rooms, &s.members); err != nil || s.rooms < 1 || s.members < 2 {
			return nil, fmt.Errorf("a shape is <rooms>x<members>, as 100x10; not %q", part)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}

// socketsPerSeat returns how many sockets each player opens: one where the room has enough seats.
func (s shape) socketsPerSeat() int {
	n := 1
	for n < maxSocketsPerPlayer && s.members/n > maxSeats {
		n *= 2
	}
	return n
}

const (
	maxSeats            = 250 // fewer than a room may have
	maxSocketsPerPlayer = 8   // fewer than a player may open on a node
)

// world is rooms whose members have sockets at a node.
type world struct {
	*bench
	shape   shape
	rooms   []string // ids
	players [][]player
	sockets [][]*socket // by room
	turns   int         // changes of rooms
}

// newWorld signs players in and seats them. Every room has as many seats as it has players, up to
// maxSeats; the other members are spectators.
func (b *bench) newWorld(s shape, firstPlayer int) (*world, error) {
	w := &world{
		bench: b, shape: s, rooms: make([]string, s.rooms), players: make([][]player, s.rooms),
		sockets: make([][]*socket, s.rooms),
	}
	perRoom := s.members / s.socketsPerSeat()
	for room := range w.sockets {
		w.sockets[room] = make([]*socket, perRoom*s.socketsPerSeat())
	}
	err := b.forEachWorker(func(worker int) error {
		c := b.nodeConns[worker]
		for room := worker; room < s.rooms; room += b.options.workers {
			for i := range perRoom {
				var p player
				err := whileBusy(func() (err error) { p, err = b.signIn(c, firstPlayer+room*perRoom+i); return err })
				if err != nil {
					return err
				}
				w.players[room] = append(w.players[room], p)
			}
			if err := w.seat(c, room); err != nil {
				return err
			}
		}
		return nil
	})
	return w, err
}

// seat opens a room and seats its players.
func (w *world) seat(c *conn, room int) error {
	seats := min(len(w.players[room]), maxSeats)
	create := w.players[room][0].post("/api/v1/game-session/create", fmt.Sprintf(`{"maxPlayers":%d}`, seats))
	err := whileBusy(func() error {
		status, body, err := c.send(create)
		w.rooms[room] = textMember(body, "roomId")
		return wantStatus(http.StatusCreated)(status, body, err)
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for _, p := range w.players[room][1:seats] {
		join := p.post("/api/v1/game-session/join", roomBody(w.rooms[room]))
		if err := whileBusy(func() error { return wantStatus(http.StatusOK)(c.send(join)) }); err != nil {
			return fmt.Errorf("join: %w", err)
		}
	}
	return nil
}

// textMember returns the first member of a name, found without decoding, which would cost CPU.
func textMember(body []byte, name string) string {
	_, rest, _ := strings.Cut(string(body), `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// openSockets opens the sockets of all members and subscribes them to their rooms.
func (w *world) openSockets(address string) error {
	perSeat := w.shape.socketsPerSeat()
	return w.eachMember(func(room, member int) error {
		s, err := openMember(address, w.players[room][member/perSeat], w.rooms[room], "")
		if err == nil {
			s.room, s.member = room, member
			w.sockets[room][member] = s
		}
		return err
	})
}

// eachMember calls do for every member of every room, at most 64 at a time.
func (w *world) eachMember(do func(room, member int) error) error {
	members := len(w.sockets[0])
	return inParallel(w.shape.rooms*members, 64, func(i int) error { return do(i%w.shape.rooms, i/w.shape.rooms) })
}

// inParallel calls do for 0 to n-1, so many at a time, and returns the first error.
func inParallel(n, atOnce int, do func(i int) error) error {
	var workers sync.WaitGroup
	var once sync.Once
	var first error
	next := make(chan int)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for range min(n, atOnce) {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { first = err })
					stop()
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return first
}

// openMember opens a player's socket and subscribes it to a room, after a position if there is one.
func openMember(address string, p player, room, after string) (s *socket, err error) {
	err = whileBusy(func() (err error) { s, err = tryMember(address, p, room, after); return err })
	return s, err
}

// whileBusy calls try until it succeeds, for as long as a machine may be too busy.
func whileBusy(try func() error) error {
	for begin := time.Now(); ; {
		err := try()
		if err == nil || time.Since(begin) > handshakeLimit {
			return err
		}
		<-time.After(200 * time.Millisecond)
	}
}

func tryMember(address string, p player, room, after string) (*socket, error) {
	conn, reader, err := openWebSocket(address, "/api/v1/realtime?protocol=1",
		"Authorization: Bearer "+p.accessToken+"\r\nX-Forwarded-For: "+p.clientAddress+"\r\n")
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, reader: reader}
	data := `{"roomId":"` + room + `"`
	if after != "" {
		data += `,"after":"` + after + `"`
	}
	if _, err = s.ask(`{"id":"s","type":"room.subscribe","data":` + data + `}}`); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	return s, nil
}

// roomKeys returns the keys of a room and of its list of events.
func roomKeys(roomID string) []string {
	s, _ := keys.RoomShard(roomID)
	return []string{keys.Room(s, roomID), keys.RoomEvents(s, roomID)}
}

// publishEntry adds an entry to a list of events and publishes it, as the scripts of rooms do.
var publishEntry = redis.NewScript(`
if redis.call('RPUSH', KEYS[1], ARGV[1]) >= 320 then redis.call('LTRIM', KEYS[1], -256, -1) end
return redis.call('PUBLISH', KEYS[1], ARGV[1])`)

// publishNext is publishEntry for the next event of a room, which it numbers as the scripts of
// rooms do: those write events of presence meanwhile.
var publishNext = redis.NewScript(`
local head, seq, tail = string.match(redis.call('HGET', KEYS[1], 'live'), '^([^|]*|[^|]*|)(%d+)|[^|]*(|.*)$')
seq = string.format('%d', seq + 1)
redis.call('HSET', KEYS[1], 'live', head .. seq .. '|' .. ARGV[1] .. tail)
local entry = seq .. '-' .. ARGV[1] .. ARGV[2] .. seq .. ARGV[3]
if redis.call('RPUSH', KEYS[2], entry) >= 320 then redis.call('LTRIM', KEYS[2], -256, -1) end
return redis.call('PUBLISH', KEYS[2], entry)`)

// eventWriter writes events into the lists of rooms.
type eventWriter struct {
	client *redis.Client
	topics []string
	rooms  []string // their keys
}

// newEventWriter loads the script.
func (w *world) newEventWriter(ctx context.Context) (*eventWriter, error) {
	// A batch that is sent again would be other events: one that has no reply ends the bench.
	options := &redis.Options{Network: "unix", Addr: w.redis.Socket, MaxRetries: -1}
	e := &eventWriter{client: redis.NewClient(options)}
	for _, id := range w.rooms {
		both := roomKeys(id)
		e.rooms, e.topics = append(e.rooms, both[0]), append(e.topics, both[1])
	}
	return e, publishNext.Load(ctx, e.client).Err()
}

const eventNonce = "benchevt"

// send writes events in one round trip. The payload is the document in the event.
func (e *eventWriter) send(batch []delivery) error {
	ctx := context.Background()
	pipe := e.client.Pipeline()
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for _, d := range batch {
		publishNext.EvalSha(ctx, pipe, []string{e.rooms[d.room], e.topics[d.room]},
			eventNonce, "|room.joined|"+now+"|", "|2|0|0|"+string(d.payload))
	}
	_, err := pipe.Exec(ctx)
	return err
}
