package handlers

import (
	"context"
	"crypto/sha256"
	_ "embed" // openapi.yaml
	"encoding/base64"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/fault"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the contract of the HTTP interface, as it is served.
func OpenAPI() []byte { return openAPI }

var openAPITag = func() string {
	sum := sha256.Sum256(openAPI)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}()

func (e *Edge) openapi(c *call) (reply, error) {
	c.Writer.Header()["Cache-Control"] = []string{"public, max-age=300"}
	if c.unchanged(openAPITag) {
		return reply{status: http.StatusNotModified, etag: openAPITag}, nil
	}
	return reply{status: http.StatusOK, raw: openAPI, media: mediaYAML, etag: openAPITag}, nil
}

func (e *Edge) healthz(*call) (reply, error) {
	return ok(struct {
		Status string `json:"status"`
	}{"ok"}), nil
}

// readyTimeout bounds how long the store may take to give a sign of life.
const readyTimeout = time.Second

func (e *Edge) readyz(c *call) (reply, error) {
	if e.draining.Load() {
		return reply{}, fault.Draining
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
