package calls

import (
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"golang.org/x/time/rate"
)

// The limits of calls.
const (
	MaxPerCaller   = 16 // that one caller may have under way
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = 30 * time.Second
	DefaultTimeout = 5 * time.Second

	maxPerServer    = 10_000  // that wait for an answer of one connection
	maxPayloadBytes = 8 << 10 // of an answer
	maxDetailBytes  = 512     // of an error of the server
)

// outcome is how a call ended, as metrics and messages between nodes name it.
type outcome string

const (
	answered  outcome = "answered"
	gameError outcome = "game_error"
	timedOut  outcome = "server_timeout"
	lost      outcome = "server_gone"  // the server's connection ended before it answered
	absent    outcome = "no_server"    // the call reached nobody
	busy      outcome = "server_busy"  // the server has too many calls, or reads too slowly
	refused   outcome = "rate_limited" // the caller has too many under way
	failed    outcome = "failed"       // by the store
	left      outcome = "caller_left"  // the caller's socket closed first
)

// Outcomes lists how calls end, as Options.Observe gets it.
var Outcomes = []string{
	string(answered), string(gameError), string(timedOut), string(lost), string(absent), string(busy), string(refused),
	string(failed), string(left),
}

// IsAnswered reports whether the server has answered a call with one of Outcomes.
func IsAnswered(o string) bool { return o == string(answered) || o == string(gameError) }

// Nodes sends messages to nodes.
type Nodes interface {
	// Post sends a message to the node that receives a channel. done is called with the number of
	// nodes that got it, unless Post returns an error.
	Post(ctx context.Context, channel string, message []byte, done func(nodes int64, err error)) error
}

// Directory finds the server of a room.
type Directory interface {
	Find(ctx context.Context, gameID int64, roomID string) (servers.Server, error)
	Suspect(gameID int64, server servers.Server)
}

// Connection is a socket of a server.
type Connection interface {
	ID() string
	// Offer sends a message, and returns false if it is dropped instead. It does not wait.
	Offer(text []byte) (taken bool)
}

// Options are the settings of a node. A zero field means the default, which its comment ends with.
type Options struct {
	Log     *slog.Logger // slog.Default()
	Channel string       // of the node; Receive gets what is sent there
	// Observe is called for each call that has ended, with one of Outcomes and how long it took: none.
	Observe func(outcome string, took time.Duration)
	// ObserveRefused is called for each answer that is refused, or that comes too late: none.
	ObserveRefused func()
}

// Service has the calls of one node: those of its players, and those of its servers. It is safe for
// concurrent use.
type Service struct {
	nodes   Nodes
	servers Directory
	options Options
	prefix  string        // of call ids
	lastID  atomic.Uint64 // of a call

	mu      sync.Mutex
	waiting map[string]*waitingCall // by call id
	asked   map[string]*askedServer // by connection id
	players map[int64]*sharedCaller // who call without a socket, by user id
	numbers lastNumbers
}

// waitingCall is a call of a player on this node.
type waitingCall struct {
	id      string
	caller  *Caller
	gameID  int64
	server  servers.Server
	begun   time.Time
	timer   *time.Timer // nil until the call is sent
	isEnded bool
	done    func(wire.RawJSON, error)
}

// askedServer is a server on this node.
type askedServer struct {
	conn  Connection
	calls map[string]askedCall // by id
	pace  *rate.Limiter
}

// askedCall is a call that a server has got.
type askedCall struct {
	channel string // of the caller's node
	until   time.Time
}

// New returns the calls of a node.
func New(nodes Nodes, directory Directory, o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Observe == nil {
		o.Observe = func(string, time.Duration) {}
	}
	if o.ObserveRefused == nil {
		o.ObserveRefused = func() {}
	}
	return &Service{
		nodes: nodes, servers: directory, options: o, prefix: idempotency.NewNonce() + "-",
		waiting: map[string]*waitingCall{}, asked: map[string]*askedServer{}, players: map[int64]*sharedCaller{},
	}
}

// Stats has how much a node keeps.
type Stats struct {
	Waiting int // calls of players on this node that wait for their answer
	Asked   int // calls that wait for a server on this node
	Servers int // on this node
	Callers int // without a socket
}

// Stats returns how much the node keeps.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Waiting: len(s.waiting), Servers: len(s.asked), Callers: len(s.players)}
	for _, server := range s.asked {
		stats.Asked += len(server.calls)
	}
	return stats
}

// OpenServer notes a connection of a server, which may get calls from now on: at most so many a
// second, and so many at once, because it must not be asked more than it may answer.
func (s *Service) OpenServer(conn Connection, perSecond, burst int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pace := rate.NewLimiter(rate.Limit(perSecond), burst)
	s.asked[conn.ID()] = &askedServer{conn, map[string]askedCall{}, pace}
}

// CloseServer ends what OpenServer began. The calls that wait for its reply end at once.
func (s *Service) CloseServer(connectionID string) {
	var calls map[string]askedCall
	s.mu.Lock()
	if server := s.asked[connectionID]; server != nil {
		delete(s.asked, connectionID)
		calls, server.calls = server.calls, nil
	}
	s.mu.Unlock()
	now := time.Now()
	for id, call := range calls {
		if call.until.After(now) {
			s.sendEnd(call.channel, id, end{outcome: lost})
		}
	}
}

// Run forgets calls that no server has answered in their time, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			s.forgetOld(now)
		}
	}
}

func (s *Service) forgetOld(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers.rotate(now)
	for _, server := range s.asked {
		for id, call := range server.calls {
			if call.until.Before(now) {
				delete(server.calls, id)
			}
		}
	}
}

// Receive handles a message of another node. It does not wait.
func (s *Service) Receive(message string) {
	mark, rest, _ := strings.Cut(message, "|")
	switch mark {
	case callMark:
		if q, ok := parseQuestion(rest); ok {
			s.receiveCall(&q)
		}
	case answerMark:
		if id, e, ok := parseEnd(rest); ok {
			s.end(id, e)
		}
	}
}

// receiveCall handles a call of another node.
func (s *Service) receiveCall(q *question) {
	s.mu.Lock()
	isNext := s.numbers.isNext(q.callerID, q.number)
	s.mu.Unlock()
	if !isNext {
		return // published twice, or behind a later one: an end of it could be wrong
	}
	if o := s.deliver(q); o != answered {
		s.sendEnd(q.channel, q.callID, end{outcome: o})
	}
}

// deliver gives a call to a server on this node. It returns answered, or why the server did not get
// it.
func (s *Service) deliver(q *question) outcome {
	s.mu.Lock()
	server := s.asked[q.connectionID]
	switch {
	case server == nil:
		s.mu.Unlock()
		return absent
	case len(server.calls) >= maxPerServer || !server.pace.Allow():
		s.mu.Unlock()
		return busy
	}
	id := strings.Clone(q.callID) // it is a part of the whole message
	server.calls[id] = askedCall{strings.Clone(q.channel), time.Now().Add(q.timeout)}
	s.mu.Unlock()
	if server.conn.Offer([]byte(q.event)) {
		return answered
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(server.calls, id)
	return busy
}

// Answer is what a server says to a call: Payload, or Code and Detail.
type Answer struct {
	CallID  string
	Payload wire.RawJSON // any JSON of at most 8 KiB; nil: null
	Code    string       // of an error: 1 to 40 lower-case letters and underscores; "" for none
	Detail  string       // of an error, for people; at most 512 bytes; may be ""
}

var codePattern = regexp.MustCompile(`^[a-z_]{1,40}$`)

func (a *Answer) check() error {
	switch {
	case len(a.Payload) > maxPayloadBytes:
		return apierror.PayloadTooLarge.WithReason("a payload may have at most %d bytes", maxPayloadBytes)
	case wire.HasInfinity(a.Payload):
		return apierror.InvalidRequest.WithField("payload", "range", "has a number that is too large for a double")
	case a.Code != "" && !codePattern.MatchString(a.Code):
		return apierror.InvalidRequest.WithField("error.code", "format", "must be 1 to 40 of a-z and _")
	case len(a.Detail) > maxDetailBytes:
		return apierror.InvalidRequest.WithField("error.detail", "range",
			"may have at most "+strconv.Itoa(maxDetailBytes)+" bytes")
	default:
		return nil
	}
}

// Reply sends the answer to a call that a connection was asked. It returns invalid_request,
// payload_too_large and call_not_found.
func (s *Service) Reply(connectionID string, a Answer) error {
	if err := a.check(); err != nil {
		return err
	}
	s.mu.Lock()
	var call askedCall
	if server := s.asked[connectionID]; server != nil {
		call = server.calls[a.CallID]
		delete(server.calls, a.CallID)
	}
	s.mu.Unlock()
	if time.Now().After(call.until) { // or the zero time
		s.options.ObserveRefused()
		return apierror.CallNotFound
	}
	e := end{answered, "", string(a.Payload)}
	switch {
	case a.Code != "":
		e = end{gameError, a.Code, a.Detail}
	case len(a.Payload) == 0:
		e.text = "null"
	}
	s.sendEnd(call.channel, a.CallID, e)
	return nil
}

// sendEnd sends how a call ends to the caller's node. When that fails, the caller gets
// server_timeout, which is true.
func (s *Service) sendEnd(channel, callID string, e end) {
	if channel == s.options.Channel {
		s.end(callID, e)
		return
	}
	err := s.nodes.Post(context.Background(), channel, e.encode(callID), func(int64, error) {})
	if err != nil {
		s.options.Log.Debug("an answer to a call is lost", slog.Any("error", err))
	}
}

// end ends a call of a player on this node, if it still waits.
func (s *Service) end(callID string, e end) {
	s.mu.Lock()
	call := s.waiting[callID]
	if call == nil {
		s.mu.Unlock()
		if IsAnswered(string(e.outcome)) {
			s.options.ObserveRefused()
		}
		return
	}
	s.removeLocked(call)
	s.mu.Unlock()
	if e.outcome == absent {
		s.servers.Suspect(call.gameID, call.server)
	}
	s.options.Observe(string(e.outcome), time.Since(call.begun))
	if e.outcome == answered {
		call.done(wire.RawJSON(e.text), nil)
		return
	}
	call.done(nil, e.err())
}

// err returns the error that the caller gets.
func (e *end) err() error {
	switch e.outcome {
	case gameError:
		err := apierror.GameError.WithMember("gameCode", e.code)
		if e.text != "" {
			err = err.WithReason("%s", e.text)
		}
		return err
	case absent:
		return apierror.NoServer
	case busy:
		return apierror.NoServer.WithReason("the game's server has too many calls")
	case lost:
		return apierror.ServerTimeout.WithReason("the connection of the game's server ended before it answered")
	default:
		return apierror.ServerTimeout
	}
}

// remove is removeLocked. It returns false if the call has ended before.
func (s *Service) remove(call *waitingCall) (removed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.isEnded {
		return false
	}
	s.removeLocked(call)
	return true
}

// removeLocked forgets a call that has ended. Service.mu must be held.
func (s *Service) removeLocked(call *waitingCall) {
	call.isEnded = true
	delete(s.waiting, call.id)
	delete(call.caller.calls, call)
	if call.timer != nil {
		call.timer.Stop()
	}
}

// lastNumbers has the number of the last call of each caller, for a while: longer than the store's
// client repeats a command.
type lastNumbers struct {
	current, previous map[string]uint64
	begun             time.Time // of current
}

const numbersKept = 15 * time.Second

func (l *lastNumbers) rotate(now time.Time) {
	if now.Sub(l.begun) >= numbersKept {
		l.previous, l.current, l.begun = l.current, nil, now
	}
}

// isNext reports whether a number is higher than all before of the caller.
func (l *lastNumbers) isNext(callerID string, number uint64) bool {
	last := max(l.current[callerID], l.previous[callerID])
	if number <= last {
		return false
	}
	if l.current == nil {
		l.current = map[string]uint64{}
	}
	l.current[strings.Clone(callerID)] = number
	return true
}

// eventOf returns the event for the server.
func (c *Call) eventOf(callID string) string {
	return string(events.AppendCall(nil, callID, events.Message{
		RoomID: c.RoomID, At: time.Now(), From: c.UserID, Op: c.Op, Payload: c.Payload,
	}))
}
