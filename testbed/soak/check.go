package soak

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/observe"
)

// check looks for what must never happen, and records the first violation.
func (s *soak) check() {
	s.lab.Look(func(e *observe.Elections) {
		for _, name := range e.Names() {
			for _, o := range e.Of(name).Overlaps() {
				s.violate("overlap", fmt.Sprintf("in %s %s (term %d) and %s (term %d) led at once for %s", name, o.First.Agent, o.First.Term,
					o.Second.Agent, o.Second.Term, min(o.To, boottime.Now()).Sub(o.From)))
			}
			if s.o.Hosts.Quorum {
				s.violateIf("token", fallen(name, e.Of(name).Claims()))
			}
		}
	})
	s.violateIf("overlap", together(s.register.Acts()))
	s.violateIf("history", s.register.Check())
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

// fallen describes a leader whose token is not above that of an earlier leader; "" if there is
// none.
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
	sorted := slices.SortedStableFunc(slices.Values(acts), func(a, b observe.ProgramSpan) int { return cmp.Compare(a.From, b.From) })
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if b.Program == a.Program {
				continue
			}
			if b.Term == a.Term {
				return fmt.Sprintf("programs %s and %s both acted under term %d", a.Program, b.Program, a.Term)
			}
			if b.From <= a.To {
				return fmt.Sprintf("programs %s (term %d) and %s (term %d) acted at once for %s", a.Program, a.Term, b.Program, b.Term,
					min(a.To, b.To).Sub(b.From)+1)
			}
		}
	}
	return ""
}

// conclude completes the result. If something was violated, it also keeps the logs.
func (s *soak) conclude() {
	if s.result.Violation == nil {
		s.check()
	}
	s.result.Counts = s.register.Counts()
	s.result.Lasted = boottime.Now().Sub(s.began)
	s.result.Recording = s.record()
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

// record makes the recording of all that was seen.
func (s *soak) record() *observe.Recording {
	r := s.lab.Record(fmt.Sprintf("soak, seed %d", s.o.Seed))
	r.Programs = s.register.Acts()
	return r
}

// keep copies all logs, and the history, to Options.Keep, where they outlive the cluster.
func (s *soak) keep() error {
	var history strings.Builder
	for _, o := range s.register.History() {
		fmt.Fprintf(&history, "%+v\n", o)
	}
	return errors.Join(s.lab.KeepLogs(s.o.Keep), os.WriteFile(filepath.Join(s.o.Keep, "history.txt"), []byte(history.String()), 0o644))
}
