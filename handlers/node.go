package handlers

import (
	"crypto/sha256"
	_ "embed" // openapi.yaml and asyncapi.yaml
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/moneyhalt"
	"github.com/parlor-games/parlor/internal/ops/readiness"
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

// readyz tells an orchestrator whether this node can serve. A problem of one part of the store, or
// one that will come soon, does not change the status: a check in the body is not ok.
func (s *Server) readyz(*request) (response, error) {
	if s.draining.Load() {
		return response{}, apierror.Draining
	}
	report := s.Readiness.Report()
	checks := append(slices.Clone(report.Checks), s.haltChecks()...)
	if !report.Ready {
		return response{}, apierror.StoreUnavailable.WithMember("checks", checks)
	}
	return okResponse(struct {
		Status     string            `json:"status"`
		Durability string            `json:"durability"` // that holds now
		Mode       string            `json:"durabilityMode"`
		Checks     []readiness.Check `json:"checks"`
	}{"ready", s.KeptDurability(), s.Durability, checks}), nil
}

// durabilityHeaders are the values of the header Parlor-Durability, made once.
var durabilityHeaders = map[readiness.Promise][]string{
	readiness.KeepsMemory:  {string(readiness.KeepsMemory)},
	readiness.KeepsDisk:    {string(readiness.KeepsDisk)},
	readiness.KeepsReplica: {string(readiness.KeepsReplica)},
}

// KeptDurability returns what an acknowledged change survives now: "memory", "disk" or "replica".
func (s *Server) KeptDurability() string { return s.keptDurability()[0] }

// keptDurability returns the current durability of acknowledged changes, as the value of a header.
// It is the installation's mode, or a weaker one while the store cannot provide that.
func (s *Server) keptDurability() []string {
	if header := durabilityHeaders[s.Readiness.Kept()]; header != nil {
		return header
	}
	return durabilityHeaders[readiness.Promise(s.Durability)]
}

// haltChecks returns a check that is not ok for each game whose money is halted.
func (s *Server) haltChecks() []readiness.Check {
	if s.MoneyHalt == nil {
		return nil
	}
	var checks []readiness.Check
	for _, halt := range s.MoneyHalt.List() {
		name := "money"
		if halt.GameID != moneyhalt.AllGames {
			name += ":" + strconv.FormatInt(halt.GameID, 10)
		}
		checks = append(checks, readiness.Check{
			Name: name, Detail: "is stopped (" + halt.Cause + ") since " + halt.At.Format(time.RFC3339) + ": " + halt.Detail,
		})
	}
	return checks
}

// balancez tells a load balancer whether to send new connections. A node that drains or has lost
// its store returns 404 and keeps its open connections, so that its sockets get a close reason and
// can resume. A balancer would close the connections of a node that does not respond.
func (s *Server) balancez(*request) (response, error) {
	switch {
	case s.draining.Load():
		return response{}, apierror.RouteNotFound.WithReason("nothing new: this node is shutting down")
	case !s.Readiness.Report().Ready:
		return response{}, apierror.RouteNotFound.WithReason("nothing new: this node is without its store")
	}
	return okResponse(struct {
		Status string `json:"status"`
	}{"balance"}), nil
}
