package elector

import "github.com/doyen-election/doyen/election"

// votes reports whether the peer is a voter: by this agent's roster, also one that is
// being written, or by the peer's own while this agent has none.
func (e *Elector) votes(p election.PeerID, reported *election.Roster) bool {
	held := e.heldRoster()
	switch {
	case !e.cfg.Quorum:
		return true
	case e.roster == nil && held == nil:
		return reported.Has(p)
	}
	return e.roster.Has(p) || held.Has(p)
}
