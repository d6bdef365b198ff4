package quorum

import (
	"testing"

	"github.com/doyen-election/doyen/election"
)

// proposed is roster3 with a voter w to come, as that driver proposes it.
func proposed(driver election.Term, counter uint64) election.RosterPropose {
	r := *roster3
	r.Version = election.Version{Driver: driver, Counter: counter}
	r.Next = append([]election.Voter{{Name: "w", Peer: "w"}}, roster3.Voters...)
	return election.RosterPropose{Driver: driver, Holder: holderA, Roster: r}
}

func onlyAccept(t *testing.T, out []election.Envelope) election.RosterAccept {
	t.Helper()
	if len(out) == 1 {
		if a, ok := out[0].Message.(election.RosterAccept); ok {
			return a
		}
	}
	t.Fatalf("sent %+v, want one acceptance", out)
	return election.RosterAccept{}
}

func onlyRosterRefusal(t *testing.T, out []election.Envelope) election.RosterRefuse {
	t.Helper()
	if len(out) == 1 {
		if r, ok := out[0].Message.(election.RosterRefuse); ok {
			return r
		}
	}
	t.Fatalf("sent %+v, want one refusal", out)
	return election.RosterRefuse{}
}

func TestR1AnAcceptedRosterIsWrittenRaisesTheTermAndTellsTheHighest(t *testing.T) {
	d := newDesk(t, state())
	d.grant(at(0), holderA, 9)
	d.voter.Propose(at(1), "a", proposed(4, 0))
	d.voter.Settle(at(1))
	if out := d.voter.Take(); len(out) != 0 || d.voter.Roster() != roster3 {
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
		d.voter.Propose(at(1), "a", p)
		out := d.write(at(1))
		t.Log(name)
		if r := onlyRosterRefusal(t, out); r.Granted != 4 || r.Roster == nil || r.Roster.Version != (election.Version{Driver: 4, Counter: 1}) {
			t.Errorf("%s: refused with %+v, want term 4 and the roster held", name, r)
		}
	}
	d.voter.Propose(at(2), "a", foreign)
	if out := d.write(at(2)); len(out) != 0 || d.voter.Roster().Cluster != "x" {
		t.Errorf("another cluster's roster: sent %+v, holds %s", out, d.voter.Roster().Cluster)
	}
	d.voter.Propose(at(3), "a", proposed(4, 1))
	onlyAccept(t, d.write(at(3))) // a repeat of the version held
}

// A driver that was granted by others than this voter raises its term too: who
// was granted before can't drive any more.
func TestR1AnAcceptanceShutsOutTheFormerDriver(t *testing.T) {
	d := newDesk(t, state())
	d.voter.Propose(at(0), "a", proposed(4, 0))
	onlyAccept(t, d.write(at(0)))
	r := asked(holderB, 3, testLease, d.voter.Roster())
	r.Election = election.RosterElection
	d.voter.Request(at(5000), "b", r)
	onlyRefusal(t, d.write(at(5000)), election.RefusedStaleTerm)
}

func TestV1ARosterWaitsForTheVoteBeingWritten(t *testing.T) {
	d := newDesk(t, state())
	d.ask(at(0), holderA, 9, 1, 0)
	w := d.ledger.Next(at(0))
	d.voter.Propose(at(1), "a", proposed(4, 0))
	d.ask(at(2), holderB, 10, 1, 0) // new votes wait behind the roster
	d.ledger.Persisted(w.Write)
	d.voter.Settle(at(3))
	if g := onlyGrant(t, d.voter.Take()); g.Version != roster3.Version {
		t.Fatalf("granted at version %v, want the one it was asked at", g.Version)
	}
	if w.State.Roster != roster3 {
		t.Fatal("the vote's write holds the new roster already")
	}
	out := d.write(at(4))
	if a := onlyAccept(t, out[:1]); a.Highest != 9 {
		t.Fatalf("the highest term is %d, want that of the vote before", a.Highest)
	}
	onlyRefusal(t, out[1:], election.RefusedVersion)
}

func TestR2ANewerRosterIsTakenOverOnceItIsOnDisk(t *testing.T) {
	d := newDesk(t, state())
	newer, older, foreign := *roster3, *roster3, *roster3
	newer.Version.Counter = 3
	foreign.Version.Counter, foreign.Cluster = 4, "y"
	d.voter.Adopt(at(0), &newer)
	if d.voter.Roster() != roster3 {
		t.Fatal("goes by the newer roster before it is written")
	}
	d.write(at(0))
	older.Version.Counter = 2
	for name, r := range map[string]*election.Roster{"an older one": &older, "another cluster's": &foreign} {
		d.voter.Adopt(at(1), r)
		d.write(at(1))
		if got := d.voter.Roster(); got.Version != newer.Version || got.Cluster != "x" {
			t.Errorf("%s was taken over: %+v", name, got)
		}
	}
}
