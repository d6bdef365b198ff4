// Package loopbacks has what tests need of the loopback network.
package loopbacks

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
)

// NeedTwo skips the test where only 127.0.0.1 can be used: Linux has all of 127.0.0.0/8 without
// any setup.
func NeedTwo(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs a second loopback address such as 127.0.0.2, which only Linux has by itself; CI runs it")
	}
}

// FreePorts returns ports of 127.0.0.1 that were free for TCP and UDP just now. They are below
// those that the kernel gives to connections and to whoever asks for any port: one of these
// could be taken before it is used.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	var held []io.Closer
	defer func() {
		for _, h := range held {
			h.Close()
		}
	}()
	for len(ports) < n {
		port := 10_000 + rand.IntN(20_000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held = append(held, l)
		u, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		held = append(held, u)
		ports = append(ports, port)
	}
	return ports
}

var given sync.Map // ports that a test of this process has
