package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/internal/codec"
	"github.com/doyen-election/doyen/quorum"
)

// report is what this agent's voter has on record of that election; of all without a name.
func (e *Elector) report(id uint64, of election.Name) election.Report {
	r := election.Report{ID: id, Roster: e.roster, Stamp: e.now, Election: of}
	if e.cfg.Quorum {
		r.Boot, r.Writes = e.cfg.Self.Boot, e.ledger.Writes()
	}
	if e.roster.Has(e.cfg.Self.Peer) && e.barred.Code == "" {
		r.Voter = true
		if of != "" {
			r.Records = e.voter.Record(e.now, of)
			return r
		}
		r.Records = e.voter.Records(e.now)
		r.Records = r.Records[:min(len(r.Records), codec.MaxElections)]
	}
	return r
}

func (e *Elector) reported(from election.PeerID, r election.Report) {
	p := e.peers.get(from)
	if p == nil {
		e.answered(from, r) // this agent's own
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
	first := !p.reported && r.Election == ""
	p.probes = 0
	p.reported = p.reported || first
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
		e.touchAll() // it may be informed now
		if e.leadsAny() {
			e.beatTo(from, e.claims())
		}
	}
	e.answered(from, r)
}

// informWait is for how many heartbeats an agent without quorum waits to hear a leader.
const informWait = 3

// informed reports whether enough voters have reported to know that there is no leader.
func (e *Elector) informed() bool {
	told := func(id election.PeerID) bool {
		return id == e.cfg.Self.Peer || e.isConnected(id) && e.peers.get(id).reported && !e.older(id)
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
