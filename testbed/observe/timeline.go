package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
)

// maxSpans bounds one agent's timeline of one election. The last of that many spans covers all
// that comes later.
const maxSpans = 20_000

// timeline is what one agent reported of one election, one span after another.
type timeline struct {
	spans []StateSpan // the last one is open
}

// become records what the agent reports from s.From on. If that is before the last
// change, it counts as the instant of that change: an answer may be older than a
// change that overtook it.
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

// Takeovers orders claims of one election by their beginnings. It adds to each how long
// there was no leader before it, and the newest fault that hit the leader before it.
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

// cause is the newest fault that hit the leader before, from the start of its claim until at.
func cause(faults []Fault, before Claim, at election.Instant) (found Fault, ok bool) {
	for _, f := range faults {
		hit := slices.Contains(f.Where, before.Agent) || slices.Contains(f.Peers, before.Agent)
		if hit && f.From >= before.Start && f.From <= at {
			found, ok = f, true
		}
	}
	return found, ok
}
