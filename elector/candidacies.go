package elector

import (
	"cmp"
	"iter"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// candidacies is in which elections this agent stands, and who has to be told.
//
// Gossip carries the few for which it has room, and carries them slowly. From
// the first one on that gossip does not tell, each peer is told all of them
// directly, again and again until it says that it knows.
type candidacies struct {
	list   []election.Candidacy // sorted; replaced, never changed
	serial uint64
	direct bool // peers are told
	mute   bool // this agent can't lead: it is told with priority 0
}

// set makes this agent stand with that priority, or no more.
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

// told returns what the peers are told. Nobody gives way to who can't write, or
// counts on it.
func (cs *candidacies) told() []election.Candidacy {
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

// tellCandidacies tells each peer that does not know yet in which elections
// this agent stands. One telling is under way to a peer at a time: what changes
// meanwhile goes with the next. It returns when it is to be called next.
func (e *Elector) tellCandidacies() election.Instant {
	if cs := &e.stands; cs.mute == e.writes() {
		cs.mute = !cs.mute
		cs.direct = true // gossip tells them as they were meant
		cs.serial++
	}
	if !e.stands.direct {
		own, gossiped := e.view.Find(e.cfg.Self.Peer)
		e.stands.direct = gossiped && !slices.Equal(own.Candidacies, e.stands.list)
	}
	wake := election.Never
	if !e.stands.direct {
		return wake
	}
	for i, p := range e.peers.rows {
		if p.knows == e.stands.serial || e.foreign(p) {
			continue
		}
		if e.now >= p.tellAt {
			p.tellAt = e.now.Add(e.cfg.Timing.Heartbeat)
			e.send(e.peers.keys[i], election.Candidacies{Boot: e.cfg.Self.Boot, Serial: e.stands.serial, Candidacies: e.stands.told()})
		}
		wake = min(wake, p.tellAt)
	}
	return wake
}

// told learns in which elections a peer stands.
func (e *Elector) told(from election.PeerID, m election.Candidacies) {
	p := e.peers.get(from)
	if p == nil || m.Boot != p.boot {
		e.counters.Dropped["stale_candidacies"]++
		return
	}
	if !p.told || m.Serial > p.serial {
		before := p.candidacies
		if !p.told {
			e.heardOf++ // gossip's word may have differed in any
		}
		p.told, p.serial, p.candidacies = true, m.Serial, m.Candidacies
		for name, stands := range changes(before, m.Candidacies) {
			var c *entry
			if stands {
				c = e.contest(name) // it exists from its first candidate on
			} else {
				c = e.held(name)
			}
			if c != nil {
				c.listing.key = listingKey{}
			}
		}
	}
	e.send(from, election.CandidaciesAck{Boot: m.Boot, Serial: p.serial, By: e.cfg.Self.Boot})
}

// changes walks, in order, the elections in which two sorted lists differ, and
// whether the newer one stands in them.
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

// toldAck takes note of what a peer knows; if that is not the newest, it is
// told again at once.
func (e *Elector) toldAck(from election.PeerID, m election.CandidaciesAck) {
	p := e.peers.get(from)
	if p == nil || m.Boot != e.cfg.Self.Boot || m.By != p.boot {
		e.counters.Dropped["stale_ack"]++
		return
	}
	p.knows, p.tellAt = max(p.knows, m.Serial), e.now
}

// rank returns a member's rank in the election, and whether it stands: by its
// own word, else by gossip's.
func (e *Elector) rank(m election.Member, name election.Name) (election.Rank, bool) {
	return e.peers.get(m.Peer).rank(m, name)
}

func (p *peer) rank(m election.Member, name election.Name) (election.Rank, bool) {
	if p != nil && p.told && p.boot == m.Boot {
		return m.RankIn(name, p.candidacies)
	}
	return m.Rank(name)
}
