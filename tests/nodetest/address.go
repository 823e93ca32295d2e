package nodetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports of FreeAddress are below those that the system gives to clients and to listeners
// without a port of their own, so that none of these gets one first.
const (
	firstFreePort = 10_000
	freePorts     = 20_000
)

// givenPorts has the ports that FreeAddress has returned in this process.
var givenPorts sync.Map

// FreeAddress returns an address on 127.0.0.1 for a server that the test starts. Nobody listens at
// its port on any address of this machine, and no other call returns it.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := firstFreePort + rand.IntN(freePorts)
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		_ = listener.Close()
		if _, isGiven := givenPorts.LoadOrStore(port, true); !isGiven {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no port is free")
	return ""
}
