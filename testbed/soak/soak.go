package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/boottime"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/observe"
)

// Options say what to run.
type Options struct {
	Hosts  hosts.Config  // which agents; its OnExit is taken
	For    time.Duration // how long
	Seed   uint64        // of the faults
	Actor  string        // path of an executable that calls ServeProgram
	Keep   string        // folder for the logs if something is violated
	Log    io.Writer     // progress
	Rounds int           // at most; 0: no limit
}

const (
	// healing is how long agents may take to agree, and a program to go on, once
	// all faults are over, beside some leases.
	healing = 15 * time.Second
	// maxFaults is how many the recording has, at most.
	maxFaults = 20_000
	pollEvery = 50 * time.Millisecond
	telling   = 30 * time.Second
	// longest is a bound for all a soak may run.
	longest = 30 * 24 * time.Hour
)

// Check reports what can't be run, naming the flag to blame.
func (o Options) Check() error {
	if o.For <= 0 || o.For > longest {
		return fmt.Errorf("--for: %s is not between 1ns and %s", o.For, longest)
	}
	if o.Hosts.Agents < 3 {
		return fmt.Errorf("--hosts: %d hosts, nobody could take over from a leader: 3 are the least", o.Hosts.Agents)
	}
	return o.Hosts.Check()
}

// soak is one run. One goroutine uses it.
type soak struct {
	o        Options
	rng      *rand.Rand
	cluster  *hosts.Cluster
	seen     *observe.Elections
	events   []<-chan observe.Event
	exits    chan hosts.Exit
	register *Register
	programs map[string]*runner
	kinds    []Kind // that this machine can have
	lease    time.Duration

	faults []observe.Fault
	result Result
	began  election.Instant
	told   time.Time // when progress was told last
}

// Run runs until the time is over, ctx ends or something is violated. The result
// tells of all that happened; the error, of what kept the soak itself from its
// work.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	over, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	s := &soak{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x736f616b)), kinds: Kinds(), lease: o.Hosts.Lease(),
		exits: make(chan hosts.Exit), programs: map[string]*runner{}, register: NewRegister()}
	s.result = Result{Seed: o.Seed, Faults: map[Kind]int{}}
	defer func() { result = s.result }()
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	closeAll, err := s.open(inner)
	if err != nil {
		return s.result, errors.Join(err, closeAll())
	}
	err = s.rounds(over)
	if over.Err() != nil && errors.Is(err, context.Cause(over)) {
		err = nil
	}
	s.conclude()
	return s.result, errors.Join(err, closeAll())
}

// open starts everything; what it returns ends it again.
func (s *soak) open(ctx context.Context) (closeAll func() error, err error) {
	ctx, stop := context.WithCancel(ctx)
	var closers []func() error
	closeAll = func() error {
		stop()
		var errs []error
		for _, c := range slices.Backward(closers) {
			errs = append(errs, c())
		}
		for _, events := range s.events {
			for range events { // until nothing is followed
			}
		}
		return errors.Join(errs...)
	}
	c := s.o.Hosts
	c.OnExit = func(e hosts.Exit) {
		select {
		case s.exits <- e:
		case <-ctx.Done():
		}
	}
	if s.cluster, err = hosts.New(c); err != nil {
		return closeAll, err
	}
	closers = append(closers, func() error {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		return s.cluster.Close(now)
	})
	s.seen = observe.NewElections(s.lease)
	if !c.Quorum {
		s.seen = observe.NewElections(0)
	}
	s.began = boottime.Now()
	var sources []observe.Source
	for _, h := range s.cluster.Hosts() {
		at, err := h.Start()
		if err != nil {
			return closeAll, err
		}
		s.seen.Started(h.Name(), at)
		sources = append(sources, observe.Source{Agent: h.Name(), Socket: h.Config().Socket})
	}
	for _, name := range []string{string(election.Default), Election} {
		s.events = append(s.events, observe.Follow(ctx, observe.Options{Sources: sources, Election: name, Poll: pollEvery}))
	}
	closePrograms, err := s.openPrograms(ctx)
	closers = append(closers, closePrograms)
	return closeAll, err
}

// openPrograms starts the register, and a program on each host.
func (s *soak) openPrograms(ctx context.Context) (func() error, error) {
	path := filepath.Join(filepath.Dir(s.cluster.Hosts()[0].Config().Socket), "r.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return func() error { return nil }, fmt.Errorf("open the register: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- s.register.Serve(ctx, listener) }()
	ran := make(chan error, len(s.cluster.Hosts()))
	for _, h := range s.cluster.Hosts() {
		r := newRunner(h, s.o.Actor, path)
		s.programs[h.Name()] = r
		go func() { ran <- r.run() }()
	}
	return func() error {
		var errs []error
		for _, r := range s.programs {
			r.close()
			errs = append(errs, <-ran)
		}
		return errors.Join(append(errs, <-served)...)
	}, nil
}

// rounds goes on until the context ends or something is violated.
func (s *soak) rounds(ctx context.Context) error {
	fmt.Fprintf(s.o.Log, "soak: %d hosts, %s, profile %s, for %s, seed %d\n", s.o.Hosts.Agents, s.o.Hosts.Algorithm, s.o.Hosts.Profile, s.o.For, s.o.Seed)
	if err := s.heal(ctx); err != nil || s.result.Violation != nil {
		return err
	}
	for s.o.Rounds == 0 || s.result.Rounds < s.o.Rounds {
		round := drawRound(s.rng, s.kinds, len(s.cluster.Hosts()), s.lease)
		s.result.Rounds++
		err := s.play(ctx, round)
		if err == nil {
			err = s.heal(ctx)
		}
		if s.check(); s.result.Violation != nil {
			s.result.Violation.Round, s.result.Violation.Faults = s.result.Rounds, words(round)
			return nil
		}
		if err != nil {
			return err
		}
		s.progress()
	}
	return nil
}

// words are a round's faults.
func words(round []strike) []string {
	var all []string
	for _, f := range round {
		all = append(all, f.String())
	}
	return all
}

// play lets the faults of a round begin and end.
func (s *soak) play(ctx context.Context, round []strike) error {
	began := time.Now()
	undos := make([]undo, len(round))
	for _, m := range moments(round) {
		if err := s.pump(ctx, func() bool { return time.Since(began) >= m.at }, s.o.For+m.at); err != nil {
			return err
		}
		var err error
		if m.undo {
			err = undos[m.strike]()
		} else {
			undos[m.strike], err = s.strike(ctx, round[m.strike])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pump takes note of what happens until the condition holds, which it looks at
// every few milliseconds; errTooLong if that takes longer than the limit.
func (s *soak) pump(ctx context.Context, done func() bool, limit time.Duration) error {
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case e := <-s.events[0]:
			s.seen.Apply(e)
		case e := <-s.events[1]:
			s.seen.Apply(e)
		case e := <-s.exits:
			s.seen.Exited(e.Host, e.At)
		case <-tick.C:
		case <-late.C:
			return errTooLong
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

var errTooLong = errors.New("it took too long")

// heal ends whatever troubles anybody, and waits until all agree and a program
// acts again.
func (s *soak) heal(ctx context.Context) error {
	if _, err := s.cluster.Heal(); err != nil && !errors.Is(err, hosts.ErrUnavailable) {
		return err
	}
	for _, h := range s.cluster.Hosts() {
		s.healHost(ctx, h)
	}
	mended := boottime.Now()
	var names []string
	for _, h := range s.cluster.Hosts() {
		names = append(names, h.Name())
	}
	agreed := func() bool {
		for _, h := range s.cluster.Hosts() { // a process that was told to end may have lived on until now
			if h.Status() == hosts.Down {
				s.healHost(ctx, h)
			}
		}
		_, hosts := s.seen.Of(string(election.Default)).Agreement(names)
		_, programs := s.seen.Of(Election).Agreement(names)
		return hosts && programs && s.register.LastAdd() > mended
	}
	switch err := s.pump(ctx, agreed, healing+5*s.lease); {
	case errors.Is(err, errTooLong):
		s.violate("no recovery", fmt.Sprintf("%s after all faults had ended: %s", healing+5*s.lease, s.picture()))
		return nil
	case err != nil:
		return err
	}
	s.result.Heals = append(s.result.Heals, boottime.Now().Sub(mended))
	return nil
}

func (s *soak) healHost(ctx context.Context, h *hosts.Host) {
	_ = s.programs[h.Name()].signal(syscall.SIGCONT)
	_, _ = h.SlowDisk(0) // what was not on can't be ended, and need not
	_, _ = h.Starve(false)
	if h.Status() == hosts.Frozen {
		if at, err := h.Thaw(); err == nil {
			s.seen.Thawed(h.Name(), at)
		}
	}
	if h.Status() == hosts.Down {
		if at, err := h.Start(); err == nil {
			s.seen.Started(h.Name(), at)
		}
	}
	_ = s.drain(ctx, h, false)
}

// ask polls an agent now, so that the deadline it told last is known.
func (s *soak) ask(ctx context.Context, h *hosts.Host) {
	if h.Status() != hosts.Running {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.lease/4)
	defer cancel()
	c := client.New(h.Config().Socket)
	defer c.Close()
	for _, name := range []string{string(election.Default), Election} {
		if p, err := observe.Ask(ctx, c, h.Name(), name); err == nil {
			s.seen.Apply(p)
		}
	}
}

// leaveOut takes note that a kind of fault can't be had here.
func (s *soak) leaveOut(k Kind, err error) {
	s.kinds = slices.DeleteFunc(s.kinds, func(x Kind) bool { return x == k })
	s.result.LeftOut = append(s.result.LeftOut, fmt.Sprintf("%s: %v", k, err))
	fmt.Fprintf(s.o.Log, "soak: skipped: %s: %v\n", k, err)
}

func (s *soak) progress() {
	if time.Since(s.told) < telling {
		return
	}
	s.told = time.Now()
	fmt.Fprintf(s.o.Log, "soak: %s: %s\n", boottime.Now().Sub(s.began).Round(time.Second), s.result.line(s.register.Counts()))
}
