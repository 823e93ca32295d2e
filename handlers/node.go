package handlers

import (
	"context"
	"crypto/sha256"
	_ "embed" // the contracts
	"encoding/base64"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
)

var (
	//go:embed openapi.yaml
	openAPI []byte
	//go:embed asyncapi.yaml
	asyncAPI []byte
)

// OpenAPI is the contract of the HTTP interface, as it is served.
func OpenAPI() []byte { return openAPI }

// AsyncAPI is the contract of the sockets, as it is served.
func AsyncAPI() []byte { return asyncAPI }

// serveContract answers a contract, or that the caller has it already.
func serveContract(text []byte) func(*call) (reply, error) {
	sum := sha256.Sum256(text)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return func(c *call) (reply, error) {
		c.Writer.Header()["Cache-Control"] = []string{"public, max-age=300"}
		if c.unchanged(tag) {
			return reply{status: http.StatusNotModified, etag: tag}, nil
		}
		return reply{status: http.StatusOK, raw: text, media: mediaYAML, etag: tag}, nil
	}
}

func (e *Server) healthz(*call) (reply, error) {
	return ok(struct {
		Status string `json:"status"`
	}{"ok"}), nil
}

// readyTimeout bounds how long the store may take to give a sign of life.
const readyTimeout = time.Second

func (e *Server) readyz(c *call) (reply, error) {
	if e.draining.Load() {
		return reply{}, apierror.Draining
	}
	ctx, cancel := context.WithTimeout(c.ctx(), readyTimeout)
	defer cancel()
	if err := e.Store.Ping(ctx); err != nil {
		return reply{}, err
	}
	return ok(struct {
		Status     string `json:"status"`
		Durability string `json:"durability"`
	}{"ready", e.Durability}), nil
}
