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

// idempotencyMode says what an Idempotency-Key does for an operation.
type idempotencyMode uint8

const (
	noKey                idempotencyMode = iota // not a POST
	byReceipt                                   // the script that makes the change keeps the first answer
	byReceiptKeyRequired                        // the same, and a request without a key is refused
	byStoredResponse                            // the first answer is kept beside the operation, sealed
)

// canonicalOptions makes two requests that ask the same look the same, whatever their white space, order of members and way of
// writing an amount.
var canonicalOptions = json.JoinOptions(json.Deterministic(true), jsontext.ReorderRawObjects(true), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, l wallet.AmountInput) error {
		return e.WriteToken(jsontext.String(trimDecimal(string(l))))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, raw rawjson.RawMessage) error {
		if raw == nil {
			return e.WriteToken(jsontext.Null)
		}
		return e.WriteValue(jsontext.Value(raw))
	}),
)))

// trimDecimal writes a decimal without the zeros that say nothing: 2.50 is 2.5. Whether it is an amount at all is for its token to judge.
func trimDecimal(amount string) string {
	integer, fraction, _ := strings.Cut(amount, ".")
	if strings.ContainsAny(amount, "eE") {
		return amount
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return integer
	}
	return integer + "." + fraction
}

// claimKey reads the Idempotency-Key and digests what is asked, so that the same request can be told from another one.
// Where the first answer is kept beside the operation, it finds that answer, or claims the key for this run.
func (r *request) claimKey(in any) (first response, found bool, err error) {
	key, err := r.readIdempotencyKey(in)
	if err != nil || key == "" || r.route.idempotency != byStoredResponse {
		return response{}, false, err
	}
	execution, stored, err := r.server.Idempotency.Begin(r.ctx(), r.callerKey(), key, r.receipt.Fingerprint)
	if err != nil || stored == nil {
		r.execution = execution
		return response{}, false, err
	}
	return response{status: stored.Status, rawBody: stored.Body, contentType: stored.Header["Content-Type"], replayed: true}, true, nil
}

// storeTimeout bounds how long an answer may take to be kept. A client that went away does not shorten it.
const storeTimeout = 5 * time.Second

// storeResponse ends a run: what a later try must be told again is kept, everything else leaves the key free.
func (r *request) storeResponse(resp *response, body []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx()), storeTimeout)
	defer cancel()
	var err error
	if resp.isFinal() {
		err = r.execution.Finish(ctx, idempotency.Response{Status: resp.status, Header: http.Header{"Content-Type": resp.contentType}, Body: bytes.Clone(body)})
	} else {
		err = r.execution.Release(ctx)
	}
	if err != nil { // the answer stands; the same key would run the request anew, which does no harm
		r.logError(slog.LevelWarn, "answer not kept", err)
	}
}

// isFinal tells whether an answer is the last word under its key: a success, or a refusal that depends on state. What was malformed or
// failed is not.
func (r *response) isFinal() bool {
	switch r.status {
	case http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
		return !r.retryable
	default:
		return r.status < http.StatusBadRequest
	}
}

// readIdempotencyKey makes the receipt, where there is a key, and answers the key.
func (r *request) readIdempotencyKey(in any) (string, error) {
	header := r.Request.Header["Idempotency-Key"]
	if len(header) == 0 {
		if r.route.idempotency == byReceiptKeyRequired {
			return "", apierror.IdempotencyKeyRequired
		}
		return "", nil
	}
	if len(header) > 1 || !isVisibleASCII(header[0], 255) {
		return "", apierror.InvalidRequest.WithField("Idempotency-Key", "format", "must be one header of 1 to 255 visible ASCII characters")
	}
	body, err := json.Marshal(in, canonicalOptions)
	if err != nil {
		return "", err
	}
	keyDigest := sha256.Sum256([]byte(header[0]))
	fingerprint := sha256.New()
	path := strings.TrimPrefix(r.route.path, "/api/v1/game-session") // /join stands for both of its paths
	fingerprint.Write([]byte(r.route.method + "\x00" + path + "\x00"))
	for _, p := range r.Params {
		fingerprint.Write([]byte(p.Value + "\x00"))
	}
	fingerprint.Write(body)
	r.receipt = idempotency.Receipt{
		Key:         base64.RawURLEncoding.EncodeToString(keyDigest[:])[:22],
		Fingerprint: base64.RawURLEncoding.EncodeToString(fingerprint.Sum(nil))[:22],
	}
	return header[0], nil
}

// isVisibleASCII tells whether a text has 1 to longest visible ASCII characters.
func isVisibleASCII(text string, maxLen int) bool {
	if text == "" || len(text) > maxLen {
		return false
	}
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return true
}
