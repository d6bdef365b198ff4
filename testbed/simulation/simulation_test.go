package simulation

import (
	"bytes"
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds  = flag.Int("seeds", 0, "how many seeds TestSimulation plays; 0: as many as fit the build")
	from   = flag.Uint64("from", 1, "the first of them")
	seed   = flag.Uint64("seed", 0, "the seed TestSeed plays, with its trace; 0: none")
	length = flag.Int("trace", 200, "how many lines of the trace a failure shows")
	live   = flag.Bool("live", false, "TestSeed writes its whole trace to standard error, as it happens")
)

// TestSimulation shows G1 to G5 in some thousand worlds.
func TestSimulation(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = defaultSeeds
		if testing.Short() {
			n /= 10
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // runs are short, and their garbage small
	began := time.Now()
	total, violations := playAll(n, *from)
	took := time.Since(began)
	t.Logf("seeds %d in %v, %.0f steps/s\n%s", n, took.Round(time.Millisecond), float64(total.Steps)/took.Seconds(), total)
	for i, v := range violations {
		t.Error(v)
		if i == 0 {
			t.Log(strings.Join(Run(Options{Seed: v.Seed, Trace: *length}).Violation.Trace, "\n"))
		}
	}
	if total.Leaderships < n {
		t.Errorf("%d leaderships in %d seeds: the simulation hardly does anything", total.Leaderships, n)
	}
}

// playAll plays n seeds on all processors.
func playAll(n int, from uint64) (Stats, []*Violation) {
	var (
		next       atomic.Uint64
		mu         sync.Mutex
		wg         sync.WaitGroup
		total      Stats
		violations []*Violation
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= uint64(n) {
					return
				}
				r := Run(Options{Seed: from + i})
				mu.Lock()
				total.Add(r.Stats)
				if r.Violation != nil {
					violations = append(violations, r.Violation)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return total, violations
}

// TestSeed replays one seed.
func TestSeed(t *testing.T) {
	if *seed == 0 {
		t.Skip("no -seed given")
	}
	o := Options{Seed: *seed, Trace: *length}
	if *live {
		o.Live = os.Stderr
	}
	r := Run(o)
	t.Log(r.Stats)
	if r.Violation != nil {
		t.Log(strings.Join(r.Violation.Trace, "\n"))
		t.Error(r.Violation)
	}
}

// TestEqualSeedsGiveEqualTraces shows that a seed replays.
func TestEqualSeedsGiveEqualTraces(t *testing.T) {
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

// TestOverlapIsFoundWhenClocksStrayTooFar shows that the checkers see what the
// protocol does not stand: leases rest on the stated drift of clocks.
func TestOverlapIsFoundWhenClocksStrayTooFar(t *testing.T) {
	for s := uint64(1); s <= 300; s++ {
		r := Run(Options{Seed: s, Drift: 300_000})
		if r.Violation != nil && r.Violation.Rule == "G1" {
			t.Logf("found in seed %d: %s", s, r.Violation.What)
			return
		}
	}
	t.Error("no overlap in 300 seeds with clocks 30 % off: the checkers are blind")
}

func BenchmarkStep(b *testing.B) {
	steps, s := 0, uint64(1)
	for b.Loop() {
		steps += Run(Options{Seed: s}).Stats.Steps
		s++
	}
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
