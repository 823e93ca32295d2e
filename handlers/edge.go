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
	engine   *gin.Engine
	log      *slog.Logger
	metrics  *metrics
	saves    *desk
	live     *desk
	outages  rate.Sometimes
	policies sync.Map // class → value of RateLimit-Policy
	draining atomic.Bool
}

// New builds the edge of a node. It fails only on trusted proxies that are no addresses and on metrics that are registered already.
func New(deps Deps) (*Server, error) {
	gin.SetMode(gin.ReleaseMode)
	e := &Server{Deps: deps, engine: gin.New(), log: deps.Log, outages: rate.Sometimes{Interval: time.Second}}
	e.engine.HandleMethodNotAllowed = true
	e.engine.RedirectTrailingSlash = false
	if err := e.engine.SetTrustedProxies(deps.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	var err error
	if e.metrics, err = newMetrics(deps.Metrics); err != nil {
		return nil, err
	}
	if err = deps.Metrics.Register(&socketMetrics{deps.Realtime}); err != nil {
		return nil, err
	}
	e.saves, e.live = e.newSaves(), e.newLive()
	for _, r := range e.routes() {
		e.engine.Handle(r.method, ginPath(r.path), e.serve(&r))
	}
	e.engine.NoRoute(e.serve(&route{path: "none", handle: refuse(apierror.NotFound)}))
	e.engine.NoMethod(e.serve(&route{path: "none", handle: refuse(apierror.MethodNotAllowed)}))
	return e, nil
}

// ServeHTTP serves one request. HEAD is GET without the body, which net/http leaves out by itself.
func (e *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodGet
	}
	e.engine.ServeHTTP(w, r)
}

// Drain tells balancers and clients to go elsewhere: /readyz answers 503, so do new sockets, and connections close after their answer. Requests
// that come still are served; the sockets that are open are the hub's to drain.
func (e *Server) Drain() { e.draining.Store(true) }

// ginPath writes a path of the contract, "/users/{userId}", as gin wants it, "/users/:userId".
func ginPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func refuse(err error) func(*call) (reply, error) {
	return func(*call) (reply, error) { return reply{}, err }
}

// call is one request on its way through the edge.
type call struct {
	*gin.Context
	edge      *Server
	route     *route
	requestID string
	caller    principal.Caller // zero where nobody needs to be known
	shown     auth.Authentication
	game      int64                  // the game whose origins count, or 0 while it is not known
	receipt   idempotency.Receipt    // of the Idempotency-Key, or zero
	run       *idempotency.Execution // under which the answer is kept, or nil
}

func (c *call) ctx() context.Context { return c.Request.Context() }

// serve is the way of every request: who, how often, what, and the answer or the problem.
func (e *Server) serve(r *route) gin.HandlerFunc {
	meter := e.metrics.of(r)
	return func(g *gin.Context) {
		began := time.Now()
		e.metrics.inFlight.Inc()
		c := &call{Context: g, edge: e, route: r, requestID: requestID(g.Request)}
		h := g.Writer.Header()
		h["X-Request-Id"] = []string{c.requestID}
		h["X-Content-Type-Options"] = valueNoSniff
		h["Vary"] = corsVary
		defer func() {
			if cause := recover(); cause != nil {
				c.contain(cause)
			}
			e.metrics.inFlight.Dec()
			meter.count(g.Writer.Status(), time.Since(began))
			e.note(c, time.Since(began))
		}()
		if c.isPreflight() {
			c.preflight()
			return
		}
		answer, err := c.perform()
		c.finish(answer, err)
	}
}

// perform admits the call and lets the operation answer.
func (c *call) perform() (reply, error) {
	if c.route.class == "" {
		return c.route.handle(c)
	}
	if err := c.limit(auth.Address); err != nil {
		return reply{}, err
	}
	if c.route.callers != anyone {
		if err := c.authenticate(); err != nil {
			return reply{}, err
		}
	}
	if err := c.limit(c.route.class); err != nil {
		return reply{}, err
	}
	return c.route.handle(c)
}

// finish renders the answer or the problem, keeps it where the caller may ask again, and sends it.
func (c *call) finish(answer reply, err error) {
	if answer.upgraded {
		return
	}
	if err != nil {
		answer = c.problemOf(err).again(answer.replayed)
	}
	buffer := takeBuffer()
	defer giveBuffer(buffer)
	if err := answer.encode(buffer); err != nil {
		buffer.Reset()
		answer = c.problemOf(fmt.Errorf("encode the answer: %w", err))
		_ = answer.encode(buffer)
	}
	if c.run != nil {
		c.settle(&answer, buffer.Bytes())
	}
	if c.route.durable {
		c.Writer.Header()["Parlor-Durability"] = c.edge.durability()
	}
	c.allowOrigin()
	c.write(&answer, buffer.Bytes())
}

func (e *Server) durability() []string { return []string{e.Durability} }

// contain turns a panic into the answer "internal"; the node lives on.
func (c *call) contain(cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like this
		panic(cause)
	}
	c.edge.log.LogAttrs(c.ctx(), slog.LevelError, "panic contained", slog.Any("cause", cause), slog.String("stack", string(debug.Stack())),
		slog.String("method", c.Request.Method), slog.String("route", c.route.path), slog.String("requestId", c.requestID))
	if !c.Writer.Written() {
		c.finish(reply{}, apierror.Internal)
	}
}

// slow is when a request is worth a line of its own.
const slow = time.Second

// note logs what is worth a line: slow requests, and every one at the level debug.
func (e *Server) note(c *call, took time.Duration) {
	level := slog.LevelDebug
	if took > slow {
		level = slog.LevelWarn
	}
	if !e.log.Enabled(c.ctx(), level) {
		return
	}
	e.log.LogAttrs(c.ctx(), level, "request", slog.String("method", c.Request.Method), slog.String("route", c.route.path),
		slog.Int("status", c.Writer.Status()), slog.Duration("took", took), slog.String("caller", c.who()), slog.String("requestId", c.requestID))
}

// requestID is the caller's own where it is sane, else a new one.
func requestID(r *http.Request) string {
	if given := r.Header["X-Request-Id"]; len(given) == 1 && isVisible(given[0], 128) {
		return given[0]
	}
	return uuid.NewString()
}

// authenticate finds out who is calling and whether the operation is for them.
func (c *call) authenticate() error {
	shown, err := c.credential()
	if err != nil {
		return err
	}
	c.shown, c.caller, c.game = shown, shown.Caller, shown.Game
	if !c.route.callers.admit(c.caller.Role) {
		return apierror.Forbidden.WithReason("this operation is for %s", c.route.callers)
	}
	return nil
}

// credential is what the caller shows: a ticket where one is good, else a token.
func (c *call) credential() (auth.Authentication, error) {
	if c.route.callers&ticketed != 0 {
		if shown, given, err := c.redeem(); given || err != nil {
			return shown, err
		}
	}
	token := c.bearer()
	if token == "" {
		return auth.Authentication{}, apierror.Unauthenticated.WithReason("an Authorization header with a Bearer token is needed")
	}
	return c.edge.Auth.Authenticate(c.ctx(), token)
}

// bearer is the token that the caller shows, or "".
func (c *call) bearer() string {
	scheme, token, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// who names the caller in limits and under Idempotency-Keys; somebody unknown is their address.
func (c *call) who() string {
	if c.caller.Role == "" {
		return c.address()
	}
	return c.caller.ActorID()
}

// address names where the call comes from. Only trusted proxies are believed about it.
func (c *call) address() string {
	address, err := netip.ParseAddr(c.ClientIP())
	if err != nil {
		return "ip:unknown"
	}
	return auth.AddressKey(address)
}

// limit counts the call against a class, and tells the caller what is left.
func (c *call) limit(class auth.Class) error {
	key := c.edge.Limiter.Scope(class)
	if key == "" {
		return nil
	}
	who := c.who
	if key == auth.ByAddress {
		who = c.address
	}
	decision, err := c.edge.Limiter.Allow(c.ctx(), class, who())
	if class == auth.Address && err == nil {
		return nil // the limit of the operation is the one to tell
	}
	h := c.Writer.Header()
	h["Ratelimit-Policy"] = c.edge.policy(decision)
	h["Ratelimit"] = []string{decision.Header()}
	if err != nil {
		h["Retry-After"] = []string{strconv.FormatInt(decision.RetryAfterSeconds(), 10)}
	}
	return err
}

// policy is the header of a class, which is always the same.
func (e *Server) policy(d auth.Decision) []string {
	if known, ok := e.policies.Load(d.Class); ok {
		return known.([]string)
	}
	known, _ := e.policies.LoadOrStore(d.Class, []string{d.Policy()})
	return known.([]string)
}
