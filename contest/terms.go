package contest

import (
	"github.com/doyen-election/doyen/election"
)

// A term that nobody can exceed would end an election for good. So a term counts only if
// it is not far above those known, and if a voter reports it, or its holder does and a
// voter confirms that.

// Learn records a term that was granted or claimed elsewhere, and reports whether it
// counts.
func (c *Contest) Learn(t election.Term) bool {
	if !t.Follows(c.highest) {
		return false
	}
	c.highest = max(c.highest, t)
	return true
}

func (c *Contest) learnTerm(s *step, t election.Term) bool {
	believed := c.Learn(t)
	if !believed {
		s.out.TermLeaps++
	}
	return believed
}

// confirms reports whether the holder of a term is a voter, or a voter has reported it, or
// this agent's own voter has granted it.
func (c *Contest) confirms(s *step, h election.Holder, t election.Term) bool {
	if s.Votes(h.Peer) || c.rumour.holder == h && c.rumour.term == t {
		return true
	}
	g := s.Granted()
	return g.Holder == h && g.Term == t
}
