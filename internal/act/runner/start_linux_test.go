package runner

import (
	"io"
	"testing"
	"time"

	"github.com/doyen-election/doyen/internal/act/guard"
	"github.com/doyen-election/doyen/internal/base/alarm"
)

// The command would have to end at once.
func TestTheRunnerStartsNothingWhenTheLeaseIsAboutToEnd(t *testing.T) {
	const until, lease = int64(time.Hour), 6 * time.Second
	termAt := guard.Plan(until, lease).TermAt
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

// A receipt that the agent gets after the deadline could end the next leadership.
func TestACandidacyGoesOnOnlyAfterAReceiptInTime(t *testing.T) {
	const until = int64(time.Hour)
	for _, test := range []struct {
		err     error
		revoked bool
		now     int64
		want    bool
	}{
		{nil, true, until - 1, true},
		{nil, true, until, false},
		{nil, false, until - 1, false},
		{io.EOF, true, until - 1, false},
	} {
		r := &runner{revoked: test.revoked, until: until}
		if got := r.goesOn(test.err, test.now); got != test.want {
			t.Errorf("%+v: it goes on: %v", test, got)
		}
	}
}

// If the runner is late by more than half of the time for a kill, it does not blame the guard.
func TestTheGuardIsNotBlamedForADelayOfTheRunners(t *testing.T) {
	const woken, lease = int64(time.Hour), 6 * time.Second
	for still, want := range map[time.Duration]bool{0: false, guard.Margin(lease) / 2: false, guard.Margin(lease)/2 + 1: true, lease: true} {
		r := &runner{woken: woken, lease: lease}
		if got, own := r.stoodStill(woken + int64(still)); got != still || own != want {
			t.Errorf("after %v: it stood still for %v, by itself: %v; want %v", still, got, own, want)
		}
	}
}

// ofTest is a configuration with room for a few lines.
func ofTest() Config {
	return Config{Election: "payments", Command: []string{"pay"}, lines: make(chan string, 4)}
}

// If a command ends together with its lease, it may have been forced to: that end does not count.
func TestAnEndWithTheLeaseIsNotTheCommandsOwn(t *testing.T) {
	for _, test := range []struct {
		leading bool
		until   int64
		ends    int
	}{{true, never - 1, 1}, {true, alarm.Now(), 0}, {false, never - 1, 0}} {
		r := &runner{Config: ofTest(), leading: test.leading, until: test.until, lease: time.Second, began: alarm.Now()}
		r.relax(1)
		if r.ends != test.ends || (r.notBefore > 0) != (test.ends > 0) {
			t.Errorf("%+v: counted %d ends, no start until %d", test, r.ends, r.notBefore)
		}
	}
}

// Each leadership counts the command's ends from 0.
func TestALostLeadForgetsHowOftenTheCommandEndedBefore(t *testing.T) {
	for name, lose := range map[string]func(*runner){
		"lost":            func(r *runner) { r.lose("a reason", true) },
		"ended by itself": func(r *runner) { r.gone(guard.Report{Kind: guard.Gone, Why: guard.ByLease}) },
	} {
		r := &runner{Config: ofTest(), leading: true, ends: 3, notBefore: never}
		if lose(r); r.ends != 0 || r.notBefore != 0 || r.leading {
			t.Errorf("%s: %d ends are counted, no start until %d, leading: %v", name, r.ends, r.notBefore, r.leading)
		}
	}
}
