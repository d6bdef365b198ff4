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
	Profile   string   // of all but the takeovers that are measured on "local"
	Rounds    int      // kills of the leader; what else is repeated follows from it
	Only      []string // parts, see Parts; empty: all
	Binary    string   // path of the product; "": it is built
	Seed      uint64   // of the moments at which faults hit
	Progress  io.Writer
}

const (
	// DefaultRounds make a run of six to eight minutes on the lan profile.
	DefaultRounds = 50
	maxRounds     = 10_000
)

// Parts are what can be measured by itself.
func Parts() []string {
	return []string{"cold", "kill", "local", "handover", "overlap", "idle", "query", "size"}
}

// Check reports what can't be measured, naming the flag to blame.
func (o Options) Check() error {
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return fmt.Errorf("--rounds: %d is not between 1 and %d", o.Rounds, maxRounds)
	}
	for _, part := range o.Only {
		if !slices.Contains(Parts(), part) {
			return fmt.Errorf("--only: unknown part %q: use %s", part, strings.Join(Parts(), ", "))
		}
	}
	if o.Agents < 3 {
		return fmt.Errorf("--agents: %d agents, nobody could take over from the leader: 3 are the least", o.Agents)
	}
	return o.hosts().Check()
}

func (o Options) hosts() hosts.Config {
	return hosts.Config{Agents: o.Agents, Algorithm: o.Algorithm, Profile: o.Profile, Quorum: true}
}

// bench is one run.
type bench struct {
	o         Options
	program   hosts.Program
	binary    string // its path; a program that is none has no size
	rng       *rand.Rand
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
		if product, err = hosts.Build(ctx, dir.Path); err != nil {
			return b.report, err
		}
	}
	b.program, b.binary = product, product.Path
	err = b.run(ctx)
	return b.report, err
}

func (b *bench) run(ctx context.Context) error {
	parts := map[string]func(context.Context) error{
		"cold": b.cold, "kill": b.kill, "local": b.local, "handover": b.handover,
		"overlap": b.overlap, "idle": b.idle, "query": b.query, "size": b.size,
	}
	for _, part := range Parts() {
		if len(b.o.Only) > 0 && !slices.Contains(b.o.Only, part) {
			continue
		}
		if err := parts[part](ctx); err != nil {
			return fmt.Errorf("measure %s: %w", part, err)
		}
	}
	if len(b.elsewhere) > 0 {
		b.add("overlap_elsewhere", "two leaders at once, in the takeovers above", "ms", &Target{ofMax, 0}, b.elsewhere)
	}
	return nil
}

func (b *bench) config(profile string) hosts.Config {
	c := b.o.hosts()
	c.Profile, c.Program = profile, b.program
	return c
}

func (b *bench) add(key, what, unit string, target *Target, samples []float64) {
	b.report.Results = append(b.report.Results, newResult(key, what, unit, target, samples))
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

// slack is what a takeover may take beyond the lease that safety demands to
// wait out, in milliseconds.
const slack = 30

func (b *bench) cold(ctx context.Context) error {
	took, err := b.coldStarts(ctx, max(3, b.o.Rounds/5))
	b.add("cold_start", "cold start: last process started → all agree", "ms", &Target{ofMedian, 500}, took)
	return err
}

func (b *bench) kill(ctx context.Context) error {
	took, err := b.takeovers(ctx, b.o.Profile, "kill -9", b.o.Rounds, killed())
	target := &Target{ofP99, millis(b.config(b.o.Profile).Lease()) + slack}
	b.add("kill", "kill -9 of the leader → new leader", "ms", target, took)
	return err
}

func (b *bench) local(ctx context.Context) error {
	took, err := b.takeovers(ctx, "local", "kill -9, local profile", b.o.Rounds, killed())
	target := &Target{ofP99, millis(b.config("local").Lease()) + slack}
	b.add("kill_local", "the same, local profile (50 ms / 300 ms)", "ms", target, took)
	return err
}

func (b *bench) handover(ctx context.Context) error {
	rounds := max(3, b.o.Rounds*3/10)
	for _, h := range []struct {
		key, what string
		fault     fault
	}{
		{"resign", "resign", resigned()}, {"transfer", "transfer", transferred()}, {"sigterm", "SIGTERM", terminated()},
	} {
		took, err := b.takeovers(ctx, b.o.Profile, h.what, rounds, h.fault)
		b.add(h.key, h.what+" → new leader", "ms", &Target{ofMedian, 15}, took)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) overlap(ctx context.Context) error {
	lasted, err := b.overlaps(ctx, 2*b.o.Rounds)
	b.add("overlap", "two leaders at once, over rounds of kill -9, SIGSTOP, SIGCONT", "ms", &Target{ofMax, 0}, lasted)
	return err
}

func (b *bench) idle(ctx context.Context) error {
	if !canMeasureIdle() {
		b.report.Notes = append(b.report.Notes, "idle cost: it is measured on Linux only")
		return nil
	}
	leader, followers, err := b.idleCosts(ctx)
	for _, who := range []struct {
		key, what string
		costs     []cost
	}{{"leader", "idle leader", leader}, {"follower", "idle follower", followers}} {
		var rss, pss, cpu []float64
		for _, c := range who.costs {
			rss, pss, cpu = append(rss, c.rssMiB), append(pss, c.pssMiB), append(cpu, c.cpuPercent)
		}
		b.add("idle_rss_"+who.key, who.what+": RSS", "MiB", &Target{ofMax, 20}, rss)
		b.add("idle_pss_"+who.key, who.what+": PSS", "MiB", nil, pss)
		b.add("idle_cpu_"+who.key, who.what+": CPU of a core", "%", &Target{ofMax, 0.8}, cpu)
	}
	return err
}

func (b *bench) query(ctx context.Context) error {
	q, err := b.queries(ctx)
	b.add("query", "GET /v1/elections/default, keep-alive", "µs", &Target{ofMedian, 100}, q.one)
	b.add("query_client", "the same by the Go client, decoded", "µs", nil, q.client)
	b.add("query_rate", fmt.Sprintf("the same, %d callers", callers), "1/s", nil, q.many)
	return err
}

func (b *bench) size(context.Context) error {
	bytes, err := size(b.binary)
	if err != nil {
		return err
	}
	b.add("size", "stripped binary", "MB", &Target{ofMax, 20}, []float64{float64(bytes) / 1e6})
	return nil
}
