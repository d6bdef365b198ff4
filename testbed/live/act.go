package live

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// demonstration takes about the given time. If the leader's agent has a keeper, it first shows that
// a kill of this agent costs nothing. Then the leader's host is lost, another host takes over, and
// the lost host comes back.
func demonstration(ctx context.Context, l *lab.Lab, length time.Duration) error {
	quiet := min(2*time.Second, length/5)
	leader, err := afterAgreement(ctx, l, quiet)
	if err == nil && leader.Config().Keeper {
		err = killAgent(ctx, l, leader)
	}
	if err == nil {
		leader, err = afterAgreement(ctx, l, quiet)
	}
	if err == nil {
		_, err = l.Begin(hosts.Crash(), leader)
	}
	if err == nil {
		err = observe.Sleep(ctx, min(3*time.Second, length*3/10))
	}
	if err == nil {
		_, err = l.Start(leader)
	}
	return err
}

// afterAgreement waits until the agents agree, and then for the given time. It returns the host that leads.
func afterAgreement(ctx context.Context, l *lab.Lab, quiet time.Duration) (leader *hosts.Host, err error) {
	a, err := l.Agree(ctx, maxFor)
	if err == nil {
		err = observe.Sleep(ctx, quiet)
	}
	leader, _ = l.Cluster.Host(a.Leader)
	return leader, err
}

// killAgent kills a host's agent. Its keeper, if it has one, starts it again.
func killAgent(ctx context.Context, l *lab.Lab, h *hosts.Host) error {
	if !h.Config().Keeper {
		_, err := l.Begin(hosts.Crash(), h)
		return err
	}
	pid, err := lab.Life(ctx, h)
	if err == nil {
		_, err = l.Strike("kill", h, pid, syscall.SIGKILL)
	}
	return err
}

// press carries out the command of a key. It reports whether the session has to end.
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
		if h, ok := s.lab.Cluster.Host(s.leader.agent); ok {
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

// do calls the function in a new goroutine, since that may take time. It reports a failure.
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

// restart asks a host's agent to end, kills an agent that does not end, and starts it again.
func (s *session) restart(ctx context.Context, h *hosts.Host) error {
	err := s.lab.Restart(ctx, h, h.Config().Lease+closeLimit)
	if errors.Is(err, lab.ErrLate) {
		if _, err = s.lab.Begin(hosts.Crash(), h); err == nil {
			err = s.lab.Restart(ctx, h, closeLimit)
		}
	}
	return err
}

// describe puts a fault, or its end, into words. after names the fault in words that can follow
// "1.2 s after".
func describe(f observe.Fault, over bool) (text, after string) {
	words := map[string][3]string{
		"crash": {"lose the host", "the loss of", "start"}, "kill": {"kill -9 the agent of", "kill -9 of the agent of", ""}, "terminate": {"SIGTERM", "SIGTERM of", "start"},
		"freeze": {"SIGSTOP", "SIGSTOP of", "SIGCONT"}, "resign": {"resign", "the resignation of", ""},
	}[f.What]
	where := " " + hosts.Short(f.Where)
	if over {
		return words[2] + where, ""
	}
	return words[0] + where, words[1] + where
}
