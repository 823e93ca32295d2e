package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/principal"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/assets"
	"github.com/parlor-games/parlor/internal/auth"
	"github.com/parlor-games/parlor/internal/games"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/progress"
	"github.com/parlor-games/parlor/internal/users"
	"github.com/parlor-games/parlor/internal/wallet"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Deps is everything that the edge needs; all of it is required.
type Deps struct {
	Users       *users.Service
	Games       *games.Service
	Wallet      *wallet.Service
	Assets      *assets.Service
	Rooms       *rooms.Service
	Auth        *auth.Service
	Limiter     *auth.Limiter
	Idempotency *idempotency.Service
	Store       Pinger

	Progress *progress.Service
	Realtime *realtime.Hub // not running yet: the edge makes its sockets

	Durability     string               // the mode that answers about money and rooms promise: "memory", "disk", "replica"
	TrustedProxies []string             // addresses or networks whose X-Forwarded-For is believed; none by default
	Metrics        *prometheus.Registry // what /metrics of the internal listener shows
	Log            *slog.Logger
}

// Pinger is asked for a sign of life by /readyz.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Server serves the public HTTP interface of a node.
type Server struct {
	Deps
	engine        *gin.Engine
	log           *slog.Logger
	metrics       *metrics
	saves         *socketEndpoint
	live          *socketEndpoint
	outageLog     rate.Sometimes
	policyHeaders sync.Map // class → value of RateLimit-Policy
	draining      atomic.Bool
}

// New builds the edge of a node. It fails only on trusted proxies that are no addresses and on metrics that are registered already.
func New(deps Deps) (*Server, error) {
	gin.SetMode(gin.ReleaseMode)
	s := &Server{Deps: deps, engine: gin.New(), log: deps.Log, outageLog: rate.Sometimes{Interval: time.Second}}
	s.engine.HandleMethodNotAllowed = true
	s.engine.RedirectTrailingSlash = false
	if err := s.engine.SetTrustedProxies(deps.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	var err error
	if s.metrics, err = newMetrics(deps.Metrics); err != nil {
		return nil, err
	}
	if err = deps.Metrics.Register(&socketMetrics{deps.Realtime}); err != nil {
		return nil, err
	}
	s.saves, s.live = s.newSaveEndpoint(), s.newRealtimeEndpoint()
	for _, r := range s.routes() {
		s.engine.Handle(r.method, ginPath(r.path), s.serve(&r))
	}
	s.engine.NoRoute(s.serve(&route{path: "none", handle: alwaysReturn(apierror.NotFound)}))
	s.engine.NoMethod(s.serve(&route{path: "none", handle: alwaysReturn(apierror.MethodNotAllowed)}))
	return s, nil
}

// ServeHTTP serves one request. HEAD is GET without the body, which net/http leaves out by itself.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodGet
	}
	s.engine.ServeHTTP(w, r)
}

// Drain tells balancers and clients to go elsewhere: /readyz answers 503, so do new sockets, and connections close after their answer. Requests
// that come still are served; the sockets that are open are the hub's to drain.
func (s *Server) Drain() { s.draining.Store(true) }

// ginPath writes a path of the contract, "/users/{userId}", as gin wants it, "/users/:userId".
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func alwaysReturn(err error) func(*request) (response, error) {
	return func(*request) (response, error) { return response{}, err }
}

// request is one request on its way through the edge.
type request struct {
	*gin.Context
	server     *Server
	route      *route
	requestID  string
	caller     principal.Caller // zero where nobody needs to be known
	credential auth.Credential
	corsGame   int64                  // the game whose origins count, or 0 while it is not known
	receipt    idempotency.Receipt    // of the Idempotency-Key, or zero
	execution  *idempotency.Execution // under which the answer is kept, or nil
}

func (r *request) ctx() context.Context { return r.Request.Context() }

// serve is the way of every request: who, how often, what, and the answer or the problem.
func (s *Server) serve(rt *route) gin.HandlerFunc {
	metrics := s.metrics.forRoute(rt)
	return func(c *gin.Context) {
		start := time.Now()
		s.metrics.inFlight.Inc()
		req := &request{Context: c, server: s, route: rt, requestID: requestID(c.Request)}
		header := c.Writer.Header()
		header["X-Request-Id"] = []string{req.requestID}
		header["X-Content-Type-Options"] = valueNoSniff
		header["Vary"] = varyOrigin
		defer func() {
			if cause := recover(); cause != nil {
				req.recoverPanic(cause)
			}
			s.metrics.inFlight.Dec()
			metrics.observe(c.Writer.Status(), time.Since(start))
			s.logRequest(req, time.Since(start))
		}()
		if req.isPreflight() {
			req.respondToPreflight()
			return
		}
		resp, err := req.dispatch()
		req.respond(resp, err)
	}
}

// dispatch admits the call and lets the operation answer.
func (r *request) dispatch() (response, error) {
	if r.route.class == "" {
		return r.route.handle(r)
	}
	if err := r.checkRateLimit(auth.Address); err != nil {
		return response{}, err
	}
	if r.route.callers != anyone {
		if err := r.authenticate(); err != nil {
			return response{}, err
		}
	}
	if err := r.checkRateLimit(r.route.class); err != nil {
		return response{}, err
	}
	return r.route.handle(r)
}

// respond renders the answer or the problem, keeps it where the caller may ask again, and sends it.
func (r *request) respond(resp response, err error) {
	if resp.upgraded {
		return
	}
	if err != nil {
		resp = r.problemResponse(err).withReplayed(resp.replayed)
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	if err := resp.encode(buffer); err != nil {
		buffer.Reset()
		resp = r.problemResponse(fmt.Errorf("encode the answer: %w", err))
		_ = resp.encode(buffer)
	}
	if r.execution != nil {
		r.storeResponse(&resp, buffer.Bytes())
	}
	if r.route.durable {
		r.Writer.Header()["Parlor-Durability"] = r.server.durability()
	}
	r.allowOrigin()
	r.write(&resp, buffer.Bytes())
}

func (s *Server) durability() []string { return []string{s.Durability} }

// recoverPanic turns a panic into the answer "internal"; the node lives on.
func (r *request) recoverPanic(cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
		panic(cause)
	}
	r.server.log.LogAttrs(r.ctx(), slog.LevelError, "panic contained", slog.Any("cause", cause), slog.String("stack", string(debug.Stack())),
		slog.String("method", r.Request.Method), slog.String("route", r.route.path), slog.String("requestId", r.requestID))
	if !r.Writer.Written() {
		r.respond(response{}, apierror.Internal)
	}
}

// slowRequest is when a request is worth a line of its own.
const slowRequest = time.Second

// logRequest logs what is worth a line: slow requests, and every one at the level debug.
func (s *Server) logRequest(r *request, duration time.Duration) {
	level := slog.LevelDebug
	if duration > slowRequest {
		level = slog.LevelWarn
	}
	if !s.log.Enabled(r.ctx(), level) {
		return
	}
	s.log.LogAttrs(r.ctx(), level, "request", slog.String("method", r.Request.Method), slog.String("route", r.route.path),
		slog.Int("status", r.Writer.Status()), slog.Duration("took", duration), slog.String("caller", r.callerKey()), slog.String("requestId", r.requestID))
}

// requestID is the caller's own where it is sane, else a new one.
func requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && isVisibleASCII(given[0], 128) {
		return given[0]
	}
	return uuid.NewString()
}

// authenticate finds out who is calling and whether the operation is for them.
func (r *request) authenticate() error {
	shown, err := r.findCredential()
	if err != nil {
		return err
	}
	r.credential, r.caller, r.corsGame = shown, shown.Caller, shown.Game
	if !r.route.callers.includes(r.caller.Role) {
		return apierror.Forbidden.WithReason("this operation is for %s", r.route.callers)
	}
	return nil
}

// findCredential is what the caller shows: a ticket where one is good, else a token.
func (r *request) findCredential() (auth.Credential, error) {
	if r.route.callers&withTicket != 0 {
		if shown, given, err := r.redeemTicket(); given || err != nil {
			return shown, err
		}
	}
	token := r.bearer()
	if token == "" {
		return auth.Credential{}, apierror.Unauthenticated.WithReason("an Authorization header with a Bearer token is needed")
	}
	return r.server.Auth.Credential(r.ctx(), token)
}

// bearer is the token that the caller shows, or "".
func (r *request) bearer() string {
	scheme, token, _ := strings.Cut(r.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// callerKey names the caller in limits and under Idempotency-Keys; somebody unknown is their address.
func (r *request) callerKey() string {
	if r.caller.Role == "" {
		return r.addressKey()
	}
	return r.caller.ActorID()
}

// addressKey names where the call comes from. Only trusted proxies are believed about it.
func (r *request) addressKey() string {
	address, err := netip.ParseAddr(r.ClientIP())
	if err != nil {
		return "ip:unknown"
	}
	return auth.AddressKey(address)
}

// checkRateLimit counts the call against a class, and tells the caller what is left.
func (r *request) checkRateLimit(class auth.Class) error {
	key := r.server.Limiter.Scope(class)
	if key == "" {
		return nil
	}
	who := r.callerKey
	if key == auth.ByAddress {
		who = r.addressKey
	}
	decision, err := r.server.Limiter.Allow(r.ctx(), class, who())
	if class == auth.Address && err == nil {
		return nil // the limit of the operation is the one to tell
	}
	h := r.Writer.Header()
	h["Ratelimit-Policy"] = r.server.policyHeader(decision)
	h["Ratelimit"] = []string{decision.Header()}
	if err != nil {
		h["Retry-After"] = []string{strconv.FormatInt(decision.RetryAfterSeconds(), 10)}
	}
	return err
}

// policyHeader is the header of a class, which is always the same.
func (s *Server) policyHeader(d auth.Decision) []string {
	if header, ok := s.policyHeaders.Load(d.Class); ok {
		return header.([]string)
	}
	header, _ := s.policyHeaders.LoadOrStore(d.Class, []string{d.Policy()})
	return header.([]string)
}
