package idempotency

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/parlor-games/parlor/internal/apierror"
	"github.com/parlor-games/parlor/internal/redisdb"
)

// Response is a response of HTTP.
type Response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// Options are the times of the service. Zero times have the defaults.
type Options struct {
	TTL   time.Duration // how long an answer is kept, 24 h
	Lease time.Duration // how long a run may take, 30 s
}

// Service keeps answers. It is safe for concurrent use.
type Service struct {
	store   *store
	keys    [][]byte // the first seals, all open
	options Options
}

// New makes the service. The keys are the signing keys; the first seals, all open.
func New(db *redisdb.DB, signingKeys [][]byte, o Options) *Service {
	if len(signingKeys) == 0 {
		panic("answers: there is no key")
	}
	if o.TTL == 0 {
		o.TTL = 24 * time.Hour
	}
	if o.Lease == 0 {
		o.Lease = 30 * time.Second
	}
	return &Service{store: &store{db}, keys: signingKeys, options: o}
}

// Execution is a request that runs under its key: end it with Finish or Release.
type Execution struct {
	service               *Service
	who, key, fingerprint string
	owner                 string
}

// Begin claims a request: who is calling, the Idempotency-Key and a digest of what is asked. It answers a Run for the first request, or
// the kept answer for one that came before. It refuses request_in_progress and idempotency_key_reused.
func (s *Service) Begin(ctx context.Context, who, key, fingerprint string) (*Execution, *Response, error) {
	r := &Execution{service: s, who: who, key: key, fingerprint: fingerprint, owner: rand.Text()}
	word, sealed, err := s.store.begin(ctx, r, s.options.Lease)
	if err != nil {
		return nil, nil, err
	}
	if word == "ok" {
		return r, nil, nil
	}
	answer, err := s.open(r, sealed)
	if err != nil {
		return nil, nil, err
	}
	return nil, answer, nil
}

// Finish keeps the answer. A run that took longer than its lease, while another has begun, keeps nothing.
func (r *Execution) Finish(ctx context.Context, a Response) error {
	sealed, err := r.service.seal(r, a)
	if err != nil {
		return err
	}
	return r.service.store.finish(ctx, r, sealed, r.service.options.TTL)
}

// Release forgets the request, so that its key can be used again: after what is not to be kept, a malformed request or a failure.
func (r *Execution) Release(ctx context.Context) error { return r.service.store.release(ctx, r) }

// digest names the key in the store.
func (r *Execution) digest() string {
	sum := sha256.Sum256([]byte(r.key))
	return hex.EncodeToString(sum[:])
}

// aead makes the cipher for one caller's key. The Idempotency-Key takes part in clear, so that the store alone, even with a signing key of
// another installation, opens nothing.
func aead(secret []byte, r *Execution) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, []byte(r.key), "parlor answer "+r.who, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *Service) seal(r *Execution, a Response) (string, error) {
	plain, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encode an answer: %w", err)
	}
	gcm, err := aead(s.keys[0], r)
	if err != nil {
		return "", fmt.Errorf("seal an answer: %w", err)
	}
	return string(gcm.Seal(nil, nil, plain, []byte(r.fingerprint))), nil
}

func (s *Service) open(r *Execution, sealed string) (*Response, error) {
	for _, secret := range s.keys {
		gcm, err := aead(secret, r)
		if err != nil {
			return nil, fmt.Errorf("open an answer: %w", err)
		}
		plain, err := gcm.Open(nil, nil, []byte(sealed), []byte(r.fingerprint))
		if err != nil {
			continue
		}
		var a Response
		if err := json.Unmarshal(plain, &a); err != nil {
			return nil, fmt.Errorf("decode an answer: %w", err)
		}
		return &a, nil
	}
	// The request was done, but how it was answered is lost with the signing key. To run it again would be to do it twice.
	return nil, apierror.OutcomeUnknown.WithReason("the first answer was sealed with a key that is gone; use a new Idempotency-Key")
}

var errStale = errors.New("another run of the request has begun")
