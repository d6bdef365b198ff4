package quorum

import (
	"fmt"
	"testing"

	"github.com/doyen-election/doyen/election"
)

// proposed is the driver's proposal of roster3 with a voter w to be added.
func proposed(driver election.Term, counter uint64) election.RosterPropose {
	r := *roster3
	r.Version = election.Version{Driver: driver, Counter: counter}
	r.Next = append([]election.Voter{{Name: "w", Peer: "w"}}, roster3.Voters...)
	return election.RosterPropose{Driver: driver, Holder: holderA, Roster: r}
}

func TestR1AnAcceptedRosterIsWrittenRaisesTheTermAndTellsTheHighest(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 9)
	d.voter.Propose(at(1), "a", proposed(4, 0))
	d.voter.Settle(at(1))
	if out := d.ledger.Take(); len(out) != 0 || d.voter.Roster() != roster3 {
		t.Fatalf("sent %+v, holds %v before the write", out, d.voter.Roster().Version)
	}
	a := onlyAccept(t, d.write(at(2)))
	if a.Highest != 9 || a.Driver != 4 || a.Version != (election.Version{Driver: 4}) {
		t.Fatalf("accepts %+v, want version {4 0} with the highest term 9", a)
	}
	if g := d.disk.Grants[election.RosterElection]; g.Term != 4 || !d.disk.Roster.Joint() {
		t.Fatalf("on disk: roster term %d, joint %v; want 4 and joint", g.Term, d.disk.Roster.Joint())
	}
}

func TestR1AnOlderDriverOrVersionIsRefused(t *testing.T) {
	d := newDesk(t, state())
	d.voter.Propose(at(0), "a", proposed(4, 1))
	onlyAccept(t, d.write(at(0)))
	forged := proposed(3, 0)
	forged.Roster.Version = election.Version{Driver: 5}
	foreign := proposed(5, 0)
	foreign.Roster.Cluster = "y"
	for name, p := range map[string]election.RosterPropose{
		"an older driver":                  proposed(3, 7),
		"an older version":                 proposed(4, 0),
		"an older driver's newer version":  forged,
		"a driver of another one's number": {Driver: 6, Holder: holderA, Roster: forged.Roster},
	} {
		t.Run(name, func(t *testing.T) {
			d.voter.Propose(at(1), "a", p)
			r := onlyRosterRefusal(t, d.write(at(1)))
			if r.Granted != 4 || r.Roster == nil || r.Roster.Version != (election.Version{Driver: 4, Counter: 1}) {
				t.Errorf("refused with %+v, want term 4 and the roster held", r)
			}
		})
	}
	d.voter.Propose(at(2), "a", foreign)
	if out := d.write(at(2)); len(out) != 0 || d.voter.Roster().Cluster != "x" {
		t.Errorf("another cluster's roster: sent %+v, holds %s", out, d.voter.Roster().Cluster)
	}
	d.voter.Propose(at(3), "a", proposed(4, 1))
	onlyAccept(t, d.write(at(3))) // a repeat of the version that it has
}

func TestR2ANewerRosterIsTakenOverOnceItIsOnDisk(t *testing.T) {
	d := newDesk(t, state())
	three := newer(roster3, election.Version{Counter: 3}, nil)
	d.voter.Adopt(at(0), three, false)
	if d.voter.Roster() != roster3 {
		t.Fatal("goes by the newer roster before it is written")
	}
	d.write(at(0))
	for name, r := range map[string]*election.Roster{
		"an older one":      newer(roster3, election.Version{Counter: 2}, nil),
		"another cluster's": newer(roster3, election.Version{Counter: 4}, func(r *election.Roster) { r.Cluster = "y" }),
	} {
		d.voter.Adopt(at(1), r, false)
		d.write(at(1))
		if got := d.voter.Roster(); got.Version != three.Version || got.Cluster != "x" {
			t.Errorf("%s was taken over: %+v", name, got)
		}
	}
}

// Otherwise a thousand made-up names would be kept, and checked again in each step.
func TestNothingIsQueuedForAnElectionThatIsNotOnRecord(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderB, 3)
	d.propose(at(1), 5, newer(roster3, election.Version{Driver: 5}, nil))
	for i := range 100 {
		d.voter.Release(at(2), "b", election.Release{Election: election.Name(fmt.Sprint("made-up-", i)), Term: 1, Holder: holderB})
	}
	d.voter.Release(at(2), "b", election.Release{Election: "e", Term: 3, Holder: holderB})
	if n := len(d.voter.waiting); n != 1 {
		t.Errorf("messages of %d elections wait for the write, want those of one", n)
	}
	d.write(at(3))
	if !d.ledger.State().Grants["e"].Released {
		t.Error("the release of the term on record is lost")
	}
}

// Only voters drive changes of the roster. If one voter granted an observer a term, the other
// voters could not use that voter's vote to elect one of themselves.
func TestTheRosterElectionIsTheVotersOwn(t *testing.T) {
	d := newDesk(t, state())
	for _, peer := range []election.PeerID{"z", "b"} {
		h := election.Holder{Peer: peer, Lineage: 1}
		d.voter.Request(at(0), peer, election.VoteRequest{Election: election.RosterElection, Term: 4, Holder: h,
			Lease: testLease, Send: 1, Rank: election.Rank{Priority: 100, Peer: peer}, Roster: *roster3})
		d.write(at(0))
		if g := d.ledger.State().Grants[election.RosterElection]; (g.Holder == h) != (peer == "b") {
			t.Errorf("%s asks: on record %+v", peer, g)
		}
	}
}
