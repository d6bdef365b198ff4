package keeper

import (
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The life may tick after the keeper has read the clock. Then the next tick seems too far away, but the life
// must still be watched.
func TestATickAfterTheKeepersLookAtTheClockCounts(t *testing.T) {
	k, err := newKeeper(Given{Program: "/bin/sleep", Args: []string{"sleep", "60"}, LogFormat: "text", LogLevel: "error"})
	if err != nil {
		t.Fatal(err)
	}
	k.step(alarm.Now())
	if k.pid == 0 {
		t.Fatal("no life was started")
	}
	t.Cleanup(func() { _ = syscall.Kill(k.pid, syscall.SIGKILL) })
	k.born = alarm.Now() - int64(time.Hour)
	k.page.allowance.Store(int64(400 * time.Millisecond))
	k.page.state.Store(running)
	now := alarm.Now()
	(&Life{page: k.page}).Ticks(now+int64(time.Millisecond), never)
	k.step(now)
	if wait := time.Duration(k.watch.due - now); wait > 2*tickEvery {
		t.Errorf("it is not watched for %s", wait)
	}
}
