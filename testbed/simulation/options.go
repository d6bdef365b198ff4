package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statedDrift is the bound of clock drift that the electors are given, in parts per million.
// Real clocks stay within it unless Options choose otherwise.
const statedDrift = 10_000

// Options choose a run. Equal options give equal runs.
type Options struct {
	Seed   uint64
	Drift  int64     // how far clock rates stray, parts per million; 0: statedDrift
	Rule   string    // check this rule only; "": all
	Voters int       // how many at the start, and no observers; 0: the seed draws both
	Shrunk Shrunk    // what remains of the seed's world
	Live   io.Writer // if set, each line of the trace is written here at once
	Record bool      // keep a History

	// chaosOnly ends the run after the chaos phase: a search for a violation in that phase need
	// not play the rest.
	chaosOnly bool
	// unguarded makes the counter accept any token, to show that the judge of its history
	// notices the consequences.
	unguarded bool
	// careless is how hosts break a rule of lives.
	careless carelessness
	// blind is a checker that is wrong on purpose, to have something to shrink: above 0, it
	// reports leaderships after that many as violations.
	blind int
}

func (o Options) Command() string {
	text := fmt.Sprintf("go run ./cmd/testbed simulate --seed %d", o.Seed)
	if o.Drift > 0 {
		text += " --drift " + strconv.FormatFloat(float64(o.Drift)/(million/100), 'f', -1, 64)
	}
	if o.Voters > 0 {
		text += " --voters " + strconv.Itoa(o.Voters)
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
	Without   []Noise       `json:"without,omitempty"`   // noise that the world does not have
	Variation uint64        `json:"variation,omitempty"` // chooses other draws for everything but the faults
}

// Noise is trouble that happens without a fault.
type Noise string

const (
	Loss        Noise = "loss"
	Repetition  Noise = "repetition"
	Reordering  Noise = "reordering"
	LateTimers  Noise = "late-timers"
	FirstDrift  Noise = "drift" // the drift of a clock before a fault changes it
	FormerWords Noise = "stale" // messages of closed connections
)

func noises() []Noise {
	return []Noise{Loss, Repetition, Reordering, LateTimers, FirstDrift, FormerWords}
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

func (s Shrunk) has(n Noise) bool { return !slices.Contains(s.Without, n) }

// String writes it for a command line.
func (s Shrunk) String() string {
	text, _ := json.Marshal(s)
	return string(text)
}

// ParseShrunk reads what String has written; nothing is the whole world.
func ParseShrunk(text string) (s Shrunk, err error) {
	if text == "" {
		return s, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Shrunk{}, fmt.Errorf("read %q: %w", text, err)
	}
	for _, n := range s.Without {
		if !slices.Contains(noises(), n) {
			return Shrunk{}, fmt.Errorf("read %q: %q is none of %v", text, n, noises())
		}
	}
	if s.Elections < 0 || s.Gap < 0 {
		return Shrunk{}, fmt.Errorf("read %q: elections and gap can't be below 0", text)
	}
	slices.Sort(s.Faults)
	return s, nil
}
