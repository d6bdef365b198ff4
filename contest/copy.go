package contest

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Clone returns a copy that shares nothing that changes, with that copy of the selection.
func (c *Contest) Clone(s Selection) *Contest {
	n := *c
	n.selection, n.asked.spans, n.standDowns = s, slices.Clone(c.asked.spans), maps.Clone(c.standDowns)
	if c.held != nil {
		h := *c.held
		h.disputed = maps.Clone(h.disputed)
		if h.lease != nil {
			h.lease = h.lease.Clone()
		}
		if h.leaving != nil {
			d := *h.leaving
			h.leaving = &d
		}
		n.held = &h
	}
	if c.bid != nil {
		b := *c.bid
		b.lease, b.refused = b.lease.Clone(), maps.Clone(b.refused)
		n.bid = &b
	}
	return &n
}

// Outlook is all that matters to what the contest does from now on, in a form to print,
// besides its configuration, its selection and preemption: two with equal outlooks do
// the same. Instants count from now, and deadlines that have passed are 0.
func (c *Contest) Outlook(now election.Instant) []any {
	ahead := func(deadlines ...*election.Instant) { election.CountFrom(now, 0, deadlines...) }
	ago := func(since ...*election.Instant) { election.CountFrom(now, -2*c.cfg.Lease, since...) }
	n := c.Clone(nil)
	held, bid := n.held, n.bid
	n.cfg, n.held, n.bid, n.rival = nil, nil, nil, rival{}
	n.leader.rank, n.leader.Heard = election.Rank{}, 0
	ahead(&n.leader.Until, &n.rumour.heedUntil, &n.rumour.promiseEnd, &n.notBefore, &n.standDownUntil)
	ago(&n.vacantSince, &n.gone.at)
	for id, until := range n.standDowns {
		ahead(&until)
		n.standDowns[id] = until
	}
	outlook := []any{*n}
	if held != nil {
		for id, since := range held.disputed {
			ago(&since)
			held.disputed[id] = since
		}
		if d := held.leaving; d != nil {
			ahead(&d.stopBy)
			outlook = append(outlook, *d)
		}
		if held.lease != nil {
			outlook = append(outlook, held.lease.Outlook(now))
		}
		held.firstBeat, held.lease, held.leaving = min(held.firstBeat, 1), nil, nil
		outlook = append(outlook, *held)
	}
	if bid != nil {
		outlook = append(outlook, bid.lease.Outlook(now))
		ahead(&bid.deadline, &bid.resendAt)
		bid.lease = nil
		outlook = append(outlook, *bid)
	}
	return outlook
}
