package handlers

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/parlor-games/parlor/competition/leaderboards"
	"github.com/parlor-games/parlor/competition/tournaments"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/storecost"
	"github.com/parlor-games/parlor/internal/money/assets"
	"github.com/parlor-games/parlor/internal/money/audit"
	"github.com/parlor-games/parlor/internal/money/limits"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/ops/activity"
	"github.com/parlor-games/parlor/internal/ops/nodes"
	"github.com/parlor-games/parlor/internal/ops/readiness"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/ops/webhooks"
	"github.com/parlor-games/parlor/internal/players/accounts"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/calls"
	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/players/progress"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/internal/players/servers"
	"github.com/parlor-games/parlor/internal/players/users"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/realtime"
	"github.com/parlor-games/parlor/rooms"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Deps is everything that a Server needs. All of it is required, but what is for development.
type Deps struct {
	Users       *users.Service
	Games       *games.Service
	Wallet      *wallet.Service
	Audit       *audit.Service
	Alarm       *audit.Alarm
	Limits      *limits.Service
	Assets      *assets.Service
	Rooms       *rooms.Service
	Boards      *leaderboards.Service
	Auth        *auth.Service
	Limiter     *ratelimit.Limiter
	Idempotency *idempotency.Service
	Tournaments *tournaments.Service
	Readiness   Readiness
	MoneyHalt   *moneyhalt.Service // nil: nothing is ever halted

	Progress    *progress.Service
	Accounts    *accounts.Service
	Trail       *trail.Service
	RealtimeHub *realtime.Hub // not running yet, because New adds its sockets
	Servers     *servers.Service
	Calls       *calls.Service
	Nodes       *nodes.Service
	Activity    *activity.Service
	Webhooks    *webhooks.Service

	Durability       string               // "memory", "disk" or "replica": the mode of the installation
	AllowMoney       func() error         // returns store_unavailable while money is stopped; nil: never
	TrustedProxies   []netip.Prefix       // networks whose X-Forwarded-For is used; none by default
	ProfilingEnabled bool                 // the internal listener serves /debug/pprof/
	DevPages         bool                 // the public listener serves what is for developers: /docs/try, /play, /console
	InternalHosts    []string             // public names of the internal listener, in lower case
	MetricsRegistry  *prometheus.Registry // that /metrics of the internal listener exports
	Log              *slog.Logger
}

// Readiness reports what this node knows about its store. It must not wait for the store.
type Readiness interface {
	Report() readiness.Report
	HasStarted() bool
	ServedSince(time.Time) bool
	Kept() readiness.Promise
}

// Server serves the public HTTP interface of a node.
type Server struct {
	Deps
	engine                 *gin.Engine
	console                http.Handler
	log                    *slog.Logger
	requestMetrics         *requestMetrics
	saveEndpoint           *socketEndpoint
	realtimeEndpoint       *socketEndpoint
	serverEndpoint         *socketEndpoint
	liveBoards             *leaderboards.Live
	storeContexts          storeContexts
	outageLogLimit         rate.Sometimes
	slowLogLimit           rate.Sometimes
	unavailableCalls       atomic.Int64 // calls that the store did not serve, since the start
	messageDeadline        sharedDeadline
	rateLimitPolicyHeaders sync.Map // class → value of RateLimit-Policy
	draining               atomic.Bool
	refusesSockets         atomic.Bool
	demoGame               atomic.Pointer[DemoGame] // nil: none
	requests, failures     atomic.Int64             // since the start
}

// New returns the server of a node. It returns an error for metrics that are registered already.
func New(deps Deps) (*Server, error) {
	gin.SetMode(gin.ReleaseMode)
	s := &Server{
		Deps: deps, engine: gin.New(), log: deps.Log,
		outageLogLimit: rate.Sometimes{Interval: time.Second}, slowLogLimit: rate.Sometimes{Interval: time.Second},
	}
	s.engine.HandleMethodNotAllowed = true
	s.engine.RedirectTrailingSlash = false
	s.engine.ForwardedByClientIP = false // clientAddress reads the header
	var err error
	if s.requestMetrics, err = newRequestMetrics(deps.MetricsRegistry); err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{
		&socketCollector{deps.RealtimeHub}, &readinessCollector{deps.Readiness, s.UnavailableCalls},
		&moneyCollector{deps.Alarm},
	} {
		if err = deps.MetricsRegistry.Register(c); err != nil {
			return nil, err
		}
	}
	s.liveBoards = deps.Boards.NewLive(boardAudience{deps.RealtimeHub})
	s.saveEndpoint, s.realtimeEndpoint = s.newSaveEndpoint(), s.newRealtimeEndpoint()
	s.serverEndpoint = s.newServerEndpoint()
	for _, c := range serverMetrics(s.serverEndpoint.socketKind) {
		if err = deps.MetricsRegistry.Register(c); err != nil {
			return nil, err
		}
	}
	for _, rt := range s.routes() {
		if rt.action != "" {
			s.recordInTrail(&rt)
		}
		if message, ok := serverOperations[rt.path]; ok {
			operation := rt
			operation.rateLimitClass = ratelimit.ServerMessages
			s.serverEndpoint.operations[message] = &operation
		}
		s.engine.Handle(rt.method, ginPath(rt.path), s.ginHandler(&rt))
	}
	s.handleRoot()
	for prefix, section := range s.pages() {
		s.handlePages(prefix, section)
	}
	s.engine.NoRoute(s.ginHandler(&route{path: "none", handle: alwaysReturn(apierror.RouteNotFound)}))
	s.engine.NoMethod(s.ginHandler(&route{path: "none", handle: alwaysReturn(apierror.MethodNotAllowed)}))
	s.console = s.newConsoleHandler()
	return s, nil
}

// ServeHTTP serves one request. HEAD is GET without the body, which net/http leaves out by itself.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodGet
	}
	if s.DevPages && isConsolePath(r.URL.Path) {
		s.console.ServeHTTP(w, r)
		return
	}
	s.engine.ServeHTTP(w, r)
}

// Drain sends balancers to other nodes: /balancez returns 404, /readyz returns 503 draining, and
// every connection closes after its response. Requests are still served, and sockets are still
// opened: a balancer needs a moment to notice.
func (s *Server) Drain() { s.draining.Store(true) }

// RefuseSockets makes new sockets get 503 draining. Call it before the hub drains those that are
// open.
func (s *Server) RefuseSockets() { s.refusesSockets.Store(true) }

// IsDraining reports whether Drain was called.
func (s *Server) IsDraining() bool { return s.draining.Load() }

// RequestCounts returns how many requests were answered since the start, and how many of them with
// a status of 500 or more.
func (s *Server) RequestCounts() (all, failed int64) { return s.requests.Load(), s.failures.Load() }

// UnavailableCalls returns the number of requests and messages since the start that failed because
// the store was unavailable.
func (s *Server) UnavailableCalls() int64 { return s.unavailableCalls.Load() }

// ginPath returns a path of openapi.yaml, "/users/{userId}", as gin spells it, "/users/:userId".
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func alwaysReturn(err error) func(*request) (response, error) {
	return func(*request) (response, error) { return response{}, err }
}

// request is an HTTP request with what is known about its caller.
type request struct {
	*gin.Context
	server     *Server
	route      *route
	requestID  string
	caller     principal.Caller // zero when the operation is for anyone
	credential auth.Authentication
	actorID    string                 // of the caller; "" until callerIdentity was called
	corsGameID int64                  // whose origins are allowed; 0 while it is not known
	receipt    idempotency.Receipt    // of the Idempotency-Key, or the zero Receipt
	execution  *idempotency.Execution // that stores the response, or nil
	staffWrite *staffWrite            // that the trail will have; nil for players, and for reads
	startedAt  time.Time
	storeCtx   context.Context // ends after storeTimeout
	usage      storecost.Cost  // of the store, by a read
	charged    int64           // permits that it took beside its first one

	headerValues [5]string // of headers that setHeader has set
	headerCount  int
}

// ctx returns the context of the work for the request, see limitTime.
func (r *request) ctx() context.Context { return r.storeCtx }

// measuredCtx is ctx for a change that takes permits by what it costs, as every read does.
func (r *request) measuredCtx() context.Context { return storecost.With(r.storeCtx, &r.usage) }

// clientCtx returns a context that ends when the client goes away, and not after storeTimeout: a
// report about all games may take longer while each of its commands is fast.
func (r *request) clientCtx() context.Context {
	return storecost.With(r.Request.Context(), &r.usage)
}

// setHeader sets a header of the response by its canonical name. It allocates nothing, as a slice
// for each value would.
func (r *request) setHeader(name, value string) {
	h, i := r.Writer.Header(), r.headerCount
	if i == len(r.headerValues) {
		h[name] = []string{value}
		return
	}
	r.headerValues[i] = value
	h[name] = r.headerValues[i : i+1 : i+1]
	r.headerCount++
}

// ginHandler returns gin's handler of a route: it handles the request, sends the response, counts
// and logs it.
func (s *Server) ginHandler(rt *route) gin.HandlerFunc {
	routeMetrics := s.requestMetrics.forRoute(rt)
	rt.pathIDs = pathIDsOf(rt.path)
	return func(c *gin.Context) {
		start := time.Now()
		if conn := clientConnOf(c.Request); conn != nil && !rt.asksServer {
			conn.inChange.Store(true)
			defer conn.inChange.Store(false)
		}
		s.requestMetrics.inFlight.Inc()
		req := &request{Context: c, server: s, route: rt, requestID: requestID(c.Request), startedAt: start}
		defer req.limitTime()()
		header := c.Writer.Header()
		req.setHeader("X-Request-Id", req.requestID)
		setSecurityHeaders(header, req.bearerToken() != "")
		header["Vary"] = headerVaryOrigin
		defer func() {
			if cause := recover(); cause != nil {
				req.recoverPanic(cause)
			}
			s.requestMetrics.inFlight.Dec()
			routeMetrics.observe(c.Writer.Status(), time.Since(start))
			s.requests.Add(1)
			if c.Writer.Status() >= http.StatusInternalServerError {
				s.failures.Add(1)
			}
			s.logRequest(req, time.Since(start))
		}()
		if req.isPreflight() {
			req.respondToPreflight()
			return
		}
		resp, err := req.authorizeAndHandle()
		req.respond(resp, err)
	}
}

// All work of a request in the store ends after storeTimeout, however many commands it takes: a
// store that hangs holds no request longer. Its response is stored until storeResponseTimeout.
const (
	storeTimeout         = 2500 * time.Millisecond
	storeResponseTimeout = 2800 * time.Millisecond
)

// limitTime sets the context of the work for the request. It ends after storeTimeout. That of a
// read also ends when the client goes away. A change goes on: it may have been sent to the store,
// and nothing can call it back.
func (r *request) limitTime() (cancel func()) {
	if r.Request.Method != http.MethodGet {
		r.storeCtx = r.server.storeContexts.at(r.startedAt)
		return func() {}
	}
	r.storeCtx, cancel = context.WithDeadline(r.clientCtx(), r.startedAt.Add(storeTimeout))
	return cancel
}

// storeContexts gives all changes that begin within a tenth of a second the same context, which
// ends storeTimeout after the first began. This saves a context and a timer for each change.
type storeContexts struct{ current atomic.Pointer[storeContext] }

type storeContext struct {
	context.Context
	from time.Time
}

const storeContextSpan = 100 * time.Millisecond // for which requests share a context

func (s *storeContexts) at(now time.Time) context.Context {
	current := s.current.Load()
	if current != nil && now.Sub(current.from) < storeContextSpan {
		return current.Context
	}
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(storeTimeout))
	context.AfterFunc(ctx, cancel)
	if s.current.CompareAndSwap(current, &storeContext{ctx, now}) {
		return ctx
	}
	cancel() // another request was faster
	return s.current.Load().Context
}

// authorizeAndHandle checks who is calling and how often, and calls the handler of the route.
func (r *request) authorizeAndHandle() (response, error) {
	if r.route.rateLimitClass == "" {
		return r.route.handle(r)
	}
	if !r.server.Readiness.HasStarted() {
		return response{}, r.setRetryAfter(apierror.StoreUnavailable)
	}
	if err := r.takeRateLimit(ratelimit.Address); err != nil {
		return response{}, err
	}
	// Before a ticket is used up.
	if err := r.checkQuery(); err != nil {
		return response{}, err
	}
	if r.route.callers != anyone {
		if err := r.authenticate(); err != nil {
			return response{}, err
		}
	}
	if err := r.takeRateLimit(r.route.rateLimitClass); err != nil {
		return response{}, err
	}
	if r.route.durabilityHeader && r.route.method != http.MethodGet && r.server.AllowMoney != nil {
		// The store checks this too, but what a handler reads first may be gone.
		if err := r.server.AllowMoney(); err != nil {
			return response{}, err
		}
	}
	if err := r.checkPathIDs(); err != nil {
		return response{}, err
	}
	resp, err := r.route.handle(r)
	if !resp.written {
		r.chargeUsage()
	}
	return resp, err
}

// respond encodes the response or the error, stores it if its Idempotency-Key asks for that, and
// sends it.
func (r *request) respond(resp response, err error) {
	if resp.written {
		return
	}
	if err != nil {
		resp = r.problemResponse(err).withReplayed(resp.replayed)
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	if err := resp.encode(buffer); err != nil {
		buffer.Reset()
		resp = r.problemResponse(fmt.Errorf("encode the response: %w", err))
		_ = resp.encode(buffer)
	}
	if r.execution != nil {
		r.storeResponse(&resp, buffer.Bytes())
	}
	if r.route.durabilityHeader {
		r.Writer.Header()["Parlor-Durability"] = r.server.keptDurability()
	}
	r.allowOrigin()
	r.write(&resp, buffer.Bytes())
}

// recoverPanic logs a panic and returns internal to the caller.
func (r *request) recoverPanic(cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
		panic(cause)
	}
	r.server.log.LogAttrs(r.ctx(), slog.LevelError, "panic in a handler", slog.Any("cause", cause),
		slog.String("stack", string(debug.Stack())), slog.String("method", r.Request.Method),
		slog.String("route", r.route.path), slog.String("requestId", r.requestID))
	if !r.Writer.Written() {
		r.respond(response{}, apierror.Internal)
	}
}

// slowRequestDuration is the duration above which a request is logged at the level warn.
const slowRequestDuration = time.Second

// logRequest logs a slow request as a warning, one a second at most, and all others at the level
// debug. A request that was slow because the store was down is not logged as slow.
func (s *Server) logRequest(r *request, duration time.Duration) {
	if duration > slowRequestDuration && !r.route.asksServer && s.Readiness.ServedSince(r.startedAt) {
		s.slowLogLimit.Do(func() { s.writeRequestLine(r, slog.LevelWarn, duration) })
		return
	}
	s.writeRequestLine(r, slog.LevelDebug, duration)
}

func (s *Server) writeRequestLine(r *request, level slog.Level, duration time.Duration) {
	if !s.log.Enabled(r.ctx(), level) {
		return
	}
	s.log.LogAttrs(r.ctx(), level, "request", slog.String("method", r.Request.Method),
		slog.String("route", r.route.path), slog.Int("status", r.Writer.Status()), slog.Duration("duration", duration),
		slog.String("caller", r.callerIdentity()), slog.String("requestId", r.requestID))
}

// requestID returns the caller's X-Request-Id if it is valid, or else a new one.
func requestID(r *http.Request) string {
	if header := r.Header["X-Request-Id"]; len(header) == 1 && isVisibleASCII(header[0], 128) {
		return header[0]
	}
	return newRequestID()
}

// newRequestID returns a UUID of version 4 (RFC 9562, 5.4). It is unique and no secret, so it needs
// no random bits of the system.
func newRequestID() string {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// authenticate sets the caller. It returns forbidden when the operation is not for the caller's
// role.
func (r *request) authenticate() error {
	credential, err := r.verifyCredential()
	if err != nil {
		return err
	}
	r.credential, r.caller, r.corsGameID = credential, credential.Caller, credential.GameID
	if !r.route.callers.includes(r.caller.Role) {
		return apierror.Forbidden.WithReason("this operation is for %s", r.route.callers)
	}
	return nil
}

// verifyCredential returns the credential of a ticket, where the operation accepts one, of a
// session of the console, or of a bearer token.
func (r *request) verifyCredential() (auth.Authentication, error) {
	if r.route.callers&orTicket != 0 {
		if credential, given, err := r.redeemTicket(); given || err != nil {
			return credential, err
		}
	}
	if call := r.consoleCall(); call != nil {
		return call.authenticate(r)
	}
	token := r.bearerToken()
	if token == "" {
		return auth.Authentication{}, apierror.Unauthenticated.WithReason(
			"an Authorization header with a Bearer token is needed")
	}
	return r.server.Auth.Authenticate(r.ctx(), token)
}

// bearerToken returns the bearer token, or "".
func (r *request) bearerToken() string {
	scheme, token, _ := strings.Cut(r.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// callerIdentity identifies the caller for rate limits and Idempotency-Keys: the address when there
// is no credential.
func (r *request) callerIdentity() string {
	if r.caller.Role == "" {
		return r.addressIdentity()
	}
	if r.actorID == "" { // several limits and the key ask for it
		r.actorID = r.caller.ActorID()
	}
	return r.actorID
}

// addressIdentity identifies the client's address for rate limits. X-Forwarded-For counts only from
// a trusted proxy.
func (r *request) addressIdentity() string { return r.networkIdentity(ratelimit.AddressKey) }

// networkIdentity is addressIdentity by another name of an address.
func (r *request) networkIdentity(key func(netip.Addr) string) string {
	address := clientAddress(r.Request, r.server.TrustedProxies)
	if !address.IsValid() {
		return "ip:unknown"
	}
	return key(address)
}

// takeRateLimit counts the request against the limit of a class and sets the headers of the limit.
func (r *request) takeRateLimit(class ratelimit.Class) error {
	key, limited := r.rateLimitKey(class)
	if !limited {
		return nil
	}
	decision, err := r.server.Limiter.Allow(r.ctx(), class, key)
	if class != r.route.rateLimitClass && err == nil {
		return nil // the headers show the limit of the operation
	}
	r.Writer.Header()["Ratelimit-Policy"] = r.server.rateLimitPolicyHeader(decision)
	r.setHeader("Ratelimit", decision.RateLimitHeader())
	if err != nil {
		r.setHeader("Retry-After", strconv.FormatInt(decision.RetryAfterSeconds(), 10))
	}
	return err
}

// rateLimitKey returns by whom the request counts in a class; false when the class has no limit.
func (r *request) rateLimitKey(class ratelimit.Class) (key string, limited bool) {
	switch scope := r.server.Limiter.ScopeOf(class); {
	case scope == "":
		return "", false
	case class == ratelimit.SignUp:
		return r.networkIdentity(ratelimit.SignUpKey), true
	case scope == ratelimit.ScopeAddress:
		return r.addressIdentity(), true
	default:
		return r.callerIdentity(), true
	}
}

// rateLimitPolicyHeader returns the value of RateLimit-Policy for a class, which never changes.
func (s *Server) rateLimitPolicyHeader(d ratelimit.Decision) []string {
	if header, ok := s.rateLimitPolicyHeaders.Load(d.Class); ok {
		return header.([]string)
	}
	header, _ := s.rateLimitPolicyHeaders.LoadOrStore(d.Class, []string{d.PolicyHeader()})
	return header.([]string)
}
