package quorum

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// A proposal raises the term of `_roster` on record while a promise to the former driver still
// runs. Until that promise ends, the new driver's record is not a promise.
func TestV6ARecordBesideAPromiseToAnotherIsNotRenewed(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: roster3})
	d.voter.Request(at(0), "a", election.VoteRequest{Election: election.RosterElection, Term: 1, Holder: holderA, Lease: testLease,
		Send: 1, Rank: election.Rank{Peer: "a"}, Roster: *roster3})
	onlyGrant(t, d.write(at(0)))
	proposed := newer(roster3, election.Version{Driver: 2, Counter: 1}, nil)
	d.propose(at(100), 2, proposed)
	onlyAccept(t, d.write(at(100)))
	renew := func(ms int) []election.Nack {
		return d.voter.Renew(at(ms), "b", election.Heartbeat{Lineage: holderB.Lineage, Version: proposed.Version,
			Claims: []election.Claim{{Election: election.RosterElection, Term: 2}}})
	}
	if nacks := renew(500); len(nacks) != 1 {
		t.Errorf("renewed 400 ms after the promise to a began, which runs for %v", testLease)
	}
	if nacks := renew(1500); len(nacks) != 0 {
		t.Errorf("refused once that promise had expired: %v", nacks)
	}
}

// The term of `_roster` is the highest ballot that this voter took part in (R1). A voter that
// forgot it would accept an older driver's proposal.
func TestR1TheBallotIsNeverForgotten(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: roster3})
	proposed := newer(roster3, election.Version{Driver: 5, Counter: 1}, nil)
	d.propose(at(0), 5, proposed)
	onlyAccept(t, d.write(at(0)))
	if n := d.voter.Forget(at(60_000), unused, 8); n != 0 {
		t.Errorf("forgot %d", n)
	}
	d.disk.Roster = roster3 // an older roster, so that the ballot alone refuses
	d.start(at(60_000))
	d.propose(at(60_001), 4, newer(roster3, election.Version{Driver: 4, Counter: 1}, nil))
	for _, sent := range d.write(at(60_001)) {
		if _, accepted := sent.Message.(election.RosterAccept); accepted {
			t.Error("accepted a proposal of driver 4 after one of driver 5")
		}
	}
}
