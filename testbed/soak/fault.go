package soak

import (
	"context"
	"errors"
	"fmt"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// undo ends a fault.
type undo func() error

func nothing() error { return nil }

// strike begins a fault and returns how to end it. A fault that finds nothing to hit does
// nothing.
func (s *soak) strike(ctx context.Context, f strike) (undo, error) {
	end, err := s.begin(ctx, f, s.target(f))
	switch {
	case errors.Is(err, hosts.ErrUnavailable):
		s.skip(f.Kind, err)
		return nothing, nil
	case hitsNothing(err):
		return nothing, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f, err)
	}
	s.result.Faults[f.Kind]++
	return func() error {
		if err := end(); err != nil && !hitsNothing(err) {
			return fmt.Errorf("end %s: %w", f, err)
		}
		return nil
	}, nil
}

// hitsNothing reports whether a fault, or its end, found nothing to do.
func hitsNothing(err error) bool {
	return errors.Is(err, hosts.ErrDown) || errors.Is(err, hosts.ErrUp) || errors.Is(err, lab.ErrNoProcess) || errors.Is(err, errNothing)
}

var errNothing = errors.New("nothing to hit")

// target is the host that a fault hits.
func (s *soak) target(f strike) *hosts.Host {
	all := s.lab.Cluster.Hosts()
	if f.Host != leading {
		return all[f.Host]
	}
	target := all[0]
	s.lab.Look(func(e *observe.Elections) {
		for _, name := range []string{string(election.Default), Election} {
			if h, ok := s.lab.Cluster.Host(e.Of(name).Leader()); ok {
				target = h
			}
		}
	})
	return target
}

// begin lets f happen to the host's agent, its program or both. It returns how to end f.
func (s *soak) begin(ctx context.Context, f strike, h *hosts.Host) (undo, error) {
	p := s.programs[h.Name()]
	switch f.Kind {
	case Resign:
		at, err := lab.HandOver(ctx, h, Election, "")
		if err != nil {
			return nil, errNothing // the host is down, frozen or does not lead
		}
		s.lab.Note(observe.Fault{What: "resign", Where: []string{h.Name()}, From: at, To: at})
		return nothing, nil
	case Drain:
		at := boottime.Now()
		if s.drain(ctx, h, true) != nil {
			return nil, errNothing
		}
		s.lab.Note(observe.Fault{What: "drain", Where: []string{h.Name()}, From: at})
		return func() error {
			_ = s.drain(context.WithoutCancel(ctx), h, false) // the agent may be down
			s.lab.Over(boottime.Now(), "", []string{h.Name()}, "drain")
			return nil
		}, nil
	case CrashProgram:
		_, err := p.Crash()
		return nothing, err
	case FreezeProgram:
		_, err := p.Freeze()
		return func() error { _, err := p.Thaw(); return err }, err
	case CrashHost:
		_, _ = p.Crash() // the program may be gone
	case FreezeHost:
		_, _ = p.Freeze()
	}
	fault, err := s.fault(f, h)
	if err == nil {
		_, err = s.lab.Begin(fault, h)
	}
	if f.Kind == FreezeHost && err != nil {
		_, _ = p.Thaw()
	}
	return func() error {
		if f.Kind == FreezeHost {
			_, _ = p.Thaw()
		}
		_, err := s.lab.End(fault, h)
		return err
	}, err
}

// fault is the fault of the host's agent, disk, processor or links that f stands for.
func (s *soak) fault(f strike, h *hosts.Host) (hosts.Fault, error) {
	var others []string
	for _, other := range s.lab.Cluster.Hosts() {
		if other != h {
			others = append(others, other.Name())
		}
	}
	switch f.Kind {
	case Crash, CrashHost:
		return hosts.Crash(), nil
	case Terminate:
		return hosts.Terminate(), nil
	case Freeze, FreezeHost:
		return hosts.Freeze(), nil
	case SlowDisk:
		return hosts.SlowDisk(f.Disk), nil
	case Starve:
		return hosts.Starve(), nil
	case Unplug:
		return hosts.Unplug(), nil
	case BadLinks:
		return hosts.Degrade(others, hosts.Forth, f.Link, "bad links"), nil
	case CutOut:
		return hosts.Cut(others, hosts.Forth), nil
	case CutIn:
		return hosts.Cut(others, hosts.Back), nil
	case CutPair:
		other := s.lab.Cluster.Hosts()[f.Other]
		if other == h {
			return hosts.Fault{}, errNothing
		}
		return hosts.Cut([]string{other.Name()}, hosts.BothWays), nil
	}
	return hosts.Cut(others, hosts.BothWays), nil
}

func (s *soak) drain(ctx context.Context, h *hosts.Host, on bool) error {
	return lab.Call(ctx, h, func(ctx context.Context, c *client.Client) error {
		_, err := c.Drain(ctx, on)
		return err
	})
}
