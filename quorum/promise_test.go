package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// asked is a Vote Request for election e as the holder's agent sends it.
func asked(h election.Holder, term election.Term, lease time.Duration, r *election.Roster) election.VoteRequest {
	return election.VoteRequest{Election: "e", Term: term, Holder: h, Lease: lease, Send: 1,
		Rank: election.Rank{Peer: h.Peer}, Roster: *r}
}

func TestV4OvertakingOneselfWithAShorterLeaseShortensNoPromise(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.voter.Request(at(10), "a", asked(holderA, 2, time.Millisecond, roster3))
	onlyGrant(t, d.write(at(10)))
	d.ask(at(500), holderB, 3, 1, 9)
	if out := d.write(at(500)); len(out) != 0 {
		t.Fatalf("sent %+v while the lease of term 1 may run", out)
	}
}

func TestV4AKeptRequestIsPromisedAWholeLeaseFromItsReceipt(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 2, 1, 0)
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Holder != holderB {
		t.Fatalf("granted %v, want b", g.Holder)
	}
	if end := d.voter.PromiseEnd("e"); end < at(900).Add(testLease) {
		t.Fatalf("the promise ends at %d, want a lease from the receipt or later", end)
	}
}

func TestV4AGrantMadeDuringAWriteWaitsForTheNextOne(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	first := d.ledger.Next(at(0))
	other := asked(holderA, 1, testLease, roster3)
	other.Election = "f"
	d.voter.Request(at(1), "a", other)
	d.ledger.Persisted(first.Write)
	d.voter.Settle(at(2))
	if g := onlyGrant(t, d.voter.Take()); g.Election != "e" {
		t.Fatalf("granted in %s, whose write has not begun", g.Election)
	}
	if g := onlyGrant(t, d.write(at(3))); g.Election != "f" || d.disk.Grants["f"].Term != 1 {
		t.Fatalf("granted in %s, want f once it is on disk", g.Election)
	}
}

func TestV4AGrantNotOnDiskIsNotReported(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	if s := d.voter.Standings(at(0)); len(s) != 0 {
		t.Fatalf("reports %+v before the write", s)
	}
	d.write(at(1))
	if s := d.voter.Standings(at(1)); len(s) != 1 || s[0].Holder != holderA || s[0].Remaining <= 0 {
		t.Fatalf("reports %+v after the write, want a's grant", s)
	}
}

func TestV5TheHoldOutlastsTheLongestLeaseOnRecord(t *testing.T) {
	const long = 3 * testLease // of a former configuration
	s := state()
	s.Grants = map[election.Name]election.Grant{"e": {Term: 1, Holder: holderA, Lease: long}}
	d := newDesk(t, s)
	hold := Outlast(long, testDrift)
	d.ask(at(0).Add(hold-time.Millisecond), holderB, 2, 1, 0)
	if out := d.write(at(0).Add(hold - time.Millisecond)); len(out) != 0 {
		t.Fatalf("sent %+v while a lease of the former configuration may run", out)
	}
}

func TestV5AReleaseOnDiskSparesTheHold(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 1, Holder: holderA})
	d.ledger.Flush()
	d.write(at(1))
	d.start(at(2))
	d.ask(at(2), holderA, 1, 1, 0)
	onlyRefusal(t, d.write(at(2)), election.RefusedStaleTerm)
	d.grant(at(3), holderB, 2)
}

func TestV5AFormerLifeCountsAsSomebodyElse(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	reborn := election.Holder{Peer: "a", Boot: 2}
	d.ask(at(10), reborn, 2, 1, 0)
	if out := d.write(at(10)); len(out) != 0 {
		t.Fatalf("sent %+v to the next life of a holder whose programs may still act", out)
	}
	d.voter.Tick(at(10).Add(timeout))
	onlyRefusal(t, d.write(at(410)), election.RefusedPromised)
	d.ask(at(800), reborn, 2, 2, 0)
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Holder != reborn {
		t.Fatalf("granted %v, want the next life once the promise is over", g.Holder)
	}
}

func TestH3AVoteNeedsTheSameRosterOfTheSameCluster(t *testing.T) {
	newer, foreign := *roster3, *roster3
	newer.Version.Counter = 2
	foreign.Cluster = "y"
	for name, r := range map[string]*election.Roster{"another version": &newer, "another cluster": &foreign} {
		d := newDesk(t, state())
		d.voter.Request(at(0), "a", asked(holderA, 1, testLease, r))
		t.Log(name)
		onlyRefusal(t, d.write(at(0)), election.RefusedVersion)
	}
}

func TestWhoIsNoVoterGrantsNothing(t *testing.T) {
	d := newDesk(t, election.State{Peer: "v", Roster: &election.Roster{Cluster: "x", Version: roster3.Version,
		Voters: []election.Voter{{Name: "a", Peer: "a"}}}})
	d.ask(at(0), holderA, 1, 1, 0)
	onlyRefusal(t, d.write(at(0)), election.RefusedNotVoter)
	if n := d.voter.Renew(at(1), "a", renewal(holderA, 1)); len(n) != 1 {
		t.Fatal("an observer renews")
	}
}
