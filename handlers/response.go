package handlers

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// response is the result of a handler: a status and a value that is encoded as JSON.
type response struct {
	status      int
	body        any    // encoded as JSON, unless rawBody is set; nil for no body
	rawBody     []byte // a body that is encoded already
	contentType []string
	etag        string
	replayed    bool // it is the first response to the Idempotency-Key, sent again
	retryable   bool // an error that is not stored under the Idempotency-Key
	written     bool // by the handler; or the connection is a WebSocket now
}

func okResponse(body any) response      { return response{status: http.StatusOK, body: body} }
func createdResponse(body any) response { return response{status: http.StatusCreated, body: body} }

// withReplayed returns the response with the mark that it was sent before under its
// Idempotency-Key.
func (resp response) withReplayed(replayed bool) response {
	resp.replayed = replayed
	return resp
}

// page is the body of every list.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"` // null at the end
}

// newPage returns a page of a list that is ordered by id. next is the last id of the page, or 0 at
// the end.
func newPage[T any](items []T, next int64) page[T] {
	p := page[T]{Items: items}
	if next != 0 {
		p.NextCursor = new(strconv.FormatInt(next, 10))
	}
	return p
}

// Header values that all responses share. They must not be changed.
var (
	mediaJSON     = []string{"application/json"}
	mediaProblem  = []string{"application/problem+json"}
	mediaYAML     = []string{"application/yaml"}
	headerNoStore = []string{"no-store"}
	headerTrue    = []string{"true"}
	headerClose   = []string{"close"}
)

var bufferPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func getBuffer() *bytes.Buffer { return bufferPool.Get().(*bytes.Buffer) }

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= maxBodyBytes {
		b.Reset()
		bufferPool.Put(b)
	}
}

type jsonAppender interface {
	AppendJSON(b []byte) []byte
}

// encode writes the body to a buffer.
func (resp *response) encode(buffer *bytes.Buffer) error {
	if resp.rawBody != nil {
		_, err := buffer.Write(resp.rawBody)
		return err
	}
	switch body := resp.body.(type) {
	case nil:
		return nil
	case jsonAppender: // rooms are most of the traffic and encode themselves
		_, err := buffer.Write(body.AppendJSON(buffer.AvailableBuffer()))
		return err
	}
	return json.MarshalWrite(buffer, resp.body, wire.Options())
}

// maxCountedBody is the size of a body of which net/http sets Content-Length by itself, in bytes.
const maxCountedBody = 2048

// write sends the response with its length.
func (r *request) write(resp *response, body []byte) {
	h := r.Writer.Header()
	if r.server.draining.Load() {
		h["Connection"] = headerClose
	}
	if resp.replayed {
		h["Idempotent-Replayed"] = headerTrue
	}
	if resp.etag != "" {
		r.setHeader("Etag", resp.etag)
	} else if h["Cache-Control"] == nil {
		h["Cache-Control"] = headerNoStore
	}
	if len(body) > 0 {
		contentType := resp.contentType
		if contentType == nil {
			contentType = mediaJSON
		}
		h["Content-Type"] = contentType
	}
	hasLength := len(body) > 0 && len(body) <= maxCountedBody
	if !hasLength && resp.status != http.StatusNoContent && resp.status != http.StatusNotModified {
		r.setHeader("Content-Length", strconv.Itoa(len(body)))
	}
	r.Writer.WriteHeader(resp.status)
	if len(body) == 0 {
		r.Writer.WriteHeaderNow()
		return
	}
	_, _ = r.Writer.Write(body) // fails only when the client went away
}

// hasVersion reports whether the client has the version with this ETag already, RFC 9110 13.1.2.
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
