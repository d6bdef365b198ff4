package quorum

import (
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

// newer returns a copy of the roster with that version, to which the function change was applied.
func newer(r *election.Roster, v election.Version, change func(*election.Roster)) *election.Roster {
	c := *r
	c.Version = v
	if change != nil {
		change(&c)
	}
	return &c
}

// propose sends the voter a driver's proposal of a roster.
func (d *desk) propose(now election.Instant, driver election.Term, r *election.Roster) {
	d.voter.Propose(now, "b", election.RosterPropose{Driver: driver, Holder: holderB, Roster: *r})
}

func onlyAccept(t *testing.T, out []election.Envelope) election.RosterAccept {
	t.Helper()
	if len(out) == 1 {
		if a, ok := out[0].Message.(election.RosterAccept); ok {
			return a
		}
	}
	t.Fatalf("sent %+v, want one Roster Accept", out)
	return election.RosterAccept{}
}

func onlyRosterRefusal(t *testing.T, out []election.Envelope) election.RosterRefuse {
	t.Helper()
	if len(out) == 1 {
		if r, ok := out[0].Message.(election.RosterRefuse); ok {
			return r
		}
	}
	t.Fatalf("sent %+v, want one Roster Refuse", out)
	return election.RosterRefuse{}
}

func TestV2AReleasedTermIsNotGrantedAgainEvenAfterARestart(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.voter.Release(at(10), "a", election.Release{Election: "e", Term: 3, Holder: holderA})
	d.ledger.Flush()
	d.write(at(10))
	d.start(at(20))
	d.ask(at(21), holderA, 3, 5, 0)
	onlyRefusal(t, d.write(at(21)), election.RefusedStaleTerm)
	d.grant(at(22), holderB, 4) // a released term delays no one
}

func TestV3AWaitingRequestIsJudgedAgainUnderANewerRoster(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.ask(at(900), holderB, 2, 1, 1)
	d.voter.Adopt(at(950), newer(roster3, election.Version{Counter: 2}, nil), false)
	onlyRefusal(t, d.write(at(950)), election.RefusedVersion)
}

func TestV4AnOvertakingTermWithAShorterLeaseShortensNothing(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.staysPromised(t, 2)
}

func TestV5ARenewalDoesNotShortenTheHoldAfterARestart(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.start(at(5000))
	if n := d.voter.Renew(at(5001), "a", renewal(holderA, 1)); len(n) != 0 {
		t.Fatalf("nacked the holder on record: %+v", n)
	}
	if end, hold := d.voter.PromiseEnd("e"), at(5000).Add(Outlast(testLease, testDrift)); end < hold {
		t.Fatalf("the promise ends at %d, want the hold's end %d or later", end, hold)
	}
}

func TestV5TheHoldLastsForTheLongestLeaseGrantedInAnyElection(t *testing.T) {
	s := state()
	s.Grants = map[election.Name]election.Grant{
		"e":    {Term: 1, Holder: holderA, Lease: time.Second},
		"long": {Term: 1, Holder: holderA, Lease: 9 * time.Second},
	}
	d := newDesk(t, s)
	if end, want := d.voter.PromiseEnd("e"), at(0).Add(Outlast(9*time.Second, testDrift)); end != want {
		t.Fatalf("held until %d, want %d", end, want)
	}
}

func TestV6AReleasedTermIsNotRenewedAndItsPromiseStaysOver(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 3)
	d.voter.Release(at(10), "a", election.Release{Election: "e", Term: 3, Holder: holderA})
	n := d.voter.Renew(at(11), "a", renewal(holderA, 3)) // sent before the release, received after it
	if len(n) != 1 || n[0].Term != 3 {
		t.Fatalf("nacks %+v, want one with term 3", n)
	}
	if end := d.voter.PromiseEnd("e"); end > at(11) {
		t.Fatalf("a late renewal promised until %d", end)
	}
}

func TestV7AReleaseThatComesDuringTheWriteCountsAfterIt(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 3, 1, 0)
	d.voter.Release(at(1), "a", election.Release{Election: "e", Term: 3, Holder: holderA})
	onlyGrant(t, d.write(at(2)))
	if n := d.voter.Renew(at(3), "a", renewal(holderA, 3)); len(n) != 1 {
		t.Fatal("the release was forgotten while the grant was written")
	}
	d.grant(at(4), holderB, 4)
}

func TestAVoteNeedsTheSameVersionOfTheSameCluster(t *testing.T) {
	ask := func(d *desk, r *election.Roster) []election.Envelope {
		d.voter.Request(at(1), "a", election.VoteRequest{Election: "e", Term: 1, Holder: holderA, Lease: testLease, Send: 1, Roster: *r})
		return d.write(at(1))
	}
	for name, r := range map[string]*election.Roster{
		"a newer version": newer(roster3, election.Version{Counter: 2}, nil),
		"a newer driver":  newer(roster3, election.Version{Driver: 1}, nil),
		"another cluster": newer(roster3, roster3.Version, func(r *election.Roster) { r.Cluster = "y" }),
	} {
		t.Run(name, func(t *testing.T) {
			onlyRefusal(t, ask(newDesk(t, state()), r), election.RefusedVersion)
		})
	}
}

func TestR1AnOlderDriverIsRefused(t *testing.T) {
	s := state()
	s.Grants = map[election.Name]election.Grant{election.RosterElection: {Term: 5, Holder: holderA, Lease: testLease}}
	d := newDesk(t, s)
	d.propose(at(0), 4, newer(roster3, election.Version{Driver: 4}, nil))
	if r := onlyRosterRefusal(t, d.write(at(0))); r.Granted != 5 || r.Driver != 4 {
		t.Fatalf("refused with term %d for driver %d, want 5 for 4", r.Granted, r.Driver)
	}
	if d.voter.Roster().Version != roster3.Version {
		t.Fatalf("holds %v, want the old one", d.voter.Roster().Version)
	}
	d.propose(at(1), 5, newer(roster3, election.Version{Driver: 5}, nil))
	onlyAccept(t, d.write(at(1)))
}

func TestR1AcceptingRaisesTheTermSoThatAnOlderDriverComesTooLate(t *testing.T) {
	d := newDesk(t, state())
	seven := newer(roster3, election.Version{Driver: 7}, nil)
	d.propose(at(0), 7, seven)
	onlyAccept(t, d.write(at(0)))
	if g := d.disk.Grants[election.RosterElection]; g.Term != 7 || g.Holder != holderB {
		t.Fatalf("on disk %+v, want term 7 of the driver", g)
	}
	d.voter.Request(at(1), "a", election.VoteRequest{Election: election.RosterElection, Term: 6, Holder: holderA, Lease: testLease, Send: 1, Roster: *seven})
	onlyRefusal(t, d.write(at(1)), election.RefusedStaleTerm)
	d.propose(at(2), 6, newer(roster3, election.Version{Driver: 6, Counter: 9}, nil))
	onlyRosterRefusal(t, d.write(at(2)))
}

func TestR1ARepeatIsAckedUnderTheSameTest(t *testing.T) {
	d := newDesk(t, state())
	two := newer(roster3, election.Version{Driver: 2}, nil)
	d.voter.Adopt(at(0), two, false) // from another agent's message: it acknowledges and raises nothing
	if out := d.write(at(0)); len(out) != 0 {
		t.Fatalf("sent %+v for a roster that no driver proposed", out)
	}
	d.propose(at(1), 2, two)
	onlyAccept(t, d.write(at(1)))
	if g := d.disk.Grants[election.RosterElection]; g.Term != 2 {
		t.Fatalf("the repeat was acked, but term %d is on disk, want 2", g.Term)
	}
	d.voter.Request(at(2), "a", election.VoteRequest{Election: election.RosterElection, Term: 3, Holder: holderA, Lease: testLease, Send: 1, Roster: *two})
	onlyGrant(t, d.write(at(2)))
	d.propose(at(3), 2, two)
	onlyRosterRefusal(t, d.write(at(3)))
}

func TestR1AnOlderVersionIsRefused(t *testing.T) {
	d := newDesk(t, state())
	d.propose(at(0), 3, newer(roster3, election.Version{Driver: 3, Counter: 1}, nil))
	onlyAccept(t, d.write(at(0)))
	d.propose(at(1), 3, newer(roster3, election.Version{Driver: 3}, nil)) // a delayed duplicate
	if r := onlyRosterRefusal(t, d.write(at(1))); r.Roster == nil || r.Roster.Version.Counter != 1 {
		t.Fatalf("told %+v, want the roster held", r.Roster)
	}
}

func TestR1IsNotHandledWhileAVoteIsWrittenAndItsAckKnowsOfThatVote(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 9, 1, 0)
	d.propose(at(1), 1, newer(roster3, election.Version{Driver: 1}, nil))
	w := d.ledger.Next(at(1))
	if w == nil || w.State.Roster.Version != roster3.Version {
		t.Fatal("the roster was changed while a vote was being written")
	}
	d.disk = d.disk.After(w)
	d.ledger.Persisted(w.Write)
	d.voter.Settle(at(2))
	if g := onlyGrant(t, d.ledger.Take()); g.Version != roster3.Version {
		t.Fatalf("granted at version %v, want the one it was asked at", g.Version)
	}
	if a := onlyAccept(t, d.write(at(3))); a.Highest != 9 {
		t.Fatalf("the ack knows of term %d, want 9", a.Highest)
	}
}

func TestR1NoVoteIsGivenWhileARosterIsWritten(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 1)
	d.propose(at(1), 1, newer(roster3, election.Version{Driver: 1}, nil))
	d.ask(at(2), holderA, 2, 1, 0)
	if n := d.voter.Renew(at(2), "a", renewal(holderA, 1)); len(n) != 1 {
		t.Fatal("renewed while the roster was being written")
	}
	out := d.write(at(3))
	if len(out) != 2 {
		t.Fatalf("sent %+v, want a Roster Accept and a refusal", out)
	}
	onlyAccept(t, out[:1])
	onlyRefusal(t, out[1:], election.RefusedVersion)
}

func TestR2ARequesterThatIsBehindIsToldTheNewerRoster(t *testing.T) {
	d := newDesk(t, state())
	d.voter.Adopt(at(0), newer(roster3, election.Version{Driver: 4, Counter: 1}, nil), false)
	d.write(at(0))
	d.voter.Request(at(1), "a", election.VoteRequest{Election: "e", Term: 1, Holder: holderA, Lease: testLease, Send: 1, Roster: *roster3})
	out := d.write(at(1))
	onlyRefusal(t, out, election.RefusedVersion)
	if r := out[0].Message.(election.VoteRefusal).Roster; r == nil || r.Version.Driver != 4 {
		t.Fatalf("told %+v, want the roster of driver 4", r)
	}
}

func TestR5ATermAtTheFloorIsNotGrantedAgainToItsHolder(t *testing.T) {
	s := state()
	s.Grants = map[election.Name]election.Grant{"e": {Term: 3, Holder: holderA, Lease: testLease}}
	s.Roster = newer(roster3, election.Version{Driver: 1, Counter: 1}, func(r *election.Roster) { r.Floor = 3 })
	d := newDesk(t, s) // a stale record of a failed attempt
	d.ask(at(1), holderA, 3, 1, 0)
	onlyRefusal(t, d.write(at(1)), election.RefusedFloor)
	beat := renewal(holderA, 3)
	beat.Version = s.Roster.Version
	if n := d.voter.Renew(at(2), "a", beat); len(n) != 1 {
		t.Fatal("a term at the floor was renewed")
	}
}

func TestR10AnUnmarkedJointRosterCountsTheFormerHalfAndAMarkedOneBoth(t *testing.T) {
	voters := func(ids ...election.PeerID) (vs []election.Voter) {
		for _, id := range ids {
			vs = append(vs, election.Voter{Peer: id})
		}
		return vs
	}
	joint := &election.Roster{Voters: voters("a", "b", "c"), Next: voters("c", "d", "e")}
	marked := *joint
	marked.Committed = true
	for _, try := range []struct {
		have     string
		unmarked bool
		marked   bool // whether they are also a majority of the marked roster
	}{{"ab", true, false}, {"abc", true, false}, {"de", false, false}, {"cde", false, false}, {"abde", true, true}, {"acd", true, true}, {"", false, false}} {
		has := func(id election.PeerID) bool {
			for _, c := range try.have {
				if id == election.PeerID(c) {
					return true
				}
			}
			return false
		}
		if got := Confirmed(joint, has); got != try.unmarked {
			t.Errorf("%q confirms without the mark: %v, want %v", try.have, got, try.unmarked)
		}
		if got := Confirmed(&marked, has); got != try.marked {
			t.Errorf("%q confirms with the mark: %v, want %v", try.have, got, try.marked)
		}
		if a, b := Accepted(joint, has), Accepted(&marked, has); a != try.marked || b != try.marked {
			t.Errorf("%q commits: %v and with the mark %v, want %v", try.have, a, b, try.marked)
		}
	}
	if Confirmed(nil, func(election.PeerID) bool { return true }) {
		t.Error("no roster was confirmed")
	}
	if Confirmed(&election.Roster{}, func(election.PeerID) bool { return true }) {
		t.Error("an empty roster was confirmed")
	}
}

func TestH3SendsCountedAtAnOlderVersionSupportNothingAtTheNewer(t *testing.T) {
	l := NewLease(1, testLease, testDrift, roster3)
	l.Count("a", at(30), roster3.Version) // one of three: no lease yet
	two := newer(roster3, election.Version{Counter: 2}, nil)
	l.Reroster(two)
	l.Count("b", at(31), two.Version)
	if l.End() != 0 || l.SupportedBy("a") {
		t.Fatalf("two voters at two versions made a lease to %d", l.End())
	}
	l.Count("a", at(32), two.Version)
	if want := at(31).Add(HolderLease(testLease, testDrift)); l.End() != want {
		t.Fatalf("ends at %d, want %d", l.End(), want)
	}
}
