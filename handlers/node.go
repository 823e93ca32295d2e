package handlers

import (
	"context"
	"crypto/sha256"
	_ "embed" // openapi.yaml and asyncapi.yaml
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"golang.org/x/sync/singleflight"
)

var (
	//go:embed openapi.yaml
	openAPIText []byte
	//go:embed asyncapi.yaml
	asyncAPIText []byte
)

// OpenAPI returns the contract of the HTTP interface, as it is served.
func OpenAPI() []byte { return openAPIText }

// AsyncAPI returns the contract of the sockets, as it is served.
func AsyncAPI() []byte { return asyncAPIText }

// documentHandler returns the handler of a document. A client that has it already gets 304.
func documentHandler(text []byte) func(*request) (response, error) {
	sum := sha256.Sum256(text)
	etag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return func(r *request) (response, error) {
		r.Writer.Header()["Cache-Control"] = []string{"public, max-age=300"}
		if r.hasVersion(etag) {
			return response{status: http.StatusNotModified, etag: etag}, nil
		}
		return response{status: http.StatusOK, rawBody: text, contentType: mediaYAML, etag: etag}, nil
	}
}

func (s *Server) healthz(*request) (response, error) {
	return okResponse(struct {
		Status string `json:"status"`
	}{"ok"}), nil
}

// readyTimeout bounds how long /readyz waits for the store.
const readyTimeout = time.Second

func (s *Server) readyz(r *request) (response, error) {
	if s.draining.Load() {
		return response{}, apierror.Draining
	}
	ctx, cancel := context.WithTimeout(r.ctx(), readyTimeout)
	defer cancel()
	if err := s.StorePinger.Ping(ctx); err != nil {
		return response{}, err
	}
	return okResponse(struct {
		Status     string `json:"status"`
		Durability string `json:"durability"`
	}{"ready", s.Durability}), nil
}

// balancez tells a balancer whether to send anything new. A node that drains, or has lost its
// store, returns 404: what is open stays with it, so that its sockets get their reason and resume.
// A balancer closes the connections of a node that returns nothing.
func (s *Server) balancez(r *request) (response, error) {
	switch {
	case s.draining.Load():
		return response{}, apierror.RouteNotFound.WithReason("nothing new: this node is shutting down")
	case !s.storeCheck.reachable(r.ctx(), s.StorePinger):
		return response{}, apierror.RouteNotFound.WithReason("nothing new: this node has lost its store")
	}
	return okResponse(struct {
		Status string `json:"status"`
	}{"balance"}), nil
}

// A balancer asks several times a second and takes a late answer for a dead node. The store may
// take longer than that to answer, and that is no reason to send everybody away.
const (
	storeCheckPatience = 100 * time.Millisecond // how long /balancez waits for the store
	storeCheckTimeout  = 3 * time.Second        // of a ping, and how long the last one that succeeded counts
)

// storeCheck pings the store once for all who ask at the same time.
type storeCheck struct {
	pings singleflight.Group

	mu            sync.Mutex
	lastReachable time.Time // at the start of the node: then
}

// reachable reports whether the store replies. While it takes its time, what was true a moment ago
// is true. A ping outlives its request by storeCheckTimeout at most.
func (c *storeCheck) reachable(ctx context.Context, store Pinger) bool {
	result := c.pings.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeCheckTimeout)
		defer cancel()
		err := store.Ping(ctx)
		if err == nil {
			c.mu.Lock()
			c.lastReachable = time.Now()
			c.mu.Unlock()
		}
		return nil, err
	})
	patience := time.NewTimer(storeCheckPatience)
	defer patience.Stop()
	select {
	case r := <-result:
		return r.Err == nil
	case <-patience.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		return time.Since(c.lastReachable) < storeCheckTimeout
	}
}
