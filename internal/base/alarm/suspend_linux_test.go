package alarm_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
	"github.com/doyen-election/doyen/testbed/timens"
)

// An alarm by CLOCK_MONOTONIC would ring a day late here.
func TestAnAlarmCountsTheTimeOfASuspend(t *testing.T) {
	timens.Run(t, func(t *testing.T) {
		a, err := alarm.New()
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		uptime := timens.Uptime(t)
		if off := time.Duration(alarm.Now()) - uptime; off < -20*time.Millisecond || off > time.Minute {
			t.Fatalf("Now is %v off the kernel's uptime", off)
		}
		a.Set(int64(uptime + 30*time.Millisecond))
		select {
		case <-a.C:
		case <-time.After(time.Minute):
			t.Fatal("it did not ring")
		}
	})
}
