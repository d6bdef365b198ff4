package elector

import (
	"slices"

	"github.com/doyen-election/doyen/election"
)

// Who can be elected is read at every step, in every election, and changes
// seldom: it is kept, with the facts it was made from.

// facts is what who can be elected depends on in all elections alike. The
// generation rises when they change.
type facts struct {
	generation uint64
	heard      uint64 // counts views and candidacies
	able       []election.PeerID
	own        ownFacts
	majority   bool
}

type ownFacts struct{ draining, stopping, failing, rosterless, majority bool }

// renew compares the facts with those of the last time.
func (f *facts) renew(e *Elector) uint64 {
	f.majority = e.hasMajority()
	own := ownFacts{e.draining, e.stopping, e.ledger.Failing(), e.roster == nil, f.majority}
	changed := own != f.own || f.heard != e.heardOf
	n := 0
	for _, m := range e.view.Members {
		if !e.able(m, e.peers.get(m.Peer)) {
			continue
		}
		if n == len(f.able) || f.able[n] != m.Peer {
			changed = true
			f.able = append(f.able[:n], m.Peer)
		}
		n++
	}
	if n != len(f.able) {
		changed, f.able = true, f.able[:n]
	}
	if changed {
		f.generation++
	}
	f.own, f.heard = own, e.heardOf
	return f.generation
}

// listing is who stands in one election.
type listing struct {
	number     uint64 // how often it was made
	key        listingKey
	fleeting   bool              // it may change with time alone
	candidates []election.PeerID // that can be elected, best first; replaced, never changed
	able       bool              // there is one
	stood      bool              // somebody stands, able or not
}

// listingKey is what it depends on besides time.
type listingKey struct {
	facts    uint64
	role     role
	standing bool
	priority int
	leader   election.Holder
}

func (l *listing) renew(e *Elector, c *contest, facts uint64) {
	key := listingKey{facts, c.role, c.standing, c.priority, c.leader.holder}
	if key == l.key && !l.fleeting && e.now >= c.standDownUntil && len(c.standDowns) == 0 {
		return
	}
	l.number++
	f := e.field(c)
	l.key, l.able, l.candidates = key, len(f.Ranks) > 0, make([]election.PeerID, 0, len(f.Ranks)+1)
	for _, r := range f.Ranks {
		l.candidates = append(l.candidates, r.Peer)
	}
	if m, ok := e.view.Find(c.leader.holder.Peer); ok && !slices.Contains(l.candidates, m.Peer) && e.runs(c.leader.holder) {
		if r, stands := e.rank(m, c.name); stands {
			l.candidates = append(l.candidates, r.Peer)
		}
	}
	l.stood = c.standing
	for _, m := range e.view.Members {
		_, stands := e.rank(m, c.name)
		l.stood = l.stood || stands
	}
	l.fleeting = e.now < c.standDownUntil || len(c.standDowns) > 0
}
