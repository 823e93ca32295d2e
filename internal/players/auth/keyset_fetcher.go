package auth

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/parlor-games/parlor/internal/base/dialguard"
)

const (
	keySetFetchTimeout   = 3 * time.Second
	maxKeySetHeaderBytes = 32 << 10
)

// keySetFetcher fetches key sets from public addresses. The settings of a game name the address, so
// it must not give access to, or information about, hosts that only this node can reach: the
// fetcher refuses addresses that are not public, and every failure takes the same time.
type keySetFetcher struct {
	client  *http.Client
	timeout time.Duration // of a fetch, and the time after which a failed one returns
}

// newKeySetFetcher returns a fetcher that connects by a dialer, which it guards.
// allowLoopback lets it connect to this machine, for development.
func newKeySetFetcher(dialer *net.Dialer, allowLoopback bool) keySetFetcher {
	var guard dialguard.Guard
	if allowLoopback {
		guard.Networks = dialguard.Loopback
	}
	return keySetFetcher{
		timeout: keySetFetchTimeout,
		client: &http.Client{
			// Requests are rare, so no connection is kept. No proxy and no redirect: the address is the one
			// in the settings.
			Transport: &http.Transport{
				DialContext:            dialguard.Dialer(dialer, guard.Allows).DialContext,
				DisableKeepAlives:      true,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				MaxResponseHeaderBytes: maxKeySetHeaderBytes,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// fetch returns the keys at an address. Every failure takes the fetcher's full time-out: a closed
// port, no response, or a response that is not a key set.
func (f keySetFetcher) fetch(ctx context.Context, address string) (keyfunc.Keyfunc, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	text, err := f.get(ctx, address)
	if err == nil {
		var keys keyfunc.Keyfunc
		if keys, err = parseKeySet(text); err == nil {
			return keys, nil
		}
	}
	<-ctx.Done()
	return nil, err
}

func (f keySetFetcher) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch a key set: status %d", response.StatusCode)
	}
	// One byte more than is allowed, so that parseKeySet sees that the set is too long.
	return io.ReadAll(io.LimitReader(response.Body, MaxKeySetBytes+1))
}
