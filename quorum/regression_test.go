package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func TestAPendingGenesisBindsAgainstARosterProposal(t *testing.T) {
	g := &election.Genesis{Proposer: "b", Attempt: 1, Roster: *roster3}
	d := newDesk(t, election.State{Peer: "v", Pending: g})
	d.propose(at(0), 2, &election.Roster{Cluster: "another", Version: election.Version{Driver: 2}, Voters: []election.Voter{{Name: "z", Peer: "z"}}})
	d.write(at(0))
	if d.voter.Roster() != nil || d.disk.Pending == nil {
		t.Fatal("a driver of another cluster made this agent forget the genesis it had accepted")
	}
}

func TestV7AReleaseForgetsNoNewerRequestOfItsHolder(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 7, 2, 0)
	d.voter.Release(at(901), "b", election.Release{Election: "e", Term: 3, Holder: holderB}) // late, from an attempt that was given up
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Term != 7 {
		t.Fatalf("granted term %d, want 7", g.Term)
	}
}

func TestV3ALateRequestReplacesNoNewerOneOfItsHolder(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 7, 2, 0)
	d.ask(at(901), holderB, 3, 1, 0)
	d.voter.Tick(at(1000))
	if out := d.write(at(1000)); onlyGrant(t, out[:1]).Term != 7 {
		t.Fatalf("sent %+v, want a grant of term 7 first", out)
	}
}

func TestV5TheHoldLastsForTheLongestLeaseOfAHolderThatOvertookItself(t *testing.T) {
	d := newDesk(t, state())
	d.voter.cfg.Lease = 9 * time.Second // all agreed to it at that time
	d.voter.Request(at(0), "a", election.VoteRequest{Election: "e", Term: 1, Holder: holderA, Lease: 9 * time.Second, Send: 1, Roster: *roster3})
	onlyGrant(t, d.write(at(0)))
	d.grant(at(1), holderA, 2) // with a lease of 1 s
	d.start(at(2))
	if end, want := d.voter.PromiseEnd("e"), at(2).Add(Outlast(9*time.Second, testDrift)); end < want {
		t.Fatalf("held until %d, want %d: term 1 was promised for 9 s", end, want)
	}
}

func TestRepeatedProposalsDoNotPileUpBehindASlowDisk(t *testing.T) {
	f := newFounder(t, "b", "pb", "a", "b", "c")
	g := election.Genesis{Proposer: "pa", Attempt: 1, Roster: election.Roster{Cluster: "x", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "a", Peer: "pa"}, {Name: "b", Peer: "pb"}, {Name: "c", Peer: "pc"}}}}
	for range 1000 {
		f.formation.Propose(0, "pa", election.GenesisPropose{Genesis: g})
	}
	if n := len(f.ledger.unsent); n > 1 {
		t.Fatalf("%d answers wait for one write, want 1", n)
	}
}

func BenchmarkSendsWithinALease(b *testing.B) {
	s := NewSends(testLease, 0)
	for range 50_000 { // about a thousand elections that ask five voters in one lease
		s.Next(at(0))
	}
	for b.Loop() {
		s.At(s.Next(at(0)))
	}
}
