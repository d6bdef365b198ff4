package elector

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// stale describes how the picture for readers differs from one that is computed afresh; empty: in
// nothing. A part that is not computed again must not have changed: a leadership that is shown
// after its end, on a lease page for example, would be believed while its successor acts. All
// harnesses of this package check this after each step.
func stale(e *Elector) string {
	if problem := unseen(e); problem != "" {
		return problem
	}
	shown := e.Contests()
	e.shown = nil
	if anew := e.Contests(); !slices.Equal(shown, anew) {
		return fmt.Sprintf("readers are shown %d elections, there are %d", len(shown), len(anew))
	}
	if problem := e.agenda.problem(e.contests.rows); problem != "" {
		return problem
	}
	facts := e.facts.renew(e)
	for _, c := range e.contests.rows {
		kept := c.listing
		c.listing.key = listingKey{}
		c.listing.renew(e, c, facts)
		fresh := e.contestStatus(c)
		shows := c.Name() != election.RosterElection && (len(c.listing.standing) > 0 || e.exists(c))
		c.listing = kept
		if shows != (c.shown != nil) {
			return fmt.Sprintf("readers are shown %s: %t, it should be %t", c.Name(), c.shown != nil, shows)
		}
		if c.shown != nil && !fresh.agrees(c.shown) {
			return fmt.Sprintf("readers are shown %+v, it is %+v", *c.shown, fresh)
		}
	}
	return ""
}

// unseen describes a change of a peer or a candidate that no step has looked at; empty: nothing has changed. A step
// looks only at those that were stirred or are due.
func unseen(e *Elector) string {
	candidates := 0
	for _, m := range e.view.Members {
		list := m.Candidacies
		if p := e.peers.get(m.Peer); p != nil && p.listed && p.lineage == m.Lineage {
			list = p.candidacies
		}
		for _, c := range list {
			candidates++
			if r, is := e.candidates.rank(m, c.Election); !is || r.Priority != c.Priority || !slices.Contains(e.candidates.ids[c.Election], m.Peer) {
				return fmt.Sprintf("%s is a candidate in %s with %d, the index has %v with %d", m.Peer, c.Election, c.Priority, e.candidates.ids[c.Election], r.Priority)
			}
		}
	}
	for name, ids := range e.candidates.ids {
		candidates -= len(ids)
		if !slices.IsSorted(ids) || len(ids) == 0 {
			return fmt.Sprintf("the index of %s has %v", name, ids)
		}
	}
	if candidates != 0 {
		return fmt.Sprintf("the index lacks %d candidates", candidates)
	}
	if len(e.dues.order) != len(e.peers.rows) {
		return fmt.Sprintf("%d of %d peers have their turn", len(e.dues.order), len(e.peers.rows))
	}
	if fresh := strangers(e.view, e.roster); !reflect.DeepEqual(fresh, e.strangers) {
		return fmt.Sprintf("it warns of the strangers %v, there are %v", e.strangers, fresh)
	}
	for _, c := range e.contests.rows {
		if n := c.listing.better; n >= 0 && c.listing.key.facts == e.facts.generation && c.listing.key.priority == c.Priority() && n != c.better() {
			return fmt.Sprintf("%d members are better in %s, it has counted %d", c.better(), c.Name(), n)
		}
	}
	for i, p := range e.noted.rows {
		if e.peers.get(e.noted.keys[i]) != p {
			return fmt.Sprintf("it warns of %s, which is not connected", p.id)
		}
	}
	for _, p := range e.peers.rows {
		for _, changes := range []election.Instant{p.silentFrom(e.cfg.Lease), p.unwritableUntil} {
			if e.now < changes && changes < p.dueAt {
				return fmt.Sprintf("%s may change at %d, it is due at %d", p.id, changes, p.dueAt)
			}
		}
		m, is := e.view.Find(p.id)
		if able := is && e.away(m, p) == 0; able != p.able {
			return fmt.Sprintf("%s can be elected: %t, at the last look: %t", p.id, able, p.able)
		}
		if due := p.due(e); due != p.dueAt || e.dues.order[p.place] != p {
			return fmt.Sprintf("%s is due at %d, at the last look: %d", p.id, due, p.dueAt)
		}
		if held := e.heldRoster(); p.isForeign(held) {
			return fmt.Sprintf("%s is foreign and not apart", p.id)
		}
		if warns := len(e.warnOfPeer(nil, p.id, p)) > 0; warns != e.noted.has(p.id) {
			return fmt.Sprintf("%s is warned of: %t, it should be %t", p.id, !warns, warns)
		}
	}
	return ""
}

// problem describes how the counts differ from the elections themselves.
func (a *agenda) problem(all []*entry) string {
	contesting, queued := 0, 0
	for _, c := range all {
		if c.counted {
			contesting++
		}
		if c.queued {
			queued++
		}
		if c.counted != c.Contests() {
			return fmt.Sprintf("%s contests: %t, counted: %t", c.Name(), c.Contests(), c.counted)
		}
	}
	if contesting != a.contesting || queued != a.queued {
		return fmt.Sprintf("of %d elections %d contest, %d are queued; counted are %d and %d", len(all), contesting, queued, a.contesting, a.queued)
	}
	return ""
}

// When the last term is known, no term is left to ask for: this agent can't be elected.
func TestACandidateWithNoTermLeftIsNotShown(t *testing.T) {
	now := election.Instant(time.Hour)
	e, err := New(election.Config{Self: soloSelf, Name: "a", JoinedAt: 1, Quorum: true, Algorithm: election.Bully, Timing: testTiming, Drift: election.DefaultDrift},
		election.State{Peer: "a", Roster: rosterOf("a", "b", "c")}, nil, now, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	last := election.Roster{Cluster: "x", Version: election.Version{Driver: 1}, Voters: voters("a"), Floor: election.MaxTerm}
	for _, in := range []election.Input{election.Campaign{Election: "default", Priority: 1}, election.PeerConnected{Peer: "c"},
		election.Received{From: "c", Message: election.Report{Roster: &last}}} {
		if out := e.Step(now, in); out.Persist != nil {
			e.Step(now, election.Persisted{Write: out.Persist.Write})
		}
		if problem := stale(e); problem != "" {
			t.Fatalf("after %T: %s", in, problem)
		}
	}
	if shown := e.Status(now).Contests[0]; len(shown.Candidates) != 0 || shown.Term != election.MaxTerm {
		t.Errorf("%+v, want no candidate and the last term", shown)
	}
}
