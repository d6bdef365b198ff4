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

// FreePorts returns ports of 127.0.0.1 at which nobody listens. They are below the range from which
// the kernel chooses ports, so that it gives none of them to another program before the test uses
// it. FreePorts connects to each port to try it, and does not listen: a process that a parallel test
// starts could inherit the listening socket and keep the port in use.
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

var given sync.Map // ports that FreePorts has returned in this process, or found in use
