package quorum

import (
	"maps"
	"slices"

	"github.com/doyen-election/doyen/election"
)

// A search of all orders of events copies these values, and compares them by their
// outlooks: all that matters to what they do from now on, in a form to print, under one
// roster. In an outlook instants count from now, deadlines that have passed are 0, and
// changes of the state count from the newest one that is durable.

// Clone returns a copy that shares nothing that changes.
func (l *Lease) Clone() *Lease {
	n := *l
	n.sends = maps.Clone(l.sends)
	return &n
}

func (l *Lease) Outlook(now election.Instant) any {
	n := l.Clone()
	n.roster, n.won = nil, nil
	election.CountFrom(now, 0, &n.earned)
	for id, at := range n.sends {
		election.CountFrom(now, -2*l.length, &at)
		n.sends[id] = at
	}
	return *n
}

// Clone returns a copy that shares nothing that changes.
func (s *Sends) Clone() *Sends {
	n := *s
	n.log = slices.Clip(s.log) // what is in it never changes
	return &n
}

// Clone returns a copy that shares nothing that changes.
func (l *Ledger) Clone() *Ledger {
	n := *l
	n.state, n.unsent = l.state.Clone(), slices.Clone(l.unsent)
	return &n
}

// Outlook leaves messages to plain, and the disk's failures out.
func (l *Ledger) Outlook(plain func(to election.PeerID, m election.Message) election.Message) []any {
	outlook := []any{l.state.Grants, l.ahead(l.generation), l.ahead(l.urgent), l.ahead(l.writing), l.barred}
	for _, u := range l.unsent {
		outlook = append(outlook, l.ahead(u.generation), u.To, plain(u.To, u.Message))
	}
	return outlook
}

func (l *Ledger) ahead(generation uint64) uint64 { return max(generation, l.durable) - l.durable }

// Clone returns a copy that shares nothing that changes, with that copy of the ledger.
func (v *Voter) Clone(l *Ledger) *Voter {
	n := *v
	n.ledger, n.promises, n.writing, n.waiting = l, maps.Clone(v.promises), maps.Clone(v.writing), maps.Clone(v.waiting)
	for e, waiting := range n.waiting {
		n.waiting[e] = slices.Clone(waiting)
	}
	return &n
}

// Outlook leaves messages to plain.
func (v *Voter) Outlook(now election.Instant, plain func(from election.PeerID, m election.Message) election.Message) any {
	n := v.Clone(nil)
	n.cfg, n.roster, n.keeping, n.granted, n.refused = VoterConfig{}, nil, nil, 0, 0
	n.adopting = v.ledger.ahead(v.adopting)
	for e, p := range n.promises {
		election.CountFrom(now, 0, &p.until)
		n.promises[e] = p
	}
	for e, generation := range n.writing {
		n.writing[e] = v.ledger.ahead(generation)
	}
	for _, waiting := range n.waiting {
		for i, r := range waiting {
			election.CountFrom(now, -2*v.cfg.Lease, &waiting[i].at)
			waiting[i].message = plain(r.from, r.message)
		}
	}
	return *n
}

// Clone returns a copy that shares nothing that changes.
func (d *Driver) Clone() *Driver {
	n := *d
	n.accepted, n.refused, n.reported = maps.Clone(d.accepted), maps.Clone(d.refused), maps.Clone(d.reported)
	return &n
}
