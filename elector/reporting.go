package elector

import (
	"slices"

	"github.com/doyen-election/doyen/contest"
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
	if r.Lineage == p.lineage && r.Known > e.ledger.Writes() && e.roster.Has(from) {
		e.bar(election.Barred{Code: "data_dir_older", Agent: e.nameOf(from), Known: r.Known, Writes: e.ledger.Writes()})
	}
	e.noteProgress(election.Progress{Peer: from, Lineage: r.Lineage, Stamp: r.Stamp, Writes: r.Writes})
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
	if e.now >= e.started.Add(informWait*e.cfg.Heartbeat) {
		return true
	}
	for _, m := range e.view.Members {
		if !told(m.Peer) {
			return false
		}
	}
	return len(e.view.Members) > 1
}

// An agent whose data directory is an older copy has lost promises, and can't know that. So each
// agent reports how many writes of its state are durable, and keeps in memory what the others
// reported. If an agent comes back with fewer, its votes do not count here; it is notified, and
// bars itself. It guarantees nothing: agents started since know nothing, and nobody misses writes
// after the last report. Answers to heartbeats, and the leader's next heartbeats, carry new numbers
// at no cost; for two leases, since a queue may drop a heartbeat.

type progress struct {
	election.Progress                  // as last reported
	since             election.Instant // when this number was first reported
	writes            uint64           // the highest number of a process run that was not older
	older             bool             // it began that process run with fewer writes
}

// noteProgress records how many writes peers report. Late messages do not count.
func (e *Elector) noteProgress(list ...election.Progress) {
	for _, n := range list {
		p, m := e.peers.get(n.Peer), e.progress.get(n.Peer)
		was := m.older
		switch {
		case p == nil, n.Lineage == 0, n.Lineage != p.lineage, !e.cfg.Quorum:
			continue
		case n.Lineage != m.Lineage:
			m.older = n.Writes < m.writes
		case n.Stamp <= m.Stamp:
			continue
		case n.Writes < m.writes && !m.older:
			m.older = true // its whole machine went back to a snapshot
		}
		if n.Writes != m.Writes {
			m.since = e.now
		}
		m.Progress = n
		if !m.older {
			m.writes = n.Writes
		}
		e.progress.put(n.Peer, m)
		if m.older != was {
			e.heardOf++
			e.touchAll()
		}
	}
}

// older reports whether the peer came back with an older state than it had reported.
func (e *Elector) older(id election.PeerID) bool {
	m := e.progress.get(id)
	return m.older && e.peers.get(id) != nil && e.peers.get(id).lineage == m.Lineage
}

// news is the progress that is new to a peer: this agent's, and in a heartbeat the other voters' too.
func (e *Elector) news(to *peer, beat bool) (list []election.Progress) {
	for i, m := range e.progress.rows {
		id := e.progress.keys[i]
		if to.Level >= election.Level && e.now < m.since.Add(2*e.cfg.Lease) && (id == e.cfg.Self.Peer || beat && e.roster.Has(id)) {
			list = append(list, m.Progress)
		}
	}
	return list
}

// sendProgress reports this agent's progress, after a lease, where no leader has. It needs no wake-up.
func (e *Elector) sendProgress() {
	self := e.cfg.Self
	if n := e.ledger.Writes(); e.cfg.Quorum && n != e.progress.get(self.Peer).Writes {
		e.progress.put(self.Peer, progress{since: e.now, Progress: election.Progress{Peer: self.Peer, Lineage: self.Lineage, Stamp: e.now, Writes: n}})
		e.reportAt = min(e.reportAt, e.now.Add(e.cfg.Lease))
	}
	if e.now < e.reportAt {
		return
	}
	e.reportAt = election.Never
	passedOn := slices.ContainsFunc(e.contests.rows, func(c *entry) bool {
		p := e.peers.get(c.Leader().Holder.Peer)
		return c.Role() == contest.Leader || p != nil && p.Level >= election.Level
	})
	for i, p := range e.peers.rows {
		if p.Reported && !(passedOn && p.Level >= election.Level) {
			e.send(e.peers.keys[i], election.Report{Election: election.RosterElection, Lineage: self.Lineage, Writes: e.ledger.Writes(), Stamp: e.now})
		}
	}
}

// forgetProgress drops that of agents that neither vote nor are connected.
func (e *Elector) forgetProgress() {
	for _, id := range e.progress.keys {
		if id != e.cfg.Self.Peer && e.peers.get(id) == nil && !e.roster.Has(id) {
			e.progress.remove(id)
		}
	}
}
