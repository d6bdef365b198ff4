package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/observe"
)

// Result is what a soak met.
type Result struct {
	Seed      uint64
	Lasted    time.Duration
	Rounds    int
	Faults    map[string]int
	Skipped   []string // kinds of faults that this machine can't have, and why
	Takeovers int
	Counts    Counts
	Heals     []time.Duration // how long each recovery took, from the end of all faults on
	Violation *Violation      // nil if all was well
	Recording *observe.Recording
}

// Violation is something that must never happen.
type Violation struct {
	Rule   string // overlap, token, history or no recovery
	What   string
	At     time.Duration // since the start
	Round  int
	Faults []string // of that round
	Logs   string   // the folder with the logs
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s, %s after the start, in round %d (%s): %s", v.Rule, v.At.Round(time.Millisecond), v.Round, strings.Join(v.Faults, "; "), v.What)
}

// line is a line of progress.
func (r Result) line(c Counts) string {
	return fmt.Sprintf("%d rounds, %d faults, %d operations (%d refused), slowest recovery %s", r.Rounds, r.injected(), c.Operations, c.Refused,
		r.slowest().Round(time.Millisecond))
}

func (r Result) injected() (n int) {
	for _, k := range r.Faults {
		n += k
	}
	return n
}

func (r Result) slowest() time.Duration {
	if len(r.Heals) == 0 {
		return 0
	}
	return slices.Max(r.Heals)
}

// Facts returns the lines of Summary.
func (r Result) Facts() []string { return strings.Split(strings.TrimSpace(r.Summary()), "\n") }

// Summary is what happened, for people.
func (r Result) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "soaked for %s, seed %d: %d rounds, %d faults, %d takeovers\n", r.Lasted.Round(time.Second), r.Seed, r.Rounds, r.injected(), r.Takeovers)
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, r.Faults[k]))
	}
	fmt.Fprintf(&b, "faults: %s\n", strings.Join(kinds, ", "))
	for _, k := range r.Skipped {
		fmt.Fprintf(&b, "skipped: %s\n", k)
	}
	c := r.Counts
	fmt.Fprintf(&b, "counter: %d operations in %d windows judged (%d undecided), %d refused for an old token, %d whose answer no program received\n",
		c.Operations, c.Windows, c.Undecided, c.Refused, c.Unknown)
	if len(r.Heals) > 0 {
		sorted := slices.Sorted(slices.Values(r.Heals))
		fmt.Fprintf(&b, "recovery after the last fault of a round: median %s, slowest %s\n", sorted[len(sorted)/2].Round(time.Millisecond),
			r.slowest().Round(time.Millisecond))
	}
	if v := r.Violation; v != nil {
		fmt.Fprintf(&b, "VIOLATED: %s\nlogs: %s\n", v, v.Logs)
		return b.String()
	}
	b.WriteString("no overlap, no token that fell, every history explained, every round recovered from\n")
	return b.String()
}
