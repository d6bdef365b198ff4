package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/testbed/actor"
	"github.com/doyen-election/doyen/testbed/hosts"
	"github.com/doyen-election/doyen/testbed/lab"
	"github.com/doyen-election/doyen/testbed/observe"
)

// TestMain makes this executable serve as the programs, builds the agents, and checks that nothing is
// left behind. Several tests run at once even on one processor, because they mostly wait for leases.
func TestMain(m *testing.M) {
	if code, served := actor.Serve(os.Args, os.Stdout, os.Stderr); served {
		os.Exit(code)
	}
	dir, err := os.MkdirTemp("/tmp", "db") // the system's directory can have too long a path for a socket
	if err == nil {
		product.Path, err = hosts.Build(context.Background(), dir, hosts.Product)
	}
	if err = errors.Join(err, os.Setenv("TMPDIR", dir), flag.Set("test.parallel", "4")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if left, _ := os.ReadDir(dir); len(left) > 1 {
		fmt.Println("FAIL: left behind:", left)
		code = 1
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// product is the executable of the agents.
var product hosts.Binary

// small is a bench of three agents, which run this executable. A lease of the local profile could
// expire while a busy machine does other work.
func small(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs real processes for some seconds: not with -short; CI runs it")
	}
	return &bench{o: Options{Rounds: 1, Progress: t.Output()}, on: Point{3, "bully", "lan"},
		program: product, rng: rand.New(rand.NewPCG(1, 1)), idleTime: lookEvery}
}

// samples returns the reported samples of a figure.
func (b *bench) samples(name, unit string) []float64 {
	for _, f := range b.report.Figures() {
		if f.Name == name && f.Unit == unit {
			return f.Samples
		}
	}
	return nil
}

func TestAProgramIsReplaced(t *testing.T) {
	t.Parallel()
	missed := false
	missedOnce := func(ctx context.Context, t *contenders, host *hosts.Host, s observe.ProgramSpan) (*lab.Program, error) {
		if !missed {
			missed = true
			return nil, errMoved
		}
		return strikes()["kill"](ctx, t, host, s)
	}
	for name, hit := range map[string]strike{"kill": missedOnce, "resign": strikes()["resign"], "transfer": strikes()["transfer"]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := small(t)
			err := b.replacements(t.Context(), name, 1, campaigning, hit)
			after, together := b.samples(name, perTakeover), b.samples(name, overlapped)
			if err != nil || len(after) != 1 || after[0] <= 0 || !slices.Equal(together, []float64{0}) {
				t.Errorf("took %v, two at once for %v: %v", after, together, err)
			}
			if name == "kill" && len(b.report.Facts) != 1 {
				t.Errorf("the round that was made again is not noted: %q", b.report.Facts)
			}
		})
	}
}

func TestRoundsWithRealProcesses(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]experiment{
		"Takeover/fault=resign":            {name: "Takeover", faults: []string{"resign"}},
		"Takeover/fault=sigterm":           {name: "Takeover", faults: []string{"sigterm"}},
		"Overlap/fault=kill":               {name: "Overlap", faults: []string{"kill"}, hasty: true},
		"Overlap/fault=freeze":             {name: "Overlap", faults: []string{"freeze"}, hasty: true},
		"Overlap/fault=freeze-for-a-lease": {name: "Overlap", faults: []string{"freeze-for-a-lease"}, hasty: true},
		"Takeover/fault=transfer/again":    {name: "Takeover", faults: []string{"transfer"}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := small(t)
			err := rounds(e)(b, t.Context())
			together, after := b.samples(name, overlapped), b.samples(name, perTakeover)
			if err != nil || !slices.Equal(together, []float64{0}) || !e.hasty && (len(after) != 1 || after[0] <= 0) {
				t.Errorf("takeovers %v, two leaders at once for %v: %v", after, together, err)
			}
		})
	}
}

func TestWhatAgentsCostIsMeasured(t *testing.T) {
	t.Parallel()
	b := small(t)
	for _, measure := range []func(*bench, context.Context) error{
		(*bench).cold, (*bench).idle, (*bench).atOnce,
		rounds(experiment{name: "Election", faults: []string{"resign"}, count: true}),
	} {
		if err := measure(b, t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []struct {
		name, unit string
		samples    int
	}{
		{"ColdStart", "ms/start", 1}, {"ColdStart", "ms-all/start", 1}, {"Idle/role=leader", rss, 1}, {"Idle/role=follower", "messages/s", 2},
		{"StartAtOnce", "ms-connected/start", 1}, {"StartAtOnce", "failed-dials/agent", 3}, {"Election/fault=resign", perElection, 1},
	} {
		if got := b.samples(f.name, f.unit); len(got) != f.samples {
			t.Errorf("%s %s: %v, want %d samples", f.name, f.unit, got, f.samples)
		}
	}
	for _, f := range b.report.Figures() {
		if f.What == f.Name {
			t.Errorf("%s in %s has no words", f.Name, f.Unit)
		}
	}
}

func TestElectionsWithACandidateOnEachHostAreLedUnderLoad(t *testing.T) {
	t.Parallel()
	b := small(t)
	if err := b.underLoad(t.Context(), 5, 1, lookEvery); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Load/loops=some", "Load/loops=ended"} {
		if settled, lost := b.samples(name, perSettling), b.samples(name, leadsLost); len(settled) != 1 || len(lost) != 1 {
			t.Errorf("%s: settled %v, lost %v", name, settled, lost)
		}
	}
}

// Not in parallel: readers that are too slow would get no refusals.
func TestReadersThatHaveAMajorityAskedAreCounted(t *testing.T) {
	b := small(t)
	b.on.Profile = "wan" // so that the lease outlasts readers on a busy machine
	if err := b.askMajority(t.Context(), 3, 4, time.Second); err != nil {
		t.Fatal(err)
	}
	if lost := b.samples("Readers", leadsLost); !slices.Equal(lost, []float64{0}) {
		t.Errorf("%v leads were lost", lost)
	}
	if answered, refused := b.samples("Readers", perRead), b.samples("Readers", perRefusal); len(answered) == 0 || len(refused) == 0 {
		t.Errorf("%d answered, %d refused", len(answered), len(refused))
	}
}

func TestTheSecondCandidatesAreSpread(t *testing.T) {
	heirs := map[[2]int]int{}
	for i := range 1000 {
		first, second := hostOf(i, 5, false), hostOf(i, 5, true)
		if first == second {
			t.Fatalf("election %d has both candidates on host %d", i, first)
		}
		heirs[[2]int{first, second}]++
	}
	for pair, n := range heirs {
		if n != 50 {
			t.Errorf("%d elections of host %d have their heir on host %d, want 50", n, pair[0], pair[1])
		}
	}
}

func TestManyElectionsAreLedAgain(t *testing.T) {
	t.Parallel()
	b := small(t)
	if err := b.many(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	costs, again := b.samples("ManyElections", cpu), b.samples("ManyElections", perTakeover)
	if len(costs) != 3 || len(again) != 4 || again[0] <= 0 || again[3] > float64(2*patience.Milliseconds()) {
		t.Fatalf("costs %v, took %v", costs, again)
	}
}

func TestTheElectionsOfADrainedHostAreLedAgain(t *testing.T) {
	t.Parallel()
	b := small(t)
	if err := b.drained(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	if again, none := b.samples("Drain", perTakeover), b.samples("Drain", noLeader); len(again) != 6 || len(none) != 6 || again[5] <= 0 {
		t.Fatalf("led again after %v, without a leader for %v", again, none)
	}
}
