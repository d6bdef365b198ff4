package elector

import "github.com/doyen-election/doyen/election"

// An agent is barred if another process has its identity or writes to its data directory, or if that
// directory is an older copy: it might give one vote to two holders. Until its next start it grants,
// renews, accepts, writes and leads nothing. It still follows leaders, and shows who leads.

// bar ends this agent's part in votes and leaderships. If it is called again, the first cause stays.
func (e *Elector) bar(in election.Barred) {
	if e.barred.Code != "" {
		return
	}
	in.Name = e.cfg.Name
	e.barred = in
	e.voter.Bar(e.now)
	e.change.Bar(&election.Refusal{Why: election.DeniedBarred, Barred: in})
	e.touchAll()
	e.leaving.begin(e, election.ReasonBarred, 0)
	e.sendAllConnected(e.report(0, "")) // the report shows that this agent does not vote any more
}

// meetFormer bars this agent if it formed a cluster alone and meets another cluster whose roster
// has its name: it must have lost its data directory, and was started as the first agent of a
// new cluster. Two leaders would act for the same programs. Only a voter's report shows that the
// other cluster still runs: an observer may be all that is left of it.
func (e *Elector) meetFormer(from election.PeerID, p *peer) {
	if e.wasVoterOf(p.roster) && p.roster.Has(from) {
		e.bar(election.Barred{Code: "identity_changed", Cluster: p.roster.Cluster})
	}
}

// wasVoterOf reports whether this agent is alone in a cluster that it formed, and the other
// cluster's roster has a voter with its name and another peer ID.
func (e *Elector) wasVoterOf(theirs *election.Roster) bool {
	v, named := theirs.Named(e.cfg.Name)
	alone := len(e.roster.All()) == 1 && e.roster.Has(e.cfg.Self.Peer) && e.roster.Version == election.Version{Counter: 1}
	return named && alone && v.Peer != e.cfg.Self.Peer
}
