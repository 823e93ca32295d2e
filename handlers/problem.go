package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/parlor-games/parlor/internal/apierror"
)

// problemTypePrefix is where the words of the vocabulary are explained. A type is an identifier first: it never changes.
const problemTypePrefix = "https://parlor.games/problems/"

// problem is the body of every refusal and failure, RFC 9457.
type problem struct {
	Type      string                `json:"type"`
	Title     string                `json:"title"`
	Status    int                   `json:"status"`
	Detail    string                `json:"detail"`
	Instance  string                `json:"instance"` // the path that was asked for; requestId names the occurrence
	Code      string                `json:"code"`
	RequestID string                `json:"requestId"`
	Retryable bool                  `json:"retryable"`
	Errors    []apierror.FieldError `json:"errors,omitempty"`
	Members   map[string]any        `json:",embed"`
}

// toAPIError is the one place where an error becomes what the caller may see: a refusal as it is, whatever else as
// internal, without a word of its text. failed tells that it was no refusal and belongs into the log.
func toAPIError(err error) (apiErr *apierror.Error, internal bool) {
	if apiErr, known := apierror.As(err); known {
		return apiErr, false
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return apierror.PayloadTooLarge.WithReason("the body may have at most %d bytes", tooLarge.Limit), false
	}
	return apierror.Internal, true
}

// problemResponse renders an error as the reply that the caller gets, and logs it where it is a failure.
func (r *request) problemResponse(err error) response {
	apiErr, internal := toAPIError(err)
	switch {
	case internal && !errors.Is(err, context.Canceled):
		r.logError(slog.LevelError, "request failed", err)
	case apiErr.Status == http.StatusServiceUnavailable: // one line a second tells as much as thousands
		r.server.outageLog.Do(func() { r.logError(slog.LevelWarn, "request not served", err) })
	}
	if apiErr.Status == http.StatusUnauthorized {
		r.Writer.Header()["Www-Authenticate"] = wwwAuthenticate
	}
	return response{status: apiErr.Status, contentType: mediaProblem, retryable: apiErr.Retryable, body: newProblem(apiErr, r.Request.URL.EscapedPath(), r.requestID)}
}

func newProblem(e *apierror.Error, instance, requestID string) *problem {
	detail := e.Detail
	if detail == "" {
		detail = e.Title + "."
	}
	return &problem{
		Type: problemTypePrefix + e.Code, Title: e.Title, Status: e.Status, Detail: detail,
		Instance: instance, Code: e.Code, RequestID: requestID, Retryable: e.Retryable,
		Errors: e.FieldErrors, Members: e.Members,
	}
}

func (r *request) logError(level slog.Level, message string, err error) {
	r.server.log.LogAttrs(r.ctx(), level, message, slog.Any("error", err), slog.String("method", r.Request.Method),
		slog.String("route", r.route.path), slog.String("requestId", r.requestID))
}

var wwwAuthenticate = []string{`Bearer realm="parlor"`}

// fromDecodeError says what is wrong with a body that did not decode, naming the field.
func fromDecodeError(err error) error {
	var semantic *json.SemanticError
	var syntactic *syntaxError
	switch {
	case errors.As(err, &semantic):
		field := fieldPath(semantic.JSONPointer)
		if apiErr, ok := apierror.As(semantic.Err); ok {
			return apiErr.WithField(field, "format", apiErr.Detail)
		}
		code, message := describeMismatch(semantic)
		return apierror.InvalidRequest.WithField(field, code, message)
	case errors.As(err, &syntactic):
		return fromSyntaxError(syntactic)
	default:
		return err
	}
}
