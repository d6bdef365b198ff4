package elector

import (
	"cmp"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
	"github.com/doyen-election/doyen/quorum"
	"github.com/doyen-election/doyen/roster"
)

// peer is what this agent knows of another one by direct contact.
type peer struct {
	roster.Peer
	lineage  election.LineageID
	run      election.RunID
	leaving  bool                // the agent is stopping
	reportAt election.Instant    // when its Report is asked for next
	roster   *election.Roster    // as it last reported
	early    *election.Heartbeat // the newest one that came before its Report; nil: none

	stamp     election.Instant // the newest instant of its clock that it sent; heartbeats echo it
	stampedAt election.Instant // when the stamp came
	stale     bool             // the last echo was too old to be of use to the peer

	unwritableUntil election.Instant          // a voter that can't write its promises is not counted until then
	beats           *failuredetector.Detector // of a leader's heartbeats; nil if it leads nothing
	heardAt         election.Instant          // when its last message came, or it connected
	unansweredSince election.Instant          // when the oldest message was sent that it has not answered; Never: there is none
	redialAt        election.Instant          // until then its connection is not made again
	probeAt         election.Instant          // when the next Inquiry is sent if it is silent
	probes          int                       // Inquiries since its last Report
	cleared         bool                      // gossip suspected it when it connected, and still does: of what was before

	listed      bool                 // it has sent its candidacies itself
	serial      uint64               // the number of the message with its candidacies
	candidacies []election.Candidacy // sorted
	since       uint64               // what it acknowledged before this serial counts for nothing
	knows       uint64               // the newest serial of this agent's candidacies that it has acknowledged
	sendAt      election.Instant     // when they are sent to it next, unless it knows them
}

func (e *Elector) connected(in election.PeerConnected) {
	if in.Peer == e.cfg.Self.Peer {
		return
	}
	e.heardOf++
	e.foreign.remove(in.Peer)
	m, _ := e.view.Find(in.Peer)
	e.peers.put(in.Peer, &peer{lineage: in.Lineage, run: runOf(in.Run, in.Lineage), since: e.stands.connected(),
		Peer: roster.Peer{Level: in.Level, Beat: in.Heartbeat}, heardAt: e.now, unansweredSince: election.Never,
		probeAt: e.now.Add(e.cfg.Heartbeat), cleared: m.Suspected})
	e.sendCandidacies() // before the Report, with which the peer may begin a round
	own := e.report(0, "")
	own.Known = e.progress.get(in.Peer).writes
	e.send(in.Peer, own)
	for _, c := range e.contests.rows {
		e.carry(c, c.Reconnected(c, in.Peer))
	}
}

// viewed takes the newest view of gossip.
func (e *Elector) viewed(v election.View) {
	e.view = v
	e.heardOf++
	for _, m := range v.Members {
		if p := e.peers.get(m.Peer); p != nil && !m.Suspected {
			p.cleared = false
		}
	}
}

// disconnected forgets the peer. That may start a selection, but shortens no promise (H7).
func (e *Elector) disconnected(id election.PeerID) {
	e.heardOf++
	e.peers.remove(id)
	e.foreign.remove(id)
	e.voter.Disconnected(id)
	e.cancelReport(id)
}

// heldRoster is the roster in memory, perhaps not yet durable.
func (e *Elector) heldRoster() *election.Roster { return e.ledger.State().Roster }

func (e *Elector) isForeign(p *peer) bool {
	held := e.heldRoster()
	return held != nil && p.roster != nil && p.roster.Cluster != held.Cluster
}

// setForeignApart moves foreign peers out of the table of peers. They may have reported their
// rosters before this agent received its own.
func (e *Elector) setForeignApart() {
	ids := e.peers.keys
	for i, p := range e.peers.rows {
		if id := ids[i]; e.isForeign(p) {
			e.peers.remove(id)
			e.foreign.put(id, p)
		}
	}
}

// heardForeign handles a message of a foreign peer, which may have changed its cluster.
func (e *Elector) heardForeign(from election.PeerID, p *peer, m election.Message) {
	r, _ := m.(election.Report)
	if r.Roster != nil {
		p.roster = r.Roster
	}
	if e.isForeign(p) {
		e.meetFormer(from, p)
		e.counters.Dropped["foreign_cluster"]++
		return
	}
	e.foreign.remove(from)
	e.peers.put(from, p)
}

// runOf returns the run ID that was sent; 0 is the first life's, whose run ID names the lineage.
func runOf(run election.RunID, of election.LineageID) election.RunID {
	return cmp.Or(run, election.RunID(of))
}

// runs reports whether a life of that holder is connected.
func (e *Elector) runs(h election.Holder) bool {
	p := e.peers.get(h.Peer)
	return p != nil && p.lineage == h.Lineage
}

// reachable reports whether the peer can vote: it is connected, answers, can write, and
// holds the present roster. This agent always counts.
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

// stamped records an instant of the peer's clock. The last to arrive counts, not the highest:
// the clock starts again when the peer's host does.
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

// votes reports whether the peer is a voter by this agent's roster, also by one that is being
// written. While this agent has no roster, the peer's own counts.
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
