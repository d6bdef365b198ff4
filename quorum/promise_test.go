package quorum

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// asked is a Vote Request for election e as the holder's agent sends it.
func asked(h election.Holder, term election.Term, r *election.Roster) election.VoteRequest {
	return election.VoteRequest{Election: "e", Term: term, Holder: h, Lease: testLease, Send: 1,
		Rank: election.Rank{Peer: h.Peer}, Roster: *r}
}

func TestV4AWaitingRequestIsPromisedALeaseFromItsReceipt(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 2, 1, 0)
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Holder != holderB {
		t.Fatalf("granted %v, want b", g.Holder)
	}
	if end := d.voter.PromiseEnd("e"); end != at(900).Add(testLease) {
		t.Fatalf("the promise ends at %d, want a lease from the receipt: later would outlive a holder that died since", end)
	}
}

func TestV4AGrantMadeDuringAWriteWaitsForTheNextOne(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	first := d.ledger.Next(at(0))
	other := asked(holderA, 1, roster3)
	other.Election = "f"
	d.voter.Request(at(1), "a", other)
	d.ledger.Persisted(first.Write)
	d.voter.Settle(at(2))
	if g := onlyGrant(t, d.ledger.Take()); g.Election != "e" {
		t.Fatalf("granted in %s, whose write has not begun", g.Election)
	}
	if g := onlyGrant(t, d.write(at(3))); g.Election != "f" || d.disk.Grants["f"].Term != 1 {
		t.Fatalf("granted in %s, want f once it is on disk", g.Election)
	}
}

func TestV4AGrantNotOnDiskIsNotReported(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	if s := d.voter.Records(at(0)); len(s) != 0 {
		t.Fatalf("reports %+v before the write", s)
	}
	d.write(at(1))
	if s := d.voter.Records(at(1)); len(s) != 1 || s[0].Holder != holderA || s[0].Remaining <= 0 {
		t.Fatalf("reports %+v after the write, want a's grant", s)
	}
}

func TestV5AFormerProcessRunIsAnotherHolder(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	reborn := election.Holder{Peer: "a", Lineage: 2}
	d.ask(at(10), reborn, 2, 1, 0)
	if out := d.write(at(10)); len(out) != 0 {
		t.Fatalf("sent %+v to the next process run of a holder whose programs may still act", out)
	}
	d.voter.Tick(at(10).Add(timeout))
	onlyRefusal(t, d.write(at(410)), election.RefusedPromised)
	d.ask(at(800), reborn, 2, 2, 0)
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Holder != reborn {
		t.Fatalf("granted %v, want the next process run once the promise has expired", g.Holder)
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

// Two holders that asked for one term may each have votes for it. So a voter only compares with its
// own record, even an old one.
func TestV6WhoIsNotOnRecordRenewsNothingEvenWhenNoPromiseRuns(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	if n := d.voter.Renew(at(5000), "b", renewal(holderB, 3)); len(n) != 1 {
		t.Fatal("renewed for b the term that is a's on disk")
	}
	d.grant(at(5001), holderB, 4)
}

// TestNoVoteGoesToOneThatIsGone: b's request waits first, but b's connection closes. When the
// promise to c ends, a gets the vote.
func TestNoVoteGoesToOneThatIsGone(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), election.Holder{Peer: "c", Lineage: 1}, 1)
	d.ask(at(700), holderB, 2, 1, 200)
	d.ask(at(700), holderA, 2, 1, 100)
	d.voter.Disconnected("b")
	d.voter.Tick(at(1000))
	if g := onlyGrant(t, d.write(at(1000))); g.Holder != holderA {
		t.Fatalf("granted %v, want a, which can still lead", g.Holder)
	}
}

// TestV4TheTimeARequestWaitedIsNotPromised: b's request waited for 300 ms, and b died meanwhile.
// Its lease counts from its send. So the next holder waits no longer than a lease from the receipt.
func TestV4TheTimeARequestWaitedIsNotPromised(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(700), holderB, 2, 1, 100)
	d.voter.Tick(at(1000))
	onlyGrant(t, d.write(at(1000)))
	d.ask(at(1650), holderA, 3, 1, 100)
	d.voter.Tick(at(1699))
	if out := d.write(at(1699)); len(out) > 0 {
		t.Fatalf("the promise to b ended early: %+v", out)
	}
	d.voter.Tick(at(1700))
	onlyGrant(t, d.write(at(1700)))
}
