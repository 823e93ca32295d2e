package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/websocket"
	"github.com/olahol/melody"
	"github.com/redis/go-redis/v9"
)

// The floors are small programs that deliver the same bytes as a node, without most of what it
// does. Each is a process that serves sockets at /?room=<n>.
//
//	raw         a write of a prebuilt frame for each delivery, no Redis
//	gorilla     a WriteMessage for each delivery, no Redis
//	coalescing  melody, an index of rooms, and one frame for all that waits; through Redis
//	stored      coalescing; the script of the events load stores each message and publishes it
//	naive       gin, melody's BroadcastFilter and PubSub.Channel; through Redis
//
// The first two get what to deliver over a connection of their own, at /feed:
// "<room><length><bytes>", 32 bits each, big-endian.
const (
	floorRaw        = "raw"
	floorGorilla    = "gorilla"
	floorCoalescing = "coalescing"
	floorStored     = "stored"
	floorNaive      = "naive"
)

var floors = map[string]func(store *redis.Client) http.Handler{
	floorRaw:        func(*redis.Client) http.Handler { return newFeed(writeRaw) },
	floorGorilla:    func(*redis.Client) http.Handler { return newFeed(writeGorilla) },
	floorCoalescing: newCoalescing,
	floorStored:     newCoalescing,
	floorNaive:      newNaive,
}

// floorChannels is the pattern of the channels, which end with the number of the room.
const floorChannels = "bench:floor:"

func serveFloor(kind, addr, store string) {
	options := &redis.Options{Network: "unix", Addr: strings.TrimPrefix(store, "unix://")}
	if address, ok := strings.CutPrefix(store, "redis://"); ok {
		options = &redis.Options{Addr: address}
	}
	client := redis.NewClient(options)
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", floors[kind](client))
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		os.Exit(1)
	}
}

// index has the connections of each room.
type index[C any] struct {
	mu    sync.RWMutex
	rooms map[int][]C
}

func (x *index[C]) add(room string, c C) {
	n, _ := strconv.Atoi(room)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rooms == nil {
		x.rooms = map[int][]C{}
	}
	x.rooms[n] = append(slices.Clip(x.rooms[n]), c)
}

func (x *index[C]) of(room int) []C {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.rooms[room]
}

// newFeed serves sockets, and /feed, which says what to write to which room.
func newFeed(write func(c *websocket.Conn, payload, frame []byte)) http.Handler {
	x := &index[*websocket.Conn]{}
	upgrader := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/feed" {
			serveFeed(w, x, write)
			return
		}
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		x.add(r.URL.Query().Get("room"), c)
		for { // reads until the end, as every server must
			if _, _, err := c.NextReader(); err != nil {
				return
			}
		}
	})
}

func serveFeed(w http.ResponseWriter, x *index[*websocket.Conn], write func(c *websocket.Conn, payload, frame []byte)) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: feed\r\n\r\n")
	reader := bufio.NewReaderSize(io.MultiReader(buffered, conn), 256<<10)
	var head [8]byte
	for {
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint32(head[4:])
		frame := append(make([]byte, 0, n+4), 0x80|opText, 126, byte(n>>8), byte(n))[:n+4]
		if _, err := io.ReadFull(reader, frame[4:]); err != nil {
			return
		}
		for _, c := range x.of(int(binary.BigEndian.Uint32(head[:4]))) {
			write(c, frame[4:], frame)
		}
	}
}

func writeRaw(c *websocket.Conn, _, frame []byte) { _, _ = c.NetConn().Write(frame) }

func writeGorilla(c *websocket.Conn, payload, _ []byte) {
	_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.WriteMessage(websocket.TextMessage, payload)
}

// coalescing is a session that sends all that waits as one frame.
type coalescing struct {
	session *melody.Session
	mu      sync.Mutex
	busy    bool
	waiting [][]byte
}

func (c *coalescing) push(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, payload)
	if !c.busy {
		c.send()
	}
}

func (c *coalescing) send() {
	c.busy = len(c.waiting) > 0
	switch len(c.waiting) {
	case 0:
	case 1:
		_ = c.session.Write(c.waiting[0])
	default:
		frame := []byte{'['}
		for i, payload := range c.waiting {
			if i > 0 {
				frame = append(frame, ',')
			}
			frame = append(frame, payload...)
		}
		_ = c.session.Write(append(frame, ']'))
	}
	c.waiting = c.waiting[:0]
}

func newCoalescing(store *redis.Client) http.Handler {
	x, m := &index[*coalescing]{}, melody.New()
	m.Upgrader.WriteBufferPool = &sync.Pool{}
	m.HandleConnect(func(s *melody.Session) {
		c := &coalescing{session: s}
		s.Set("coalescing", c)
		x.add(s.Request.URL.Query().Get("room"), c)
	})
	m.HandleSentMessage(func(s *melody.Session, _ []byte) {
		v, _ := s.Get("coalescing")
		c := v.(*coalescing)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.send()
	})
	pubsub := store.PSubscribe(context.Background(), floorChannels+"*")
	go func() {
		for {
			message, err := pubsub.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			room, _ := strconv.Atoi(message.Channel[len(floorChannels):])
			payload := []byte(message.Payload)
			for _, c := range x.of(room) {
				c.push(payload)
			}
		}
	}()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = m.HandleRequest(w, r) })
}

func newNaive(store *redis.Client) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine, m := gin.New(), melody.New()
	engine.GET("/", func(c *gin.Context) {
		_ = m.HandleRequestWithKeys(c.Writer, c.Request, map[string]any{"channel": floorChannels + c.Query("room")})
	})
	pubsub := store.PSubscribe(context.Background(), floorChannels+"*")
	go func() {
		for message := range pubsub.Channel() {
			_ = m.BroadcastFilter([]byte(message.Payload), func(s *melody.Session) bool {
				channel, _ := s.Get("channel")
				return channel == message.Channel
			})
		}
	}()
	return engine
}

// feed is the connection over which a floor gets what to deliver.
type feed struct {
	conn   net.Conn
	writer *bufio.Writer
	mu     sync.Mutex
}

func openFeed(address string) (*feed, error) {
	conn, _, err := openWebSocket(address, "/feed", "")
	if err != nil {
		return nil, err
	}
	return &feed{conn: conn, writer: bufio.NewWriterSize(conn, 64<<10)}, nil
}

func (f *feed) send(batch []delivery) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var head [8]byte
	for _, d := range batch {
		binary.BigEndian.PutUint32(head[:4], uint32(d.room))
		binary.BigEndian.PutUint32(head[4:], uint32(len(d.payload)))
		_, _ = f.writer.Write(head[:])
		_, _ = f.writer.Write(d.payload)
	}
	return f.writer.Flush()
}
