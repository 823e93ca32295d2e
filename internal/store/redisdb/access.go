package redisdb

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// access has the credentials and certificates of a connection. They may change while the store is
// open, and apply to connections made afterwards.
type access struct {
	user, password string
	tls            *tls.Config // nil without TLS; it names no server unless there is only one

	fingerprint [sha256.Size]byte // differs when any of it does, the files of TLS included
}

// newAccess returns an access that can be replaced. files are the contents of the files of TLS.
func newAccess(a access, files ...[]byte) *atomic.Pointer[access] {
	digest := sha256.New()
	for _, part := range append([][]byte{[]byte(a.user), []byte(a.password)}, files...) {
		_, _ = fmt.Fprintf(digest, "%d:%s", len(part), part)
	}
	a.fingerprint = [sha256.Size]byte(digest.Sum(nil))
	held := new(atomic.Pointer[access])
	held.Store(&a)
	return held
}

func credentialsOf(held *atomic.Pointer[access]) func() (user, password string) {
	return func() (user, password string) {
		a := held.Load()
		return a.user, a.password
	}
}

// credentialsFor returns the user and the password with which a client of the store signs in now.
func credentialsFor(o *redis.Options) (user, password string) {
	if o.CredentialsProvider != nil {
		return o.CredentialsProvider()
	}
	return o.Username, o.Password
}

// dialerOf returns the dialer of a store with TLS, or nil for one without. The dialer of go-redis
// does the same but cannot change its certificates.
func dialerOf(held *atomic.Pointer[access]) func(ctx context.Context, network, address string) (net.Conn, error) {
	if held.Load().tls == nil {
		return nil
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: held.Load().tls}
		return d.DialContext(ctx, network, address)
	}
}

// ErrOtherStore is returned by SetAccess for the URL of another store.
var ErrOtherStore = errors.New("the address is that of another store")

// SetAccess takes the user, the password and the files of TLS from the URL, for every connection
// that is made from now on; those that are open stay. What differs is tried first: the store must
// accept it. The user and password of Sentinels cannot change, and neither can anything else of the
// URL: it returns ErrOtherStore. After an error nothing has changed.
func (db *DB) SetAccess(ctx context.Context, rawURL string) error {
	if db.kind == KindEmbedded {
		return nil
	}
	other, err := Open(rawURL)
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	if other.target != db.target {
		return ErrOtherStore
	}
	next := other.access.Load()
	if next.fingerprint == db.access.Load().fingerprint {
		return nil
	}
	if err := other.Client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("the store does not accept it: %w", err)
	}
	db.access.Store(next)
	return nil
}
