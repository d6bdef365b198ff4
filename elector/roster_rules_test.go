package elector

import (
	"strings"
	"testing"

	"github.com/doyen-election/doyen/election"
	"github.com/doyen-election/doyen/quorum"
)

// proposals are the rosters that were proposed, when each was first proposed, and when a majority of
// each of its halves had accepted it.
type proposals struct {
	c       *cluster
	order   []election.Version
	rosters map[election.Version]election.Roster
	first   map[election.Version]election.Instant
	agreed  map[election.Version]election.Instant
	accepts map[election.Version]map[election.PeerID]bool
}

func watchProposals(c *cluster) *proposals {
	p := &proposals{c: c, rosters: map[election.Version]election.Roster{}, first: map[election.Version]election.Instant{},
		agreed: map[election.Version]election.Instant{}, accepts: map[election.Version]map[election.PeerID]bool{}}
	c.spy = p.note
	return p
}

func (p *proposals) note(from string, e election.Envelope) {
	switch m := e.Message.(type) {
	case election.RosterPropose:
		v := m.Roster.Version
		if _, known := p.rosters[v]; !known {
			p.order = append(p.order, v)
			p.rosters[v], p.first[v] = m.Roster, p.c.Now
			p.accepts[v] = map[election.PeerID]bool{election.PeerID(from): true} // its own acceptance is not sent
		}
	case election.RosterAccept:
		r := p.rosters[m.Version]
		p.accepts[m.Version][election.PeerID(from)] = true
		if _, done := p.agreed[m.Version]; !done && quorum.Confirmed(&r, func(id election.PeerID) bool { return p.accepts[m.Version][id] }) {
			p.agreed[m.Version] = p.c.Now
		}
	}
}

// check checks R3, R4 and R9. A stable roster is proposed only after the same driver's marked joint
// roster was accepted, and after every older lease has ended. Voters that accept have promised the
// driver itself a lease just before.
func (p *proposals) check(t *testing.T) (stable *election.Roster) {
	t.Helper()
	var joint election.Version
	for _, v := range p.order {
		r := p.rosters[v]
		if r.Joint() {
			if r.Committed {
				joint = v
			}
			continue
		}
		stable = &r
		agreed, ok := p.agreed[joint]
		wait := quorum.Outlast(testTiming.Lease-5*hop, election.DefaultDrift)
		if !ok || joint.Driver != v.Driver || p.first[v] < agreed.Add(wait) {
			t.Errorf("stable %v at %d; joint %v was agreed on at %d (%v): want the same driver, and %v between", v, p.first[v], joint, agreed, ok, wait)
		}
	}
	return stable
}

// fourAgents are three voters and an observer, led by a.
func fourAgents(t *testing.T) *cluster {
	c := newCluster(t, election.Bully, "a", "b", "c", "d")
	c.nodes["d"].observe = true
	return c
}

func replaceCByD(c *cluster, at string) {
	c.input(at, election.ChangeRoster{Add: []election.Voter{{Name: "d", Peer: "d"}}, Remove: []election.PeerID{"c"}, Request: 1})
}

func TestR4TheNewRosterDecidesOnceTheOldLeasesAreOver(t *testing.T) {
	c := fourAgents(t)
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	p := watchProposals(c)
	released := false
	spied := c.spy
	c.spy = func(from string, e election.Envelope) {
		spied(from, e)
		if m, ok := e.Message.(election.Release); ok && from == "a" && m.Election == election.Default {
			released = true
		}
	}
	replaceCByD(c, "b")
	c.run(3 * testTiming.Lease)
	if r := p.check(t); r == nil || !r.Has("d") || r.Has("c") {
		t.Fatalf("no stable roster with d and without c: %v", p.order)
	}
	if got := c.leaders(); got != "a@2" { // R6: the same leader, a higher token
		t.Errorf("leads: %s, want a@2", got)
	}
	if released {
		t.Error("the leader gave back a term while it lived through the change (H6)")
	}
}

func TestADriverSaysThatItLeadsTheRosterElection(t *testing.T) {
	c := fourAgents(t)
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	replaceCByD(c, "b")
	c.run(testTiming.Lease / 2)
	if term, until := c.nodes["b"].elector.Drives(); term == 0 || until <= c.Now {
		t.Errorf("b drives the change, and says: term %d until %d, now %d", term, until, c.Now)
	}
	if term, _ := c.nodes["a"].elector.Drives(); term != 0 {
		t.Errorf("a drives nothing, and says: term %d", term)
	}
	c.run(3 * testTiming.Lease)
	if term, _ := c.nodes["b"].elector.Drives(); term != 0 {
		t.Errorf("b has finished, and says: term %d", term)
	}
}

func TestR4TheFloorIsAboveWhatOnlyTheNewHalfKnows(t *testing.T) {
	c := newCluster(t, election.Bully, "a", "b", "c", "d", "e")
	add := []election.Voter{{Name: "d", Peer: "d"}, {Name: "e", Peer: "e"}}
	for _, v := range add { // each becomes a voter once: they have granted a term of payments that the others never saw
		c.nodes[v.Name].observe = true
		c.nodes[v.Name].Disk.Grants = map[election.Name]election.Grant{
			"payments": {Term: 40, Holder: election.Holder{Peer: "z", Lineage: 1}, Lease: testTiming.Lease, Released: true}}
	}
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	p := watchProposals(c)
	c.input("b", election.ChangeRoster{Add: add, Remove: []election.PeerID{"b", "c"}, Request: 1})
	c.run(3 * testTiming.Lease)
	if r := p.check(t); r == nil || r.Floor < 40 {
		t.Fatalf("stable roster %+v, want a floor of 40 or more", r)
	}
}

func TestR3AnInheritedJointRosterIsProposedAnewAndWaitedFor(t *testing.T) {
	c := fourAgents(t)
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	p := watchProposals(c)
	replaceCByD(c, "b")
	c.run(testTiming.Lease / 2) // by now the mark is accepted, and the stable roster is not proposed yet
	if len(p.order) != 2 || len(p.agreed) != 2 {
		t.Fatalf("proposed %v, agreed on %v; want a joint roster and its mark", p.order, p.agreed)
	}
	c.kill("b")
	c.run(8 * testTiming.Lease)
	if r := p.check(t); r == nil || !r.Has("d") || r.Version.Driver == p.order[0].Driver {
		t.Fatalf("no other driver finished the change: %v", p.order)
	}
	if c.leaders() == "" {
		t.Error("nobody leads after the change")
	}
}

func TestAnOlderRosterIsTakenOverByNobody(t *testing.T) {
	c := fourAgents(t)
	for _, n := range c.names {
		c.start(n)
	}
	c.run(testTiming.Lease)
	before := c.nodes["a"].elector.Status(c.Now).Roster
	replaceCByD(c, "b")
	c.run(3 * testTiming.Lease)
	c.input("a", election.Received{From: "b", Message: election.Report{Voter: true, Roster: before}})
	c.run(testTiming.Heartbeat)
	if r := c.nodes["a"].elector.Status(c.Now).Roster; !r.Has("d") {
		t.Errorf("a went back to %s", strings.TrimSpace(voterNames(*r)))
	}
}
