package boottime_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/boottime"
)

func TestNowNeverStepsBack(t *testing.T) {
	last := boottime.Now()
	for range 10_000 {
		now := boottime.Now()
		if now < last {
			t.Fatalf("stepped back from %d to %d", last, now)
		}
		last = now
	}
}

// The kernel reports CLOCK_BOOTTIME as its uptime too.
func TestNowIsTheUptimeOnLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells its CLOCK_BOOTTIME in /proc/uptime")
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Skipf("no /proc/uptime here: %v", err)
	}
	seconds, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	got := time.Duration(boottime.Now()).Seconds()
	if got < seconds-0.02 || got > seconds+60 {
		t.Fatalf("read %.2f s, the kernel says %.2f s", got, seconds)
	}
}
