package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/base/each"
)

// Claim is one agent's claim to lead under one term.
type Claim struct {
	Agent string
	Term  uint64
	Start election.Instant
	// Until is the latest deadline that the agent reported, 0 if none.
	Until election.Instant
	// Ended is when the agent itself stopped claiming; Never if it did not.
	Ended election.Instant
	// Silent says that the agent was frozen or killed during the claim. Programs may act under
	// the claim until the deadline that they received, but not after it.
	Silent bool

	gone     election.Instant // when the agent's process ended; Never if it did not
	released election.Instant // when another agent reported that the term was released; Never if none did
	answered election.Instant // when the first answer to a poll sent after Until arrived; 0 if none did
	expired  bool             // the agent reported that the claim ended because its lease expired
}

// span is a stretch of time that does not include its end.
type span struct{ from, to election.Instant }

// span returns when the claim held. A lease of 0 means that there are no deadlines.
func (c Claim) span(lease time.Duration) span {
	late := c.expired && c.Until != 0 && !c.defiant(lease)
	if lease == 0 || !c.Silent && !late {
		return span{c.Start, c.Ended}
	}
	until := cmp.Or(c.Until, c.Start.Add(lease)) // the deadline is not known: take the latest that the agent can have reported
	return span{c.Start, max(c.Start, min(until, c.Ended))}
}

// endReleased ends the claim of an agent that was killed before it could report that it had
// released the term. An agent that is alive must take its claim back itself.
func (c *Claim) endReleased() {
	if c.gone != election.Never && c.released != election.Never {
		c.Ended = min(c.Ended, max(c.Start, min(c.gone, c.released)))
	}
}

// defiant reports whether the agent went on claiming past its deadline though it could run: it
// answered a poll after the deadline, and did not take its claim back soon after that answer. An
// agent that got no processor could not take its claim back in time. It is not defiant: its claim
// counts only until the deadline, since no program may act after the deadline.
func (c Claim) defiant(lease time.Duration) bool {
	return c.answered != 0 && c.Ended > c.answered.Add(lease/12)
}

// Overlaps returns every stretch in which two different agents claimed to lead. The lease bounds
// the deadline that a silent agent can have reported; 0 means that there are no leases.
func Overlaps(claims []Claim, lease time.Duration) []OverlapSpan {
	return overlaps("agents", each.Of(claims, func(c Claim) ProgramSpan {
		s := c.span(lease)
		return ProgramSpan{Program: c.Agent, Term: c.Term, From: s.from, To: s.to}
	}))
}

// Together is for how long, until now, there was more than one leader: the length of the union of
// the overlaps. Some overlaps may not have ended.
func Together(overlaps []OverlapSpan, now election.Instant) time.Duration {
	sorted := slices.SortedFunc(slices.Values(overlaps), func(a, b OverlapSpan) int { return cmp.Compare(a.From, b.From) })
	var sum time.Duration
	var reached election.Instant
	for _, o := range sorted {
		if from, to := max(o.From, reached), min(o.To, now); to > from {
			sum += to.Sub(from)
			reached = to
		}
	}
	return sum
}

// ProgramOverlaps finds every stretch in which, by their own stamps, two processes acted for the
// same election.
func ProgramOverlaps(spans []ProgramSpan) []OverlapSpan { return overlaps("programs", spans) }

// overlaps finds them in the order of their earlier halves.
func overlaps(by string, spans []ProgramSpan) []OverlapSpan {
	sorted := slices.SortedStableFunc(slices.Values(spans), func(a, b ProgramSpan) int { return cmp.Compare(a.From, b.From) })
	var found []OverlapSpan
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if b.From >= a.To {
				break
			}
			if to := min(a.To, b.To); to > b.From && a.Election == b.Election && (a.Program != b.Program || a.PID != b.PID) {
				found = append(found, OverlapSpan{Election: a.Election, By: by, First: a.Program, Second: b.Program,
					FirstTerm: a.Term, SecondTerm: b.Term, From: b.From, To: to})
			}
		}
	}
	return found
}

// Pause returns the longest stretch between two instants in which none of the processes acted,
// and when that stretch began. The spans are in the order of their start.
func Pause(spans []ProgramSpan, from, until election.Instant) (longest time.Duration, at election.Instant) {
	acted := from
	gap := func(until election.Instant) {
		if d := until.Sub(acted); d > longest {
			longest, at = d, acted
		}
	}
	for _, s := range spans {
		if s.To > from {
			gap(s.From)
			acted = max(acted, s.To)
		}
	}
	gap(until)
	return longest, at
}
