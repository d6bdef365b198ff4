// Package loopbacks has what tests need of the loopback network.
package loopbacks

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
)

// NeedTwo skips the test on systems where only 127.0.0.1 can be used. Linux has all of
// 127.0.0.0/8 without any setup.
func NeedTwo(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs a second loopback address such as 127.0.0.2, which only Linux has by itself; CI runs it")
	}
}

// FreePorts returns ports of 127.0.0.1 at which nobody listens. They are below the ports that the
// kernel itself chooses: another program could get such a port before the test uses it. FreePorts
// opens no port to find out: a process that a parallel test is just starting would keep that port
// open for a moment.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for len(ports) < n {
		port := 10_000 + rand.IntN(20_000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			continue
		}
		ports = append(ports, port)
	}
	return ports
}

var given sync.Map // ports that a test of this process has
