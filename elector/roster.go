package elector

import (
	"cmp"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/roster"
)

// rosterFacts answers the questions of this agent's roster.Change (roster.Facts).
type rosterFacts struct{ e *Elector }

func (f rosterFacts) Now() election.Instant             { return f.e.now }
func (f rosterFacts) Connected() []election.PeerID      { return f.e.peers.keys }
func (f rosterFacts) Reachable(id election.PeerID) bool { return f.e.reachable(id) }
func (f rosterFacts) Older(id election.PeerID) bool     { return f.e.older(id) }
func (f rosterFacts) NameOf(id election.PeerID) string  { return f.e.nameOf(id) }

func (f rosterFacts) Peer(id election.PeerID) *roster.Peer {
	if p := f.e.peers.get(id); p != nil {
		return &p.Peer
	}
	return nil
}

func (f rosterFacts) Lead() (l roster.Lead) {
	c := f.e.contests.get(election.RosterElection)
	if c != nil && f.e.now < c.Leader().Until {
		l.Leader = c.Leader().Holder.Peer
	}
	if c != nil && c.Role() == contest.Leader {
		l.Term, l.Until, l.WonBy = c.Term(), c.LeaseEnd(f.e.now), c.WonBy()
	}
	return l
}

func (f rosterFacts) Obstacle() election.Obstacle {
	if c := f.e.contests.get(election.RosterElection); c != nil {
		return c.Unable(c)
	}
	return 0
}

func (e *Elector) advanceChange() {
	v := e.change.Advance(rosterFacts{e})
	e.changeAt = v.WakeAt
	e.carryChange(v)
}

func (e *Elector) carryChange(v roster.Verdict) {
	for _, id := range v.Report {
		if e.roster.Has(e.cfg.Self.Peer) { // no agent believes an observer's roster
			e.send(id, e.report(0, election.RosterElection))
		}
		e.send(id, election.Inquiry{Election: election.RosterElection})
	}
	e.sendAll(v.Send)
	e.out.Replies = append(e.out.Replies, v.Replies...)
	if v.Dropped != "" {
		e.counters.Dropped[v.Dropped]++
	}
	if c := e.contests.get(election.RosterElection); v.Withdraw && c != nil && (c.Stands() || c.Role() == contest.Leader) {
		e.withdrawCandidacy(election.Withdraw{Election: election.RosterElection})
	}
	if v.Stand || v.Aside {
		if c := e.contest(election.RosterElection); c != nil {
			c.Stand(v.Stand, election.DefaultPriority)
		}
	}
}

func (e *Elector) learnRoster(from election.PeerID, r *election.Roster) {
	e.carryChange(e.change.Learn(rosterFacts{e}, from, r))
}

func (e *Elector) rosterRefuse(from election.PeerID, m election.RosterRefuse) {
	if c := e.held(election.RosterElection); c != nil && (e.votes(from, nil) || e.change.Asks(from)) {
		c.Learn(m.Granted)
	}
	e.carryChange(e.change.Refused(rosterFacts{e}, from, m))
}

// followSettings applies the settings of the roster. Where the roster has none, it applies the
// configuration with which this agent started.
func (e *Elector) followSettings() {
	var s election.Settings
	if e.roster != nil {
		s = e.roster.Settings
	}
	t := e.given.Timing
	if s.Lease != 0 {
		if t.Lease = s.Lease; !election.Fits(t.Heartbeat, t.Lease) {
			t.Heartbeat = t.Lease / 6
		}
		e.lives.shortest = min(cmp.Or(e.lives.shortest, s.Lease), s.Lease)
	}
	algorithm := cmp.Or(s.Algorithm, e.given.Algorithm)
	e.cfg.Timing = t
	e.sends.Keep(t.Lease)
	if algorithm == e.cfg.Algorithm {
		return
	}
	e.cfg.Algorithm, e.rounds = algorithm, e.counters.Steps // above all former round numbers: a step starts at most one round of an election
	for _, c := range e.contests.rows {
		c.Select(newSelection(e.cfg, c.Name(), e.cfg.FirstNumber()+e.rounds))
	}
}
