package elector

import (
	"fmt"
	"strings"

	"github.com/doyen-election/doyen/codec"
	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/failuredetector"
	"github.com/doyen-election/doyen/quorum"
)

// peer is what this agent knows of another, by direct contact.
type peer struct {
	connected bool
	boot      election.BootID
	reported  bool             // its Report arrived since it connected
	voter     bool             // and said that it is a voter
	cluster   string           // the one it said it belongs to
	stamp     election.Instant // the newest instant of its clock it sent, echoed to it
	stampedAt election.Instant // when that came
	stale     bool             // the last echo was too old to serve it
	// unwritableUntil is for how long a voter that said it can't write its
	// promises is believed, and not asked.
	unwritableUntil election.Instant
	beats           *failuredetector.Detector // of a leader's heartbeats; nil if it leads nothing
	owesSince       election.Instant          // of the oldest thing it should have answered; 0: nothing
	probeAt         election.Instant          // it is asked for a word again then, if it owes one
}

func (e *Elector) connected(in election.PeerConnected) {
	if in.Peer == e.cfg.Self.Peer {
		return
	}
	e.peers.put(in.Peer, &peer{connected: true, boot: in.Boot, probeAt: e.now.Add(e.cfg.Timing.Heartbeat)})
	e.send(in.Peer, e.report(0))
}

// disconnected forgets what only the connection vouched for. The peer's
// promises and leases are untouched: a closed connection starts selection, it
// shortens no promise (H7).
func (e *Elector) disconnected(id election.PeerID) {
	e.peers.remove(id)
}

func (e *Elector) isConnected(id election.PeerID) bool {
	p := e.peers.get(id)
	return p != nil && p.connected && !e.foreign(p)
}

// foreign reports whether the peer belongs to another cluster.
func (e *Elector) foreign(p *peer) bool {
	return e.roster != nil && p.cluster != "" && p.cluster != e.roster.Cluster
}

// runs reports whether that very boot of the peer is connected.
func (e *Elector) runs(h election.Holder) bool {
	return e.isConnected(h.Peer) && e.peers.get(h.Peer).boot == h.Boot
}

// reachable reports whether the peer's vote can be had: it is connected, answers
// and can write. This agent always counts.
func (e *Elector) reachable(id election.PeerID) bool {
	return id == e.cfg.Self.Peer || e.isConnected(id) && !e.silent(id) && e.now >= e.peers.get(id).unwritableUntil
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
// the highest, since its clock starts anew when its host does.
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
	for _, id := range e.connectedPeers() {
		e.send(id, m)
	}
}

func (e *Elector) connectedPeers() []election.PeerID {
	ids := make([]election.PeerID, 0, len(e.peers.keys))
	for i, p := range e.peers.rows {
		if p.connected && !e.foreign(p) {
			ids = append(ids, e.peers.keys[i])
		}
	}
	return ids
}

// report is what this agent's voter has on record.
func (e *Elector) report(id uint64) election.Report {
	r := election.Report{ID: id, Roster: e.roster, Stamp: e.now}
	if e.roster.Has(e.cfg.Self.Peer) {
		r.Voter = true
		r.Standings = e.voter.Standings(e.now)
		r.Standings = r.Standings[:min(len(r.Standings), maxContests)] // of a state written before there was a limit
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
		p.cluster = r.Roster.Cluster
	}
	if e.foreign(p) {
		e.counters.Dropped["foreign_cluster"]++
		return
	}
	first := !p.reported
	p.reported, p.voter = true, r.Voter
	e.stamped(from, r.Stamp)
	e.learnRoster(r.Roster)
	for _, s := range r.Standings {
		e.noteStanding(from, s)
	}
	if first && e.leadsAny() {
		e.beatTo(from, e.claims())
	}
	e.answered(from, r)
}

// noteStanding learns a term and perhaps a leader that has not been heard yet.
func (e *Elector) noteStanding(from election.PeerID, s election.Standing) {
	c := e.contest(s.Election)
	if c == nil {
		return
	}
	c.highest = max(c.highest, s.Term)
	if s.Remaining <= 0 || s.Holder == e.cfg.Self || s.Term < c.rumour.term {
		return
	}
	wait := min(s.Remaining, 2*e.cfg.Timing.Heartbeat)
	c.rumour = rumour{holder: s.Holder, term: s.Term, heedUntil: e.now.Add(wait),
		promiseEnd: max(c.rumour.promiseEnd, e.now.Add(min(s.Remaining, quorum.Outlast(e.cfg.Timing.Lease, e.cfg.Drift))))}
}

// learnRoster takes over a newer roster told by a peer.
func (e *Elector) learnRoster(r *election.Roster) {
	if r == nil || !e.cfg.Quorum {
		return
	}
	e.formation.Learn(e.now, r)
}

// informWait is for how many heartbeats an agent without quorum waits to be told
// of a leader.
const informWait = 3

// informed reports whether enough voters told what they have on record to know
// that nobody leads.
func (e *Elector) informed() bool {
	told := func(id election.PeerID) bool {
		return id == e.cfg.Self.Peer || e.isConnected(id) && e.peers.get(id).reported
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

func (e *Elector) describeForeign() string {
	for i, p := range e.peers.rows {
		if e.foreign(p) {
			return fmt.Sprintf("%s belongs to another cluster (%s; this agent's is %s): give one of the two another --cluster name, or wipe the data dir of the one that should join",
				e.nameOf(e.peers.keys[i]), p.cluster, e.roster.Cluster)
		}
	}
	return ""
}

// describeUnwritable names the voters that said they can't write.
func (e *Elector) describeUnwritable() string {
	var names []string
	for i, p := range e.peers.rows {
		if e.now < p.unwritableUntil {
			names = append(names, e.nameOf(e.peers.keys[i]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + " can't write promises, so no vote can be had there: free or mend the disk of the data dir on that host"
}
