package observe

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Elections puts together what was seen of several elections at all agents. It
// is not safe for concurrent use.
type Elections struct {
	lease    time.Duration
	trackers map[string]*Tracker
	down     map[string]election.Instant // since when an agent's process does not run
	frozen   map[string]bool
}

// NewElections returns Elections that have seen nothing yet. The agents have this lease; 0 is
// for agents without quorum.
func NewElections(lease time.Duration) *Elections {
	return &Elections{lease: lease, trackers: map[string]*Tracker{}, down: map[string]election.Instant{}, frozen: map[string]bool{}}
}

func (e *Elections) Of(name string) *Tracker {
	t := e.trackers[name]
	if t == nil {
		t = NewTracker(e.lease)
		for agent := range e.frozen {
			t.Froze(agent)
		}
		for agent, since := range e.down {
			t.line(agent).become(StateSpan{State: StateDown, From: since})
		}
		e.trackers[name] = t
	}
	return t
}

func (e *Elections) Names() []string { return slices.Sorted(maps.Keys(e.trackers)) }

func (e *Elections) Apply(event Event) {
	agent, name, _ := event.where()
	t := e.Of(name)
	t.Apply(event)
	if t.View(agent).Heard {
		delete(e.down, agent)
	}
}

// Started notes that an agent's process was started. The agent counts as down until it reports
// something.
func (e *Elections) Started(agent string, at election.Instant) {
	if _, ok := e.down[agent]; !ok {
		e.down[agent] = at
	}
}

func (e *Elections) Froze(agent string) {
	e.frozen[agent] = true
	for _, t := range e.trackers {
		t.Froze(agent)
	}
}

// Thawed notes that a frozen agent runs again since the instant.
func (e *Elections) Thawed(agent string, at election.Instant) {
	delete(e.frozen, agent)
	for _, t := range e.trackers {
		t.Thawed(agent, at)
	}
}

// Exited notes that an agent's process ended at the instant.
func (e *Elections) Exited(agent string, at election.Instant) {
	delete(e.frozen, agent)
	e.down[agent] = at
	for _, t := range e.trackers {
		t.Exited(agent, at)
	}
}

// Overlaps returns every stretch in which two agents claimed to lead the same election, as far
// as the claims are remembered.
func (e *Elections) Overlaps(now election.Instant) []OverlapSpan {
	var all []OverlapSpan
	for _, name := range e.Names() {
		for _, o := range e.trackers[name].Overlaps() {
			all = append(all, OverlapSpan{Election: name, By: "agents", First: o.First.Agent, Second: o.Second.Agent,
				From: o.From, To: min(o.To, now)})
		}
	}
	return all
}

// Takeovers returns every leadership, in the order of their beginnings, with the gap before it
// and the fault that brought it about.
func (e *Elections) Takeovers(faults []Fault) []Takeover {
	var all []Takeover
	for _, name := range e.Names() {
		for _, t := range Takeovers(e.trackers[name].Claims(), e.lease, faults) {
			t.Election = name
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Takeover) int { return cmp.Compare(a.At, b.At) })
	return all
}

// Spans returns what the agent reported about every election until now.
func (e *Elections) Spans(agent string, now election.Instant) []StateSpan {
	var all []StateSpan
	for _, name := range e.Names() {
		for _, s := range e.trackers[name].line(agent).until(now) {
			s.Election = name
			all = append(all, s)
		}
	}
	return all
}
