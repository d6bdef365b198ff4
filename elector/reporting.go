package elector

import (
	"cmp"
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// report is what this agent's voter has on record about an election; with an empty name, about all.
func (e *Elector) report(id uint64, of election.Name) election.Report {
	r := election.Report{ID: id, Roster: e.roster, Stamp: e.now, Election: of}
	if e.cfg.Quorum && e.ledger.Sure() {
		r.Lineage, r.Writes = e.cfg.Self.Lineage, e.ledger.Writes()
	}
	if e.roster.Has(e.cfg.Self.Peer) && e.barred.Code == "" {
		r.Voter = true
		if of == election.RosterElection && e.voter.Writing(of) {
			r.Roster = nil // the records do not show the vote for a later driver that is being written
		}
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
	if p.isForeign(e.heldRoster()) {
		e.parted(p)
		e.foreign.put(from, p)
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
	if r.Voter && r.Roster != nil && r.Election == election.RosterElection && !slices.ContainsFunc(r.Records, func(g election.Record) bool {
		return g.Election == election.RosterElection && g.Term > r.Roster.Version.Driver
	}) {
		p.Agrees = r.Roster.Version
	}
	if e.votes(from, r.Roster) {
		for _, s := range r.Records {
			if c := e.contest(s.Election); c != nil {
				e.carry(c, c.Record(c, s))
			}
		}
	}
	if first {
		e.metAt = cmp.Or(e.metAt, e.now)
		e.touchAll() // now enough voters may have reported
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

// informWait is how many heartbeat intervals an agent without quorum waits for a leader's heartbeat.
const informWait = 3

func (c *entry) Informed() (bool, election.Instant) {
	e := c.e
	told := func(id election.PeerID) bool {
		return id == e.cfg.Self.Peer || e.peers.has(id) && e.peers.get(id).Reported && !e.older(id)
	}
	if e.cfg.Quorum {
		return e.roster != nil && quorum.Confirmed(e.roster, told), election.Never // a Report ends the wait
	}
	by := e.started.Add(informWait * e.cfg.Heartbeat)
	all := len(e.view.Members) > 1 && !slices.ContainsFunc(e.view.Members, func(m election.Member) bool { return !told(m.Peer) })
	return all || e.now >= by, by
}

// An agent whose data directory is an older copy has lost promises, and can't notice that. So each agent
// reports how many writes of its state are durable, and all remember in memory what the others reported. If
// an agent is back with fewer writes, its votes do not count here; it gets the higher number and bars itself.
// This is not a guarantee: an agent that has started since remembers nothing, and nobody knows of writes
// after the last report. Answers to heartbeats, and the leader's next heartbeats, carry new numbers at no
// cost. They do so for two leases, because a queue may drop a heartbeat.

type progress struct {
	election.Progress                  // the last report
	since             election.Instant // when its number of writes was first reported
	writes            uint64           // the highest number reported so far; a process run with an older state does not change it
	older             bool             // this process run has reported fewer writes than were known before
}

// noteProgress records how many writes peers report. It drops late reports.
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
			m.older = true // the peer's whole machine went back to a snapshot
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

// older reports whether the peer is back with a state older than one that it had reported.
func (e *Elector) older(id election.PeerID) bool {
	m := e.progress.get(id)
	return m.older && e.peers.get(id) != nil && e.peers.get(id).lineage == m.Lineage
}

// news lists the new progress to send to a peer: this agent's, and in a heartbeat also that of other voters.
func (e *Elector) news(to *peer, beat bool) (list []election.Progress) {
	ids := []election.PeerID{e.cfg.Self.Peer}
	if beat {
		for _, v := range e.roster.All() {
			ids = append(ids, v.Peer)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if m := e.progress.get(id); to.Level >= election.LevelSettings && m.Peer != "" && e.now < m.since.Add(2*e.cfg.Lease) {
			list = append(list, m.Progress)
		}
	}
	return list
}

// sendProgress reports this agent's progress after a lease, if no leader passes it on. No step is made just for this.
func (e *Elector) sendProgress() {
	self := e.cfg.Self
	if n := e.ledger.Writes(); e.cfg.Quorum && e.ledger.Sure() && n != e.progress.get(self.Peer).Writes {
		e.progress.put(self.Peer, progress{since: e.now, Progress: election.Progress{Peer: self.Peer, Lineage: self.Lineage, Stamp: e.now, Writes: n}})
		e.reportAt = min(e.reportAt, e.now.Add(e.cfg.Lease))
	}
	if e.now < e.reportAt {
		return
	}
	e.reportAt = election.Never
	passedOn := slices.ContainsFunc(e.contests.rows, func(c *entry) bool {
		p := e.peers.get(c.Leader().Holder.Peer)
		return c.Role() == contest.Leader || p != nil && p.Level >= election.LevelSettings
	})
	for i, p := range e.peers.rows {
		if p.Reported && !(passedOn && p.Level >= election.LevelSettings) {
			e.send(e.peers.keys[i], election.Report{Election: election.RosterElection, Lineage: self.Lineage, Writes: e.ledger.Writes(), Stamp: e.now})
		}
	}
}

// forgetProgress drops the progress of agents that are neither voters nor connected.
func (e *Elector) forgetProgress() {
	for _, id := range e.progress.keys {
		if id != e.cfg.Self.Peer && e.peers.get(id) == nil && !e.roster.Has(id) {
			e.progress.remove(id)
		}
	}
}
