package elector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/doyen-election/doyen/election"
)

func TestK4TheNextLifeGoesOnHandingOver(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.step(election.Transfer{Election: election.Default, To: "c"})
	told := s.withdrawn[0]
	n := s.dies(nil)
	if n.leads(election.Default) || n.status(election.Default).Leader != (election.Holder{}) {
		t.Fatalf("shows %+v", n.status(election.Default))
	}
	n.meets()
	if len(n.withdrawn) != 1 || n.withdrawn[0] != told || len(n.announced) != 1 || n.announced[0].Event != election.NoLeader {
		t.Fatalf("withdrew %+v, announced %+v; the former life may have died before it did", n.withdrawn, n.announced)
	}
	if len(releases(n.sent)) != 0 {
		t.Fatalf("released %+v", releases(n.sent))
	}
	n.step(election.Stopped{Election: election.Default, Term: told.Term})
	if got := sentTo[election.Release](n.sent, "b"); len(got) != 1 || got[0].Target != "c" || got[0].Term != told.Term {
		t.Fatalf("released %+v, want for c", got)
	}
}

func TestK4aTheNextLifeClaimsNoHandOverThatMetASuspend(t *testing.T) {
	s := newSolo(t, nil).leader()
	s.step(election.Transfer{Election: election.Default, To: "c"})
	s.step(election.Suspended{})
	n := s.dies(nil).meets()
	n.pass(2 * testTiming.Heartbeat)
	if beats := sentTo[election.Heartbeat](n.sent, "b"); len(beats) != 0 {
		t.Errorf("claims %+v: how long that lease still runs nobody knows", beats[0].Claims)
	}
}

func TestK4cTermsAskedForInForgottenElectionsAreNotAskedForAgain(t *testing.T) {
	s := newSolo(t, nil)
	n := s.dies(func(_ *election.Config, past *election.Past) { past.Spent = 7 }).meets() // spent in vain: no voter knows of that term
	n.campaign("jobs")
	n.answerRound()
	if got := asked(n.sent, "jobs"); got != 8 {
		t.Fatalf("asks for term %d, want 8", got)
	}
}

func TestK4WhatHasEndedMeanwhileIsReleasedAndNotLed(t *testing.T) {
	for name, end := range map[string]func(*solo){
		"led":         func(*solo) {},
		"handed over": func(s *solo) { s.step(election.Resign{Election: election.Default}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSolo(t, nil).leader()
			end(s)
			s.now = s.past.Rows[0].Until
			n := s.dies(nil)
			if _, leads := n.status(election.Default).LeaderAt(n.now); leads {
				t.Fatalf("shows %+v", n.status(election.Default))
			}
			n.meets()
			if row := rowOf(n.past.LifeRecord, election.Default); n.leads(election.Default) || row.Term != 0 || len(n.withdrawn) != 1 {
				t.Fatalf("withdrew %+v, on record is %+v", n.withdrawn, row)
			}
			if g := n.e.ledger.State().Grants[election.Default]; g.Released != (g.Holder == soloSelf) {
				t.Fatalf("its own voter keeps %+v", g)
			}
		})
	}
}

func TestK4WithoutQuorumTheNextLifeLeadsOn(t *testing.T) {
	advisory := func(c *election.Config, st *election.State) { c.Quorum, st.Roster = false, nil }
	s := newSolo(t, advisory)
	s.view.Members = s.view.Members[:1]
	s.step(election.ViewChanged{View: s.view})
	s.campaign(election.Default)
	s.pass(4 * testTiming.Heartbeat)
	if !s.leads(election.Default) || s.past.Rows[0].Until != election.Never {
		t.Fatalf("on record is %+v", s.past.Rows)
	}
	s.now = s.now.Add(100 * testTiming.Lease)
	n := s.dies(nil)
	n.campaign(election.Default)
	n.pass(testTiming.Lease)
	if got := n.status(election.Default); got.State != Leading || got.Term != s.past.Rows[0].Term {
		t.Fatalf("%+v", got)
	}
	n.step(election.Overtake{Election: election.Default})
	if got := n.status(election.Default); got.State != Leading || got.Term != s.past.Rows[0].Term+1 || n.disk.Seen[election.Default] != got.Term {
		t.Fatalf("%+v, on disk %+v", got, n.disk.Seen)
	}
	q := s.dies(func(c *election.Config, _ *election.Past) { c.Quorum = true })
	q.step(election.Tick{})
	if q.leads(election.Default) {
		t.Fatal("leads with quorum what no majority has granted")
	}
}

// A driver without memory must not drive the former life's ballot again.
func TestK8TheRosterElectionIsNotCarriedOn(t *testing.T) {
	s := newLone(t, trioState())
	s.step(election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 1})
	s.pass(testTiming.Heartbeat)
	r := s.request(s.sent, "b", election.RosterElection)
	s.hear("b", grant(r))
	if ballot, _ := s.e.Drives(); ballot != r.Term {
		t.Fatalf("drives in %d, want %d", ballot, r.Term)
	}
	if row := rowOf(s.past.LifeRecord, election.RosterElection); row != (election.Authority{Election: election.RosterElection, Highest: r.Term}) {
		t.Fatalf("on record is %+v", row)
	}
	n := s.dies(func(_ *election.Config, past *election.Past) {
		for i := range past.Rows { // as a defective life may have written it
			past.Rows[i].Term, past.Rows[i].Until = r.Term, s.now.Add(testTiming.Lease)
		}
	}).meets()
	if ballot, _ := n.e.Drives(); ballot != 0 {
		t.Fatalf("drives the ballot %d of its former life", ballot)
	}
	n.step(election.ChangeRoster{Remove: []election.PeerID{"c"}, Request: 2})
	n.pass(4 * testTiming.Lease)
	if got := asked(n.sent, election.RosterElection); got <= r.Term {
		t.Fatalf("asks for ballot %d after %d", got, r.Term)
	}
}

func TestV5AVoterRenewsItsOwnLineageAndHoldsTheOthers(t *testing.T) {
	s := newSolo(t, nil).leader()
	other := election.VoteRequest{Election: "jobs", Term: 1, Holder: election.Holder{Peer: "b", Lineage: 1}, Rank: election.Rank{Peer: "b"},
		Lease: testTiming.Lease, Send: 1, Roster: *soloRoster}
	s.hear("b", other)
	n := s.dies(nil).meets()
	if nacks := n.e.voter.Renew(n.now, "a", last[election.Heartbeat](n, "b")); len(nacks) != 0 {
		t.Fatalf("its own voter nacks %+v", nacks)
	}
	stranger := other
	stranger.Holder, stranger.Rank, stranger.Term = election.Holder{Peer: "c", Lineage: 1}, election.Rank{Peer: "c"}, 2
	n.hear("c", stranger)
	n.hear("b", other)
	if len(sentTo[election.VoteGrant](n.sent, "c")) != 0 || len(sentTo[election.VoteGrant](n.sent, "b")) != 1 {
		t.Fatalf("sent %+v, want a vote for b alone", n.sent)
	}
}

func TestAPastThatIsNotOfThisLineageIsRefused(t *testing.T) {
	s := newSolo(t, nil).leader()
	for name, spoil := range map[string]func(*election.Config, *election.Past){
		"of another lineage":              func(_ *election.Config, p *election.Past) { p.ID++ },
		"of a later life":                 func(_ *election.Config, p *election.Past) { p.Life = 9 },
		"of more lives than there can be": func(c *election.Config, _ *election.Past) { c.Life = 1 << 60 },
	} {
		cfg, past := s.cfg, s.past
		cfg.Life++
		past.Rows = slices.Clone(past.Rows)
		spoil(&cfg, &past)
		if _, err := New(cfg, s.disk, &past, s.now, rand.New(rand.NewPCG(1, 2))); err == nil {
			t.Errorf("a past %s was taken over", name)
		}
	}
}
