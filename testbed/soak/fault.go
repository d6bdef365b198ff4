package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// undo ends a fault.
type undo func() error

// strike lets a fault begin, and returns how to end it. A fault that finds
// nothing to hit does nothing.
func (s *soak) strike(ctx context.Context, f strike) (undo, error) {
	h := s.target(f)
	s.ask(ctx, h)
	at := boottime.Now()
	end, err := s.begin(ctx, f, h)
	switch {
	case errors.Is(err, hosts.ErrUnavailable):
		s.leaveOut(f.Kind, err)
		return func() error { return nil }, nil
	case errors.Is(err, hosts.ErrDown), errors.Is(err, errNothing):
		return func() error { return nil }, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f, err)
	}
	s.result.Faults[f.Kind]++
	i := s.noteFault(f, h, at)
	return func() error {
		err := end()
		if i >= 0 {
			s.faults[i].To = boottime.Now()
		}
		if err != nil && !errors.Is(err, hosts.ErrDown) && !errors.Is(err, hosts.ErrUp) {
			return fmt.Errorf("end %s: %w", f, err)
		}
		return nil
	}, nil
}

// errNothing says that a fault found nothing to hit.
var errNothing = errors.New("nothing to hit")

// target is the host that a fault hits.
func (s *soak) target(f strike) *hosts.Host {
	all := s.cluster.Hosts()
	if f.Host != leading {
		return all[f.Host]
	}
	for _, name := range []string{Election, string(election.Default)} {
		if h, ok := s.cluster.Host(s.seen.Of(name).Leader()); ok {
			return h
		}
	}
	return all[0]
}

// begin does what a fault does.
func (s *soak) begin(ctx context.Context, f strike, h *hosts.Host) (undo, error) {
	p := s.programs[h.Name()]
	switch f.Kind {
	case Crash, CrashHost, Terminate:
		return s.stop(f, h, p)
	case Freeze, FreezeHost, FreezeProgram:
		return s.freeze(f, h, p)
	case CrashProgram:
		return nil2(p.signal(syscall.SIGKILL))
	case Resign:
		return nil2(s.resign(ctx, h))
	case Drain:
		if err := s.drain(ctx, h, true); err != nil {
			return nil, errNothing
		}
		return func() error { _ = s.drain(context.WithoutCancel(ctx), h, false); return nil }, nil
	case SlowDisk:
		_, err := h.SlowDisk(f.Disk)
		return func() error { _, err := h.SlowDisk(0); return err }, err
	case Starve:
		_, err := h.Starve(true)
		return func() error { _, err := h.Starve(false); return err }, err
	case Unplug:
		_, err := s.cluster.SetCarrier(h.Name(), false)
		return func() error { _, err := s.cluster.SetCarrier(h.Name(), true); return err }, err
	}
	return s.disconnect(f, h)
}

// nil2 is a fault that is over at once.
func nil2(err error) (undo, error) { return func() error { return nil }, err }

// stop ends an agent's process, and perhaps its program's. Its end is a start.
func (s *soak) stop(f strike, h *hosts.Host, p *runner) (undo, error) {
	var err error
	if f.Kind == Terminate {
		_, err = h.Terminate()
	} else {
		_, err = h.Kill()
	}
	if f.Kind == CrashHost {
		_ = p.signal(syscall.SIGKILL) // it may be gone
	}
	return func() error { _, err := h.Start(); return err }, err
}

func (s *soak) freeze(f strike, h *hosts.Host, p *runner) (undo, error) {
	if f.Kind != Freeze {
		if err := p.signal(syscall.SIGSTOP); err != nil && f.Kind == FreezeProgram {
			return nil, err
		}
	}
	if f.Kind == FreezeProgram {
		return func() error { return ignoreGone(p.signal(syscall.SIGCONT)) }, nil
	}
	if _, err := h.Freeze(); err != nil {
		_ = p.signal(syscall.SIGCONT)
		return nil, err
	}
	s.seen.Froze(h.Name())
	return func() error {
		_ = p.signal(syscall.SIGCONT)
		at, err := h.Thaw()
		if err == nil {
			s.seen.Thawed(h.Name(), at)
		}
		return err
	}, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// disconnect is a fault of links.
func (s *soak) disconnect(f strike, h *hosts.Host) (undo, error) {
	name := []string{h.Name()}
	var err error
	switch f.Kind {
	case CutOut:
		_, err = s.cluster.Cut(name, nil, hosts.Forth)
	case CutIn:
		_, err = s.cluster.Cut(name, nil, hosts.Back)
	case CutPair:
		other := s.cluster.Hosts()[f.Other].Name()
		if other == h.Name() {
			return nil, errNothing
		}
		_, err = s.cluster.Cut(name, []string{other}, hosts.BothWays)
	case BadLinks:
		for _, to := range s.cluster.Hosts() {
			if to != h && err == nil {
				_, err = s.cluster.SetLink(h.Name(), to.Name(), f.Link)
			}
		}
	default:
		_, err = s.cluster.Cut(name, nil, hosts.BothWays)
	}
	return func() error { _, err := s.cluster.Heal(); return err }, err
}

const asking = 3 * time.Second

func (s *soak) resign(ctx context.Context, h *hosts.Host) error {
	return s.call(ctx, h, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resign(ctx, Election)
		return err
	})
}

func (s *soak) drain(ctx context.Context, h *hosts.Host, on bool) error {
	return s.call(ctx, h, func(ctx context.Context, c *client.Client) error {
		_, err := c.Drain(ctx, on)
		return err
	})
}

// call asks an agent for something. An agent that is down, frozen or does not
// lead refuses or stays silent: then nothing happened.
func (s *soak) call(ctx context.Context, h *hosts.Host, do func(context.Context, *client.Client) error) error {
	c := client.New(h.Config().Socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	if do(ctx, c) != nil {
		return errNothing
	}
	return nil
}

// noteFault takes a fault down for the recording, and returns its place; -1 if
// there are too many.
func (s *soak) noteFault(f strike, h *hosts.Host, at election.Instant) int {
	if len(s.faults) == maxFaults {
		return -1
	}
	what := map[Kind]string{Crash: "crash", CrashHost: "crash", Terminate: "terminate", Freeze: "freeze", FreezeHost: "freeze",
		CrashProgram: "crash", FreezeProgram: "freeze", SlowDisk: "disk", Starve: "cpu", Unplug: "carrier", BadLinks: "link",
		Cut: "cut", CutIn: "cut", CutOut: "cut", CutPair: "cut", Resign: "resign", Drain: "drain"}[f.Kind]
	fault := observe.Fault{What: what, Where: []string{h.Name()}, Detail: string(f.Kind), From: at, To: at}
	if slices.Contains([]Kind{Cut, CutIn, CutOut, CutPair, BadLinks}, f.Kind) {
		for i, other := range s.cluster.Hosts() {
			if other != h && (f.Kind != CutPair || i == f.Other) {
				fault.Peers = append(fault.Peers, other.Name())
			}
		}
	}
	s.faults = append(s.faults, fault)
	return len(s.faults) - 1
}
