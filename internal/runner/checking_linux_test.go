package runner

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// SIGKILL does not end a process that waits for a disk. Such a check has failed, again and again,
// and no other run is started beside it.
func TestACheckThatCannotBeKilledHasFailed(t *testing.T) {
	const nobody = 1 << 30 // no process has that number
	c := ofTest()
	c.Check = health.Check{Command: "true", Every: time.Second, Timeout: time.Second, Fall: 2, Rise: 1}.Resolved()
	now := alarm.Now()
	r := &runner{Config: c, leading: true, until: never - 1, state: running, checking: checking{judge: c.Check.Judge(true), pid: nobody, output: &output{}, nextAt: now, failAt: now}}
	if r.check(now); r.checking.unfit != "" || r.checkAt() != now+int64(time.Second) {
		t.Fatalf("after one failure unfit for %q, next at %d", r.checking.unfit, r.checkAt()-now)
	}
	if r.check(now + int64(time.Second)); r.checking.unfit != "check failed: it did not end within 1s" || r.leading || r.why != r.checking.unfit {
		t.Errorf("unfit for %q, leading %t, because %q", r.checking.unfit, r.leading, r.why)
	}
	if r.checking.pid != nobody {
		t.Error("another run was started")
	}
}

// What is due while nothing runs must not wake the loop again and again.
func TestWhatIsNotExpectedWakesNobody(t *testing.T) {
	for name, r := range map[string]*runner{
		"no check, no watchdog": {checking: newChecking(health.Check{}), progress: progress{dueAt: never}},
		"the run ends":          {ending: true, progress: progress{dueAt: never}},
		"the command is gone":   {checking: newChecking(health.Check{}), progress: progress{dueAt: 1}},
	} {
		if at := r.wakeAt(2); at != never {
			t.Errorf("%s: it wakes at %d", name, at)
		}
	}
	r := &runner{Config: ofTest(), checking: newChecking(health.Check{}), progress: progress{dueAt: 1}, state: stopping, until: never - 1, killAt: never}
	if at := r.wakeAt(2); at < 2 {
		t.Errorf("while the command is stopped it wakes at %d", at)
	}
}
