package soak

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/internal/jobs"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
)

func start(term uint64, try int, first, last int64, ended bool) stamp.Stamp {
	return stamp.Stamp{Term: term, First: first, Last: last, Key: "x/1", Try: try, Ended: ended}
}

func TestAJobThatIsStartedTwiceOrLostIsFound(t *testing.T) {
	done, unknown, skipped := exit{0, 50}, exit{jobs.ExitUnknown, 50}, exit{jobs.ExitSkipped, 50}
	for name, test := range map[string]struct {
		run   run
		rerun bool
		want  string
	}{
		"finished":                    {run{[]stamp.Stamp{start(1, 1, 10, 20, true)}, []exit{done}}, false, ""},
		"killed and reported":         {run{[]stamp.Stamp{start(1, 1, 10, 20, false)}, []exit{unknown}}, false, ""},
		"never started, and reported": {run{nil, []exit{unknown, skipped}}, false, ""},
		"never started":               {run{nil, []exit{skipped}}, false, "lost"},
		"twice without --retry":       {run{[]stamp.Stamp{start(1, 1, 10, 20, false), start(2, 2, 30, 40, true)}, []exit{done}}, false, "twice"},
		"again":                       {run{[]stamp.Stamp{start(1, 1, 10, 20, true), start(2, 2, 30, 40, true)}, []exit{done}}, true, ""},
		"again under the same term":   {run{[]stamp.Stamp{start(2, 1, 10, 20, false), start(2, 2, 30, 40, true)}, []exit{done}}, true, "twice"},
		"again as the same try":       {run{[]stamp.Stamp{start(1, 1, 10, 20, false), start(2, 1, 30, 40, true)}, []exit{done}}, true, "twice"},
		"again after it was finished": {run{[]stamp.Stamp{start(1, 1, 10, 20, true), start(2, 2, 60, 70, true)}, []exit{done}}, true, "twice"},
		"called finished":             {run{[]stamp.Stamp{start(1, 1, 10, 20, false)}, []exit{done}}, false, "finished"},
	} {
		if rule, what := test.run.broken("x/1", test.rerun); rule != test.want || (rule != "") != strings.Contains(what, "x/1") {
			t.Errorf("%s: %q, %s; want %q", name, rule, what, test.want)
		}
	}
}

func TestJobsThatRunAtOnceAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		notes []stamp.Stamp
		want  string
	}{
		"in turn":          {[]stamp.Stamp{start(1, 1, 10, 20, true), start(1, 1, 20, 30, true), start(2, 1, 31, 40, true)}, ""},
		"at once":          {[]stamp.Stamp{start(1, 1, 10, 20, true), start(2, 1, 19, 30, true)}, "1ns before the last stamp"},
		"one around two":   {[]stamp.Stamp{start(1, 1, 10, 90, true), start(1, 1, 20, 30, true)}, "before the last stamp"},
		"a term that fell": {[]stamp.Stamp{start(2, 1, 10, 20, true), start(1, 1, 30, 40, true)}, "under term 1 after"},
	} {
		if got := atOnce(test.notes); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
