package runner_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/jobs"
)

var try = config{Restart: runner.RestartNever, Status: true, Try: true}

func TestATryWhereAnotherLeadsIsNoCandidate(t *testing.T) {
	t.Parallel()
	for leader, says := range map[string]string{
		"b": "not started: b leads payments", clienttest.Here: "not started: another program of this host leads payments",
	} {
		a := clienttest.Start(t)
		a.Leads(pay, leader)
		r := startWith(t, a, try, `echo up >&9`, nil)
		for {
			line := wait(t, "line", r.lines)
			if line == says {
				break
			} else if line == "" || line == "candidate in payments" {
				t.Fatalf("%s leads, and it said %q", leader, line)
			}
		}
		r.status(runner.StatusOtherLeads)
	}
}

func TestATryThatAnotherCandidateWinsExits(t *testing.T) {
	t.Parallel()
	for _, leader := range []string{"b", clienttest.Here} {
		r := start(t, try, `echo up >&9`)
		stood := r.agent.Stood()
		r.line("candidate in payments")
		r.agent.Leads(pay, leader)
		r.line("not started: ")
		r.status(runner.StatusOtherLeads)
		wait(t, "withdrawal", stood.Gone())
		if len(r.said) > 0 {
			t.Error("it was started")
		}
	}
}

func TestATryThatWinsRunsTheCommandOnce(t *testing.T) {
	t.Parallel()
	r := start(t, try, `echo up >&9; exit 6`)
	stood := r.agent.Stood()
	stood.Elect(3, long)
	r.word("up")
	r.status(6)
	wait(t, "receipt", stood.Receipts())

	// A running command goes on even if the agent then reports another leader.
	r = start(t, try, `trap 'exit 8' USR1; echo up >&9; while :; do sleep 0.1; done`)
	stood = r.agent.Stood()
	stood.Elect(3, long)
	r.word("up")
	r.agent.Leads(pay, "b")
	stood.Renew(4, long)
	r.line("now under term 4")
	r.signal(r.cmd.Process.Pid, syscall.SIGUSR1)
	r.status(8)
}

// The host loses the lead before its command is started: another host runs it.
func TestATryThatLosesTheLeadBeforeTheStartExits(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	release := a.HoldWrites()
	r := startWith(t, a, once(func(c *config) { c.Try, c.Job.NoWait = true, true }), `echo up >&9`, nil)
	stood := a.Stood()
	stood.Elect(3, long)
	r.claim()
	a.Leads(pay, "b")
	stood.Revoke("transferred", long)
	r.line("no longer leading payments")
	release()
	wait(t, "receipt", stood.Receipts())
	r.line("not started: b leads payments")
	r.status(jobs.ExitRunning)
	if w := r.kept(); w.Run != nil || len(r.said) > 0 {
		t.Errorf("it left %s", w.Text())
	}
}

func TestATimeoutEndsTheCommandAndFollowsTheRestartPolicy(t *testing.T) {
	t.Parallel()
	timeout := config{Timeout: 50 * time.Millisecond, Grace: time.Second, Status: true}
	for _, restart := range []string{runner.RestartAlways, runner.RestartOnFailure} {
		c := timeout
		c.Restart = restart
		r := start(t, c, `exec sleep 1000`) // a busy machine may not have begun the sleep when the shell is stopped
		stood := r.agent.Stood()
		stood.Elect(3, long)
		for range 2 {
			r.line("sh has run for 50ms: stopping it")
			r.line("sh ended with status 143")
			r.line("sh ended with status 124: starting it again")
		}
		if len(stood.Receipts()) > 0 { // this test may be so late that the command has ended five times
			r.line("5 times in a row: letting another host lead")
		}
	}
	c := timeout
	c.Restart = runner.RestartNever
	r := start(t, c, `trap 'exit 0' TERM; while :; do sleep 0.1; done`)
	stood := r.agent.Stood()
	stood.Elect(3, long)
	r.status(runner.StatusTimeout) // although the command exits with 0 if its trap was set in time
	wait(t, "receipt", stood.Receipts())
}

// The guard dies while it ends a run that took too long. The next run must not count as too long.
func TestATimeoutIsForgottenWithItsGuard(t *testing.T) {
	t.Parallel()
	r := start(t, config{Timeout: 3 * time.Second, Grace: time.Minute}, `[ $DOYEN_TERM = 2 ] || trap "" TERM; echo up $DOYEN_TERM >&9; while :; do sleep 0.1; done`)
	stood := r.agent.Stood()
	stood.Elect(1, long)
	r.word("up 1")
	r.line("sh has run for 3s: stopping it")
	stood.Renew(2, long)
	r.line("now under term 2")
	r.signal(r.guard(), syscall.SIGKILL)
	wait(t, "death", r.death)
	r.word("up 2")
	stood.Revoke("transferred", long)
	wait(t, "receipt", stood.Receipts())
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(0)
	if said := r.heard.String(); strings.Contains(said, "status 124") {
		t.Errorf("said %s", said)
	}
}
