package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/doyen-election/doyen/agent"
	"github.com/doyen-election/doyen/internal/base/each"
	"github.com/doyen-election/doyen/testbed/hosts"
)

type Options struct {
	Points   []Point // the clusters to measure
	Net      hosts.Net
	Rounds   int      // how often the leader is killed; the repetitions of other parts follow from it
	Only     []string // the parts to measure, see Parts; empty: the usual ones
	Binary   string   // path of the product; "": Run builds it
	Before   string   // path of another build, measured alternately with Binary; "": none
	Seed     uint64   // for the random moments at which faults hit
	Progress io.Writer
}

const (
	// With DefaultRounds, a run takes six to eight minutes on the lan profile.
	DefaultRounds = 50
	maxRounds     = 10_000
	// With manyAgents agents or more, fewer rounds are made, because each round takes long.
	manyAgents   = 25
	fewestRounds = 3
	// fewAgents is the largest number of agents to which all targets apply.
	fewAgents = 3
	// turns is how often each of two builds is measured.
	turns = 2
)

// Points combines each number of agents with each algorithm ("both" means bully and ring) and
// each profile. It returns each combination once.
func Points(agents []int, algorithms, profiles []string) []Point {
	algorithms = strings.Split(strings.ReplaceAll(strings.Join(algorithms, ","), "both", "bully,ring"), ",")
	var all []Point
	for _, profile := range profiles {
		for _, n := range agents {
			for _, algorithm := range algorithms {
				if p := (Point{n, algorithm, profile}); !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// Check returns an error if something can't be measured. The error names the flag that asks for it.
func (o Options) Check() error {
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return fmt.Errorf("--rounds: %d is not between 1 and %d", o.Rounds, maxRounds)
	}
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("--only: unknown part %q: use %s", name, strings.Join(Parts(), ", "))
		}
	}
	if len(o.Points) == 0 {
		return errors.New("--agents: nothing given")
	}
	for _, p := range o.Points {
		if p.Agents < 3 {
			return fmt.Errorf("--agents: %d agents, nobody could take over from the leader: 3 are the least", p.Agents)
		}
		if err := (&bench{o: o, on: p}).config().Check(); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	o        Options
	on       Point // the cluster that is measured now
	program  hosts.Program
	binary   string // the path of program
	build    string // buildOld or buildNew; "": there is only one build
	rng      *rand.Rand
	idled    bool          // the idle agents have been measured
	idleTime time.Duration // how long to measure idle agents; 0: idleWindow
	machine  []benchfmt.Config
	report   Report
}

// Run measures, and returns the results. If it fails, it returns the results until then.
func Run(ctx context.Context, o Options) (report Report, err error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	b := &bench{o: o, rng: rand.New(rand.NewPCG(o.Seed, 0))}
	var load string
	b.machine, load = machine()
	b.note(fmt.Sprintf("Doyen %s, %s, %d rounds, seed %d, load %s before the run", agent.Version, time.Now().UTC().Format("2006-01-02 15:04 MST"),
		o.Rounds, o.Seed, load))
	if o.Binary == "" {
		dir, dirErr := hosts.NewDir()
		if dirErr != nil {
			return b.report, dirErr
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		b.progress("build", 0, 0)
		if b.o.Binary, err = hosts.BuildShipped(ctx, dir.Path, hosts.Product); err != nil {
			return b.report, err
		}
	}
	var errs []error
	for _, b.on = range o.Points {
		if len(o.Points) > 1 {
			b.progress(b.on.String(), 0, 0)
		}
		errs = append(errs, b.measure(ctx))
		if ctx.Err() != nil {
			break
		}
	}
	return b.report, errors.Join(errs...)
}

// measure measures one cluster. If several clusters are measured, it goes on after a part that fails.
func (b *bench) measure(ctx context.Context) error {
	var errs []error
	for _, p := range parts() {
		if !p.wanted(b.o) {
			continue
		}
		if p.lacks != nil {
			if why := p.lacks(b); why != "" {
				b.note("not measured: " + why)
				continue
			}
		}
		err := b.builds(ctx, func() error { return p.measure(b, ctx) })
		if err == nil {
			continue
		}
		err = fmt.Errorf("measure %s on %s: %w", p.name, b.on, err)
		if len(b.o.Points) == 1 || ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
		b.progress(err.Error(), 0, 0)
		b.note("not measured: " + err.Error())
	}
	return errors.Join(errs...)
}

// builds calls measure once for the product. To compare two builds, it calls measure alternately, `turns` times each.
func (b *bench) builds(ctx context.Context, measure func() error) error {
	all := []struct{ build, path string }{{"", b.o.Binary}}
	if b.o.Before != "" {
		all = slices.Repeat([]struct{ build, path string }{{buildOld, b.o.Before}, {buildNew, b.o.Binary}}, turns)
	}
	for _, x := range all {
		b.build, b.program, b.binary, b.idled = x.build, hosts.Binary{Path: x.path}, x.path, b.idled && b.o.Before == ""
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) config() hosts.Config {
	return hosts.Config{Agents: b.on.Agents, Algorithm: b.on.Algorithm, Profile: b.on.Profile, Quorum: true, Net: b.o.Net, Seed: b.o.Seed,
		Program: b.program}
}

// rounds returns so many tenths of Options.Rounds: fewer for many agents or two builds, but at least a few.
func (b *bench) rounds(tenths int) int {
	all := b.o.Rounds
	if b.on.Agents >= manyAgents {
		all /= 5
	}
	if b.o.Before != "" {
		all = (all + turns - 1) / turns
	}
	return max(all*tenths/10, min(b.o.Rounds, fewestRounds))
}

type value = benchfmt.Value

func (b *bench) add(name string, values ...value) {
	config := slices.Clone(b.machine)
	if b.build != "" {
		config = append(config, benchfmt.Config{Key: buildKey, Value: []byte(b.build), File: true})
	}
	full := name + fmt.Sprintf(pointFormat, b.on.Agents, b.on.Algorithm, b.on.Profile)
	b.report.Results = append(b.report.Results, Result{benchfmt.Result{Config: config, Name: benchfmt.Name(full), Iters: 1, Values: values}, name, b.on})
}

func (b *bench) addAll(name, unit string, samples []float64) {
	for _, x := range samples {
		b.add(name, value{Value: x, Unit: unit})
	}
}

func took(d time.Duration, unit string) value { return value{Value: millis(d), Unit: unit} }

// errAgain reports that a round measured nothing, as can happen on a busy machine.
type errAgain string

func (e errAgain) Error() string { return string(e) }

// repeat makes rounds until the given number of them have measured something. It notes how many
// rounds measured nothing and were repeated.
func (b *bench) repeat(what string, rounds int, round func() error) error {
	missed := map[string]int{}
	for done, left := 0, 2+rounds/2; done < rounds; {
		err := round()
		if again, ok := errors.AsType[errAgain](err); ok && left > 0 {
			left--
			missed[again.Error()]++
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, round %d: %w", what, done+1, err)
		}
		done++
		b.progress(what, done, rounds)
	}
	for why, n := range missed {
		b.note(fmt.Sprintf("%s, %d rounds were made again: %s", what, n, why))
	}
	return nil
}

// note adds a fact to the report, once.
func (b *bench) note(text string) {
	if text = strings.ReplaceAll(text, "\n", " "); !slices.Contains(b.report.Facts, text) {
		b.report.Facts = append(b.report.Facts, text)
	}
}

// progress writes one line about the progress. If `of` is 0, the line has no numbers.
func (b *bench) progress(what string, done, of int) {
	switch {
	case of == 0:
		fmt.Fprintf(b.o.Progress, "bench: %s\n", what)
	case done == of || done%10 == 0:
		fmt.Fprintf(b.o.Progress, "bench: %s: %d of %d\n", what, done, of)
	}
}

func (b *bench) finish(r *rig, err *error) { *err = errors.Join(*err, r.Kill()) }

func (b *bench) size(context.Context) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return fmt.Errorf("measure the binary: %w", err)
	}
	b.add("Binary", value{Value: float64(info.Size()) / 1e6, Unit: "MB"})
	return nil
}

type part struct {
	name    string
	when    when
	measure func(*bench, context.Context) error
	lacks   func(*bench) string // returns why the part can't be measured here, or ""; nil: it always can
}

// when says to which runs a part belongs if --only names no parts.
type when uint8

const (
	onRequest when = iota
	alone          // in runs on one cluster
	always
	compared // in runs on several clusters
)

// parts returns all parts, in the order in which they are measured.
func parts() []part {
	return []part{
		{"cold", always, (*bench).cold, nil},
		{"kill", always, rounds(experiment{name: "Takeover", faults: []string{"kill"}, tenths: 10}), nil},
		{"local", alone, rounds(experiment{name: "Takeover", profile: "local", faults: []string{"kill"}, tenths: 10}), nil},
		{"handover", always, rounds(experiment{name: "Takeover", faults: []string{"resign", "transfer", "sigterm"}, tenths: 3}), nil},
		{"overlap", alone, rounds(experiment{name: "Overlap", faults: []string{"kill", "freeze", "freeze-for-a-lease"}, tenths: 7, hasty: true}), nil},
		{"idle", always, (*bench).idle, needLinux},
		{"query", alone, (*bench).query, nil},
		{"watchers", alone, func(b *bench, ctx context.Context) error { return b.watched(ctx, watcherCount, watcherRounds) }, nil},
		{"size", alone, (*bench).size, nil},
		{"traffic", compared, (*bench).idle, needLinux},
		{"cut", compared, rounds(experiment{name: "Takeover", faults: []string{"cut"}, tenths: 3}), needNamespaces},
		{"messages", compared, rounds(experiment{name: "Election", faults: []string{"kill", "resign"}, tenths: 1, count: true}), nil},
		{"again-kill", onRequest, rounds(experiment{name: "Takeover", faults: []string{"kill"}, tenths: 10, again: true}), nil},
		{"again-handover", onRequest, rounds(experiment{name: "Takeover", faults: []string{"sigterm", "resign", "transfer"}, tenths: 10, again: true}), nil},
		{"life-kill", onRequest, lives("Life/end=kill", Point{}, 10, signalled(syscall.SIGKILL)), needLinux},
		{"life-panic", onRequest, lives("Life/end=panic", Point{}, 3, signalled(syscall.SIGABRT)), needLinux},
		{"life-local", onRequest, lives("Life/end=kill", Point{Profile: "local"}, 10, signalled(syscall.SIGKILL)), needLinux},
		{"life-hang", onRequest, lives("Life/end=hang", Point{}, 5, signalled(syscall.SIGSTOP)), needLinux},
		{"restart", onRequest, lives("Restart", Point{Agents: rolling}, 2, restarted), needLinux},
		{"keeper", onRequest, (*bench).keepers, needLinux},
		{"programs", onRequest, (*bench).programs, nil},
		{"words", onRequest, (*bench).words, needLinux},
		{"jobs", onRequest, (*bench).jobs, nil},
		{"many-elections", onRequest, (*bench).manyElections, needLinux},
		{"load", onRequest, (*bench).load, nil},
		{"drain", onRequest, func(b *bench, ctx context.Context) error { return b.drained(ctx, loadElections) }, nil},
		{"readers", onRequest, func(b *bench, ctx context.Context) error {
			return b.askMajority(ctx, loadElections, readerCount, readersFor)
		}, nil},
		{"pages", onRequest, func(b *bench, ctx context.Context) error {
			return b.readPages(ctx, pageElections, pageReaders, pagesFor)
		}, needLoopback},
		{"unread", onRequest, func(b *bench, ctx context.Context) error { return b.leaveUnread(ctx, unreadAnswers, unreadFor) }, needLinux},
		{"at-once", onRequest, (*bench).atOnce, nil},
	}
}

func Parts() []string { return each.Of(parts(), func(p part) string { return p.name }) }

func (p part) wanted(o Options) bool {
	switch {
	case len(o.Only) > 0:
		return slices.Contains(o.Only, p.name)
	case len(o.Points) > 1:
		return p.when == always || p.when == compared
	}
	return p.when == always || p.when == alone
}

func needLinux(*bench) string {
	if runtime.GOOS != "linux" {
		return "what agents cost: that takes Linux"
	}
	return ""
}

func needLoopback(b *bench) string {
	if b.o.Net == hosts.Namespaces {
		return "readers of the status page: they can't reach agents in other namespaces"
	}
	return ""
}

func needNamespaces(b *bench) string {
	if b.o.Net != hosts.Namespaces {
		return "the leader cut off: hosts that share a loopback interface can't be cut off, see --netns"
	}
	return ""
}
