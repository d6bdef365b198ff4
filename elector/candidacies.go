package elector

import (
	"cmp"
	"iter"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// candidacies are those of this agent. They are sent to each peer as soon as it is connected,
// and again until the peer acknowledges them.
type candidacies struct {
	list   []election.Candidacy // sorted; replaced, never changed
	serial uint64
	mute   bool // this agent can't lead: its candidacies are sent with priority 0
}

// set starts or ends a candidacy, or changes its priority.
func (cs *candidacies) set(name election.Name, stands bool, priority int) {
	i, stood := cs.find(name)
	next := slices.Clone(cs.list)
	switch {
	case stands && stood && next[i].Priority == priority, !stands && !stood:
		return
	case stands && stood:
		next[i].Priority = priority
	case stands:
		next = slices.Insert(next, i, election.Candidacy{Election: name, Priority: priority})
	default:
		next = slices.Delete(next, i, i+1)
	}
	cs.list = next
	cs.serial++
}

// sent is the candidacies to send to peers, which must not wait for an agent that can't write or runs late.
func (cs *candidacies) sent() []election.Candidacy {
	if !cs.mute {
		return cs.list
	}
	list := slices.Clone(cs.list)
	for i := range list {
		list[i].Priority = 0
	}
	return list
}

func (cs *candidacies) find(name election.Name) (int, bool) {
	return slices.BinarySearchFunc(cs.list, name, func(c election.Candidacy, n election.Name) int {
		return cmp.Compare(c.Election, n)
	})
}

// sendCandidacies sends the candidacies to each peer that does not know them, one message at a
// time: later changes go with the next message. It returns when it is due next.
func (e *Elector) sendCandidacies() election.Instant {
	if cs := &e.stands; cs.mute != (!e.writes() || e.doubts()) {
		cs.mute = !cs.mute
		cs.serial++
	}
	wake := election.Never
	for i, p := range e.peers.rows {
		if p.knows == e.stands.serial {
			continue
		}
		if e.now >= p.sendAt {
			p.sendAt = e.now.Add(e.cfg.Heartbeat)
			e.send(e.peers.keys[i], election.Candidacies{Lineage: e.cfg.Self.Lineage, Serial: e.stands.serial, Candidacies: e.stands.sent()})
		}
		wake = min(wake, p.sendAt)
	}
	return wake
}

func (e *Elector) candidaciesOf(from election.PeerID, m election.Candidacies) {
	p := e.peers.get(from)
	if p == nil || m.Lineage != p.lineage {
		e.counters.Dropped["stale_candidacies"]++
		return
	}
	if !p.listed || m.Serial > p.serial {
		before := p.candidacies
		if !p.listed {
			e.heardOf++ // gossip may have shown its candidacies differently
		}
		p.listed, p.serial, p.candidacies = true, m.Serial, m.Candidacies
		for name, stands := range changes(before, m.Candidacies) {
			c := e.held(name)
			if stands {
				c = e.contest(name) // an election exists from its first candidate
			}
			if c != nil {
				c.listing.key = listingKey{}
			}
		}
	}
	e.send(from, election.CandidaciesAck{Lineage: m.Lineage, Serial: p.serial, By: e.cfg.Self.Lineage, Run: e.cfg.Run})
}

// changes walks the elections in which two sorted lists differ, with whether the newer has them.
func changes(before, now []election.Candidacy) iter.Seq2[election.Name, bool] {
	return func(yield func(election.Name, bool) bool) {
		for len(before) > 0 || len(now) > 0 {
			switch {
			case len(now) == 0 || len(before) > 0 && before[0].Election < now[0].Election:
				if !yield(before[0].Election, false) {
					return
				}
				before = before[1:]
			case len(before) > 0 && before[0] == now[0]:
				before, now = before[1:], now[1:]
			default:
				if !yield(now[0].Election, true) {
					return
				}
				if len(before) > 0 && before[0].Election == now[0].Election {
					before = before[1:]
				}
				now = now[1:]
			}
		}
	}
}

// candidaciesAck records what a peer knows. Newer candidacies are then due at once.
func (e *Elector) candidaciesAck(from election.PeerID, m election.CandidaciesAck) {
	p := e.peers.get(from)
	if p == nil || m.Lineage != e.cfg.Self.Lineage || m.By != p.lineage || runOf(m.Run, m.By) != p.run {
		e.counters.Dropped["stale_ack"]++
		return
	}
	p.knows, p.sendAt = max(p.knows, m.Serial), e.now
}

// rank returns a candidate's rank, as it reported or, of agents up to 0.3.0, as gossip shows it.
func (e *Elector) rank(m election.Member, name election.Name) (election.Rank, bool) {
	return e.peers.get(m.Peer).rank(m, name)
}

func (p *peer) rank(m election.Member, name election.Name) (election.Rank, bool) {
	if p != nil && p.listed && p.lineage == m.Lineage {
		return m.RankIn(name, p.candidacies)
	}
	return m.Rank(name)
}
