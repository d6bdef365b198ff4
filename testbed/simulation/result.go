package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// statedDrift is the clock drift bound that the electors are told, in parts
// per million; real clocks stay within it unless Options say otherwise.
const statedDrift = 10_000

// Options choose a run.
type Options struct {
	Seed  uint64
	Drift int64     // how far clock rates stray, parts per million; 0: as far as the protocol allows for
	Trace int       // newest lines of the trace that a Violation keeps
	Live  io.Writer // if set, each line of the trace is written there at once
}

// Result is what a run showed.
type Result struct {
	Stats     Stats
	Violation *Violation // nil if all was well
}

// Violation is a promise that was not kept.
type Violation struct {
	Seed  uint64
	Rule  string // G1 to G5, or what else was violated
	What  string
	At    time.Duration // true time since the run began
	Trace []string      // what happened before, oldest first
}

// Error says what was violated and how to see it again.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d at %v violates %s: %s\nreplay: go test ./testbed/simulation -run TestSeed -seed=%d -v",
		v.Seed, v.At, v.Rule, v.What, v.Seed)
}

// Stats count what a run met.
type Stats struct {
	Steps       int
	Virtual     time.Duration
	Messages    int
	Lost        int
	Writes      int
	Leaderships int            // won, in all elections, the roster's included
	Overtaken   int            // terms a leader took over its own
	Rosters     int            // roster changes that became stable
	Cut         int            // leaderships that began while the one before lived on, cut off or paused
	Faults      map[string]int // by kind
	Heal        time.Duration  // from the end of the faults to a leader agreed by all
	HealLeases  float64        // the same, in leases
	HealSeed    uint64         // the seed of the slowest
}

// Add adds another run's.
func (s *Stats) Add(t Stats) {
	if s.Faults == nil {
		s.Faults = map[string]int{}
	}
	s.Steps += t.Steps
	s.Virtual += t.Virtual
	s.Messages += t.Messages
	s.Lost += t.Lost
	s.Writes += t.Writes
	s.Leaderships += t.Leaderships
	s.Overtaken += t.Overtaken
	s.Rosters += t.Rosters
	s.Cut += t.Cut
	for k, n := range t.Faults {
		s.Faults[k] += n
	}
	if t.HealLeases > s.HealLeases {
		s.Heal, s.HealLeases, s.HealSeed = t.Heal, t.HealLeases, t.HealSeed
	}
}

func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "steps %d, virtual time %v, messages %d (%d lost), writes %d\n",
		s.Steps, s.Virtual.Round(time.Second), s.Messages, s.Lost, s.Writes)
	fmt.Fprintf(&b, "leaderships %d (%d began beside a predecessor cut off or paused), terms overtaken %d, rosters changed %d\nfaults:",
		s.Leaderships, s.Cut, s.Overtaken, s.Rosters)
	for _, k := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(&b, " %s %d,", k, s.Faults[k])
	}
	fmt.Fprintf(&b, "\nslowest recovery %v = %.1f leases (seed %d)", s.Heal.Round(time.Millisecond), s.HealLeases, s.HealSeed)
	return b.String()
}

// Run plays one seed.
func Run(o Options) Result {
	w := newWorld(o)
	w.run(o.Seed)
	w.stats.Virtual = time.Duration(w.now)
	w.stats.HealSeed = o.Seed
	return Result{Stats: w.stats, Violation: w.violation}
}
