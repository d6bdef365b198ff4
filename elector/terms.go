package elector

import "github.com/doyen-election/doyen/election"

// A term that nobody can exceed would end an election for good. So a term counts only if
// it is not far above those known, and if a voter reports it, or its holder does and a
// voter confirms that.

// learnTerm records a term that was granted or claimed elsewhere, and reports whether it
// counts.
func (e *Elector) learnTerm(c *contest, t election.Term) bool {
	if !t.Follows(c.highest) {
		e.counters.Dropped["term_leap"]++
		return false
	}
	c.highest = max(c.highest, t)
	return true
}

// votes reports whether the peer is a voter: by this agent's roster, also one that is
// being written, or by the peer's own while this agent has none.
func (e *Elector) votes(p election.PeerID, told *election.Roster) bool {
	held := e.heldRoster()
	switch {
	case !e.cfg.Quorum:
		return true
	case e.roster == nil && held == nil:
		return told.Has(p)
	}
	return e.roster.Has(p) || held.Has(p)
}

// confirms reports whether the holder of a term is a voter, or a voter has reported it, or
// this agent's own voter has granted it.
func (e *Elector) confirms(c *contest, h election.Holder, t election.Term) bool {
	if e.votes(h.Peer, nil) || c.rumour.holder == h && c.rumour.term == t {
		return true
	}
	g := e.ledger.State().Grant(c.name)
	return g.Holder == h && g.Term == t
}
