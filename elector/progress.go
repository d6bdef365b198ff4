package elector

import "github.com/doyen-election/doyen/election"

// A data directory that was restored from an older copy has lost promises. The
// agent that uses it can't know. So each agent counts its writes, tells the
// others how many are durable, and remembers in memory what it was told. An
// identity that comes back with fewer has lost some: its votes do not count
// here, it is told so, and it bars itself.
//
// This helps and guarantees nothing: an agent that was started since remembers
// nothing, and what was written since the last word is not missed.

// progress is how far another agent's state had come.
type progress struct {
	boot   election.BootID
	stamp  election.Instant // of its clock, when it last said so
	writes uint64
	older  bool // that run of it began with fewer
}

// noteProgress takes what a peer says of its writes. Messages may come late:
// what a former run sent is not this run's, and within a run only what was sent
// after the newest word counts.
func (e *Elector) noteProgress(from election.PeerID, p *peer, r election.Report) {
	if r.Boot == 0 || r.Boot != p.boot || !e.cfg.Quorum {
		return
	}
	if r.Known > e.ledger.Writes() && e.roster.Has(from) {
		e.bar(election.Barred{Code: "data_dir_older", Agent: e.nameOf(from), Known: r.Known, Writes: e.ledger.Writes()})
	}
	m := e.progress.get(from)
	was := m.older
	switch {
	case r.Boot != m.boot:
		m.older = r.Writes < m.writes
	case r.Stamp <= m.stamp:
		return
	case r.Writes < m.writes && !m.older:
		m.older = true // the whole machine went back to a snapshot
	}
	m.boot, m.stamp = r.Boot, r.Stamp
	if !m.older {
		m.writes = r.Writes
	}
	e.progress.put(from, m)
	if m.older != was {
		e.heardOf++
		e.touchAll()
	}
}

// older reports whether the peer came back with an older state: it has lost
// promises, and what it promises now counts for nothing.
func (e *Elector) older(id election.PeerID) bool {
	m := e.progress.get(id)
	return m.older && e.peers.get(id) != nil && e.peers.get(id).boot == m.boot
}

// tellProgress tells the others how many writes are durable, at most once a
// lease, when something else has this agent act.
func (e *Elector) tellProgress() {
	if !e.cfg.Quorum || e.ledger.Writes() == e.toldWrites || e.now < e.tellWritesAt {
		return
	}
	e.toldWrites, e.tellWritesAt = e.ledger.Writes(), e.now.Add(e.cfg.Timing.Lease)
	for _, id := range e.connectedPeers() {
		if p := e.peers.get(id); p.reported {
			e.send(id, election.Report{Election: election.RosterElection, Boot: e.cfg.Self.Boot, Writes: e.toldWrites, Stamp: e.now})
		}
	}
}

// forgetProgress drops what is remembered of identities that neither vote nor
// are connected.
func (e *Elector) forgetProgress() {
	for _, id := range e.progress.keys {
		if e.peers.get(id) == nil && !e.roster.Has(id) {
			e.progress.remove(id)
		}
	}
}
