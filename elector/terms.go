package elector

import (
	"strings"

	"github.com/doyen-election/doyen/election"
)

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
	g := e.ledger.State().Grant(c.name)
	return e.votes(h.Peer, nil) || g.Holder == h && g.Term == t || c.rumour.holder == h && c.rumour.term == t
}

// describeTooFar names the voters whose acceptance of a change does not count
// because of the term they told with it.
func (e *Elector) describeTooFar() string {
	d := e.change.driver
	if d == nil {
		return ""
	}
	names := e.namesOf(d.Proposal().All(), func(v election.Voter) bool { return d.TooFar(v.Peer) })
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + " reported a term far above all that the other voters know, so its acceptance of the change of the voters does not count: its state is damaged, or another program runs in its place; run doyen voters cancel, move that agent's data directory away, start it with --join, and run doyen voters replace NAME on another voter"
}
