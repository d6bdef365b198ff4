package elector

import (
	"cmp"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/roster"
)

// peer is what this agent knows about another agent from direct contact.
type peer struct {
	roster.Peer
	id       election.PeerID
	lineage  election.LineageID
	run      election.RunID
	leaving  bool                // the agent shuts down
	reportAt election.Instant    // when this agent next asks for the peer's Report; 0: no heartbeat has come before the Report
	roster   *election.Roster    // the one that it last reported
	early    *election.Heartbeat // its newest heartbeat that arrived before its Report; nil: none did

	stamp     election.Instant // the newest instant of its clock that it sent; heartbeats echo it
	stampedAt election.Instant // when the stamp arrived
	stale     bool             // the last echo sent to it may have been too old to show that the claimed leases still run

	unwritableUntil election.Instant          // until then it counts as a voter that can't write its promises
	beats           *failuredetector.Detector // of its heartbeats as a leader; nil: it leads nothing
	heardAt         election.Instant          // when its last message arrived, or it connected
	unansweredSince election.Instant          // when the oldest message that it has not answered was sent; Never: it has answered all
	redialAt        election.Instant          // this agent asks for no new connection before then
	probeAt         election.Instant          // when the next Inquiry is sent if the peer is silent
	probes          int                       // Inquiries sent since its last Report, up to maxProbes
	cleared         bool                      // gossip has suspected it since before it connected: that suspicion does not count

	listed      bool                 // it has sent its candidacies itself
	serial      uint64               // the number of the message with its candidacies
	candidacies []election.Candidacy // sorted
	since       uint64               // acknowledgements of lower serials do not count
	knows       uint64               // the newest serial of this agent's candidacies that it has acknowledged
	sendAt      election.Instant     // when this agent's candidacies are next sent to it, if it does not know them by then

	able    bool             // at the last look at it, it was a member, and away returned 0
	stirred bool             // this step looks at it
	dueAt   election.Instant // when to look at it if nothing about it changes
	place   int              // in Elector.dues.order
}

func (e *Elector) connected(in election.PeerConnected) {
	if in.Peer == e.cfg.Self.Peer {
		return
	}
	e.foreign.remove(in.Peer)
	m, _ := e.view.Find(in.Peer)
	e.joined(&peer{id: in.Peer, lineage: in.Lineage, run: runOf(in.Run, in.Lineage), since: e.stands.connected(),
		Peer: roster.Peer{Level: in.Level, Beat: in.Heartbeat}, heardAt: e.now, unansweredSince: election.Never,
		probeAt: e.now.Add(e.cfg.Heartbeat), cleared: m.Suspected})
	e.sendCandidacies() // before the Report, after which the peer may start a round
	own := e.report(0, "")
	own.Known = e.progress.get(in.Peer).writes
	e.send(in.Peer, own)
	for _, c := range e.contests.rows {
		e.carry(c, c.Reconnected(c, in.Peer))
	}
}

// viewed replaces the view by gossip's newest one.
func (e *Elector) viewed(v election.View) {
	e.view = v
	e.heardOf++
	e.candidates.dropAllBut(v)
	e.dues.stir(e.peers.rows...)
	e.strangers = strangers(v, e.roster)
	for _, m := range v.Members {
		p := e.peers.get(m.Peer)
		e.candidates.enlist(m, p)
		if p != nil && !m.Suspected {
			p.cleared = false
		}
	}
}

// disconnected forgets the peer. That may start a selection, but it shortens no promise (H7).
func (e *Elector) disconnected(id election.PeerID) {
	e.parted(e.peers.get(id))
	e.foreign.remove(id)
	e.voter.Disconnected(id)
	e.cancelReport(id)
}

// heldRoster is the roster in memory, which may not be durable yet.
func (e *Elector) heldRoster() *election.Roster { return e.ledger.State().Roster }

func (p *peer) isForeign(held *election.Roster) bool {
	return held != nil && p.roster != nil && p.roster.Cluster != held.Cluster
}

// setForeignApart moves foreign peers out of the table of peers when this agent gets its first roster. They may
// have reported their rosters before.
func (e *Elector) setForeignApart() {
	held := e.heldRoster()
	if held == nil || held.Cluster == e.apart {
		return
	}
	e.apart = held.Cluster
	for _, p := range e.peers.rows {
		if p.isForeign(held) {
			e.parted(p)
			e.foreign.put(p.id, p)
		}
	}
}

// heardForeign handles a message of a foreign peer. The peer may be in this agent's cluster by now.
func (e *Elector) heardForeign(from election.PeerID, p *peer, m election.Message) {
	r, _ := m.(election.Report)
	if r.Roster != nil {
		p.roster = r.Roster
	}
	if p.isForeign(e.heldRoster()) {
		e.meetFormer(from, p)
		e.counters.Dropped["foreign_cluster"]++
		return
	}
	e.foreign.remove(from)
	e.joined(p)
}

// runOf returns the run ID that was sent. If 0 was sent, it is the lineage ID, which is the run ID of the first life.
func runOf(run election.RunID, of election.LineageID) election.RunID {
	return cmp.Or(run, election.RunID(of))
}

// runs reports whether the agent of that holder is connected, in the holder's lineage.
func (e *Elector) runs(h election.Holder) bool {
	p := e.peers.get(h.Peer)
	return p != nil && p.lineage == h.Lineage
}

// reachable reports whether the peer can vote: it is connected, answers, can write, and has the
// present roster. This agent itself always counts as reachable.
func (e *Elector) reachable(id election.PeerID) bool {
	if id == e.cfg.Self.Peer {
		return true
	}
	p := e.peers.get(id)
	return p != nil && e.change.Speaks(&p.Peer) && !e.silent(id) && !e.older(id) && e.now >= p.unwritableUntil && !e.change.Behind(e.now, &p.Peer)
}

func (e *Elector) hasMajority() bool { return quorum.Confirmed(e.roster, e.reachable) }

func (e *Elector) nameOf(id election.PeerID) string {
	if id == e.cfg.Self.Peer {
		return e.cfg.Name
	}
	if m, ok := e.view.Find(id); ok {
		return m.Name
	}
	return string(id)
}

// stamped records an instant of the peer's clock. The last one to arrive counts, not the
// highest, because the clock starts again when the peer's host does.
func (e *Elector) stamped(id election.PeerID, stamp election.Instant) {
	if p := e.peers.get(id); p != nil && stamp != 0 {
		p.stamp, p.stampedAt = stamp, e.now
	}
}

func (e *Elector) send(to election.PeerID, m election.Message) {
	if to == e.cfg.Self.Peer {
		e.own = append(e.own, m)
		return
	}
	if p := e.peers.get(to); p != nil && !e.change.Speaks(&p.Peer) {
		return
	}
	e.counters.Sent[election.Kind(m)]++
	e.out.Send = append(e.out.Send, election.Envelope{To: to, Message: m})
}

func (e *Elector) sendAll(envelopes []election.Envelope) {
	for _, m := range envelopes {
		e.send(m.To, m.Message)
	}
}

func (e *Elector) sendAllConnected(m election.Message) {
	for _, id := range e.peers.keys {
		e.send(id, m)
	}
}

// votes reports whether the peer is a voter by this agent's roster, or by a roster that is being
// written. While this agent has no roster, the one that the peer reported decides.
func (e *Elector) votes(p election.PeerID, reported *election.Roster) bool {
	held := e.heldRoster()
	switch {
	case !e.cfg.Quorum:
		return true
	case e.roster == nil && held == nil:
		return reported.Has(p)
	}
	return e.roster.Has(p) || held.Has(p)
}

func (e *Elector) joined(p *peer) {
	e.parted(e.peers.get(p.id))
	e.heardOf++
	e.peers.put(p.id, p)
	e.dues.add(p)
	if m, is := e.view.Find(p.id); is {
		e.candidates.enlist(m, p)
	}
}

// parted removes a peer, which may be nil.
func (e *Elector) parted(p *peer) {
	if p == nil {
		return
	}
	e.heardOf++
	e.peers.remove(p.id)
	e.dues.remove(p)
	e.noted.remove(p.id)
	if m, is := e.view.Find(p.id); is {
		e.candidates.enlist(m, nil)
	}
}
