package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/simulation"
	"github.com/doyen-election/doyen/testbed/spacetime"
)

const (
	// maxSeeds bounds the search for a run that Simulated can show.
	maxSeeds  = 400
	maxFaults = 4 // faults of each seed's schedule that are tried, one by one
)

// Simulated returns the messages of one election that follows on a leader's crash, in a
// simulated cluster of that many voters whose network loses nothing. It takes the first seed
// that has such an election.
func Simulated(algorithm string, voters int) (spacetime.Diagram, error) {
	for seed := uint64(1); seed <= maxSeeds; seed++ {
		for fault := range maxFaults {
			o := simulation.Options{Seed: seed, Voters: voters, Record: true, Shrunk: simulation.Shrunk{
				Faults: []int{fault}, Elections: 1, Gap: 5 * time.Second,
				Without: []simulation.Noise{simulation.Loss, simulation.Repetition, simulation.Reordering, simulation.LateTimers, simulation.FirstDrift},
			}}
			r := simulation.Run(o)
			if r.Violation != nil || r.Stats.Faults["crash"] != 1 || len(r.Stats.Faults) != 1 {
				continue
			}
			if d, ok := takeoverOf(r.Diagram(), algorithm); ok {
				d.Command = o.Command()
				return d, nil
			}
		}
	}
	return spacetime.Diagram{}, fmt.Errorf("find a simulated election: none of %d seeds has %d voters, %s, and a crash of the leader alone", maxSeeds, voters, algorithm)
}

// takeoverOf cuts a diagram down to the crash of a leader and the election after it. It
// reports whether there is one.
func takeoverOf(d spacetime.Diagram, algorithm string) (spacetime.Diagram, bool) {
	plan := strings.Join(d.Facts, " ")
	if !strings.Contains(plan, "roster, "+algorithm) || !strings.Contains(plan, "quorum=true") {
		return d, false
	}
	before, after, ok := succession(d)
	if !ok {
		return d, false
	}
	took := after.From - before.To
	if took <= 0 || took > 3*time.Second {
		return d, false
	}
	selects := slices.ContainsFunc(d.Arrows, func(a spacetime.Arrow) bool {
		return a.Sent >= before.To && a.Sent <= after.From && strings.HasPrefix(a.Text, "Election")
	})
	if !selects { // the next leader knew at once that it is the best one left
		return d, false
	}
	d.From, d.To = before.To-took/8, after.From+took/4
	d.Title = fmt.Sprintf("%s: %s crashes, %s leads %v later", algorithm, d.Lanes[before.Lane], d.Lanes[after.Lane], took.Round(100*time.Microsecond))
	d.Facts = nil
	return d, true
}

// succession returns a leadership that a crash ended and the one that followed: of several
// such pairs, the one that followed first.
func succession(d spacetime.Diagram) (before, after spacetime.Bar, ok bool) {
	for _, life := range d.Lives {
		for _, b := range d.Bars {
			if b.Row != 0 || b.Acts || b.Lane != life.Lane || life.To == spacetime.Never || b.To != life.To {
				continue
			}
			for _, next := range d.Bars {
				if next.Row == 0 && !next.Acts && next.Lane != b.Lane && next.From > b.To && (!ok || next.From < after.From) {
					before, after, ok = b, next, true
				}
			}
		}
	}
	return before, after, ok
}
