package calls

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Call is what a player asks the server of the game. The caller must be allowed to, and Payload
// within its limits.
type Call struct {
	GameID  int64
	RoomID  string
	UserID  int64
	Op      string
	Payload wire.RawJSON  // any JSON; nil: null; Start keeps nothing of it
	Timeout time.Duration // MinTimeout to MaxTimeout
}

// Caller is who calls: one socket, or all requests of one player. Its calls keep their order.
type Caller struct {
	service *Service
	id      string

	calls    map[*waitingCall]struct{} // under way; under Service.mu
	isClosed bool                      // under Service.mu

	sending sync.Mutex // so that calls are published in the order of their numbers
	number  uint64     // of the last call; under sending
}

// NewCaller returns a caller with an id that no other caller on any node has. It must be closed.
func (s *Service) NewCaller(id string) *Caller {
	return &Caller{service: s, id: id, calls: map[*waitingCall]struct{}{}}
}

// Close ends the calls that are under way; their end reaches nobody.
func (c *Caller) Close() {
	s := c.service
	s.mu.Lock()
	c.isClosed = true
	calls := c.calls
	c.calls = map[*waitingCall]struct{}{}
	for call := range calls {
		s.removeLocked(call)
	}
	s.mu.Unlock()
	for call := range calls {
		s.options.Observe(string(left), time.Since(call.begun))
	}
}

// Start asks the server that listens to a room. done is called once with the payload of the answer
// as JSON, or with game_error, no_server or server_timeout; it must not wait. If Start returns an
// error, or the caller is closed, it is not called. Start returns rate_limited, no_server and
// store_unavailable. It waits for the store when this node has not read the servers of the game for
// a second.
func (c *Caller) Start(ctx context.Context, call Call, done func(payload wire.RawJSON, err error)) error {
	_, err := c.start(ctx, call, done)
	return err
}

// start is Start, and returns the call.
func (c *Caller) start(
	ctx context.Context, call Call, done func(payload wire.RawJSON, err error),
) (*waitingCall, error) {
	s := c.service
	w := &waitingCall{
		id: s.prefix + strconv.FormatUint(s.lastID.Add(1), 36), caller: c, gameID: call.GameID, begun: time.Now(), done: done,
	}
	if err := c.admit(w); err != nil {
		s.options.Observe(string(refused), 0)
		return nil, err
	}
	server, err := s.servers.Find(ctx, call.GameID, call.RoomID)
	if err == nil {
		err = c.send(ctx, w, server, &call)
	}
	if err != nil {
		return w, c.giveUp(w, err)
	}
	return w, nil
}

// admit counts a call. It returns rate_limited.
func (c *Caller) admit(w *waitingCall) error {
	s := c.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.calls) >= MaxPerCaller {
		return apierror.RateLimited.WithReason("at most %d calls may be under way", MaxPerCaller)
	}
	if !c.isClosed { // else the caller is gone, and nobody waits
		c.calls[w] = struct{}{}
		s.waiting[w.id] = w
	}
	return nil
}

// abandon ends a call whose answer nobody waits for any more.
func (c *Caller) abandon(w *waitingCall) {
	if s := c.service; s.remove(w) {
		s.options.Observe(string(left), time.Since(w.begun))
	}
}

// giveUp ends a call that could not be sent. It returns nil when the call has ended meanwhile.
func (c *Caller) giveUp(w *waitingCall, err error) error {
	s := c.service
	if !s.remove(w) {
		return nil
	}
	o := failed
	if apiErr, ok := apierror.As(err); ok && apiErr.Is(apierror.NoServer) {
		o = absent
	}
	s.options.Observe(string(o), time.Since(w.begun))
	return err
}

// send sends a call to its server and starts its time.
func (c *Caller) send(ctx context.Context, w *waitingCall, server servers.Server, call *Call) error {
	s := c.service
	s.mu.Lock()
	if w.isEnded || c.isClosed {
		s.mu.Unlock()
		return nil
	}
	w.server = server
	w.timer = time.AfterFunc(call.Timeout, func() { s.end(w.id, end{outcome: timedOut}) })
	s.mu.Unlock()
	q := question{
		callID: w.id, connectionID: server.ConnectionID, channel: s.options.Channel, callerID: c.id,
		timeout: call.Timeout, event: call.eventOf(w.id),
	}
	if server.Channel == s.options.Channel {
		if o := s.deliver(&q); o != answered {
			s.end(w.id, end{outcome: o})
		}
		return nil
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	c.number++
	q.number = c.number
	return s.nodes.Post(ctx, server.Channel, q.encode(), func(nodes int64, err error) {
		if err == nil && nodes == 0 {
			s.end(w.id, end{outcome: absent})
		}
		// After an error the call may be on its way: an answer or the time ends it.
	})
}

// sharedCaller is the caller of a player's requests, while there are any.
type sharedCaller struct {
	*Caller
	users int // under Service.mu
}

// Ask is Start for a player without a socket: it waits for the answer. It returns the same errors,
// and that of ctx.
func (s *Service) Ask(ctx context.Context, storeCtx context.Context, call Call) (wire.RawJSON, error) {
	c := s.acquireCaller(call.UserID)
	defer s.releaseCaller(call.UserID)
	type result struct {
		payload wire.RawJSON
		err     error
	}
	answer := make(chan result, 1)
	w, err := c.start(storeCtx, call, func(payload wire.RawJSON, err error) { answer <- result{payload, err} })
	if err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r.payload, r.err
	case <-ctx.Done():
		c.abandon(w)
		return nil, redisdb.WrapError("wait for the game's server", ctx.Err())
	}
}

func (s *Service) acquireCaller(userID int64) *Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.players[userID]
	if shared == nil {
		shared = &sharedCaller{Caller: s.NewCaller(rand.Text())}
		s.players[userID] = shared
	}
	shared.users++
	return shared.Caller
}

func (s *Service) releaseCaller(userID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared := s.players[userID]; shared != nil {
		if shared.users--; shared.users == 0 {
			delete(s.players, userID)
		}
	}
}
