package parlor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"
)

// requests are the messages that wait for their replies. They outlive a connection.
type requests struct {
	mu         sync.Mutex
	connection *connection         // nil: none is up
	waiting    map[string]*request // by id
	lastID     int64
	ended      error // what a new request returns; nil until Run has ended
}

type request struct {
	number int64
	text   []byte // the frame
	isOnce bool   // it must not be sent twice
	isSent bool
	answer chan answer // has room for one
}

// answer is the reply to a request, or the reason why it failed.
type answer struct {
	data json.RawMessage
	err  error
}

// ErrUnanswered is returned by [Server.Send] when the connection was lost before the reply: the
// message may have arrived.
var ErrUnanswered = errors.New("parlor: the connection was lost before the reply")

func (r *requests) init() { r.waiting = map[string]*request{} }

// ask sends a message and returns the data of its reply. It waits for a connection. Over each new
// one it sends the message again, unless it isOnce.
func (r *requests) ask(ctx context.Context, f outgoing, isOnce bool) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	if r.ended != nil {
		defer r.mu.Unlock()
		return nil, r.ended
	}
	r.lastID++
	f.ID = strconv.FormatInt(r.lastID, 10)
	text, err := json.Marshal(f)
	if err != nil {
		r.mu.Unlock()
		return nil, err
	}
	own := &request{number: r.lastID, text: text, isOnce: isOnce, answer: make(chan answer, 1)}
	r.waiting[f.ID] = own
	c := r.connection
	own.isSent = c != nil
	r.mu.Unlock()
	if c != nil {
		_ = c.write(text) // a failure ends the connection, and the next one has the request
	}
	select {
	case a := <-own.answer:
		return a.data, a.err
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.waiting, f.ID)
		r.mu.Unlock()
		return nil, ctx.Err()
	}
}

// attach sends what waits over a new connection, in the order in which it was asked.
func (r *requests) attach(c *connection) {
	r.mu.Lock()
	r.connection = c
	var unsent []*request
	for _, one := range r.waiting {
		one.isSent = true
		unsent = append(unsent, one)
	}
	r.mu.Unlock()
	slices.SortFunc(unsent, func(a, b *request) int { return int(a.number - b.number) })
	for _, one := range unsent {
		if c.write(one.text) != nil {
			return // the next connection
		}
	}
}

// detach ends what must not be sent twice.
func (r *requests) detach(c *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connection != c {
		return
	}
	r.connection = nil
	for id, one := range r.waiting {
		if one.isOnce && one.isSent {
			r.settle(id, answer{err: ErrUnanswered})
		}
	}
}

func (r *requests) answer(id string, data json.RawMessage, problem *Problem) {
	a := answer{data: data}
	if problem != nil {
		a.err = problem
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle(id, a)
}

func (r *requests) settle(id string, a answer) {
	if one := r.waiting[id]; one != nil {
		delete(r.waiting, id)
		one.answer <- a
	}
}

// end refuses what waits and what comes.
func (r *requests) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = err
	for id := range r.waiting {
		r.settle(id, answer{err: err})
	}
}

// catchUp lets the connection ask for the events that it did not take.
func (r *requests) catchUp() {
	r.mu.Lock()
	c := r.connection
	r.mu.Unlock()
	if c != nil {
		_ = c.catchUp()
	}
}

// maxRefusals is how often a request is answered with a retryable problem before that is its
// answer.
const maxRefusals = 8

// askUntilDone asks, and asks again with the same key while the service cannot answer.
func (s *Server) askUntilDone(ctx context.Context, f outgoing) (json.RawMessage, error) {
	for attempt := 1; ; attempt++ {
		data, err := s.requests.ask(ctx, f, false)
		problem := (*Problem)(nil)
		if !errors.As(err, &problem) || !problem.Retryable || attempt == maxRefusals {
			return data, err
		}
		pause := max(s.backoff(attempt), time.Duration(problem.RetryAfterSeconds*float64(time.Second)))
		if !sleep(ctx, pause) {
			return nil, ctx.Err()
		}
	}
}
