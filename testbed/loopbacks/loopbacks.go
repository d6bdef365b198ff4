// Package loopbacks is for tests that need more loopback addresses than 127.0.0.1.
// Linux has all of 127.0.0.0/8 without any setup; other systems skip these tests.
package loopbacks

import (
	"runtime"
	"testing"
)

// NeedTwo skips the test where only 127.0.0.1 can be used.
func NeedTwo(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs a second loopback address such as 127.0.0.2, which only Linux has by itself; CI runs it")
	}
}
