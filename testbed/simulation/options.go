package simulation

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statedDrift is the clock drift bound that the electors are told, in parts
// per million; real clocks stay within it unless Options say otherwise.
const statedDrift = 10_000

// Options choose a run. Equal options give equal runs.
type Options struct {
	Seed   uint64
	Drift  int64     // how far clock rates stray, parts per million; 0: as far as the protocol allows for
	Rule   string    // look for violations of this one only; "": of all
	Voters int       // at the start, with no observers; 0: as the seed draws
	Shrunk Shrunk    // what is left out of the seed's world
	Trace  int       // newest lines of the trace that a Violation keeps
	Live   io.Writer // if set, each line of the trace is written there at once
	Record bool      // keep a History

	// chaosOnly ends the run with its faults: a search for a violation seen before
	// then need not play on.
	chaosOnly bool
	// unguarded is a counter that takes what comes with any token, to show that
	// the judge of its history sees what that breaks.
	unguarded bool
	// careless is how hosts break a rule of lives.
	careless carelessness
	// blind is a checker broken on purpose, to have something to shrink: it
	// takes every leadership after that many for a violation.
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
	if s := o.Shrunk.String(); s != "" {
		text += fmt.Sprintf(" --shrunk %q", s)
	}
	return text
}

// Shrunk is what is left of a seed's world to show one violation. The zero
// value leaves everything.
type Shrunk struct {
	Faults    []int         // that strike, by their index in the seed's schedule; nil: all, empty: none
	Absent    []int         // agents that do not exist
	Elections int           // how many of them there are; 0: all
	Gap       time.Duration // the longest time from one fault to the next; 0: as drawn
	Without   []Noise       // what the network and the timers do not do
	Variation uint64        // of what chance does besides the faults
}

// Noise is trouble that needs no fault to strike.
type Noise string

const (
	Loss        Noise = "loss"
	Repetition  Noise = "repetition"
	Reordering  Noise = "reordering"
	LateTimers  Noise = "late-timers"
	FirstDrift  Noise = "drift" // of clocks, before a fault changes one
	FormerWords Noise = "stale" // messages of connections that are closed
)

func noises() []Noise {
	return []Noise{Loss, Repetition, Reordering, LateTimers, FirstDrift, FormerWords}
}

func (s Shrunk) whole() bool { return s.String() == "" }

// strikes reports whether that fault of the schedule happens.
func (s Shrunk) strikes(i int) bool {
	if s.Faults == nil {
		return true
	}
	_, found := slices.BinarySearch(s.Faults, i)
	return found
}

func (s Shrunk) has(n Noise) bool { return !slices.Contains(s.Without, n) }

// String writes it for a command line: words of NAME=VALUE, lists with commas,
// as in "faults=3,17 absent=4 elections=1 gap=300ms without=loss".
func (s Shrunk) String() string {
	var words []string
	if s.Faults != nil {
		words = append(words, "faults="+joinInts(s.Faults))
	}
	if len(s.Absent) > 0 {
		words = append(words, "absent="+joinInts(s.Absent))
	}
	if s.Elections > 0 {
		words = append(words, "elections="+strconv.Itoa(s.Elections))
	}
	if s.Gap > 0 {
		words = append(words, "gap="+s.Gap.String())
	}
	if len(s.Without) > 0 {
		text := make([]string, len(s.Without))
		for i, n := range s.Without {
			text[i] = string(n)
		}
		words = append(words, "without="+strings.Join(text, ","))
	}
	if s.Variation > 0 {
		words = append(words, "variation="+strconv.FormatUint(s.Variation, 10))
	}
	return strings.Join(words, " ")
}

func joinInts(list []int) string {
	if len(list) == 0 {
		return "none"
	}
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

func ParseShrunk(text string) (Shrunk, error) {
	var s Shrunk
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		if err := s.set(name, value); err != nil {
			return Shrunk{}, fmt.Errorf("read %q: %w", word, err)
		}
	}
	return s, nil
}

func (s *Shrunk) set(name, value string) (err error) {
	switch name {
	case "faults":
		s.Faults, err = splitInts(value)
	case "absent":
		s.Absent, err = splitInts(value)
	case "elections":
		if s.Elections, err = strconv.Atoi(value); err == nil && s.Elections < 1 {
			err = fmt.Errorf("there must be at least one election")
		}
	case "gap":
		if s.Gap, err = time.ParseDuration(value); err == nil && s.Gap <= 0 {
			err = fmt.Errorf("a gap must be above 0")
		}
	case "without":
		for n := range strings.SplitSeq(value, ",") {
			if !slices.Contains(noises(), Noise(n)) {
				return fmt.Errorf("%q is none of %v", n, noises())
			}
			s.Without = append(s.Without, Noise(n))
		}
	case "variation":
		s.Variation, err = strconv.ParseUint(value, 10, 64)
	default:
		err = fmt.Errorf("use faults, absent, elections, gap, without or variation")
	}
	return err
}

// splitInts returns them sorted, each once.
func splitInts(text string) ([]int, error) {
	list := []int{}
	if text == "none" {
		return list, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a number from 0", word)
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
