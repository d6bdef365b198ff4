package elector

import (
	"container/heap"

	"github.com/doyen-election/doyen/election"
)

// No step walks all peers. A step looks at the peers that were stirred: something about them may have changed, or
// is due. All peers are stirred when something changes on which all depend, such as the view or the roster.

// dueOrder has all peers, the one that is due next first. It is a heap (container/heap).
type dueOrder []*peer

func (d dueOrder) Len() int           { return len(d) }
func (d dueOrder) Less(i, j int) bool { return d[i].dueAt < d[j].dueAt }
func (d dueOrder) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

func (d *dueOrder) Push(p any) {
	p.(*peer).place = len(*d)
	*d = append(*d, p.(*peer))
}

func (d *dueOrder) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// joined adds a peer of this cluster.
func (e *Elector) joined(p *peer) {
	e.parted(p.id)
	e.heardOf++
	e.peers.put(p.id, p)
	heap.Push(&e.dues, p)
	e.stir(p)
	if m, is := e.view.Find(p.id); is {
		e.enlist(m)
	}
}

// parted removes a peer, if it is there.
func (e *Elector) parted(id election.PeerID) {
	p := e.peers.get(id)
	if p == nil {
		return
	}
	e.heardOf++
	e.peers.remove(id)
	heap.Remove(&e.dues, p.place)
	if m, is := e.view.Find(id); is {
		e.enlist(m)
	}
}

func (e *Elector) stir(p *peer) {
	if !p.stirred {
		p.stirred = true
		e.stirred = append(e.stirred, p)
	}
}

func (e *Elector) stirAll() {
	for _, p := range e.peers.rows {
		e.stir(p)
	}
}

// stirDue stirs the peers that are due, or all if this agent's messages now need another feature level.
func (e *Elector) stirDue() {
	for len(e.dues) > 0 && e.now >= e.dues[0].dueAt {
		p := e.dues[0]
		e.stir(p)
		p.dueAt = election.Never
		heap.Fix(&e.dues, 0)
	}
	if level := e.change.Level(); level != e.level {
		e.level = level
		e.stirAll()
	}
}

// attend probes the stirred peers, and finds out when each is next due. It returns when the first one is.
func (e *Elector) attend() election.Instant {
	for _, p := range e.stirred {
		p.stirred = false
		if e.peers.get(p.id) != p {
			continue
		}
		e.probe(p)
		e.note(p)
		p.dueAt = e.dueAt(p)
		heap.Fix(&e.dues, p.place)
	}
	e.stirred = e.stirred[:0]
	if len(e.dues) == 0 {
		return election.Never
	}
	return e.dues[0].dueAt
}

// dueAt is when a peer is to be looked at again if nothing about it changes.
func (e *Elector) dueAt(p *peer) election.Instant {
	due := p.probeDue(e.cfg.Lease)
	for _, at := range []election.Instant{p.unwritableUntil, p.silentFrom(e.cfg.Lease)} { // then it may be able to write, or can't be elected
		if at > e.now {
			due = min(due, at)
		}
	}
	if e.stands.lacking(p) {
		due = min(due, p.sendAt)
	}
	return due
}
