package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

func (l *Lab) Record(name string) *observe.Recording {
	now := boottime.Now()
	c := l.Cluster.Hosts()[0].Config()
	r := &observe.Recording{
		Scenario: name, Algorithm: c.Algorithm, Profile: c.Profile, Quorum: c.Quorum,
		Network: "loopback", Wall: l.wall, From: l.began, To: now,
	}
	if l.c.Net == hosts.Namespaces {
		r.Network = "namespaces"
	}
	r.Programs, _ = l.Spans()
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Faults = slices.Clone(l.faults)
	for i := range r.Faults {
		r.Faults[i].To = min(r.Faults[i].To, now)
	}
	for _, h := range l.Cluster.Hosts() {
		r.Hosts = append(r.Hosts, observe.HostRecord{Name: h.Name(), Addr: h.Config().Bind,
			Voter: slices.Contains(c.Voters, h.Name()), Spans: l.seen.Spans(h.Name(), now)})
	}
	r.Takeovers = l.seen.Takeovers(l.faults)
	r.Overlaps = append(l.seen.Overlaps(now), observe.ProgramOverlaps(r.Programs)...)
	return r
}

// KeepLogs copies the logs of agents and programs, and Account, to a folder. An agent that was
// never started has no log.
func (l *Lab) KeepLogs(dir string) error {
	errs := []error{os.MkdirAll(dir, 0o755)}
	keep := func(name, text string) {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, h := range l.Cluster.Hosts() {
		text, err := os.ReadFile(h.Log())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, err)
		keep(h.Name()+".log", string(text))
	}
	for _, p := range l.Programs() {
		l.mu.Lock()
		text := strings.Join(p.output, "\n") + "\n"
		l.mu.Unlock()
		keep("program-"+p.Name+".log", text)
	}
	keep("seen.txt", l.Account(0))
	return errors.Join(errs...)
}
