package leasepage

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/testbed/timens"
)

// A page read by CLOCK_MONOTONIC would call a lease valid that ended a day ago.
func TestAPageIsReadByTheClockThatCountsSuspends(t *testing.T) {
	timens.Run(t, func(t *testing.T) {
		uptime := timens.Uptime(t)
		for name, now := range map[string]int64{"Now": alarm.Now(), "a reader's clock": newClock().now()} {
			if off := time.Duration(now) - uptime; off < -20*time.Millisecond || off > time.Minute {
				t.Errorf("%s is %v off the kernel's uptime", name, off)
			}
		}
	})
}
