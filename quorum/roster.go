package quorum

import "github.com/doyen-election/doyen/election"

func (v *Voter) Propose(now election.Instant, from election.PeerID, p election.RosterPropose) {
	if !v.barred {
		v.receive(now, received{from: from, message: p, at: now})
	}
}

// Adopt takes over a newer roster that was reported (R2). Once the new roster is durable, it counts,
// and Roster returns it. If keep is true, the former roster is kept for Restore.
func (v *Voter) Adopt(now election.Instant, r *election.Roster, keep bool) {
	if !v.barred && v.newer(r) {
		v.receive(now, received{message: election.Report{Roster: r}, at: now, keep: keep})
	}
}

// Restore goes back to the roster that Adopt replaced and kept. That is safe: this voter has not accepted
// the newer roster from a driver, so no ballot depends on this voter having it. Restore returns the generation
// to wait for. It returns false while anything is being written (V1), or if the voter is barred.
func (v *Voter) Restore() (generation uint64, ok bool) {
	if v.barred || !v.idle() {
		return 0, false
	}
	v.adopting = v.ledger.Change(func(s *election.State) {
		keepLease(s, s.Former)
		s.Roster, s.Former, s.Refused = s.Former, nil, s.Roster.Version
	})
	return v.adopting, true
}

// keepLease must be called before a roster replaces the present one. If the next roster has a shorter
// lease, or none, it raises each grant on record to the present roster's lease. Promises for that long may
// still run (R14), and until now only the roster on disk showed how long they are.
func keepLease(s *election.State, next *election.Roster) {
	held := s.Roster.Lease()
	if held <= next.Lease() {
		return
	}
	for e, g := range s.Grants {
		if g.Lease < held && !g.Released {
			g.Lease = held
			s.Grants[e] = g
		}
	}
}

func (v *Voter) adopt(r *election.Roster, keep bool) {
	if !v.newer(r) {
		return
	}
	v.adopting = v.ledger.Change(func(s *election.State) {
		if s.Former == nil && keep {
			s.Former = s.Roster
		}
		keepLease(s, r)
		v.dropWords(s, r)
		s.Roster, s.Pending = keepingFloor(s.Roster, r), nil
	})
}

// dropWords drops this agent's words when it is removed from the voters, or is added again: those words may
// have been deleted meanwhile (W10). If it may still go back to the former roster, it keeps them.
func (v *Voter) dropWords(s *election.State, next *election.Roster) {
	voted, votes := s.Roster.Has(v.cfg.Self.Peer), next.Has(v.cfg.Self.Peer)
	if s.KeepsWords && (!votes && s.Former == nil || votes && !voted) {
		v.ledger.DropWords(s)
	}
}

// keepingFloor is the newer roster, with the present roster's floor if that is higher. A joint
// roster that is proposed again may have the lower floor from before the change (R5).
func keepingFloor(held, newer *election.Roster) *election.Roster {
	if held == nil || newer.Floor >= held.Floor {
		return newer
	}
	r := *newer
	r.Floor = held.Floor
	return &r
}

// newer reports whether r is a newer version of this agent's roster, or this agent has none.
func (v *Voter) newer(r *election.Roster) bool {
	if r == nil {
		return false
	}
	held := v.ledger.State().Roster
	return held == nil || held.Cluster == r.Cluster && held.Version.Before(r.Version)
}

// propose accepts the roster if its version is newer or the same, and the term granted in the
// roster election is not above the driver's. It raises that term to the driver's (R1).
func (v *Voter) propose(now election.Instant, from election.PeerID, p election.RosterPropose) {
	held, pending := v.ledger.State().Roster, v.ledger.State().Pending
	g := v.ledger.State().Grants[election.RosterElection]
	if held != nil && held.Cluster != p.Roster.Cluster || held == nil && pending != nil && pending.Roster.Cluster != p.Roster.Cluster {
		return // the roster, or the pending genesis, binds this agent
	}
	repeat := held != nil && held.Version == p.Roster.Version
	if g.Term > p.Driver || !repeat && !v.newer(&p.Roster) || p.Roster.Version.Driver != p.Driver {
		v.ledger.Send(election.Envelope{To: from, Message: election.RosterRefuse{Driver: p.Driver,
			Version: p.Roster.Version, Granted: g.Term, Roster: held}})
		return
	}
	generation := v.ledger.durable
	if !repeat || g.Term < p.Driver || v.ledger.State().Former != nil {
		generation = v.ledger.Change(func(s *election.State) {
			keepLease(s, &p.Roster)
			v.dropWords(s, &p.Roster)
			s.Roster, s.Pending, s.Former = keepingFloor(s.Roster, &p.Roster), nil, nil
			if g.Term < p.Driver {
				s.Grants[election.RosterElection] = raised(s.Grants[election.RosterElection], p.Driver, p.Holder, max(v.agreed(), p.Roster.Lease()))
			}
		})
		v.adopting = generation
	}
	if repeat && p.CatchUp {
		v.CatchUp()
	}
	v.ledger.WhenDurable(generation, election.Envelope{To: from,
		Message: election.RosterAccept{Driver: p.Driver, Version: p.Roster.Version,
			Highest: max(v.Highest(), p.Roster.Floor), Promise: v.longest(now), Words: v.wordsAt(p.Roster.Version)}})
}
