package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

const (
	testLease = 1000 * time.Millisecond
	testDrift = 0.01
	timeout   = 400 * time.Millisecond
)

var (
	holderA = election.Holder{Peer: "a", Lineage: 1}
	holderB = election.Holder{Peer: "b", Lineage: 1}
	roster3 = &election.Roster{Cluster: "x", Version: election.Version{Counter: 1},
		Voters: []election.Voter{{Name: "a", Peer: "a"}, {Name: "b", Peer: "b"}, {Name: "v", Peer: "v"}}}
)

func at(ms int) election.Instant { return election.Instant(time.Duration(ms) * time.Millisecond) }

// desk is a voter with its ledger, and a disk that writes when the test asks.
type desk struct {
	t      *testing.T
	ledger *Ledger
	voter  *Voter
	disk   election.State
}

func newDesk(t *testing.T, s election.State) *desk {
	d := &desk{t: t, disk: s}
	d.start(at(0))
	return d
}

// start starts again from what is on disk.
func (d *desk) start(now election.Instant) {
	d.ledger = NewLedger(d.disk, testLease)
	d.voter = NewVoter(election.Config{Quorum: true, Self: election.Holder{Peer: "v"}, Drift: testDrift, Timing: election.Timing{Lease: testLease, Heartbeat: timeout / 2}}, d.ledger, now)
}

// write makes the due write durable, and returns the messages that waited for it.
func (d *desk) write(now election.Instant) []election.Envelope {
	if w := d.ledger.Next(now); w != nil {
		d.disk = d.disk.After(w)
		d.ledger.Persisted(w.Write)
	}
	d.voter.Settle(now)
	return d.ledger.Take()
}

func (d *desk) ask(now election.Instant, h election.Holder, term election.Term, send election.SendID, rank int) {
	d.voter.Request(now, h.Peer, election.VoteRequest{Election: "e", Term: term, Holder: h, Lease: testLease, Send: send,
		Rank: election.Rank{Priority: rank, Peer: h.Peer}, Roster: *d.voter.Roster()})
}

// grant sends a request and expects the vote.
func (d *desk) grant(now election.Instant, h election.Holder, term election.Term) {
	d.t.Helper()
	d.ask(now, h, term, 1, 0)
	if got := onlyGrant(d.t, d.write(now)); got.Holder != h || got.Term != term {
		d.t.Fatalf("granted %d to %v, want %d to %v", got.Term, got.Holder, term, h)
	}
}

func onlyGrant(t *testing.T, out []election.Envelope) election.VoteGrant {
	t.Helper()
	if len(out) == 1 {
		if g, ok := out[0].Message.(election.VoteGrant); ok {
			return g
		}
	}
	t.Fatalf("sent %+v, want one grant", out)
	return election.VoteGrant{}
}

func onlyRefusal(t *testing.T, out []election.Envelope, why election.RefusalReason) {
	t.Helper()
	if len(out) == 1 {
		if r, ok := out[0].Message.(election.VoteRefusal); ok && r.Reason == why {
			return
		}
	}
	t.Fatalf("sent %+v, want one refusal for reason %d", out, why)
}

func state() election.State { return election.State{Peer: "v", Roster: roster3} }

func renewal(h election.Holder, term election.Term) election.Heartbeat {
	return election.Heartbeat{Lineage: h.Lineage, Send: 9, Version: roster3.Version,
		Claims: []election.Claim{{Election: "e", Term: term}}}
}

func TestV1NothingAboutAnElectionIsHandledWhileItsGrantIsWritten(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	d.ask(at(1), holderB, 2, 1, 9)
	w := d.ledger.Next(at(1))
	if w == nil || w.State.Grants["e"].Holder != holderA {
		t.Fatalf("write %+v, want a's grant", w)
	}
	if out := d.ledger.Take(); len(out) != 0 {
		t.Fatalf("sent %+v before the write was durable", out)
	}
	if n := d.voter.Renew(at(2), "a", renewal(holderA, 1)); len(n) != 1 {
		t.Fatalf("a renewal was honoured on a grant that is not durable")
	}
	d.ledger.Persisted(w.Write)
	d.voter.Settle(at(3))
	if g := onlyGrant(t, d.ledger.Take()); g.Holder != holderA {
		t.Fatalf("granted %v, want a", g.Holder)
	}
	if out := d.write(at(4)); len(out) != 0 {
		t.Fatalf("b's waiting request was answered %+v while a's promise runs", out)
	}
}

func TestV2ATermBelongsToOneHolder(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 5)
	d.ask(at(1), holderB, 5, 1, 0)
	onlyRefusal(t, d.write(at(1)), election.RefusedStaleTerm)
	d.ask(at(2), holderB, 4, 1, 0)
	onlyRefusal(t, d.write(at(2)), election.RefusedStaleTerm)
	d.grant(at(3), holderA, 5) // again to the same holder
	d.ask(at(4), election.Holder{Peer: "a", Lineage: 2}, 5, 1, 0)
	onlyRefusal(t, d.write(at(4)), election.RefusedStaleTerm) // another lineage is another holder
}

func TestV3AHigherTermWaitsForThePromiseAndTheBestRankedGoesFirst(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 2, 1, 1)
	better := election.Holder{Peer: "c", Lineage: 1}
	d.ask(at(901), better, 3, 1, 2)
	if out := d.write(at(999)); len(out) != 0 {
		t.Fatalf("sent %+v while the promise runs", out)
	}
	if wake := d.voter.WakeAt(); wake != at(1000) {
		t.Fatalf("wakes at %d, want the end of the promise", wake)
	}
	d.voter.Tick(at(1000))
	out := d.write(at(1000))
	if g := onlyGrant(t, out[:1]); g.Holder != better {
		t.Fatalf("granted %v, want the best-ranked", g.Holder)
	}
	onlyRefusal(t, out[1:], election.RefusedStaleTerm) // b asked for a lower term
}

func TestV3AWaitingRequestIsRefusedAfterTheVoteTimeout(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(100), holderB, 2, 1, 1)
	d.voter.Tick(at(100).Add(timeout))
	onlyRefusal(t, d.write(at(500)), election.RefusedPromised)
}

func TestV3AHolderOvertakesItself(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.grant(at(1), holderA, 7)
}

func TestV4AShorterLeaseNeverShortensAPromise(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.staysPromised(t, 1)
}

// staysPromised makes the voter grant A a term with a lease of a millisecond. The voter's earlier promise of a
// second must stay.
func (d *desk) staysPromised(t *testing.T, term election.Term) {
	t.Helper()
	d.voter.Request(at(10), "a", election.VoteRequest{Election: "e", Term: term, Holder: holderA, Lease: time.Millisecond,
		Send: 2, Roster: *roster3})
	onlyGrant(t, d.write(at(10)))
	if end := d.voter.PromiseEnd("e"); end < at(1000) {
		t.Fatalf("the promise ends at %d, want 1 s or later", end)
	}
}

func TestV5AfterARestartOnlyTheHolderOnRecordIsServed(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.start(at(5000)) // long after, perhaps on another clock
	d.ask(at(5001), holderB, 2, 1, 0)
	if out := d.write(at(5001)); len(out) != 0 {
		t.Fatalf("sent %+v to another holder during the hold", out)
	}
	if n := d.voter.Renew(at(5002), "a", renewal(holderA, 1)); len(n) != 0 {
		t.Fatalf("nacked the holder on record: %+v", n)
	}
	d.start(at(9000))
	hold := Outlast(testLease, testDrift)
	d.ask(at(9000).Add(hold-time.Millisecond), holderB, 2, 1, 0)
	if out := d.write(at(9000).Add(hold - time.Millisecond)); len(out) != 0 {
		t.Fatalf("the hold ended early: %+v", out)
	}
	d.voter.Tick(at(9000).Add(hold))
	if g := onlyGrant(t, d.write(at(9000).Add(hold))); g.Holder != holderB {
		t.Fatalf("granted %v after the hold, want b", g.Holder)
	}
}

func TestV6ARenewalMustMatchTheRecordAndANackChangesNothing(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	older := renewal(holderA, 3)
	older.Version.Counter = 2
	for name, try := range map[string]struct {
		from election.PeerID
		beat election.Heartbeat
	}{
		"another term":    {"a", renewal(holderA, 2)},
		"another holder":  {"b", renewal(holderB, 3)},
		"another boot":    {"a", renewal(election.Holder{Peer: "a", Lineage: 2}, 3)},
		"another version": {"a", older},
	} {
		end := d.voter.PromiseEnd("e")
		if n := d.voter.Renew(at(500), try.from, try.beat); len(n) != 1 || n[0].Term != 3 {
			t.Errorf("%s: nacks %+v, want one with term 3", name, n)
		}
		if d.voter.PromiseEnd("e") != end {
			t.Errorf("%s: a nack changed the promise", name)
		}
	}
	if n := d.voter.Renew(at(500), "a", renewal(holderA, 3)); len(n) != 0 || d.voter.PromiseEnd("e") != at(1500) {
		t.Errorf("nacks %+v, promise to %d; want none and 1.5 s", n, d.voter.PromiseEnd("e"))
	}
}

func TestV7AReleasedTermIsNeverGrantedOrRenewedAgain(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.voter.Release(at(10), "a", election.Release{Election: "e", Term: 3, Holder: holderA})
	if n := d.voter.Renew(at(11), "a", renewal(holderA, 3)); len(n) != 1 {
		t.Fatalf("a delayed renewal revived a released term")
	}
	d.ask(at(12), holderA, 3, 5, 0)
	onlyRefusal(t, d.write(at(12)), election.RefusedStaleTerm)
	d.grant(at(13), holderB, 4) // at once: the promise has ended
}

func TestV7AReleaseOfAnotherTermChangesNothing(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.voter.Release(at(10), "a", election.Release{Election: "e", Term: 2, Holder: holderA})
	d.voter.Release(at(10), "b", election.Release{Election: "e", Term: 3, Holder: holderB})
	if n := d.voter.Renew(at(11), "a", renewal(holderA, 3)); len(n) != 0 {
		t.Fatalf("a release of something else ended the promise")
	}
}

func TestR5TheFloorBindsGrantsRegrantsAndRenewals(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	floored := *roster3
	floored.Version.Counter, floored.Floor = 2, 3
	d.voter.Adopt(at(1), &floored, false)
	d.write(at(1))
	beat := renewal(holderA, 3)
	beat.Version = floored.Version
	if n := d.voter.Renew(at(2), "a", beat); len(n) != 1 {
		t.Fatalf("a term at the floor was renewed")
	}
	d.ask(at(3), holderA, 3, 2, 0)
	onlyRefusal(t, d.write(at(3)), election.RefusedFloor)
	d.grant(at(4), holderA, 4)
}

func TestAFailedWriteAnswersNobodyAndLaterWritesDo(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 1, 1, 0)
	w := d.ledger.Next(at(0))
	d.ledger.Failed(w.Write, at(1))
	d.voter.Settle(at(1))
	if out := d.ledger.Take(); len(out) != 0 {
		t.Fatalf("sent %+v after a failed write", out)
	}
	if d.ledger.Next(at(2)) != nil {
		t.Fatal("the write was tried again at once")
	}
	if g := onlyGrant(t, d.write(d.ledger.WakeAt())); g.Holder != holderA {
		t.Fatalf("granted %v after the disk recovered", g.Holder)
	}
}

func TestGrantsOfManyElectionsShareOneWrite(t *testing.T) {
	d := newDesk(t, state())
	for _, e := range []election.Name{"e1", "e2", "e3"} {
		d.voter.Request(at(0), "a", election.VoteRequest{Election: e, Term: 1, Holder: holderA, Lease: testLease, Roster: *roster3})
	}
	if out := d.write(at(0)); len(out) != 3 || d.ledger.writes != 1 {
		t.Fatalf("%d grants in %d writes, want 3 in 1", len(out), d.ledger.writes)
	}
}
