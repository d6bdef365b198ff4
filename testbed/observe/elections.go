package observe

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// Elections combines what was seen of several elections at all agents. It is not safe for
// concurrent use.
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

// Thawed notes since when a frozen agent has run again.
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
			o.Election, o.To = name, min(o.To, now)
			all = append(all, o)
		}
	}
	return all
}

// Takeovers returns all leaderships in the order of their beginnings, each with the gap before it
// and the fault that caused it.
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

// maxSpans bounds one agent's timeline of one election. The last span then covers all that comes
// later.
const maxSpans = 20_000

// timeline is what one agent reported of one election, one span after another.
type timeline struct {
	spans []StateSpan // the last one is open
}

// become records what the agent reports from s.From on. If s.From is before the last change, s
// counts from the instant of that change: an answer can be older than a change that was seen
// first.
func (l *timeline) become(s StateSpan) {
	n := len(l.spans)
	if n == 0 {
		l.spans = append(l.spans, s)
		return
	}
	open := &l.spans[n-1]
	if open.State == s.State && open.Leader == s.Leader && open.Term == s.Term || n == maxSpans {
		return
	}
	s.From = max(s.From, open.From)
	if open.From == s.From { // the former state lasted no time
		*open = s
		return
	}
	open.To = s.From
	l.spans = append(l.spans, s)
}

// until returns the spans, the last one with now as its end.
func (l *timeline) until(now election.Instant) []StateSpan {
	spans := slices.Clone(l.spans)
	if n := len(spans); n > 0 {
		spans[n-1].To = max(now, spans[n-1].From)
	}
	return spans
}

// Takeovers orders claims of one election by their beginnings. To each it adds how long the election
// had no leader before the claim, and the newest fault that hit the former leader.
func Takeovers(claims []Claim, lease time.Duration, faults []Fault) []Takeover {
	sorted := slices.SortedStableFunc(slices.Values(claims), func(a, b Claim) int { return cmp.Compare(a.Start, b.Start) })
	var all []Takeover
	var ended election.Instant // the latest end of the claims before
	for i, c := range sorted {
		t := Takeover{After: c.Agent, Term: c.Term, At: c.Start}
		if i > 0 {
			before := sorted[i-1]
			t.Before, t.Gap = before.Agent, int64(c.Start.Sub(ended))
			if ended == election.Never {
				t.Gap = 0
			}
			t.GoesOn = before.Agent == c.Agent && before.Ended == c.Start && !before.Silent && before.Ended <= before.gone
			if f, ok := cause(faults, before, c.Start); ok {
				t.Cause, t.Took = f.What, int64(c.Start.Sub(f.From))
			}
		}
		ended = max(ended, c.span(lease).to)
		all = append(all, t)
	}
	return all
}

// cause returns the newest fault that hit the former leader from the start of its claim up to the given instant.
func cause(faults []Fault, before Claim, at election.Instant) (found Fault, ok bool) {
	for _, f := range faults {
		hit := slices.Contains(f.Where, before.Agent) || slices.Contains(f.Peers, before.Agent)
		if hit && f.From >= before.Start && f.From <= at {
			found, ok = f, true
		}
	}
	return found, ok
}
