package parlor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"
)

// The vector that the libraries of Standard Webhooks publish.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTime      = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestWebhooksAreVerified(t *testing.T) {
	const other = "whsec_b3RoZXItb3RoZXItb3RoZXI="
	for name, c := range map[string]struct {
		signature string
		body      string
		secrets   []string
		late      time.Duration
		isRight   bool
	}{
		"as published":            {vectorSignature, vectorBody, []string{vectorSecret}, 0, true},
		"while rotating":          {"v1,AAAA v2,x " + vectorSignature, vectorBody, []string{other, vectorSecret}, 0, true},
		"almost too late":         {vectorSignature, vectorBody, []string{vectorSecret}, 5 * time.Minute, true},
		"too late":                {vectorSignature, vectorBody, []string{vectorSecret}, 301 * time.Second, false},
		"too early":               {vectorSignature, vectorBody, []string{vectorSecret}, -301 * time.Second, false},
		"of another secret":       {vectorSignature, vectorBody, []string{other}, 0, false},
		"changed":                 {vectorSignature, vectorBody + " ", []string{vectorSecret}, 0, false},
		"of another version":      {"v2" + vectorSignature[2:], vectorBody, []string{vectorSecret}, 0, false},
		"without a signature":     {"", vectorBody, []string{vectorSecret}, 0, false},
		"without a secret":        {vectorSignature, vectorBody, nil, 0, false},
		"an empty one and a wish": {"v1,", vectorBody, []string{vectorSecret}, 0, false},
	} {
		header := http.Header{}
		header.Set("webhook-id", vectorID)
		header.Set("webhook-timestamp", "1614265330")
		header.Set("webhook-signature", c.signature)
		w, err := verifyWebhook(time.Unix(vectorTime, 0).Add(c.late), header, []byte(c.body), c.secrets)
		if (err == nil) != c.isRight || err != nil && !errors.Is(err, ErrWebhook) || c.isRight && w.ID != vectorID {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
	if _, err := VerifyWebhook(http.Header{}, nil, vectorSecret); !errors.Is(err, ErrWebhook) {
		t.Errorf("without headers: %v", err)
	}
	header := http.Header{"Webhook-Id": {"x"}, "Webhook-Timestamp": {"1614265330"}}
	_, err := verifyWebhook(time.Unix(vectorTime, 0), header, nil, []string{"whsec_%"})
	if err == nil || errors.Is(err, ErrWebhook) {
		t.Errorf("a broken secret: %v", err)
	}
}

func TestAWebhookIsAnEvent(t *testing.T) {
	const body = `{"type":"room.started","timestamp":"2026-11-20T17:32:26.123Z","data":{"gameId":1,"feed":"e",` +
		`"position":"12-ab","roomId":"r","seq":7,"data":{"by":"host"}}}`
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte("id.1614265330." + body))
	header := http.Header{}
	header.Set("webhook-id", "id")
	header.Set("webhook-timestamp", "1614265330")
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	w, err := verifyWebhook(time.Unix(vectorTime, 0), header, []byte(body), []string{"whsec_a2V5"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.Event()
	var data struct{ By string }
	if err != nil || e.Decode(&data) != nil || data.By != "host" || e.Type != "room.started" || e.Position != "12-ab" ||
		e.RoomID != "r" || e.Seq != 7 || e.Time.Minute() != 32 {
		t.Errorf("got %+v, %v", e, err)
	}
}
