package elector

import (
	"container/heap"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// dues has all peers, in the order in which something about each is due, so that no step walks them all. A step
// looks only at those that were stirred: something about them may have changed, or is due.
type dues struct {
	order   dueOrder
	stirred []*peer
}

type dueOrder []*peer // a heap (container/heap)

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

func (d *dues) add(p *peer) {
	heap.Push(&d.order, p)
	d.stir(p)
}

func (d *dues) remove(p *peer) {
	heap.Remove(&d.order, p.place)
	d.stirred = slices.DeleteFunc(d.stirred, func(s *peer) bool { return s == p })
	p.stirred = false
}

func (d *dues) stir(peers ...*peer) {
	for _, p := range peers {
		if !p.stirred {
			p.stirred = true
			d.stirred = append(d.stirred, p)
		}
	}
}

func (d *dues) stirDue(now election.Instant) {
	for len(d.order) > 0 && now >= d.order[0].dueAt {
		p := d.order[0]
		d.stir(p)
		p.dueAt = election.Never
		heap.Fix(&d.order, 0)
	}
}

// attend passes each stirred peer to look, which returns when that peer is due next. attend returns when any peer is.
func (d *dues) attend(look func(*peer) election.Instant) election.Instant {
	for _, p := range d.stirred {
		p.stirred, p.dueAt = false, look(p)
		heap.Fix(&d.order, p.place)
	}
	d.stirred = d.stirred[:0]
	if len(d.order) == 0 {
		return election.Never
	}
	return d.order[0].dueAt
}
