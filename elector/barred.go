package elector

import "github.com/doyen-election/doyen/election"

// An agent is barred when it has learnt that its promises are not the only ones
// made in its name, or not all that were made: another process has its identity
// or writes to its data directory, or the directory is an older copy. Voting on
// could give one vote to two holders. It grants nothing, renews nothing, accepts
// no roster, writes nothing and leads nothing until its next start; it follows,
// and tells its host who leads.

// bar ends this agent's part in votes and leaderships. Only the first cause is
// kept: nothing that comes later can change what follows from it.
func (e *Elector) bar(in election.Barred) {
	if e.barred.Code != "" {
		return
	}
	in.Name = e.cfg.Name
	e.barred = in
	e.voter.Bar(e.now)
	e.endChange()
	e.touchAll()
	for _, c := range e.contests.rows {
		switch c.role() {
		case leader:
			e.withdraw(c, departure{reason: election.ReasonBarred})
		case nominee:
			e.abandon(c)
			c.selection.Stop()
		}
	}
	for _, p := range e.connectedPeers() {
		e.send(p, e.report(0, "")) // it is no voter any more
	}
}

// whyBarred refuses what a barred agent is asked to change.
func (e *Elector) whyBarred() *election.Refusal {
	return &election.Refusal{Why: election.DeniedBarred, Barred: e.barred}
}

// endChange answers who waits for a change of the voters that this agent has no
// part in any more.
func (e *Elector) endChange() {
	ch := &e.change
	if ch.want != nil {
		e.reply(ch.want.request, e.whyBarred())
	}
	if ch.cancel != nil {
		e.reply(ch.cancel.request, e.whyBarred())
	}
	if ch.restore != nil {
		e.reply(ch.restore.request, e.whyBarred())
	}
	ch.want, ch.cancel, ch.restore, ch.driver = nil, nil, nil, nil
}

// meetFormer bars an agent that formed a cluster of its own, alone, and meets one
// whose roster has its name: it lost its data directory and was started as if there
// were no cluster yet. Two leaders for the same programs would act beside each other.
// Only a voter shows that the cluster still runs: an observer may be all that is left
// of it, and then nobody could give this agent its vote back.
func (e *Elector) meetFormer(from election.PeerID, p *peer) {
	if !e.foreign(p) || !e.wasVoterOf(p.tells) || !p.tells.Has(from) {
		return
	}
	e.bar(election.Barred{Code: "identity_changed", Cluster: p.cluster})
}

// wasVoterOf reports whether this agent, alone in a cluster that it began, has the
// name of a voter of that roster, and another identity.
func (e *Elector) wasVoterOf(theirs *election.Roster) bool {
	v, named := theirs.Named(e.cfg.Name)
	alone := len(e.roster.All()) == 1 && e.roster.Has(e.cfg.Self.Peer) && e.roster.Version == election.Version{Counter: 1}
	return named && alone && v.Peer != e.cfg.Self.Peer
}

// tellFirstRoster tells everybody of this agent's first roster, now that it is on
// disk; also those of other clusters: they ask until they know that it is not of theirs.
func (e *Elector) tellFirstRoster() {
	own := e.report(0, "")
	for i, p := range e.peers.rows {
		if p.connected {
			e.send(e.peers.keys[i], own)
		}
	}
}

// barredFrom reports whether a message asks for something that a barred agent
// must not do. A Vote Request is refused by the voter.
func (e *Elector) barredFrom(m election.Message) bool {
	if e.barred.Code == "" {
		return false
	}
	switch m.(type) {
	case election.GenesisPropose, election.GenesisAccept, election.RosterPropose, election.RosterAccept:
		return true
	}
	return false
}
