package runner_test

import (
	"testing"
	"time"

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
		says         string // by the command; empty: it is not started
		status       int
	}{
		{"finished here", "echo up >&9; exit 0", nil, nil, "up", 0},
		{"failed here", "echo up >&9; exit 9", nil, nil, "up", 9},
		{"killed", "echo up >&9; kill -9 $$", nil, nil, "up", 137},
		{"cannot be run", "exec 9>&-; exec /nowhere/nothing", nil, nil, "", 127},
		{"took too long", "echo up >&9; exec sleep 1000", nil, func(c *config) { c.Timeout = 50 * time.Millisecond }, "up", runner.StatusTimeout},
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
				t.Errorf("it was started: %s", <-r.said)
			}
			wait(t, "receipt", stood.Receipts())
			wait(t, "withdrawal", stood.Gone())
		})
	}
}
