package handlers

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/wallet"
)

// response is what a handler answers: a status and a value that becomes JSON.
type response struct {
	status      int
	body        any    // encoded as JSON, unless raw is set; nil for no body
	rawBody     []byte // a body that stands already
	contentType []string
	etag        string
	replayed    bool // the first answer to this Idempotency-Key, again
	retryable   bool // a refusal that is not kept under its Idempotency-Key
	upgraded    bool // the connection is a socket now: there is nothing to write
}

func ok(body any) response      { return response{status: http.StatusOK, body: body} }
func created(body any) response { return response{status: http.StatusCreated, body: body} }

// withReplayed marks the reply as the first answer to its Idempotency-Key, given once more.
func (r response) withReplayed(replayed bool) response {
	r.replayed = replayed
	return r
}

// page is the answer of every list.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"` // null at the end
}

// newPage wraps a list that is ordered by id; next is the last id of the page, or 0 at the end.
func newPage[T any](items []T, next int64) page[T] {
	p := page[T]{Items: items}
	if next != 0 {
		p.NextCursor = new(strconv.FormatInt(next, 10))
	}
	return p
}

// Header values that are shared by all answers; nobody changes them.
var (
	mediaJSON    = []string{"application/json"}
	mediaProblem = []string{"application/problem+json"}
	mediaYAML    = []string{"application/yaml"}
	valueNoSniff = []string{"nosniff"}
	valueNoStore = []string{"no-store"}
	valueTrue    = []string{"true"}
	valueClose   = []string{"close"}
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func getBuffer() *bytes.Buffer { return buffers.Get().(*bytes.Buffer) }

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxBodyBytes {
		b.Reset()
		buffers.Put(b)
	}
}

// responseOptions is how values become JSON: times in UTC with milliseconds, always, and amounts, which are in most answers, without a detour.
var responseOptions = json.JoinOptions(json.Deterministic(true), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		b := append(e.AvailableBuffer(), '"')
		b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
		return e.WriteValue(append(b, '"'))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, a wallet.Amount) error {
		return e.WriteValue(a.Units.AppendDecimal(e.AvailableBuffer(), a.Decimals))
	}),
)))

type jsonAppender interface {
	AppendJSON(b []byte) []byte
}

// encode renders the body of the reply into a buffer that the caller gives back.
func (r *response) encode(buffer *bytes.Buffer) error {
	if r.rawBody != nil {
		_, err := buffer.Write(r.rawBody)
		return err
	}
	switch body := r.body.(type) {
	case nil:
		return nil
	case jsonAppender: // rooms are most of the traffic and write themselves
		_, err := buffer.Write(body.AppendJSON(buffer.AvailableBuffer()))
		return err
	}
	return json.MarshalWrite(buffer, r.body, responseOptions)
}

// write sends the reply, in one piece and with its length.
func (r *request) write(resp *response, body []byte) {
	h := r.Writer.Header()
	if r.server.draining.Load() {
		h["Connection"] = valueClose
	}
	if resp.replayed {
		h["Idempotent-Replayed"] = valueTrue
	}
	if resp.etag != "" {
		h["Etag"] = []string{resp.etag}
	} else if h["Cache-Control"] == nil {
		h["Cache-Control"] = valueNoStore
	}
	if len(body) > 0 {
		contentType := resp.contentType
		if contentType == nil {
			contentType = mediaJSON
		}
		h["Content-Type"] = contentType
	}
	if resp.status != http.StatusNoContent && resp.status != http.StatusNotModified {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	r.Writer.WriteHeader(resp.status)
	if len(body) == 0 {
		r.Writer.WriteHeaderNow()
		return
	}
	_, _ = r.Writer.Write(body) // a client that went away is nobody's fault
}

// hasVersion tells whether the caller has this version already, RFC 9110 13.1.2.
func (r *request) hasVersion(etag string) bool {
	for _, header := range r.Request.Header["If-None-Match"] {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == etag || candidate == "*" {
				return true
			}
		}
	}
	return false
}
