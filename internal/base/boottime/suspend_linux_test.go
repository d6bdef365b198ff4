package boottime_test

import (
	"testing"

	"github.com/doyen-election/doyen/testbed/timens"
)

func TestNowCountsTheTimeOfASuspend(t *testing.T) {
	timens.Run(t, TestNowIsTheUptimeOnLinux)
}
