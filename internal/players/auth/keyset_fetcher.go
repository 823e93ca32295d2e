package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/MicahParks/keyfunc/v3"
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

// newKeySetFetcher returns a fetcher that connects by a dialer, whose Control it sets.
// allowLoopback lets it connect to this machine, for development.
func newKeySetFetcher(dialer *net.Dialer, allowLoopback bool) keySetFetcher {
	// Control gets the address after its name was resolved, right before the connection is made: what
	// a name resolves to at another moment does not matter.
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !isPublic(to.Addr()) && (!allowLoopback || !to.Addr().Unmap().IsLoopback()) {
			return errNotPublic
		}
		return nil
	}
	return keySetFetcher{
		timeout: keySetFetchTimeout,
		client: &http.Client{
			// Requests are rare, so no connection is kept. No proxy and no redirect: the address is the one
			// in the settings.
			Transport: &http.Transport{
				DialContext:            dialer.DialContext,
				DisableKeepAlives:      true,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				MaxResponseHeaderBytes: maxKeySetHeaderBytes,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

var errNotPublic = errors.New("the address of the key set is not public")

// notPublic lists networks that may not be reachable over the internet (RFC 6890 and the IANA
// registries that it started). Those for which package netip has a method are not listed.
var notPublic = parsePrefixes(
	"0.0.0.0/8",       // this network
	"100.64.0.0/10",   // between a provider and its customers, RFC 6598
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and the broadcast address
)

// publicIPv6 has all addresses that are routed on the internet (RFC 4291), and notPublicIPv6 its
// parts for other purposes. Translated and tunnelled addresses are among those because they may
// contain any IPv4 address.
var (
	publicIPv6    = netip.MustParsePrefix("2000::/3")
	notPublicIPv6 = parsePrefixes(
		"2001::/23",     // protocol assignments, Teredo tunnels among them
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4 tunnels
		"3fff::/20",     // documentation
	)
)

func parsePrefixes(list ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(list))
	for i, text := range list {
		prefixes[i] = netip.MustParsePrefix(text)
	}
	return prefixes
}

// isPublic reports whether an address is that of one host on the internet. An IPv4 address in IPv6
// form counts as IPv4.
func isPublic(address netip.Addr) bool {
	address = address.Unmap()
	holds := func(network netip.Prefix) bool { return network.Contains(address) }
	if address.Is6() {
		return address.Zone() == "" && publicIPv6.Contains(address) && !slices.ContainsFunc(notPublicIPv6, holds)
	}
	return address.IsGlobalUnicast() && !address.IsPrivate() && !slices.ContainsFunc(notPublic, holds)
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
