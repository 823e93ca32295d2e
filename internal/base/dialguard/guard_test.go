package dialguard_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/parlor-games/parlor/internal/base/dialguard"
	"github.com/parlor-games/parlor/internal/base/dialguard/dialguardtest"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestPublicAddressesOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "172.32.0.1": true, "192.169.0.1": true, "100.128.0.1": true,
		"2606:4700:4700::1111": true, "2a00:1450:4001::1": true,

		"127.0.0.1": false, "127.8.8.8": false, "::1": false, // loopback
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, // link-local, with the data of clouds
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, // private
		"100.64.0.1": false, "100.127.255.255": false, // behind a provider's translation
		"fc00::1": false, "fd12:3456::1": false, "fec0::1": false, // local to a site
		"224.0.0.1": false, "239.1.1.1": false, "ff02::1": false, // multicast
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "2001:db8::1": false, "3fff::1": false, // documents
		"0.0.0.0": false, "0.1.2.3": false, "::": false, "255.255.255.255": false, "240.0.0.1": false,
		"168.63.129.16": false, "192.0.0.8": false, "198.18.0.1": false, "192.88.99.1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, // IPv4 as IPv6
		"::ffff:1.1.1.1":  true,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:0:1::": false, "::127.0.0.1": false, // translated
	} {
		if got := dialguard.IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
}

func TestANetworkAllowsItsAddressesButNoneByChance(t *testing.T) {
	for _, test := range []struct {
		networks, address string
		want              bool
	}{
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"10.0.0.0/8", "192.168.1.1", false},
		{"0.0.0.0/0", "127.0.0.1", false},
		{"0.0.0.0/0", "169.254.169.254", false},
		{"0.0.0.0/0", "168.63.129.16", false},
		{"0.0.0.0/0", "0.0.0.0", false},
		{"::/0", "::1", false},
		{"fd00::/8", "fd00:ec2::254", false},
		{"fd00::/8", "fd12::1", true},
		{"127.0.0.0/8", "127.0.0.1", true},
		{"169.254.7.0/24", "169.254.7.1", true},
		{"100.64.0.0/10", "100.100.100.200", false},
		{"192.0.0.0/8", "192.0.0.192", false},
		{"fd00::/8", "fd20:ce::254", false},
		{"::/0", "64:ff9b::a9fe:a9fe", false},
		{"::/0", "64:ff9b:1::7f00:1", false},
		{"::/0", "2002:7f00:1::", false},
		{"64:ff9b::/96", "64:ff9b::a00:1", true},
		{"127.0.0.0/8", "::ffff:127.0.0.1", true},
	} {
		guard := dialguard.Guard{Networks: []netip.Prefix{netip.MustParsePrefix(test.networks)}}
		if got := guard.Allows(netip.MustParseAddr(test.address)); got != test.want {
			t.Errorf("%s allows %s: %v", test.networks, test.address, got)
		}
	}
}

func TestAddressesOfThisMachineAreNamedOneByOne(t *testing.T) {
	for _, a := range testkit.Must(net.InterfaceAddrs())(t) {
		own := netip.MustParsePrefix(a.String())
		if own.Addr().IsLoopback() || own.Addr().IsLinkLocalUnicast() {
			continue
		}
		guard := dialguard.Guard{Networks: []netip.Prefix{own.Masked()}}
		if own.Bits() < own.Addr().BitLen() && guard.Allows(own.Addr()) {
			t.Errorf("%s allows this machine, %s", own.Masked(), own.Addr())
		}
		guard.Networks[0] = netip.PrefixFrom(own.Addr(), own.Addr().BitLen())
		if !guard.Allows(own.Addr()) {
			t.Errorf("%s is named and not allowed", own.Addr())
		}
	}
}

// A name that resolves to a public address at first and to this machine later is not connected to:
// the address counts at which the connection is made.
func TestANameThatChangesIsResolvedOncePerConnection(t *testing.T) {
	address := "93.184.216.34"
	resolver := dialguardtest.ResolverTo(func() string { return address })
	dialer := dialguard.Dialer(&net.Dialer{Resolver: resolver}, dialguard.Guard{}.Allows)
	if found := testkit.Must(resolver.LookupNetIP(t.Context(), "ip4", "hook.example"))(t); !dialguard.IsPublic(found[0]) {
		t.Fatalf("resolved to %v", found)
	}
	address = "127.0.0.1"
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if _, err := dialer.DialContext(t.Context(), "tcp", "hook.example:"+port); !errors.Is(err, dialguard.ErrNotAllowed) {
		t.Errorf("connected to this machine: %v", err)
	}
}
