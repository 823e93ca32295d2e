package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address of the client, or the zero Addr if it is unknown. Behind
// trusted proxies it is the rightmost address of X-Forwarded-For that is not a trusted proxy,
// otherwise that of the connection. No other header counts, because a proxy that does not set a
// header passes on the client's.
//
// An entry may have a port. An entry that is not an address ends the search, and the proxy after it
// is the client, because no trusted proxy names an earlier one.
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

// cutLastEntry returns the last entry of a comma-separated list, the rest of the list, and whether
// the rest has entries.
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
