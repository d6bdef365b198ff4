package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/netns"
	"github.com/doyen-election/doyen/testbed/observe"
)

// kind is a kind of fault.
type kind struct {
	// fault is what happens to the host's agent, disk, processor or links to the others.
	fault func(f strike, others []string) hosts.Fault
	// program is what happens to the host's programs. Either fault or program may be nil.
	program func(*lab.Program) (election.Instant, error)
	// asks, unless it is nil, asks the agent for something in place of a fault, and returns how to end that.
	asks func(*soak, context.Context, *hosts.Host) (undo, error)
}

// kinds returns all kinds, by name.
func kinds() map[string]kind {
	just := func(f func() hosts.Fault) func(strike, []string) hosts.Fault {
		return func(strike, []string) hosts.Fault { return f() }
	}
	cut := func(d hosts.Direction) func(strike, []string) hosts.Fault {
		return func(_ strike, others []string) hosts.Fault { return hosts.Cut(others, d) }
	}
	return map[string]kind{
		"crash":          {fault: just(hosts.Crash)},
		"terminate":      {fault: just(hosts.Terminate)},
		"freeze":         {fault: just(hosts.Freeze)},
		"freeze host":    {fault: just(hosts.Freeze), program: (*lab.Program).Freeze},
		"crash host":     {fault: just(hosts.Crash), program: (*lab.Program).Crash},
		"crash program":  {program: (*lab.Program).Crash},
		"freeze program": {program: (*lab.Program).Freeze},
		"resign":         {asks: (*soak).resign},
		"drain":          {asks: (*soak).drainFor},
		"cut":            {fault: cut(hosts.BothWays)}, // packets get lost silently, as in all cuts
		"cut out":        {fault: cut(hosts.Forth)},    // no other host hears this one
		"cut in":         {fault: cut(hosts.Back)},     // this host hears no other
		"cut pair": {fault: func(f strike, others []string) hosts.Fault {
			return hosts.Cut([]string{others[f.Other%len(others)]}, hosts.BothWays)
		}},
		"bad links": {fault: func(f strike, others []string) hosts.Fault {
			return hosts.Degrade(others, hosts.Forth, f.Link, "bad links")
		}},
		"unplug":    {fault: just(hosts.Unplug)},
		"slow disk": {fault: func(f strike, _ []string) hosts.Fault { return hosts.SlowDisk(f.Disk) }},
		"starve":    {fault: just(hosts.Starve)},
	}
}

// Kinds returns the names of all kinds.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds())) }

// leading, as strike.Host, means the leader when the fault begins or, by chance, the host of the newest job.
const leading = -1

// strike is one fault of a round.
type strike struct {
	Kind  string
	Host  int // its index, or leading
	Other int // the second host of a cut pair, among the others
	At    time.Duration
	Lasts time.Duration
	Link  netns.Link    // for bad links
	Disk  time.Duration // for a slow disk: how much longer each write takes
}

func (s strike) String() string {
	host := "the leader"
	if s.Host != leading {
		host = fmt.Sprintf("host %d", s.Host)
	}
	return fmt.Sprintf("%s of %s after %s for %s", s.Kind, host, s.At.Round(time.Millisecond), s.Lasts.Round(time.Millisecond))
}

// drawRound draws the faults of one round, in the order of their beginnings: most often one,
// sometimes two or three. All faults end within six leases of the round's start.
func drawRound(rng *rand.Rand, kinds []string, hosts int, lease time.Duration) []strike {
	n := []int{1, 1, 1, 2, 2, 3}[rng.IntN(6)]
	var all []strike
	for range n {
		s := strike{
			Kind: kinds[rng.IntN(len(kinds))], Host: leading, Other: rng.IntN(hosts),
			At:    time.Duration(rng.Int64N(int64(lease))),
			Lasts: around(rng, []time.Duration{lease / 6, lease, 2 * lease}[rng.IntN(3)], 5*lease),
			Link: netns.Link{Delay: around(rng, lease/60, lease/4), Jitter: around(rng, lease/120, lease/4),
				Loss: rng.Float64() * 0.3, Duplicate: rng.Float64() * 0.1, Reorder: rng.Float64() * 0.1},
			Disk: around(rng, lease/20, lease),
		}
		if rng.IntN(2) == 0 {
			s.Host = rng.IntN(hosts)
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.At, b.At) })
	return all
}

// around draws an exponentially distributed time with the given mean, but at most the time most.
func around(rng *rand.Rand, mean, most time.Duration) time.Duration {
	return min(time.Duration(rng.ExpFloat64()*float64(mean)), most)
}

// moment is when a fault of a round begins or, with undo, ends.
type moment struct {
	at     time.Duration
	strike int
	undo   bool
}

// moments puts the beginnings and ends of a round's faults in order.
func moments(all []strike) []moment {
	var line []moment
	for i, s := range all {
		line = append(line, moment{s.At, i, false}, moment{s.At + s.Lasts, i, true})
	}
	slices.SortStableFunc(line, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return line
}

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
	if h, _ := s.newestStart(); h != nil && f.At%2 == 0 {
		return h
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

// begin lets f happen to the host, its programs or both. It returns how to end f.
func (s *soak) begin(ctx context.Context, f strike, h *hosts.Host) (undo, error) {
	k := kinds()[f.Kind]
	if k.asks != nil {
		return k.asks(s, ctx, h)
	}
	thaw := func() error { return s.each(h, (*lab.Program).Thaw) }
	if k.program != nil {
		if err := s.each(h, k.program); k.fault == nil {
			return thaw, err
		} // otherwise err does not count: a program may not run, but the host's fault can begin
	}
	var others []string
	for _, other := range s.lab.Cluster.Hosts() {
		if other != h {
			others = append(others, other.Name())
		}
	}
	fault := k.fault(f, others)
	_, err := s.lab.Begin(fault, h)
	if err != nil && k.program != nil {
		_ = thaw()
	}
	return func() error {
		if k.program != nil {
			_ = thaw()
		}
		_, err := s.lab.End(fault, h)
		return err
	}, err
}

// each does something to all programs of a host.
func (s *soak) each(h *hosts.Host, do func(*lab.Program) (election.Instant, error)) error {
	var errs []error
	for _, p := range s.programs[h.Name()] {
		_, err := do(p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *soak) resign(ctx context.Context, h *hosts.Host) (undo, error) {
	at, err := lab.HandOver(ctx, h, Election, "")
	for _, series := range []string{skips, reruns} {
		if err == nil || s.o.Doyen == "" {
			break
		}
		at, err = lab.HandOver(ctx, h, series, "")
	}
	if err != nil {
		return nil, errNothing // the host is down, frozen or does not lead
	}
	s.lab.Note(observe.Fault{What: "resign", Where: []string{h.Name()}, From: at, To: at})
	return nothing, nil
}

func (s *soak) drainFor(ctx context.Context, h *hosts.Host) (undo, error) {
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
}

func (s *soak) drain(ctx context.Context, h *hosts.Host, on bool) error {
	return lab.Call(ctx, h, func(ctx context.Context, c *client.Client) error {
		_, err := c.Drain(ctx, on)
		return err
	})
}
