package jobsim

import (
	"fmt"
	"time"

	"github.com/doyen-election/doyen/internal/calendar"
	"github.com/doyen-election/doyen/internal/jobs"
)

// Counts are what happened in worlds.
type Counts struct {
	Worlds, Occurrences, Faults, Terms                            int
	Starts, Again, Finished, Failed, TimedOut, Stopped            int
	Unknown, Skipped, Missed, ReportedAgain, ClocksJumped, Behind int
}

// start is the last start of an occurrence.
type start struct {
	term uint64
	try  int
}

type judge struct {
	schedule calendar.Schedule
	rerun    bool
	first    string // the first occurrence that a leader has waited for
	starts   map[string]start
	told     map[string]bool // occurrences that were reported as ended or as not run
	alive    map[int]string  // by the number of a living command: its occurrence
	broken   string
	counts   Counts
}

func (j *judge) fail(format string, args ...any) {
	if j.broken == "" {
		j.broken = fmt.Sprintf(format, args...)
	}
}

// start judges a command that starts.
func (j *judge) start(w *world, i int, s jobs.Start) {
	j.counts.Starts++
	for _, at := range j.alive {
		j.fail("%s starts while the command of %s lives", s.Occurrence, at)
	}
	if i != w.leader {
		j.fail("%s starts on host %d, which does not lead", s.Occurrence, i)
	}
	if former, ok := j.starts[s.Occurrence]; ok {
		j.counts.Again++
		switch {
		case !j.rerun:
			j.fail("%s is started twice, in terms %d and %d", s.Occurrence, former.term, w.term)
		case w.term <= former.term || s.Try <= former.try:
			j.fail("%s is started in term %d as try %d, and was in term %d as try %d", s.Occurrence, w.term, s.Try, former.term, former.try)
		}
	}
	j.starts[s.Occurrence] = start{w.term, s.Try}
}

// waitsFor records the first occurrence that a leader waits for: each one from there on must be reported.
func (j *judge) waitsFor(out jobs.Output) {
	at := out.Wake.Add(-time.Second).Format(time.RFC3339)
	for _, r := range out.Reports {
		if r.What == jobs.Ahead {
			return
		}
	}
	if j.first == "" {
		j.first = at
	}
}

func (j *judge) report(r jobs.Report) {
	c := &j.counts
	if r.Again {
		c.ReportedAgain++
	}
	switch {
	case r.What == jobs.NotRun:
		from, _ := time.Parse(time.RFC3339, r.From)
		n := 0
		for at, ok := from, true; ok && at.Format(time.RFC3339) <= r.To; at, ok = j.schedule.Next(at) {
			j.told[at.Format(time.RFC3339)] = true
			n++
		}
		if n != r.N {
			j.fail("%d missed from %s to %s are reported, and there are %d", r.N, r.From, r.To, n)
		}
		if !r.Again {
			c.Missed += n
		}
	case r.What == jobs.Finish || r.What == jobs.UnknownEnd:
		j.told[r.From] = true
		if _, ok := j.starts[r.From]; !ok && r.What == jobs.Finish {
			j.fail("the end of %s is reported, and it never started", r.From)
		}
		if !r.Again {
			*map[jobs.Result]*int{jobs.Finished: &c.Finished, jobs.Failed: &c.Failed, jobs.TimedOut: &c.TimedOut,
				jobs.Stopped: &c.Stopped, jobs.Unknown: &c.Unknown}[r.Result]++
		}
	case r.What == jobs.Skipped:
		c.Skipped++
	case r.What == jobs.ClockJumped:
		c.ClocksJumped++
	case r.What == jobs.Ahead:
		c.Behind++
	}
}

// ends judges the world when it has healed.
func (j *judge) ends(text string, calm time.Time) {
	word, err := jobs.Parse(text)
	if err != nil || j.first == "" {
		j.fail("in the end the word is %q (%v), and the first occurrence %q", text, err, j.first)
		return
	}
	if word.Done < calm.Format(time.RFC3339) {
		j.fail("in the end it does not go on: what is done is %s", word.Done)
	}
	first, _ := time.Parse(time.RFC3339, j.first)
	for at, ok := j.schedule.Next(first); ok && at.Format(time.RFC3339) <= word.Done; at, ok = j.schedule.Next(at) {
		j.counts.Occurrences++
		if !j.told[at.Format(time.RFC3339)] {
			j.fail("%s is passed over, and no end is reported, nor why it never ran", at.Format(time.RFC3339))
		}
	}
	j.counts.Worlds++
}
