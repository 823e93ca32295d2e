package realtime

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gorilla/websocket"
	"github.com/olahol/melody"
	"github.com/parlor-games/parlor/internal/events"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/keys"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/redisdb/redistest"
	"github.com/redis/go-redis/v9"
)

// The benchmarks run a node in a process of its own, with one processor, so that what they count is
// its CPU alone:
//
//	go test ./realtime -run '^$' -bench . -benchtime 1x
//
// A node is the hub, or one of the builds that it is compared with.

const (
	benchKind  = "PARLOR_BENCH_NODE"
	benchStore = "PARLOR_BENCH_STORE"
	benchRooms = "PARLOR_BENCH_ROOMS"
)

func benchTopic(room int) string {
	return fmt.Sprintf("{r%d}:room:00000000-0000-8000-8000-%012d:events", room%8, room)
}

// benchNode is the process under measurement. It prints its address and then, for each line it is
// sent, its CPU time in nanoseconds and its resident bytes.
func benchNode(kind string) error {
	runtime.GOMAXPROCS(1)
	db, err := redisdb.Open(os.Getenv(benchStore))
	if err != nil {
		return err
	}
	rooms, _ := strconv.Atoi(os.Getenv(benchRooms))
	handler, err := benchBuilds[kind](db, rooms)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, handler) }()
	if path := os.Getenv("PARLOR_BENCH_PROFILE"); path != "" {
		f, err := os.Create(path + "." + kind)
		if err != nil {
			return err
		}
		_ = pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "release" {
			debug.FreeOSMemory()
		}
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		statm, _ := os.ReadFile("/proc/self/statm")
		var size, resident int64
		_, _ = fmt.Sscan(string(statm), &size, &resident)
		fmt.Println(u.Utime.Nano()+u.Stime.Nano(), resident*int64(os.Getpagesize()))
	}
	return nil
}

var benchBuilds = map[string]func(db *redisdb.DB, rooms int) (http.Handler, error){
	"hub":     buildHub,
	"raw":     buildRaw,
	"gorilla": buildGorilla,
	"naive":   buildNaive,
}

// buildHub is this package.
func buildHub(db *redisdb.DB, _ int) (http.Handler, error) {
	h := New(db, Options{ConnectionsPerUser: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	socket := h.NewSocketKind(Limits{MaxFrameBytes: 16 << 10, FramesPerSecond: 60, BurstFrames: 120})
	go func() { _ = h.Run(context.Background()) }()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		room, _ := strconv.Atoi(r.URL.Query().Get("room"))
		topic := benchTopic(room)
		onOpen := func(ctx context.Context, c *Client) {
			_, _ = c.Subscribe(ctx, Subscription{
				Topic: topic,
				TakeSnapshot: func(context.Context) (Snapshot, error) {
					last, err := db.Client.LIndex(context.Background(), topic, -1).Result()
					if err != nil && !errors.Is(err, redis.Nil) {
						return Snapshot{}, err
					}
					e, _ := parseEntry(last)
					return Snapshot{Position: e.pos.String(), StateJSON: []byte("{}"), Frame: []byte("{}")}, nil
				},
				EncodeReply: func(SubscribeResult) []byte { return []byte("{}") },
			})
		}
		_ = socket.Serve(w, r, ClientOptions{UserID: 1, OnOpen: onOpen, OnMessage: func(context.Context, *Client, []byte) {}})
	}), nil
}

// benchIndex is common to the other builds: clients by room, and one subscription read by
// PubSub.Channel.
type benchIndex[S any] struct {
	mu    sync.RWMutex
	rooms map[string][]S
}

func (x *benchIndex[S]) add(room string, s S) {
	n, _ := strconv.Atoi(room)
	topic := benchTopic(n)
	x.mu.Lock()
	x.rooms[topic] = append(slices.Clip(x.rooms[topic]), s)
	x.mu.Unlock()
}

func (x *benchIndex[S]) subscribe(db *redisdb.DB, rooms int, send func(S, []byte)) {
	var names []string
	for i := range rooms {
		names = append(names, benchTopic(i))
	}
	ps := db.Client.Subscribe(context.Background(), names...)
	go func() {
		for m := range ps.Channel() {
			raw := renderOne(m.Channel, m.Payload)
			x.mu.RLock()
			sessions := x.rooms[m.Channel]
			x.mu.RUnlock()
			for _, s := range sessions {
				send(s, raw)
			}
		}
	}()
}

// renderOne returns the event of a channel payload.
func renderOne(topic, payload string) []byte {
	room, _ := keys.ParseRoomEvents(topic)
	rendered, err := events.Render(payload, room)
	if err != nil {
		panic(err)
	}
	return rendered[0].JSON
}

// buildRaw writes a prebuilt frame to every connection: the floor of one write per delivery.
func buildRaw(db *redisdb.DB, rooms int) (http.Handler, error) {
	x := &benchIndex[net.Conn]{rooms: map[string][]net.Conn{}}
	var last *byte
	var frame []byte
	x.subscribe(db, rooms, func(c net.Conn, event []byte) {
		if last != &event[0] {
			last = &event[0]
			frame = append([]byte{0x81, 126, 0, 0}, event...)
			binary.BigEndian.PutUint16(frame[2:], uint16(len(event)))
		}
		_, _ = c.Write(frame)
	})
	up := websocket.Upgrader{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := up.Upgrade(w, r, nil); err == nil {
			_ = c.WriteMessage(websocket.TextMessage, []byte("{}"))
			x.add(r.URL.Query().Get("room"), c.NetConn())
		}
	}), nil
}

// buildGorilla writes to every connection of a room in turn.
func buildGorilla(db *redisdb.DB, rooms int) (http.Handler, error) {
	x := &benchIndex[*websocket.Conn]{rooms: map[string][]*websocket.Conn{}}
	x.subscribe(db, rooms, func(c *websocket.Conn, event []byte) {
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_ = c.WriteMessage(websocket.TextMessage, event)
	})
	up := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := up.Upgrade(w, r, nil); err == nil {
			_ = c.WriteMessage(websocket.TextMessage, []byte("{}"))
			x.add(r.URL.Query().Get("room"), c)
		}
	}), nil
}

// buildNaive is the shortest program that works: gin, melody and BroadcastFilter.
func buildNaive(db *redisdb.DB, rooms int) (http.Handler, error) {
	m := melody.New()
	ps := db.Client.Subscribe(context.Background(), func() (names []string) {
		for i := range rooms {
			names = append(names, benchTopic(i))
		}
		return names
	}()...)
	go func() {
		for message := range ps.Channel() {
			_ = m.BroadcastFilter(renderOne(message.Channel, message.Payload), func(s *melody.Session) bool {
				topic, _ := s.Get("topic")
				return topic == message.Channel
			})
		}
	}()
	m.HandleConnect(func(s *melody.Session) { _ = s.Write([]byte("{}")) })
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.GET("/", func(c *gin.Context) {
		room, _ := strconv.Atoi(c.Query("room"))
		_ = m.HandleRequestWithKeys(c.Writer, c.Request, map[string]any{"topic": benchTopic(room)})
	})
	return g, nil
}

// process is a node in a process of its own.
type process struct {
	addr string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

func startProcess(b *testing.B, kind, store string, rooms int) *process {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchKind+"="+kind, benchStore+"="+store, benchRooms+"="+strconv.Itoa(rooms))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			if err = cmd.Start(); err == nil {
				p := &process{cmd: cmd, in: in, out: bufio.NewScanner(out)}
				if !p.out.Scan() {
					b.Fatal("the node did not start")
				}
				p.addr = p.out.Text()
				b.Cleanup(p.stop)
				return p
			}
		}
	}
	b.Fatal(err)
	return nil
}

func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// usage returns the CPU time and the resident bytes of the process.
func (p *process) usage(command string) (cpu time.Duration, resident int64) {
	_, _ = io.WriteString(p.in, command+"\n")
	p.out.Scan()
	_, _ = fmt.Sscan(p.out.Text(), &cpu, &resident)
	return cpu, resident
}

// openSubscribed opens a connection and returns when it is subscribed.
func openSubscribed(b *testing.B, p *process, room int) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = fmt.Fprintf(conn, "GET /?room=%d HTTP/1.1\r\nHost: game.example\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://game.example\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36\r\n"+
		"Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.9\r\n"+
		"Cache-Control: no-cache\r\nPragma: no-cache\r\n\r\n", room)
	r := bufio.NewReaderSize(conn, 16<<10)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		b.Fatalf("upgrade: %v %v", response, err)
	}
	if _, err := readFrame(r); err != nil {
		b.Fatal(err)
	}
	return conn, r
}

// readFrame reads one unmasked frame and returns the length of its payload.
func readFrame(r *bufio.Reader) (int, error) {
	var head [10]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, err
	}
	n := int(head[1] & 0x7f)
	switch n {
	case 126:
		_, _ = io.ReadFull(r, head[:2])
		n = int(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, _ = io.ReadFull(r, head[:8])
		n = int(binary.BigEndian.Uint64(head[:8]))
	}
	_, err := r.Discard(n)
	return n, err
}

// benchEvent has the same size for every event of a run: its numbers do not grow.
var benchEvent = redis.NewScript(`
local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
local entry = string.format('%d', 1000000 + seq) .. '-' .. ARGV[1] .. '|room.ready|1795195946123|4|7|1'
if redis.call('RPUSH', KEYS[2], entry) >= 320 then redis.call('LTRIM', KEYS[2], -256, -1) end
redis.call('PUBLISH', KEYS[2], entry)
return entry`)

func BenchmarkDeliveriesPerNodeCPUSecond(b *testing.B) {
	server := redistest.StartFor(b)
	db := openAt(b, server.URL())
	for _, shape := range []struct{ rooms, members int }{{1, 1000}, {100, 10}, {1000, 4}} {
		for _, kind := range []string{"hub", "raw", "gorilla", "naive"} {
			// Every room has at most so many events under way: many, so that the node is as busy as it can
			// be, or one, so that nothing can be sent together with something else.
			for _, underway := range []int64{64, 1} {
				b.Run(fmt.Sprintf("%dx%d/%s/underway=%d", shape.rooms, shape.members, kind, underway), func(b *testing.B) {
					for b.Loop() {
						db.Client.FlushAll(b.Context())
						benchDeliveries(b, db, server.URL(), kind, shape.rooms, shape.members, underway)
					}
				})
			}
		}
	}
}

func benchDeliveries(b *testing.B, db *redisdb.DB, store, kind string, rooms, members int, underway int64) {
	p := startProcess(b, kind, store, rooms)
	var size int
	for room := range rooms { // a list that begins at a large number must not be empty before
		topic := benchTopic(room)
		sample, err := benchEvent.Run(b.Context(), db.Client, []string{"bench:" + topic, topic},
			idempotency.NewNonce()).Text()
		if err != nil {
			b.Fatal(err)
		}
		size = len(renderOne(topic, sample))
	}
	delivered := make([]atomic.Int64, rooms)
	var frames atomic.Int64
	var readers sync.WaitGroup
	var conns []net.Conn
	for i := range rooms * members {
		room := i % rooms
		conn, r := openSubscribed(b, p, room)
		conns = append(conns, conn)
		readers.Go(func() {
			for {
				n, err := readFrame(r)
				if err != nil {
					return
				}
				events := 1
				if n != size {
					events = (n - 1) / (size + 1)
				}
				delivered[room].Add(int64(events))
				frames.Add(1)
			}
		})
	}

	published := make([]atomic.Int64, rooms)
	ctx, stop := context.WithCancel(b.Context())
	var publishers sync.WaitGroup
	for first := range min(4, rooms) {
		publishers.Go(func() {
			pause := time.NewTicker(200 * time.Microsecond)
			defer pause.Stop()
			for ctx.Err() == nil {
				pipe := db.Client.Pipeline()
				for room := first; room < rooms; room += 4 {
					for range 16 {
						if published[room].Load()*int64(members)-delivered[room].Load() >= underway*int64(members) || pipe.Len() >= 128 {
							break
						}
						published[room].Add(1)
						topic := benchTopic(room)
						benchEvent.EvalSha(ctx, pipe, []string{"bench:" + topic, topic}, idempotency.NewNonce())
					}
				}
				if pipe.Len() == 0 {
					<-pause.C
					continue
				}
				if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, redis.ErrClosed) {
					b.Error(err)
					return
				}
			}
		})
	}
	total := func() (n int64) {
		for i := range delivered {
			n += delivered[i].Load()
		}
		return n
	}
	waitDuring(time.Second)
	cpu, _ := p.usage("now")
	before, framesBefore, begun := total(), frames.Load(), time.Now()
	waitDuring(3 * time.Second)
	after, framesAfter, took := total(), frames.Load(), time.Since(begun)
	cpuAfter, _ := p.usage("now")
	stop()
	publishers.Wait()
	for _, c := range conns {
		_ = c.Close()
	}
	readers.Wait()
	p.stop()
	n := float64(after - before)
	b.ReportMetric(n/(cpuAfter-cpu).Seconds(), "deliveries/cpu-s")
	b.ReportMetric(n/took.Seconds(), "deliveries/s")
	b.ReportMetric(n/float64(framesAfter-framesBefore), "events/frame")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkMemoryPerIdleConnection(b *testing.B) {
	server := redistest.StartFor(b)
	for _, kind := range []string{"hub", "naive"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				const rooms, conns = 500, 5000
				p := startProcess(b, kind, server.URL(), rooms)
				_, before := p.usage("release")
				var open []net.Conn
				for i := range conns {
					conn, _ := openSubscribed(b, p, i%rooms)
					open = append(open, conn)
				}
				_, after := p.usage("release")
				for _, c := range open {
					_ = c.Close()
				}
				p.stop()
				b.ReportMetric(float64(after-before)/conns/1024, "KB/connection")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// waitDuring lets the load run for d: a benchmark measures a time, not a condition.
func waitDuring(d time.Duration) { <-time.After(d) }
