package soak

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/jobs"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/actor/stamp"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
)

// lane starts `doyen once SERIES/1`, SERIES/2 and so on, on one host.
type lane struct {
	program *lab.Program
	series  string // the election whose word records the jobs
	rerun   bool   // --retry

	mu    sync.Mutex
	exits []exit // the exits of keys 1, 2, …; the key after the last one is under way
	odd   string // the first exit that can't be explained
}

type exit struct {
	code int // 0, 76 or 77
	at   int64
}

const (
	skips  = "skip"  // the series in which an occurrence whose end is unknown is not started again
	reruns = "rerun" // the series in which it is started again

	jobUsual = 10 * time.Millisecond
	// One job in jobSlow lasts up to two leases, so that faults hit it while it runs.
	jobSlow = 30
)

// openJobs starts the lanes: two on each host.
func (s *soak) openJobs() error {
	for _, h := range s.lab.Cluster.Hosts() {
		for _, series := range []string{skips, reruns} {
			l := &lane{series: series, rerun: series == reruns}
			p, err := s.lab.Launch(h.Name()+"-"+series, "", h, true, func(p *lab.Program) *exec.Cmd { return l.next(s, h, p) })
			if err != nil {
				return err
			}
			l.program = p
			s.lanes = append(s.lanes, l)
			s.programs[h.Name()] = append(s.programs[h.Name()], p)
		}
	}
	return nil
}

// next returns the command for the next key, or for the same key again if the last command ended without an answer.
func (l *lane) next(s *soak, h *hosts.Host, p *lab.Program) *exec.Cmd {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch code, ok := p.Former(); {
	case !ok:
	case code == 0 || code == jobs.ExitUnknown || code == jobs.ExitSkipped:
		l.exits = append(l.exits, exit{code, stamp.Now()})
	case code == -1 || code == 1 || code == 3: // killed, or the agent refused or died
	case l.odd == "":
		l.odd = fmt.Sprintf("%s on %s ended with status %d", keyOf(l.series, len(l.exits)+1), h.Name(), code)
	}
	lasts := around(rand.New(rand.NewPCG(rand.Uint64(), 0)), jobUsual, s.lease)
	if rand.IntN(jobSlow) == 0 {
		lasts = time.Duration(rand.Int64N(int64(2 * s.lease)))
	}
	args := []string{"once", "--socket", h.Config().Socket, "--wait", keyOf(l.series, len(l.exits)+1), "--", actor.Path()}
	if l.rerun {
		args = slices.Insert(args, 3, "--retry")
	}
	return exec.Command(s.o.Doyen, append(args, actor.Job(p.Stamps, lasts)...)...)
}

// newestStart returns the host of the running job that was started last, and the instant of that start.
func (s *soak) newestStart() (where *hosts.Host, at election.Instant) {
	for _, l := range s.lanes {
		if a := l.program.Acting(); a.Acts && a.Since > at {
			where, at = l.program.Host, a.Since
		}
	}
	return where, at
}

// JobCounts counts what happened to the jobs of `soak --jobs`.
type JobCounts struct {
	Keys     int // occurrences for which a lane got an answer
	Started  int // occurrences that were started
	Finished int // occurrences whose command did all of its work
	Unknown  int // occurrences for which a lane got 76: it is not known how far the command got
	Again    int // starts beyond the first of a key
	Answers  int // exits with 0, 76 or 77
}

func (c JobCounts) String() string {
	return fmt.Sprintf("%d occurrences: %d started, %d of them finished; %d reported as unknown, %d more starts with --retry; %d answers",
		c.Keys, c.Started, c.Finished, c.Unknown, c.Again, c.Answers)
}

// run is all that is known of one key.
type run struct {
	starts []stamp.Stamp
	exits  []exit
}

func (r run) answered(code int) bool {
	return slices.ContainsFunc(r.exits, func(e exit) bool { return e.code == code })
}

func (r run) finished() bool {
	return slices.ContainsFunc(r.starts, func(n stamp.Stamp) bool { return n.Ended })
}

// judgeJobs looks at all stamps of all jobs so far, and records the first violation.
func (s *soak) judgeJobs() error {
	var c JobCounts
	for _, series := range []string{skips, reruns} {
		runs, stamps := map[string]run{}, []stamp.Stamp{}
		for _, l := range s.lanes { // read the exits before the stamps: a command stamps before its exit is known
			if l.series == series {
				s.violateIf("exit", l.report(runs))
			}
		}
		passed := len(runs) // each lane goes through the keys in order, so runs has all keys from 1 on
		for _, l := range s.lanes {
			these, err := stamp.Read(l.program.Stamps)
			if err != nil {
				return err
			}
			if l.series == series {
				stamps = append(stamps, these...)
			}
		}
		slices.SortFunc(stamps, func(a, b stamp.Stamp) int { return cmp.Compare(a.First, b.First) })
		for _, n := range stamps {
			runs[n.Key] = run{append(runs[n.Key].starts, n), runs[n.Key].exits}
		}
		s.violateIf("twice", atOnce(stamps))
		for key := range passed {
			name := keyOf(series, key+1)
			s.violateIf(runs[name].broken(name, series == reruns))
			c.add(runs[name])
		}
	}
	s.result.Jobs = &c
	return nil
}

func keyOf(series string, key int) string { return fmt.Sprintf("%s/%d", series, key) }

// report adds the lane's exits to what is known of each key. It returns the first exit that can't be explained.
func (l *lane) report(runs map[string]run) (odd string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.exits {
		name := keyOf(l.series, i+1)
		runs[name] = run{runs[name].starts, append(runs[name].exits, e)}
	}
	return l.odd
}

// broken names the rule that is violated for a key, and how; "" if none is.
func (r run) broken(key string, rerun bool) (rule, what string) {
	described := fmt.Sprintf("%s: starts %+v, exits %v", key, r.starts, r.exits)
	for i, n := range r.starts[min(1, len(r.starts)):] {
		if before := r.starts[i]; !rerun || n.Term <= before.Term || n.Try <= before.Try ||
			slices.ContainsFunc(r.exits, func(e exit) bool { return e.code == 0 && e.at < n.First }) {
			return "twice", described
		}
	}
	switch {
	case r.answered(0) && !r.finished():
		return "finished", described
	case len(r.starts) == 0 && !r.answered(jobs.ExitUnknown):
		return "lost", described
	}
	return "", ""
}

func (c *JobCounts) add(r run) {
	c.Keys++
	c.Answers += len(r.exits)
	if len(r.starts) > 0 {
		c.Started++
		c.Again += len(r.starts) - 1
	}
	if r.finished() {
		c.Finished++
	}
	if r.answered(jobs.ExitUnknown) {
		c.Unknown++
	}
}

// atOnce describes two commands of a series that ran at once, or a lower term after a higher one; "" if none did. The
// stamps are in the order of their starts.
func atOnce(stamps []stamp.Stamp) string {
	var before stamp.Stamp // the command started before n
	for _, n := range stamps {
		if n.First < before.Last {
			return fmt.Sprintf("%s (term %d, process %d) was started %s before the last stamp of %s (term %d, process %d)", n.Key, n.Term, n.PID,
				time.Duration(before.Last-n.First), before.Key, before.Term, before.PID)
		}
		if n.Term < before.Term {
			return fmt.Sprintf("%s was started under term %d after %s under term %d", n.Key, n.Term, before.Key, before.Term)
		}
		before = n
	}
	return ""
}
