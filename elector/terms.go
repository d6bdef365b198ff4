package elector

import "github.com/doyen-election/doyen/election"

// A term that others claim is not taken on trust: one that nobody can exceed would
// end the election for good. Only voters tell of terms, and holders that a voter
// confirms, and nobody of one far above those known.

// learnTerm takes note of a term that was granted or claimed elsewhere, and reports
// whether it is to be believed.
func (e *Elector) learnTerm(c *contest, t election.Term) bool {
	if !t.Follows(c.highest) {
		e.counters.Dropped["term_leap"]++
		return false
	}
	c.highest = max(c.highest, t)
	return true
}

// votes reports whether the peer is a voter, by this agent's roster, also one that
// is being written, or, while this agent has none, by the one that the peer tells.
// A roster that is not taken over says nothing: its sender may have made it up.
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

// confirms reports whether the holder of a term is a voter, or some voter has told of
// it, or this agent's own voter has granted it.
func (e *Elector) confirms(c *contest, h election.Holder, t election.Term) bool {
	if e.votes(h.Peer, nil) || c.rumour.holder == h && c.rumour.term == t {
		return true
	}
	g := e.ledger.State().Grant(c.name)
	return g.Holder == h && g.Term == t
}
