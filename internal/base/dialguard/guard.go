package dialguard

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Guard decides which addresses may be connected to: public ones, and those of Networks. The zero
// Guard allows public addresses only.
type Guard struct {
	// Networks are allowed beside the public addresses. Loopback, link-local addresses, services with
	// the data of a cloud and addresses of this machine are allowed only by a network that names
	// exactly them: 0.0.0.0/0 does not allow 127.0.0.1, and 127.0.0.0/8 does.
	Networks []netip.Prefix
}

// Loopback has the addresses by which a machine reaches itself.
var Loopback = parsePrefixes("127.0.0.0/8", "::1/128")

// ErrNotAllowed is the error of a connection to an address that a guard does not allow.
var ErrNotAllowed = errors.New("the address is not public")

// Dialer makes d connect only to the addresses that allows accepts, such as Guard.Allows, and
// returns it. It replaces d.Control.
func Dialer(d *net.Dialer, allows func(netip.Addr) bool) *net.Dialer {
	d.Control = func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !allows(to.Addr()) {
			return ErrNotAllowed
		}
		return nil
	}
	return d
}

// Allows reports whether an address may be connected to. An IPv4 address in IPv6 form counts as
// IPv4.
func (g Guard) Allows(address netip.Addr) bool {
	return !isOfThisMachine(address.Unmap()) && IsPublic(address) || g.Names(address)
}

// Names reports whether Networks allow an address.
func (g Guard) Names(address netip.Addr) bool {
	address = address.Unmap()
	leastBits := 0
	for _, network := range neverByChance {
		if network.Contains(address) {
			leastBits = network.Bits()
		}
	}
	if leastBits == 0 && isOfThisMachine(address) {
		leastBits = address.BitLen()
	}
	return slices.ContainsFunc(g.Networks, func(n netip.Prefix) bool {
		return n.Contains(address) && n.Bits() >= leastBits
	})
}

// isOfThisMachine reports whether a network interface of this machine has an address.
func isOfThisMachine(address netip.Addr) bool {
	own, _ := net.InterfaceAddrs() // on an error there are none to compare with
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == address
	})
}

// neverByChance lists networks that a larger network does not allow.
var neverByChance = append(parsePrefixes(
	"169.254.0.0/16",     // link-local, with the data of most clouds
	"fe80::/10",          // link-local
	"fd00:ec2::254/128",  // data of AWS
	"fd20:ce::254/128",   // data of Google Cloud
	"192.0.0.192/32",     // data of Oracle Cloud
	"64:ff9b::/96",       // IPv4 addresses in translated form, RFC 6052
	"64:ff9b:1::/48",     // RFC 8215
	"2002::/16",          // IPv4 addresses in tunnels
	"100.100.100.200/32", // data of Alibaba Cloud
	"168.63.129.16/32",   // data of Azure, which looks public
	"0.0.0.0/32",         // this machine
	"::/128",             // this machine
), Loopback...)

// notPublic lists networks that may not be reachable over the internet (RFC 6890 and the IANA
// registries that it started). Those for which package netip has a method are not listed.
var notPublic = parsePrefixes(
	"0.0.0.0/8",        // this network
	"100.64.0.0/10",    // between a provider and its customers, RFC 6598
	"168.63.129.16/32", // the data of Azure
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"240.0.0.0/4",      // reserved, and the broadcast address
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

// IsPublic reports whether an address is that of one host on the internet. An IPv4 address in IPv6
// form counts as IPv4.
func IsPublic(address netip.Addr) bool {
	address = address.Unmap()
	holds := func(network netip.Prefix) bool { return network.Contains(address) }
	if address.Is6() {
		return address.Zone() == "" && publicIPv6.Contains(address) && !slices.ContainsFunc(notPublicIPv6, holds)
	}
	return address.IsGlobalUnicast() && !address.IsPrivate() && !slices.ContainsFunc(notPublic, holds)
}
