package simulation

import (
	"fmt"
	"io"
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
	Trace  int       // how many of the newest lines of the trace a Violation keeps
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
	if s := o.Shrunk.String(); s != "" {
		text += fmt.Sprintf(" --shrunk %q", s)
	}
	return text
}

// Shrunk is the part of a seed's world that is played, to show one violation. The zero value is
// the whole world.
type Shrunk struct {
	Faults    []int         // these faults strike, by index in the seed's schedule; nil: all, empty: none
	Absent    []int         // agents that do not exist
	Elections int           // how many elections there are; 0: all
	Gap       time.Duration // the longest time between two faults; 0: as drawn
	Without   []Noise       // noise that the world does not have
	Variation uint64        // chooses other draws for everything but the faults
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

func (s Shrunk) whole() bool { return s.String() == "" }

// strikes reports whether fault i of the schedule happens.
func (s Shrunk) strikes(i int) bool {
	if s.Faults == nil {
		return true
	}
	_, found := slices.BinarySearch(s.Faults, i)
	return found
}

func (s Shrunk) has(n Noise) bool { return !slices.Contains(s.Without, n) }

// String writes the parts for a command line, as NAME=VALUE with commas in lists, such as
// "faults=3,17 absent=4 elections=1 gap=300ms without=loss".
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

// splitInts returns the numbers of a list, sorted and each once.
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
