package main

import (
	"context"
	"net"
	"net/netip"
)

// ownAddress returns the address, host:port, at which other nodes reach this one: that of the
// settings, the one that it listens at, or with its port that of the interface on the way to the
// store. It returns "" when there is none.
func (n *node) ownAddress(ctx context.Context, listen net.Addr) string {
	if n.settings.AdvertiseAddress != "" {
		return n.settings.AdvertiseAddress
	}
	address, err := netip.ParseAddrPort(listen.String())
	if err != nil {
		return ""
	}
	if !address.Addr().IsUnspecified() {
		return address.String()
	}
	local, err := n.db.LocalAddress(ctx)
	if err != nil || !local.IsValid() {
		return ""
	}
	return netip.AddrPortFrom(local, address.Port()).String()
}
