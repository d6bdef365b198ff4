//go:build linux

package netns_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/doyen-election/doyen/testbed/netns"
)

var seed = flag.Uint64("seed", 1, "what random faults follow from")

// TestMain also runs the agents that tests start on hosts. If this user may make networks only in a
// new user namespace, it runs the tests again in one.
func TestMain(m *testing.M) {
	if text := os.Getenv(configVariable); text != "" {
		os.Exit(runAgent(text))
	}
	code, ran, err := netns.Rerun()
	if err != nil {
		fmt.Fprintln(os.Stderr, "no networks here:", err)
	}
	if ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// needNetworks skips a test where networks can't be made.
func needNetworks(t testing.TB) {
	t.Helper()
	if err := netns.Check(); err != nil {
		t.Skipf("CI runs it as root: %v", err)
	}
}
