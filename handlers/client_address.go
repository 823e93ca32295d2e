package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address of the client, the zero Addr when there is none. It is that of
// the connection, or what trusted proxies wrote into X-Forwarded-For, each at its end: the
// rightmost address that is not a trusted proxy. No other header counts, because a proxy that does
// not set it passes on what the client has sent.
//
// An entry may have a port. An entry that is no address ends the search: the proxy after it counts,
// since nobody trusted says who was before it.
func clientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := connection.Addr().Unmap()
	isTrusted := func() bool {
		return slices.ContainsFunc(trusted, func(network netip.Prefix) bool { return network.Contains(address) })
	}
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			if !isTrusted() {
				return address
			}
			var entry string
			entry, rest, more = cutLastEntry(rest)
			forwarded, ok := parseForwarded(entry)
			if !ok {
				return address
			}
			address = forwarded
		}
	}
	return address
}

// cutLastEntry returns the last entry of a comma-separated list, what is before it, and whether
// that has entries.
func cutLastEntry(list string) (entry, rest string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return list, "", false
	}
	return list[i+1:], list[:i], true
}

// parseForwarded returns the address of an entry of X-Forwarded-For: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1] or [2001:db8::1]:80.
func parseForwarded(entry string) (netip.Addr, bool) {
	entry = strings.TrimSpace(entry)
	address, err := netip.ParseAddr(entry)
	if err != nil {
		inner := strings.TrimSuffix(strings.TrimPrefix(entry, "["), "]")
		if len(inner) == len(entry)-2 {
			address, err = netip.ParseAddr(inner)
		} else {
			var withPort netip.AddrPort
			withPort, err = netip.ParseAddrPort(entry)
			address = withPort.Addr()
		}
	}
	return address.Unmap().WithZone(""), err == nil
}
