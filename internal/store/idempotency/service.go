package idempotency

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// Response is an HTTP response.
type Response struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// Options are the times of the service. Zero means the default.
type Options struct {
	ResponseTTL    time.Duration // how long a response is stored; 24 h by default
	ExecutionLease time.Duration // how long an execution may take; 30 s by default
}

// Service stores responses. It is safe for concurrent use.
type Service struct {
	store   *store
	keys    atomic.Pointer[[][]byte] // the first encrypts, all decrypt
	options Options
}

// New returns a service. The keys are the signing keys: the first encrypts, all decrypt. New panics
// without a key.
func New(db *redisdb.DB, signingKeys [][]byte, o Options) *Service {
	if len(signingKeys) == 0 {
		panic("idempotency: there is no signing key")
	}
	if o.ResponseTTL == 0 {
		o.ResponseTTL = 24 * time.Hour
	}
	if o.ExecutionLease == 0 {
		o.ExecutionLease = 30 * time.Second
	}
	s := &Service{store: &store{db}, options: o}
	s.keys.Store(&signingKeys)
	return s
}

// SetSigningKeys replaces the keys. A stored response that was encrypted with a removed key can no
// longer be read: Begin returns outcome_unknown for it.
func (s *Service) SetSigningKeys(signingKeys [][]byte) {
	if len(signingKeys) == 0 {
		panic("idempotency: there is no signing key")
	}
	s.keys.Store(&signingKeys)
}

// Execution is a running request. It ends with Finish or Release.
type Execution struct {
	service     *Service
	callerID    string // who sends the request, as in the store's key
	key         string // the Idempotency-Key
	fingerprint string // digest of the request
	owner       string // random: tells this execution from others of the request
}

// Begin claims a request: the caller, the Idempotency-Key and a digest of the request. It returns
// an Execution for the first request, and the stored response for a later one. It returns
// request_in_progress, idempotency_key_reused, and outcome_unknown when the signing key that
// encrypted the response was removed.
func (s *Service) Begin(ctx context.Context, caller, key, fingerprint string) (*Execution, *Response, error) {
	e := &Execution{service: s, callerID: caller, key: key, fingerprint: fingerprint, owner: rand.Text()}
	encrypted, err := s.store.begin(ctx, e, s.options.ExecutionLease)
	if err != nil {
		return nil, nil, err
	}
	if encrypted == "" {
		return e, nil, nil
	}
	response, err := s.decrypt(e, encrypted)
	return nil, response, err
}

// Finish stores the response. An execution that took longer than its lease, while another one has
// begun, stores nothing and gets an error.
func (e *Execution) Finish(ctx context.Context, r Response) error {
	encrypted, err := e.service.encrypt(e, r)
	if err != nil {
		return err
	}
	return e.service.store.finish(ctx, e, encrypted, e.service.options.ResponseTTL)
}

// Release deletes the request, so that its key can be used again. It is called when the response
// must not be stored: after a malformed request or an internal error.
func (e *Execution) Release(ctx context.Context) error { return e.service.store.release(ctx, e) }

func (e *Execution) keyDigest() string { return secret.Digest(e.key) }

// IsKnown reports whether there is a record of the caller's key: then Begin returns no Execution.
func (s *Service) IsKnown(ctx context.Context, caller, key string) (bool, error) {
	return s.store.exists(ctx, &Execution{callerID: caller, key: key})
}

// newCipher returns the cipher for one request. Its key depends on the caller and on the
// Idempotency-Key itself, of which the store has only a digest. So the store's data and the signing
// key are not enough to decrypt a response.
func newCipher(signingKey []byte, e *Execution) (cipher.AEAD, error) {
	return secret.NewCipher(signingKey, []byte(e.key), "parlor answer "+e.callerID)
}

func (s *Service) encrypt(e *Execution, r Response) (string, error) {
	// A header without a value is not sent, and must not come back as one with an empty list of
	// values.
	r.Header = maps.Clone(r.Header)
	maps.DeleteFunc(r.Header, func(_ string, values []string) bool { return len(values) == 0 })
	plain, err := wire.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode a response: %w", err)
	}
	gcm, err := newCipher((*s.keys.Load())[0], e)
	if err != nil {
		return "", fmt.Errorf("encrypt a response: %w", err)
	}
	return string(gcm.Seal(nil, nil, plain, []byte(e.fingerprint))), nil
}

func (s *Service) decrypt(e *Execution, encrypted string) (*Response, error) {
	for _, signingKey := range *s.keys.Load() {
		gcm, err := newCipher(signingKey, e)
		if err != nil {
			return nil, fmt.Errorf("decrypt a response: %w", err)
		}
		plain, err := gcm.Open(nil, nil, []byte(encrypted), []byte(e.fingerprint))
		if err != nil {
			continue
		}
		var r Response
		if err := wire.Unmarshal(plain, &r); err != nil {
			return nil, fmt.Errorf("decode a response: %w", err)
		}
		return &r, nil
	}
	// The request was executed, but its response cannot be read. To execute it again would do it
	// twice.
	return nil, apierror.OutcomeUnknown.WithReason(
		"the first response was encrypted with a key that is gone; use a new Idempotency-Key")
}
