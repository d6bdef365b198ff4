package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// candidacies are the candidacies of this agent. Each peer gets them when it connects, and again
// until it acknowledges them.
type candidacies struct {
	list   []election.Candidacy // sorted; the slice is replaced, never changed
	serial uint64               // counts changes and connections
	newest uint64               // the serial of the last change
	shown  uint64               // the value of newest when all peers were last looked at
	mute   bool                 // this agent can't write or runs late: its candidacies are sent with priority 0
}

func (cs *candidacies) set(stands bool, c election.Candidacy) {
	i, stood := election.FindCandidacy(cs.list, c.Election)
	if stood == stands && (!stands || cs.list[i] == c) {
		return
	}
	cs.list = slices.DeleteFunc(slices.Clone(cs.list), func(k election.Candidacy) bool { return k.Election == c.Election })
	if stands {
		cs.list = slices.Insert(cs.list, i, c)
	}
	cs.changed()
}

func (cs *candidacies) changed() {
	cs.serial++
	cs.newest = cs.serial
}

// connected returns the first serial whose acknowledgement counts for a peer that connects now. If a lower serial is
// acknowledged, that message may be late, and the peer may have forgotten the candidacies since it sent it.
func (cs *candidacies) connected() uint64 {
	if cs.newest > 0 {
		cs.serial++
	}
	return cs.serial
}

const maxMetas = 64 << 10 // bytes of all metas in one message, so that the message stays far below its size limit

// sent is the candidacies as peers get them: with priority 0 while this agent can't write or runs late, and
// without the metas that do not fit.
func (cs *candidacies) sent() []election.Candidacy {
	list, room := slices.Clone(cs.list), maxMetas
	for i := range list {
		if cs.mute {
			list[i].Priority = 0
		}
		if room -= len(list[i].Meta); room < 0 {
			list[i].Meta = ""
		}
	}
	return list
}

func (cs *candidacies) lacking(p *peer) bool { return p.knows < max(p.since, cs.newest) }

// sendCandidacies sends the candidacies to each peer that does not know them, one message at a time: later
// changes go with the next message.
func (e *Elector) sendCandidacies() {
	cs := &e.stands
	if cs.mute != (!e.writes() || e.doubts()) {
		cs.mute = !cs.mute
		cs.changed()
	}
	if cs.newest != cs.shown {
		cs.shown = cs.newest
		e.dues.stir(e.peers.rows...)
	}
	for _, p := range e.dues.stirred {
		if e.now >= p.sendAt && cs.lacking(p) {
			p.sendAt = e.now.Add(e.cfg.Heartbeat)
			e.send(p.id, election.Candidacies{Lineage: e.cfg.Self.Lineage, Serial: cs.serial, Candidacies: cs.sent()})
		}
	}
}

func (e *Elector) candidaciesOf(from election.PeerID, m election.Candidacies) {
	p := e.peers.get(from)
	if p == nil || m.Lineage != p.lineage {
		e.counters.Dropped["stale_candidacies"]++
		return
	}
	if !p.listed || m.Serial > p.serial {
		if !p.listed {
			e.heardOf++ // gossip may have shown other candidacies of this peer
		}
		added, ended := missing(m.Candidacies, p.candidacies), missing(p.candidacies, m.Candidacies)
		p.listed, p.serial, p.candidacies = true, m.Serial, m.Candidacies
		if m, is := e.view.Find(from); is {
			e.candidates.enlist(m, p)
		}
		for _, changed := range added {
			e.contest(changed.Election) // an election exists from its first candidate on
		}
		for _, changed := range append(added, ended...) {
			if c := e.held(changed.Election); c != nil {
				c.listing.key = listingKey{}
			}
		}
	}
	e.send(from, election.CandidaciesAck{Lineage: m.Lineage, Serial: p.serial, By: e.cfg.Self.Lineage, Run: e.cfg.Run})
}

// candidaciesAck records which candidacies a peer knows. If there are newer ones, they are due at once.
func (e *Elector) candidaciesAck(from election.PeerID, m election.CandidaciesAck) {
	p := e.peers.get(from)
	if p == nil || m.Lineage != e.cfg.Self.Lineage || m.By != p.lineage || runOf(m.Run, m.By) != p.run {
		e.counters.Dropped["stale_ack"]++
		return
	}
	p.knows, p.sendAt = max(p.knows, m.Serial), e.now
}

// meta returns what the leader's program reports about itself; empty: nothing, or this agent does not know it.
func (c *entry) meta(leader election.Holder) string {
	var list []election.Candidacy
	if leader == c.e.cfg.Self {
		list = c.e.stands.list
	} else if c.e.runs(leader) {
		list = c.e.peers.get(leader.Peer).candidacies
	}
	if i, stands := election.FindCandidacy(list, c.Name()); stands {
		return list[i].Meta
	}
	return ""
}
