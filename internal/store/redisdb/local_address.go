package redisdb

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// LocalAddress returns the address of this machine on its way to the store; the zero Addr for a
// store inside this process or behind a Unix socket. It sends nothing to the store.
func (db *DB) LocalAddress(ctx context.Context) (netip.Addr, error) {
	if len(db.hosts) == 0 {
		return netip.Addr{}, nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", db.hosts[0]) // chooses a route, and sends no packet
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the way to the store: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}
