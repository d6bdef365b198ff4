package elector

import (
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
	"github.com/doyen-election/doyen/internal/codec"
	"github.com/doyen-election/doyen/quorum"
)

// peer is what this agent knows of another, by direct contact.
type peer struct {
	leaving  bool // its agent stops
	boot     election.BootID
	reported bool             // its Report arrived since it connected
	holds    election.Version // of the roster it was last known to hold
	doubted  doubted          // its newest roster that was not taken over
	// differsSince is since when it is to vote and holds a roster with which it can't;
	// 0: it does not. It is told of the present one again at bringUpAt.
	differsSince, bringUpAt election.Instant
	cluster                 string           // the one it said it belongs to
	reportAt                election.Instant // it is asked for its Report again then
	stamp                   election.Instant // the newest instant of its clock it sent, echoed to it
	stampedAt               election.Instant // when that came
	stale                   bool             // the last echo was too old to serve it
	tells                   *election.Roster // that it last reported
	// unwritableUntil is for how long a voter that said it can't write its
	// promises is believed, and not asked.
	unwritableUntil election.Instant
	beats           *failuredetector.Detector // of a leader's heartbeats; nil if it leads nothing
	heardAt         election.Instant          // when its last message came; at first, when it connected
	unansweredSince election.Instant          // the oldest message that it has not answered; 0: none
	redialAt        election.Instant          // its connection is not made again before
	probeAt         election.Instant          // it is asked for an answer then, if it is silent
	probes          int                       // how often it was, since its last Report

	told        bool                 // it said itself in which elections it stands:
	serial      uint64               // of what it said
	candidacies []election.Candidacy // sorted; if told
	knows       uint64               // the serial of this agent's candidacies that it knows
	tellAt      election.Instant     // it is told again then, if it does not know
}

func (e *Elector) connected(in election.PeerConnected) {
	if in.Peer == e.cfg.Self.Peer {
		return
	}
	e.heardOf++
	e.foreign.remove(in.Peer)
	e.peers.put(in.Peer, &peer{boot: in.Boot, heardAt: e.now, probeAt: e.now.Add(e.cfg.Timing.Heartbeat)})
	own := e.report(0, "")
	own.Known = e.progress.get(in.Peer).writes
	e.send(in.Peer, own)
	for _, c := range e.contests.rows {
		e.carry(c, c.Reconnected(c, in.Peer))
	}
}

// disconnected forgets what only the connection vouched for. The peer's
// promises and leases are untouched: a closed connection starts selection, it
// shortens no promise (H7).
func (e *Elector) disconnected(id election.PeerID) {
	e.heardOf++
	e.peers.remove(id)
	e.foreign.remove(id)
	e.voter.Disconnected(id)
	e.cancelReport(id)
}

func (e *Elector) isConnected(id election.PeerID) bool { return e.peers.get(id) != nil }

// heldRoster is the roster of the cluster this agent belongs to, also one that is
// being written: a disk may take long, and nobody of another cluster counts meanwhile.
func (e *Elector) heldRoster() *election.Roster { return e.ledger.State().Roster }

// isForeign reports whether the peer belongs to another cluster.
func (e *Elector) isForeign(p *peer) bool {
	held := e.heldRoster()
	return held != nil && p.cluster != "" && p.cluster != held.Cluster
}

// setForeignApart takes those of another cluster out of the table of peers: this
// agent may have come to a cluster of its own since they reported theirs.
func (e *Elector) setForeignApart() {
	ids := e.peers.keys
	for i, p := range e.peers.rows {
		if id := ids[i]; e.isForeign(p) {
			e.peers.remove(id)
			e.foreign.put(id, p)
		}
	}
}

// heardForeign takes a message of a peer of another cluster. Only a Report counts: it
// may have left that cluster.
func (e *Elector) heardForeign(from election.PeerID, p *peer, m election.Message) {
	r, _ := m.(election.Report)
	if r.Roster != nil {
		p.cluster, p.tells = r.Roster.Cluster, r.Roster
	}
	if e.isForeign(p) {
		e.meetFormer(from, p)
		e.counters.Dropped["foreign_cluster"]++
		return
	}
	e.foreign.remove(from)
	e.peers.put(from, p)
}

// runs reports whether that very boot of the peer is connected.
func (e *Elector) runs(h election.Holder) bool {
	return e.isConnected(h.Peer) && e.peers.get(h.Peer).boot == h.Boot
}

// reachable reports whether the peer's vote can be had: it is connected, answers,
// can write, and goes by the present roster. This agent always counts.
func (e *Elector) reachable(id election.PeerID) bool {
	if id == e.cfg.Self.Peer {
		return true
	}
	p := e.peers.get(id)
	return e.isConnected(id) && !e.silent(id) && !e.older(id) && e.now >= p.unwritableUntil && !e.behind(p)
}

// hasMajority reports whether a majority of the voters can be reached.
func (e *Elector) hasMajority() bool {
	return e.roster != nil && quorum.Confirmed(e.roster, e.reachable)
}

func (e *Elector) reachableNamed(name string) (election.PeerID, bool) {
	m, ok := e.view.Named(name)
	return m.Peer, ok && e.isConnected(m.Peer)
}

func (e *Elector) nameOf(id election.PeerID) string {
	if id == e.cfg.Self.Peer {
		return e.cfg.Name
	}
	if m, ok := e.view.Find(id); ok {
		return m.Name
	}
	return string(id)
}

// stamped takes note of an instant of the peer's clock: the newest to arrive, not
// the highest, since its clock starts again when its host does.
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
	e.counters.Sent[codec.Kind(m)]++
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
