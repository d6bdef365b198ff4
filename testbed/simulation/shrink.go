package simulation

import (
	"context"
	"slices"
	"sync"
	"time"
)

// DefaultTries is how many worlds Shrink plays at most: this takes some tens of seconds.
const DefaultTries = 2500

// variations is how many other sets of random draws are tried before a world counts as not
// showing the violation.
const variations = 2

type Shrinking struct {
	Options   Options    // of the smallest world that shows the violation
	Violation *Violation // in that world
	Faults    int        // how many faults strike in that world
	Before    int        // how many faults struck in the whole world before the violation
	Tries     int        // how many worlds were played
}

// Shrink searches for a small world in which the seed violates the same rule. It omits faults,
// agents and elections, and shortens the time between faults, as long as the violation stays
// (Zeller and Hildebrandt 2002). It plays as many worlds as tries allows. The number
// of cores does not change the result. When ctx ends, Shrink returns early, with the smallest world so
// far. If nothing can be omitted, the result has the given Options. The result is nil if the given Options
// show no violation.
func Shrink(ctx context.Context, o Options, tries, cores int) *Shrinking {
	o.Live, o.Record, o.chaosOnly = nil, false, false
	first := Run(o)
	if first.Violation == nil {
		return nil
	}
	s := &shrinker{ctx: ctx, cores: max(1, cores), left: tries, best: o, found: first.Violation}
	s.play = s.shows
	s.faults = s.struck(o)
	before := len(s.faults)
	if !s.attempt(withFaults(o, s.faults)) {
		s.faults = newWorld(o).kept // without the later faults the run differs: a dropped join starts its agent early
	}
	s.rounds()
	return &Shrinking{Options: s.best, Violation: s.found, Faults: len(s.struck(s.best)), Before: before, Tries: tries - s.left}
}

type shrinker struct {
	ctx    context.Context
	cores  int
	left   int // worlds that may still be played
	best   Options
	found  *Violation
	faults []int                    // the faults that best keeps
	play   func(Options) *Violation // the method shows, or a test's replacement
}

// struck returns the faults of the schedule that struck before the violation.
func (s *shrinker) struck(o Options) []int {
	w := newWorld(o)
	struck := []int{}
	for _, i := range w.kept {
		if w.schedule[i].at <= s.found.At {
			struck = append(struck, i)
		}
	}
	return struck
}

func withFaults(o Options, faults []int) Options {
	o.Shrunk.Faults = slices.Clone(faults)
	if o.Shrunk.Faults == nil {
		o.Shrunk.Faults = []int{}
	}
	return o
}

// rounds repeats all reductions as long as a round achieves any, at most 6 times.
func (s *shrinker) rounds() {
	for range 6 {
		before := s.best.Shrunk.String()
		s.dropFaults()
		s.dropAgents()
		s.simplify()
		if s.best.Shrunk.String() == before || s.over() {
			return
		}
	}
}

func (s *shrinker) over() bool { return s.left <= 0 || s.ctx.Err() != nil }

func (s *shrinker) dropFaults() {
	for parts := 2; len(s.faults) > 0 && !s.over(); {
		var candidates []Options
		size := (len(s.faults) + parts - 1) / parts
		for at := 0; at < len(s.faults); at += size {
			rest := slices.Concat(s.faults[:at], s.faults[min(at+size, len(s.faults)):])
			candidates = append(candidates, withFaults(s.best, rest))
		}
		switch {
		case s.attempt(candidates...):
			parts = max(parts-1, 2)
		case size == 1:
			return
		default:
			parts = min(2*parts, len(s.faults))
		}
	}
}

func (s *shrinker) dropAgents() {
	w := newWorld(s.best)
	for i := len(w.agents) - 1; i >= 0 && !s.over(); i-- {
		o := s.best
		o.Shrunk.Absent = append(slices.Clone(o.Shrunk.Absent), w.agents[i].number)
		slices.Sort(o.Shrunk.Absent)
		s.attempt(o)
	}
}

// simplify omits elections, and shortens the time between faults.
func (s *shrinker) simplify() {
	w := newWorld(s.best)
	if len(w.plan.elections) > 1 {
		one, fewer := s.best, s.best
		one.Shrunk.Elections, fewer.Shrunk.Elections = 1, len(w.plan.elections)-1
		s.attempt(one, fewer)
	}
	var shorter []Options
	for _, leases := range []float64{0.25, 0.5, 1, 2, 4, 8, 16} {
		o := s.best
		gap := time.Duration(leases * float64(w.plan.timing.Lease))
		if o.Shrunk.Gap == 0 || gap < o.Shrunk.Gap {
			o.Shrunk.Gap = gap
			shorter = append(shorter, o)
		}
	}
	s.attempt(shorter...)
}

// attempt makes the first of the worlds that shows the violation, if any, the best so far. It
// tries all with the variation of the best world, and then with others.
func (s *shrinker) attempt(candidates ...Options) bool {
	for v := range uint64(1 + variations) {
		varied := make([]Options, len(candidates))
		for i, o := range candidates {
			if v > 0 {
				o.Shrunk.Variation = (s.best.Shrunk.Variation+v-1)%variations + 1
			}
			varied[i] = o
		}
		if s.first(varied) {
			return true
		}
	}
	return false
}

// first plays as many worlds at once as there are cores. It takes the world that shows the
// violation and comes first in the given order. Only worlds up to that one count as played, so
// that the result does not depend on the number of cores.
func (s *shrinker) first(candidates []Options) bool {
	for len(candidates) > 0 && !s.over() {
		n := min(s.cores, len(candidates), s.left)
		found := make([]*Violation, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { found[i] = s.play(candidates[i]) })
		}
		wg.Wait()
		for i, v := range found {
			s.left--
			if v != nil {
				s.best, s.found, s.faults = candidates[i], v, candidates[i].Shrunk.Faults
				return true
			}
		}
		candidates = candidates[n:]
	}
	return false
}

// shows returns the world's violation, if it violates the rule that is being shrunk, in the
// same phase.
func (s *shrinker) shows(o Options) *Violation {
	o.chaosOnly = s.found.phase == chaos // a later phase could only show another violation
	v := Run(o).Violation
	if v == nil || v.Rule != s.found.Rule || v.phase != s.found.phase {
		return nil
	}
	return v
}
