package runner_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/client/clienttest"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/jobs"
)

func TestTheExitCodesOfOnce(t *testing.T) {
	t.Parallel()
	series := func(c *config) { c.Job.Kind, c.Job.Key = jobs.Series, "2" }
	run := &jobs.Run{At: pay, Term: 1, Try: 1}
	for _, test := range []struct {
		name, script string
		word         *jobs.Word
		change       func(*config)
		says         string // what the command writes; empty: nothing, as when it is not started
		status       int
	}{
		{"finished here", "echo up >&9; exit 0", nil, nil, "up", 0},
		{"failed here", "echo up >&9; exit 9", nil, nil, "up", 9},
		{"killed", "echo up >&9; kill -9 $$", nil, nil, "up", 137},
		{"cannot be run", "exec 9>&-; exec /nowhere/nothing", nil, nil, "", 127},
		// On a busy machine it is stopped before it could say a word; only a command that was started ends with this status.
		{"took too long", "exec sleep 1000", nil, func(c *config) { c.Timeout = 50 * time.Millisecond }, "", runner.StatusTimeout},
		{"finished before", "echo up >&9", &jobs.Word{Kind: jobs.Key, Done: pay}, nil, "", 0},
		{"failed before", "echo $DOYEN_TRY >&9", &jobs.Word{Kind: jobs.Key, Last: &jobs.End{At: pay, Try: 4, Result: jobs.Failed, Code: 1}}, nil, "5", 0},
		{"its starter died", "echo up >&9", &jobs.Word{Kind: jobs.Key, Run: run}, nil, "", jobs.ExitUnknown},
		{"its starter died, --retry", "echo $DOYEN_TRY >&9", &jobs.Word{Kind: jobs.Key, Run: run}, func(c *config) { c.Job.Rerun = true }, "2", 0},
		{"a higher key is finished", "echo up >&9", &jobs.Word{Kind: jobs.Series, Done: "3"}, series, "", jobs.ExitSkipped},
		{"an earlier key is finished", "echo $DOYEN_KEY >&9", &jobs.Word{Kind: jobs.Series, Done: "1"}, series, "payments/2", 0},
		{"another kind of job", "echo up >&9", &jobs.Word{Kind: jobs.Cron, Done: newYear()}, nil, "", jobs.ExitUsage},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := clienttest.Start(t)
			if test.word != nil {
				test.word.Version = 1
				a.SetWord(pay, 1, test.word.Text())
			}
			c := once()
			if test.change != nil {
				test.change(&c)
			}
			r := startWith(t, a, c, test.script, nil)
			stood := a.Stood()
			stood.Elect(3, long)
			if test.says != "" {
				r.word(test.says)
			}
			r.status(test.status)
			if test.says == "" && len(r.said) > 0 {
				t.Errorf("the command said %s", <-r.said)
			}
			wait(t, "receipt", stood.Receipts())
			wait(t, "withdrawal", stood.Gone())
		})
	}
}

// While the word can't be written, the lease is still renewed. A signal must end the job nevertheless.
func TestASignalEndsAJobWhoseWordCannotBeWritten(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	a.RefuseWrites(http.StatusServiceUnavailable, api.CodeUnavailable, "c is not connected")
	r := startWith(t, a, once(), "echo up >&9", nil)
	stood := a.Stood()
	stood.Elect(1, short)
	r.line("can't write the word of payments: c is not connected (unavailable); trying again")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	wait(t, "write", a.Writes())
	wait(t, "write, after the signal", a.Writes())
	stood.Renew(1, long) // a renewal must not extend the wait
	wait(t, "receipt", stood.Receipts())
	r.status(128 + int(syscall.SIGTERM))
}

// A command that was asked to stop may not have finished, even if it exits with 0.
func TestWhatWasStoppedIsNotFinished(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	r := startWith(t, a, once(), `trap "exit 0" TERM; echo up >&9; while :; do sleep 0.1; done`, nil)
	stood := a.Stood()
	stood.Elect(1, long)
	r.word("up")
	r.signal(r.cmd.Process.Pid, syscall.SIGTERM)
	r.status(jobs.ExitUnknown)
	wait(t, "receipt", stood.Receipts())
}

func TestWithoutAQuorumAJobEnds(t *testing.T) {
	t.Parallel()
	a := clienttest.Start(t)
	a.RefuseWrites(http.StatusServiceUnavailable, api.CodeNoQuorum, "without quorum elections have none")
	r := startWith(t, a, once(), "echo up >&9", nil)
	a.Stood().Elect(1, long)
	r.status(jobs.ExitUsage)
}
