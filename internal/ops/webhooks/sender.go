package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/wire"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	requestTimeout   = 10 * time.Second
	idleTimeout      = 90 * time.Second // of a connection that is kept
	maxHeaderBytes   = 16 << 10         // of a response
	maxResponseBytes = 4 << 10          // that are read of a response
	shownBytes       = 200              // that an Attempt has of it
	maxBodyBytes     = 64 << 10
)

// message is one event on its way to a target.
type message struct {
	id   string // webhook-id
	kind string // type of the event
	room string // "" for none
	at   time.Time
	body []byte
	err  error // why there is no body
}

// outcome is what came of a request.
type outcome struct {
	status   int
	took     time.Duration
	err      error
	response string
}

var errTooLong = errors.New("the message is longer than 64 KiB")

func (o outcome) isDelivered() bool { return o.err == nil }

func (o outcome) attempt(m message, at time.Time) Attempt {
	a := Attempt{
		At: at.UTC().Truncate(time.Millisecond), State: Delivered, MessageID: m.id, Type: m.kind, Room: m.room,
		Status: o.status, Milliseconds: o.took.Milliseconds(), Response: o.response,
	}
	if o.err != nil {
		text := o.err.Error()
		a.State, a.Error = Failed, &text
	}
	return a
}

// sender sends messages to addresses that the installation allows.
type sender struct{ https, http *http.Client }

// newSender returns a sender that connects as a dialer does. allows returns which addresses may be
// connected to by a scheme.
func newSender(dialer *net.Dialer, allows func(scheme string) func(netip.Addr) bool) *sender {
	client := func(scheme string) *http.Client {
		d := *dialer
		return &http.Client{
			// No proxy, and a redirect is a failure: the address is the one of the webhook.
			Transport: &http.Transport{
				DialContext:            dialguard.Dialer(&d, allows(scheme)).DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    requestTimeout,
				MaxIdleConns:           4 * maxAtOnce,
				MaxIdleConnsPerHost:    maxOfTarget,
				IdleConnTimeout:        idleTimeout,
				MaxResponseHeaderBytes: maxHeaderBytes,
				DisableCompression:     true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &sender{https: client("https"), http: client("http")}
}

func (s *sender) closeIdle() {
	s.https.CloseIdleConnections()
	s.http.CloseIdleConnections()
}

// send sends a message and waits for the response. now is the time that is signed.
func (s *sender) send(ctx context.Context, address string, signs signer, m message, now time.Time) outcome {
	if m.err != nil {
		return outcome{err: m.err}
	}
	signature, err := signs.sign(m.id, now, m.body)
	if err != nil {
		return outcome{err: err}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o := s.post(ctx, address, m, signature, now)
	o.took = time.Since(began)
	return o
}

func (s *sender) post(ctx context.Context, address string, m message, signature string, now time.Time) outcome {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.body))
	if err != nil {
		return outcome{err: errors.New("the address cannot be used")}
	}
	request.Header["Content-Type"] = jsonContentType
	request.Header["User-Agent"] = userAgent
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	client := s.https
	if request.URL.Scheme == "http" {
		client = s.http
	}
	response, err := client.Do(request)
	if err != nil {
		return outcome{err: describe(err)}
	}
	defer func() { _ = response.Body.Close() }()
	// Read to its end, so that the connection can be used again, or to a bound. What cannot be read
	// changes nothing: the status has come.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	o := outcome{
		status: response.StatusCode, response: strings.ToValidUTF8(string(text[:min(len(text), shownBytes)]), "\uFFFD"),
	}
	if o.status < http.StatusOK || o.status >= http.StatusMultipleChoices {
		o.err = fmt.Errorf("the response has the status %d", o.status)
	}
	return o
}

var (
	jsonContentType = []string{"application/json"}
	userAgent       = []string{"Parlor-Webhooks"}
)

// describe returns an error of a request without its address, which may have a secret of its owner.
func describe(err error) error {
	switch {
	case errors.Is(err, dialguard.ErrNotAllowed):
		return dialguard.ErrNotAllowed
	case errors.Is(err, context.DeadlineExceeded):
		return errTimeout
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	// It may have what came instead of a response.
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	return fmt.Errorf("no response: %s", strings.ToValidUTF8(text[:min(len(text), shownBytes)], ""))
}

var errTimeout = errors.New("no response within 10 s")

// appendMessage appends the body of a message: {"type","timestamp","data"}. data is a JSON object.
func appendMessage(b []byte, kind string, at time.Time, data []byte) []byte {
	b = append(append(append(b, `{"type":"`...), kind...), `","timestamp":`...)
	b = append(wire.AppendTime(b, at), `,"data":`...)
	return append(append(b, data...), '}')
}

func testBody(at time.Time, webhookID string) []byte {
	return appendMessage(nil, "webhook.test", at, append(wire.AppendString([]byte(`{"webhookId":`), webhookID), '}'))
}
