package parlor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a server needs to know.
type Options struct {
	URL string // of a node, or of the balancer of several: http:// or https://
	Key string // a server key of the game, "psk_…"

	Kinds     []string      // "rooms", "seats", "tournaments", "money"; empty: rooms, and those of the handlers
	Share     *Share        // the part of the rooms that this server has; nil: all of them
	Positions PositionStore // nil: MemoryPositions
	Log       *slog.Logger  // nil: slog.Default
	Parallel  int           // rooms whose handlers run at a time; 0: 64

	// OnlyWatchedCalls leaves the calls of other rooms than those of WatchRoom to other servers.
	OnlyWatchedCalls bool

	HTTPClient *http.Client // for what is not asked over the socket; nil: one with a timeout of 10 s
}

// Server is the server of a game. Its methods may be called by several goroutines; handlers must be
// set before Run.
type Server struct {
	options  Options
	base     string // of the node, without a slash at the end
	log      *slog.Logger
	client   *http.Client
	backoff  func(attempt int) time.Duration
	began    atomic.Bool
	handlers map[string]func(context.Context, Event) error
	calls    map[string]func(context.Context, Call) (any, error)
	onRoom   func(context.Context, Room) error
	onGap    func(context.Context) error

	requests requests
	watched  watched
	feeds    *feeds
	lanes    *lanes // of Run
}

// NewServer returns a server. It connects when Run is called.
func NewServer(o Options) (*Server, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("parlor: the URL %q must be like https://parlor.example", o.URL)
	}
	if o.Key == "" {
		return nil, errors.New("parlor: Key is empty; it is a server key of the game")
	}
	if s := o.Share; s != nil && (s.Of < 1 || s.Of > maxShares || s.Index < 0 || s.Index >= s.Of) {
		return nil, fmt.Errorf("parlor: no share %d of %d; Of is 1 to %d, Index is from 0", s.Index, s.Of, maxShares)
	}
	if o.Positions == nil {
		o.Positions = MemoryPositions()
	}
	s := &Server{
		options: o, base: strings.TrimSuffix(base.String(), "/"), log: cmp.Or(o.Log, slog.Default()),
		client: o.HTTPClient, backoff: fullJitter,
		handlers: map[string]func(context.Context, Event) error{},
		calls:    map[string]func(context.Context, Call) (any, error){},
		feeds:    newFeeds(),
	}
	if s.client == nil {
		s.client = &http.Client{Timeout: httpTimeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	}
	s.onGap = s.Reconcile
	s.requests.init()
	s.watched.rooms = map[string]bool{}
	return s, nil
}

const (
	maxShares       = 64
	httpTimeout     = 10 * time.Second
	defaultParallel = 64
)

// On calls a function for each event of a type, such as "room.started". While it returns an error
// it is called again, up to 8 times within a minute or so; then the event counts as handled and the
// error is logged. Its context ends with Run.
func (s *Server) On(eventType string, f func(context.Context, Event) error) {
	s.handlers[eventType] = f
}

// kinds returns those of the options, or rooms and those of the handlers.
func (s *Server) kinds() []string {
	if len(s.options.Kinds) > 0 {
		return s.options.Kinds
	}
	kinds := map[string]bool{"rooms": true}
	for eventType := range s.handlers {
		switch eventType {
		case "room.joined", "room.left", "room.ready", "room.host_changed":
			kinds["seats"] = true
		case "ledger.entry":
			kinds["money"] = true
		default:
			if strings.HasPrefix(eventType, "tournament.") {
				kinds["tournaments"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// OnCall calls a function for each call of a player with an operation. What it returns is the
// answer, as JSON. An *[Error] is what the page sees; any other error is logged, and
// the page sees the code "internal".
func (s *Server) OnCall(op string, f func(context.Context, Call) (any, error)) { s.calls[op] = f }

// OnRoom calls a function for each open room of the share, when the server begins
// without positions, and after a gap. It is called in turn with the handlers of the room, and
// repeated like them.
func (s *Server) OnRoom(f func(context.Context, Room) error) { s.onRoom = f }

// OnGap replaces what is done when events are gone: Reconcile. While the function returns an error
// it is called again.
func (s *Server) OnGap(f func(context.Context) error) { s.onGap = f }

// fullJitter returns how long to wait before an attempt, from 0, to connect: between 250 ms and a
// cap that doubles up to 15 s, as the browser SDK does it, so that those who lost a node do not
// come back together.
func fullJitter(attempt int) time.Duration {
	const least, most = 250 * time.Millisecond, 15 * time.Second
	ceiling := min(most, 2*least<<min(attempt, 10))
	return least + rand.N(ceiling-least+1)
}

// Run serves until ctx ends, then returns nil. Every handler has returned by then. It returns a
// *[CloseError] when the service refuses this server for good. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if !s.began.CompareAndSwap(false, true) {
		return errors.New("parlor: Run was called before")
	}
	defer s.requests.end(ErrEnded)
	saved, err := s.options.Positions.Load(ctx)
	if err != nil {
		return fmt.Errorf("parlor: load the positions: %w", err)
	}
	s.feeds.restore(saved)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.lanes = newLanes(ctx, cmp.Or(s.options.Parallel, defaultParallel), s.requests.catchUp)
	handled := make(chan struct{}) // closed when all handlers have returned
	var saver sync.WaitGroup
	saver.Go(func() { s.savePositions(handled) })
	err = s.stayConnected(ctx)
	stop()
	s.requests.end(ErrEnded) // for handlers that wait without ctx
	s.lanes.wait()
	close(handled)
	saver.Wait()
	if s.options.HTTPClient == nil {
		s.client.CloseIdleConnections()
	}
	return err
}

// ErrEnded is returned by the verbs of a server whose Run has ended.
var ErrEnded = errors.New("parlor: the server has ended")

const saveTimeout = 10 * time.Second

// savePositions saves what was handled, until nothing more is, and then once more.
func (s *Server) savePositions(handled <-chan struct{}) {
	for isLast := false; !isLast; {
		select {
		case <-s.feeds.changed:
		case <-handled:
			isLast = true
		}
		ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
		if err := s.options.Positions.Save(ctx, s.feeds.handledPositions()); err != nil {
			s.log.Error("parlor: the positions could not be saved", "cause", err)
		}
		cancel()
	}
}

// calmAfter is after how long a connection counts as good.
const calmAfter = 5 * time.Second

// stayConnected connects again and again until ctx ends or the service refuses for good.
func (s *Server) stayConnected(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		begin := time.Now()
		pause, err := s.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if closed := (*CloseError)(nil); errors.As(err, &closed) {
			return closed
		}
		if time.Since(begin) > calmAfter {
			attempt = 0
		}
		if pause == 0 {
			pause = s.backoff(attempt)
		}
		s.log.Info("parlor: no connection; coming back", "in", pause, "cause", err)
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// Handlers that fail are called again after pauses of jitter, so often.
const maxAttempts = 8

// repeat calls f in a lane until it succeeds, was called maxAttempts times, or Run ends. It reports
// whether the matter is closed.
func (s *Server) repeat(f func(context.Context) error, about ...any) bool {
	for attempt := 1; ; attempt++ {
		err := f(s.lanes.ctx)
		switch {
		case err == nil:
			return true
		case s.lanes.ctx.Err() != nil:
			return false
		case attempt == maxAttempts:
			s.log.Error("parlor: a handler failed and is not called again", append(about, "cause", err)...)
			return true
		}
		s.log.Warn("parlor: a handler failed and is called again", append(about, "cause", err)...)
		if !s.lanes.pause(s.backoff(attempt)) {
			return false
		}
	}
}

// handleEvent queues an event behind those of its room.
func (s *Server) handleEvent(e Event) {
	f := s.handlers[e.Type]
	var place *entry
	if e.Feed == "" && !watchedTypes[e.Type] {
		return // it is in a feed too
	}
	if e.Feed != "" {
		if place = s.feeds.hear(e.Feed, e.Position); place == nil {
			return // it came before
		}
		s.endWatch(e)
		if f == nil {
			s.feeds.done(place)
			return
		}
	}
	if f == nil {
		return
	}
	s.lanes.add(e.lane(), func() {
		isClosed := s.repeat(func(ctx context.Context) error { return f(ctx, e) },
			"event", e.Type, "room", e.RoomID, "seq", e.Seq)
		if isClosed && place != nil {
			s.feeds.done(place)
		}
	})
}

// lane returns what an event is about.
func (e Event) lane() string {
	switch {
	case e.RoomID != "":
		return e.RoomID
	case e.TournamentID != 0:
		return fmt.Sprintf("tournament %d", e.TournamentID)
	default:
		return "feed " + e.Feed
	}
}

// handleCall queues a call behind what is about its room. answer sends the reply.
func (s *Server) handleCall(c Call, answer func(reply)) {
	f := s.calls[c.Op]
	if f == nil {
		answer(reply{CallID: c.ID, Error: &replyError{"unknown_op", "the server has no operation " + c.Op}})
		return
	}
	s.lanes.add(c.RoomID, func() {
		value, err := f(s.lanes.ctx, c)
		r := reply{CallID: c.ID}
		if err == nil {
			r.Payload, err = json.Marshal(value)
		}
		if err != nil {
			r.Error = s.replyErrorOf(c, err)
		}
		answer(r)
	})
}

// reply is the data of room.reply.
type reply struct {
	CallID  string          `json:"callId"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   *replyError     `json:"error,omitempty"`
}

type replyError struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// replyErrorOf returns what the page sees of an error.
func (s *Server) replyErrorOf(c Call, err error) *replyError {
	if own := (*Error)(nil); errors.As(err, &own) && errorCode.MatchString(own.Code) {
		return &replyError{own.Code, own.Detail}
	}
	s.log.Error("parlor: a call failed", "op", c.Op, "room", c.RoomID, "cause", err)
	return &replyError{Code: "internal"}
}

// Reconcile lists the open rooms of the share, and calls the function of OnRoom for
// each. Of rooms that ended meanwhile nothing is heard. It returns a *[Problem] when they cannot be
// listed.
func (s *Server) Reconcile(ctx context.Context) error {
	if s.onRoom == nil {
		return nil
	}
	for _, status := range []string{Created, Started, Disputed} {
		rooms, err := s.Rooms(ctx, status)
		if err != nil {
			return err
		}
		for _, room := range rooms {
			s.lanes.add(room.RoomID, func() {
				s.repeat(func(ctx context.Context) error { return s.onRoom(ctx, room) }, "room", room.RoomID)
			})
		}
	}
	return nil
}

// gapLane is the lane in which gaps are handled, one after the other.
const gapLane = "gap"

// handleGap handles a gap, and after it lets the positions behind it be saved.
func (s *Server) handleGap(places []*entry) {
	s.lanes.add(gapLane, func() {
		for attempt := 1; ; attempt++ {
			err := s.onGap(s.lanes.ctx)
			if err == nil {
				break
			}
			if s.lanes.ctx.Err() != nil {
				return
			}
			s.log.Error("parlor: the rooms could not be read after a gap; trying again", "cause", err)
			if !s.lanes.pause(s.backoff(attempt)) {
				return
			}
		}
		for _, place := range places {
			s.feeds.done(place)
		}
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ShareOf returns the index of the share to which a room belongs, of as many shares as of: CRC-32C
// of the text of its id, modulo of.
func ShareOf(roomID string, of int) int {
	return int(crc32.Checksum([]byte(roomID), castagnoli) % uint32(of))
}

func (s *Server) has(roomID string) bool {
	share := s.options.Share
	return share == nil || ShareOf(roomID, share.Of) == share.Index
}

func (s *Server) socketURL() string {
	return "ws" + strings.TrimPrefix(s.base, "http") + "/api/v1/realtime?protocol=1"
}
