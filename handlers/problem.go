package handlers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/parlor-games/parlor/internal/apierror"
)

// problemBase is where the words of the vocabulary are explained. A type is an identifier first: it never changes.
const problemBase = "https://parlor.games/problems/"

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

// refusalOf is the one place where an error becomes what the caller may see: a refusal as it is, whatever else as
// internal, without a word of its text. failed tells that it was no refusal and belongs into the log.
func refusalOf(err error) (refusal *apierror.Error, failed bool) {
	if refusal, known := apierror.As(err); known {
		return refusal, false
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return apierror.PayloadTooLarge.WithReason("the body may have at most %d bytes", tooLarge.Limit), false
	}
	return apierror.Internal, true
}

// problemOf renders an error as the reply that the caller gets, and logs it where it is a failure.
func (c *call) problemOf(err error) reply {
	refusal, failed := refusalOf(err)
	switch {
	case failed && !errors.Is(err, context.Canceled):
		c.report(slog.LevelError, "request failed", err)
	case refusal.Status == http.StatusServiceUnavailable: // one line a second tells as much as thousands
		c.edge.outages.Do(func() { c.report(slog.LevelWarn, "request not served", err) })
	}
	if refusal.Status == http.StatusUnauthorized {
		c.Writer.Header()["Www-Authenticate"] = challenge
	}
	return reply{status: refusal.Status, media: mediaProblem, retryable: refusal.Retryable, body: newProblem(refusal, c.Request.URL.EscapedPath(), c.requestID)}
}

func newProblem(refusal *apierror.Error, instance, requestID string) *problem {
	detail := refusal.Detail
	if detail == "" {
		detail = refusal.Title + "."
	}
	return &problem{
		Type: problemBase + refusal.Code, Title: refusal.Title, Status: refusal.Status, Detail: detail,
		Instance: instance, Code: refusal.Code, RequestID: requestID, Retryable: refusal.Retryable,
		Errors: refusal.FieldErrors, Members: refusal.Members,
	}
}

func (c *call) report(level slog.Level, what string, err error) {
	c.edge.log.LogAttrs(c.ctx(), level, what, slog.Any("error", err), slog.String("method", c.Request.Method),
		slog.String("route", c.route.path), slog.String("requestId", c.requestID))
}

var challenge = []string{`Bearer realm="parlor"`}

// decodingFault says what is wrong with a body that did not decode, naming the field.
func decodingFault(err error) error {
	var semantic *json.SemanticError
	var syntactic *syntaxError
	switch {
	case errors.As(err, &semantic):
		field := fieldPath(semantic.JSONPointer)
		if refusal, ok := apierror.As(semantic.Err); ok {
			return refusal.WithField(field, "format", refusal.Detail)
		}
		code, message := mismatch(semantic)
		return apierror.InvalidRequest.WithField(field, code, message)
	case errors.As(err, &syntactic):
		return syntaxFault(syntactic)
	default:
		return err
	}
}
