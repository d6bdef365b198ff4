package quorum

import (
	"slices"
	"testing"
	"time"

	"github.com/doyen-election/doyen/election"
)

func peersOf(names string) (vs []election.Voter) {
	for _, n := range names {
		vs = append(vs, election.Voter{Name: string(n), Peer: election.PeerID(n)})
	}
	return vs
}

// ballot is the driver that changes the voters from a, b, c to a, d, e in ballot 7.
func ballot() *Driver {
	stable := &election.Roster{Cluster: "x", Version: election.Version{Driver: 3, Counter: 2}, Voters: peersOf("abc"), Floor: 4}
	return NewDriver(7, testDrift, stable, peersOf("ade"))
}

// inherited is the joint roster of a change that the driver of ballot 5 did not finish.
func inherited(marked bool) *election.Roster {
	r := &election.Roster{Cluster: "x", Version: election.Version{Driver: 5}, Voters: peersOf("abc"), Next: peersOf("ade"), Floor: 4, Committed: marked}
	if marked {
		r.Version.Counter = 1
	}
	return r
}

type accepts struct {
	driver *Driver
	now    election.Instant
}

// by makes each of the named voters accept the present proposal.
func (a accepts) by(names string, highest election.Term, promise time.Duration) {
	r := a.driver.Proposal()
	for _, n := range names {
		a.driver.Accept(a.now, election.PeerID(n), election.RosterAccept{Driver: r.Version.Driver, Version: r.Version, Highest: highest, Promise: promise})
	}
}

// marked returns the driver after it has proposed its mark.
func marked(t *testing.T, d *Driver) *Driver {
	t.Helper()
	accepts{d, at(0)}.by("abd", 1, 0)
	if !d.Advance(at(0)) || !d.Marks() {
		t.Fatalf("proposes %+v, want the marked joint roster", d.Proposal())
	}
	return d
}

func wantProposal(t *testing.T, d *Driver, v election.Version, voters, next string, committed bool, floor election.Term) {
	t.Helper()
	r := d.Proposal()
	if r.Version != v || !slices.Equal(r.Voters, peersOf(voters)) || !slices.Equal(r.Next, peersOf(next)) || r.Committed != committed || r.Floor != floor {
		t.Fatalf("proposes %+v, want version %v, %s to %q, committed %v, floor %d", *r, v, voters, next, committed, floor)
	}
}

func TestR9AChangeIsJointThenMarkedThenStable(t *testing.T) {
	d := ballot()
	wantProposal(t, d, election.Version{Driver: 7}, "abc", "ade", false, 4)
	accepts{d, at(0)}.by("abc", 90, time.Second) // only the former half
	if d.Advance(at(5000)) {
		t.Fatal("went on without the new half")
	}
	accepts{d, at(0)}.by("d", 90, time.Second)
	if !d.Advance(at(0)) {
		t.Fatal("both halves accepted, and nothing follows")
	}
	wantProposal(t, d, election.Version{Driver: 7, Counter: 1}, "abc", "ade", true, 4)
	if d.Advance(at(5000)) {
		t.Fatal("what accepted the unmarked roster counts for the marked one")
	}
	accepts{d, at(5000)}.by("abd", 6, 0)
	if !d.Advance(at(5000)) {
		t.Fatal("nothing was promised, and it waits")
	}
	wantProposal(t, d, election.Version{Driver: 7, Counter: 2}, "ade", "", false, 6)
	if d.Done() || d.Advance(at(5000)) {
		t.Fatal("done before anybody accepted")
	}
	accepts{d, at(5000)}.by("ad", 6, 0)
	if !d.Done() {
		t.Fatal("a majority of the new voters accepted, and it is not done")
	}
}

func TestR4TheWaitIsForTheLongestPromiseStillRunningAtAMajorityOfTheFormerVoters(t *testing.T) {
	long, short := 60*time.Second, 100*time.Millisecond
	d := marked(t, ballot())
	accepts{d, at(0)}.by("a", 1, short)
	accepts{d, at(10)}.by("b", 1, long)
	accepts{d, at(20)}.by("d", 1, 0) // not a former voter: it has promised nothing under the former voters
	end := at(10).Add(Outlast(long, testDrift))
	if d.WaitsUntil() != end {
		t.Fatalf("waits until %d, want %d: two of three former voters", d.WaitsUntil(), end)
	}
	if d.Advance(end - 1) {
		t.Fatal("went on while a lease won under the former voters may run")
	}
	accepts{d, at(3000)}.by("c", 1, short) // c and a are a majority too
	end = at(3000).Add(Outlast(short, testDrift))
	if d.WaitsUntil() != end || d.Advance(end-1) || !d.Advance(end) {
		t.Fatalf("waits until %d, want %d", d.WaitsUntil(), end)
	}
}

func TestR4TheAcceptancesOfTheNewHalfEndNoWait(t *testing.T) {
	stable := &election.Roster{Cluster: "x", Version: election.Version{Counter: 1}, Voters: peersOf("a")}
	d := NewDriver(7, testDrift, stable, peersOf("abc"))
	accepts{d, at(0)}.by("abc", 1, 0)
	d.Advance(at(0))
	accepts{d, at(0)}.by("a", 1, time.Second)
	accepts{d, at(0)}.by("bc", 1, 0)
	if end := at(0).Add(Outlast(time.Second, testDrift)); d.WaitsUntil() != end || d.Advance(end-1) {
		t.Fatalf("waits until %d, want %d, as a says", d.WaitsUntil(), end)
	}
}

func TestR4ARepeatedAcceptanceCountsFromItsOwnArrival(t *testing.T) {
	d := marked(t, ballot())
	accepts{d, at(0)}.by("abd", 1, time.Second)
	end := at(0).Add(Outlast(time.Second, testDrift))
	accepts{d, at(500)}.by("ab", 1, 900*time.Millisecond) // promises under the marked roster do not matter
	if d.WaitsUntil() != end {
		t.Fatalf("waits until %d, want %d", d.WaitsUntil(), end)
	}
	accepts{d, at(600)}.by("ab", 1, 100*time.Millisecond)
	if want := at(600).Add(Outlast(100*time.Millisecond, testDrift)); d.WaitsUntil() != want {
		t.Fatalf("waits until %d, want %d: from the arrival of what said so", d.WaitsUntil(), want)
	}
}

func TestR4TheFloorIsTheHighestTermOfBothHalves(t *testing.T) {
	for _, knows := range []string{"a", "d"} {
		d := marked(t, ballot())
		accepts{d, at(0)}.by("abd", 5, 0)
		accepts{d, at(0)}.by(knows, 40, 0)
		d.Advance(at(0))
		wantProposal(t, d, election.Version{Driver: 7, Counter: 2}, "ade", "", false, 40)
	}
}

func TestR3AnInheritedJointRosterIsProposedWithTheSameMark(t *testing.T) {
	for _, mark := range []bool{false, true} {
		d := InheritChange(9, testDrift, inherited(mark), inherited(mark))
		wantProposal(t, d, election.Version{Driver: 9}, "abc", "ade", mark, 4)
		accepts{d, at(0)}.by("abd", 50, time.Second)
		if mark {
			if end := at(0).Add(Outlast(time.Second, testDrift)); d.Advance(end-1) || !d.Advance(end) {
				t.Fatal("an inherited mark is not waited for")
			}
			wantProposal(t, d, election.Version{Driver: 9, Counter: 1}, "ade", "", false, 50)
		} else if !d.Advance(at(0)) || !d.Marks() {
			t.Fatalf("proposes %+v, want the mark", *d.Proposal())
		}
	}
}

func TestR11ADriverElectedAtAnUnmarkedRosterGoesBackAtOnce(t *testing.T) {
	d := InheritChange(9, testDrift, inherited(false), inherited(false))
	if !d.GoBack() || !d.Advance(at(0)) {
		t.Fatal("it does not go back")
	}
	wantProposal(t, d, election.Version{Driver: 9, Counter: 1}, "abc", "", false, 4)
	accepts{d, at(0)}.by("ab", 30, time.Second)
	if !d.Done() {
		t.Fatal("a majority of the former voters accepted, and it is not done")
	}
}

func TestR12ADriverGoesBackFromItsOwnChangeUntilItProposedTheNewVoters(t *testing.T) {
	d := ballot()
	d.GoBack()
	d.Advance(at(0))
	wantProposal(t, d, election.Version{Driver: 7, Counter: 1}, "abc", "", false, 4)

	d = marked(t, ballot())
	accepts{d, at(0)}.by("ab", 30, time.Second) // the new half does not answer
	if !d.MayAlwaysGoBack() || !d.GoBack() || !d.Advance(at(0)) {
		t.Fatal("it does not go back from its own mark")
	}
	wantProposal(t, d, election.Version{Driver: 7, Counter: 2}, "abc", "", false, 4)

	d = marked(t, ballot())
	accepts{d, at(0)}.by("abd", 1, 0)
	d.Advance(at(0))
	if d.GoBack() || d.MayAlwaysGoBack() || d.Advance(at(9000)) {
		t.Fatal("goes back although the new voters are proposed")
	}
	wantProposal(t, d, election.Version{Driver: 7, Counter: 2}, "ade", "", false, 4)
}

func TestR13AnInheritedMarkLeadsBackOnlyThroughItsOwnCommitAndWait(t *testing.T) {
	for name, d := range map[string]*Driver{
		"it was told of a mark":  InheritChange(9, testDrift, inherited(true), inherited(true)),
		"it was elected by one":  InheritChange(9, testDrift, inherited(false), inherited(true)),
		"nobody knows by what":   InheritChange(9, testDrift, inherited(true), nil),
		"elected before, learnt": InheritChange(9, testDrift, inherited(true), inherited(false)),
	} {
		t.Run(name, func(t *testing.T) {
			if d.MayAlwaysGoBack() || !d.GoBack() || d.Advance(at(9000)) {
				t.Fatal("goes back at once")
			}
			if !d.Marks() {
				marked(t, d)
			}
			accepts{d, at(0)}.by("abc", 8, time.Second)
			if d.Advance(at(9000)) {
				t.Fatal("goes back without the new half")
			}
			accepts{d, at(0)}.by("de", 50, 0)
			counter := d.Proposal().Version.Counter
			if end := at(0).Add(Outlast(time.Second, testDrift)); d.Advance(end-1) || !d.Advance(end) {
				t.Fatal("its mark is not waited for")
			}
			wantProposal(t, d, election.Version{Driver: 9, Counter: counter + 1}, "abc", "", false, 50)
		})
	}
}

func TestR1AnAcceptanceOfAnotherVersionOrBallotDoesNotCount(t *testing.T) {
	d := ballot()
	v := d.Proposal().Version
	for _, id := range []election.PeerID{"a", "b", "d"} {
		d.Accept(at(0), id, election.RosterAccept{Driver: 7, Version: election.Version{Driver: 5}})
		d.Accept(at(0), id, election.RosterAccept{Driver: 6, Version: v})
	}
	if d.Agreed() {
		t.Fatal("counted acceptances of something else")
	}
}

// The voter's side.

func TestR4AnAcceptanceTellsTheLongestPromiseStillRunning(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 9)
	long := asked(holderB, 3, roster3)
	long.Election, long.Lease = "f", 60*time.Second
	d.voter.cfg.Lease = long.Lease // all agreed to it at that time
	d.voter.Request(at(100), "b", long)
	onlyGrant(t, d.write(at(100)))
	d.voter.Propose(at(1100), "a", proposed(4, 0))
	if a := onlyAccept(t, d.write(at(1100))); a.Promise != 59*time.Second {
		t.Fatalf("tells %s, want what is left of f's promise: 59s", a.Promise)
	}
	d.voter.Propose(at(30100), "a", proposed(4, 0)) // a repeat
	if a := onlyAccept(t, d.write(at(30100))); a.Promise != 30*time.Second {
		t.Fatalf("a repeat tells %s, want 30s", a.Promise)
	}
	d.voter.Release(at(31000), "b", election.Release{Election: "f", Term: 3, Holder: holderB})
	d.voter.Propose(at(31000), "a", proposed(4, 1))
	if a := onlyAccept(t, d.write(at(31000))); a.Promise != 0 {
		t.Fatalf("tells %s, though nothing is promised", a.Promise)
	}
}

func TestR4AHoldAfterAStartIsAPromise(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 9)
	d.start(at(5000)) // a may have renewed right before the crash
	hold := Outlast(testLease, testDrift)
	d.voter.Propose(at(5100), "b", proposed(4, 0))
	if a := onlyAccept(t, d.write(at(5100))); a.Promise != hold-100*time.Millisecond {
		t.Fatalf("tells %s, want what is left of the hold: %s", a.Promise, hold-100*time.Millisecond)
	}
}

func TestR8TheLeaseOnRecordIsNeverShortenedForTheSameHolder(t *testing.T) {
	long := 60 * time.Second
	grantOf := func(d *desk, ms int, term election.Term, lease time.Duration) {
		r := asked(holderA, term, d.voter.Roster())
		r.Lease = lease
		d.voter.cfg.Lease = max(d.voter.cfg.Lease, lease) // all agreed to it at that time
		d.voter.Request(at(ms), "a", r)
		onlyGrant(t, d.write(at(ms)))
	}
	d := newDesk(t, state())
	grantOf(d, 0, 1, long)
	grantOf(d, 10, 2, testLease)
	if g := d.disk.Grants["e"]; g.Term != 2 || g.Lease != long {
		t.Fatalf("on record %+v, want term 2 and %s", g, long)
	}
	d.start(at(20))
	if end := d.voter.PromiseEnd("e"); end < at(20).Add(Outlast(long, testDrift)) {
		t.Fatalf("after a restart it holds until %d: a may act on term 1 for longer", end)
	}

	d = newDesk(t, state())
	grantOf(d, 0, 1, testLease)
	grantOf(d, 10, 1, long) // the same term, for longer: a restarted voter must know that
	if g := d.disk.Grants["e"]; g.Lease != long {
		t.Fatalf("on record %+v, but %s was promised", g, long)
	}

	d = newDesk(t, state())
	r := asked(holderA, 3, roster3)
	r.Election, r.Lease = election.RosterElection, long
	d.voter.cfg.Lease = long
	d.voter.Request(at(0), "a", r)
	onlyGrant(t, d.write(at(0)))
	d.voter.cfg.Lease = testLease // the operator shortened it
	d.voter.Propose(at(1), "a", proposed(4, 0))
	onlyAccept(t, d.write(at(1)))
	if g := d.disk.Grants[election.RosterElection]; g.Term != 4 || g.Lease != long {
		t.Fatalf("on record %+v, want term 4 and %s", g, long)
	}
}

func TestR12ABallotIsHopelessOnceAMajorityOfTheFormerVotersHasGrantedAHigherOne(t *testing.T) {
	d := ballot()
	refuse := func(names string, driver, granted election.Term) {
		for _, n := range names {
			d.Refuse(election.PeerID(n), election.RosterRefuse{Driver: driver, Version: d.Proposal().Version, Granted: granted})
		}
	}
	refuse("abc", 6, 9) // of another ballot
	refuse("abc", 7, 7) // only because of its version
	refuse("ade", 7, 9) // one of the former voters
	if d.Hopeless() {
		t.Fatal("given up while two of three former voters may accept")
	}
	refuse("b", 7, 9)
	if !d.Hopeless() {
		t.Fatal("goes on though one of three former voters at most can accept")
	}
}

func TestR4OnlyTheVotersOfTheTwoHalvesSetTheFloor(t *testing.T) {
	d := marked(t, ballot())
	accepts{d, at(0)}.by("z", 1000, 0)
	if d.HasAccepted("z") {
		t.Error("an observer's acceptance counts")
	}
	accepts{d, at(0)}.by("abd", 7, 0)
	if d.Advance(at(0)); d.Proposal().Joint() || d.Proposal().Floor != 7 {
		t.Fatalf("proposes %+v, want a stable roster with floor 7", d.Proposal())
	}
}

// A term that only one voter knows could, as a floor, use up all terms for good.
func TestR4ATermThatOneVoterAloneTellsOfSetsNoFloor(t *testing.T) {
	const far = election.Term(1) << 50
	d := marked(t, ballot())
	accepts{d, at(0)}.by("ad", 7, 0)
	accepts{d, at(0)}.by("b", far, 0)
	if d.HasAccepted("b") || !d.TooFar("b") || d.Agreed() {
		t.Fatal("counts an acceptance with a term far above all others")
	}
	accepts{d, at(1)}.by("b", 8, 0)
	if d.TooFar("b") || !d.Advance(at(1)) || d.Proposal().Floor != 8 {
		t.Fatalf("proposes %+v, want a stable roster with floor 8", d.Proposal())
	}
}

// A term that two voters report may have been granted. With a floor below it, the token could be
// given out again (G2).
func TestR4ATermThatTwoVotersTellOfSetsTheFloor(t *testing.T) {
	const far = election.Term(1) << 50
	d := marked(t, ballot())
	accepts{d, at(0)}.by("abdb", far, 0) // b is asked again, and now its acceptance counts
	accepts{d, at(0)}.by("a", far, 0)
	if !d.Advance(at(0)) || d.Proposal().Joint() || d.Proposal().Floor != far {
		t.Fatalf("proposes %+v, want a stable roster with floor %d", d.Proposal(), far)
	}
}
