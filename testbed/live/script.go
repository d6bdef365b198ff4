package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is something done to agents.
type Verb string

// What a script, or a key, can do.
const (
	Kill      Verb = "kill"      // -9
	Stop      Verb = "stop"      // SIGSTOP
	Continue  Verb = "continue"  // SIGCONT
	Terminate Verb = "terminate" // SIGTERM
	Start     Verb = "start"     // what is down
	Restart   Verb = "restart"   // SIGTERM, and start when it ended
	Resign    Verb = "resign"
)

// The targets that are no names.
const (
	theLeader   = "leader"
	aFollower   = "follower"
	everySuited = "all" // every one that the verb can be done to
)

var verbs = []Verb{Kill, Stop, Continue, Terminate, Start, Restart, Resign}

// Step is one line of a script: a verb done to a target at a time, counted from
// when the agents first agreed.
type Step struct {
	At     time.Duration
	Verb   Verb
	Target string // a name, leader, follower or all
}

func (s Step) String() string { return fmt.Sprintf("%s %s@%s", s.Verb, s.Target, s.At) }

// maxSteps bounds a script.
const maxSteps = 1000

// ParseScript reads "kill leader@3s,start all@6s": steps of VERB TARGET@TIME,
// in any order. Targets are leader, follower, all, or one of the names.
func ParseScript(text string, names []string) ([]Step, error) {
	var steps []Step
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		s, err := parseStep(part, names)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(part), err)
		}
		if steps = append(steps, s); len(steps) > maxSteps {
			return nil, fmt.Errorf("more than %d steps", maxSteps)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("no step in %q", text)
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return steps, nil
}

func parseStep(text string, names []string) (Step, error) {
	what, when, timed := strings.Cut(text, "@")
	words := strings.Fields(what)
	if len(words) != 2 || !timed {
		return Step{}, fmt.Errorf("a step is VERB TARGET@TIME, such as kill leader@3s")
	}
	s := Step{Verb: Verb(words[0]), Target: words[1]}
	if !slices.Contains(verbs, s.Verb) {
		return Step{}, fmt.Errorf("unknown verb %q: use %s", s.Verb, list(verbs))
	}
	if !slices.Contains([]string{theLeader, aFollower, everySuited}, s.Target) && !slices.Contains(names, s.Target) {
		return Step{}, fmt.Errorf("unknown target %q: use leader, follower, all, %s", s.Target, list(names))
	}
	at, err := time.ParseDuration(strings.TrimSpace(when))
	if err != nil || at < 0 || at > 24*time.Hour {
		return Step{}, fmt.Errorf("%q is not a time from 0s to 24h, such as 3s or 1.5s", when)
	}
	s.At = at
	return s, nil
}

func list[S ~string](words []S) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = string(w)
	}
	return strings.Join(text, ", ")
}

// demonstration shows one takeover in a run of this length: the leader is
// killed, another takes over, and the killed one comes back.
func demonstration(length time.Duration) []Step {
	return []Step{
		{At: min(2*time.Second, length/5), Verb: Kill, Target: theLeader},
		{At: min(6*time.Second, length/2), Verb: Start, Target: everySuited},
	}
}

// killing kills the leader at each interval and starts it again half an
// interval later. It yields the steps up to a length.
func killing(every time.Duration) func(n int) []Step {
	return func(n int) []Step {
		at := time.Duration(n+1) * every
		return []Step{{At: at, Verb: Kill, Target: theLeader}, {At: at + every/2, Verb: Start, Target: everySuited}}
	}
}
