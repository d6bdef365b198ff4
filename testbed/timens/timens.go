//go:build linux

// Package timens runs a test again in a time namespace (time_namespaces(7)) where
// CLOCK_BOOTTIME is far ahead of CLOCK_MONOTONIC, as on a host that was suspended for a day.
//
// On a machine that was never suspended, both clocks read the same. There a test can't
// distinguish code that reads the right clock from code that reads the wrong one; in the
// namespace it can. If the test does not run and pass in the namespace, the package fails or
// skips the outer test. The package does not suspend anything.
package timens

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Suspended is how far CLOCK_BOOTTIME is ahead in the namespace.
const Suspended = 24 * time.Hour

// inside is set in the environment of the test binary that runs in the namespace.
const inside = "DOYEN_TEST_TIME_NAMESPACE"

// Run runs body in a time namespace whose CLOCK_BOOTTIME is Suspended ahead of
// CLOCK_MONOTONIC. For that it starts the test binary again in the namespace, with the calling
// test alone. It needs root, unshare of util-linux and Linux 5.6, which CI has.
func Run(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(inside) != "" {
		if ahead := read(unix.CLOCK_BOOTTIME) - read(unix.CLOCK_MONOTONIC); ahead < Suspended/2 {
			t.Fatalf("CLOCK_BOOTTIME is %v ahead in the namespace, want about %v", ahead, Suspended)
		}
		body(t)
		return
	}
	offset := strconv.Itoa(int(Suspended.Seconds()))
	if out, err := exec.Command("unshare", "--time", "--boottime", offset, "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("time namespaces need root, unshare of util-linux and Linux 5.6, which CI has: %v %s", err, out)
	}
	again := exec.CommandContext(t.Context(), "unshare", "--time", "--boottime", offset, "--fork",
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	again.Env = append(os.Environ(), inside+"=1")
	out, err := again.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+" ")) {
		t.Fatalf("in a time namespace: %v\n%s", err, out)
	}
}

// Uptime reads CLOCK_BOOTTIME from /proc/uptime, a source that the code under test does not use.
// The result is rounded down to a hundredth of a second.
func Uptime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}

func read(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // fails only for an unknown clock
	return time.Duration(ts.Nano())
}
