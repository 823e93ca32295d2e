// Package dialguardtest has a resolver of names for tests.
package dialguardtest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
)

// ResolverTo returns a resolver for which every name has the IPv4 address that address returns.
func ResolverTo(address func() string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerNames(server, netip.MustParseAddr(address()))
		return client, nil
	}}
}

// answerNames serves the questions on a connection (RFC 1035, 4.2.2): every IPv4 address is the one
// given, and there is nothing else.
func answerNames(conn net.Conn, address netip.Addr) {
	defer func() { _ = conn.Close() }()
	const header, typeA = 12, 1
	for {
		length := make([]byte, 2)
		if _, err := io.ReadFull(conn, length); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		end := header
		for query[end] != 0 {
			end += 1 + int(query[end])
		}
		kind := binary.BigEndian.Uint16(query[end+1:])
		reply := append([]byte{}, query[:end+5]...)
		reply[2], reply[3] = 0x81, 0x80 // a response without an error
		copy(reply[6:header], make([]byte, header-6))
		if kind == typeA {
			reply[7] = 1
			reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 0, 0, 4) // the name of the question
			reply = append(reply, address.AsSlice()...)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}
