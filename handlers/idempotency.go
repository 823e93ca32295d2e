package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	rawjson "encoding/json"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/fault"
	"github.com/parlor-games/parlor/wallet"
)

// keyed says what an Idempotency-Key does for an operation.
type keyed uint8

const (
	unkeyed         keyed = iota // not a POST
	receipt                      // the script that makes the change keeps the first answer
	receiptRequired              // the same, and a request without a key is refused
	answers                      // the first answer is kept beside the operation, sealed
)

// canonical makes two requests that ask the same look the same, whatever their white space, order of members and way of
// writing an amount.
var canonical = json.JoinOptions(json.Deterministic(true), jsontext.ReorderRawObjects(true), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, l wallet.Literal) error {
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
// Where the answer to the first request is kept beside the operation, it finds it.
func (c *call) recognise(in any) (first reply, found bool, err error) {
	if err := c.digest(in); err != nil || c.receipt.Key == "" || c.route.keyed != answers {
		return reply{}, false, err
	}
	return reply{}, false, nil
}

func (c *call) keep(*reply, *bytes.Buffer) {}
func (c *call) release()                   {}

func (c *call) digest(in any) error {
	given := c.Request.Header["Idempotency-Key"]
	if len(given) == 0 {
		if c.route.keyed == receiptRequired {
			return fault.IdempotencyKeyRequired
		}
		return nil
	}
	if len(given) > 1 || !isVisible(given[0], 255) {
		return fault.InvalidRequest.At("Idempotency-Key", "format", "must be one header of 1 to 255 visible ASCII characters")
	}
	body, err := json.Marshal(in, canonical)
	if err != nil {
		return err
	}
	key := sha256.Sum256([]byte(given[0]))
	what := sha256.New()
	what.Write([]byte(c.route.method + "\x00" + c.route.path + "\x00"))
	for _, p := range c.Params {
		what.Write([]byte(p.Value + "\x00"))
	}
	what.Write(body)
	c.receipt = wallet.Receipt{
		Key:         base64.RawURLEncoding.EncodeToString(key[:])[:22],
		Fingerprint: base64.RawURLEncoding.EncodeToString(what.Sum(nil))[:22],
	}
	return nil
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
