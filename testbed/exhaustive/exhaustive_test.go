package exhaustive

import (
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

var (
	whole       = flag.Bool("whole", false, "search as far as CI does; without it, each search is cut short")
	states      = flag.Int("states", 0, "how many states each exploration visits; 0: see -whole")
	misfortunes = flag.Int("misfortunes", -1, "how many misfortunes a path may hold; -1: 0, 1 and 2, apart")
	swaps       = flag.Int("swaps", 0, "of the search that ends: how many events of a path may come before their turn")
)

func algorithm(isRing bool) string {
	if isRing {
		return "ring"
	}
	return "bully"
}

func explore(t *testing.T, o Options) Result {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are made and dropped by the thousand
	r, err := Explore(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", algorithm(o.Ring), r)
	return r
}

// TestEveryInterleaving shows that no order of events within the bounds makes
// two leaders, lets a term fall, or sends what is not on disk.
func TestEveryInterleaving(t *testing.T) {
	limits, most := []int{10_000, 20_000, 8_000}, []int{0, 1, 2}
	if *misfortunes >= 0 {
		most = []int{*misfortunes}
	}
	for _, isRing := range []bool{false, true} {
		for _, n := range most {
			limit := limits[min(n, len(limits)-1)]
			if !*whole || raceDetector {
				limit /= 10
			}
			if *states > 0 {
				limit = *states
			}
			t.Run(fmt.Sprintf("%s, %d misfortunes", algorithm(isRing), n), func(t *testing.T) {
				r := explore(t, Options{Ring: isRing, States: limit, Bounds: Bounds{Terms: 3, Misfortunes: n, Swaps: AnyOrder}})
				if v := r.Violation; v != nil {
					t.Fatalf("%v\n%s", v, strings.Join(v.Path, "\n"))
				}
				if !isRing && n == 0 && limit >= 10_000 && r.Leaders == 0 {
					t.Error("no second leader was seen: the exploration is too shallow to show anything")
				}
			})
		}
	}
}

// TestEveryInterleavingOfLives shows the same where agents die and go on with their record:
// between two steps or in the middle of one, with their messages on the way, or never again,
// so that their keepers report it.
func TestEveryInterleavingOfLives(t *testing.T) {
	limit := 12_000
	if !*whole || raceDetector {
		limit /= 10
	}
	if *states > 0 {
		limit = *states
	}
	for _, isRing := range []bool{false, true} {
		for _, n := range []int{1, 2} {
			if *misfortunes >= 0 && n != *misfortunes {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d misfortunes", algorithm(isRing), n), func(t *testing.T) {
				r := explore(t, Options{Ring: isRing, States: limit, Bounds: Bounds{Terms: 3, Misfortunes: n, Lives: true, Swaps: AnyOrder}})
				if v := r.Violation; v != nil {
					t.Fatalf("%v\n%s", v, strings.Join(v.Path, "\n"))
				}
			})
		}
	}
}

// inTurn bounds the search that ends: all happens in turn except for a few events, and time
// passes by 10 ms.
func inTurn(misfortunes, swaps int) Bounds {
	return Bounds{Terms: 3, Misfortunes: misfortunes, Lives: true, Swaps: swaps, Grain: 10 * time.Millisecond}
}

// TestEveryDeathInTurn visits, with -whole, all there is within its bound: while all follow a leader, one
// agent dies at any step, and another lineage or its next life follows at any
// later one, or nothing does.
func TestEveryDeathInTurn(t *testing.T) {
	limit := 50_000_000
	if !*whole || raceDetector {
		limit = 5_000
	}
	if *states > 0 {
		limit = *states
	}
	for _, isRing := range []bool{false, true} {
		t.Run(algorithm(isRing), func(t *testing.T) {
			r := explore(t, Options{Ring: isRing, States: limit, root: following, Bounds: inTurn(max(1, *misfortunes), *swaps)})
			if v := r.Violation; v != nil {
				t.Fatalf("%v\n%s", v, strings.Join(v.Path, "\n"))
			}
			if !r.Complete && limit > 5_000 {
				t.Error("states were left when the search ended")
			}
			if r.Complete && r.Leaders == 0 {
				t.Error("no second leader was seen: nothing was shown")
			}
		})
	}
}

// TestBrokenWorldsAreFoundOut shows that the search finds an overlap where there
// is one, with the shortest way to it: when a disk loses what it acknowledged,
// and so a voter its hold, and when clocks run outside the stated drift.
func TestBrokenWorldsAreFoundOut(t *testing.T) {
	tests := map[string]Options{
		"a disk loses an acknowledged write": {broken: losesAcknowledgedWrite,
			rates: clockRates[1:2], root: asking, Bounds: Bounds{Terms: 3, Misfortunes: 1, Swaps: AnyOrder}},
		"a life counts a whole lease from its start": {broken: leasesAgain, root: following, rates: clockRates[:1],
			Bounds: Bounds{Terms: 3, Misfortunes: 1, Lives: true, Swaps: AnyOrder}},
		"the same, where all happens in turn": {broken: leasesAgain, root: following, rates: clockRates[:1], Bounds: inTurn(1, 0)},
		"clocks stray too far":                {rates: [][size]election.Instant{{5, 15, 15}}, root: unheard, Bounds: Bounds{Terms: 3, Swaps: AnyOrder}},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			o.States = 100_000
			r := explore(t, o)
			if r.Violation == nil || r.Violation.Rule != "one holder in its lease" {
				t.Fatalf("found %v, want an overlap", r.Violation)
			}
			t.Logf("%v\n%s", r.Violation, strings.Join(r.Violation.Path, "\n"))
		})
	}
}

// TestEqualOptionsGiveEqualResults shows that an exploration replays, whatever
// the processors do.
func TestEqualOptionsGiveEqualResults(t *testing.T) {
	o := Options{States: 1_500, Bounds: Bounds{Terms: 3, Misfortunes: 1, Swaps: AnyOrder}}
	a, b := explore(t, o), explore(t, o)
	a.Took, b.Took = 0, 0
	if a != b {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestStatesThatAreTakenForEqualBehaveAlike shows that what the encoding leaves
// out does not matter: of two worlds with one hash, reached by different paths,
// the same things can happen, and lead to the same hashes. It shows too that
// making the next world leaves the one before as it was.
func TestStatesThatAreTakenForEqualBehaveAlike(t *testing.T) {
	for _, o := range []Options{
		{Bounds: Bounds{Terms: 3, Misfortunes: 2, Swaps: AnyOrder}},
		{Ring: true, Bounds: Bounds{Terms: 3, Misfortunes: 2, Swaps: AnyOrder}},
		{Bounds: inTurn(2, 1)},
		{Ring: true, Bounds: inTurn(2, 1)},
	} {
		a := fmt.Sprintf("%s, %s", algorithm(o.Ring), o.Bounds)
		m := newMover(o)
		roots, err := m.roots()
		if err != nil {
			t.Fatal(err)
		}
		met, queue := map[uint64][]uint64{}, []*world{}
		for _, r := range roots {
			queue = append(queue, r.world)
		}
		again := 0
		for n := 0; n < 2_500; n++ {
			w := queue[n]
			h := w.hash(o.Bounds)
			var next []uint64
			for _, x := range w.actions(o.Bounds, nil) {
				s := m.apply(w, x)
				next = append(next, s.hash(o.Bounds))
				queue = append(queue, s)
			}
			slices.Sort(next)
			if w.hash(o.Bounds) != h {
				t.Fatalf("%s: a world changed when others were made from it", a)
			}
			if before, ok := met[h]; ok {
				again++
				if !slices.Equal(before, next) {
					t.Fatalf("%s: two worlds with hash %x lead to different ones", a, h)
				}
			}
			met[h] = next
		}
		t.Logf("%s: %d of 2500 worlds were met again, and behaved alike", a, again)
		if again < 100 {
			t.Errorf("%s: only %d worlds were met again", a, again)
		}
	}
}
