package elector

import (
	"crypto/sha256"

	"github.com/doyen-election/doyen/election"
)

// secret is what the lineage of another agent has sent over its authenticated connection: the
// hash of a secret that is revealed once none of its lives acts, and no other will begin (K5).
type secret struct {
	of   election.LineageID
	hash [sha256.Size]byte // zero: the lineage sent none
}

// obituary ends what a lineage leads and what it was promised, if the secret proves that the
// lineage has ended. The message is passed on once: after that the lineage is unknown.
func (e *Elector) obituary(from election.PeerID, m election.Obituary) {
	known := e.secrets.get(m.Peer)
	switch {
	case m.Peer == e.cfg.Self.Peer:
		e.counters.Dropped["obituary_of_itself"]++
		return
	case known.of != m.Lineage || known.hash == [sha256.Size]byte{}:
		e.counters.Dropped["obituary_of_unknown"]++
		return
	case sha256.Sum256(m.Secret[:]) != known.hash:
		e.counters.Dropped["forged_obituary"]++
		return
	}
	dead := election.Holder{Peer: m.Peer, Lineage: m.Lineage}
	e.secrets.remove(m.Peer)
	if e.runs(dead) {
		e.disconnected(m.Peer) // it can't be elected, even if its connection looks open
	}
	for _, id := range e.peers.keys {
		if id != from {
			e.send(id, m)
		}
	}
	if e.cfg.Quorum && e.barred.Code == "" {
		e.voter.Bury(e.now, m)
	}
	e.touchAll()
	for _, c := range e.contests.rows {
		e.carry(c, c.Bury(c, dead))
	}
}

// forgetSecrets drops those of lineages that are not connected and whose end nobody awaits.
func (e *Elector) forgetSecrets() {
	ids := e.secrets.keys
	for i, s := range e.secrets.rows {
		id := ids[i]
		if !e.isConnected(id) && !e.awaited(election.Holder{Peer: id, Lineage: s.of}) {
			e.secrets.remove(id)
		}
	}
}

// awaited reports whether the end of a lineage would end a promise, or a leadership known here.
func (e *Elector) awaited(h election.Holder) bool {
	for _, g := range e.ledger.State().Grants {
		if g.Holder == h && !g.Released {
			return true
		}
	}
	for _, c := range e.contests.rows {
		if c.Leader().Holder == h {
			return true
		}
	}
	return false
}
