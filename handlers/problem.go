package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// problemTypePrefix and an error code make the type of a problem: the address of the page about the
// code, relative to the node, so that the type is the same behind every name of an installation.
const problemTypePrefix = "/docs/errors/"

// problem is the body of every error response, RFC 9457.
type problem struct {
	Type      string                `json:"type"` // "/docs/errors/<code>"
	Title     string                `json:"title"`
	Status    int                   `json:"status"`
	Detail    string                `json:"detail"`
	Instance  string                `json:"instance"` // path of the request; requestId names the occurrence
	Code      string                `json:"code"`
	RequestID string                `json:"requestId"`
	Retryable bool                  `json:"retryable"`
	Errors    []apierror.FieldError `json:"errors,omitempty"`
	Members   map[string]any        `json:",embed"`
}

// toAPIError returns the error that the caller may see. An error that is not an apierror.Error
// becomes internal, without its text. unexpected reports whether it must be logged.
func toAPIError(err error) (apiErr *apierror.Error, unexpected bool) {
	if apiErr, ok := apierror.As(err); ok {
		return apiErr, false
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return apierror.StoreUnavailable, false // storeTimeout is over
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return apierror.PayloadTooLarge.WithReason("the body may have at most %d bytes", tooLarge.Limit), false
	}
	return apierror.Internal, true
}

// problemResponse returns the response to an error. It is the only place that logs errors of
// requests: each unexpected one, but not that the client went away, and outages at most once a
// second.
func (r *request) problemResponse(err error) response {
	apiErr, unexpected := toAPIError(err)
	switch {
	case unexpected && !errors.Is(err, context.Canceled):
		r.logError(slog.LevelError, "request failed", err)
	case apiErr.Status == http.StatusServiceUnavailable && !apiErr.Is(apierror.NoServer):
		if r.route.rateLimitClass != "" { // not a check of a balancer
			r.server.countUnavailable(apiErr)
		}
		r.server.outageLogLimit.Do(func() { r.logError(slog.LevelWarn, "request not served", err) })
	}
	if apiErr.Status == http.StatusUnauthorized {
		r.Writer.Header()["Www-Authenticate"] = wwwAuthenticate
	}
	if seconds, ok := apiErr.ExtraMembers["retryAfterSeconds"].(int64); ok {
		r.Writer.Header()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
	return response{
		status: apiErr.Status, contentType: mediaProblem, retryable: apiErr.Retryable,
		body: newProblem(apiErr, r.Request.URL.EscapedPath(), r.requestID),
	}
}

// countUnavailable counts a call that the store did not serve.
func (s *Server) countUnavailable(e *apierror.Error) {
	if e.Is(apierror.StoreUnavailable) || e.Is(apierror.OutcomeUnknown) {
		s.unavailableCalls.Add(1)
	}
}

func newProblem(e *apierror.Error, instance, requestID string) *problem {
	detail := e.Detail
	if detail == "" {
		detail = e.Title + "."
	}
	return &problem{
		Type: problemTypePrefix + e.Code, Title: e.Title, Status: e.Status, Detail: detail,
		Instance: instance, Code: e.Code, RequestID: requestID, Retryable: e.Retryable,
		Errors: e.FieldErrors, Members: e.ExtraMembers,
	}
}

func (r *request) logError(level slog.Level, message string, err error) {
	r.server.log.LogAttrs(r.ctx(), level, message, slog.Any("error", err), slog.String("method", r.Request.Method),
		slog.String("route", r.route.path), slog.String("requestId", r.requestID))
}

var wwwAuthenticate = []string{`Bearer realm="parlor"`}
