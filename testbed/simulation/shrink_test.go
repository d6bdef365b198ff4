package simulation

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// straying returns the first seed with which clocks 30 % off make two leaders after many faults.
// Its world is small, because shrinking plays it dozens of times.
func straying(t *testing.T, faults int) (Options, Result) {
	t.Helper()
	for s := uint64(1); s <= 300; s++ {
		o := Options{Seed: s, Drift: 300_000, Rule: "G1"}
		w := newWorld(o)
		if w.changes(rosters|identities|copies) || len(w.agents) > 6 || len(w.plan.elections) > 2 {
			continue
		}
		if r := Run(o); r.Violation != nil && r.Stats.Injected() >= faults {
			return o, r
		}
	}
	t.Fatal("no overlap in 300 seeds with clocks 30 % off: the checkers are blind")
	return Options{}, Result{}
}

// replayed plays the run of a printed command.
func replayed(t *testing.T, o Options) Result {
	t.Helper()
	_, text, found := strings.Cut(o.Command(), "--shrunk ")
	if !found {
		t.Fatalf("nothing was shrunk: %s", o.Command())
	}
	shrunk, err := ParseShrunk(strings.Trim(text, `'`))
	if err != nil {
		t.Fatal(err)
	}
	o.Shrunk = shrunk
	return Run(o)
}

// TestShrinkingLeavesTheFaultsThatMatter plays no worlds: its violation occurs whenever the given
// faults strike.
func TestShrinkingLeavesTheFaultsThatMatter(t *testing.T) {
	for _, need := range [][]int{{}, {0}, {39}, {3, 17}, {5, 6, 20, 38}} {
		s := &shrinker{ctx: t.Context(), cores: 1, left: DefaultTries, found: &Violation{Rule: "G1"}}
		for i := range 40 {
			s.faults = append(s.faults, i)
		}
		s.play = func(o Options) *Violation {
			for _, i := range need {
				if !o.Shrunk.strikes(i) {
					return nil
				}
			}
			return s.found
		}
		s.dropFaults()
		if !slices.Equal(s.faults, need) || !slices.Equal(s.best.Shrunk.Faults, need) {
			t.Errorf("faults %v are left, of a world %q; want %v", s.faults, s.best.Shrunk, need)
		}
		if tries := DefaultTries - s.left; tries > 500 {
			t.Errorf("%v: %d tries, want 500 at most", need, tries)
		}
	}
}

func TestAnOverlapIsShrunkAndReplaysFromItsCommand(t *testing.T) {
	t.Parallel()
	o, whole := straying(t, 30)
	s := Shrink(t.Context(), o, 60, 2)
	if s == nil {
		t.Fatal("Shrink does not see the violation")
	}
	t.Logf("%v\nfrom %d faults to %d in %d tries:\n%s", whole.Violation, s.Before, s.Faults, s.Tries, s.Options.Command())
	if s.Faults >= s.Before {
		t.Errorf("shrunk from %d faults to %d, want fewer", s.Before, s.Faults)
	}
	r := replayed(t, s.Options)
	if r.Violation == nil || r.Violation.Rule != "G1" || r.Violation.What != s.Violation.What || r.Violation.At != s.Violation.At {
		t.Errorf("the replay shows %v, want %v", r.Violation, s.Violation)
	}
	if n := r.Stats.Injected(); n > s.Faults {
		t.Errorf("%d faults strike in the replay, want %d at most", n, s.Faults)
	}
}

// TestABrokenCheckerIsShrunkTheSameOnAnyNumberOfCores shrinks a false violation: a checker that is
// wrong on purpose reports each leadership that begins while its predecessor is cut off or paused.
func TestABrokenCheckerIsShrunkTheSameOnAnyNumberOfCores(t *testing.T) {
	t.Parallel()
	o := Options{blind: 1}
	for o.Seed = 1; ; o.Seed++ {
		if r := Run(o); r.Violation != nil && r.Stats.Injected() > 20 && r.Stats.Injected() < 60 && !newWorld(o).changes(rosters|identities|copies) { // such worlds need only few tries
			break
		} else if o.Seed > 300 {
			t.Fatal("nothing to shrink in 300 seeds")
		}
	}
	one, three := Shrink(t.Context(), o, 150, 1), Shrink(t.Context(), o, 150, 3)
	if !reflect.DeepEqual(one.Options, three.Options) || one.Tries != three.Tries {
		t.Errorf("one core: %s in %d tries\nthree: %s in %d", one.Options.Command(), one.Tries, three.Options.Command(), three.Tries)
	}
	if one.Faults >= one.Before || one.Tries > 150 {
		t.Errorf("shrunk from %d faults to %d in %d tries", one.Before, one.Faults, one.Tries)
	}
	if r := replayed(t, one.Options); r.Violation == nil || r.Violation.Rule != "blind" {
		t.Errorf("the replay shows %v", r.Violation)
	}
}

func TestShrinkingStopsWhenItIsTold(t *testing.T) {
	o, _ := straying(t, 20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := Shrink(ctx, o, 600, 1); s == nil || s.Tries != 0 || s.Violation == nil || s.Before == 0 || s.Faults != s.Before {
		t.Errorf("got %+v, want all faults of the whole world", s)
	}
	if s := Shrink(t.Context(), Options{Seed: 1, Rule: "nothing"}, 600, 1); s != nil {
		t.Errorf("shrank a seed that violates nothing: %+v", s)
	}
}

// TestAFaultStaysTheSameWhenOthersAreLeftOut shows what shrinking relies on.
func TestAFaultStaysTheSameWhenOthersAreLeftOut(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		whole := newWorld(Options{Seed: seed})
		if len(whole.schedule) < 2 {
			continue
		}
		few := newWorld(Options{Seed: seed, Shrunk: Shrunk{Faults: []int{1}, Gap: time.Second, Variation: 3}})
		a, b := whole.schedule[1], few.schedule[1]
		if len(few.kept) != 1 || a.kind != b.kind || a.draw != b.draw || b.at > time.Second {
			t.Errorf("seed %d: %+v became %+v", seed, a, b)
		}
	}
}

func TestShrunkIsReadAsItIsWritten(t *testing.T) {
	for _, s := range []Shrunk{
		{}, {Faults: []int{}}, {Faults: []int{3, 17}}, {Absent: []int{0, 4}}, {Elections: 1, Gap: 300 * time.Millisecond},
		{Variation: 2},
	} {
		got, err := ParseShrunk(s.String())
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%q: got %+v, %v, want %+v", s, got, err, s)
		}
	}
	for text, want := range map[string]string{
		"faults": "invalid", `{"elections": -1}`: "below 0", `{"gap_ns": -1}`: "below 0",
		`{"weather": "fine"}`: "unknown field", `{"variation": "x"}`: "variation",
	} {
		if _, err := ParseShrunk(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestNobodyLeftToVoteIsSaid(t *testing.T) {
	everybody := []int{}
	for i := range 20 {
		everybody = append(everybody, i)
	}
	r := Run(Options{Seed: 1, Record: true, Shrunk: Shrunk{Absent: everybody}})
	if r.Violation == nil || r.Violation.Rule != "options" {
		t.Errorf("got %v", r.Violation)
	}
}
