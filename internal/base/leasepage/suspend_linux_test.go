package leasepage_test

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/timens"
)

// CLOCK_MONOTONIC would show a lease as valid that ended a day ago.
func TestAPageIsReadByTheClockThatCountsSuspends(t *testing.T) {
	timens.Run(t, func(t *testing.T) {
		uptime := timens.Uptime(t)
		w, r := page(t)
		for left, want := range map[time.Duration]bool{time.Minute: true, -time.Minute: false} {
			if err := w.Set(1, int64(uptime+left)); err != nil {
				t.Fatal(err)
			}
			if r.Valid() != want {
				t.Errorf("%s before the end of the lease by the kernel's uptime, valid is %t", left, !want)
			}
		}
	})
}
