package handlers

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/realtime"
)

// A socket is opened by a request like any other: its row in routes.go says by whom and how often. What is said on it then is a
// message {"id","type","data"}, and each gets one reply, in order. desk.verbs lists the types; every refusal is the problem that
// HTTP would answer, and none of them closes the socket.

// desk is one kind of socket.
type desk struct {
	socket *realtime.Socket
	verbs  map[string]verb
	greet  func(context.Context, *visitor, *realtime.Client) // before the first message
}

// verb does what a message asks, and answers the data of its reply; replied where that is on its way already.
type verb func(context.Context, *visitor, *realtime.Client, *message) (any, error)

var replied any = theReply{}

type theReply struct{}

// visitor is a player on a socket.
type visitor struct {
	edge   *Server
	desk   *desk
	caller principal.Caller
	path   string
}

// message is what a client says.
type message struct {
	ID   string         `json:"id"`
	Type string         `json:"type"`
	Data jsontext.Value `json:"data"`
}

// replyTo is how a reply names the message: null without an id.
func (m *message) replyTo() *string {
	if m.ID == "" {
		return nil
	}
	return &m.ID
}

// socketReply is what it hears about it.
type socketReply struct {
	ReplyTo *string  `json:"replyTo"` // null where the message had no id or could not be read
	OK      bool     `json:"ok"`
	Data    any      `json:"data,omitzero"`
	Error   *problem `json:"error,omitzero"`
}

// The manners of contract 8, for every kind of socket.
const (
	framesPerSecond = 60
	framesAtOnce    = 120
	protocolVersion = 1
	longestID       = 128
	messageTimeout  = 10 * time.Second
)

// upgrade is the operation that opens a socket at a desk.
func (e *Server) upgrade(d *desk) func(*request) (response, error) {
	return func(c *request) (response, error) {
		if e.draining.Load() {
			return response{}, c.later(apierror.Draining)
		}
		if err := c.checkOrigin(); err != nil {
			return response{}, err
		}
		q := c.query()
		protocol := q.id("protocol")
		if err := q.err(); err != nil {
			return response{}, err
		}
		v := &visitor{edge: e, desk: d, caller: c.caller, path: c.route.path}
		session := realtime.Session{User: c.caller.User, Expires: c.credential.Expires, OnOpen: v.enter, OnMessage: v.hear, OnRefused: v.turnDown}
		if protocol != 0 && protocol != protocolVersion { // a page learns why by the close code only
			session.OnOpen = func(_ context.Context, p *realtime.Client) {
				p.Close(realtime.CloseTooOld, "this server speaks protocol 1")
			}
		}
		if err := d.socket.Serve(c.Writer, c.Request, session); err != nil {
			return response{}, c.later(err)
		}
		return response{upgraded: true}, nil
	}
}

// later tells a client that may come back to do so after a moment.
func (c *request) later(err error) error {
	if refusal, ok := apierror.As(err); ok && refusal.Retryable {
		c.Writer.Header()["Retry-After"] = []string{"1"}
	}
	return err
}

// checkOrigin keeps pages of other origins out: a socket is open to every page that a browser shows, unlike an answer. Programs send none.
func (c *request) checkOrigin() error {
	origins := c.Request.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	game, err := c.server.Games.Get(c.ctx(), c.corsGame)
	switch {
	case err != nil:
		return err
	case len(origins) > 1 || !game.AllowsOrigin(origins[0]):
		return apierror.Forbidden.WithReason("the game does not list this origin")
	default:
		return nil
	}
}

// redeem finds the caller by the ticket in the address. A ticket is good once, so what is wrong anyway is refused before.
func (c *request) redeem() (shown auth.Credential, given bool, err error) {
	q := c.query()
	for _, name := range []string{"token", "access_token", "accessToken"} {
		if q.values.Has(name) {
			q.addError(name, "forbidden", "does not belong in an address, where others read it: get a ticket")
		}
	}
	ticket := q.text("ticket")
	if err := q.err(); err != nil || ticket == "" {
		return shown, false, err
	}
	if c.server.draining.Load() {
		return shown, true, c.later(apierror.Draining)
	}
	if err := realtime.CheckHandshake(c.Request); err != nil {
		return shown, true, err
	}
	shown, err = c.server.Auth.RedeemTicket(c.ctx(), ticket)
	return shown, true, err
}

func (v *visitor) enter(ctx context.Context, p *realtime.Client) {
	if v.desk.greet != nil {
		v.desk.greet(ctx, v, p)
	}
}

// hear answers one message.
func (v *visitor) hear(ctx context.Context, p *realtime.Client, raw []byte) {
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	if r := v.respond(ctx, p, raw); r != nil {
		_ = p.Send(r.encode())
	}
}

// respond does what a frame asks and answers what is to be said about it, nil for nothing more.
func (v *visitor) respond(ctx context.Context, p *realtime.Client, raw []byte) *socketReply {
	m, err := readMessage(raw)
	var data any
	if err == nil {
		data, err = v.perform(ctx, p, &m)
	}
	switch {
	case errors.Is(err, realtime.ErrClosed):
		return nil
	case err != nil:
		return v.refusal(&m, err)
	case data == replied:
		return nil
	default:
		return &socketReply{ReplyTo: m.replyTo(), OK: true, Data: data}
	}
}

func (v *visitor) perform(ctx context.Context, p *realtime.Client, m *message) (any, error) {
	do, known := v.desk.verbs[m.Type]
	if !known {
		return nil, apierror.InvalidRequest.WithField("type", "unknown", "is none of "+strings.Join(slices.Sorted(maps.Keys(v.desk.verbs)), ", "))
	}
	return do(ctx, v, p, m)
}

// readMessage reads a frame to the letter. Where it is JSON at all, the message has its id even when it is refused.
func readMessage(raw []byte) (message, error) {
	var m message
	if err := json.Unmarshal(raw, &m, strictOptions); err != nil {
		return message{ID: idOf(raw)}, fromDecodeError(err)
	}
	refusal := needs{}.that(m.Type != "", "type").refusal
	if len(m.ID) > longestID {
		refusal = apierror.InvalidRequest.WithField("id", "range", "may have at most 128 bytes")
		m.ID = ""
	}
	switch {
	case firstByte(raw) != '{': // null would decode into any struct
		return m, apierror.InvalidRequest.WithField("body", "type", "must be an object")
	case refusal != nil:
		return m, refusal
	default:
		return m, nil
	}
}

// idOf finds the id in a frame that is not as it should be, or "".
func idOf(raw []byte) string {
	var m struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(raw, &m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil || len(m.ID) > longestID {
		return ""
	}
	return strings.ToValidUTF8(m.ID, "")
}

// said is the way of a message: decode its data, strictly, and do it.
func said[T any](do func(context.Context, *visitor, *realtime.Client, *message, *T) (any, error)) verb {
	return func(ctx context.Context, v *visitor, p *realtime.Client, m *message) (any, error) {
		in := new(T)
		if len(m.Data) > 0 {
			if m.Data.Kind() != '{' {
				return nil, apierror.InvalidRequest.WithField("data", "type", "must be an object")
			}
			if err := json.Unmarshal(m.Data, in, strictOptions); err != nil {
				return nil, fromDecodeError(err)
			}
		}
		if lacking, checked := any(in).(interface{ lacks() needs }); checked {
			if err := lacking.lacks().err(); err != nil {
				return nil, err
			}
		}
		return do(ctx, v, p, m, in)
	}
}

// turnDown answers a frame that is not handled. It runs where the socket reads.
func (v *visitor) turnDown(p *realtime.Client, raw []byte, why error) {
	var m message
	if errors.Is(why, apierror.RateLimited) {
		m.ID = idOf(raw)
	}
	_ = p.Send(v.refusal(&m, why).encode())
}

// refusal says why a message had no effect, and logs what is no refusal.
func (v *visitor) refusal(m *message, err error) *socketReply {
	if errors.Is(err, context.DeadlineExceeded) {
		err = apierror.StoreUnavailable
	}
	refusal, failed := toAPIError(err)
	id := uuid.NewString()
	if failed && !errors.Is(err, context.Canceled) {
		v.edge.log.LogAttrs(context.Background(), slog.LevelError, "message failed", slog.Any("error", err), slog.String("route", v.path),
			slog.String("type", m.Type), slog.String("caller", v.caller.ActorID()), slog.String("requestId", id))
	} else if refusal.Status == http.StatusServiceUnavailable {
		v.edge.outageLog.Do(func() {
			v.edge.log.LogAttrs(context.Background(), slog.LevelWarn, "message not served", slog.Any("error", err), slog.String("route", v.path), slog.String("requestId", id))
		})
	}
	return &socketReply{ReplyTo: m.replyTo(), Error: newProblem(refusal, v.path, id)}
}

func (r *socketReply) encode() []byte {
	frame, err := json.Marshal(r, responseOptions)
	if err != nil {
		panic(err) // what we answer is ours; the socket ends with 1011
	}
	return frame
}
