package handlers

import (
	"context"
	"crypto/sha256"
	_ "embed" // openapi.yaml and asyncapi.yaml
	"encoding/base64"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
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
