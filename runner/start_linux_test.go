package runner

import (
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client/alarm"
)

// A command that the runner started now would have to be ended at once.
func TestTheRunnerStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	const until, lease = int64(time.Hour), 6 * time.Second
	termAt := plan(until, lease).TermAt
	for _, test := range []struct {
		name      string
		leading   bool
		notBefore int64
		now       int64
		want      bool
	}{
		{"time is left", true, 0, termAt - 1, true},
		{"SIGTERM is due", true, 0, termAt, false},
		{"between SIGTERM and the end", true, 0, until - 1, false},
		{"after the end", true, 0, until + 1, false},
		{"before the wait is over", true, termAt - 2, termAt - 3, false},
		{"when the wait is over", true, termAt - 2, termAt - 2, true},
		{"the wait ends too late", true, termAt, termAt, false},
		{"not leading", false, 0, termAt - 1, false},
	} {
		r := &runner{leading: test.leading, notBefore: test.notBefore, until: until, lease: lease}
		if got := r.mayStart(test.now); got != test.want {
			t.Errorf("%s: it may start: %v, want %v", test.name, got, test.want)
		}
	}
}

// The order may have waited to be read until the lease was about to end.
func TestTheGuardStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		termAt int64
		want   report
	}{
		{"SIGTERM is due", alarm.Now(), report{Is: isGone, Why: tooLate}},
		{"time is left", never, report{Is: isFailed, Errno: int(syscall.EPERM), Why: syscall.EPERM.Error()}}, // it tried
	} {
		runner, own := linked(t)
		g := &guard{link: own, cgroup: &cgroup{}, forks: make(chan *syscall.ProcAttr, 1), made: make(chan birth, 1)}
		g.made <- birth{err: syscall.EPERM} // what comes of making a process
		g.start(order{Do: doStart, Term: 1, Copy: -1, Schedule: schedule{TermAt: test.termAt, KillAt: never}})
		var got report
		if err := runner.receive(&got); err != nil {
			t.Fatal(err)
		}
		if got != test.want || (len(g.forks) == 1) != (got.Is == isFailed) || g.command != nil {
			t.Errorf("%s: it reports %+v, want %+v; processes asked for: %d", test.name, got, test.want, len(g.forks))
		}
	}
}
