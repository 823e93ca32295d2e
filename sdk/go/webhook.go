package parlor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Webhook is a request of the service to a server that sleeps, in the form of Standard Webhooks
// (https://www.standardwebhooks.com).
type Webhook struct {
	// ID is the same in every attempt. Remember those that were handled: a webhook comes at least
	// once.
	ID string
	// Type is that of an event, or "webhook.test", or "webhook.gap": events are gone, read the rooms
	// anew.
	Type string
	// Time is when the event happened.
	Time time.Time
	// Data is an object: gameId, and of an event what Event returns.
	Data json.RawMessage
}

// Event returns the event that a webhook brings.
func (w Webhook) Event() (Event, error) {
	e := Event{}
	err := json.Unmarshal(w.Data, &e)
	e.Type, e.Time = w.Type, w.Time
	return e, err
}

// ErrWebhook is the error of a request that is not from the service, or too old. Answer it with
// 401.
var ErrWebhook = errors.New("parlor: not a webhook of this secret")

// webhookTolerance is how far the clocks may differ, and how old a request may be.
const webhookTolerance = 5 * time.Minute

// VerifyWebhook returns the webhook of a request, once its signature is by one of the secrets
// ("whsec_…") and its time is within 5 minutes. While a secret is rotated, give both. It returns
// ErrWebhook.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (Webhook, error) {
	return verifyWebhook(time.Now(), header, body, secrets)
}

func verifyWebhook(now time.Time, header http.Header, body []byte, secrets []string) (Webhook, error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return Webhook{}, fmt.Errorf("%w: it lacks headers", ErrWebhook)
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > webhookTolerance {
		return Webhook{}, fmt.Errorf("%w: its time is not now", ErrWebhook)
	}
	isSigned := false
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return Webhook{}, errors.New("parlor: a secret of a webhook is whsec_ and base64")
		}
		mac := hmac.New(sha256.New, key)
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		expected := mac.Sum(nil)
		for one := range strings.SplitSeq(header.Get("webhook-signature"), " ") {
			version, text, _ := strings.Cut(one, ",")
			signature, err := base64.StdEncoding.DecodeString(text)
			isSigned = isSigned || version == "v1" && err == nil && hmac.Equal(signature, expected)
		}
	}
	if !isSigned {
		return Webhook{}, fmt.Errorf("%w: no signature is right", ErrWebhook)
	}
	var content struct {
		Type      string          `json:"type"`
		Timestamp time.Time       `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &content); err != nil {
		return Webhook{}, fmt.Errorf("%w: %w", ErrWebhook, err)
	}
	return Webhook{id, content.Type, content.Timestamp, content.Data}, nil
}
