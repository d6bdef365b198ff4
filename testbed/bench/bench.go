package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/testbed/hosts"
)

// Options says what to measure.
type Options struct {
	Agents    int
	Algorithm string
	Profile   string  // of all but the takeovers that are measured on "local"
	More      []Point // further clusters to measure the same on
	Net       hosts.Net
	Busy      int      // loops beside the agents in part load
	Rounds    int      // kills of the leader; what else is repeated follows from it
	Only      []string // parts, see Parts; empty: the usual ones
	Binary    string   // path of the product; "": it is built
	Seed      uint64   // of the moments at which faults hit
	Progress  io.Writer
}

const (
	// DefaultRounds make a run of six to eight minutes on the lan profile.
	DefaultRounds = 50
	maxRounds     = 10_000
	// manyAgents are so many that a round of them takes long: there are fewer.
	manyAgents   = 25
	fewestRounds = 3
	// fewAgents are as many as targets are set for.
	fewAgents = 3
)

// Check reports what can't be measured, naming the flag to blame.
func (o Options) Check() error {
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return fmt.Errorf("--rounds: %d is not between 1 and %d", o.Rounds, maxRounds)
	}
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("--only: unknown part %q: use %s", name, strings.Join(Parts(), ", "))
		}
	}
	for _, p := range o.points() {
		if p.Agents < 3 {
			return fmt.Errorf("--agents: %d agents, nobody could take over from the leader: 3 are the least", p.Agents)
		}
		if err := o.on(p).hosts().Check(); err != nil {
			return err
		}
	}
	return nil
}

// points are the clusters to measure.
func (o Options) points() []Point {
	return append([]Point{{o.Agents, o.Algorithm, o.Profile}}, o.More...)
}

// on returns the options of one cluster.
func (o Options) on(p Point) Options {
	o.Agents, o.Algorithm, o.Profile = p.Agents, p.Algorithm, p.Profile
	if p.Agents >= manyAgents {
		o.Rounds = max(fewestRounds, o.Rounds/5)
	}
	return o
}

func (o Options) hosts() hosts.Config {
	return hosts.Config{Agents: o.Agents, Algorithm: o.Algorithm, Profile: o.Profile, Quorum: true, Net: o.Net, Seed: o.Seed}
}

// bench is one run.
type bench struct {
	o         Options
	program   hosts.Program
	binary    string // its path; a program that is none has no size
	rng       *rand.Rand
	at        *Point // what is being measured, of several
	idled     *idleCosts
	idleTime  time.Duration // to measure idling for; 0: idleWindow
	report    Report
	elsewhere []float64 // ms of two leaders at once in what measures something else
}

// Run measures, and returns what it found; on an error, what it found before.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	b := &bench{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0))}
	b.report = Report{
		Version: agent.Version, Time: time.Now().UTC(), Machine: machine(),
		Options: Settings{Agents: o.Agents, Algorithm: o.Algorithm, Profile: o.Profile,
			LeaseMS: o.hosts().Lease().Milliseconds(), Rounds: o.Rounds, Seed: o.Seed},
	}
	product := hosts.Binary{Path: o.Binary}
	if o.Binary == "" {
		dir, dirErr := hosts.NewDir()
		if dirErr != nil {
			return b.report, dirErr
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		b.progress("build", 0, 0)
		if product.Path, err = hosts.BuildShipped(ctx, dir.Path, hosts.Product); err != nil {
			return b.report, err
		}
	}
	b.program, b.binary = product, product.Path
	err = b.run(ctx)
	return b.report, err
}

func (b *bench) run(ctx context.Context) error {
	all := b.o
	var errs []error
	for _, p := range all.points() {
		b.o, b.elsewhere, b.idled = all.on(p), nil, nil
		if len(all.More) > 0 {
			b.at = &p
			b.progress(p.String(), 0, 0)
		}
		errs = append(errs, b.measure(ctx))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// measure measures one cluster.
func (b *bench) measure(ctx context.Context) error {
	var errs []error
	for _, part := range parts() {
		if !part.wanted(b.o, b.at != nil) {
			continue
		}
		err := part.measure(b, ctx)
		if err == nil {
			continue
		}
		err = fmt.Errorf("measure %s: %w", part.name, err)
		if b.at == nil || ctx.Err() != nil {
			return err
		}
		// Of an hour of measuring, what succeeds is kept.
		errs = append(errs, err)
		b.progress(err.Error(), 0, 0)
		b.note(fmt.Sprintf("%s on %s: %v", part.name, b.at, err))
	}
	if len(b.elsewhere) > 0 {
		b.add("overlap_elsewhere", "two leaders at once, in the takeovers above", "ms", &Target{ofMax, 0}, b.elsewhere)
	}
	return errors.Join(errs...)
}

func (b *bench) config(profile string) hosts.Config {
	c := b.o.hosts()
	c.Profile, c.Program = profile, b.program
	return c
}

func (b *bench) add(key, what, unit string, target *Target, samples []float64) {
	r := newResult(key, what, unit, target, samples)
	r.On = b.at
	b.report.Results = append(b.report.Results, r)
}

// note says what was not measured, and why, once.
func (b *bench) note(text string) {
	if !slices.Contains(b.report.Notes, text) {
		b.report.Notes = append(b.report.Notes, text)
	}
}

// small returns the target where it was set, for a few agents; what more of them
// cost is for information.
func (b *bench) small(t *Target) *Target {
	if b.at != nil && b.at.Agents > fewAgents {
		return nil
	}
	return t
}

// progress says on one line how far it is; of 0 rounds there are no numbers.
func (b *bench) progress(what string, done, of int) {
	switch {
	case of == 0:
		fmt.Fprintf(b.o.Progress, "bench: %s\n", what)
	case done == of || done%10 == 0:
		fmt.Fprintf(b.o.Progress, "bench: %s: %d of %d\n", what, done, of)
	}
}

// finish closes a rig at the end of a measurement.
func (b *bench) finish(r *rig, err *error) { *err = errors.Join(*err, r.close()) }
