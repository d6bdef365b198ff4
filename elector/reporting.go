package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// report is what this agent's voter has on record of that election; empty: of all.
func (e *Elector) report(id uint64, of election.Name) election.Report {
	r := election.Report{ID: id, Roster: e.roster, Stamp: e.now, Election: of}
	if e.cfg.Quorum {
		r.Lineage, r.Writes = e.cfg.Self.Lineage, e.ledger.Writes()
	}
	if e.roster.Has(e.cfg.Self.Peer) && e.barred.Code == "" {
		r.Voter = true
		if of != "" {
			r.Records = e.voter.Record(e.now, of)
			return r
		}
		r.Records = e.voter.Records(e.now)
		r.Records = r.Records[:min(len(r.Records), election.MaxElections)]
	}
	return r
}

func (e *Elector) reported(from election.PeerID, r election.Report) {
	p := e.peers.get(from)
	if p == nil {
		e.answered(from, r) // this agent's own report
		return
	}
	if r.Roster != nil {
		p.roster = r.Roster
	}
	if e.isForeign(p) {
		e.setForeignApart()
		e.heardForeign(from, p, r)
		return
	}
	e.noteProgress(from, p, r)
	if w := &e.disk; w.question != 0 && r.ID == w.question {
		w.wrote[from] = true
	}
	first := !p.Reported && r.Election == ""
	p.probes = 0
	p.Reported = p.Reported || first
	e.stamped(from, r.Stamp)
	e.learnRoster(from, r.Roster)
	if e.votes(from, r.Roster) {
		for _, s := range r.Records {
			if c := e.contest(s.Election); c != nil {
				e.carry(c, c.Record(c, s))
			}
		}
	}
	if first {
		e.touchAll() // this agent may be informed now
		if e.leadsAny() {
			e.beatTo(from, e.claims())
		}
	}
	if h := p.early; h != nil {
		p.early = nil
		e.heartbeat(from, *h)
	}
	e.answered(from, r)
}

// informWait is for how many heartbeats an agent without quorum waits to hear a leader.
const informWait = 3

// informed reports whether enough voters have reported to know that there is no leader.
func (e *Elector) informed() bool {
	told := func(id election.PeerID) bool {
		return id == e.cfg.Self.Peer || e.peers.has(id) && e.peers.get(id).Reported && !e.older(id)
	}
	if e.cfg.Quorum {
		return e.roster != nil && quorum.Confirmed(e.roster, told)
	}
	if e.now >= e.started.Add(informWait*e.cfg.Timing.Heartbeat) {
		return true
	}
	for _, m := range e.view.Members {
		if !told(m.Peer) {
			return false
		}
	}
	return len(e.view.Members) > 1
}

// An agent whose data directory is an older copy has lost promises, and can't know that. So
// each agent reports how many writes of its state are durable, and keeps in memory what the
// others reported. If an agent comes back with fewer writes, its votes do not count here; it
// is notified, and bars itself. This helps but guarantees nothing: an agent that was started
// since then knows nothing, and nobody misses writes after the last report.

// progress is how far another agent's state had come.
type progress struct {
	lineage election.LineageID
	stamp   election.Instant // of the agent's clock, at its newest report
	writes  uint64
	older   bool // it began that process run with fewer writes
}

// noteProgress records how many writes a peer reports. Late messages do not count.
func (e *Elector) noteProgress(from election.PeerID, p *peer, r election.Report) {
	if r.Lineage == 0 || r.Lineage != p.lineage || !e.cfg.Quorum {
		return
	}
	if r.Known > e.ledger.Writes() && e.roster.Has(from) {
		e.bar(election.Barred{Code: "data_dir_older", Agent: e.nameOf(from), Known: r.Known, Writes: e.ledger.Writes()})
	}
	m := e.progress.get(from)
	was := m.older
	switch {
	case r.Lineage != m.lineage:
		m.older = r.Writes < m.writes
	case r.Stamp <= m.stamp:
		return
	case r.Writes < m.writes && !m.older:
		m.older = true // its whole machine went back to a snapshot
	}
	m.lineage, m.stamp = r.Lineage, r.Stamp
	if !m.older {
		m.writes = r.Writes
	}
	e.progress.put(from, m)
	if m.older != was {
		e.heardOf++
		e.touchAll()
	}
}

// older reports whether the peer came back with an older state than it had reported.
func (e *Elector) older(id election.PeerID) bool {
	m := e.progress.get(id)
	return m.older && e.peers.get(id) != nil && e.peers.get(id).lineage == m.lineage
}

// sendProgress reports how many writes are durable, at most once a lease. It needs no wake-up.
func (e *Elector) sendProgress() {
	if !e.cfg.Quorum || e.ledger.Writes() == e.sentWrites || e.now < e.sendWritesAt {
		return
	}
	e.sentWrites, e.sendWritesAt = e.ledger.Writes(), e.now.Add(e.cfg.Timing.Lease)
	for _, id := range e.peers.keys {
		if p := e.peers.get(id); p.Reported {
			e.send(id, election.Report{Election: election.RosterElection, Lineage: e.cfg.Self.Lineage, Writes: e.sentWrites, Stamp: e.now})
		}
	}
}

// forgetProgress drops the progress of agents that neither vote nor are connected.
func (e *Elector) forgetProgress() {
	for _, id := range e.progress.keys {
		if e.peers.get(id) == nil && !e.roster.Has(id) {
			e.progress.remove(id)
		}
	}
}
