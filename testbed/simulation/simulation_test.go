package simulation

import (
	"bytes"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	seeds  = flag.Int("seeds", 0, "how many seeds TestSimulation plays; 0: 100, with the race detector 60")
	from   = flag.Uint64("from", 1, "the first of them")
	seed   = flag.Uint64("seed", 0, "the seed TestSeed plays, with its trace; 0: the first")
	length = flag.Int("trace", 200, "how many lines of the trace a failure shows")
	live   = flag.Bool("live", false, "TestSeed writes its whole trace to standard error, as it happens")
)

// TestMain lets the heap grow for all tests, as Sweep does. That saves a quarter of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	os.Exit(m.Run())
}

// TestSimulation shows G1 to G5 in a hundred worlds, in which every kind of fault strikes.
func TestSimulation(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = min(100, defaultSeeds)
		if testing.Short() {
			n /= 10
		}
	}
	p, v := Sweep(t.Context(), SweepOptions{From: *from, Seeds: uint64(n), Cores: runtime.GOMAXPROCS(0)})
	t.Logf("seeds %d in %v, %.0f steps/s\n%s", p.Seeds, p.Elapsed.Round(time.Millisecond), p.Rate(), p.Stats)
	if v != nil {
		t.Error(v)
		if s := Shrink(t.Context(), Options{Seed: v.Seed}, 500, runtime.GOMAXPROCS(0)); s != nil {
			o := s.Options
			o.Record = true
			t.Logf("shrunk to %d faults: %s\n%s", s.Faults, o.Command(), strings.Join(Run(o).History.Story(*length), "\n"))
		}
		return
	}
	if n >= 40 {
		meetsEveryFault(t, p.Stats)
	}
	if p.Leaderships < n {
		t.Errorf("%d leaderships in %d seeds: the simulation hardly does anything", p.Leaderships, n)
	}
	if n >= defaultSeeds && p.Words < 2*n {
		t.Errorf("%d words in %d seeds: too few to lose one", p.Words, n)
	}
	if p.Metas < n/2 {
		t.Errorf("%d metas compared in %d seeds: too few", p.Metas, n)
	}
	if n >= defaultSeeds && (p.Counted < 50*n || p.Refused < n/20) {
		t.Errorf("%d operations on the counter in %d seeds, %d of them refused: too few to show what tokens are for", p.Counted, n, p.Refused)
	}
}

// TestSimulationOfManyElections is about agents that hand over in turns: they lead more elections than they hand over
// at once.
func TestSimulationOfManyElections(t *testing.T) {
	t.Parallel()
	n := uint64(20)
	if testing.Short() {
		n = 2
	}
	p, v := Sweep(t.Context(), SweepOptions{Options: Options{many: 24}, From: *from, Seeds: n, Cores: runtime.GOMAXPROCS(0)})
	t.Logf("seeds %d in %v\n%s", p.Seeds, p.Elapsed.Round(time.Millisecond), p.Stats)
	if v != nil {
		t.Error(v)
	}
}

func meetsEveryFault(t *testing.T, s Stats) {
	t.Helper()
	for _, f := range faultKinds() {
		if s.Faults[f.name] == 0 {
			t.Errorf("no %s", f.name)
		}
	}
	if s.Torn == 0 || s.Rosters == 0 || s.Cut == 0 || s.Footprint == 0 || s.Barred == 0 || s.Former == 0 || s.Taken == 0 {
		t.Errorf("too little happens: %+v", s)
	}
}

// TestSeed replays one seed, the first if none is given.
func TestSeed(t *testing.T) {
	var trace bytes.Buffer
	o := Options{Seed: max(*seed, 1), Live: &trace}
	if *live {
		o.Live = os.Stderr
	}
	r := Run(o)
	t.Log(r.Stats)
	if r.Violation != nil {
		lines := strings.Split(trace.String(), "\n")
		t.Log(strings.Join(lines[max(0, len(lines)-*length):], "\n"))
		t.Error(r.Violation)
	}
}

// TestEqualSeedsGiveEqualTraces shows that a seed replays.
func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	t.Parallel()
	for s := uint64(1); s <= 12; s++ {
		var a, b bytes.Buffer
		Run(Options{Seed: s, Live: &a})
		Run(Options{Seed: s, Live: &b})
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("seed %d: two runs differ, %s", s, firstDifference(a.String(), b.String()))
		}
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return "first in\n" + as[i] + "\n" + bs[i]
		}
	}
	return "in length"
}

// TestOverlapIsFoundWhenClocksStrayTooFar shows that the checkers notice overlaps: clocks that
// drift farther than leases allow cause them.
func TestOverlapIsFoundWhenClocksStrayTooFar(t *testing.T) {
	for s := uint64(1); s <= 300; s++ {
		r := Run(Options{Seed: s, Drift: 300_000, Rule: "G1"})
		if r.Violation != nil {
			t.Logf("found in seed %d: %s", s, r.Violation.What)
			return
		}
	}
	t.Error("no overlap in 300 seeds with clocks 30 % off: the checkers are blind")
}

// BenchmarkStep measures one core with three voters.
func BenchmarkStep(b *testing.B) {
	steps, s := 0, uint64(1)
	for b.Loop() {
		steps += Run(Options{Seed: s, Voters: 3}).Stats.Steps
		s++
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
