package soak

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/observe"
)

// check looks for what must never happen, and records the first violation.
func (s *soak) check() {
	s.lab.Look(func(e *observe.Elections) {
		for _, o := range e.Overlaps(boottime.Now()) {
			s.violate("overlap", fmt.Sprintf("in %s %s (term %d) and %s (term %d) led at once for %s", o.Election, o.First, o.FirstTerm,
				o.Second, o.SecondTerm, o.To.Sub(o.From)))
		}
		for _, name := range e.Names() {
			if s.o.Hosts.Quorum {
				s.violateIf("token", fallen(name, e.Of(name).Claims()))
			}
		}
	})
	seen := s.register.Seen()
	s.violateIf("overlap", together(seen.Acts))
	s.violateIf("counter", seen.Violated)
}

func (s *soak) violateIf(rule, what string) {
	if what != "" {
		s.violate(rule, what)
	}
}

func (s *soak) violate(rule, what string) {
	if s.result.Violation == nil {
		s.result.Violation = &Violation{Rule: rule, What: what, At: boottime.Now().Sub(s.began), Round: s.result.Rounds}
	}
}

// fallen describes the first leader whose term is not above the terms of all other earlier leaders; "" if none.
func fallen(name string, claims []observe.Claim) string {
	sorted := slices.SortedStableFunc(slices.Values(claims), func(a, b observe.Claim) int { return cmp.Compare(a.Start, b.Start) })
	var highest observe.Claim
	for _, c := range sorted {
		if c.Agent != highest.Agent && c.Term <= highest.Term {
			return fmt.Sprintf("in %s %s began to lead in term %d after %s had in term %d", name, c.Agent, c.Term, highest.Agent, highest.Term)
		}
		if c.Term > highest.Term {
			highest = c
		}
	}
	return ""
}

// together describes two programs that acted at once, or under the same token; "" if none did.
func together(acts []observe.ProgramSpan) string {
	under := map[uint64]string{} // by token: the program
	for _, a := range acts {
		if other, known := under[a.Term]; known && other != a.Program {
			return fmt.Sprintf("programs %s and %s both acted under term %d", other, a.Program, a.Term)
		}
		under[a.Term] = a.Program
	}
	for _, o := range observe.ProgramOverlaps(acts) {
		return fmt.Sprintf("programs %s and %s acted at once for %s", o.First, o.Second, o.To.Sub(o.From))
	}
	return ""
}

// conclude completes the result. If something was violated, it also keeps the logs.
func (s *soak) conclude() {
	if s.result.Violation == nil {
		s.check()
	}
	s.result.Register = s.register.Seen()
	if s.o.Doyen != "" {
		if err := s.judgeJobs(); err != nil {
			s.violate("stamps", err.Error())
		}
	}
	s.result.Lasted = boottime.Now().Sub(s.began)
	s.result.Recording = s.lab.Record(fmt.Sprintf("soak, seed %d", s.o.Seed))
	s.result.Recording.Programs = s.result.Register.Acts
	for _, t := range s.result.Recording.Takeovers {
		if t.Before != "" && !t.GoesOn {
			s.result.Takeovers++
		}
	}
	if v := s.result.Violation; v != nil {
		s.result.Recording.Failed = v.String()
		v.Logs = s.o.Keep
		if err := s.keep(); err != nil {
			v.Logs = fmt.Sprintf("lost: %v", err)
		}
	}
}

// keep copies all logs, and the newest operations, to Options.Keep: there they outlive the cluster.
func (s *soak) keep() error {
	var history strings.Builder
	for _, o := range s.result.Register.Newest {
		fmt.Fprintf(&history, "%+v\n", o)
	}
	return errors.Join(s.lab.KeepLogs(s.o.Keep), os.WriteFile(filepath.Join(s.o.Keep, "history.txt"), []byte(history.String()), 0o644))
}

// Result is the outcome of a soak.
type Result struct {
	Seed      uint64
	Lasted    time.Duration
	Rounds    int
	Faults    map[string]int
	Skipped   []string // kinds of faults that this machine can't have, and why
	Takeovers int
	Register  Seen
	Jobs      *JobCounts      // nil if the programs added to the counter
	Heals     []time.Duration // how long each recovery took, from the end of all faults on
	Violation *Violation      // nil if all was well
	Recording *observe.Recording
}

// Violation is something that must never happen.
type Violation struct {
	Rule   string // overlap, token, counter or no recovery; with jobs also exit, stamps or a rule of run.broken
	What   string
	At     time.Duration // since the start
	Round  int
	Faults []string // of that round
	Logs   string   // the folder with the logs
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s, %s after the start, in round %d (%s): %s", v.Rule, v.At.Round(time.Millisecond), v.Round, strings.Join(v.Faults, "; "), v.What)
}

// line is a line of progress.
func (r Result) line(c Seen) string {
	return fmt.Sprintf("%d rounds, %d faults, %d operations (%d refused), slowest recovery %s", r.Rounds, r.injected(), c.Operations, c.Refused,
		r.slowest().Round(time.Millisecond))
}

func (r Result) injected() (n int) {
	for _, k := range r.Faults {
		n += k
	}
	return n
}

func (r Result) slowest() time.Duration {
	if len(r.Heals) == 0 {
		return 0
	}
	return slices.Max(r.Heals)
}

// Facts returns the lines of Summary.
func (r Result) Facts() []string { return strings.Split(strings.TrimSpace(r.Summary()), "\n") }

// Summary is what happened, for people.
func (r Result) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "soaked for %s, seed %d: %d rounds, %d faults, %d takeovers\n", r.Lasted.Round(time.Second), r.Seed, r.Rounds, r.injected(), r.Takeovers)
	kinds := each.Of(slices.Sorted(maps.Keys(r.Faults)), func(k string) string { return fmt.Sprintf("%s %d", k, r.Faults[k]) })
	fmt.Fprintf(&b, "faults: %s\n", strings.Join(kinds, ", "))
	for _, k := range r.Skipped {
		fmt.Fprintf(&b, "skipped: %s\n", k)
	}
	if r.Jobs != nil {
		fmt.Fprintf(&b, "jobs: %s\n", r.Jobs)
	}
	fmt.Fprintf(&b, "counter: %d operations, %d refused for an old token\n", r.Register.Operations, r.Register.Refused)
	if len(r.Heals) > 0 {
		sorted := slices.Sorted(slices.Values(r.Heals))
		fmt.Fprintf(&b, "recovery after the last fault of a round: median %s, slowest %s\n", sorted[len(sorted)/2].Round(time.Millisecond),
			r.slowest().Round(time.Millisecond))
	}
	if v := r.Violation; v != nil {
		fmt.Fprintf(&b, "VIOLATED: %s\nlogs: %s\n", v, v.Logs)
		return b.String()
	}
	if r.Jobs != nil {
		b.WriteString("no job started twice in terms that both held, none without --retry started twice at all, none lost without a report\n")
	}
	b.WriteString("no overlap, no token that fell, no addition lost, every round recovered from\n")
	return b.String()
}
