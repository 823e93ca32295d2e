package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
)

type callInput struct {
	RoomID    string       `json:"roomId" required:"true"`
	Op        string       `json:"op" required:"true"`
	Payload   wire.RawJSON `json:"payload"`
	TimeoutMS *int64       `json:"timeoutMs"` // 100 to 30,000; nil: 5,000
}

// callData is the answer of the game's server.
type callData struct {
	Payload wire.RawJSON `json:"payload"`
}

// newCall returns a call that the caller may make.
func (s *Server) newCall(ctx context.Context, caller principal.Caller, in callInput) (calls.Call, error) {
	timeout := calls.DefaultTimeout
	if in.TimeoutMS != nil {
		least, most := calls.MinTimeout.Milliseconds(), calls.MaxTimeout.Milliseconds()
		if *in.TimeoutMS < least || *in.TimeoutMS > most {
			return calls.Call{}, apierror.InvalidRequest.WithField("timeoutMs", "range",
				fmt.Sprintf("must be %d to %d", least, most))
		}
		timeout = time.Duration(*in.TimeoutMS) * time.Millisecond
	}
	// Upper case is the same id. The share of a room, and what the server keeps under it, go by the
	// text that its events have.
	in.RoomID = strings.ToLower(in.RoomID)
	message := rooms.MessageInput{RoomID: in.RoomID, Op: in.Op, Payload: in.Payload}
	if err := s.Rooms.AuthorizeCall(ctx, caller, message, s.RealtimeHub); err != nil {
		return calls.Call{}, err
	}
	return calls.Call{
		GameID: caller.GameID, RoomID: in.RoomID, UserID: caller.UserID, Op: in.Op, Payload: in.Payload, Timeout: timeout,
	}, nil
}

// answerGrace is how much longer than its call a request may take.
const answerGrace = 5 * time.Second

// callServer asks the game's server and waits for its answer.
func (s *Server) callServer(r *request, in *callInput) (response, error) {
	call, err := s.newCall(r.measuredCtx(), r.caller, *in)
	if err != nil {
		return response{}, err
	}
	// The limits of other requests are shorter than the longest call. Only a connection of a test has
	// none.
	conn := http.NewResponseController(r.Writer)
	_ = conn.SetReadDeadline(time.Time{})
	_ = conn.SetWriteDeadline(time.Now().Add(call.Timeout + answerGrace))
	payload, err := s.Calls.Ask(r.Request.Context(), r.ctx(), call)
	return okResponse(callData{payload}), err
}

// The limits of a message to one player.
const (
	maxUserOpBytes      = 64
	maxUserPayloadBytes = 4 << 10
)

type userMessageInput struct {
	Op      string       `json:"op" required:"true"`
	Payload wire.RawJSON `json:"payload"`
}

func (in *userMessageInput) Validate() error {
	switch {
	case len(in.Op) > maxUserOpBytes:
		return apierror.InvalidRequest.WithField("op", "range", fmt.Sprintf("may have at most %d bytes", maxUserOpBytes))
	case len(in.Payload) > maxUserPayloadBytes:
		return apierror.PayloadTooLarge.WithReason("a payload may have at most %d bytes", maxUserPayloadBytes)
	case wire.HasInfinity(in.Payload):
		return apierror.InvalidRequest.WithField("payload", "range", "has a number that is too large for a double")
	default:
		return nil
	}
}

// sendUserMessage sends a message to all sockets of a player. It is not stored.
func (s *Server) sendUserMessage(r *request, user users.User, in *userMessageInput) (response, error) {
	event := events.AppendUserMessage(nil, events.Message{At: time.Now(), Op: in.Op, Payload: in.Payload})
	topic := s.Wallet.EventTopic(user.GameID, user.ID) // every socket of the player follows it
	return response{status: http.StatusAccepted}, s.RealtimeHub.BroadcastToTopic(r.ctx(), topic, event)
}

// CallMetrics counts the calls of a node. Its methods are those of calls.Options.
type CallMetrics struct {
	calls    *prometheus.CounterVec
	duration prometheus.Histogram
	refused  prometheus.Counter
}

// NewCallMetrics returns metrics that are registered.
func NewCallMetrics(registry *prometheus.Registry) *CallMetrics {
	m := &CallMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlor_calls_total", Help: "Calls of players of this node to a game's server, by how they ended.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parlor_call_duration_seconds", Help: "Time from a call to the answer of the game's server.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parlor_call_answers_refused_total",
			Help: "Answers of servers that nobody waited for: too late, given twice, or to a call of another connection.",
		}),
	}
	for _, outcome := range calls.Outcomes {
		m.calls.WithLabelValues(outcome)
	}
	registry.MustRegister(m.calls, m.duration, m.refused)
	return m
}

// Observe counts a call that has ended.
func (m *CallMetrics) Observe(outcome string, took time.Duration) {
	m.calls.WithLabelValues(outcome).Inc()
	if calls.IsAnswered(outcome) {
		m.duration.Observe(took.Seconds())
	}
}

// ObserveRefused counts an answer that is refused.
func (m *CallMetrics) ObserveRefused() { m.refused.Inc() }
