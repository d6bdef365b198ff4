package elector

import (
	"slices"

	"github.com/doyen-election/doyen/contest"
	"github.com/doyen-election/doyen/election"
)

// The candidates of each election are read at every step, and rarely change. So each list is
// kept with the facts from which it was made, and is made again only when those differ.

// facts are what the candidates of all elections depend on.
type facts struct {
	generation uint64 // counts the changes
	heard      uint64 // Elector.heardOf at the last comparison
	own        ownFacts
	level      uint64 // the feature level that a peer needs
}

type ownFacts struct{ draining, stopping, failing, late, rosterless, majority bool }

func (f *facts) renew(e *Elector) uint64 {
	own := ownFacts{e.draining, e.stopping, !e.writes(), e.doubts(), e.roster == nil, e.hasMajority()}
	changed := own != f.own || f.heard != e.heardOf
	e.dues.stirDue(e.now)
	if level := e.change.Level(); level != f.level {
		f.level = level
		e.dues.stir(e.peers.rows...)
	}
	for _, p := range e.dues.stirred {
		m, is := e.view.Find(p.id)
		able := is && e.away(m, p) == 0
		changed = changed || able != p.able
		p.able = able
	}
	if changed {
		f.generation++
	}
	f.own, f.heard = own, e.heardOf
	return f.generation
}

// listing is the list of candidates of one election.
type listing struct {
	key        listingKey
	fleeting   bool              // it may change by time alone, because a candidate stands down
	candidates []election.PeerID // the candidates that can be elected, best first; replaced, never changed
	other      election.Rank     // the best other candidate that can be elected
	able       bool              // at least one candidate can be elected
	standing   []election.Rank   // all candidates, also those that can't be elected, in no order; replaced, never changed
	better     int               // how many members may be better candidates for the first leader; -1: not counted yet
}

// listingKey is what a listing depends on, besides the time.
type listingKey struct {
	facts     uint64
	role      contest.Role
	candidate bool
	priority  int
	leader    election.Holder
	unable    election.Obstacle
}

func (l *listing) renew(e *Elector, c *entry, facts uint64) {
	leader := c.Leader().Holder
	key := listingKey{facts, c.Role(), c.Stands(), c.Priority(), leader, c.Unable(c)}
	fleeting := c.StandsDown(e.now)
	if key == l.key && !l.fleeting && !fleeting {
		return
	}
	f := c.Field(c)
	candidates := make([]election.PeerID, 0, len(f.Ranks)+1)
	l.other = election.Rank{}
	for _, r := range f.Ranks {
		candidates = append(candidates, r.Peer)
		if l.other.Peer == "" && r.Peer != e.cfg.Self.Peer {
			l.other = r
		}
	}
	var standing []election.Rank
	if c.Stands() {
		standing = append(standing, election.Rank{Priority: c.Priority(), JoinedAt: e.cfg.JoinedAt, Peer: e.cfg.Self.Peer})
	}
	for m := range e.candidates.of(c.Name(), e.view) {
		if r, _ := e.candidates.rank(m, c.Name()); m.Peer != e.cfg.Self.Peer {
			standing = append(standing, r)
		}
	}
	if e.runs(leader) && !slices.Contains(candidates, leader.Peer) && slices.ContainsFunc(standing, func(r election.Rank) bool { return r.Peer == leader.Peer }) {
		candidates = append(candidates, leader.Peer)
	}
	l.key, l.standing, l.able, l.fleeting, l.better = key, standing, len(f.Ranks) > 0, fleeting, -1
	if l.candidates == nil || !slices.Equal(candidates, l.candidates) {
		l.candidates = candidates
	}
}
