package elector

import "github.com/doyen-election/doyen/election"

// An agent is barred if another process has its identity or writes to its data directory, or
// if the directory is an older copy: one vote might go to two holders. Until its next start
// it grants, renews, accepts, writes and leads nothing; it follows, and shows who leads.

// bar ends this agent's part in votes and leaderships. The first cause is kept.
func (e *Elector) bar(in election.Barred) {
	if e.barred.Code != "" {
		return
	}
	in.Name = e.cfg.Name
	e.barred = in
	e.voter.Bar(e.now)
	e.change.Bar(&election.Refusal{Why: election.DeniedBarred, Barred: in})
	e.touchAll()
	for _, c := range e.contests.rows {
		e.carry(c, c.Leave(c, election.ReasonBarred))
	}
	e.sendAllConnected(e.report(0, "")) // they learn that this agent no longer votes
}

// meetFormer bars an agent that formed a cluster alone and meets another cluster whose roster
// has the agent's name: it lost its data directory and was started as the first agent of a
// cluster. Two leaders would act for the same programs. Only a voter shows that the other
// cluster still runs: an observer may be all that is left of that cluster.
func (e *Elector) meetFormer(from election.PeerID, p *peer) {
	if e.wasVoterOf(p.roster) && p.roster.Has(from) {
		e.bar(election.Barred{Code: "identity_changed", Cluster: p.roster.Cluster})
	}
}

// wasVoterOf reports whether this agent is alone in a cluster that it formed, while a voter of
// that roster has its name and another identity.
func (e *Elector) wasVoterOf(theirs *election.Roster) bool {
	v, named := theirs.Named(e.cfg.Name)
	alone := len(e.roster.All()) == 1 && e.roster.Has(e.cfg.Self.Peer) && e.roster.Version == election.Version{Counter: 1}
	return named && alone && v.Peer != e.cfg.Self.Peer
}
