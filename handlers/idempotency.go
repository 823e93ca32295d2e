package handlers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/idempotency"
)

// idempotencyMode is the effect of the header Idempotency-Key on an operation.
type idempotencyMode uint8

const (
	keyIgnored           idempotencyMode = iota // the header is ignored: the operation is not a POST
	byReceipt                                   // the script that makes the change stores its first reply
	byReceiptKeyRequired                        // the same; without a key it is idempotency_key_required
	byReceiptAlways                             // as byReceipt; a key is never refused for being one too many
	neverStored                                 // the header is ignored: each try is another call of the game's server
	byStoredResponse                            // the first response is stored, encrypted
)

// canonicalOptions encode requests that mean the same alike: white space, the order of members and
// the spelling of amounts make no difference.
var canonicalOptions = json.JoinOptions(
	json.Deterministic(true), jsontext.ReorderRawObjects(true),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, a wallet.AmountInput) error {
		return e.WriteToken(jsontext.String(trimDecimal(string(a))))
	})),
)

// trimDecimal removes the trailing zeros of a fraction: 2.50 is 2.5. It does not check that the
// text is an amount.
func trimDecimal(amount string) string {
	if strings.ContainsAny(amount, "eE") {
		return amount
	}
	integer, fraction, _ := strings.Cut(amount, ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return integer
	}
	return integer + "." + fraction
}

// claimIdempotencyKey reads the Idempotency-Key and sets the receipt of the request. For
// byStoredResponse it also claims the key, or returns the response that is stored under it and
// true. Without a credential the key is ignored unless the input names an owner for it, because
// callers at the same address must not share a key.
func (r *request) claimIdempotencyKey(in any) (first response, found bool, err error) {
	if r.route.idempotency == neverStored {
		return response{}, false, nil
	}
	key, err := r.readIdempotencyKey()
	if err != nil || key == "" {
		return response{}, false, err
	}
	owner := r.caller.ActorID()
	if anonymous, ok := in.(keyedInput); ok && owner == "" {
		if owner, err = anonymous.keyOwner(r); err != nil {
			return response{}, false, err
		}
	}
	if owner == "" {
		return response{}, false, nil
	}
	fingerprint, err := r.fingerprint(in)
	if err != nil {
		return response{}, false, err
	}
	r.receipt = idempotency.Receipt{KeyDigest: shortDigest([]byte(key), keyDigits), Fingerprint: fingerprint}
	refuseNew, err := r.countKey()
	if err != nil {
		return response{}, false, err
	}
	if r.route.idempotency != byStoredResponse {
		r.receipt.RefuseNew = refuseNew
		return response{}, false, nil
	}
	if refuseNew != nil {
		if known, err := r.server.Idempotency.IsKnown(r.ctx(), owner, key); !known || err != nil {
			return response{}, false, cmp.Or(err, refuseNew)
		}
	}
	execution, stored, err := r.server.Idempotency.Begin(r.ctx(), owner, key, fingerprint)
	if err != nil || stored == nil {
		r.execution = execution
		return response{}, false, err
	}
	if confirmed, ok := in.(confirmedInput); ok {
		if err := confirmed.confirmReplay(r); err != nil {
			return response{}, false, err
		}
	}
	first = response{
		status: stored.Status, rawBody: stored.Body, contentType: stored.Header["Content-Type"],
		replayed: true,
	}
	return first, true, nil
}

// A keyedInput names in whose name the Idempotency-Key of a request without a credential counts; ""
// when it does not count.
type keyedInput interface {
	keyOwner(r *request) (string, error)
}

// A confirmedInput is asked before the stored response of the same request is sent again.
type confirmedInput interface{ confirmReplay(r *request) error }

// readIdempotencyKey returns the Idempotency-Key, or "" when there is none. It returns
// idempotency_key_required, invalid_request.
func (r *request) readIdempotencyKey() (string, error) {
	header := r.Request.Header["Idempotency-Key"]
	switch {
	case len(header) == 0 && r.route.idempotency == byReceiptKeyRequired:
		return "", apierror.IdempotencyKeyRequired
	case len(header) == 0:
		return "", nil
	case len(header) > 1 || !isVisibleASCII(header[0], 255):
		return "", apierror.InvalidRequest.WithField("Idempotency-Key", "format",
			"must be one header of 1 to 255 visible ASCII characters")
	default:
		return header[0], nil
	}
}

// fingerprint returns a digest of the operation, the path and the decoded body.
func (r *request) fingerprint(in any) (string, error) {
	body, err := json.Marshal(in, canonicalOptions)
	if err != nil {
		return "", err
	}
	path := strings.TrimPrefix(r.route.path, "/api/v1/game-session") // /join is one operation with two paths
	text := []byte(r.route.method + "\x00" + path + "\x00")
	for _, p := range r.Params {
		text = append(text, p.Value+"\x00"...)
	}
	return shortDigest(append(text, body...), fingerprintDigits), nil
}

// A digit is 6 bits. Both texts are short because every receipt holds them: a key only has to
// differ from the keys that the same caller used within a day, and a fingerprint from those of the
// same key.
const (
	keyDigits         = 16
	fingerprintDigits = 12
)

// shortDigest returns the first digits of the SHA-256 of a text in base64.
func shortDigest(text []byte, digits int) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])[:digits]
}

// storeResponse ends the execution: a final response is stored under the key, any other one frees
// the key. A client that goes away does not cancel it.
func (r *request) storeResponse(resp *response, body []byte) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.ctx()), r.startedAt.Add(storeResponseTimeout))
	defer cancel()
	var err error
	if resp.isFinal() {
		header := http.Header{"Content-Type": resp.contentType}
		err = r.execution.Finish(ctx, idempotency.Response{Status: resp.status, Header: header, Body: bytes.Clone(body)})
		if errors.Is(err, apierror.StoreFull) { // the request can run again, and not only after a while
			err = errors.Join(err, r.execution.Release(ctx))
		}
	} else {
		err = r.execution.Release(ctx)
	}
	if err != nil { // the response is sent all the same: running the request again under its key is harmless
		r.logError(slog.LevelWarn, "response not stored", err)
	}
}

// isFinal reports whether a response is the first one for its key: a success, or an error that
// depends on state. A malformed request and a failure are not.
func (resp *response) isFinal() bool {
	switch resp.status {
	case http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
		return !resp.retryable
	default:
		return resp.status < http.StatusBadRequest
	}
}

// isVisibleASCII reports whether a text has 1 to maxLen visible ASCII characters.
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
