package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/boottime"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// Options say what to run.
type Options struct {
	Hosts  hosts.Config  // the agents; its OnExit is replaced
	For    time.Duration // how long to run
	Seed   uint64        // of the faults
	Doyen  string        // path of the product, for `doyen once` in place of the counter; "": the counter
	Keep   string        // folder for the logs if something is violated
	Log    io.Writer     // progress
	Rounds int           // at most so many rounds; 0: no limit
}

const (
	// Election is the election in which the programs are candidates.
	Election = "soak"
	// healing is how long it may take, once all faults are over, until agents agree and a program
	// goes on. heal adds five leases to it.
	healing   = 15 * time.Second
	pollEvery = 50 * time.Millisecond
	showEvery = 30 * time.Second
	longest   = 30 * 24 * time.Hour // the longest For
)

// Check returns an error if the options can't be run. It names the flag to blame.
func (o Options) Check() error {
	if o.For <= 0 || o.For > longest {
		return fmt.Errorf("--for: %s is not between 1ns and %s", o.For, longest)
	}
	if o.Hosts.Agents < 3 {
		return fmt.Errorf("--hosts: %d hosts, too few for another to take over from a leader: 3 are the least", o.Hosts.Agents)
	}
	return o.Hosts.Check()
}

// soak is one run. Only one goroutine uses it.
type soak struct {
	o        Options
	rng      *rand.Rand
	lab      *lab.Lab
	register *Register
	programs map[string][]*lab.Program // by host
	lanes    []*lane                   // of jobs
	kinds    []string                  // of faults that this machine can have
	lease    time.Duration

	result Result
	began  election.Instant
	shown  time.Time // when progress was shown last
}

// Run runs until the time is over, ctx ends or something is violated. The result is all that
// happened. The error says why the soak itself could not go on.
func Run(ctx context.Context, o Options) (result Result, err error) {
	if err := o.Check(); err != nil {
		return Result{}, err
	}
	over, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	s := &soak{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x736f616b)), kinds: Kinds(), lease: o.Hosts.Lease(),
		programs: map[string][]*lab.Program{}, register: &Register{}}
	s.result = Result{Seed: o.Seed, Faults: map[string]int{}}
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

// open starts everything; closeAll ends it again.
func (s *soak) open(ctx context.Context) (closeAll func() error, err error) {
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	served <- nil
	closeAll = func() error {
		stop()
		if s.lab == nil {
			return nil
		}
		return errors.Join(s.lab.Kill(), <-served)
	}
	if s.lab, err = lab.New(ctx, s.o.Hosts, lab.Options{Poll: pollEvery}); err != nil {
		return closeAll, err
	}
	s.began = boottime.Now()
	if _, _, err := s.lab.StartAll(); err != nil {
		return closeAll, err
	}
	if s.o.Doyen != "" {
		return closeAll, s.openJobs()
	}
	path := filepath.Join(s.lab.Cluster.Dir(), "r.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return closeAll, fmt.Errorf("open the register: %w", err)
	}
	<-served
	go func() { served <- s.register.Serve(ctx, listener) }()
	for _, h := range s.lab.Cluster.Hosts() {
		p, err := s.lab.Launch(h.Name(), Election, h, true, func(*lab.Program) *exec.Cmd {
			return exec.Command(actor.Path(), actor.Count(h.Config().Socket, Election, path, h.Name())...)
		})
		if err != nil {
			return closeAll, err
		}
		s.programs[h.Name()] = []*lab.Program{p}
	}
	return closeAll, nil
}

// rounds plays rounds until ctx ends, something is violated or Options.Rounds are over.
func (s *soak) rounds(ctx context.Context) error {
	fmt.Fprintf(s.o.Log, "soak: %d hosts, %s, profile %s, for %s, seed %d\n", s.o.Hosts.Agents, s.o.Hosts.Algorithm, s.o.Hosts.Profile, s.o.For, s.o.Seed)
	if err := s.heal(ctx); err != nil || s.result.Violation != nil {
		return err
	}
	for s.o.Rounds == 0 || s.result.Rounds < s.o.Rounds {
		round := drawRound(s.rng, s.kinds, len(s.lab.Cluster.Hosts()), s.lease)
		s.result.Rounds++
		err := s.play(ctx, round)
		if err == nil {
			err = s.heal(ctx)
		}
		if s.check(); s.result.Violation != nil {
			s.result.Violation.Round, s.result.Violation.Faults = s.result.Rounds, each.Of(round, strike.String)
			return nil
		}
		if err != nil {
			return err
		}
		s.progress()
	}
	return nil
}

// play lets the faults of a round begin and end.
func (s *soak) play(ctx context.Context, round []strike) error {
	began := time.Now()
	undos := make([]undo, len(round))
	for _, m := range moments(round) {
		if err := s.lab.Until(ctx, s.o.For+m.at, "a fault", func() bool { return time.Since(began) >= m.at }); err != nil {
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

// heal ends all faults, and waits until all agents agree and a program acts again.
func (s *soak) heal(ctx context.Context) error {
	if err := s.lab.Cluster.Heal(); err != nil && !errors.Is(err, hosts.ErrUnavailable) {
		return err
	}
	var names []string
	for _, h := range s.lab.Cluster.Hosts() {
		s.healHost(ctx, h)
		names = append(names, h.Name())
	}
	healed, limit := boottime.Now(), healing+5*s.lease
	agreed := func() (all bool) {
		for _, h := range s.lab.Cluster.Hosts() { // a process that was asked to end may have run until now
			if h.Status() == hosts.Down {
				s.healHost(ctx, h)
			}
		}
		s.lab.Look(func(e *observe.Elections) {
			_, hosts := e.Of(string(election.Default)).Agreement(names)
			_, programs := e.Of(Election).Agreement(names)
			all = hosts && (programs || s.o.Doyen != "") // with jobs, the leader changes with each job
		})
		return all && s.lastAct() > healed
	}
	switch err := s.lab.Until(ctx, limit, "recovery", agreed); {
	case errors.Is(err, lab.ErrLate):
		s.violate("no recovery", fmt.Sprintf("%s after all faults had ended: %s; last act %s ago", limit, s.lab.Picture(),
			boottime.Now().Sub(s.lastAct()).Round(time.Millisecond)))
		return nil
	case err != nil:
		return err
	}
	s.result.Heals = append(s.result.Heals, boottime.Now().Sub(healed))
	return nil
}

// lastAct is when a program last added to the counter, or when the last job was started.
func (s *soak) lastAct() election.Instant {
	if s.o.Doyen == "" {
		return s.register.LastAdd()
	}
	_, at := s.newestStart()
	return at
}

// healHost tries to end every fault that the host may still have.
func (s *soak) healHost(ctx context.Context, h *hosts.Host) {
	_ = s.each(h, (*lab.Program).Thaw)
	_, _ = hosts.SlowDisk(0).End(nil, h)
	_, _ = hosts.Starve().End(nil, h)
	if h.Status() == hosts.Frozen {
		_, _ = s.lab.End(hosts.Freeze(), h)
	}
	if h.Status() == hosts.Down {
		_, _ = s.lab.Start(h)
	}
	_ = s.drain(ctx, h, false)
}

// skip records that this machine can't have a kind of fault.
func (s *soak) skip(k string, err error) {
	s.kinds = slices.DeleteFunc(s.kinds, func(x string) bool { return x == k })
	s.result.Skipped = append(s.result.Skipped, fmt.Sprintf("%s: %v", k, err))
	fmt.Fprintf(s.o.Log, "soak: skipped: %s: %v\n", k, err)
}

func (s *soak) progress() {
	if time.Since(s.shown) < showEvery {
		return
	}
	s.shown = time.Now()
	if s.o.Doyen != "" {
		if err := s.judgeJobs(); err == nil && s.result.Jobs != nil {
			fmt.Fprintf(s.o.Log, "soak: %s\n", s.result.Jobs)
		}
	}
	fmt.Fprintf(s.o.Log, "soak: %s: %s\n", boottime.Now().Sub(s.began).Round(time.Second), s.result.line(s.register.Seen()))
}
