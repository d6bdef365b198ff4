package contest

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// A term that nobody can exceed would end an election forever. So a term counts only if it is
// not far above the known terms, and if a voter has reported or confirms it.

// Learn records a term that another agent has granted or claimed, and reports whether it counts.
func (c *Contest) Learn(t election.Term) bool {
	if !t.Follows(c.highest) {
		c.counts.TermLeaps++
		return false
	}
	c.highest = max(c.highest, t)
	return true
}

// confirms reports whether the holder is a voter, a voter has reported its term, or this agent's
// own voter has granted it.
func (c *Contest) confirms(s *step, h election.Holder, t election.Term) bool {
	if s.Votes(h.Peer) || c.rumour.holder == h && c.rumour.term == t {
		return true
	}
	g := s.Granted()
	return g.Holder == h && g.Term == t
}

// asked are the terms that this agent has asked for in one election. It asks for none of them
// again (H1), even if the highest term seen turns out to be made up (goBack).
//
// Invariant: the spans are sorted, and more than gap terms apart.
type asked struct{ spans []span }

type span struct{ first, last election.Term }

const (
	gap      = 1 << 16 // spans that are at most so far apart become one
	leap     = 1 << 31 // if two spans are at least so far apart, the terms above were made up; Term.Follows allows a larger leap
	maxSpans = 16      // if there are more spans, the two nearest become one
)

// upTo is every term up to t; none if t is 0.
func upTo(t election.Term) asked {
	if t == 0 {
		return asked{}
	}
	return asked{spans: []span{{1, t}}}
}

func (a *asked) highest() election.Term {
	if len(a.spans) == 0 {
		return 0
	}
	return a.spans[len(a.spans)-1].last
}

// wayBack returns the terms just before and just after the first leap; 0 and 0: there is no leap.
func (a *asked) wayBack() (low, far election.Term) {
	for i := 1; i < len(a.spans); i++ {
		if a.between(i) >= leap {
			return a.spans[i-1].last, a.spans[i].first
		}
	}
	return 0, 0
}

// after is the lowest term above t for which this agent has not asked yet.
func (a *asked) after(t election.Term) election.Term {
	t++
	for _, s := range a.spans {
		if s.first <= t && t <= s.last {
			t = s.last + 1
		}
	}
	return t
}

func (a *asked) add(t election.Term) {
	a.spans = append(a.spans, span{t, t})
	slices.SortFunc(a.spans, func(s, o span) int { return cmp.Compare(s.first, o.first) })
	for len(a.spans) > 1 {
		nearest := 1
		for i := 2; i < len(a.spans); i++ {
			if a.between(i) < a.between(nearest) {
				nearest = i
			}
		}
		if a.between(nearest) > gap && len(a.spans) <= maxSpans {
			return
		}
		a.spans[nearest-1].last = max(a.spans[nearest-1].last, a.spans[nearest].last)
		a.spans = slices.Delete(a.spans, nearest, nearest+1)
	}
}

// between is the distance from the span before i to span i; 0 if they overlap.
func (a *asked) between(i int) election.Term {
	return max(a.spans[i].first, a.spans[i-1].last) - a.spans[i-1].last
}

// newTerm is the term to ask for next: above all terms seen, and one that was never asked for (H1).
func (c *Contest) newTerm(s *step) election.Term {
	if s.roster != nil {
		c.highest = max(c.highest, s.roster.Floor)
	}
	c.highest = c.asked.after(c.highest)
	c.asked.add(c.highest)
	return c.highest
}

// goBack forgets the highest term seen, if so many voters refuse the next one as a leap that the
// others are not a majority (H1). Then the highest term was made up, and every later bid would be
// refused too. goBack reports whether it forgot a term.
func (c *Contest) goBack(s *step) bool {
	tooFar := func(id election.PeerID) bool { return c.bid.refused[id].Reason == election.RefusedLeap }
	if c.bid == nil || quorum.Confirmed(s.roster, func(id election.PeerID) bool { return !tooFar(id) }) {
		return false
	}
	c.highest = s.roster.Floor
	for id, refused := range c.bid.refused {
		if tooFar(id) {
			c.highest = max(c.highest, refused.Granted)
			delete(c.bid.refused, id)
		}
	}
	c.counts.TermLeaps++
	return true
}
