package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	rawjson "encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/idempotency"
	"github.com/parlor-games/parlor/internal/wallet"
)

// keyed says what an Idempotency-Key does for an operation.
type keyed uint8

const (
	unkeyed         keyed = iota // not a POST
	receipt                      // the script that makes the change keeps the first answer
	receiptRequired              // the same, and a request without a key is refused
	answered                     // the first answer is kept beside the operation, sealed
)

// canonical makes two requests that ask the same look the same, whatever their white space, order of members and way of
// writing an amount.
var canonical = json.JoinOptions(json.Deterministic(true), jsontext.ReorderRawObjects(true), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, l wallet.AmountInput) error {
		return e.WriteToken(jsontext.String(plain(string(l))))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, raw rawjson.RawMessage) error {
		if raw == nil {
			return e.WriteToken(jsontext.Null)
		}
		return e.WriteValue(jsontext.Value(raw))
	}),
)))

// plain writes a decimal without the zeros that say nothing: 2.50 is 2.5. Whether it is an amount at all is for its token to judge.
func plain(amount string) string {
	whole, fraction, _ := strings.Cut(amount, ".")
	if strings.ContainsAny(amount, "eE") {
		return amount
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// recognise reads the Idempotency-Key and digests what is asked, so that the same request can be told from another one.
// Where the first answer is kept beside the operation, it finds that answer, or claims the key for this run.
func (c *call) recognise(in any) (first reply, found bool, err error) {
	key, err := c.digest(in)
	if err != nil || key == "" || c.route.keyed != answered {
		return reply{}, false, err
	}
	run, kept, err := c.edge.Idempotency.Begin(c.ctx(), c.who(), key, c.receipt.Fingerprint)
	if err != nil || kept == nil {
		c.run = run
		return reply{}, false, err
	}
	return reply{status: kept.Status, raw: kept.Body, media: kept.Header["Content-Type"], replayed: true}, true, nil
}

// settleTimeout bounds how long an answer may take to be kept. A client that went away does not shorten it.
const settleTimeout = 5 * time.Second

// settle ends a run: what a later try must be told again is kept, everything else leaves the key free.
func (c *call) settle(r *reply, body []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), settleTimeout)
	defer cancel()
	var err error
	if r.lasting() {
		err = c.run.Finish(ctx, idempotency.Response{Status: r.status, Header: http.Header{"Content-Type": r.media}, Body: bytes.Clone(body)})
	} else {
		err = c.run.Release(ctx)
	}
	if err != nil { // the answer stands; the same key would run the request anew, which does no harm
		c.report(slog.LevelWarn, "answer not kept", err)
	}
}

// lasting tells whether an answer is the last word under its key: a success, or a refusal that depends on state. What was malformed or
// failed is not.
func (r *reply) lasting() bool {
	switch r.status {
	case http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
		return !r.retryable
	default:
		return r.status < http.StatusBadRequest
	}
}

// digest makes the receipt, where there is a key, and answers the key.
func (c *call) digest(in any) (string, error) {
	given := c.Request.Header["Idempotency-Key"]
	if len(given) == 0 {
		if c.route.keyed == receiptRequired {
			return "", apierror.IdempotencyKeyRequired
		}
		return "", nil
	}
	if len(given) > 1 || !isVisible(given[0], 255) {
		return "", apierror.InvalidRequest.WithField("Idempotency-Key", "format", "must be one header of 1 to 255 visible ASCII characters")
	}
	body, err := json.Marshal(in, canonical)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(given[0]))
	what := sha256.New()
	path := strings.TrimPrefix(c.route.path, "/api/v1/game-session") // /join stands for both of its paths
	what.Write([]byte(c.route.method + "\x00" + path + "\x00"))
	for _, p := range c.Params {
		what.Write([]byte(p.Value + "\x00"))
	}
	what.Write(body)
	c.receipt = idempotency.Receipt{
		Key:         base64.RawURLEncoding.EncodeToString(key[:])[:22],
		Fingerprint: base64.RawURLEncoding.EncodeToString(what.Sum(nil))[:22],
	}
	return given[0], nil
}

// isVisible tells whether a text has 1 to longest visible ASCII characters.
func isVisible(text string, longest int) bool {
	if text == "" || len(text) > longest {
		return false
	}
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return true
}
