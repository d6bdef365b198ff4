package live

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// killed is the fault of a host whose agent was killed under its keeper.
const killed = "kill"

// demonstration shows in a run of this length that a kill of the leader's agent costs nothing
// where it has a keeper. Then the leader's host is lost, another takes over, and the lost one
// comes back.
func demonstration(length time.Duration) func(context.Context, *lab.Lab) error {
	return func(ctx context.Context, l *lab.Lab) error {
		quiet := min(2*time.Second, length/5)
		if l.Cluster.Hosts()[0].Config().Keeper {
			if err := killLeadersAgent(ctx, l, quiet); err != nil {
				return err
			}
		}
		return killAndStart(ctx, l, quiet, min(6*time.Second, length/2))
	}
}

func killLeadersAgent(ctx context.Context, l *lab.Lab, after time.Duration) error {
	a, err := l.Agree(ctx, maxFor)
	if err != nil {
		return err
	}
	if err := observe.Sleep(ctx, after); err != nil {
		return err
	}
	h, ok := l.Cluster.Host(a.Leader)
	if !ok {
		return fmt.Errorf("there is no host %s", a.Leader)
	}
	return killAgent(ctx, l, h)
}

// killAgent kills a host's agent. Its keeper, if it has one, starts it again.
func killAgent(ctx context.Context, l *lab.Lab, h *hosts.Host) error {
	if !h.Config().Keeper {
		_, err := l.Begin(hosts.Crash(), h)
		return err
	}
	pid, err := lab.Life(ctx, h)
	if err == nil {
		_, err = l.Strike(killed, h, pid, syscall.SIGKILL)
	}
	return err
}

// killing kills the leader once in each interval, and starts it again half an interval later.
func killing(every time.Duration, failed func(error)) func(context.Context, *lab.Lab) error {
	return func(ctx context.Context, l *lab.Lab) error {
		if err := observe.Sleep(ctx, every/2); err != nil {
			return err
		}
		for ctx.Err() == nil {
			if err := killAndStart(ctx, l, every/2, every); err != nil {
				failed(err)
				_ = observe.Sleep(ctx, every/2)
			}
		}
		return ctx.Err()
	}
}

// killAndStart kills the leader, and later starts every host that is down. kill and start say
// how long after the agents agree.
func killAndStart(ctx context.Context, l *lab.Lab, kill, start time.Duration) error {
	if _, err := l.Agree(ctx, maxFor); err != nil {
		return err
	}
	if err := observe.Sleep(ctx, kill); err != nil {
		return err
	}
	var leader *hosts.Host
	err := l.Until(ctx, maxFor, "a leader", func() (ok bool) { leader, ok = leading(l); return ok })
	if err == nil {
		_, err = l.Begin(hosts.Crash(), leader)
	}
	if err == nil {
		err = observe.Sleep(ctx, start-kill)
	}
	for _, h := range l.Cluster.Hosts() {
		if err == nil && h.Status() == hosts.Down {
			_, err = l.Start(h)
		}
	}
	return err
}

func leading(l *lab.Lab) (h *hosts.Host, ok bool) {
	l.Look(func(e *observe.Elections) { h, ok = l.Cluster.Host(e.Of(string(election.Default)).Leader()) })
	return h, ok && h.Status() == hosts.Running
}

// press does what a key says. It reports whether the session has to end.
func (s *session) press(ctx context.Context, k key) (quit bool) {
	all := s.lab.Cluster.Hosts()
	h := all[s.selected]
	switch k {
	case keyQuit, 'q':
		return true
	case keyUp:
		s.selected = max(0, s.selected-1)
	case keyDown:
		s.selected = min(len(all)-1, s.selected+1)
	case 'k':
		s.do(ctx, func() error { return killAgent(ctx, s.lab, h) })
	case 'd':
		s.begin(ctx, hosts.Crash(), h)
	case 's':
		s.begin(ctx, hosts.Freeze(), h)
	case 'c':
		s.do(ctx, func() error { _, err := s.lab.End(hosts.Freeze(), h); return err })
	case 'x':
		s.cut(ctx, h)
	case 'h':
		s.do(ctx, func() error { _, err := s.lab.End(hosts.Cut(nil, hosts.BothWays), h); return err })
	case 't':
		s.begin(ctx, hosts.Terminate(), h)
	case 'r':
		s.do(ctx, func() error { return s.restart(ctx, h) })
	case 'g':
		s.do(ctx, func() error {
			at := boottime.Now()
			s.lab.Note(observe.Fault{What: "resign", Where: []string{h.Name()}, From: at, To: at})
			_, err := lab.HandOver(ctx, h, string(election.Default), "")
			return err
		})
	case 'l':
		if h, ok := leading(s.lab); ok {
			s.begin(ctx, hosts.Crash(), h)
		} else {
			s.say(Bad, "lose the leader's host: nobody leads")
		}
	default:
		if i := int(k - '1'); i >= 0 && i < min(9, len(all)) {
			s.selected = i
		}
	}
	s.front.show(s.model())
	return false
}

// do does something that takes time in a goroutine of its own, and reports its failure.
func (s *session) do(ctx context.Context, what func() error) {
	s.working.Go(func() {
		if err := what(); err != nil {
			s.report(ctx, report{mood: Bad, text: err.Error()})
		}
	})
}

func (s *session) begin(ctx context.Context, f hosts.Fault, h *hosts.Host) {
	s.do(ctx, func() error { _, err := s.lab.Begin(f, h); return err })
}

// cut cuts a host off from all others.
func (s *session) cut(ctx context.Context, h *hosts.Host) {
	if s.o.Hosts.Net != hosts.Namespaces {
		s.say(Bad, "cut: the agents share the loopback interface; start them with --netns")
		return
	}
	var others []string
	for _, o := range s.lab.Cluster.Hosts() {
		if o != h {
			others = append(others, o.Name())
		}
	}
	s.begin(ctx, hosts.Cut(others, hosts.BothWays), h)
}

// restart ends a process, by a kill if it does not end when asked, and starts it again.
func (s *session) restart(ctx context.Context, h *hosts.Host) error {
	err := s.lab.Restart(ctx, h, h.Config().Lease+closeLimit)
	if errors.Is(err, lab.ErrLate) {
		if _, err = s.lab.Begin(hosts.Crash(), h); err == nil {
			err = s.lab.Restart(ctx, h, closeLimit)
		}
	}
	return err
}

// describe puts a fault, or its end, into words. after is the words for the fault that stand
// behind "1.2 s after". detail is "" if text says it already.
func describe(f observe.Fault, over bool) (text, after, detail string) {
	where := hosts.Short(f.Where)
	if p := f.Program(); p != "" {
		where = "program " + p + " on " + where
	}
	words := map[string][3]string{
		"crash": {"lose the host", "the loss of", "start"}, killed: {"kill -9 the agent of", "kill -9 of the agent of", ""}, "terminate": {"SIGTERM", "SIGTERM of", "start"},
		"freeze": {"SIGSTOP", "SIGSTOP of", "SIGCONT"}, "resign": {"resign", "the resignation of", ""},
	}
	w, ok := words[f.What]
	switch {
	case ok && over:
		return w[2] + " " + where, "", ""
	case ok:
		return w[0] + " " + where, w[1] + " " + where, ""
	case over:
		return fmt.Sprintf("%s of %s has ended", f.What, where), "", ""
	}
	return f.What + " " + where, f.What + " of " + where, f.Detail
}
