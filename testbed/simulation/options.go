package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statedDrift is the bound of clock drift in the electors' configuration, in parts per million. The clocks of
// a run stay within that bound unless Options.Drift is larger.
const statedDrift = 10_000

// Options choose a run. Equal options give equal runs.
type Options struct {
	Seed   uint64
	Drift  int64     // how far clock rates stray, parts per million; 0: statedDrift
	Rule   string    // check this rule only; "": all
	Voters int       // how many voters at the start, and no observers; 0: the seed draws both numbers
	Shrunk Shrunk    // what remains of the seed's world
	Live   io.Writer // if set, each line of the trace is written here at once
	Record bool      // keep a History

	many int // how many more elections there are than the seed draws
	// chaosOnly ends the run after the chaos phase. A search for a violation in that phase does
	// not need the rest.
	chaosOnly bool
	// unguarded makes the counter accept any token, to show that the judge of its history
	// notices the consequences.
	unguarded bool
	// careless is the rule about lives that hosts break.
	careless carelessness
	spoil    func(*agent) // if set, breaks a rule of companions
	// blind is a checker that is wrong on purpose, to have something to shrink. If blind is above 0, each
	// leadership after that many is reported as a violation, once Stats.Cut is above 0.
	blind int
}

func (o Options) Command() string {
	text := fmt.Sprintf("go run ./cmd/testbed simulate --seed %d", o.Seed)
	if o.Drift > 0 {
		text += " --drift " + strconv.FormatFloat(float64(o.Drift)/(million/100), 'f', -1, 64)
	}
	if o.Rule != "" {
		text += " --rule " + strconv.Quote(o.Rule)
	}
	if !o.Shrunk.whole() {
		text += fmt.Sprintf(" --shrunk '%s'", o.Shrunk)
	}
	return text
}

// Shrunk is the part of a seed's world that is played, to show one violation. The zero value is
// the whole world. On a command line it is JSON.
type Shrunk struct {
	Faults    []int         `json:"faults"`              // these faults strike, by index in the seed's schedule; nil: all, empty: none
	Absent    []int         `json:"absent,omitempty"`    // agents that do not exist
	Elections int           `json:"elections,omitempty"` // how many there are; 0: all
	Gap       time.Duration `json:"gap_ns,omitempty"`    // the longest time between two faults; 0: as drawn
	Variation uint64        `json:"variation,omitempty"` // chooses other random draws for everything except the faults
}

func (s Shrunk) whole() bool { return reflect.DeepEqual(s, Shrunk{}) }

// strikes reports whether fault i of the schedule happens.
func (s Shrunk) strikes(i int) bool {
	if s.Faults == nil {
		return true
	}
	_, found := slices.BinarySearch(s.Faults, i)
	return found
}

// String writes a Shrunk for a command line.
func (s Shrunk) String() string {
	text, _ := json.Marshal(s)
	return string(text)
}

// ParseShrunk reads what String has written; an empty text is the whole world.
func ParseShrunk(text string) (s Shrunk, err error) {
	if text == "" {
		return s, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Shrunk{}, fmt.Errorf("read %q: %w", text, err)
	}
	if s.Elections < 0 || s.Gap < 0 {
		return Shrunk{}, fmt.Errorf("read %q: elections and gap can't be below 0", text)
	}
	slices.Sort(s.Faults)
	return s, nil
}

type Result struct {
	Stats     Stats
	Violation *Violation // nil if nothing was violated
	History   *History   // if Options.Record
}

type Violation struct {
	Seed   uint64
	Rule   string // G1 to G5, or the name of another rule
	What   string
	At     time.Duration // true time since the run began
	Replay string        // the command that replays the run
	phase  phase
}

// Error describes what was violated and how to replay it.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d at %v violates %s: %s\nreplay: %s", v.Seed, v.At, v.Rule, v.What, v.Replay)
}

// Stats count what happened in a run.
type Stats struct {
	Steps       int
	Virtual     time.Duration
	Messages    int
	Lost        int
	Writes      int
	Leaderships int            // leaderships won, in all elections, the roster's included
	Overtaken   int            // terms that a leader took while it led
	Short       int            // leaderships of elections that come and go
	Forgotten   int            // grants forgotten to make room
	Rosters     int            // roster changes that became stable
	Cut         int            // leaderships that began while the previous leader was alive, but cut off or paused
	Torn        int            // writes cut short by a crash
	TakenBack   int            // power cuts that took back what was not synced
	Unpromised  int            // worlds that were left without a majority
	Barred      int            // lives of agents that learnt that they must not vote any more
	Former      int            // of the barred lives, those that met their former cluster after they began again
	Taken       int            // data directories that a second process wrote to
	Stuck       int            // leaderships given up because the disk took no writes
	Late        int            // leaderships handed over by agents that ran late
	Lives       int            // lives that began with the record of the one before
	Carried     int            // leaderships that such a life found on record and continued
	Resumed     int            // programs that resumed under such a life
	Companions  int            // runs of companions that set something up
	Counted     int            // operations on the counter that tokens guard
	Refused     int            // operations that the counter refused for an old token
	Words       int            // words that programs wrote
	Deleted     int            // words that programs deleted
	Metas       int            // elections in which, at the end, every agent was checked to have the leader's meta
	Terms       int            // terms used up, in all elections
	Rounds      int            // rounds of selection begun
	Attempts    int            // attempts of nominees to win the votes
	Footprint   int            // most elements an elector kept, per agent and election
	Faults      map[string]int // faults that struck, by kind
	Heal        time.Duration  // from the end of the faults until all agree on a leader
	HealLeases  float64        // the same, in leases
	HealSeed    uint64         // the seed with the slowest recovery
}

func (s *Stats) Injected() int {
	n := 0
	for _, k := range s.Faults {
		n += k
	}
	return n
}

func (s *Stats) Add(t Stats) {
	a, b := *s, t
	if a.HealLeases >= b.HealLeases {
		a, b = b, a // b has the slower recovery
	}
	sum, more := reflect.ValueOf(&b).Elem(), reflect.ValueOf(a)
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Int || sum.Type().Field(i).Name == "Virtual" {
			f.SetInt(f.Int() + more.Field(i).Int())
		}
	}
	b.Footprint, b.Faults = max(s.Footprint, t.Footprint), map[string]int{}
	for _, faults := range []map[string]int{s.Faults, t.Faults} {
		for k, n := range faults {
			b.Faults[k] += n
		}
	}
	*s = b
}

func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "steps %d, virtual time %v, messages %d (%d lost), writes %d\n",
		s.Steps, s.Virtual.Round(time.Second), s.Messages, s.Lost, s.Writes)
	fmt.Fprintf(&b, "elections held %d, votes asked for %d times, leaderships won %d (%d began beside a predecessor cut off or paused)\n"+
		"terms %d (%d overtaken by their own holder), rosters changed %d, writes cut short %d, taken back by a power cut %d, given away by a stuck disk %d, by a late agent %d\n"+
		"elections that come and go led %d times, forgotten %d times; worlds left without a majority %d; agents barred %d (%d met their former cluster), data directories used twice %d\n"+
		"lives started with a record %d: %d leaderships carried on, %d programs resumed; runs of companions %d\n"+
		"operations on the guarded counter %d, refused for an old token %d; words written %d, deleted everywhere %d; metas compared %d\nfaults %d:",
		s.Rounds, s.Attempts, s.Leaderships, s.Cut, s.Terms, s.Overtaken, s.Rosters, s.Torn, s.TakenBack, s.Stuck, s.Late, s.Short, s.Forgotten, s.Unpromised, s.Barred, s.Former, s.Taken, s.Lives, s.Carried, s.Resumed, s.Companions, s.Counted, s.Refused, s.Words, s.Deleted, s.Metas, s.Injected())
	sep := ""
	for _, k := range slices.Sorted(maps.Keys(s.Faults)) {
		fmt.Fprintf(&b, "%s %s %d", sep, k, s.Faults[k])
		sep = ","
	}
	fmt.Fprintf(&b, "\nslowest recovery %v = %.1f leases (seed %d)", s.Heal.Round(time.Millisecond), s.HealLeases, s.HealSeed)
	return b.String()
}

func Run(o Options) Result {
	w := newWorld(o)
	w.run(o.Seed)
	w.stats.Virtual, w.stats.HealSeed = time.Duration(w.Now), o.Seed
	for _, l := range w.logs {
		w.stats.Terms += int(l.highest)
	}
	for _, a := range w.agents {
		w.count(a)
	}
	w.history.finish(w)
	return Result{Stats: w.stats, Violation: w.violation, History: w.history}
}

func (w *world) count(a *agent) {
	if a.alive && a.elector != nil {
		c := a.elector.Counters()
		w.stats.Rounds += int(c.Rounds)
		w.stats.Attempts += int(c.Attempts)
	}
}
